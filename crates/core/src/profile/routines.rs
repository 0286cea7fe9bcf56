//! Functions of the program: where its time goes, and what memory they ask for.

use super::groups::seconds;
use super::names::Names;
use super::process::Process;
use super::record::{Record, TimeSamples};
use super::summary::{Estimate, Routine};
use super::timeline::Timeline;
use super::visits::Code;
use std::collections::HashMap;

/// A function and its module.
type Function = (String, String);

/// What is known of a function.
#[derive(Clone, Debug, Default)]
struct Known {
    self_s: f64,
    /// The same per bin.
    time: Option<Timeline>,
    traffic: Estimate,
    flops: f64,
    access_bytes: f64,
    /// Visits of each group, in lines.
    visits: HashMap<usize, f64>,
}

/// Functions, in the making.
pub struct Routines<'a, N: Names + ?Sized> {
    names: &'a N,
    /// Begin, end and bin of timelines, in seconds.
    period: (f64, f64, f64),
    of_ip: HashMap<(usize, u64), Function>,
    functions: HashMap<Function, Known>,
}

/// Of a function whose name is not known.
const UNKNOWN: &str = "?";

/// How long before their end samples began that do not say it: they are written four times a second.
const USUAL_S: f64 = 0.25;

/// When each of the samples was taken: moments, or the time that they are of where moments are not told.
fn moments(time: &TimeSamples) -> Vec<Vec<(f64, f64)>> {
    let mut found = vec![Vec::new(); time.samples.len()];
    let mut at = seconds(time.since);
    for &(after, which) in &time.moments {
        at += f64::from(after) * 1e-6;
        if let Some(moments) = found.get_mut(which as usize) {
            moments.push((at, at));
        }
    }
    let until = seconds(time.at);
    let since = if time.since > 0 { seconds(time.since) } else { until - USUAL_S };
    found.iter_mut().filter(|moments| moments.is_empty()).for_each(|moments| moments.push((since, until)));
    found
}

impl<'a, N: Names + ?Sized> Routines<'a, N> {
    /// None yet; `period` is begin, end and bin of timelines, in seconds.
    pub fn new(names: &'a N, period: (f64, f64, f64)) -> Self {
        Self { names, period, of_ip: HashMap::new(), functions: HashMap::new() }
    }

    fn function(&mut self, process: usize, ip: u64) -> Function {
        let names = self.names;
        let unknown = || (UNKNOWN.to_owned(), String::new());
        self.of_ip.entry((process, ip)).or_insert_with(|| names.function(process, ip).unwrap_or_else(unknown)).clone()
    }

    /// Adds the time samples of a process; returns their seconds.
    pub fn time(&mut self, index: usize, process: &Process<'_>, code: &mut Code<'_, N>) -> f64 {
        let mut all = 0.0;
        for record in &process.records {
            let Record::Time(time) = record else { continue };
            let moments = moments(time);
            for (&(ip, _, number), moments) in time.samples.iter().zip(&moments) {
                let seconds = time.period_ns as f64 * 1e-9 * f64::from(number);
                all += seconds;
                let function = self.function(index, ip);
                let known = self.functions.entry(function).or_default();
                known.self_s += seconds;
                let (begin, end, bin) = self.period;
                let line = known.time.get_or_insert_with(|| Timeline::with_bin(begin, end, bin));
                for &(from, to) in moments {
                    line.add(from, to, seconds / moments.len() as f64);
                }
                if let Some(access) = code.access(index, ip) {
                    known.flops += seconds * f64::from(access.flops);
                    known.access_bytes += seconds * f64::from(access.access_bytes);
                }
            }
        }
        all
    }

    /// Adds the visits of a group: process, instruction and how much each counts; returns the functions' shares, largest first.
    pub fn visits(
        &mut self,
        group: usize,
        total: Estimate,
        visits: &[(usize, u64, f64)],
        code: &mut Code<'_, N>,
    ) -> Vec<(String, f64)> {
        let all: f64 = visits.iter().map(|visit| visit.2).sum();
        let mut shares: HashMap<Function, f64> = HashMap::new();
        for &(process, ip, amount) in visits.iter().filter(|visit| visit.1 != 0 && visit.2 > 0.0) {
            let function = self.function(process, ip);
            *shares.entry(function.clone()).or_default() += amount / all;
            let known = self.functions.entry(function).or_default();
            *known.visits.entry(group).or_default() += amount;
            if let Some(access) = code.access(process, ip)
                && known.self_s <= 0.0
            {
                known.flops += amount * f64::from(access.flops);
                known.access_bytes += amount * f64::from(access.access_bytes);
            }
        }
        let mut shares: Vec<_> = shares.into_iter().collect();
        shares.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        for (function, share) in &shares {
            let part = Estimate { value: total.value * share, low: total.low * share, high: total.high * share };
            let known = self.functions.entry(function.clone()).or_default();
            known.traffic = known.traffic + part;
        }
        shares.into_iter().filter(|(function, _)| function.0 != UNKNOWN).map(|(function, share)| (function.0, share)).collect()
    }

    /// Seconds at instructions that touch each of so many groups: of a function's time, as much as of its visits.
    pub fn busy(&self, groups: usize) -> Vec<f64> {
        let mut busy = vec![0.0; groups];
        // In a fixed order, as sums depend on it in their last digits.
        let mut functions: Vec<_> = self.functions.iter().collect();
        functions.sort_by(|one, other| one.0.cmp(other.0));
        for known in functions.into_iter().map(|(_, known)| known) {
            let mut visits: Vec<_> = known.visits.iter().collect();
            visits.sort_by_key(|&(&group, _)| group);
            let all: f64 = visits.iter().map(|(_, amount)| **amount).sum();
            for (&group, amount) in visits {
                if let Some(busy) = busy.get_mut(group)
                    && all > 0.0
                {
                    *busy += known.self_s * amount / all;
                }
            }
        }
        busy
    }

    /// All of them, in order of time, then of traffic.
    pub fn finish(self) -> Vec<Routine> {
        let mut routines: Vec<_> = self
            .functions
            .into_iter()
            .map(|((function, module), known)| Routine {
                function,
                module,
                self_s: known.self_s,
                time: known.time.map(|line| line.bins).unwrap_or_default(),
                traffic: known.traffic,
                flops_per_access_byte: (known.access_bytes > 0.0).then(|| known.flops / known.access_bytes),
            })
            .collect();
        routines.sort_by(|one, other| {
            let by_traffic = || other.traffic.value.total_cmp(&one.traffic.value);
            let by_name = || (&one.function, &one.module).cmp(&(&other.function, &other.module));
            other.self_s.total_cmp(&one.self_s).then_with(by_traffic).then_with(by_name)
        });
        routines
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::{Batch, Content};
    use super::super::names::NoNames;
    use super::super::process::split;
    use super::*;

    #[test]
    fn time_is_told_by_bins() {
        const S: u64 = 1_000_000_000;
        let told = TimeSamples {
            at: 4 * S,
            since: 2 * S,
            period_ns: S / 4,
            samples: vec![(1, 1, 4), (2, 1, 2)],
            moments: vec![(100_000, 0), (200_000, 0), (1_000_000, 1)],
        };
        let untold = TimeSamples { at: 2 * S, since: 0, period_ns: S, samples: vec![(3, 1, 1)], moments: Vec::new() };
        let records = vec![Record::Time(untold), Record::Time(told)];
        let content = Content { batches: vec![Batch { pid: 1, records }], lost_bytes: 0 };
        let mut routines = Routines::new(&NoNames, (0.0, 4.0, 1.0));
        let sum = routines.time(0, &split(&content)[0], &mut Code::new(&NoNames));
        let all = routines.finish();
        // No names: all of it is one function.
        assert_eq!((sum, all.len(), all[0].self_s), (2.5, 1, 2.5));
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        let line = &all[0].time;
        assert!(near(line[0], 0.0) && near(line[1], 1.0) && near(line[2], 1.0) && near(line[3], 0.5), "{line:?}");
    }
}
