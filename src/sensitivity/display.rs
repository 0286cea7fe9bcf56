//! The judgement and its numbers, as a table for people and as JSON.

use super::session::{Condition, Samples, Session};
use crate::ui::table::for_output;
use nearfar_core::sensitivity::{Evidence, Finding, Judgement, Packing, Spread, show};
use serde_json::{Value, json};
use std::fmt::Write;

/// The name of a trial.
fn trials<'a>(judgement: &'a Judgement, evidence: &Evidence) -> [(&'static str, &'static str, &'a Result<Finding, String>); 3] {
    let half = match evidence.packing {
        Packing::HalfTheCores => ("half", "half of the cores"),
        Packing::TwiceTheNodes => ("half", "twice the memories for as many threads"),
    };
    [
        ("hog", "beside a bandwidth hog", &judgement.hog),
        (half.0, half.1, &judgement.half),
        ("clock", "lower clock", &judgement.clock),
    ]
}

fn seconds(samples: &Samples, condition: Condition) -> Option<Spread> {
    Spread::of(&samples.of(condition).iter().map(|sample| sample.seconds).collect::<Vec<_>>())
}

fn hog_rate(samples: &Samples) -> Option<f64> {
    let rates: Vec<f64> = samples.of(Condition::Hog).iter().filter_map(|sample| sample.hog).collect();
    Spread::of(&rates).map(|spread| spread.median)
}

/// For people.
pub fn text(session: &Session, samples: &Samples, evidence: &Evidence, judgement: &Judgement) -> String {
    let mut text = format!("\n{} (confidence: {})\n", judgement.verdict.words(), judgement.confidence.word());
    let mut times = for_output(110);
    times.set_header(["run", "seconds: median (interval)", "CPUs allowed", "note"]);
    for (condition, runs) in &samples.0 {
        let Some(spread) = seconds(samples, *condition) else { continue };
        let split = session.plan.split.as_ref().ok();
        let cpus = match condition {
            Condition::AsIs | Condition::LowClock => Some(&session.plan.all),
            Condition::Packed => session.plan.packed.as_ref(),
            _ => split.map(|split| &split.program),
        };
        let note = match condition {
            Condition::AsIs => format!("{} runs each; used {:.2} CPUs", runs.len(), evidence.cpus_used),
            Condition::Hog => {
                let rate = hog_rate(samples).unwrap_or(0.0) / 1e9;
                format!("hog on CPUs {}: {rate:.2} GB/s", split.map(|split| split.hog.to_string()).unwrap_or_default())
            }
            Condition::LowClock => session.clock().map(|(low, high)| format!("{low} of {high} MHz")).unwrap_or_default(),
            _ => String::new(),
        };
        let time = format!("{:.3} ({:.3}-{:.3})", spread.median, spread.low, spread.high);
        times.add_row([condition.words(), &time, &cpus.map(ToString::to_string).unwrap_or_default(), &note]);
    }
    let mut shares = for_output(110);
    shares.set_header(["change", "program", "triad", "arithmetic", "share of its time that follows memory"]);
    for (_, name, finding) in trials(judgement, evidence) {
        match finding {
            Ok(found) => {
                let percent = |share: f64| share * 100.0;
                let Spread { median, low, high } = found.share;
                let share = format!("{:.0} % ({:.0} to {:.0})", percent(median), percent(low), percent(high));
                shares.add_row([name, &show(&found.program), &show(&found.triad), &show(&found.compute), &share]);
            }
            Err(why) => {
                shares.add_row([name, "-", "-", "-", &format!("cannot tell: {why}")]);
            }
        }
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "{times}\n{shares}\n");
    for note in &judgement.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if session.plan.split.as_ref().is_ok_and(|split| split.share_cores) {
        text += "note: program and hog shared a core: caches of the core were shared as well\n";
    }
    text += "Times are of whole runs. Followed memory is bandwidth, latency under load and shared cache together; see \"nearfar help sensitivity\".\n";
    text
}

fn spread(spread: &Spread) -> Value {
    json!({"median": spread.median, "low": spread.low, "high": spread.high})
}

/// For programs.
pub fn json(session: &Session, samples: &Samples, evidence: &Evidence, judgement: &Judgement) -> Value {
    let findings: serde_json::Map<String, Value> = trials(judgement, evidence)
        .into_iter()
        .map(|(key, what, finding)| {
            let value = match finding {
                Ok(found) => json!({
                    "what": what,
                    "program": spread(&found.program),
                    "triad": spread(&found.triad),
                    "compute": spread(&found.compute),
                    "share": spread(&found.share),
                }),
                Err(why) => json!({"what": what, "missing": why}),
            };
            (key.to_owned(), value)
        })
        .collect();
    let runs: Vec<Value> = samples
        .0
        .iter()
        .map(|(condition, runs)| {
            json!({
                "condition": condition.words(),
                "seconds": runs.iter().map(|run| run.seconds).collect::<Vec<_>>(),
                "cpu_seconds": runs.iter().map(|run| run.cpu_seconds).collect::<Vec<_>>(),
            })
        })
        .collect();
    let program: Vec<_> = session.argv.iter().map(|word| word.to_string_lossy()).collect();
    json!({
        "format": 1,
        "program": program,
        "verdict": judgement.verdict,
        "confidence": judgement.confidence,
        "trials": findings,
        "notes": judgement.notes,
        "cpus": session.plan.all.to_string(),
        "cpus_used": evidence.cpus_used,
        "others_cpus": evidence.others_cpus,
        "hog_bytes_per_s": hog_rate(samples),
        "runs": runs,
    })
}
