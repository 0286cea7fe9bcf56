//! The io_uring engine: the pager submits and reaps without any other thread.

mod rings;

use crate::errno::Errno;
use crate::io::{Done, Engine, Op};
use rings::{Entry, Rings};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};

const ENTRIES: u32 = 256;
/// IORING_OP_*.
const READV: u8 = 1;
const WRITEV: u8 = 2;
const READ: u8 = 22;
const WRITE: u8 = 23;

/// Operations through one ring, used by one thread.
pub struct Ring {
    rings: Rings,
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
        let rings = Rings::new(ENTRIES)?;
        Ok(Self { rings, live: HashMap::new(), waiting: VecDeque::new(), next: 0, unsubmitted: false, broken: None })
    }

    fn push(&mut self, op: Box<Op>) {
        let id = self.next;
        self.next += 1;
        let (opcode, addr, len) = match (op.write, op.pieces.as_slice()) {
            (true, [one]) => (WRITE, one.addr, one.len),
            (false, [one]) => (READ, one.addr, one.len),
            (true, many) => (WRITEV, many.as_ptr().addr(), many.len()),
            (false, many) => (READV, many.as_ptr().addr(), many.len()),
        };
        let entry =
            Entry { opcode, fd: op.fd, offset: op.offset, addr: addr as u64, len: len as u32, token: id, ..Entry::default() };
        loop {
            // SAFETY: `op` is boxed and kept in `live` until its completion, so its piece list stays where it is; the
            // memory of the pieces is answered for by whoever made the operation.
            if unsafe { self.rings.push(entry) } || self.broken.is_some() {
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
            let result = self.rings.submit();
            self.unsubmitted = self.rings.queued() > 0;
            if let Err(errno) = result
                && self.unsubmitted
            {
                if PASSING.contains(&errno.0) {
                    std::thread::yield_now();
                } else {
                    self.broken = Some(errno);
                }
            }
        }
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        let arrived: Vec<(u64, i32)> = std::iter::from_fn(|| self.rings.completion()).collect();
        for (id, result) in arrived {
            let Some(op) = self.live.remove(&id) else { continue };
            let result = match result {
                n if n >= 0 => Ok(n as usize),
                // No fault of the device (ECANCELED: there may be no thread more to wait in, `ulimit -u`): done at once, which the
                // kernel may not refuse so.
                n if [libc::EAGAIN, libc::EINTR, libc::ECANCELED].contains(&-n) => op.carry_out(),
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
        self.rings.as_raw_fd()
    }

    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn leave(self: Box<Self>) {}
}
