//! What a process tells of its pager in the job segment, so that the command, which waits for nothing, can see that it is stuck.
//!
//! Plain words that anybody may read at any time; written by the pager thread and the watchdog of the process alone.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// One process's pager.
#[repr(C)]
pub struct Health {
    /// When it last took a turn, ns of the monotonic clock; 0 while there is none.
    turn_ns: AtomicU64,
    /// Its thread, or the one that starts it.
    pager: AtomicU32,
    /// A thread that waits for a page that nobody has looked at, and the page.
    thread: AtomicU32,
    addr: AtomicU64,
}

/// A pager that takes no turns while somebody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// The process.
    pub pid: u32,
    /// For so long, ns.
    pub for_ns: u64,
    /// The pager's thread.
    pub pager: u32,
    /// A thread that waits.
    pub thread: u32,
    /// For this page.
    pub addr: u64,
}

impl Health {
    /// The pager takes a turn now, in `thread`.
    pub fn turn(&self, now_ns: u64, thread: u32) {
        self.pager.store(thread, Ordering::Relaxed);
        self.thread.store(0, Ordering::Relaxed);
        self.turn_ns.store(now_ns, Ordering::Release);
    }

    /// There is no pager, or none any more.
    pub fn rest(&self) {
        self.turn_ns.store(0, Ordering::Release);
    }

    /// `thread` waits for the page at `addr`, which nobody has looked at.
    pub fn waits(&self, thread: u32, addr: usize) {
        self.addr.store(addr as u64, Ordering::Relaxed);
        self.thread.store(thread, Ordering::Release);
    }

    /// The pager's thread.
    pub fn pager(&self) -> u32 {
        self.pager.load(Ordering::Relaxed)
    }

    /// For how long no turn has been taken, ns.
    pub fn still_ns(&self, now_ns: u64) -> u64 {
        match self.turn_ns.load(Ordering::Acquire) {
            0 => 0,
            turn => now_ns.saturating_sub(turn),
        }
    }

    /// What process `pid` is stuck in, if it has been for `limit_ns`.
    pub fn stalled(&self, pid: u32, now_ns: u64, limit_ns: u64) -> Option<Stalled> {
        let (for_ns, thread) = (self.still_ns(now_ns), self.thread.load(Ordering::Acquire));
        (for_ns > limit_ns && thread != 0).then(|| Stalled {
            pid,
            for_ns,
            pager: self.pager.load(Ordering::Relaxed),
            thread,
            addr: self.addr.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuck_is_who_takes_no_turn_while_somebody_waits() {
        // SAFETY: all zeros is how a slot begins.
        let health: Health = unsafe { std::mem::zeroed() };
        assert_eq!(health.stalled(1, 100, 10), None, "no pager");
        health.turn(100, 7);
        assert_eq!(health.stalled(1, 200, 10), None, "nobody waits");
        health.waits(8, 4096);
        assert_eq!(health.stalled(1, 105, 10), None, "not for long");
        assert_eq!(health.stalled(1, 200, 10), Some(Stalled { pid: 1, for_ns: 100, pager: 7, thread: 8, addr: 4096 }));
        health.turn(210, 7);
        assert_eq!(health.stalled(1, 300, 10), None, "it has taken a turn");
    }
}
