//! What each kind of report says in a sentence or two, made by rules from its data; it comes before pictures and tables. Pure.
//!
//! What is not known is left out, never guessed. Suites have more to say: `suite::conclusion`.

use crate::files::advice::AdviceFile;
use nearfar_core::node::{Figure, Measure, Memory, Node, Operation, Role, compare, words};
use nearfar_core::profile::summary::{Estimate, Summary};
use serde_json::Value;

fn seconds(value: f64) -> String {
    format!("{} s", words::digits(value))
}

/// Of a run file: how it ended, how long it took, how much of that it waited.
pub fn run(run: &Value) -> String {
    let exit = &run["exit"];
    let mut told = match (exit["status"].as_u64(), exit["signal_name"].as_str()) {
        _ if exit["stopped_by_nearfar"].as_bool() == Some(true) => {
            "nearfar stopped it: its data could not be kept right. ".to_owned()
        }
        (Some(0), _) => String::new(),
        (Some(status), _) => format!("It ended with status {status}. "),
        (None, Some(signal)) => format!("It was ended by {signal}. "),
        _ => String::new(),
    };
    let near = run["near_bytes"].as_u64().filter(|bytes| *bytes > 0);
    let near = near.map_or(String::new(), |bytes| format!(" with {} of near memory", words::size(bytes)));
    told += &match run["wall_s"].as_f64() {
        Some(wall) => format!("It ran for {}{near}", seconds(wall)),
        None => format!("It ran{near}"),
    };
    let count = |name: &str| run["counters"][name].as_u64();
    match (count("bytes_in"), count("bytes_out")) {
        (Some(0), Some(0)) => return told + ", and nothing had to go to far memory.",
        (Some(read), Some(written)) => {
            told += &format!("; {} came from far memory and {} went there", words::size(read), words::size(written));
        }
        _ => {}
    }
    let derived = &run["derived"];
    told += &match derived["stall_share"].as_f64() {
        Some(share) if share > 1.0 => format!(". {} threads on average waited for pages at any time", words::digits(share)),
        Some(share) => format!(". Threads waited for pages for {} of the time", words::percent(share)),
        None => String::new(),
    };
    told += &derived["near_hit_share"]
        .as_f64()
        .map_or(String::new(), |share| format!("; {} of the faults found their page in near memory", words::percent(share)));
    told += &derived["bound_s"].as_f64().map_or(String::new(), |bound| {
        format!(". A run that computes this and moves these bytes takes {} at least, as an estimate", seconds(bound))
    });
    told + "."
}

/// The share of faults that found their page in near, for the picture.
pub fn hits(run: &Value) -> Option<f64> {
    run["derived"]["near_hit_share"].as_f64().filter(|share| (0.0..=1.0).contains(share))
}

fn in_role(node: &Node, role: Role) -> Vec<Memory> {
    node.measured_memories().into_iter().filter(|&memory| node.role(memory) == Some(role)).collect()
}

/// Bytes per second of the triad, or of what is fastest where there is none; and nanoseconds of a load.
struct Speed {
    kind: &'static str,
    rate: Option<(f64, &'static str)>,
    load: Option<f64>,
}

fn speed(node: &Node, role: Role) -> Option<Speed> {
    let memories = in_role(node, role);
    let rows = || {
        node.bandwidth.iter().filter(|row| memories.contains(&row.memory) && row.rate.is_usable() && !row.rate.is_theoretical())
    };
    let best = |only: Option<Operation>| {
        let fitting = rows().filter(|row| only.is_none_or(|operation| row.operation == operation));
        fitting.max_by(|a, b| a.rate.median.total_cmp(&b.rate.median)).map(|row| (row.rate.median, row.operation.name()))
    };
    let loads = memories.iter().flat_map(|&memory| node.settled_latencies(memory)).map(|row| row.time.median);
    let kind = memories.first().map_or("", |&memory| node.kind(memory).name());
    let speed = Speed { kind, rate: best(Some(Operation::Triad)).or_else(|| best(None)), load: loads.reduce(f64::min) };
    (speed.rate.is_some() || speed.load.is_some()).then_some(speed)
}

fn told(name: &str, speed: &Speed) -> String {
    let kind = if speed.kind.is_empty() { String::new() } else { format!(" ({})", speed.kind) };
    let rate = speed.rate.map(|(rate, operation)| format!("gives {} ({operation})", words::rate(rate)));
    let load = speed.load.map(|load| format!("answers a load after {}", words::time(load)));
    let what: Vec<String> = [rate, load].into_iter().flatten().collect();
    format!("{name}{kind} {}", what.join(" and "))
}

/// Of a machine: what its memories give.
pub fn machine(node: &Node) -> String {
    let usable = |figure: &&Figure| figure.is_usable();
    let far_tier = node.far.iter().find_map(|tier| {
        let best = tier.points.iter().map(|point| &point.rate).filter(usable).map(|rate| rate.median).reduce(f64::max)?;
        Some(format!("The far tier {} gives up to {}.", tier.spec, words::rate(best)))
    });
    let memories = match (speed(node, Role::Near), speed(node, Role::Far)) {
        (Some(near), Some(far)) => {
            let times = near.rate.zip(far.rate).filter(|(near, far)| near.1 == far.1 && far.0 > 0.0);
            let times = times
                .map_or(String::new(), |(near, far)| format!(": near has {} times the bandwidth", words::digits(near.0 / far.0)));
            Some(format!("{}; {}{times}.", told("Near memory", &near), told("far memory", &far)))
        }
        (Some(only), None) => Some(format!("{}.", told("Its memory", &only))),
        (None, Some(far)) => Some(format!("{}.", told("Far memory", &far))),
        (None, None) => None,
    };
    let all: Vec<String> = [memories, far_tier].into_iter().flatten().collect();
    if all.is_empty() { "Nothing of this machine's memory was measured.".to_owned() } else { all.join(" ") }
}

/// Of two machines side by side: what the first reaches of the second.
pub fn beside(first: &Node, other: &Node) -> String {
    let ratios = compare(first, other);
    let find =
        |start: &str, inside: &str| ratios.iter().find(|ratio| ratio.what.starts_with(start) && ratio.what.contains(inside));
    let shown = [
        find("triad", "near memory").or_else(|| ratios.iter().find(|ratio| ratio.measure == Measure::Rate)),
        find("latency of near memory", ""),
        find("triad", "far memory"),
    ];
    let mut lines: Vec<String> = Vec::new();
    for ratio in shown.into_iter().flatten() {
        let (ours, theirs) = (ratio.measure.show(ratio.ours), ratio.measure.show(ratio.theirs));
        let share = if ratio.measure.more_is_better() {
            words::percent(ratio.ratio)
        } else {
            format!("{} times", words::digits(ratio.ratio))
        };
        let line = format!("{}: {share} ({ours}, there {theirs})", ratio.what);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return format!("{} and {} have no figure in common.", first.name, other.name);
    }
    format!("{} beside {}: {}.", first.name, other.name, lines.join("; "))
}

/// Of a profile: which objects the traffic comes from, and what near is worth.
pub fn profile(summary: &Summary) -> String {
    let all: f64 = summary.objects.iter().map(|object| object.total().value).sum();
    let Some(first) = summary.objects.first().filter(|_| all > 0.0) else {
        return "No traffic was seen: accesses were not observed, or caches held all.".to_owned();
    };
    let mut sum = 0.0;
    let most = summary.objects.iter().take_while(|object| {
        let before = sum;
        sum += object.total().value;
        before < 0.9 * all
    });
    let most: Vec<_> = most.collect();
    let bytes: u64 = most.iter().map(|object| object.peak_bytes).sum();
    let share = words::percent(first.total().value / all);
    let mut told = if most.len() == 1 {
        format!("{share} of the traffic is with one object, {} ({})", first.name, words::size(first.peak_bytes))
    } else {
        format!(
            "{} of {} objects ({} at most) have nine tenths of the traffic; {} alone has {share}",
            most.len(),
            summary.objects.len(),
            words::size(bytes),
            first.name
        )
    };
    if !summary.misses.points.is_empty() && summary.peak_bytes > 0 {
        let third = summary.peak_bytes as f64 / 3.0;
        told += &format!(
            ". With a third of its memory near ({}), {} of the visits to pages would miss",
            words::size(third as u64),
            words::percent(summary.misses.at(third))
        );
    }
    told + "."
}

/// Of advice: what the plan is predicted to take between all far and all near, and what came of it.
pub fn advice(file: &AdviceFile) -> String {
    let times = &file.advice.times;
    let near = words::size(file.near_bytes.max(0.0) as u64);
    let known = |time: &Estimate| time.value > 0.0;
    let mut told = if known(&times.plan) && known(&times.all_far) && known(&times.all_near) {
        let gain = times.all_far.value - times.all_near.value;
        let share = if gain > 0.0 { (times.all_far.value - times.plan.value) / gain } else { 1.0 };
        format!(
            "With {near} near, the plan is predicted to run for {}: {} of what all near would gain ({} with everything far, {} with \
             everything near).",
            seconds(times.plan.value),
            words::percent(share.clamp(0.0, 1.0)),
            seconds(times.all_far.value),
            seconds(times.all_near.value)
        )
    } else {
        format!("There is advice for {near} near, without predicted times.")
    };
    let verified = file.verified.iter().flat_map(|verified| &verified.rows).find(|row| row.name == "Mixed" && row.median > 0.0);
    if let Some(row) = verified {
        told += &format!(
            " Measured: {} (predicted {}, {:+.0} %).",
            seconds(row.median),
            seconds(row.predicted.value),
            100.0 * row.error
        );
    } else {
        told += " It was not verified by a run.";
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::advice::{Row, Verified};
    use crate::files::preset;
    use crate::ui::chart::profile::tests::summary;

    #[test]
    fn a_run_in_a_sentence() {
        let value = serde_json::json!({
            "near_bytes": 838_860_800, "wall_s": 12.5, "exit": { "status": 0 }, "counters": { "bytes_in": 1 << 30, "bytes_out": 0 },
            "derived": { "stall_share": 0.3, "near_hit_share": 0.75, "bound_s": 9.0 }
        });
        assert_eq!(
            run(&value),
            "It ran for 12.5 s with 800 MiB of near memory; 1 GiB came from far memory and 0 B went there. Threads waited for pages for 30 % \
             of the time; 75 % of the faults found their page in near memory. A run that computes this and moves these bytes takes 9.00 s at \
             least, as an estimate."
        );
        let killed = serde_json::json!({ "exit": { "status": null, "signal_name": "SIGSEGV" }, "counters": { "bytes_in": 0, "bytes_out": 0 } });
        assert_eq!(run(&killed), "It was ended by SIGSEGV. It ran, and nothing had to go to far memory.");
        assert_eq!(run(&Value::Null), "It ran.");
    }

    #[test]
    fn machines_in_a_sentence() {
        let (knl, max) = (preset::find("knl-flat").expect("found"), preset::find("xeon-max-9480-flat").expect("found"));
        let told = machine(&knl);
        assert!(
            told.starts_with("Near memory (HBM) gives ")
                && told.contains("far memory (DRAM)")
                && told.contains("times the bandwidth"),
            "{told}"
        );
        assert!(machine(&Node::default()).contains("Nothing"));
        let told = beside(&knl, &max);
        assert!(told.contains("triad from near memory (HBM)") && told.contains("% ("), "{told}");
        assert!(beside(&Node::default(), &max).contains("no figure in common"));
    }

    #[test]
    fn a_profile_in_a_sentence() {
        let told = profile(&summary());
        assert!(told.contains("of the traffic") && told.contains("objects"), "{told}");
        assert!(profile(&Summary { objects: Vec::new(), ..summary() }).contains("No traffic"));
    }

    #[test]
    fn advice_in_a_sentence() {
        let of = |value: f64| Estimate { value, ..Estimate::default() };
        let mut file = AdviceFile { near_bytes: 1024.0 * 1024.0 * 1024.0, ..AdviceFile::default() };
        assert!(advice(&file).contains("without predicted times"));
        file.advice.times.all_far = of(10.0);
        file.advice.times.all_near = of(2.0);
        file.advice.times.plan = of(4.0);
        assert!(
            advice(&file)
                .starts_with("With 1 GiB near, the plan is predicted to run for 4.00 s: 75 % of what all near would gain")
        );
        let row = Row { name: "Mixed".into(), median: 5.0, predicted: of(4.0), error: -0.2, ..Row::default() };
        file.verified = Some(Verified { rows: vec![row], ..Verified::default() });
        assert!(advice(&file).ends_with("Measured: 5.00 s (predicted 4.00 s, -20 %)."), "{}", advice(&file));
    }
}
