//! Where the program spends its CPU time: samples of its threads about every millisecond that they run. Needs no counters and no
//! rights beyond perf_event_paranoid 2; where the kernel denies it there is no clock, and a profile is without times.

use crate::rings::{self, MOST_DESCRIPTORS};
use nearfar_sys::errno::Errno;
use nearfar_sys::perf::{Found, Ring};
use nearfar_sys::process;
use nearfar_sys::rlimit::{self, Limit};

/// CPU time that one sample stands for.
pub const PERIOD_NS: u64 = 1_000_000;

/// Why there is no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The kernel denies it (`EACCES`, `EPERM`, `ENOSYS`), or there is no lockable memory left.
    #[error("time cannot be sampled here ({0}): routines have no times")]
    Kernel(#[from] Errno),
    /// The program may need its descriptors itself.
    #[error(
        "time is not sampled: that needs {needed} descriptors or more, and {limit} may be open (ulimit -n); routines have no times"
    )]
    Descriptors {
        /// One for each CPU and thread.
        needed: usize,
        /// What the process may have open.
        limit: u64,
    },
}

/// The running clock of this process.
pub struct Clock {
    rings: Vec<Ring>,
    pid: u32,
    ours: Vec<u32>,
    lost: u64,
}

impl Clock {
    /// Samples all threads of the process, and those that they start, but for `ours`. Threads that `ours` start count as theirs only
    /// if they are told by [`leave_out`](Self::leave_out).
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn start(ours: &[u32]) -> Result<Self, Refused> {
        Self::start_within(ours, rlimit::limit(Limit::Descriptors).unwrap_or(u64::MAX))
    }

    fn start_within(ours: &[u32], limit: u64) -> Result<Self, Refused> {
        let fits = |needed: usize| {
            let enough = needed as u64 <= limit / MOST_DESCRIPTORS;
            if enough { Ok(()) } else { Err(Refused::Descriptors { needed, limit }) }
        };
        let pid = process::pid();
        let rings = rings::open(&rings::earlier(ours), fits, |cpu| Ring::open(pid, cpu, PERIOD_NS))?;
        Ok(Self { rings, pid, ours: ours.to_vec(), lost: 0 })
    }

    /// Samples of thread `tid` are left out from now on: it is ours.
    pub fn leave_out(&mut self, tid: u32) {
        self.ours.push(tid);
    }

    /// Samples of these threads are left out from now on, and of no others.
    pub fn set_ours(&mut self, ours: Vec<u32>) {
        self.ours = ours;
    }

    /// Hands over `(ip, tid, time)` of each sample since the last call. In the child of a fork there are none: it starts its own clock.
    pub fn drain(&mut self, each: &mut dyn FnMut(u64, u32, u64)) {
        let Self { rings, pid, ours, lost } = self;
        for ring in rings {
            ring.drain(&mut |found| match found {
                Found::Sample { ip, pid: of, tid, at } if of == *pid && !ours.contains(&tid) => each(ip, tid, at),
                Found::Sample { .. } => {}
                Found::Lost(count) => *lost += count,
            });
        }
    }

    /// Samples that found no room since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// One that samples nothing, and has lost so much.
    #[cfg(test)]
    pub fn that_lost(lost: u64) -> Self {
        Self { rings: Vec::new(), pid: process::pid(), ours: Vec::new(), lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[inline(never)]
    fn spin_here(time: Duration) -> u64 {
        let begun = Instant::now();
        let mut sum = 0u64;
        while begun.elapsed() < time {
            for at in 0..100_000u64 {
                sum = sum.wrapping_mul(black_box(31)).wrapping_add(at);
            }
        }
        sum
    }

    #[test]
    fn most_descriptors_are_left_to_the_program() {
        let refused = |limit: u64| match Clock::start_within(&[], limit) {
            Err(Refused::Descriptors { needed, limit: same }) => {
                assert!(same == limit && needed as u64 > limit / MOST_DESCRIPTORS);
                true
            }
            _ => false,
        };
        if let Err(Refused::Kernel(errno)) = Clock::start_within(&[], u64::MAX) {
            return println!("skip: no perf_event_open here: {errno}");
        }
        // One CPU would fit, but this thread runs besides the first.
        assert!(refused(0) && refused(8) && !refused(1 << 40));
    }

    /// Tests of the harness run on threads: the clock must find the one that already runs and the ones it starts.
    #[test]
    fn samples_tell_the_thread_and_the_time_it_ran() {
        let mut clock = match Clock::start(&[]) {
            Ok(clock) => clock,
            Err(why) => return println!("skip: {why}"),
        };
        let (tell, told) = mpsc::channel();
        let begun = Instant::now();
        let threads: Vec<_> = (0..2)
            .map(|at| {
                let tell = tell.clone();
                std::thread::spawn(move || {
                    tell.send((at, process::tid())).unwrap();
                    // The second works, the first sleeps.
                    if at == 1 { black_box(spin_here(Duration::from_millis(300))) } else { 0 }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| assert!(thread.join().is_ok()));
        let mut tids = [0; 2];
        told.try_iter().for_each(|(at, tid)| tids[at] = tid);
        clock.leave_out(tids[0]);
        let (mut busy, mut idle, mut within) = (0u64, 0u64, 0u64);
        let place = spin_here as fn(Duration) -> u64 as usize as u64;
        clock.drain(&mut |ip, tid, _| {
            busy += u64::from(tid == tids[1]);
            idle += u64::from(tid == tids[0]);
            within += u64::from(tid == tids[1] && (place..place + 4096).contains(&ip));
        });
        let most = begun.elapsed().as_millis() as u64 + 20;
        assert!((30..=most).contains(&busy), "{busy} samples of a thread that ran up to 300 ms");
        assert_eq!(idle, 0);
        assert!(within * 10 > busy * 5, "{within} of {busy} in the function that works");
        assert_eq!(clock.lost(), 0);
        let mut again = 0;
        clock.drain(&mut |_, tid, _| again += u64::from(tids.contains(&tid)));
        assert_eq!(again, 0, "samples are handed over once");
    }
}
