//! What limits a program: judged from how its run time changes when something is taken from it. Pure: times in, verdict out.
//!
//! Each trial changes one thing (a bandwidth hog beside the program, half of the CPUs, a lower clock), and is made with the program
//! and with two kernels of known nature in the same session: triad, whose time follows memory wholly, and arithmetic in registers,
//! whose time does not at all. Where the program stands between the two, from 0 (as arithmetic) to 1 (as triad), is the share of its
//! time that follows memory. A trial that does not tell even the two kernels apart says nothing, and is not used.

use crate::node::median_with_interval;
use serde::Serialize;

/// Difference of the two kernels' ratios below which a trial has no power.
const LEAST_POWER: f64 = 0.05;
/// Share from which a program counts as bound by memory, and up to which as not.
const MOSTLY: f64 = 0.65;
const HARDLY: f64 = 0.25;
/// CPUs that a program must use, as a multiple of those that it is left with, for the loss of the others to mean anything.
const USES_MORE: f64 = 1.2;
/// A program that uses less of a CPU than this waits for something that is neither.
const WAITS: f64 = 0.5;
/// CPUs that other processes may have meanwhile: the larger of this and this share of all.
const OTHERS: f64 = 0.2;
const OTHERS_SHARE: f64 = 0.05;
/// Shorter runs are mostly the start of a process.
pub const SHORT_S: f64 = 0.2;

/// A median, and the interval around it: of order statistics, or smallest and largest for fewer than 6 runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Spread {
    /// Of `values`; `None` without any, or when one is not a number.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let (median, low, high) = median_with_interval(values);
        Some(Self { median, low, high })
    }

    fn meets(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    fn corners(&self) -> [f64; 3] {
        [self.low, self.median, self.high]
    }
}

/// Seconds of the same work without and with a change, in pairs taken one after the other, so that slow drifts cancel.
pub type Pairs = Vec<(f64, f64)>;

/// Times with the change over times without, by pairs.
pub fn ratio(pairs: &Pairs) -> Option<Spread> {
    let ratios: Vec<f64> = pairs.iter().map(|(without, with)| with / without).collect();
    Spread::of(&ratios)
}

/// One change, seen by the program and by the two kernels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// The program.
    pub program: Pairs,
    /// Triad: follows memory wholly.
    pub triad: Pairs,
    /// Arithmetic in registers: does not follow memory.
    pub compute: Pairs,
}

/// What came of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Time with the change over time without: the program.
    pub program: Spread,
    /// The same of triad.
    pub triad: Spread,
    /// The same of arithmetic in registers.
    pub compute: Spread,
    /// Share of the program's time that follows memory: 0 as arithmetic, 1 as triad.
    pub share: Spread,
}

/// Which kernel a change slows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slows {
    /// Triad: a hog of bandwidth.
    Triad,
    /// Arithmetic: fewer cores, a lower clock.
    Arithmetic,
}

impl Trial {
    /// Where the program stands between the kernels, for a change that `slows` one of them more.
    ///
    /// # Errors
    /// Why this trial cannot tell, for people.
    pub fn finding(&self, slows: Slows) -> Result<Finding, String> {
        let all = (ratio(&self.program), ratio(&self.triad), ratio(&self.compute));
        let (Some(program), Some(triad), Some(compute)) = all else { return Err("it was not measured".into()) };
        let power = match slows {
            Slows::Triad => triad.median - compute.median,
            Slows::Arithmetic => compute.median - triad.median,
        };
        if power < LEAST_POWER || triad.meets(&compute) {
            let (triad, compute) = (show(&triad), show(&compute));
            let why = if power < -LEAST_POWER { "the wrong way round, so this is noise" } else { "too alike" };
            return Err(format!("it changes the time of pure triad by {triad} and of pure arithmetic by {compute}: {why}"));
        }
        let share = |program: f64, triad: f64, compute: f64| (program - compute) / (triad - compute);
        // All corners: the intervals of the kernels do not meet, so no denominator is 0.
        let corners = program.corners().into_iter().flat_map(|p| {
            triad.corners().into_iter().flat_map(move |t| compute.corners().into_iter().map(move |c| share(p, t, c)))
        });
        let (low, high) = corners.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let share = Spread { median: share(program.median, triad.median, compute.median), low, high };
        Ok(Finding { program, triad, compute, share })
    }
}

/// A ratio as people read it: "x1.25 (1.20-1.31)".
pub fn show(ratio: &Spread) -> String {
    format!("x{:.2} ({:.2}-{:.2})", ratio.median, ratio.low, ratio.high)
}

/// How the second half of the CPUs was taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// All CPUs, against half of the cores: the program has the same memory for half the threads.
    #[default]
    HalfTheCores,
    /// All cores of half of the nodes, against half of the cores of all nodes: as many threads with twice the memories.
    TwiceTheNodes,
}

/// All that was measured. A trial that could not be made says why.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Beside a bandwidth hog, against beside a hog of processor time.
    pub hog: Result<Trial, String>,
    /// With half of the CPUs, or twice the nodes.
    pub half: Result<Trial, String>,
    /// How.
    pub packing: Packing,
    /// With a lower clock.
    pub clock: Result<Trial, String>,
    /// Seconds of the program as it is.
    pub seconds: f64,
    /// CPUs that it used then (processor time over wall time).
    pub cpus_used: f64,
    /// CPUs that the halved program had.
    pub half_cpus: u32,
    /// CPUs that it may use.
    pub cpus: u32,
    /// CPUs that other processes and other virtual machines used while the program ran as it is.
    pub others_cpus: f64,
}

/// What limits the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The bandwidth of memory.
    MemoryBandwidth,
    /// The latency of memory, or traffic far below what memory can carry.
    MemoryLatency,
    /// Memory: whether bandwidth or latency was not told apart.
    Memory,
    /// Computing.
    Compute,
    /// Not the bandwidth of memory: computing or latency.
    NotBandwidth,
    /// Some of its time follows memory, some does not.
    Mixed,
    /// Something else: disk, network, locks, a serial part.
    Other,
    /// The trials do not tell.
    NotDecidable,
}

impl Verdict {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::MemoryBandwidth => "memory-bandwidth-bound",
            Self::MemoryLatency => "memory-latency-bound",
            Self::Memory => "memory-bound (bandwidth or latency)",
            Self::Compute => "compute-bound",
            Self::NotBandwidth => "not bandwidth-bound (computing or latency)",
            Self::Mixed => "mixed: partly memory-bound",
            Self::Other => "bound by something else (waiting, locks, a serial part)",
            Self::NotDecidable => "not decidable here",
        }
    }
}

/// How sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One trial whose interval leaves room for another verdict, or runs too short.
    Low,
    /// One clear trial.
    Medium,
    /// Two clear trials that agree.
    High,
}

impl Confidence {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The judgement, with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What limits the program.
    pub verdict: Verdict,
    /// How sure.
    pub confidence: Confidence,
    /// Beside a hog.
    pub hog: Result<Finding, String>,
    /// With half of the CPUs or twice the nodes.
    pub half: Result<Finding, String>,
    /// With a lower clock.
    pub clock: Result<Finding, String>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Hardly,
    Partly,
    Mostly,
}

fn level(share: f64) -> Level {
    match share {
        share if share >= MOSTLY => Level::Mostly,
        share if share <= HARDLY => Level::Hardly,
        _ => Level::Partly,
    }
}

/// The level of a finding, and whether its whole interval has that level.
fn leveled(finding: &Result<Finding, String>) -> Option<(Level, bool)> {
    let share = finding.as_ref().ok()?.share;
    let of = level(share.median);
    Some((of, level(share.low) == of && level(share.high) == of))
}

/// Judges.
pub fn judge(evidence: &Evidence) -> Judgement {
    let find =
        |trial: &Result<Trial, String>, slows| trial.as_ref().map_err(String::clone).and_then(|trial| trial.finding(slows));
    let (hog, clock) = (find(&evidence.hog, Slows::Triad), find(&evidence.clock, Slows::Arithmetic));
    let uses_more = evidence.cpus_used > USES_MORE * f64::from(evidence.half_cpus);
    let half = if evidence.half.is_ok() && !uses_more {
        Err(format!("the program uses {:.1} CPUs, so {} are as good as all", evidence.cpus_used, evidence.half_cpus))
    } else {
        find(&evidence.half, Slows::Arithmetic)
    };
    let mut notes = Vec::new();
    let is_busy = evidence.others_cpus > OTHERS.max(OTHERS_SHARE * f64::from(evidence.cpus));
    if is_busy {
        let others = evidence.others_cpus;
        notes.push(format!(
            "other processes used {others:.1} CPUs meanwhile, which affects the times; repeat this on a quiet machine"
        ));
    }
    let (verdict, mut confidence) = if evidence.cpus_used < WAITS && is_busy {
        (Verdict::NotDecidable, Confidence::Low)
    } else if evidence.cpus_used < WAITS {
        notes.push(format!("it uses {:.2} CPUs: most of the time it waits for something else", evidence.cpus_used));
        (Verdict::Other, Confidence::High)
    } else {
        decide(leveled(&hog), leveled(&half), leveled(&clock), &mut notes)
    };
    if evidence.seconds < SHORT_S {
        notes.push(format!("a run takes {:.2} s: most of that is process start-up; give it more work", evidence.seconds));
        confidence = Confidence::Low;
    }
    if is_busy {
        confidence = Confidence::Low;
    }
    Judgement { verdict, confidence, hog, half, clock, notes }
}

type Leveled = Option<(Level, bool)>;

fn decide(hog: Leveled, half: Leveled, clock: Leveled, notes: &mut Vec<String>) -> (Verdict, Confidence) {
    use Level::{Hardly, Mostly, Partly};
    // Latency counts in these two, in the packing it does not.
    let memory = match (hog, clock) {
        (Some((a, _)), Some((b, _))) if a != b => {
            notes.push("the hog and the lower clock do not agree".into());
            Some((if a == Partly || b == Partly { a } else { Partly }, false))
        }
        (Some((a, one)), Some((_, other))) => Some((a, one || other)),
        (one, other) => one.or(other),
    };
    let verdict = match (memory.map(|(level, _)| level), half.map(|(level, _)| level)) {
        (Some(Mostly), Some(Mostly | Partly)) => Verdict::MemoryBandwidth,
        (Some(Mostly), Some(Hardly)) => Verdict::MemoryLatency,
        (Some(Mostly), None) => Verdict::Memory,
        (Some(Partly), _) => Verdict::Mixed,
        (Some(Hardly), Some(Mostly)) => Verdict::Other,
        (Some(Hardly), _) => Verdict::Compute,
        (None, Some(Mostly)) => {
            notes.push("that more CPUs do not help can have other causes as well: locks, a serial part".into());
            return (Verdict::MemoryBandwidth, Confidence::Low);
        }
        (None, Some(Partly)) => return (Verdict::Mixed, Confidence::Low),
        (None, Some(Hardly)) => Verdict::NotBandwidth,
        (None, None) => return (Verdict::NotDecidable, Confidence::Low),
    };
    let clear = [hog, half, clock].into_iter().flatten().filter(|(_, clear)| *clear).count();
    let agrees = memory.is_none_or(|(_, clear)| clear || !(hog.is_some() && clock.is_some()));
    let confidence = match clear {
        _ if !agrees => Confidence::Low,
        0 => Confidence::Low,
        1 => Confidence::Medium,
        _ => Confidence::High,
    };
    (verdict, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of 1 s that become these, with noise of half a percent.
    fn pairs(ratio: f64) -> Pairs {
        [0.995, 1.0, 1.005].map(|noise| (1.0, ratio * noise)).to_vec()
    }

    fn trial(program: f64, triad: f64, compute: f64) -> Result<Trial, String> {
        Ok(Trial { program: pairs(program), triad: pairs(triad), compute: pairs(compute) })
    }

    fn evidence(hog: Result<Trial, String>, half: Result<Trial, String>) -> Evidence {
        let clock = Err("no cpufreq".to_owned());
        Evidence {
            hog,
            half,
            clock,
            packing: Packing::HalfTheCores,
            seconds: 5.0,
            cpus_used: 2.0,
            half_cpus: 1,
            cpus: 2,
            others_cpus: 0.1,
        }
    }

    fn verdict(evidence: &Evidence) -> (Verdict, Confidence) {
        let judgement = judge(evidence);
        (judgement.verdict, judgement.confidence)
    }

    #[test]
    fn the_kernels_themselves_are_what_they_are() {
        let triad = evidence(trial(1.6, 1.6, 1.0), trial(1.05, 1.05, 2.0));
        assert_eq!(verdict(&triad), (Verdict::MemoryBandwidth, Confidence::High));
        let compute = evidence(trial(1.0, 1.6, 1.0), trial(2.0, 1.05, 2.0));
        assert_eq!(verdict(&compute), (Verdict::Compute, Confidence::High));
        let half_half = evidence(trial(1.3, 1.6, 1.0), trial(1.5, 1.0, 2.0));
        assert_eq!(verdict(&half_half).0, Verdict::Mixed);
        let share = judge(&half_half).hog.unwrap().share;
        assert!((share.median - 0.5).abs() < 1e-9 && share.low > 0.4 && share.high < 0.6, "{share:?}");
    }

    #[test]
    fn latency_is_told_from_bandwidth_by_scaling() {
        assert_eq!(verdict(&evidence(trial(1.5, 1.6, 1.0), trial(1.95, 1.05, 2.0))).0, Verdict::MemoryLatency);
        // All CPUs do not saturate the memory: triad scales, and halving says nothing.
        assert_eq!(verdict(&evidence(trial(1.5, 1.6, 1.0), trial(1.95, 1.97, 2.0))), (Verdict::Memory, Confidence::Medium));
        // Neither more CPUs nor less bandwidth matter.
        assert_eq!(verdict(&evidence(trial(1.0, 1.6, 1.0), trial(1.02, 1.05, 2.0))).0, Verdict::Other);
    }

    #[test]
    fn trials_without_power_are_not_used() {
        let weak = judge(&evidence(trial(1.02, 1.03, 1.0), Err("one CPU".into())));
        assert_eq!((weak.verdict, weak.confidence), (Verdict::NotDecidable, Confidence::Low));
        assert!(weak.hog.unwrap_err().contains("too alike"));
        let noisy = Trial { triad: vec![(1.0, 0.9), (1.0, 1.3), (1.0, 1.8)], program: pairs(1.3), compute: pairs(1.0) };
        assert!(noisy.finding(Slows::Triad).is_err());
        let broken = Trial { program: vec![(0.0, 0.0)], triad: pairs(1.6), compute: pairs(1.0) };
        assert!(broken.finding(Slows::Triad).is_err());
        let reversed = trial(1.6, 1.9, 1.5).unwrap().finding(Slows::Arithmetic);
        assert!(reversed.unwrap_err().contains("wrong way"));
    }

    #[test]
    fn a_program_of_one_thread_does_not_miss_the_other_cpus() {
        let serial = Evidence { cpus_used: 1.0, ..evidence(trial(1.0, 1.6, 1.0), trial(1.0, 1.05, 2.0)) };
        let judgement = judge(&serial);
        assert_eq!((judgement.verdict, judgement.confidence), (Verdict::Compute, Confidence::Medium));
        assert!(judgement.half.unwrap_err().contains("uses 1.0 CPUs"));
        let idle = Evidence { cpus_used: 0.1, ..serial };
        assert_eq!(verdict(&idle).0, Verdict::Other);
    }

    #[test]
    fn twice_the_nodes_and_a_lower_clock() {
        // Spread over twice the nodes triad takes half the time, arithmetic the same; at 60 % clock arithmetic takes 1.67 times as long.
        let bound = Evidence {
            packing: Packing::TwiceTheNodes,
            clock: trial(1.05, 1.02, 1.67),
            ..evidence(Err("no CPU left".into()), trial(0.55, 0.5, 1.0))
        };
        assert_eq!(verdict(&bound), (Verdict::MemoryBandwidth, Confidence::High));
        let torn = Evidence { clock: trial(1.6, 1.02, 1.67), ..evidence(trial(1.6, 1.6, 1.0), Err("one CPU".into())) };
        let judgement = judge(&torn);
        assert_eq!((judgement.verdict, judgement.confidence), (Verdict::Mixed, Confidence::Low));
        assert!(judgement.notes[0].contains("do not agree"));
    }

    #[test]
    fn a_busy_machine_is_said() {
        let busy = Evidence { others_cpus: 1.0, ..evidence(trial(1.6, 1.6, 1.0), trial(1.05, 1.05, 2.0)) };
        assert_eq!(verdict(&busy), (Verdict::MemoryBandwidth, Confidence::Low));
        assert!(judge(&busy).notes[0].contains("quiet machine"));
        // It did not wait for a disk, but for its turn.
        assert_eq!(verdict(&Evidence { cpus_used: 0.3, ..busy }), (Verdict::NotDecidable, Confidence::Low));
    }

    #[test]
    fn short_runs_are_said() {
        let short = Evidence { seconds: 0.01, ..evidence(trial(1.6, 1.6, 1.0), trial(1.05, 1.05, 2.0)) };
        let judgement = judge(&short);
        assert_eq!(judgement.confidence, Confidence::Low);
        assert!(judgement.notes[0].contains("more work"));
    }
}
