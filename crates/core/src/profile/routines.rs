//! Functions of the program: where its time goes, and what memory they ask for.

use super::names::Names;
use super::process::Process;
use super::record::Record;
use super::summary::{Estimate, Routine};
use super::visits::Code;
use std::collections::HashMap;

/// A function and its module.
type Function = (String, String);

/// What is known of a function.
#[derive(Clone, Debug, Default)]
struct Known {
    self_s: f64,
    traffic: Estimate,
    flops: f64,
    access_bytes: f64,
    /// Visits of each group, in lines.
    visits: HashMap<usize, f64>,
}

/// Functions, in the making.
pub struct Routines<'a, N: Names + ?Sized> {
    names: &'a N,
    of_ip: HashMap<(usize, u64), Function>,
    functions: HashMap<Function, Known>,
}

/// Of a function whose name is not known.
const UNKNOWN: &str = "?";

impl<'a, N: Names + ?Sized> Routines<'a, N> {
    /// None yet.
    pub fn new(names: &'a N) -> Self {
        Self { names, of_ip: HashMap::new(), functions: HashMap::new() }
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
            for &(ip, _, number) in &time.samples {
                let seconds = time.period_ns as f64 * 1e-9 * f64::from(number);
                all += seconds;
                let function = self.function(index, ip);
                let known = self.functions.entry(function).or_default();
                known.self_s += seconds;
                if let Some(access) = code.access(index, ip) {
                    known.flops += seconds * f64::from(access.flops);
                    known.access_bytes += seconds * f64::from(access.access_bytes);
                }
            }
        }
        all
    }

    /// Adds the visits of a group: process, instruction and how much each counts; returns the functions' shares, largest first.
    pub fn visits(&mut self, group: usize, total: Estimate, visits: &[(usize, u64, f64)], code: &mut Code<'_, N>) -> Vec<(String, f64)> {
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
