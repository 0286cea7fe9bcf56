//! Policies: state in, decision out. `tiers` executes decisions and may decline them.
//!
//! Two questions are answered here. *Evict*: which unit leaves near when room is needed. *Fetch*: which pages to bring when a
//! page is asked for, and which ones to bring ahead of demand. A new policy is one new file and one line here.

pub mod headroom;
pub(crate) mod units;
mod rates;
pub mod evict_adaptive;
pub mod rivals;
pub mod fetch_grain;
pub mod merging;
pub mod read_around;
pub mod stream;
pub mod replay;
pub mod step;
pub mod timed;
pub mod learned;
pub mod migrate;
pub mod traces;
#[cfg(test)]
mod judge;

/// What is evicted as one: a whole block that is held in a huge page, or one chunk of a block that is held in small pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(u64);

impl Unit {
    /// The unit of block number `block` (address / 2 MiB).
    pub const fn block(block: usize) -> Self {
        Self((block as u64) << 6 | 1 << 5)
    }

    /// The unit of chunk `chunk` (0..32) of block number `block`.
    pub const fn chunk(block: usize, chunk: usize) -> Self {
        Self((block as u64) << 6 | (chunk as u64 & 31))
    }

    /// Number of the block that the unit is or lies in.
    pub const fn block_number(self) -> usize {
        (self.0 >> 6) as usize
    }

    /// The chunk's index in its block, or `None` when the unit is a whole block.
    pub const fn chunk_index(self) -> Option<usize> {
        if self.0 & 1 << 5 == 0 { Some((self.0 & 31) as usize) } else { None }
    }
}

/// How a unit came to near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// First touch: zeros were given.
    Touched,
    /// Read from far because a thread asked for it (also when the read had been started by prefetch).
    Demanded,
    /// It was in limbo and was asked for again.
    Rescued,
}

/// Which unit leaves near when room is needed.
///
/// The caller inserts each unit when it becomes visible to the program, removes it when the program discards it, and asks for
/// a victim when room is needed. A victim is no longer in the policy's resident set; when the caller cannot evict it (pinned
/// by the kernel) it inserts it again. Sizes are in pages of 4 KiB.
pub trait Evict: Send {
    /// `unit` became resident with `pages` pages. Inserting a resident unit again updates its size.
    fn insert(&mut self, unit: Unit, pages: u32, arrival: Arrival);
    /// `unit` is gone because the program discarded it; it is forgotten altogether.
    fn remove(&mut self, unit: Unit);
    /// The unit to evict now, or `None` when nothing is resident.
    fn victim(&mut self) -> Option<Unit>;
    /// The last victim has left near, and `written` of its pages differ from what far had of them: to let it go cost a write
    /// as well as the read that will bring it back. What far never had says nothing of the future and does not count.
    fn left(&mut self, unit: Unit, written: u32) {
        let _ = (unit, written);
    }
    /// Near can hold `pages` pages from now on.
    fn set_capacity(&mut self, pages: u64);
    /// Pages resident according to the policy.
    fn resident_pages(&self) -> u64;
    /// Short name for tables.
    fn name(&self) -> &'static str;
}

/// A run of pages: absolute page numbers `first..first + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// First page (address / 4 KiB).
    pub first: u64,
    /// Number of pages, at least 1.
    pub count: u32,
}

/// What the pager found when it looked at a faulting page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing was ever there: zeros will be given.
    Zero,
    /// The data is in far and must be read.
    Far,
    /// A read is under way.
    Late,
    /// Prefetch had it in near.
    Staged,
    /// It was in limbo.
    Limbo,
}

/// One fault as the fetch policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The page asked for (address / 4 KiB).
    pub page: u64,
    /// Kernel thread id of the thread that asked; 0 when unknown.
    pub thread: u32,
    /// What was found.
    pub found: Found,
    /// True when the thread wants to write.
    pub write: bool,
    /// Time of the fault in ns, monotonic.
    pub now_ns: u64,
}

/// What the pager can afford at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Pages that near may hold in all.
    pub near_pages: u64,
    /// Pages that could be used without evicting anything (free frames, unspent budget).
    pub free_pages: u64,
    /// Pages of the program's managed memory that hold data, near or far.
    pub data_pages: u64,
    /// Pages that prefetch may hold.
    pub staging_pages: u64,
    /// Pages that prefetch asked for: not begun, under way, or there and not yet asked for by the program.
    pub staged_pages: u64,
    /// Bytes per second that far has been seen to read, 0 when unknown.
    pub far_bytes_per_s: u64,
}

/// The decision of a fetch policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// Pages to bring with the faulting one; contains the faulting page and stays in its block. `None`: the page alone.
    pub run: Option<Run>,
    /// Runs to bring ahead of demand, most urgent first; none crosses a block border.
    pub ahead: Vec<Run>,
    /// Runs brought ahead earlier that are as good as asked for: to be shown to the program without waiting for its faults.
    pub show: Vec<Run>,
}

/// What is in far, as far as a fetch policy wants to know. Data that is in near is a hole in a stream: the program passes there
/// without a fault.
pub trait View {
    /// The part of `run`, which lies in one block, to read first: pages in far and not on their way. With `down` the last
    /// such part. `None` when there is nothing to read.
    fn in_far(&self, run: Run, down: bool) -> Option<Run>;
}

/// Everything is in far.
impl View for () {
    fn in_far(&self, run: Run, _: bool) -> Option<Run> {
        Some(run)
    }
}

/// Which pages to bring when one is asked for, and which ahead of demand. Adapts from 4 KiB (random) to 2 MiB (streams).
pub trait Prefetch: Send {
    /// A thread asked for a page. For `Found::Zero` the run says how much fresh memory to give at once.
    fn on_fault(&mut self, fault: &Fault, room: &Room, view: &dyn View) -> Fetch;
    /// A prefetched run was given up without being asked for.
    fn on_wasted(&mut self, run: Run);
    /// Short name for tables.
    fn name(&self) -> &'static str;
}

/// Names of the eviction policies; the first is the pager's.
pub const EVICT_NAMES: &[&str] = &["adaptive", "s3fifo", "freeze", "clock", "lru", "fifo", "random"];

/// The eviction policy of that name for a near of `capacity_pages` pages of 4 KiB; `None` when there is none.
pub fn evict_by_name(name: &str, capacity_pages: u64) -> Option<Box<dyn Evict>> {
    match name {
        "adaptive" => Some(Box::new(evict_adaptive::Adaptive::new(capacity_pages))),
        rival => rivals::by_name(rival, capacity_pages),
    }
}
