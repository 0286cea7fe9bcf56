//! What the hooks of the preloaded library call while a process is observed, and how observing starts, ends and goes through fork and
//! exec.
//!
//! A hook that begins or ends an object appends an event to the queue, which takes no lock. Everything else is the writer's, under one
//! lock that is taken with all signals blocked: no handler can wait for what it has interrupted. The lock's holder waits for no lock of
//! the program or the C library, and for no thread of the program.

use crate::book::UNCHANGED;
use crate::facts;
use crate::hook_time::{self, timed};
use crate::output::Output;
use crate::queue::{Queue, What};
use crate::sampler::Sampler;
use crate::settings::Settings;
use crate::sites::Sites;
use crate::writer::Writer;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::random_numbers::Random;
use nearfar_sys::errno::Errno;
use nearfar_sys::futex::Lock;
use nearfar_sys::signal::Blocked;
use nearfar_sys::{event, high_descriptors, process, thread};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// Smaller blocks of the heap have no mapping of their own, that realloc might move.
const LEAST_MAPPING: usize = 64 << 10;
/// Between two rounds of the writer.
const TICK_NS: u64 = 20_000_000;
/// Looks that begin together, if that is sooner: while they do, the program has a CPU less, and its visits come later.
const TOGETHER: f64 = 8.0;

/// Blocks of at least so many bytes are objects; more than there are while nothing is recorded.
static LEAST: AtomicUsize = AtomicUsize::new(usize::MAX);
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(null_mut());

/// Time within hooks.
fn hooks_ns(queue: &Queue) -> u64 {
    hook_time::ns() + queue.waited_ns()
}

struct Recorder {
    queue: AtomicPtr<Queue>,
    sites: Sites,
    lock: Lock,
    writer: UnsafeCell<Writer>,
    /// Signals are blocked through a fork.
    forking: UnsafeCell<Option<Blocked>>,
    least: usize,
    pid: AtomicU32,
    /// Null: none.
    sampler: AtomicPtr<Sampler>,
    ended: AtomicBool,
}

// SAFETY: writer and `forking` are reached under the lock; the rest is atomic or is itself Sync.
unsafe impl Sync for Recorder {}

/// True when a block of `size` bytes is an object: false for all while nothing is recorded.
#[inline(always)]
pub fn wants(size: usize) -> bool {
    size >= LEAST.load(Ordering::Relaxed)
}

/// True when recording was started, also after its end.
pub fn is_started() -> bool {
    !RECORDER.load(Ordering::Acquire).is_null()
}

/// True while something is recorded.
#[inline(always)]
pub fn is_on() -> bool {
    LEAST.load(Ordering::Relaxed) != usize::MAX
}

#[inline]
fn get() -> Option<&'static Recorder> {
    // SAFETY: null, or published by `start` after it was built, never freed.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

impl Recorder {
    #[inline]
    fn queue(&self) -> &'static Queue {
        // SAFETY: never null, never freed.
        unsafe { &*self.queue.load(Ordering::Acquire) }
    }

    #[inline]
    fn push(&self, what: What, site: u32, addr: usize, len: u64, of: u64) -> u64 {
        self.queue().push(what, site, addr as u64, len, of)
    }

    /// The site of a call that returns to `caller`. Within the work for another allocation: none.
    fn site(&self, caller: usize) -> u32 {
        if thread::is_inside() {
            return 0;
        }
        thread::go_inside();
        let site = self.sites.find(caller);
        thread::come_out();
        site
    }

    /// Acts on the writer, with its lock, inside, and without signals.
    fn with<R>(&self, act: impl FnOnce(&mut Writer, &Queue, &Sites) -> R) -> R {
        let signals = Blocked::all();
        thread::go_inside();
        self.lock.acquire();
        // SAFETY: the lock is held, so this is the only reference; `act` does not come back here.
        let result = act(unsafe { &mut *self.writer.get() }, self.queue(), &self.sites);
        self.lock.release();
        thread::come_out();
        drop(signals);
        result
    }

    fn sampler(&self) -> Option<&'static Sampler> {
        // SAFETY: null, or a sampler, which lives for ever.
        unsafe { self.sampler.load(Ordering::Acquire).as_ref() }
    }

    fn keep_sampler(&self, writer: &Writer) {
        let sampler = writer.sampler().map_or(null_mut(), |sampler| std::ptr::from_ref(sampler).cast_mut());
        self.sampler.store(sampler, Ordering::Release);
    }

    fn is_this_process(&self) -> bool {
        process::pid() == self.pid.load(Ordering::Relaxed)
    }

    fn start_thread(&'static self) -> Result<(), Errno> {
        thread::spawn("nearfar-write", move || self.run())
    }

    fn run(&self) {
        self.with(|writer, _, sites| {
            writer.begin(sites);
            self.keep_sampler(writer);
        });
        let mut random = Random::new(event::now_ns());
        loop {
            let bell = self.queue().bell();
            self.with(|writer, queue, sites| {
                writer.spent(Some(facts::thread_cpu_ns()), hooks_ns(queue));
                if self.ended.load(Ordering::Relaxed) {
                    queue.take(|_, _| {});
                } else {
                    writer.round(queue, sites);
                }
            });
            // Not in step with what the program repeats.
            let tick = self.sampler().map_or(TICK_NS, |sampler| (TOGETHER / sampler.rate() * 1e9) as u64);
            let tick = tick.clamp(TICK_NS / 10, TICK_NS);
            let tick = tick / 2 + random.below(tick);
            self.queue().wait(bell, tick);
        }
    }
}

/// Starts to record this process. `own` is the code of the library that calls.
///
/// # Errors
/// The file cannot be opened, or there is no memory.
pub fn start(settings: Settings, own: Extent) -> Result<(), Errno> {
    let output = Output::open(&settings.file, settings.limit)?;
    let mut first = facts::start(&settings, std::os::unix::process::parent_id());
    first.rank = facts::rank();
    let least = usize::try_from(settings.least).unwrap_or(usize::MAX - 1);
    let mut writer = Writer::new(settings, output, first, own);
    writer.book.stacks.first = thread::descriptor() as u64;
    let recorder: &'static Recorder = Box::leak(Box::new(Recorder {
        queue: AtomicPtr::new(Box::into_raw(Box::new(Queue::new()?))),
        sites: Sites::new(own)?,
        lock: Lock::new(),
        writer: UnsafeCell::new(writer),
        forking: UnsafeCell::new(None),
        least,
        pid: AtomicU32::new(process::pid()),
        sampler: AtomicPtr::new(null_mut()),
        ended: AtomicBool::new(false),
    }));
    RECORDER.store(std::ptr::from_ref(recorder).cast_mut(), Ordering::Release);
    recorder.start_thread()?;
    LEAST.store(least, Ordering::Release);
    Ok(())
}

/// True of a descriptor that is ours, which the program must not close.
pub fn owns(fd: i32) -> bool {
    high_descriptors::is_kept(fd) && get().is_some_and(Recorder::is_this_process)
}

/// A block begins.
#[cold]
#[inline(never)]
pub fn allocated(addr: usize, len: usize, caller: usize) {
    let Some(recorder) = get().filter(|_| addr != 0 && !thread::is_inside()) else { return };
    timed(|| {
        let site = recorder.site(caller);
        recorder.push(What::Alloc, site, addr, len as u64, 0)
    });
}

/// A block is about to be freed; called for all that are not known to be small.
#[cold]
#[inline(never)]
pub fn freed(addr: usize) {
    if let Some(recorder) = get() {
        timed(|| recorder.push(What::Free, 0, addr, 0, 0));
    }
}

/// Reallocates a block of `had` bytes or a little less by `act`, which returns where it is then (0: it failed, nothing has changed).
pub fn reallocated(addr: usize, had: usize, len: usize, caller: usize, act: impl FnOnce() -> usize) -> usize {
    let Some(recorder) = get() else { return act() };
    if had < recorder.least && len < recorder.least {
        return act();
    }
    let token = if had >= recorder.least { timed(|| recorder.push(What::Take, 0, addr, 0, 0)) } else { u64::MAX };
    let new = if had >= LEAST_MAPPING { held(addr, had, act) } else { act() };
    timed(|| {
        let site = if new != 0 && len >= recorder.least { recorder.site(caller) } else { 0 };
        let (at, len) = if new == 0 && len != 0 { (addr, UNCHANGED) } else { (new, len as u64) };
        recorder.push(What::Put, site, at, len, token)
    });
    new
}

/// Runs `act`, which may move the pages of a range (mremap), while none of them is looked at.
fn held<R>(addr: usize, len: usize, act: impl FnOnce() -> R) -> R {
    let sampler = get().filter(|_| len > 0 && !thread::is_inside()).and_then(Recorder::sampler);
    let end = addr.checked_add(len).and_then(|end| end.checked_next_multiple_of(PAGE));
    // A range that makes no sense is the kernel's to refuse.
    let (Some(sampler), Some(end)) = (sampler, end) else { return act() };
    let start = addr & !(PAGE - 1);
    let hold = sampler.hold(start, end - start);
    let result = act();
    drop(hold);
    result
}

/// A private anonymous mapping has been made, by a call of the program.
#[cold]
pub fn mapped(addr: usize, len: usize) {
    if let Some(recorder) = get().filter(|_| !thread::is_inside()) {
        timed(|| {
            let site = recorder.site(0);
            recorder.push(What::Map, site, addr, len.next_multiple_of(PAGE) as u64, 0)
        });
    }
}

/// A range is about to be unmapped, or mapped over with something else.
#[cold]
pub fn unmapped(addr: usize, len: usize) {
    if let Some(recorder) = get().filter(|_| addr.is_multiple_of(PAGE) && len > 0 && !thread::is_inside()) {
        timed(|| recorder.push(What::Unmap, 0, addr, len.next_multiple_of(PAGE) as u64, 0));
    }
}

/// The calling thread begins; its stack may have `start..end`, and its descriptor is behind that.
pub fn stack_begun(start: usize, end: usize, descriptor: usize) {
    if let Some(recorder) = get().filter(|_| is_on() && !thread::is_inside()) {
        let behind = descriptor.checked_sub(end).and_then(|behind| u32::try_from(behind).ok()).unwrap_or(0);
        recorder.push(What::StackBegin, behind, start, (end - start) as u64, process::tid().into());
    }
}

/// The calling thread, whose stack has that end, ends.
pub fn stack_ended(end: usize) {
    if let Some(recorder) = get().filter(|_| is_on() && !thread::is_inside()) {
        recorder.push(What::StackEnd, 0, end, 0, 0);
    }
}

/// Moves or resizes a mapping by `act`, which returns where it is then.
#[cold]
pub fn remapped<E>(addr: usize, old: usize, new: usize, act: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    let Some(recorder) = get().filter(|_| !thread::is_inside()) else { return act() };
    let token = timed(|| recorder.push(What::MapTake, 0, addr, old.next_multiple_of(PAGE) as u64, 0));
    let result = held(addr, old, act);
    timed(|| {
        let site = recorder.site(0);
        let (addr, len) = result.as_ref().map_or((addr, UNCHANGED), |addr| (*addr, new.next_multiple_of(PAGE) as u64));
        recorder.push(What::MapPut, site, addr, len, token)
    });
    result
}

/// Moves the pages of a mapping by `act` to another that it makes and tells; the old one stays, empty (`MREMAP_DONTUNMAP`).
#[cold]
pub fn emptied<E>(addr: usize, len: usize, act: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
    let result = held(addr, len, act);
    if let Ok(start) = result
        && wants(len)
    {
        mapped(start, len);
    }
    result
}

/// Before fork; before the heap of our own is held.
pub fn fork_prepare() {
    let Some(recorder) = get() else { return };
    let signals = Blocked::all();
    thread::go_inside();
    recorder.lock.acquire();
    // SAFETY: the lock is held, also through the next two.
    unsafe {
        let writer = &mut *recorder.writer.get();
        writer.drain(recorder.queue());
        if let Some(sampler) = writer.sampler() {
            sampler.fork_prepare();
        }
        *recorder.forking.get() = Some(signals);
    }
    recorder.sites.hold();
}

/// After fork, in the parent.
pub fn fork_parent() {
    let Some(recorder) = get() else { return };
    recorder.sites.release();
    // SAFETY: the lock is held since `fork_prepare`.
    let signals = unsafe {
        if let Some(sampler) = (*recorder.writer.get()).sampler() {
            sampler.fork_parent();
        }
        (*recorder.forking.get()).take()
    };
    recorder.lock.release();
    thread::come_out();
    drop(signals);
}

/// After fork, in the child: a process of its own, with its own queue and threads.
pub fn fork_child() {
    let Some(recorder) = get() else { return };
    recorder.sites.release();
    recorder.pid.store(process::pid(), Ordering::Relaxed);
    recorder.ended.store(false, Ordering::Relaxed);
    hook_time::reset();
    let queue = Queue::new();
    let is_on = queue.is_ok();
    if let Ok(queue) = queue {
        recorder.queue.store(Box::into_raw(Box::new(queue)), Ordering::Release);
    }
    // SAFETY: the lock is held since `fork_prepare`, by the only thread there is.
    let signals = unsafe {
        let writer = &mut *recorder.writer.get();
        writer.forked();
        recorder.keep_sampler(writer);
        (*recorder.forking.get()).take()
    };
    recorder.lock.reset();
    if !is_on || recorder.start_thread().is_err() {
        LEAST.store(usize::MAX, Ordering::Relaxed);
    } else {
        LEAST.store(recorder.least, Ordering::Relaxed);
    }
    thread::come_out();
    drop(signals);
}

/// Before exec: what is known so far goes into the file, since nothing of this program is left afterwards.
pub fn before_exec() {
    let Some(recorder) = get().filter(|recorder| is_on() && recorder.is_this_process()) else { return };
    recorder.with(|writer, queue, sites| {
        writer.drain(queue);
        if !writer.is_new() {
            writer.write(queue, sites, false);
        }
    });
}

/// At exit: everything, and the end.
pub fn finish() {
    let Some(recorder) = get().filter(|recorder| is_on() && recorder.is_this_process()) else { return };
    LEAST.store(usize::MAX, Ordering::Relaxed);
    recorder.with(|writer, queue, sites| {
        // Under the lock: what the own thread drains afterwards is thrown away.
        if recorder.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(sampler) = writer.sampler() {
            sampler.pause();
        }
        writer.let_sleep();
        writer.spent(None, hooks_ns(queue));
        writer.begin(sites);
        writer.drain(queue);
        writer.write(queue, sites, true);
    });
}
