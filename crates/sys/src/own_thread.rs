//! Threads that owe nothing to the C library: their stack, their thread-local block and its table come from us.
//!
//! pthread_create(3) takes the table of a thread (the dynamic thread vector) from malloc, which may be the program's: one that is
//! linked into it, whose memory is paged and whose locks the calling thread may hold. Paging begins, and a fork goes on, at
//! such moments. So the threads that page are made by clone(2), here.
//!
//! What such a thread must not do: call what allocates by the C library (it takes no locks while it knows of one thread only), open
//! libraries, end by returning to the C library. It may call what only reads and writes its own block: errno, system calls.
//!
//! The C library does not know them. So a process ends with the last thread of the program, and when the program changes its user or
//! group, `credentials` has them follow.

use crate::arch;
use crate::errno::{Errno, call};
use crate::map::{self, ANON, RW};
use crate::{credentials, thread_mark};
use nearfar_core::addr::{Extent, PAGE};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const STACK: usize = 512 << 10;
/// Room for what the C library keeps of a thread beside its block, which it alone knows the size of (2304 bytes in glibc 2.36).
const OF_LIBC: usize = 8 << 10;
/// Blocks of modules further away than this are not in the static part. Programs may have large arrays there.
const FAR_AWAY: usize = 1 << 40;
/// Images that are larger are of the program, which does not run in these threads.
const LARGE_IMAGE: usize = 1 << 20;
/// More modules than programs start with; the block of others is not looked for.
const MODULES: usize = 4096;
/// Threads that may live at a time.
const THREADS: usize = 32;

type Body = Box<dyn FnOnce() + Send>;

/// The thread-local data of one module, as it is when a thread begins.
struct Module {
    id: usize,
    /// From the thread pointer.
    offset: isize,
    image: usize,
    image_len: usize,
    len: usize,
}

/// What the block of every thread has.
struct Layout {
    modules: Vec<Module>,
    /// From the thread pointer, modules and what belongs to the C library included; the end of whole pages.
    low: usize,
    high: usize,
    /// The last bits of a thread pointer: modules are aligned as in the thread that was looked at.
    odd: usize,
}

static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// One thread's place. Memory that was taken stays with it: a thread that ends, or was left behind by a fork, makes room for another.
struct Place {
    /// The thread's number while it lives; 0 when the place is free. The kernel clears it.
    tid: AtomicU32,
    /// Where its memory starts, 0 before the first use.
    start: AtomicUsize,
}

const CLAIMED: u32 = u32::MAX;
static PLACES: [Place; THREADS] = [const { Place { tid: AtomicU32::new(0), start: AtomicUsize::new(0) } }; THREADS];

/// Looks at what threads of this process have. From here on `thread::spawn` makes threads of this kind. To be called once the libraries
/// that the program starts with are loaded, before anything is paged.
pub fn prepare() {
    LAYOUT.get_or_init(|| {
        let mut modules = Vec::new();
        // SAFETY: `note` gets back the pointer to `modules`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut modules).cast()) };
        let low = modules.iter().map(|module: &Module| module.offset).min().unwrap_or(0).min(0).unsigned_abs();
        let high = modules.iter().map(|module| module.offset + module.len as isize).max().unwrap_or(0).max(0) as usize;
        let odd = arch::thread_pointer() % PAGE;
        Layout { modules, low: (low + OF_LIBC).next_multiple_of(PAGE), high: (high + OF_LIBC).next_multiple_of(PAGE), odd }
    });
}

/// True once `prepare` was called.
pub fn is_prepared() -> bool {
    LAYOUT.get().is_some()
}

/// Notes the thread-local data of one loaded object.
///
/// # Safety
/// Called by dl_iterate_phdr with a description of a loaded object and the list of `prepare`.
unsafe extern "C" fn note(object: *mut libc::dl_phdr_info, size: usize, modules: *mut c_void) -> c_int {
    // SAFETY: valid for the call, as documented for dl_iterate_phdr.
    let object = unsafe { &*object };
    // SAFETY: the list that `prepare` passed.
    let modules = unsafe { &mut *modules.cast::<Vec<Module>>() };
    if size < size_of::<libc::dl_phdr_info>() || object.dlpi_tls_data.is_null() || object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader keeps `dlpi_phnum` headers at `dlpi_phdr`.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize) };
    let offset = object.dlpi_tls_data.addr().wrapping_sub(arch::thread_pointer()) as isize;
    if let Some(header) = headers.iter().find(|header| header.p_type == libc::PT_TLS)
        && offset.unsigned_abs() < FAR_AWAY
        && object.dlpi_tls_modid < MODULES
    {
        let image = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        let (image_len, len) = (header.p_filesz as usize, header.p_memsz as usize);
        modules.push(Module { id: object.dlpi_tls_modid, offset, image, image_len, len });
    }
    0
}

/// An entry of the table by which the block of a module is found.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    block: usize,
    to_free: usize,
}

impl Layout {
    /// Entries: the number of entries, the generation, and the modules.
    fn table_len(&self) -> usize {
        let most = self.modules.iter().map(|module| module.id).max().unwrap_or(0);
        (most + 2) * size_of::<Entry>()
    }

    fn whole(&self) -> usize {
        PAGE + STACK + self.low + PAGE + self.high + self.table_len().next_multiple_of(PAGE)
    }

    /// Makes a thread's block in its memory at `start`; returns its thread pointer and the top of its stack.
    ///
    /// # Safety
    /// `start` has `whole()` bytes that nobody uses, readable and writable but for the first page.
    unsafe fn build(&self, start: usize) -> (usize, usize) {
        let bottom = start + PAGE + STACK;
        let pointer = bottom + self.low + self.odd;
        let table = (bottom + self.low + PAGE + self.high) as *mut Entry;
        // SAFETY: all within the memory that the caller gave: `low` and `high` are the reach of all modules and of the C library's own.
        // Images are in memory as long as the modules are, which were loaded when the program began.
        unsafe {
            // Zeros, also where a thread was before; nothing is touched.
            let _ = map::madvise(Extent::new(bottom, self.low + PAGE + self.high), libc::MADV_DONTNEED);
            // Entries of nobody, as the C library marks them; of a generation that is never behind.
            let entries = self.table_len() / size_of::<Entry>();
            (0..entries).for_each(|index| table.add(index).write(Entry { block: usize::MAX, to_free: 0 }));
            table.write(Entry { block: entries - 2, to_free: 0 });
            table.add(1).write(Entry { block: usize::MAX, to_free: 0 });
            for module in &self.modules {
                let block = pointer.wrapping_add_signed(module.offset);
                if module.image_len > LARGE_IMAGE {
                    continue;
                }
                std::ptr::copy_nonoverlapping(module.image as *const u8, block as *mut u8, module.image_len);
                table.add(1 + module.id).write(Entry { block, to_free: 0 });
            }
            arch::begin_thread_block(pointer, table.add(1).addr());
        }
        (pointer, bottom)
    }
}

struct Start {
    name: [u8; 16],
    body: Body,
    credentials: u32,
}

/// Where the new thread begins.
extern "C" fn begin(start: *mut c_void) -> ! {
    thread_mark::go_inside();
    // SAFETY: `spawn` made this pointer from a box and gave it to this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    let Start { name, body, credentials } = *start;
    // SAFETY: a string of at most 15 bytes and its end, in a local.
    let _ = unsafe { call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name.as_ptr().addr(), 0, 0, 0, 0]) };
    credentials::begin(credentials);
    body();
    // SAFETY: ends this thread alone; the kernel then says that its place is free.
    let _ = unsafe { call(libc::SYS_exit, [0; 6]) };
    std::process::abort()
}

/// A free place with its memory.
fn claim(layout: &Layout) -> Result<(&'static Place, usize), Errno> {
    let free = |place: &&Place| place.tid.compare_exchange(0, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let place = PLACES.iter().find(free).ok_or(Errno(libc::EAGAIN))?;
    let start = place.start.load(Ordering::Acquire);
    if start != 0 {
        return Ok((place, start));
    }
    // SAFETY: not fixed: the kernel picks free space.
    let mapped = unsafe { map::mmap(0, layout.whole(), RW, ANON, -1, 0) };
    // SAFETY: the first page of our own fresh mapping: a stack that overflows shall trap.
    match mapped.and_then(|start| unsafe { map::mprotect(Extent::new(start, PAGE), libc::PROT_NONE) }.map(|()| start)) {
        Ok(start) => {
            place.start.store(start, Ordering::Release);
            map::note_own(layout.whole());
            Ok((place, start))
        }
        Err(errno) => {
            place.tid.store(0, Ordering::Release);
            Err(errno)
        }
    }
}

/// Starts a thread named `name` (at most 15 bytes) that is inside for all its life, with every signal blocked. `EAGAIN` where no more
/// threads may be.
pub fn spawn(name: &str, body: Body) -> Result<(), Errno> {
    let layout = LAYOUT.get().ok_or(Errno(libc::ENOSYS))?;
    let (place, memory) = claim(layout)?;
    let mut start = Start { name: [0; 16], body, credentials: credentials::now(is_own()) };
    let len = name.len().min(15);
    start.name[..len].copy_from_slice(&name.as_bytes()[..len]);
    let start = Box::into_raw(Box::new(start));
    let _signals = crate::signal::Blocked::all();
    // As the C library has it: filters for system calls know that.
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    // SAFETY: the place is ours; its memory is used by this thread alone, until the kernel clears `tid`.
    let result = unsafe {
        let (pointer, stack) = layout.build(memory);
        arch::clone_thread(flags as usize, stack, place.tid.as_ptr(), pointer, begin, start.cast())
    };
    if result < 0 {
        // SAFETY: nobody has it.
        drop(unsafe { Box::from_raw(start) });
        place.tid.store(0, Ordering::Release);
        return Err(Errno(-result as i32));
    }
    Ok(())
}

/// In the child of fork: the threads are the parent's.
pub fn after_fork() {
    PLACES.iter().for_each(|place| place.tid.store(0, Ordering::Release));
}

/// True in a thread of this kind.
fn is_own() -> bool {
    // SAFETY: no arguments.
    let tid = unsafe { call(libc::SYS_gettid, [0; 6]) };
    all().any(|own| tid == Ok(own as usize))
}

/// Numbers of the living threads of this kind.
fn all() -> impl Iterator<Item = u32> {
    PLACES.iter().map(|place| place.tid.load(Ordering::Acquire)).filter(|&tid| tid != 0 && tid != CLAIMED)
}
