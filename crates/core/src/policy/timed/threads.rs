//! Threads of a trace that go on beside each other: each has a clock, and the one that is behind goes first.
//!
//! A trace tells in which order pages were visited, not which thread waits for which. So no thread runs ahead of the others by more than
//! a part of the trace; within a part they do not wait for each other.

use crate::policy::step::Step;
use std::collections::{BTreeMap, HashMap};

/// Steps of a part: a program whose threads meet often has some rounds in it, and what one thread hands to the next is in few of them.
const PART: usize = 1024;

/// Clocks of threads, in ns.
#[derive(Default)]
pub struct Threads {
    clocks: HashMap<u32, f64>,
    /// When what of the part before was ready first: no other thread begins before.
    begun: f64,
}

/// What a thread does in a part.
struct Turn<'a> {
    thread: u32,
    steps: std::vec::IntoIter<&'a Step>,
    clock: f64,
}

impl Threads {
    /// Tells `each` of every step, with the time when it begins and how many threads are beside each other, in the order of time. It returns
    /// when that step has ended.
    pub fn follow(&mut self, steps: &[Step], mut each: impl FnMut(&Step, f64, f64) -> f64) {
        for part in steps.chunks(PART) {
            let mut by_thread: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
            let (mut last, mut visits) = (0, 0usize);
            for step in part {
                if let Step::Visit { thread, .. } = step {
                    (last, visits) = (*thread, visits + 1);
                }
                // Who gave pages up is not told: most likely who visited others just before.
                by_thread.entry(last).or_default().push(step);
            }
            let most = by_thread.values().map(Vec::len).max().unwrap_or(1).max(1);
            let beside = (visits as f64 / most as f64).max(1.0);
            let clock = |thread| self.clocks.get(&thread).copied().unwrap_or(0.0).max(self.begun);
            let mut turns: Vec<Turn<'_>> = by_thread
                .into_iter()
                .map(|(thread, steps)| Turn { thread, steps: steps.into_iter(), clock: clock(thread) })
                .collect();
            let mut ready = f64::INFINITY;
            while let Some((at, turn)) = turns.iter_mut().enumerate().min_by(|one, other| one.1.clock.total_cmp(&other.1.clock)) {
                match turn.steps.next() {
                    Some(step) => turn.clock = each(step, turn.clock, beside),
                    None => {
                        ready = ready.min(turn.clock);
                        self.clocks.insert(turn.thread, turn.clock);
                        turns.swap_remove(at);
                    }
                }
            }
            self.begun = ready;
        }
    }

    /// When the last of them has ended.
    pub fn end(&self) -> f64 {
        self.clocks.values().copied().fold(0.0, f64::max)
    }
}
