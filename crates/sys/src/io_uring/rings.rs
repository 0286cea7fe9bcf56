//! The two rings that the kernel and a thread of ours share: entries that wait to be submitted, and completions.
//!
//! Set up by system calls of our own: a library that an MPI brings (UCX) puts its own code into the mmap of this process, which uses locks
//! of the C library. In threads that the C library does not know (`own_thread`) those fail.

use crate::errno::{Errno, call, decoded};
use crate::map::{self, RW};
use crate::{gate, high_descriptors};
use nearfar_core::addr::{Extent, PAGE, round_up};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

const CLAMP: u32 = 1 << 4;
/// Completions need not interrupt whoever runs: the pager enters the kernel often enough. Kernels before 5.19 lack that.
const COOP_TASKRUN: u32 = 1 << 8;
/// Both rings are in one mapping: Linux 5.4.
const SINGLE_MMAP: u32 = 1;
const OFFSET_RINGS: i64 = 0;
const OFFSET_ENTRIES: i64 = 0x1000_0000;
const GET_EVENTS: usize = 1;
/// In the flags of the submission ring: completions wait in the kernel.
const OVERFLOW: u32 = 1 << 1;

/// Where in the mapping what of a ring is: io_sqring_offsets; of completions (io_cqring_offsets), `overflow` and `entries` take the places
/// of `flags` and `dropped`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Offsets {
    head: u32,
    tail: u32,
    mask: u32,
    size: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: [u32; 3],
}

/// io_uring_params.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    thread: [u32; 2],
    features: u32,
    reserved: [u32; 4],
    submission: Offsets,
    completion: Offsets,
}

/// io_uring_sqe of a read or write.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Entry {
    /// IORING_OP_*.
    pub opcode: u8,
    /// IOSQE_*; none.
    pub flags: u8,
    /// Priority; none.
    pub priority: u16,
    /// Of which file.
    pub fd: RawFd,
    /// Where in it.
    pub offset: u64,
    /// Memory, or a list of pieces of it.
    pub addr: u64,
    /// Bytes, or pieces.
    pub len: u32,
    /// RWF_*; none.
    pub call_flags: u32,
    /// What the completion says again.
    pub token: u64,
    /// Not for reads and writes.
    pub rest: [u64; 3],
}

/// io_uring_cqe.
#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    token: u64,
    result: i32,
    flags: u32,
}

/// A range of memory that is shared with the kernel.
struct Shared(Extent);

impl Shared {
    fn new(fd: &OwnedFd, offset: i64, len: usize) -> Result<Self, Errno> {
        let len = round_up(len, PAGE).ok_or(Errno::ENOMEM)?;
        // SAFETY: not fixed: the kernel picks free space.
        let start = unsafe { map::mmap(0, len, RW, libc::MAP_SHARED | libc::MAP_POPULATE, fd.as_raw_fd(), offset) }?;
        Ok(Self(Extent::new(start, len)))
    }

    /// The number at `offset`.
    fn number(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: the kernel says that an aligned number is there, in a mapping that lives as long as `self`.
        unsafe { AtomicU32::from_ptr((self.0.start + offset as usize) as *mut u32) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        let _ = unsafe { map::munmap(self.0) };
    }
}

/// The rings, used by one thread. The mappings go before the descriptor.
pub struct Rings {
    rings: Shared,
    entries: Shared,
    parameters: Parameters,
    fd: OwnedFd,
}

impl Rings {
    /// Rings of about so many entries, and twice as many completions.
    ///
    /// # Errors
    /// What the kernel says: where it is too old, or a policy forbids it.
    pub fn new(entries: u32) -> Result<Self, Errno> {
        Self::with(entries, CLAMP | COOP_TASKRUN).or_else(|_| Self::with(entries, CLAMP))
    }

    fn with(entries: u32, flags: u32) -> Result<Self, Errno> {
        let mut parameters = Parameters { flags, ..Parameters::default() };
        // By way of the gate, or the filter of `seccomp` would take it for the program's.
        // SAFETY: the kernel writes to our parameters only.
        let fd = unsafe {
            gate::call(libc::SYS_io_uring_setup as usize, [entries as usize, (&raw mut parameters).addr(), 0, 0, 0, 0])
        };
        let fd = decoded(fd)?;
        // SAFETY: a fresh descriptor, ours alone.
        let fd = high_descriptors::put(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
        if parameters.features & SINGLE_MMAP == 0 {
            return Err(Errno(libc::ENOSYS));
        }
        let Parameters { submission, completion, submissions, completions, .. } = parameters;
        let end = |from: u32, count: u32, size: usize| from as usize + count as usize * size;
        // Where the completions are is told in the place of `dropped`.
        let len = end(submission.array, submissions, size_of::<u32>()).max(end(
            completion.dropped,
            completions,
            size_of::<Completion>(),
        ));
        let rings = Shared::new(&fd, OFFSET_RINGS, len)?;
        let room = Shared::new(&fd, OFFSET_ENTRIES, submissions as usize * size_of::<Entry>())?;
        (0..submissions).for_each(|index| rings.number(submission.array + 4 * index).store(index, Ordering::Relaxed));
        Ok(Self { rings, entries: room, parameters, fd })
    }

    /// Queues `entry`; false when there is no room.
    ///
    /// # Safety
    /// What it points to must stay until its completion, and the memory that is read or written must be the caller's.
    pub unsafe fn push(&mut self, entry: Entry) -> bool {
        let of = self.parameters.submission;
        let tail = self.rings.number(of.tail).load(Ordering::Relaxed);
        if self.queued() >= self.parameters.submissions {
            return false;
        }
        let index = tail & self.rings.number(of.mask).load(Ordering::Relaxed);
        let at = (self.entries.0.start as *mut Entry).wrapping_add(index as usize);
        // SAFETY: below the number of entries, in our mapping; the kernel has done with what was there, as its head says.
        unsafe { at.write(entry) };
        self.rings.number(of.tail).store(tail.wrapping_add(1), Ordering::Release);
        true
    }

    /// Entries that the kernel has not taken.
    pub fn queued(&self) -> u32 {
        let of = self.parameters.submission;
        self.rings.number(of.tail).load(Ordering::Relaxed).wrapping_sub(self.rings.number(of.head).load(Ordering::Acquire))
    }

    /// Gives the kernel what is queued; it may take less.
    pub fn submit(&mut self) -> Result<(), Errno> {
        let overflows = self.rings.number(self.parameters.submission.flags).load(Ordering::Relaxed) & OVERFLOW != 0;
        let flags = if overflows { GET_EVENTS } else { 0 };
        // SAFETY: whoever queued answers for the entries.
        unsafe { call(libc::SYS_io_uring_enter, [self.fd.as_raw_fd() as usize, self.queued() as usize, 0, flags, 0, 0]) }
            .map(|_| ())
    }

    /// The next completion: what its entry said, and the result.
    pub fn completion(&mut self) -> Option<(u64, i32)> {
        let of = self.parameters.completion;
        let head = self.rings.number(of.head).load(Ordering::Relaxed);
        if head == self.rings.number(of.tail).load(Ordering::Acquire) {
            return None;
        }
        let index = head & self.rings.number(of.mask).load(Ordering::Relaxed);
        let at = (self.rings.0.start + of.dropped as usize) as *const Completion;
        // SAFETY: between head and tail the kernel has written them; the index is below their number.
        let Completion { token, result, .. } = unsafe { at.wrapping_add(index as usize).read() };
        self.rings.number(of.head).store(head.wrapping_add(1), Ordering::Release);
        Some((token, result))
    }
}

impl AsRawFd for Rings {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_kernel_has_them() {
        assert_eq!((size_of::<Parameters>(), size_of::<Entry>(), size_of::<Completion>()), (120, 64, 16));
        assert_eq!((std::mem::offset_of!(Parameters, submission), std::mem::offset_of!(Entry, token)), (40, 32));
    }

    #[test]
    fn entries_come_back_and_room_ends() {
        const NOP: u8 = 0;
        let Ok(mut rings) = Rings::new(4) else {
            println!("skipped: no io_uring here");
            return;
        };
        // More than once round.
        for round in 0..10 {
            for token in 0..4 {
                // SAFETY: it does nothing.
                assert!(unsafe { rings.push(Entry { opcode: NOP, token: 10 * round + token, ..Entry::default() }) });
            }
            // SAFETY: it does nothing.
            assert!(!unsafe { rings.push(Entry::default()) } && rings.queued() == 4);
            rings.submit().expect("taken");
            assert_eq!(rings.queued(), 0);
            let mut tokens: Vec<u64> =
                std::iter::from_fn(|| rings.completion()).map(|(token, result)| token + result as u64).collect();
            tokens.sort_unstable();
            assert_eq!(tokens, (0..4).map(|token| 10 * round + token).collect::<Vec<_>>());
        }
    }
}
