//! What the user should know before believing a profile.

use super::file::Content;
use super::process::Process;
use super::record::{Method, Record};
use super::summary::Summary;
use crate::units::Bytes;

/// Objects with a smaller share of the traffic do not matter.
const MATTERS: f64 = 0.05;
/// Fewer touches tell little.
const FEW: u64 = 30;
/// Observing that takes more is likely to have changed what it observed.
const MUCH: f64 = 0.10;

/// All of them, the weightiest first.
pub(super) fn notes(content: &Content, processes: &[Process<'_>], summary: &Summary, cache_unknown: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.method == Method::None {
        notes.push("accesses were not observed on this machine: sizes and lifetimes are known, traffic is not".to_owned());
    }
    if summary.method == Method::Hardware {
        notes.push(
            "only memory samples of the processor were taken: lines that it fetched ahead are not among them, so objects that are \
             accessed in order have more traffic than shown (Intel counts only some of the others, too: compare shares), and there \
             are no figures for paging"
                .to_owned(),
        );
    }
    if summary.method != Method::None && !summary.saw_anything() {
        notes.push("nothing was observed, so its traffic is not known: profile a longer run".to_owned());
    }
    let total: f64 = summary.objects.iter().map(|object| object.total().value).sum();
    if total <= 0.0 && summary.saw_anything() && summary.peak_bytes <= summary.cache_bytes {
        notes.push(format!(
            "no traffic to memory was seen: all of its data ({} at a time) have room in the last-level cache, of which this machine \
             says that it has {}",
            Bytes(summary.peak_bytes),
            Bytes(summary.cache_bytes)
        ));
    }
    if summary.samples_lost > summary.samples / 20 {
        notes.push(format!(
            "{} memory samples of the processor were lost, and {} were read",
            summary.samples_lost, summary.samples
        ));
    }
    if content.lost_bytes > 0 {
        notes.push(format!("{} bytes of the file are cut off or damaged, and were left out", content.lost_bytes));
    }
    let left_out: u64 = processes.iter().map(left_out).sum();
    if left_out > 0 {
        notes.push(format!("the file reached its limit (--limit): {left_out} records were left out"));
    }
    let weak = summary.objects.iter().filter(|object| {
        let of = object.total();
        // Samples of the processor may make up for touches; where they do, the interval is narrow.
        let sampled = object.samples > 0 && of.high - of.low < of.value;
        object.touches < FEW && !sampled && of.value > MATTERS * total
    });
    let weak: Vec<_> = weak.map(|object| format!("{} ({})", object.name, object.touches)).collect();
    if !weak.is_empty() && summary.method != Method::None {
        notes.push(format!(
            "few touches of {} were seen: a longer run, or a larger budget, makes intervals narrower",
            weak.join(", ")
        ));
    }
    if summary.overhead > MUCH {
        notes.push(format!("observing took {:.0} % of the program's time: rates may be too low", 100.0 * summary.overhead));
    }
    if cache_unknown {
        notes.push("the size of the machine's cache is not known: 32 MiB are assumed".to_owned());
    }
    let ended = |process: &&Process<'_>| {
        process.became.is_some() || process.records.iter().any(|record| matches!(record, Record::End { .. }))
    };
    let killed = processes.len() - processes.iter().filter(ended).count();
    if killed > 0 {
        notes.push(format!("{killed} of {} processes did not exit normally: their last moments are missing", processes.len()));
    }
    for record in processes.iter().flat_map(|process| &process.records) {
        if let Record::Note { text } = record
            && !notes.contains(text)
        {
            notes.push(text.clone());
        }
    }
    notes
}

fn left_out(process: &Process<'_>) -> u64 {
    let cost = |record: &&Record| if let Record::Cost(cost) = record { Some(cost.left_out) } else { None };
    process.records.iter().rev().find_map(cost).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::summary::ObjectGroup;

    #[test]
    fn why_there_is_no_traffic_is_told() {
        let told = |looks: u64, peak_bytes: u64| {
            let object = ObjectGroup { looks, ..ObjectGroup::default() };
            let summary = Summary {
                method: Method::PageFaults,
                objects: vec![object],
                peak_bytes,
                cache_bytes: 300 << 20,
                ..Summary::default()
            };
            notes(&Content::default(), &[], &summary, false)
        };
        assert!(told(0, 1 << 20)[0].contains("nothing was observed"));
        assert!(told(9, 71 << 20)[0].contains("71.0 MiB at a time") && told(9, 71 << 20)[0].contains("300.0 MiB"));
        assert_eq!(told(9, 301 << 20), [""; 0]);
    }
}
