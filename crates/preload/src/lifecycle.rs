//! Whether this process is managed: the state, how it starts, what happens around fork, and how it ends.
//!
//! One thread starts, once; everybody else, and the starting thread's own calls that come back through the hooks, uses the C
//! library meanwhile. All others are final. A hook asks `managed()`, which is one load when the answer is yes.

use crate::early_atfork::{self, AtFork};
use crate::managed::Managed;
use crate::{alloc_internal, at_fork, errno, exec, placing, profiling, small_heap, static_arrays, stdio, user_mode};
use nearfar_profile::recorder;
use nearfar_sys::errno::Errno;
use nearfar_sys::{own_limits, own_thread, process};
use nearfar_tiers::job::{ENV_JOB, Job};
use nearfar_tiers::memory::Memory;
use nearfar_tiers::pool::Pool;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// Where this process is in its life.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody has asked yet, or the C library was not ready when somebody did.
    Unstarted,
    /// One thread is setting things up.
    Starting,
    /// Not under a job, or its job cannot be used: every hook passes on.
    Inert,
    /// The program's memory is ours to manage.
    Managing,
    /// Tiers are NUMA nodes: objects are placed (`placing`), nothing is paged.
    Placing,
    /// Memory stays the C library's; what becomes of it is recorded (`nearfar profile`).
    Profiling,
}

static STATE: AtomicU8 = AtomicU8::new(State::Unstarted as u8);
/// The process that is managed: the one that started, or its forked child.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The thread that starts.
static STARTER: AtomicU32 = AtomicU32::new(0);
/// Forks under way: from the start of our handler before to the start of the program's handlers after.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// The thread that forks.
static FORKER: AtomicU32 = AtomicU32::new(0);
static MANAGED: AtomicPtr<Managed> = AtomicPtr::new(null_mut());
/// Where objects are placed and nothing is managed.
static JOB: OnceLock<Job> = OnceLock::new();

/// What the hooks work with, also when the calling thread is inside nearfar; `None` unless the state is `Managing`.
#[inline(always)]
pub fn managed_even_inside() -> Option<&'static Managed> {
    let managed = MANAGED.load(Ordering::Acquire);
    if managed.is_null() {
        return if STATE.load(Ordering::Relaxed) == State::Unstarted as u8 { start_when_ready() } else { None };
    }
    // SAFETY: published by `start` after it was built, never changed or freed.
    Some(unsafe { &*managed })
}

/// What the hooks work with; `None` when the call must go to the C library or the kernel.
#[inline(always)]
pub fn managed() -> Option<&'static Managed> {
    managed_even_inside().filter(|_| !Memory::inside())
}

/// What the heap works with. Other than for the rest, being inside matters only during a fork, when handlers of the program may
/// run with the lock of `Memory` held: allocations inside nearfar are either Rust's, on our own heap, or the C library's for
/// itself, on its own. So the thread-local mark is not read here otherwise.
#[inline(always)]
pub fn managed_heap() -> Option<&'static Managed> {
    managed_even_inside().filter(|_| nobody_forks() || !Memory::inside())
}

/// True when no fork is under way in this process.
#[inline(always)]
pub fn nobody_forks() -> bool {
    FORKING.load(Ordering::Relaxed) == 0
}

/// False in the child of vfork, which shares our memory but not our descriptors.
pub fn is_this_process() -> bool {
    process::pid() == PROCESS.load(Ordering::Relaxed)
}

/// Starts if that is still to be done and possible now.
#[cold]
#[inline(never)]
fn start_when_ready() -> Option<&'static Managed> {
    if !libc_is_ready() {
        return None;
    }
    let claim = STATE.compare_exchange(State::Unstarted as u8, State::Starting as u8, Ordering::Acquire, Ordering::Relaxed);
    if claim.is_err() {
        return None;
    }
    let kept = errno::Kept::now();
    STARTER.store(process::tid(), Ordering::Relaxed);
    let [prepare, parent, child] =
        [at_fork::prepare, at_fork::parent, at_fork::child].map(|handler: extern "C" fn()| handler as *mut c_void);
    // First of all: closest around the fork. SAFETY: as in `register_handlers`.
    let _ = unsafe { early_atfork::register([prepare, parent, child, null_mut()]) };
    let state = start();
    early_atfork::pass_on();
    STATE.store(state as u8, Ordering::Release);
    drop(kept);
    // SAFETY: null, or published by `start`.
    unsafe { MANAGED.load(Ordering::Acquire).as_ref() }.filter(|_| !Memory::inside())
}

/// True once the C library has run its own constructor. The loader calls malloc before that, when threads, the environment
/// and standard streams do not exist yet.
fn libc_is_ready() -> bool {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: a word of the C library, null until its constructor has run; nobody else runs then.
    !unsafe { environ }.is_null()
}

fn start() -> State {
    let Some((path, job)) = attach() else {
        if !profiling::start() {
            return State::Inert;
        }
        register_handlers();
        return State::Profiling;
    };
    exec::remember(ENV_JOB, &path);
    if job.settings().placement.is_numa() {
        start_placing(job);
        return State::Placing;
    }
    if start_managing(job, Job::command_of(&path).unwrap_or(0)) { State::Managing } else { State::Inert }
}

/// The job that the environment names, and its path.
fn attach() -> Option<(CString, Job)> {
    let name = CString::new(ENV_JOB).ok()?;
    // SAFETY: a C string; the environment exists (`libc_is_ready`) and is read before the program could change it.
    let path = unsafe { libc::getenv(name.as_ptr()) };
    if path.is_null() {
        return None;
    }
    // SAFETY: getenv returns a C string that stays until the environment is changed; it is copied at once.
    let path = unsafe { CStr::from_ptr(path) }.to_owned();
    match Job::attach(&path) {
        Ok(job) => Some((path, job)),
        Err(errno) => {
            let why = if errno == Errno::EINVAL {
                "nearfar and libnearfar.so are from different builds; install both from the same build"
            } else {
                "it cannot be opened"
            };
            unmanaged(&format_args!("the job segment {} cannot be used: {why} ({errno})", path.to_string_lossy()));
            None
        }
    }
}

fn start_placing(job: Job) {
    placing::start_nodes(job);
    JOB.get_or_init(|| job);
    register_handlers();
}

/// Registers the handlers around fork; the first after those of `at_fork`.
fn register_handlers() {
    let ours = [fork_prepare, fork_parent, fork_child].map(|handler: extern "C" fn()| handler as *mut c_void);
    // SAFETY: the three functions live as long as the process (the library is never unloaded, so that no object need be named). Without
    // memory for them there is none for the program.
    let _ = unsafe { early_atfork::register([ours[0], ours[1], ours[2], null_mut()]) };
    PROCESS.store(process::pid(), Ordering::Relaxed);
}

fn start_managing(job: Job, command: u32) -> bool {
    own_thread::prepare();
    alloc_internal::keep_reserve();
    // A panic is a defect of ours. It ends the process either way; but nobody can use a backtrace into nearfar, and making one takes
    // locks of the C library.
    std::panic::set_hook(Box::new(|info| nearfar_tiers::pager::stop(&format!("internal error: {info}; please report this"))));
    let memory = match Memory::start(job, command) {
        Ok(memory) => memory,
        Err(errno) => {
            job.note_unmanaged();
            unmanaged(&format_args!("paging could not be started ({errno})"));
            return false;
        }
    };
    let settings = job.settings();
    if settings.user_only
        && let Err(errno) =
            user_mode::start(&memory, user_mode::Process { managed: managed_even_inside, is_this: is_this_process })
    {
        job.note_unmanaged();
        unmanaged(&format_args!("system calls cannot be caught ({errno}), but this user's userfaultfd requires that"));
        return false;
    }
    let min_size = usize::try_from(settings.min_size).unwrap_or(usize::MAX).max(1);
    // Where system calls are caught, only the arena is watched.
    let arrays = if settings.user_only { Vec::new() } else { static_arrays::find(min_size) };
    let managed: &'static Managed = Box::leak(Box::new(Managed::new(memory, min_size, settings.heap_all)));
    let near = placing::start_paged(settings, managed, memory.slot());
    let arrays = placing::statics::without(arrays, &near);
    for array in &arrays {
        memory.adopt(array.start, array.len());
    }
    managed.set_arrays(arrays);
    own_limits::adopt(memory.own_most_bytes());
    small_heap::configure();
    Pool::keep_settings();
    register_handlers();
    MANAGED.store(std::ptr::from_ref(managed).cast_mut(), Ordering::Release);
    placing::open();
    true
}

fn unmanaged(why: &dyn Display) {
    process::write_stderr(format!("nearfar: {why}: this process runs unmanaged\n").as_bytes());
}

/// Whether a fork may be; asked before it, since the handlers cannot refuse.
pub fn may_fork() -> Result<(), Errno> {
    match managed_even_inside() {
        Some(managed) if !Memory::inside() => managed.with(Memory::may_fork),
        _ => Ok(()),
    }
}

/// pthread_atfork(3), which is this. Ours must be registered first: those of a library's constructor that came before could
/// neither touch managed memory before the fork, when the lock is held, nor after it, when the child does not page yet.
///
/// # Safety
/// As for the function.
pub unsafe fn register_atfork(handlers: AtFork) -> c_int {
    managed_even_inside();
    // An allocator that is linked in may come before: at the loader's first malloc, when the C library is not ready, or at one of ours
    // while we start.
    let state = STATE.load(Ordering::Relaxed);
    let starts = state == State::Starting as u8 && STARTER.load(Ordering::Relaxed) == process::tid();
    if (starts || state == State::Unstarted as u8) && early_atfork::hold(handlers) {
        return 0;
    }
    // SAFETY: passed on to the caller.
    unsafe { early_atfork::register(handlers) }
}

/// _exit(2), which runs no destructors.
pub fn exit_at_once(status: c_int) -> ! {
    recorder::finish();
    process::exit_now(status)
}

/// Before fork. Registered before the program's own handlers, so it runs after all of them: they may still allocate.
pub extern "C" fn fork_prepare() {
    if let Some(managed) = managed_even_inside() {
        FORKING.fetch_add(1, Ordering::Relaxed);
        placing::fork_begin();
        let lent = stdio::lend(managed);
        managed.with(Memory::fork_prepare);
        stdio::keep(lent);
        // Under the lock that is held from here on: another thread may be about to fork too.
        FORKER.store(process::tid(), Ordering::Relaxed);
    } else if JOB.get().is_some() {
        placing::fork_begin();
    } else if recorder::is_started() {
        recorder::fork_prepare();
    } else {
        return;
    }
    placing::fork_prepare();
    user_mode::fork_prepare();
}

/// After fork, in the parent: after `at_fork`, before the program's handlers.
pub extern "C" fn fork_parent() {
    if let Some(managed) = managed_even_inside() {
        user_mode::fork_parent();
        stdio::end();
        placing::fork_parent();
        managed.with(Memory::fork_parent);
        FORKING.fetch_sub(1, Ordering::Relaxed);
    } else if JOB.get().is_some() {
        placing::fork_parent();
    } else if recorder::is_started() {
        recorder::fork_parent();
    }
}

/// After fork, in the child: after `at_fork`, since the tables of the memory are in nearfar's own heap; before the program's handlers.
pub extern "C" fn fork_child() {
    if let Some(managed) = managed_even_inside() {
        PROCESS.store(process::pid(), Ordering::Relaxed);
        user_mode::fork_child(FORKER.load(Ordering::Relaxed));
        stdio::end();
        placing::fork_parent();
        managed.with(Memory::fork_child);
        placing::fork_child(Some(managed.with(Memory::slot)));
        FORKING.store(0, Ordering::Relaxed);
    } else if let Some(job) = JOB.get() {
        PROCESS.store(process::pid(), Ordering::Relaxed);
        placing::fork_child(job.join());
    } else if recorder::is_started() {
        PROCESS.store(process::pid(), Ordering::Relaxed);
        recorder::fork_child();
    }
}

#[cfg(not(test))]
extern "C" fn constructor() {
    managed_even_inside();
}

#[cfg(not(test))]
extern "C" fn destructor() {
    recorder::finish();
    placing::finish();
    if let Some(managed) = managed_even_inside() {
        managed.with(Memory::finish);
    }
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
