//! Threads of a trace that go on beside each other: each has a clock, and the one that is behind goes first.
//!
//! A trace tells in which order pages were visited, not which thread waits for which. Two things are assumed: a thread that came after the
//! last visit of another began when that ended, as those do that are made for each step of a program; and all meet at the end of each part
//! of the trace, so that none gets far ahead. Within a part, what a thread gives up goes before or after what others visit.

use crate::policy::step::Step;
use std::collections::{BTreeMap, HashMap};

/// Steps of a part, some 16 MiB of single pages: threads that share a work meet about as often.
pub const PART: usize = 4096;

/// Places in the trace of a thread's first visit and of its last.
type Span = (usize, usize);

/// What a thread does in a part.
struct Turn<'a> {
    steps: std::vec::IntoIter<&'a Step>,
    clock: f64,
    span: Span,
}

/// Tells `each` of every step, with the time in ns when it begins, `now` for the first; it returns when that has ended. When all have.
pub fn follow(steps: &[Step], now: f64, each: impl FnMut(&Step, f64) -> f64) -> f64 {
    follow_in(PART, steps, now, each)
}

/// The same with parts of so many steps.
pub fn follow_in(part: usize, steps: &[Step], mut now: f64, mut each: impl FnMut(&Step, f64) -> f64) -> f64 {
    let mut spans: HashMap<u32, Span> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        if let Step::Visit { thread, .. } = step {
            spans.entry(*thread).or_insert((at, at)).1 = at;
        }
    }
    let mut last = 0;
    for part in steps.chunks(part) {
        let mut by_thread: BTreeMap<u32, Vec<&Step>> = BTreeMap::new();
        for step in part {
            if let Step::Visit { thread, .. } = step {
                last = *thread;
            }
            // Who gave pages up is not told: most likely who visited others just before.
            by_thread.entry(last).or_default().push(step);
        }
        let span = |thread: &u32| spans.get(thread).copied().unwrap_or((0, usize::MAX));
        now = meet(by_thread.into_iter().map(|(thread, steps)| (span(&thread), steps)).collect(), now, &mut each);
    }
    now
}

/// A part, from `now` on: when all have ended.
fn meet(mut later: Vec<(Span, Vec<&Step>)>, now: f64, each: &mut impl FnMut(&Step, f64) -> f64) -> f64 {
    // Those that begin first are last.
    later.sort_by_key(|turn| std::cmp::Reverse(turn.0));
    let (mut active, mut ended): (Vec<Turn<'_>>, Vec<(Span, f64)>) = (Vec::new(), Vec::new());
    loop {
        let spans = later.iter().map(|turn| turn.0).chain(active.iter().map(|turn| turn.span));
        let first_end = spans.map(|span| span.1).min().unwrap_or(usize::MAX);
        while let Some((span, steps)) = later.pop_if(|turn| turn.0.0 <= first_end) {
            let before = ended.iter().filter(|other| other.0.1 < span.0).map(|other| other.1);
            active.push(Turn { steps: steps.into_iter(), clock: before.fold(now, f64::max), span });
        }
        let Some(at) = run(&mut active, each) else { break };
        let Turn { clock, span, .. } = active.swap_remove(at);
        ended.push((span, clock));
    }
    ended.iter().map(|turn| turn.1).fold(now, f64::max)
}

/// Lets the one that is behind go, again and again, until one has ended: which.
fn run(active: &mut [Turn<'_>], each: &mut impl FnMut(&Step, f64) -> f64) -> Option<usize> {
    loop {
        let (at, turn) = active.iter_mut().enumerate().min_by(|one, other| one.1.clock.total_cmp(&other.1.clock))?;
        match turn.steps.next() {
            Some(step) => turn.clock = each(step, turn.clock),
            None => return Some(at),
        }
    }
}
