//! Loom models of the ledger: every order of the steps of a few processes, each of which may be killed between any two.

use super::*;
use crate::sync::death;
use loom::sync::Arc;
use loom::thread;

#[derive(Default)]
struct Job {
    ledger: Ledger,
    accounts: [Account; ACCOUNTS],
}

impl Accounts for [Account; ACCOUNTS] {
    fn account(&self, index: usize) -> &Account {
        &self[index]
    }
}

impl Job {
    fn join(&self, pid: u32) -> Option<usize> {
        self.ledger.join(&self.accounts, pid, 0)
    }

    fn charge(&self, index: usize, pages: u64, limit: u64) -> Option<u64> {
        self.ledger.charge(&self.accounts[index], pages, limit)
    }

    /// Buries whoever is below `living`; returns how many were.
    fn bury(&self, by: u32, living: u32) -> usize {
        let mut buried = 0;
        self.ledger.bury(&self.accounts, by, |pid, _| pid < living, |_| buried += 1);
        buried
    }

    fn sum(&self) -> u64 {
        self.accounts.iter().map(Account::charged).sum()
    }

    /// Nothing is left of anybody but those in `charges`.
    fn holds(&self, charges: &[u64]) {
        assert_eq!((self.ledger.total(), self.ledger.alive()), (charges.iter().sum(), charges.len() as u32));
        let mut found: Vec<u64> = self.accounts.iter().filter(|one| one.owner().is_some()).map(Account::charged).collect();
        found.sort_unstable();
        assert_eq!(found, charges);
        assert!(!self.ledger.is_starving());
        assert!(self.accounts.iter().all(|one| kind_of(one.state.load(Ordering::Acquire)) != TAKEN));
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Every number of steps after which `dies` can die: it is over when a process got through.
const STEPS: std::ops::Range<u32> = 0..8;

#[test]
fn loom_two_processes_never_exceed_the_budget() {
    check(|| {
        let job = Arc::new(Job::default());
        let other = job.clone();
        let thread = thread::spawn(move || {
            let own = other.join(2).expect("room");
            let got = other.charge(own, 2, 3).is_some();
            assert!(other.ledger.total() <= 3);
            if got {
                other.ledger.uncharge(&other.accounts[own], 1);
            }
            got
        });
        let own = job.join(1).expect("room");
        let got = job.charge(own, 2, 3).is_some();
        let both = thread.join().expect("no panic");
        assert!(got || both, "one of them fits");
        assert_eq!(job.ledger.total(), job.sum());
    });
}

/// One dies at some step of its life, while another charges and then buries it.
#[test]
fn loom_death_at_any_step_leaves_the_ledger_right() {
    for steps in STEPS {
        check(move || {
            let job = Arc::new(Job::default());
            let other = job.clone();
            let dying = thread::spawn(move || {
                death::after(steps);
                if let Some(own) = other.join(1) {
                    other.ledger.set_starving(own, true);
                    if other.charge(own, 2, 10).is_some() {
                        other.ledger.uncharge(&other.accounts[own], 1);
                    }
                }
            });
            let own = job.join(2).expect("room");
            job.charge(own, 4, 10).expect("within the budget");
            dying.join().expect("no panic");
            job.bury(2, 2);
            job.holds(&[4]);
        });
    }
}

/// A living process charges while a dead one, killed amid a charge, is buried.
#[test]
fn loom_the_living_charge_during_a_burial() {
    for steps in 2..6 {
        check(move || {
            let job = Arc::new(Job::default());
            {
                let other = job.clone();
                let dying = thread::spawn(move || {
                    death::after(steps);
                    if let Some(own) = other.join(1) {
                        other.charge(own, 2, 10);
                    }
                });
                dying.join().expect("no panic");
            }
            let own = job.join(3).expect("room");
            job.charge(own, 4, 10).expect("within the budget");
            let other = job.clone();
            let busy = thread::spawn(move || {
                // The total is what it was in the end: only its version tells.
                other.charge(own, 2, 10).expect("within the budget");
                other.ledger.uncharge(&other.accounts[own], 2);
            });
            job.bury(2, 2);
            busy.join().expect("no panic");
            // What could not be settled while somebody was busy is settled later.
            job.bury(2, 2);
            job.holds(&[4]);
        });
    }
}

/// Two bury the same dead at once: it is done once.
#[test]
fn loom_the_dead_are_buried_once() {
    check(|| {
        let job = Arc::new(Job::default());
        let dead = job.join(1).expect("room");
        job.charge(dead, 2, 10).expect("within the budget");
        job.ledger.set_starving(dead, true);
        let other = job.clone();
        let thread = thread::spawn(move || other.bury(3, 2));
        let buried = job.bury(2, 2) + thread.join().expect("no panic");
        assert_eq!(buried, 1);
        job.holds(&[]);
    });
}

/// One dies over a burial, in turn; the next one ends it.
#[test]
fn loom_a_burial_is_taken_over() {
    for victim in [0, 3, 4, 5] {
        for steps in STEPS {
            check(move || {
                let job = Arc::new(Job::default());
                let other = job.clone();
                let dying = thread::spawn(move || {
                    // The first of the dead, possibly killed amid a charge.
                    death::after(if victim == 0 { u32::MAX } else { victim });
                    if let Some(own) = other.join(1) {
                        other.charge(own, 2, 10);
                        other.ledger.set_starving(own, true);
                    }
                    death::after(steps);
                    other.bury(2, 2);
                });
                let own = job.join(3).expect("room");
                job.charge(own, 4, 10).expect("within the budget");
                dying.join().expect("no panic");
                job.bury(3, 3);
                job.holds(&[4]);
            });
        }
    }
}
