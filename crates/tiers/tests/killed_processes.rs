//! Processes that charge and give back as fast as they can are killed at random moments: whoever buries them finds the ledger right.

#![cfg(not(loom))]

use nearfar_core::stats::Counter;
use nearfar_tiers::job::{Job, Settings};
use std::time::{Duration, Instant};

const PROCESSES: usize = 8;
const ROUNDS: usize = 12;

/// Forks a process that takes part in `job` until it is killed.
fn start(job: Job) -> libc::pid_t {
    // SAFETY: the test has this one thread of its own; the child only uses the job and never returns.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        if let Some(slot) = job.join() {
            for round in 0u64.. {
                slot.add(Counter::Faults, 1);
                if job.try_charge(slot, 1 + round % 7) {
                    job.uncharge(slot, 1 + round % 5);
                } else {
                    job.set_starving(slot, true);
                    job.uncharge(slot, slot.charged_pages());
                    job.set_starving(slot, false);
                }
                if round % 1024 == 0 {
                    job.bury_dead();
                }
            }
        }
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(1) };
    }
    assert!(pid > 0, "fork");
    pid
}

#[test]
fn the_killed_leave_nothing_charged() {
    let settings = Settings::new(4096 * 3000, "/var/tmp").expect("short path");
    let (job, _segment) = Job::create(settings).expect("memfd");
    let mut joined = 0;
    for round in 0..ROUNDS {
        let before = job.snapshot().0.get(Counter::Faults);
        let pids: Vec<_> = (0..PROCESSES).map(|_| start(job)).collect();
        let begin = Instant::now();
        while job.snapshot().0.get(Counter::Faults) < before + 1000 || job.processes() < PROCESSES as u32 {
            assert!(begin.elapsed() < Duration::from_secs(60), "nobody makes progress");
            assert!(job.charged_pages() <= job.near_pages(), "{} pages are charged", job.charged_pages());
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(137 * (round as u64 + 1)));
        for &pid in &pids {
            // SAFETY: children of ours that have not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        for &pid in &pids {
            // SAFETY: as above; no status is wanted.
            assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) }, pid);
        }
        // What was being buried by one who died is found at the second look at the latest.
        job.bury_dead();
        job.bury_dead();
        let (snapshot, processes) = job.snapshot();
        assert_eq!((job.charged_pages(), job.processes(), job.is_starving()), (0, 0, false), "round {round}");
        assert!(snapshot.get(Counter::Faults) > 0 && processes > joined);
        joined = processes;
    }
}
