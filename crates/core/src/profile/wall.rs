//! Wall time by instruction, of a program that is watched from outside: now and then each of its threads is seen running, waiting in a
//! page fault (at an instruction) or waiting in a system call, and a clock of CPU time tells where threads run. Pure: what was seen in
//! one short stretch of time is divided here.

use std::collections::BTreeMap;

/// Process and instruction.
pub type Place = (u32, u64);

/// A thread that is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyThread {
    /// It has a CPU or waits for one.
    Running,
    /// It waits in a page fault at this instruction.
    Fault(Place),
}

/// What one thread was seen doing in a stretch, in looks. A look in which `n` threads were busy is `1 / n` to each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// How often it had a CPU or waited for one.
    pub running: f64,
    /// Where it waited in a page fault, and how often.
    pub faults: Vec<(Place, f64)>,
    /// Where it ran, and samples of the clock, by the same measure.
    pub clock: Vec<(Place, f64)>,
    /// Samples of the clock since the last look: the next one tells what they count.
    pub fresh: Vec<Place>,
    /// Where it ran last, before the stretch.
    pub before: Option<Place>,
}

/// One look at all threads at once: those that are busy at the same time share the moment.
pub fn share(threads: &mut [(&mut Seen, Option<BusyThread>)]) {
    let busy = threads.iter().filter(|(_, busy)| busy.is_some()).count();
    let part = 1.0 / busy.max(1) as f64;
    for (seen, busy) in threads {
        for place in std::mem::take(&mut seen.fresh) {
            add(&mut seen.clock, place, part);
        }
        match *busy {
            Some(BusyThread::Running) => seen.running += part,
            Some(BusyThread::Fault(place)) => add(&mut seen.faults, place, part),
            None => {}
        }
    }
}

fn add(list: &mut Vec<(Place, f64)>, place: Place, part: f64) {
    match list.iter_mut().find(|(known, _)| *known == place) {
        Some((_, sum)) => *sum += part,
        None => list.push((place, part)),
    }
}

/// Seconds of a stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WallShares {
    /// By instruction, in order.
    pub places: BTreeMap<Place, f64>,
    /// No thread ran or waited for memory, or nobody knows where.
    pub rest: f64,
}

impl WallShares {
    /// The sum of both.
    pub fn plus(mut self, other: Self) -> Self {
        other.places.into_iter().for_each(|(place, seconds)| *self.places.entry(place).or_default() += seconds);
        Self { rest: self.rest + other.rest, ..self }
    }
}

/// Divides `wall` seconds in which the program was looked at `looks` times. Where several threads were busy at a time each has its
/// share of the moment ([`share`]); a thread that waits in a page fault is as busy as one that runs.
pub fn divide(wall: f64, looks: u32, threads: &[Seen]) -> WallShares {
    let mut found = WallShares { rest: wall, ..WallShares::default() };
    if looks == 0 || wall.is_nan() || wall <= 0.0 {
        return found;
    }
    let look_s = wall / f64::from(looks);
    for thread in threads {
        let mut add = |place: Place, seconds: f64| *found.places.entry(place).or_default() += seconds;
        thread.faults.iter().for_each(|&(place, looks)| add(place, look_s * looks));
        let ran = look_s * thread.running;
        let samples: f64 = thread.clock.iter().map(|(_, part)| part).sum();
        // The clock stands still in the kernel: that time is of whoever is there.
        match thread.before {
            _ if samples > 0.0 => thread.clock.iter().for_each(|&(place, part)| add(place, ran * part / samples)),
            Some(place) if ran > 0.0 => add(place, ran),
            _ => {}
        }
    }
    let busy: f64 = found.places.values().sum();
    found.rest = (wall - busy).max(0.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Place = (1, 0x10);
    const B: Place = (1, 0x20);

    fn seconds(found: &WallShares, place: Place) -> f64 {
        found.places.get(&place).copied().unwrap_or(0.0)
    }

    fn is(found: f64, truth: f64) -> bool {
        (found - truth).abs() < 1e-9
    }

    /// One look: of each thread what the clock told since the last, and what it does.
    type Look = Vec<(Vec<Place>, Option<BusyThread>)>;

    fn seen_in(looks: &[Look]) -> Vec<Seen> {
        let mut threads = vec![Seen::default(); looks.iter().map(Vec::len).max().unwrap_or(0)];
        for look in looks {
            for (thread, (samples, _)) in threads.iter_mut().zip(look) {
                thread.fresh.extend(samples);
            }
            let mut states: Vec<_> = threads.iter_mut().zip(look).map(|(thread, (_, busy))| (thread, *busy)).collect();
            share(&mut states);
        }
        threads
    }

    fn runs(place: Place) -> (Vec<Place>, Option<BusyThread>) {
        (vec![place], Some(BusyThread::Running))
    }

    fn idle() -> (Vec<Place>, Option<BusyThread>) {
        (Vec::new(), None)
    }

    #[test]
    fn waits_in_faults_are_of_the_instruction_that_waits() {
        let thread = Seen { running: 4.0, faults: vec![(A, 12.0)], clock: vec![(B, 3.0)], ..Seen::default() };
        let found = divide(2.0, 20, &[thread]);
        assert!(is(seconds(&found, A), 1.2) && is(seconds(&found, B), 0.4), "{found:?}");
        assert!(is(found.rest, 0.4), "the rest was in system calls: {found:?}");
    }

    #[test]
    fn threads_share_a_moment() {
        let found = divide(1.0, 10, &seen_in(&vec![vec![runs(A), runs(A), runs(A), runs(B)]; 10]));
        assert!(is(seconds(&found, A), 0.75) && is(seconds(&found, B), 0.25) && is(found.rest, 0.0), "{found:?}");
        let waits = (Vec::new(), Some(BusyThread::Fault(B)));
        let found = divide(1.0, 10, &seen_in(&vec![vec![runs(A), waits]; 10]));
        assert!(is(seconds(&found, A), 0.5) && is(seconds(&found, B), 0.5), "{found:?}");
    }

    #[test]
    fn threads_share_no_more_than_the_moment() {
        let (serial, parallel) = (vec![runs(A), idle(), idle(), idle()], vec![runs(B), runs(B), runs(B), runs(B)]);
        let looks = [vec![serial; 10], vec![parallel.clone(); 10]].concat();
        let found = divide(2.0, 20, &seen_in(&looks));
        assert!(is(seconds(&found, A), 1.0) && is(seconds(&found, B), 1.0) && is(found.rest, 0.0), "{found:?}");
        let looks = [vec![parallel; 10], vec![vec![idle(), idle(), idle(), idle()]; 10]].concat();
        let found = divide(2.0, 20, &seen_in(&looks));
        assert!(is(seconds(&found, B), 1.0) && is(found.rest, 1.0), "half of it nobody is busy: {found:?}");
    }

    #[test]
    fn who_ran_without_a_sample_is_where_it_was_before() {
        let thread = Seen { running: 2.0, before: Some(B), ..Seen::default() };
        assert!(is(seconds(&divide(1.0, 4, std::slice::from_ref(&thread)), B), 0.5));
        let nowhere = Seen { before: None, ..thread };
        assert_eq!(divide(1.0, 4, &[nowhere]).rest, 1.0);
        assert_eq!(divide(1.0, 0, &[]).rest, 1.0);
    }

    fn any_look() -> impl Strategy<Value = Look> {
        let place = || (0..3u32, 0..5u64);
        let busy =
            prop_oneof![Just(Some(BusyThread::Running)), place().prop_map(|place| Some(BusyThread::Fault(place))), Just(None)];
        proptest::collection::vec((proptest::collection::vec(place(), 0..4), busy), 5)
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_made(wall in 0.0..10.0f64, looks in proptest::collection::vec(any_look(), 0..30)) {
            let found = divide(wall, looks.len() as u32, &seen_in(&looks));
            let sum: f64 = found.places.values().sum::<f64>() + found.rest;
            prop_assert!((sum - wall).abs() < 1e-9 * (1.0 + wall), "{sum} of {wall}");
            prop_assert!(found.rest >= 0.0 && found.places.values().all(|seconds| *seconds >= 0.0));
        }
    }
}
