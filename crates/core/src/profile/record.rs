//! What is observed, one record after the other, as a process writes it. All times are nanoseconds of CLOCK_MONOTONIC (the same for
//! all processes of a machine), all addresses those of the process, all sizes bytes.

use serde::{Deserialize, Serialize};

/// Number of an object within its process, from 1, never used again.
pub type ObjectId = u64;
/// Number of a call site within its process, from 1; 0: not known.
pub type SiteId = u32;

/// What sort of memory an object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A block of malloc and its like.
    #[default]
    Heap,
    /// A private anonymous mapping.
    Map,
    /// A static array, named by its symbol.
    Static,
    /// The stack of the first thread.
    MainStack,
    /// The stack of another thread.
    ThreadStack,
    /// Heap memory that holds blocks below the least recorded size: the brk heap or an arena of the C library.
    SmallBlocks,
    /// A thread-local array of one thread, named by its symbol, `@` and the file that defines it.
    ThreadLocal,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// The first record of a process, and again after exec.
    Start(Start),
    /// A program or library as it is mapped; before the first record that has an address of its code.
    Module(Module),
    /// A call site, before the first object of it.
    Site(Site),
    /// An object that begins.
    Object(Object),
    /// An object that goes on elsewhere or with another size (realloc, mremap, growth of a heap).
    Resized {
        /// Which.
        id: ObjectId,
        /// Where it is now.
        addr: u64,
        /// Bytes that it has now.
        len: u64,
        /// When.
        at: u64,
    },
    /// The end of an object.
    Gone {
        /// Which.
        id: ObjectId,
        /// When.
        at: u64,
    },
    /// Objects that lived so shortly that each by itself was not worth a record.
    Brief(Brief),
    /// A look at a page.
    Watch(Watch),
    /// Code around an address at which a watched page was touched; once per address.
    Code {
        /// The instruction.
        ip: u64,
        /// Address of the first byte.
        start: u64,
        /// What is there.
        bytes: Vec<u8>,
    },
    /// Samples of where threads were while they ran.
    Time(TimeSamples),
    /// Memory samples of the processor, where it has them.
    Accesses {
        /// When they were read.
        at: u64,
        /// The samples, thinned out: each stands for those that were left out, too.
        samples: Vec<Access>,
        /// How many the kernel had no room for since the record before.
        lost: u64,
    },
    /// What observing has cost, in total since the start of the process.
    Cost(Cost),
    /// Something the user should know.
    Note {
        /// A sentence.
        text: String,
    },
    /// The last record of a process that ends by exit.
    End {
        /// When.
        at: u64,
        /// CPU time of all threads in user mode, ours included.
        cpu_user_ns: u64,
        /// CPU time in the kernel.
        cpu_system_ns: u64,
        /// Most bytes in memory at a time.
        peak_resident: u64,
    },
}

/// A process begins to be observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// When.
    pub at: u64,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// Number of the process.
    pub pid: u32,
    /// The observed process that forked or executed this one; 0: none.
    pub parent: u32,
    /// The file that is executed.
    pub program: String,
    /// Its arguments, its own name left out.
    pub args: Vec<String>,
    /// Rank in an MPI job and their number.
    pub rank: Option<(u32, u32)>,
    /// Name of the machine.
    pub host: String,
    /// CPUs the process may use.
    pub cpus: u32,
    /// Bytes of the last-level cache that those CPUs share; 0: not known.
    pub cache_bytes: u64,
    /// Bytes of physical memory.
    pub memory_bytes: u64,
    /// How pages are watched.
    pub method: Method,
    /// Least size of a block that is an object of its own.
    pub least: u64,
}

/// How accesses are observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Method {
    /// Not at all: only objects are recorded.
    #[default]
    None,
    /// Random pages are moved out of view (userfaultfd), and the next touch is a fault.
    PageFaults,
    /// Hardware breakpoints on random lines.
    Breakpoints,
    /// Memory samples of the processor (PEBS, IBS).
    Hardware,
    /// Page faults, and memory samples of the processor beside them.
    Both,
}

/// A mapped file with code or static data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// The file.
    pub path: String,
    /// Empty: the file has none.
    pub build_id: Vec<u8>,
    /// What is added to the addresses of the file.
    pub bias: u64,
    /// Lowest mapped address.
    pub start: u64,
    /// End of the highest mapping.
    pub end: u64,
}

/// Where objects are allocated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Which.
    pub id: SiteId,
    /// Return addresses, innermost first, frames of nearfar left out.
    pub frames: Vec<u64>,
    /// Frames of an interpreted language, innermost first.
    pub script: Vec<ScriptFrame>,
}

/// A line of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScriptFrame {
    /// The script.
    pub file: String,
    /// The function in it.
    pub function: String,
    /// The line, from 1.
    pub line: u32,
}

/// An object begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Which.
    pub id: ObjectId,
    /// What sort.
    pub kind: Kind,
    /// Where it begins.
    pub addr: u64,
    /// How long it is.
    pub len: u64,
    /// Where it was allocated.
    pub site: SiteId,
    /// The symbol of a static array, or `symbol@file` of a thread-local one; else empty.
    pub name: String,
    /// When.
    pub at: u64,
}

/// Objects of one site that came and went between two writes of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// Where they were allocated.
    pub site: SiteId,
    /// When they are written: they lived before.
    pub at: u64,
    /// How many.
    pub count: u64,
    /// Sizes of all together.
    pub bytes: u64,
    /// Size of the largest.
    pub largest: u64,
    /// Lifetimes of all together.
    pub lifetime_ns: u64,
}

/// A look at a page: at the random moment `at` a random page of an object was taken out of view; the first touch put it back.
/// Pages are drawn alike within an object; how often an object is drawn does not matter to the estimates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// Whose page.
    pub object: ObjectId,
    /// Address of the page.
    pub page: u64,
    /// Pages that were taken together: 1, or 512 for a huge page.
    pub pages: u16,
    /// When it was taken.
    pub at: u64,
    /// How long it took to the end.
    pub waited: u64,
    /// What of that the program's threads waited for us, each on average.
    pub stalled: u64,
    /// How it ended.
    pub end: WatchEnd,
    /// Address of the first touch; 0: not known or none.
    pub touched: u64,
    /// The instruction; 0: not known or none.
    pub ip: u64,
    /// The thread; 0: not known or none.
    pub tid: u32,
    /// Whether the visit that began with the first touch wrote; `None`: not looked at.
    pub wrote: Option<bool>,
    /// Of the lines that were looked at in the visit (breakpoints): how many were looked at and touched.
    pub lines: Option<(u8, u8)>,
}

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchEnd {
    /// Somebody read it first.
    Read,
    /// Somebody wrote it first.
    Write,
    /// Nobody touched it until we gave up.
    Nobody,
    /// The page had no memory yet: nothing was ever written there. Its wait is 0.
    Absent,
    /// The object or its memory went first.
    Lost,
}

/// Samples of the running threads' instructions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSamples {
    /// The time they are of ends here.
    pub at: u64,
    /// CPU time that one sample stands for.
    pub period_ns: u64,
    /// Instruction, thread, number of samples.
    pub samples: Vec<(u64, u32, u32)>,
    /// The time they are of begins here.
    pub since: u64,
    /// When what ran: microseconds since the one before (the first: since `since`), and which of `samples`. One in about a
    /// millisecond, of whichever thread. Empty: not told.
    pub moments: Vec<(u32, u32)>,
}

/// What observing has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// When.
    pub at: u64,
    /// CPU time of our threads.
    pub cpu_ns: u64,
    /// Time that threads of the program waited for us: faults, mapping calls.
    pub stall_ns: u64,
    /// Time within our hooks.
    pub hooks_ns: u64,
    /// Looks begun.
    pub watches: u64,
    /// Looks that a touch ended.
    pub touched: u64,
    /// Allocations and frees that the hooks saw.
    pub allocations: u64,
    /// Records that were not written since the file had reached its limit.
    pub left_out: u64,
}

/// A load or store that the processor sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// When.
    pub at: u64,
    /// The instruction.
    pub ip: u64,
    /// The thread.
    pub tid: u32,
    /// What it touched.
    pub addr: u64,
    /// How many such events the sample stands for.
    pub stands_for: u64,
    /// How long it took, in processor cycles; 0: not measured.
    pub cycles: u32,
    /// Where the data came from.
    pub source: Source,
    /// It was a store.
    pub writes: bool,
}

/// Where the data of an access came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The processor did not tell.
    #[default]
    Unknown,
    /// The first-level cache.
    L1,
    /// The second.
    L2,
    /// The third.
    L3,
    /// A line that was already on its way.
    FillBuffer,
    /// The cache of another processor.
    OtherCache,
    /// Memory of any sort.
    Memory,
}
