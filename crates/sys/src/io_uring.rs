//! The io_uring engine: the pager submits and reaps without any other thread.

use crate::errno::Errno;
use crate::high_descriptors;
use crate::io::{Done, Engine, Op};
use io_uring::{IoUring, opcode, types};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

const ENTRIES: u32 = 256;

/// Operations through one ring, used by one thread.
pub struct Ring {
    ring: IoUring,
    // Operations live here until their completion: the kernel reads their piece lists.
    live: HashMap<u64, Box<Op>>,
    waiting: VecDeque<Box<Op>>,
    next: u64,
    unsubmitted: bool,
    // Why the kernel takes no more operations, for good (a filter that the program has set up since, for example).
    broken: Option<Errno>,
}

impl Ring {
    /// Sets up a ring; fails where the kernel or a policy refuses (containers often do).
    pub fn new() -> Result<Self, Errno> {
        let refused = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(libc::ENOSYS));
        // Completions need not interrupt whoever runs: the pager enters the kernel often enough. Kernels before 5.19 lack that.
        let ring = IoUring::builder().setup_clamp().setup_coop_taskrun().build(ENTRIES);
        let ring = ring.or_else(|_| IoUring::builder().setup_clamp().build(ENTRIES)).map_err(refused)?;
        let ring = Self::aside(ring).map_err(refused)?;
        Ok(Self { ring, live: HashMap::new(), waiting: VecDeque::new(), next: 0, unsubmitted: false, broken: None })
    }

    fn aside(ring: IoUring) -> std::io::Result<IoUring> {
        let Some(fd) = high_descriptors::duplicate(ring.as_raw_fd()) else { return Ok(ring) };
        let params = ring.params().clone();
        drop(ring);
        // SAFETY: a descriptor of the ring that these parameters describe, given away; the other one is closed.
        unsafe { IoUring::from_fd(fd.into_raw_fd(), params) }
    }

    fn push(&mut self, op: Box<Op>) {
        let id = self.next;
        self.next += 1;
        let fd = types::Fd(op.fd);
        let entry = match (op.write, op.pieces.as_slice()) {
            (true, [one]) => opcode::Write::new(fd, one.addr as *const u8, one.len as u32).offset(op.offset).build(),
            (false, [one]) => opcode::Read::new(fd, one.addr as *mut u8, one.len as u32).offset(op.offset).build(),
            (true, many) => opcode::Writev::new(fd, many.as_ptr().cast(), many.len() as u32).offset(op.offset).build(),
            (false, many) => opcode::Readv::new(fd, many.as_ptr().cast(), many.len() as u32).offset(op.offset).build(),
        };
        let entry = entry.user_data(id);
        loop {
            // SAFETY: `op` is boxed and kept in `live` until its completion, so its piece list stays where it is; the
            // memory of the pieces is answered for by whoever made the operation.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() || self.broken.is_some() {
                break;
            }
            self.unsubmitted = true;
            self.flush();
        }
        self.live.insert(id, op);
        self.unsubmitted = true;
    }
}

impl Engine for Ring {
    fn submit(&mut self, op: Op) {
        let op = Box::new(op);
        // The completion queue has twice the entries; staying below the submission queue's size can never overflow it.
        if self.live.len() < ENTRIES as usize { self.push(op) } else { self.waiting.push_back(op) }
    }

    fn flush(&mut self) {
        // The kernel may take fewer than are queued, or none for a moment when it is short of memory. What it has not taken
        // would never complete, so this insists.
        const PASSING: [i32; 4] = [libc::EAGAIN, libc::EBUSY, libc::EINTR, libc::ENOMEM];
        while self.unsubmitted && self.broken.is_none() {
            let result = self.ring.submit();
            self.unsubmitted = !self.ring.submission().is_empty();
            if let Err(error) = result
                && self.unsubmitted
            {
                match error.raw_os_error() {
                    Some(errno) if !PASSING.contains(&errno) => self.broken = Some(Errno(errno)),
                    _ => std::thread::yield_now(),
                }
            }
        }
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        let arrived: Vec<(u64, i32)> = self.ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
        for (id, result) in arrived {
            let Some(op) = self.live.remove(&id) else { continue };
            let result = match result {
                n if n >= 0 => Ok(n as usize),
                // No fault of the device: done at once, which the kernel may not refuse so.
                n if n == -libc::EAGAIN || n == -libc::EINTR => op.carry_out(),
                n => Err(Errno(-n)),
            };
            out.push(Done { token: op.token, result });
        }
        if let Some(errno) = self.broken {
            // Nothing goes in any more, so nothing comes out.
            out.extend(self.live.drain().map(|(_, op)| Done { token: op.token, result: Err(errno) }));
        }
        while self.live.len() < ENTRIES as usize {
            let Some(op) = self.waiting.pop_front() else { break };
            self.push(op);
        }
        self.flush();
    }

    fn wait_fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn leave(self: Box<Self>) {}
}
