//! Wall time by instruction, of a program that is watched from outside: now and then each of its threads is seen running, waiting in a
//! page fault (at an instruction) or waiting in a system call, and a clock of CPU time tells where threads run. Pure: what was seen in
//! one short stretch of time is divided here.

use std::collections::BTreeMap;

/// Process and instruction.
pub type Place = (u32, u64);

/// What one thread was seen doing in a stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// How often it had a CPU or waited for one.
    pub running: u32,
    /// Where it waited in a page fault, and how often.
    pub faults: Vec<(Place, u32)>,
    /// Where it ran, and samples of the clock.
    pub clock: Vec<(Place, u32)>,
    /// Where it ran last, before the stretch.
    pub before: Option<Place>,
}

/// Seconds of a stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divided {
    /// By instruction, in order.
    pub places: BTreeMap<Place, f64>,
    /// No thread ran or waited for memory, or nobody knows where.
    pub rest: f64,
}

impl Divided {
    /// The sum of both.
    pub fn plus(mut self, other: Self) -> Self {
        other.places.into_iter().for_each(|(place, seconds)| *self.places.entry(place).or_default() += seconds);
        Self { rest: self.rest + other.rest, ..self }
    }
}

/// Divides `wall` seconds in which the program was looked at `looks` times. Where several threads were busy at a time each has its
/// share of the moment; a thread that waits in a page fault is as busy as one that runs.
pub fn divide(wall: f64, looks: u32, threads: &[Seen]) -> Divided {
    let mut found = Divided { rest: wall, ..Divided::default() };
    if looks == 0 || wall.is_nan() || wall <= 0.0 {
        return found;
    }
    let look_s = wall / f64::from(looks);
    for thread in threads {
        let mut add = |place: Place, seconds: f64| *found.places.entry(place).or_default() += seconds;
        thread.faults.iter().for_each(|&(place, number)| add(place, look_s * f64::from(number)));
        let ran = look_s * f64::from(thread.running);
        let samples: u32 = thread.clock.iter().map(|(_, number)| number).sum();
        // The clock stands still in the kernel: that time is of whoever is there.
        match thread.before {
            _ if samples > 0 => {
                thread.clock.iter().for_each(|&(place, number)| add(place, ran * f64::from(number) / f64::from(samples)));
            }
            Some(place) if ran > 0.0 => add(place, ran),
            _ => {}
        }
    }
    let busy: f64 = found.places.values().sum();
    if busy > wall {
        found.places.values_mut().for_each(|seconds| *seconds *= wall / busy);
    }
    found.rest = (wall - busy).max(0.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Place = (1, 0x10);
    const B: Place = (1, 0x20);

    fn seconds(found: &Divided, place: Place) -> f64 {
        found.places.get(&place).copied().unwrap_or(0.0)
    }

    #[test]
    fn waits_in_faults_are_of_the_instruction_that_waits() {
        let thread = Seen { running: 4, faults: vec![(A, 12)], clock: vec![(B, 3)], before: None };
        let found = divide(2.0, 20, &[thread]);
        assert!((seconds(&found, A) - 1.2).abs() < 1e-9 && (seconds(&found, B) - 0.4).abs() < 1e-9, "{found:?}");
        assert!((found.rest - 0.4).abs() < 1e-9, "the rest was in system calls: {found:?}");
    }

    #[test]
    fn threads_share_a_moment() {
        let busy = |place: Place| Seen { running: 10, clock: vec![(place, 9)], ..Seen::default() };
        let found = divide(1.0, 10, &[busy(A), busy(A), busy(A), busy(B)]);
        assert!((seconds(&found, A) - 0.75).abs() < 1e-9 && (seconds(&found, B) - 0.25).abs() < 1e-9 && found.rest == 0.0);
    }

    #[test]
    fn who_ran_without_a_sample_is_where_it_was_before() {
        let thread = Seen { running: 2, before: Some(B), ..Seen::default() };
        assert!((seconds(&divide(1.0, 4, std::slice::from_ref(&thread)), B) - 0.5).abs() < 1e-9);
        let nowhere = Seen { before: None, ..thread };
        assert_eq!(divide(1.0, 4, &[nowhere]).rest, 1.0);
        assert_eq!(divide(1.0, 0, &[]).rest, 1.0);
    }

    fn any_seen() -> impl Strategy<Value = Seen> {
        let places = || proptest::collection::vec(((0..3u32, 0..5u64), 0..20u32), 0..4);
        (0..20u32, places(), places(), proptest::option::of((0..3u32, 0..5u64)))
            .prop_map(|(running, faults, clock, before)| Seen { running, faults, clock, before })
    }

    proptest! {
        #[test]
        fn no_time_is_lost_or_made(wall in 0.0..10.0f64, looks in 0..30u32, threads in proptest::collection::vec(any_seen(), 0..5)) {
            let found = divide(wall, looks, &threads);
            let sum: f64 = found.places.values().sum::<f64>() + found.rest;
            prop_assert!((sum - wall).abs() < 1e-9 * (1.0 + wall), "{sum} of {wall}");
            prop_assert!(found.rest >= 0.0 && found.places.values().all(|seconds| *seconds >= 0.0));
        }
    }
}
