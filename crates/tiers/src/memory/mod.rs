//! Memory: all that a front end may call. One per process.
//!
//! Every method may be called from any thread, at any time, also before `main`, and never touches the memory it manages
//! while it holds the lock. Methods of the mmap family take and return what the system calls of that name do (a raw
//! address, or an errno); ranges that nearfar does not manage go to the kernel unchanged.
//!
//! A process begins *passive*: its memory is ordinary memory, and what it may write counts against the job's budget. When
//! an allocation does not fit any more, or others starve, it becomes *active*: everything managed is registered with the
//! pager. A program that fits in near never pays for paging.

mod blocks;
mod commit;
mod guardian;
mod inner;
mod lend;
mod maps;
mod near;
mod ordinary;
mod release;
mod remap;
mod thread;
mod watchdog;

pub use lend::CallLoan;

use crate::frame::FramePool;
use crate::guard::{self, HeldAcrossFork, Lock, LockGuard};
use crate::job::{Job, Slot};
use crate::own_fds::OwnFds;
use inner::Inner;
use nearfar_core::addr::Extent;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::Event;
use nearfar_sys::{credentials, own_thread, process};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

struct Common {
    job: Job,
    inner: Lock<Inner>,
    event: Event,
    blocks: Extent,
    maps: Extent,
    own_fds: OwnFds,
    // Copies of what the lock protects, for the guardian: the slot, the userfaultfd; and the command.
    slot: AtomicPtr<Slot>,
    uffd: AtomicI32,
    command: u32,
    // More is in memory than may be, and only waiting helps.
    crowded: AtomicBool,
    // The lock between `fork_prepare` and its end.
    forking: HeldAcrossFork<Inner>,
}

impl Common {
    fn slot(&self) -> &'static Slot {
        // SAFETY: set from a slot of the job segment, which is mapped for the life of the process.
        unsafe { &*self.slot.load(Ordering::Acquire) }
    }

    fn note_slot(&self, slot: &'static Slot) {
        self.slot.store(std::ptr::from_ref(slot).cast_mut(), Ordering::Release);
    }
}

/// The managed memory of this process.
#[derive(Clone, Copy)]
pub struct Memory {
    common: &'static Common,
}

impl Memory {
    /// Starts managing memory for the calling process under `job`. Nothing is paged yet.
    /// `command` is the process of `nearfar run`.
    pub fn start(job: Job, command: u32) -> Result<Memory, Errno> {
        let inner = Inner::new(job)?;
        let (blocks, maps) = (inner.arena.blocks(), inner.arena.maps());
        let own_fds = OwnFds::default();
        let event = Event::new()?;
        let (crowded, forking) = (AtomicBool::new(false), HeldAcrossFork::new());
        let slot = AtomicPtr::new(std::ptr::from_ref(inner.slot).cast_mut());
        let uffd = AtomicI32::new(-1);
        let common = Common { job, inner: Lock::new(inner), event, blocks, maps, own_fds, slot, uffd, command, crowded, forking };
        let memory = Memory { common: Box::leak(Box::new(common)) };
        let mut inner = memory.enter();
        inner.memory = Some(memory);
        memory.guard_fds(&inner);
        drop(inner);
        Ok(memory)
    }

    /// Bytes of address space that nearfar itself takes at most, apart from tables for very much data.
    pub fn own_most_bytes(&self) -> u64 {
        const OTHERS: u64 = 1 << 30;
        let settings = self.common.job.settings();
        let stores = if settings.emulated { crate::backend::emulated::STORE_BYTES as u64 } else { 0 };
        // Where it is reserved, only a part of it is the program's.
        let arena = self.enter().arena.reserved_bytes() as u64;
        arena + FramePool::reserved_bytes(self.common.job.near_pages()) as u64 + settings.near_bytes / 4 + stores + OTHERS
    }

    fn enter(&self) -> LockGuard<Inner> {
        guard::enter(&self.common.inner)
    }

    /// True while the calling thread is inside nearfar itself (holds the lock, or is the pager): hooks must then go straight
    /// to the kernel or to the C library, and touch nothing of ours.
    pub fn inside() -> bool {
        nearfar_sys::thread::is_inside()
    }

    /// True when `fd` is ours: the program must not close or replace it (paged memory would read as zeros).
    pub fn is_own_fd(&self, fd: i32) -> bool {
        self.common.own_fds.contains(fd)
    }

    fn guard_fds(&self, inner: &Inner) {
        use std::os::fd::AsRawFd;
        let mut fds = inner.pager.as_ref().map_or_else(Vec::new, |pager| pager.own_fds());
        fds.extend(inner.mapped.iter().flat_map(|mapped| mapped.own_fds()));
        let uffd = inner.pager.as_ref().and_then(|_| fds.first().copied()).unwrap_or(-1);
        self.common.uffd.store(uffd, Ordering::Relaxed);
        fds.insert(0, self.common.event.as_raw_fd());
        self.common.own_fds.set(&fds);
    }

    /// True when `addr` lies in the part of the arena that `alloc` hands out (no lock; the test of `free` and `realloc`).
    pub fn is_block(&self, addr: usize) -> bool {
        self.common.blocks.contains(addr)
    }

    /// True when `addr` lies in the part of the arena that `mmap` hands out (no lock). The small allocator's memory is there.
    pub fn is_mapped(&self, addr: usize) -> bool {
        self.common.maps.contains(addr)
    }

    /// Takes a static array (.bss) of the program under management: anonymous private memory mapped by others.
    pub fn adopt(&self, addr: usize, len: usize) {
        let mut inner = self.enter();
        if inner.may_manage(Extent::new(addr, len)) && self.commit(&mut inner, commit::Claim::of(len)).is_ok() {
            let attr = crate::region::Attr { prot: nearfar_sys::map::RW, arena: false, committed: true };
            let range = Extent::new(addr, len);
            self.manage(&mut inner, range, attr);
            if inner.regions().uniform(range).is_some() {
                inner.slot.objects().begin(range, addr);
            }
            // Whoever ran before us may have used it.
            if let Some(pager) = &mut inner.pager {
                pager.take_in(range);
            }
        }
    }

    /// Before fork(2), in the forking thread: brings everything to rest and holds the lock until one of the next two.
    pub fn fork_prepare(&self) {
        let mut inner = self.enter();
        inner.forking_thread = nearfar_sys::process::tid();
        inner.forked_objects = inner.slot.objects().list();
        inner.promise_fork_late();
        if let Some(mapped) = &mut inner.mapped {
            mapped.fork_prepare();
        }
        if let Some(pager) = &mut inner.pager {
            pager.fork_prepare();
            // Address space that is free now may have been hidden while it was managed; the child needs all of the arena.
            for half in [self.common.blocks, self.common.maps] {
                // SAFETY: the advice changes only what a later fork inherits.
                let _ = unsafe { nearfar_sys::map::madvise(half, libc::MADV_DOFORK) };
            }
        }
        self.common.forking.keep(inner);
    }

    /// After fork(2), in the parent (also when fork failed).
    pub fn fork_parent(&self) {
        // SAFETY: the thread that forked.
        let Some(mut inner) = (unsafe { self.common.forking.give_back() }) else { return };
        if let Some(mapped) = &mut inner.mapped {
            mapped.fork_parent();
        }
        if let Some(pager) = &mut inner.pager {
            pager.fork_parent();
            self.guard_fds(&inner);
            self.common.event.signal();
        }
    }

    /// After fork(2), in the child.
    pub fn fork_child(&self) {
        // SAFETY: the thread that forked.
        let Some(mut inner) = (unsafe { self.common.forking.give_back() }) else { return };
        own_thread::after_fork();
        credentials::after_fork();
        (inner.has_thread, inner.has_helper, inner.owner) = (false, false, process::pid());
        // Before anything is registered, as when paging begins.
        if inner.pager.is_some()
            && let Err(errno) = inner.have_thread()
        {
            crate::pager::stop(&format!("no thread could be started for the pager of a forked child: {errno}"));
        }
        inner.after_fork();
        self.common.note_slot(inner.slot);
        self.common.crowded.store(false, Ordering::Relaxed);
        self.renew_event();
        self.guard_fds(&inner);
        self.start_thread_if_needed(&mut inner);
    }

    fn renew_event(&self) {
        // The event is shared with the parent through the descriptor; a stray signal from there costs one empty round.
        self.common.event.clear();
    }

    /// At exit: writes gauges and what was recorded a last time. Memory stays served until the process is gone.
    pub fn finish(&self) {
        let flusher = {
            let mut inner = self.enter();
            inner.publish();
            inner.pager.as_ref().and_then(crate::pager::Pager::flusher)
        };
        // Without the lock: the file may be slow, and other threads of the program still run.
        if let Some(flusher) = flusher {
            flusher.flush();
        }
    }
}
