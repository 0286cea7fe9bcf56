//! A backend that fails on purpose, around any other: what NEARFAR_FAULTS asks for. For tests.
//!
//! A failed write moves nothing; a short one moves what it says and the beginning of one page more. An operation that stalls
//! never reaches the inner backend. Operations are counted per process; a forked child goes on from its parent's counts.

use super::{Backend, Securer, StoreId};
use crate::frame_bytes;
use nearfar_core::addr::PAGE;
use nearfar_core::faults::Faults;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::io::{Done, Piece};
use nearfar_sys::timer::Timer;
use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// The inner backend's descriptor and the clock cannot be waited for at once: while anything is under way, both are looked at
/// so often.
const LOOK_NS: u64 = 200_000;

const EIO: Errno = Errno(libc::EIO);

/// What is to become of an operation that the inner backend has.
struct Live {
    due_ns: u64,
    /// A byte to change.
    flip: Option<usize>,
    /// Bytes to be told of instead of what was moved.
    short: Option<usize>,
}

/// What an operation meets.
struct Fate {
    stalls: bool,
    fails: bool,
    short: bool,
    corrupt: bool,
}

/// A backend that fails when it is told to.
pub struct Faulty {
    inner: Box<dyn Backend>,
    faults: Faults,
    reads: u64,
    writes: u64,
    live: HashMap<u64, Live>,
    // Ended, and to be announced at a moment.
    ended: Vec<(u64, Done)>,
    timer: Timer,
}

/// The first `pages` pages of `pieces`.
fn first_pages(pieces: Vec<Piece>, pages: usize) -> Vec<Piece> {
    let mut left = pages * PAGE;
    let cut = |mut piece: Piece| {
        piece.len = piece.len.min(left);
        left -= piece.len;
        (piece.len > 0).then_some(piece)
    };
    pieces.into_iter().map_while(cut).collect()
}

impl Faulty {
    /// `inner`, with `faults`.
    pub fn new(inner: Box<dyn Backend>, faults: Faults) -> Result<Self, Errno> {
        Ok(Self { inner, faults, reads: 0, writes: 0, live: HashMap::new(), ended: Vec::new(), timer: Timer::new()? })
    }

    fn next_fate(&mut self, write: bool, offset: u64, len: usize) -> Fate {
        let faults = &self.faults;
        let bad = write && offset < faults.bad.1 && faults.bad.0 < offset + len as u64;
        let stalls = faults.stall.hits(self.reads + self.writes);
        let (count, eio, short) = match write {
            true => (&mut self.writes, faults.write_eio, faults.short_write),
            false => (&mut self.reads, faults.read_eio, faults.short_read),
        };
        let number = *count;
        *count += 1;
        Fate { stalls, fails: bad || eio.hits(number), short: short.hits(number), corrupt: !write && faults.corrupt.hits(number) }
    }

    fn arm(&self) {
        let now = now_ns();
        let look = if self.live.is_empty() { u64::MAX } else { now + LOOK_NS };
        let due = self.ended.iter().map(|&(due, _)| due).min().unwrap_or(u64::MAX).min(look);
        if due != u64::MAX {
            self.timer.set(due);
        }
    }
}

impl Backend for Faulty {
    fn submit(&mut self, token: u64, write: bool, store: StoreId, offset: u64, mut pieces: Vec<Piece>) {
        let len = pieces.iter().map(|piece| piece.len).sum();
        let fate = self.next_fate(write, offset, len);
        if fate.stalls {
            return;
        }
        let due_ns = now_ns() + self.faults.slow_ns;
        if fate.fails {
            self.ended.push((due_ns, Done { token, result: Err(EIO) }));
            return self.arm();
        }
        let mut live = Live { due_ns, flip: None, short: None };
        if fate.corrupt {
            live.flip = pieces.first().map(|piece| piece.addr + 1234);
        }
        let pages = len / PAGE;
        if fate.short && pages > 1 {
            let some = pages.div_ceil(2);
            pieces = first_pages(pieces, some);
            // With two pages or more, not whole pages: direct I/O counts in sectors.
            live.short = Some(some * PAGE - if some > 1 { 512 } else { 0 });
        }
        self.live.insert(token, live);
        self.inner.submit(token, write, store, offset, pieces);
        self.arm();
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        self.timer.clear();
        let mut done = Vec::new();
        self.inner.completions(&mut done);
        for mut one in done {
            let Some(live) = self.live.remove(&one.token) else { continue };
            if let (Ok(bytes), Some(short)) = (&mut one.result, live.short) {
                *bytes = short.min(*bytes);
            }
            if let (Ok(_), Some(addr)) = (one.result, live.flip) {
                // SAFETY: the read into this frame has just ended, and nobody has been told.
                unsafe { frame_bytes::flip(addr) };
            }
            self.ended.push((live.due_ns, one));
        }
        let now = now_ns();
        self.ended.retain(|&(due, one)| {
            if due <= now {
                out.push(one);
            }
            due > now
        });
        self.arm();
    }

    fn wait_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }

    fn secure(&mut self, from: u64, to: u64) -> Result<(), Errno> {
        if to > self.faults.full_after { Err(Errno(libc::ENOSPC)) } else { self.inner.secure(from, to) }
    }

    fn securer(&self) -> Option<Securer> {
        let (full_after, secure) = (self.faults.full_after, self.inner.securer()?);
        Some(Box::new(move |from, to| if to > full_after { Err(Errno(libc::ENOSPC)) } else { secure(from, to) }))
    }

    fn free_bytes(&self) -> u64 {
        self.inner.free_bytes()
    }

    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno> {
        if bytes > self.faults.full_after { Err(Errno(libc::ENOSPC)) } else { self.inner.prepare_child(bytes) }
    }

    fn forget_child(&mut self) {
        self.inner.forget_child();
    }

    fn discard(&mut self, offset: u64, len: u64) {
        self.inner.discard(offset, len);
    }

    fn move_now(&mut self, write: bool, store: StoreId, offset: u64, piece: Piece) -> Result<(), Errno> {
        let fate = self.next_fate(write, offset, piece.len);
        std::thread::sleep(Duration::from_nanos(self.faults.slow_ns));
        if fate.stalls {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        if fate.fails {
            return Err(EIO);
        }
        self.inner.move_now(write, store, offset, piece)?;
        if fate.corrupt {
            // SAFETY: the caller's buffer, which nobody else uses until this returns.
            unsafe { frame_bytes::flip(piece.addr + 1234) };
        }
        Ok(())
    }

    fn own(&self) -> StoreId {
        self.inner.own()
    }

    fn after_fork(&mut self) -> Result<u64, Errno> {
        // The timer of before is the parent's too.
        self.timer = Timer::new()?;
        self.inner.after_fork()
    }

    fn describe(&self) -> String {
        format!("{}, with faults on purpose", self.inner.describe())
    }

    fn fds(&self) -> Vec<RawFd> {
        let mut fds = self.inner.fds();
        fds.push(self.timer.as_raw_fd());
        fds
    }

    fn near_bytes(&self) -> usize {
        self.inner.near_bytes()
    }

    fn near_step(&self) -> usize {
        self.inner.near_step()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_pages_of_pieces() {
        let pieces = vec![Piece { addr: 0, len: 2 * PAGE }, Piece { addr: 0x10000, len: 3 * PAGE }];
        let cut = |pages| first_pages(pieces.clone(), pages).iter().map(|piece| piece.len / PAGE).collect::<Vec<_>>();
        assert_eq!((cut(1), cut(2), cut(4), cut(5)), (vec![1], vec![2], vec![2, 2], vec![2, 3]));
    }
}
