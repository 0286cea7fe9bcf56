//! The words at the end of a run: what happened to the program's memory, and how each figure was found.

use crate::exit::STOPPED_BY_NEARFAR;
use crate::launch::supervisor::End;
use crate::run::outcome::{Derived, Outcome};
use nearfar_core::placement::{NodeSet, Placement};
use nearfar_core::stats::{Counter, GRAINS};
use nearfar_core::units::Bytes;
use nearfar_host::residence::Residence;
use std::fmt::Write;

/// Less than this programs have in files, libraries and stacks anyway.
const WORTH_TELLING: u64 = 64 << 20;

/// The summary of `outcome` under a budget of `near` bytes; every line ends with a line feed. With `by_kernel` the kernel paged,
/// and what is known was seen from outside.
pub fn summary(outcome: &Outcome, near: u64, far: &str, by_kernel: bool) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "nearfar: {words}");
    };
    end(outcome, &mut line);
    if outcome.processes == 0 {
        line(format_args!("no process was managed: the library was not loaded into the program, or said why it could not serve"));
        return text;
    }
    if outcome.unmanaged > 0 {
        line(format_args!("{} processes could not be managed and ran in ordinary memory", outcome.unmanaged));
    }
    let peak = Bytes(outcome.near_peak());
    let wall = outcome.wall.as_secs_f64();
    if outcome.was_paged() && by_kernel {
        paged_by_kernel(outcome, peak, near, far, wall, &mut line);
    } else if outcome.was_paged() {
        paged(outcome, peak, near, far, wall, &mut line);
    } else if outcome.near_peak() > near {
        line(format_args!("nothing was paged, and near was not held: {peak} were used of {}, {wall:.1} s", Bytes(near)));
    } else if !fitted(outcome, near) {
        line(format_args!("nothing was paged (peak {peak} of {}, {wall:.1} s)", Bytes(near)));
    } else {
        line(format_args!("fits in near: nothing was paged (peak {peak} of {}, {wall:.1} s)", Bytes(near)));
    }
    let retries = outcome.counters.get(Counter::FarRetries);
    if retries > 0 {
        let again = if outcome.end == End::Status(STOPPED_BY_NEARFAR) { "" } else { ", and was right when tried again" };
        line(format_args!("far failed or gave back wrong bytes {retries} times{again}: is the device failing?"));
    }
    let over = outcome.counters.get(Counter::OverBudget);
    if over > 0 && by_kernel {
        line(format_args!(
            "near was exceeded by up to {}: memory was touched faster than far could take what was evicted",
            Bytes(over)
        ));
    } else if over > 0 {
        let tables = outcome.counters.get(Counter::MetadataPeak);
        let why = if tables > near / 4 {
            format!("tables took up to {} (data that is touched in scattered places)", Bytes(tables))
        } else {
            "everything else was pinned (mlock, I/O in flight)".to_owned()
        };
        line(format_args!("near was exceeded by up to {}: {why}", Bytes(over)));
    }
    // Emulated far is memory of the process, too.
    if !by_kernel && !far.starts_with("emu:") && is_outside(outcome, near) {
        line(format_args!(
            "a process had {} resident, {} more than near was charged with: files, shared memory, raw system calls and programs without the \
             library are not managed (a page that is mapped twice counts twice)",
            Bytes(outcome.resident_peak),
            Bytes(outcome.outside_near()),
        ));
    }
    let released = outcome.counters.get(Counter::ReleasedBytes);
    if released > 0 {
        line(format_args!(
            "{} were left to the program's own userfaultfds: never paged, their content counts as near",
            Bytes(released)
        ));
    }
    placed(outcome, &mut line);
    if outcome.still_running > 0 {
        let (count, s) = (outcome.still_running, if outcome.still_running == 1 { ("", "s") } else { ("es", "") });
        line(format_args!("{count} process{} of the job still run{}; the figures end here", s.0, s.1));
    }
    text
}

fn paged(outcome: &Outcome, peak: Bytes, near: u64, far: &str, wall: f64, line: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    let derived = Derived::of(outcome);
    let get = |counter| outcome.counters.get(counter);
    line(format_args!(
        "near {peak} at peak of {}{}; {} of the page faults on existing data were hits (served without waiting for far)",
        Bytes(near),
        counted_twice(outcome, near),
        percent(derived.near_hit_share),
    ));
    line(format_args!(
        "far {far}: {} in, {} out; threads waited {:.1} s in total, in a run of {wall:.1} s",
        Bytes(get(Counter::BytesIn)),
        Bytes(get(Counter::BytesOut)),
        get(Counter::StallNs) as f64 / 1e9,
    ));
    grains(outcome, line);
    match (derived.bound_s, derived.bound_far_s) {
        (Some(bound), Some(far_s)) => line(format_args!(
            "efficiency {} of the bound, {bound:.1} s: the larger of {far_s:.1} s to move these bytes at the best rate seen ({}/s over 64 MiB) \
             and {:.1} s of computing",
            percent(derived.efficiency_vs_bound),
            Bytes(get(Counter::FarPeakBps)),
            derived.bound_compute_s,
        )),
        _ => line(format_args!("too few bytes were moved to say what the bound is")),
    }
}

/// How much came at a time.
fn grains(outcome: &Outcome, line: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    let get = |counter| outcome.counters.get(counter);
    let misses: u64 = GRAINS.iter().map(|&(_, counter)| get(counter)).sum();
    if misses == 0 {
        return;
    }
    let share = |counter| 100.0 * get(counter) as f64 / misses as f64;
    let told = GRAINS.iter().filter(|&&(_, counter)| share(counter) >= 0.5);
    let words: Vec<_> = told.map(|&(grain, counter)| format!("{grain} ({:.0} %)", share(counter))).collect();
    let ahead = get(Counter::PrefetchBytes) as f64 / get(Counter::BytesIn).max(1) as f64;
    line(format_args!(
        "reads that a thread had to ask for brought {}; {} of what was read came ahead of demand",
        words.join(", "),
        percent(Some(ahead))
    ));
}

/// Why near may read above its budget.
fn counted_twice(outcome: &Outcome, near: u64) -> &'static str {
    let forked = outcome.counters.get(Counter::Forks) > 0;
    // Tables may take a thousandth more at a moment.
    let most = near + near / 1000 + outcome.counters.get(Counter::OverBudget);
    if forked && outcome.near_peak() > most { " (after a fork each process counts what they share)" } else { "" }
}

fn paged_by_kernel(
    outcome: &Outcome,
    peak: Bytes,
    near: u64,
    far: &str,
    wall: f64,
    line: &mut impl FnMut(std::fmt::Arguments<'_>),
) {
    let get = |counter| Bytes(outcome.counters.get(counter));
    line(format_args!("near {peak} at peak of {}, by looking every few ms; run of {wall:.1} s", Bytes(near)));
    line(format_args!(
        "far {far}: kernel paging of a mapped file (no userfaultfd), about {} in, {} out; how long threads waited is not known",
        get(Counter::BytesIn),
        get(Counter::BytesOut),
    ));
}

/// The summary of a run between nodes, of which `residence` was seen. Without `preloaded` no process could be managed.
pub fn on_nodes(outcome: &Outcome, residence: &Residence, placement: &Placement, preloaded: bool) -> String {
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "nearfar: {words}");
    };
    end(outcome, &mut line);
    if preloaded && outcome.processes == 0 {
        line(format_args!(
            "no process was managed: the library was not loaded into the program, or said why it could not serve; the kernel placed its memory"
        ));
    }
    let (peak, wall) = (&residence.peak, outcome.wall.as_secs_f64());
    let nodes = |set: &NodeSet| format!("node{} {set}", if set.len() == 1 { "" } else { "s" });
    if residence.looks == 0 {
        line(format_args!(
            "where its memory was could not be seen: the program ended too soon, or /proc/PID/numa_maps cannot be read"
        ));
    } else {
        let mut words = format!("near ({}) {} at peak", nodes(&placement.near), Bytes(peak.near));
        if !placement.far.is_empty() {
            let _ = write!(words, ", far ({}) {}", nodes(&placement.far), Bytes(peak.far));
        }
        if peak.other > 0 {
            let _ = write!(words, ", other nodes {}", Bytes(peak.other));
        }
        let times = if residence.looks == 1 { "look" } else { "looks" };
        line(format_args!("{words}; seen at {} {times}, in a run of {wall:.1} s", residence.looks));
    }
    placed(outcome, &mut line);
    text
}

/// What became of objects that were placed one by one.
fn placed(outcome: &Outcome, line: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    let get = |counter| outcome.counters.get(counter);
    let (placed, spilled, refused) = (get(Counter::PlacedObjects), get(Counter::SpilledObjects), get(Counter::NearRefused));
    if placed + spilled > 0 {
        line(format_args!("placed near: {placed} objects of {} in total", Bytes(get(Counter::PlacedBytes))));
    }
    if spilled > 0 {
        line(format_args!("near was full: {spilled} objects of {} went to far", Bytes(get(Counter::SpilledBytes))));
    }
    if refused > 0 {
        line(format_args!("near was full: {refused} allocations failed"));
    }
    let waited = get(Counter::NearWaitNs);
    if waited > 0 {
        line(format_args!("near was full: threads waited {:.1} s in total for room", waited as f64 / 1e9));
    }
    let asked = get(Counter::SitesAsked);
    if asked > 0 {
        line(format_args!("the plan named {} of {asked} allocations", get(Counter::SitesMatched)));
    }
}

fn end(outcome: &Outcome, line: &mut impl FnMut(std::fmt::Arguments<'_>)) {
    match outcome.end {
        End::Signal(signal) => line(format_args!("the program was ended by {}", nearfar_sys::child::signal_name(signal))),
        End::Status(STOPPED_BY_NEARFAR) => {
            line(format_args!("the program was stopped, because its data could not be kept right"))
        }
        End::Status(_) => {}
    }
}

/// True when all of the program's memory was seen, and it got all that it wanted.
fn fitted(outcome: &Outcome, near: u64) -> bool {
    let ended = !matches!(outcome.end, End::Signal(_) | End::Status(STOPPED_BY_NEARFAR));
    let refused = outcome.counters.get(Counter::AllocationsRefused);
    ended && outcome.unmanaged == 0 && refused == 0 && !is_outside(outcome, near)
}

/// True when a process had much memory beyond what was charged.
fn is_outside(outcome: &Outcome, near: u64) -> bool {
    outcome.outside_near() > WORTH_TELLING.max(near / 8)
}

/// A share as people read it; a dash when there is none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_host::residence::Resident;

    fn outcome(counters: &[(Counter, u64)]) -> Outcome {
        Outcome::sample(10.0, counters)
    }

    #[test]
    fn one_line_when_everything_fits() {
        let text = summary(&outcome(&[(Counter::NearPeak, 5 << 20)]), 800 << 20, "/var/tmp", false);
        assert_eq!(text, "nearfar: fits in near: nothing was paged (peak 5.0 MiB of 800.0 MiB, 10.0 s)\n");
    }

    /// A process without address space for frames (`ulimit -v`) goes on in ordinary memory.
    #[test]
    fn what_did_not_fit_is_not_said_to_fit() {
        let text = summary(&outcome(&[(Counter::NearPeak, 300 << 20)]), 64 << 20, "/var/tmp", false);
        assert_eq!(text, "nearfar: nothing was paged, and near was not held: 300.0 MiB were used of 64.0 MiB, 10.0 s\n");
    }

    #[test]
    fn what_was_not_seen_is_not_said_to_fit() {
        let seen = outcome(&[(Counter::NearPeak, 1 << 20)]);
        let killed = Outcome { end: End::Signal(9), ..seen.clone() };
        let unmanaged = Outcome { unmanaged: 1, ..seen.clone() };
        let outside = Outcome { resident_peak: 300 << 20, ..seen.clone() };
        let refused = outcome(&[(Counter::NearPeak, 1 << 20), (Counter::AllocationsRefused, 1)]);
        for outcome in [killed, unmanaged, outside, refused] {
            let text = summary(&outcome, 64 << 20, "/var/tmp", false);
            assert!(text.contains("nearfar: nothing was paged (peak 1.0 MiB of 64.0 MiB"), "{text}");
        }
        assert!(summary(&seen, 64 << 20, "/var/tmp", false).contains("fits in near"));
    }

    #[test]
    fn far_that_failed_for_good_was_never_right() {
        let failed = outcome(&[(Counter::FarRetries, 3)]);
        let stopped = Outcome { end: End::Status(STOPPED_BY_NEARFAR), ..failed.clone() };
        assert!(summary(&failed, 64 << 20, "/var/tmp", false).contains("3 times, and was right"));
        assert!(summary(&stopped, 64 << 20, "/var/tmp", false).contains("3 times: is the device"));
    }

    #[test]
    fn paged_runs_say_how_each_figure_was_found() {
        let text = summary(
            &outcome(&[
                (Counter::NearPeak, 799 << 20),
                (Counter::EvictedBytes, 4 << 30),
                (Counter::BytesIn, 3 << 30),
                (Counter::BytesOut, 1 << 30),
                (Counter::FaultsDemand, 4),
                (Counter::Demand4K, 3),
                (Counter::Demand256K, 1),
                (Counter::PrefetchBytes, 1 << 30),
                (Counter::FaultsStaged, 12),
                (Counter::StallNs, 7_000_000_000),
                (Counter::FarPeakBps, 1 << 30),
            ]),
            800 << 20,
            "/var/tmp",
            false,
        );
        for part in [
            "near 799.0 MiB at peak of 800.0 MiB; 75.0 %",
            "3.0 GiB in, 1.0 GiB out",
            "reads that a thread had to ask for brought 4K (75 %), 64K to 256K (25 %); 33.3 % of what was read came ahead of demand",
            "efficiency 40.0 % of the bound, 4.0 s",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.lines().all(|line| line.starts_with("nearfar: ")));
    }

    #[test]
    fn near_above_its_budget_is_explained() {
        let forks = [(Counter::EvictedBytes, 1), (Counter::Forks, 4), (Counter::NearPeak, 900 << 20)];
        assert!(
            summary(&outcome(&forks), 800 << 20, "/var/tmp", false).contains("of 800.0 MiB (after a fork each process counts")
        );
        assert!(!summary(&outcome(&forks), 900 << 20, "/var/tmp", false).contains("after a fork"));
    }

    #[test]
    fn memory_that_is_not_managed_is_told() {
        let mut run = outcome(&[(Counter::NearPeak, 100 << 20)]);
        run.resident_peak = 600 << 20;
        assert!(summary(&run, 800 << 20, "/var/tmp", false).contains("600.0 MiB resident, 500.0 MiB more"));
        assert!(!summary(&run, 800 << 20, "emu:bw=3G,lat=1us", false).contains("resident"));
        run.resident_peak = 200 << 20;
        assert!(!summary(&run, 800 << 20, "/var/tmp", false).contains("resident"));
    }

    #[test]
    fn kernel_paging_is_named() {
        let run = outcome(&[(Counter::NearPeak, 900 << 20), (Counter::EvictedBytes, 1), (Counter::OverBudget, 100 << 20)]);
        let text = summary(&run, 800 << 20, "/var/tmp", true);
        assert!(text.contains("kernel paging of a mapped file") && text.contains("exceeded by up to 100.0 MiB"), "{text}");
        assert!(!text.contains("hits") && !text.contains("pinned"), "{text}");
    }

    #[test]
    fn runs_between_nodes_say_where_memory_lay() {
        let set = |nodes: &[u32]| nodes.iter().copied().collect::<NodeSet>();
        let placement = Placement { near: set(&[1]), far: set(&[0, 2]), ..Placement::default() };
        let peak = Resident { near: 96 << 20, far: 32 << 20, other: 0 };
        let residence = Residence { looks: 4, peak, near_peak_bytes: peak.near };
        let text = on_nodes(&outcome(&[]), &residence, &placement, true);
        assert_eq!(
            text,
            "nearfar: near (node 1) 96.0 MiB at peak, far (nodes 0,2) 32.0 MiB; seen at 4 looks, in a run of 10.0 s\n"
        );
        let counters = [(Counter::PlacedObjects, 2), (Counter::SpilledObjects, 1), (Counter::SpilledBytes, 1 << 20)];
        let text = on_nodes(&outcome(&counters), &residence, &placement, true);
        assert!(
            text.contains("placed near: 2 objects") && text.contains("near was full: 1 objects of 1.0 MiB went to far"),
            "{text}"
        );
        let mut run = outcome(&[]);
        run.processes = 0;
        let text = on_nodes(&run, &Residence::default(), &placement, true);
        assert!(text.contains("no process was managed") && text.contains("ended too soon"), "{text}");
        assert!(!on_nodes(&run, &residence, &placement, false).contains("no process"));
    }

    #[test]
    fn deaths_and_strangers_are_told() {
        let mut run = outcome(&[]);
        run.end = End::Signal(9);
        run.processes = 0;
        let text = summary(&run, 1 << 30, "/var/tmp", false);
        assert!(text.contains("SIGKILL") && text.contains("no process was managed"), "{text}");
    }
}
