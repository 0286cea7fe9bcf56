//! One time for the records of several hosts: CLOCK_MONOTONIC counts from the start of each machine. Every process says when it began by
//! both that clock and the time of day, so that hosts can be lined up to about a second, which is as exact as that time is recorded.

use super::file::Content;
use super::record::Record;
use std::collections::BTreeMap;

const SECOND: i128 = 1_000_000_000;

/// The least and the most that a host's clock can be behind the time of day, in nanoseconds. Time of day is written in whole seconds.
#[derive(Clone, Copy)]
struct Behind {
    least: i128,
    most: i128,
}

impl Behind {
    fn middle(self) -> i128 {
        (self.least + self.most) / 2
    }
}

/// Shifts the times of all hosts to the clock of the one that runs longest. Nothing changes where there is one host.
pub fn align(content: &mut Content) {
    let mut hosts: BTreeMap<String, Behind> = BTreeMap::new();
    for record in content.batches.iter().flat_map(|batch| &batch.records) {
        if let Record::Start(start) = record {
            let least = i128::from(start.unix_time) * SECOND - i128::from(start.at);
            let known = hosts.entry(start.host.clone()).or_insert(Behind { least, most: least + SECOND });
            *known = Behind { least: known.least.max(least), most: known.most.min(least + SECOND) };
        }
    }
    let Some(first) = hosts.values().map(|behind| behind.middle()).min().filter(|_| hosts.len() > 1) else { return };
    // A file is of one host, and a batch without a start follows one.
    let mut by = 0;
    for record in content.batches.iter_mut().flat_map(|batch| &mut batch.records) {
        if let Record::Start(start) = record
            && let Some(behind) = hosts.get(&start.host)
        {
            by = u64::try_from(behind.middle() - first).unwrap_or(u64::MAX);
        }
        shift(record, by);
    }
}

fn shift(record: &mut Record, by: u64) {
    let later = |at: &mut u64| *at = at.saturating_add(by);
    match record {
        Record::Start(start) => later(&mut start.at),
        Record::Object(object) => later(&mut object.at),
        Record::Resized { at, .. } | Record::Gone { at, .. } | Record::End { at, .. } => later(at),
        Record::Brief(brief) => later(&mut brief.at),
        Record::Watch(watch) => later(&mut watch.at),
        Record::Time(samples) => {
            later(&mut samples.at);
            later(&mut samples.since);
        }
        Record::Accesses { at, samples, .. } => {
            later(at);
            samples.iter_mut().for_each(|sample| later(&mut sample.at));
        }
        Record::Cost(cost) => later(&mut cost.at),
        Record::Module(_) | Record::Site(_) | Record::Code { .. } | Record::Note { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::analyse::{Options, analyse};
    use crate::profile::file::Batch;
    use crate::profile::names::NoNames;
    use crate::profile::record::Start;

    /// A rank that begins `up` seconds after the start of its machine and takes 10 s.
    fn rank(host: &str, up: u64, unix_time: u64) -> Batch {
        let at = up * 1_000_000_000 + 300_000_000;
        let start = Record::Start(Start { at, unix_time, host: host.into(), ..Start::default() });
        let end = Record::End { at: at + 10_000_000_000, cpu_user_ns: 0, cpu_system_ns: 0, peak_resident: 0 };
        Batch { pid: 7, records: vec![start, end] }
    }

    #[test]
    fn hosts_line_up_to_a_second() {
        let mut content =
            Content { batches: vec![rank("a", 5_000_000, 2_000_000_000), rank("b", 100, 2_000_000_001)], lost_bytes: 0 };
        assert!(analyse(&content, &NoNames, &Options::default()).wall_s > 1e6);
        align(&mut content);
        let wall = analyse(&content, &NoNames, &Options::default()).wall_s;
        assert!((10.0..=12.0).contains(&wall), "{wall}");
    }

    #[test]
    fn one_host_stays_as_it_is() {
        let content = Content { batches: vec![rank("a", 500, 2_000_000_000), rank("a", 502, 2_000_000_003)], lost_bytes: 0 };
        let mut aligned = content.clone();
        align(&mut aligned);
        assert_eq!(aligned, content);
    }
}
