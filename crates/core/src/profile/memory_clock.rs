//! A clock that goes by memory instead of by time. How long a cache keeps a line depends on what runs meanwhile: while a loop sweeps through
//! memory it is gone soon, while one computes it stays. With one figure for a whole run, data that are used in one phase only are
//! wrong. So times are counted in memory that was moved: each loop moves memory at its own rate, and samples of the running threads
//! tell which loop ran when. In that clock a run of several phases is as even as one of a single phase.

use super::groups::{Group, seconds};
use super::names::Names;
use super::process::Process;
use super::record::{Record, TimeSamples};
use std::collections::HashMap;

/// A loop, or a function outside of loops: function, module, offset in its page of where the loop begins.
type Place = (String, String, u64);

/// A stretch of time in which one place was seen to run.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: f64,
    to: f64,
    place: usize,
}

/// Between two samples of a busy thread there is no more time than this; beyond it nothing ran, or the kernel did.
const NEXT: f64 = 0.003;
/// CPU time between two samples.
const PERIOD: f64 = 0.001;
/// Without samples for so long, none were recorded.
const UNRECORDED: f64 = 0.3;
/// Memory moves a little even while nothing seems to: of the mean rate.
const LEAST: f64 = 0.03;
/// What the kernel does for a program (it clears pages, copies files) moves memory about as fast as the program does.
const KERNEL: f64 = 1.0;
/// A place's rate is drawn to the mean as if it had run for so long at that.
const PRIOR: f64 = 0.01;
/// The loops of so many instructions are looked for; of rarer ones their function counts.
const MOST_LOOPS: usize = 400;

/// The samples of the running threads of a process.
fn times<'a>(process: &Process<'a>) -> impl Iterator<Item = &'a TimeSamples> {
    process.records.iter().filter_map(|&record| if let Record::Time(time) = record { Some(time) } else { None })
}

/// CPU seconds that processes spent in the kernel, as far as that is known; our own threads' not counted.
fn in_kernel(processes: &[Process<'_>]) -> f64 {
    let (mut ours, mut all) = (0.0, 0.0);
    for process in processes {
        let mut last = 0;
        for record in &process.records {
            match record {
                Record::Cost(cost) => last = cost.cpu_ns,
                Record::End { cpu_system_ns, .. } => all += seconds(*cpu_system_ns),
                _ => {}
            }
        }
        ours += seconds(last);
    }
    (all - ours).max(0.0)
}

/// What ran when.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    stretches: Vec<Stretch>,
    places: HashMap<Place, usize>,
    /// CPU seconds in the kernel, of which there are no samples.
    kernel_s: f64,
    of_ip: HashMap<(usize, u64), usize>,
}

impl Phases {
    /// From the samples of all processes.
    pub fn of<N: Names + ?Sized>(processes: &[Process<'_>], names: &N) -> Self {
        let mut phases = Self::default();
        let mut number: HashMap<(usize, u64), u64> = HashMap::new();
        for (index, process) in processes.iter().enumerate() {
            for time in times(process) {
                time.samples.iter().for_each(|&(ip, _, count)| *number.entry((index, ip)).or_default() += u64::from(count));
            }
        }
        let mut frequent: Vec<_> = number.into_iter().collect();
        frequent.sort_unstable_by_key(|&(place, count)| (std::cmp::Reverse(count), place));
        for (at, &((process, ip), _)) in frequent.iter().enumerate() {
            phases.learn(process, ip, names, at < MOST_LOOPS);
        }
        for (index, process) in processes.iter().enumerate() {
            for time in times(process) {
                let mut at = seconds(time.since);
                for &(after, which) in &time.moments {
                    let from = at;
                    at += f64::from(after) * 1e-6;
                    if let Some(&(ip, ..)) = time.samples.get(which as usize)
                        && let Some(&place) = phases.of_ip.get(&(index, ip))
                    {
                        phases.stretches.push(Stretch { from: from.max(at - NEXT), to: at, place });
                    }
                }
            }
        }
        phases.stretches.sort_by(|one, other| one.from.total_cmp(&other.from));
        phases.kernel_s = in_kernel(processes);
        phases
    }

    /// How fast memory moves where no sample says what runs: the kernel works there for some of the time.
    fn unsampled(&self, begin: f64, end: f64) -> f64 {
        let mut sampled = 0.0;
        let mut last = begin;
        for stretch in &self.stretches {
            sampled += (stretch.to - stretch.from.max(last)).clamp(0.0, PERIOD);
            last = last.max(stretch.to);
        }
        let rest = (end - begin - sampled).max(1e-9);
        (KERNEL * self.kernel_s / rest).clamp(LEAST, KERNEL)
    }

    fn learn<N: Names + ?Sized>(&mut self, process: usize, ip: u64, names: &N, with_loop: bool) -> usize {
        if let Some(&known) = self.of_ip.get(&(process, ip)) {
            return known;
        }
        let (function, module) = names.function(process, ip).unwrap_or_default();
        // Programs are mapped at whole pages, so this much of an address is the same in all processes.
        let begin = if with_loop { names.inner_loop(process, ip).map_or(1, |begin| begin & 0xfff) } else { 1 };
        let next = self.places.len();
        let place = *self.places.entry((function, module, begin)).or_insert(next);
        self.of_ip.insert((process, ip), place);
        place
    }

    /// True when nothing is known of what ran.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The clock that goes by the memory that places move. `moved`: process and instruction of each visit, and what it moves, in any
    /// unit.
    pub fn pace<N: Names + ?Sized>(
        &mut self,
        moved: impl Iterator<Item = (usize, u64, f64)>,
        names: &N,
        (begin, end): (f64, f64),
    ) -> MemoryClock {
        let mut amounts = Vec::new();
        for (process, ip, amount) in moved.filter(|one| one.1 != 0 && one.2 > 0.0 && one.2.is_finite()) {
            let place = self.learn(process, ip, names, true);
            amounts.resize(amounts.len().max(place + 1), 0.0);
            amounts[place] += amount;
        }
        amounts.resize(self.places.len(), 0.0);
        let mut ran = vec![0.0; amounts.len()];
        self.stretches.iter().for_each(|stretch| ran[stretch.place] += stretch.to - stretch.from);
        // What is moved by places that were never seen to run makes no rate.
        let seen: f64 = amounts.iter().zip(&ran).filter(|(_, ran)| **ran > 0.0).map(|(amount, _)| amount).sum();
        let all: f64 = ran.iter().sum();
        if seen <= 0.0 || all <= 0.0 {
            return MemoryClock::even(begin, end);
        }
        let mean = seen / all;
        let rate = |place: usize| ((amounts[place] + mean * PRIOR) / (ran[place] + PRIOR) / mean).max(LEAST);
        let stretches = self.stretches.iter().map(|stretch| (stretch.from, stretch.to, rate(stretch.place)));
        MemoryClock::of(stretches, self.unsampled(begin, end), begin, end)
    }
}

/// The clock.
#[derive(Clone, Debug)]
pub struct MemoryClock {
    /// Seconds, and what the clock shows then.
    knots: Vec<(f64, f64)>,
    /// How fast it goes up to each knot while the program runs: what else is in the stretch is waiting.
    running: Vec<f64>,
}

/// Waits below this are told apart more finely than samples are.
const SHORT: f64 = 0.003;

impl MemoryClock {
    /// It shows seconds.
    pub fn even(begin: f64, end: f64) -> Self {
        Self { knots: vec![(begin, begin), (end.max(begin + 1e-9), end.max(begin + 1e-9))], running: vec![1.0; 2] }
    }

    /// From stretches in order of their beginnings, with rates of which 1 is the mean; where they say nothing it goes at `unsampled`. It
    /// shows as many seconds from `begin` to `end` as there are.
    fn of(stretches: impl Iterator<Item = (f64, f64, f64)>, unsampled: f64, begin: f64, end: f64) -> Self {
        let mut course = Course { knots: vec![(begin, 0.0)], running: vec![1.0], rate: f64::NAN, unsampled };
        let pause = |course: &mut Course, to: f64| {
            let unknown = to - course.now().0 > UNRECORDED;
            course.advance(to, if unknown { 1.0 } else { unsampled }, f64::INFINITY);
        };
        for (from, to, rate) in stretches {
            pause(&mut course, from.clamp(begin, end));
            course.advance(to.clamp(begin, end), rate, PERIOD);
        }
        pause(&mut course, end);
        let shown = course.now().1;
        if course.knots.len() < 2 || shown <= 0.0 {
            return Self::even(begin, end);
        }
        let scale = (end - begin) / shown;
        course.knots.iter_mut().for_each(|knot| knot.1 = begin + knot.1 * scale);
        course.running.iter_mut().for_each(|rate| *rate *= scale);
        Self { knots: course.knots, running: course.running }
    }

    /// What it shows at a second.
    pub fn at(&self, second: f64) -> f64 {
        let next = self.knots.partition_point(|knot| knot.0 <= second);
        let (Some(&one), Some(&other)) = (self.knots.get(next.wrapping_sub(1)), self.knots.get(next)) else {
            // Outside it goes as real time does.
            let edge = if next == 0 { self.knots.first() } else { self.knots.last() };
            return edge.map_or(second, |edge| edge.1 + second - edge.0);
        };
        one.1 + (other.1 - one.1) * (second - one.0) / (other.0 - one.0).max(1e-12)
    }

    /// How much faster than seconds it goes at one.
    fn rate(&self, second: f64) -> f64 {
        let next = self.knots.partition_point(|knot| knot.0 <= second);
        match (self.knots.get(next.wrapping_sub(1)), self.knots.get(next)) {
            (Some(one), Some(other)) => (other.1 - one.1) / (other.0 - one.0).max(1e-12),
            _ => 1.0,
        }
    }

    /// The same while the program runs.
    fn running(&self, second: f64) -> f64 {
        let next = self.knots.partition_point(|knot| knot.0 <= second);
        self.running.get(next).copied().unwrap_or(1.0)
    }

    /// A group with all times as this clock shows them.
    pub fn group(&self, group: &Group) -> Group {
        let mut paced = group.clone();
        for item in &mut paced.items {
            item.sizes.iter_mut().for_each(|(at, _)| *at = self.at(*at));
            item.end = self.at(item.end);
        }
        for (at, brief) in &mut paced.briefs {
            // They lived within the quarter of a second before.
            let (from, to) = ((*at - 0.25).max(self.knots.first().map_or(0.0, |first| first.0)), *at);
            let factor = if to > from { (self.at(to) - self.at(from)) / (to - from) } else { 1.0 };
            brief.lifetime_ns = (brief.lifetime_ns as f64 * factor) as u64;
            *at = self.at(*at);
        }
        let mut weighed = 0.0;
        for look in &mut paced.looks {
            // Looks are spread over seconds: where the clock goes fast, each stands for more.
            look.weight *= self.rate(look.at);
            weighed += look.weight;
            let at = self.at(look.at);
            look.waited = if look.waited < SHORT {
                look.waited * self.running(look.at)
            } else {
                self.at(look.at + seconds(look.watch.waited)) - at
            };
            look.at = at;
        }
        paced.page_seconds = paced.page_seconds_of_all();
        if weighed > 0.0 {
            let factor = paced.page_seconds / weighed;
            paced.looks.iter_mut().for_each(|look| look.weight *= factor);
        }
        paced
    }
}

/// The clock as it is made.
struct Course {
    knots: Vec<(f64, f64)>,
    running: Vec<f64>,
    /// Of the last stretch.
    rate: f64,
    /// Where nothing is known.
    unsampled: f64,
}

impl Course {
    fn now(&self) -> (f64, f64) {
        self.knots.last().copied().unwrap_or_default()
    }

    /// Goes on to a second; the program was seen to run for `most` of it at most.
    fn advance(&mut self, to: f64, rate: f64, most: f64) {
        let (at, shown) = self.now();
        if to <= at {
            return;
        }
        let ran = (to - at).min(most);
        let next = (to, shown + ran * rate + (to - at - ran) * self.unsampled);
        match self.knots.last_mut() {
            // Where it waited much, the stretch stays by itself.
            Some(last) if self.rate == rate && to - at < 1.2 * most => *last = next,
            _ => {
                self.knots.push(next);
                self.running.push(rate);
            }
        }
        self.rate = if to - at < 1.2 * most { rate } else { f64::NAN };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_faster_where_memory_moves() {
        // A second at rate 3, one at rate 1, again and again; a pause of a quarter of a second between.
        let stretches = (0..4).flat_map(|round| {
            let at = 10.0 + 2.25 * f64::from(round);
            let stretch = move |ms: i32| {
                let from = at + f64::from(ms) * PERIOD;
                (from, from + PERIOD, if ms < 1000 { 3.0 } else { 1.0 })
            };
            (0..2000).map(stretch)
        });
        let pace = MemoryClock::of(stretches, LEAST, 10.0, 19.0);
        assert!((pace.at(10.0) - 10.0).abs() < 1e-9 && (pace.at(19.0) - 19.0).abs() < 1e-9);
        let of = |from: f64, to: f64| pace.at(to) - pace.at(from);
        assert!((of(10.2, 10.4) / of(11.2, 11.4) - 3.0).abs() < 1e-6);
        assert!((of(12.0, 12.2) / of(11.2, 11.4) - LEAST).abs() < 1e-6, "nothing ran");
        assert!((0..900).all(|at| of(10.0 + f64::from(at) * 0.01, 10.01 + f64::from(at) * 0.01) >= 0.0));
        assert!((pace.at(9.0) - 9.0).abs() < 1e-9 && (pace.at(20.0) - 20.0).abs() < 1e-9, "outside as time does");
    }

    #[test]
    fn without_samples_it_is_time() {
        for pace in [MemoryClock::of(std::iter::empty(), LEAST, 1.0, 5.0), MemoryClock::even(1.0, 5.0)] {
            assert!((0..50).all(|at| (pace.at(0.1 * f64::from(at)) - 0.1 * f64::from(at)).abs() < 1e-6));
        }
        assert!(MemoryClock::even(1.0, 1.0).at(1.0).is_finite());
        assert!(Phases::default().is_empty());
    }
}
