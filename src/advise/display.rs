//! What is said, as text: objects with their gain and the reason, predicted times, run time by bytes of near.

use super::scaling::Wide;
use crate::ui::table::{align_right, for_output};
use nearfar_core::advise::advice::{Advice, Item};
use nearfar_core::advise::machine::Machine;
use nearfar_core::advise::reason::NO_GAIN;
use nearfar_core::profile::summary::{Estimate, Summary};
use nearfar_core::units::Bytes;
use std::fmt::Write;

/// Objects in the table.
const ROWS: usize = 20;
/// And so many at least.
const LEAST_ROWS: usize = 5;
/// Letters of the longest bar.
pub const BAR: usize = 40;
const NAME: usize = 44;
/// Letters of a line where the terminal does not say.
const WIDTH: u16 = 140;

/// "12.3 s +- 0.4".
pub fn seconds(estimate: &Estimate) -> String {
    let half = (estimate.high - estimate.low) / 2.0;
    format!("{:.*} s +- {:.*}", digits(estimate.value), estimate.value, digits(half), half)
}

/// Seconds as one says them of something to be waited for: "70 s", "12 min", "1.5 h".
pub fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 99.5 => format!("{seconds:.0} s"),
        _ if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

fn digits(value: f64) -> usize {
    match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 0.995 => 1,
        value if value >= 0.05 => 2,
        _ => 3,
    }
}

/// A bar of `value` where `most` has the whole length.
pub fn bar(value: f64, most: f64) -> String {
    let letters = if most > 0.0 { (value / most * BAR as f64).round() as usize } else { 0 };
    "#".repeat(letters.min(BAR))
}

fn size(bytes: f64) -> String {
    Bytes(bytes.max(0.0) as u64).to_string()
}

/// At most `most` letters of `text`.
pub fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 2).chain("..".chars()).collect() }
}

fn tier(item: &Item) -> String {
    match item.near {
        _ if item.nameless => "far (!)".to_owned(),
        near if near >= 1.0 - 1e-9 => "near".to_owned(),
        near if near > 0.0 => format!("near {:.0} %", 100.0 * near),
        _ => "far".to_owned(),
    }
}

/// Everything.
pub fn text(summary: &Summary, machine: &Machine, advice: &Advice, near: f64, wide: &Wide) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    line(format!(
        "{}: {} at most, profiled for {:.1} s; {} of near on {}, far {}",
        summary.program,
        Bytes(summary.peak_bytes),
        summary.wall_s,
        size(near),
        machine.name,
        machine.far_name()
    ));
    line(wide_words(machine, wide));
    for words in &advice.words {
        line(format!("* {words}"));
    }
    line(String::new());
    line(objects(advice));
    line(String::new());
    line(predictions(advice));
    line(String::new());
    line(by_near(advice, near));
    text
}

/// "predicted for 4 ranks of 16 threads ...".
fn wide_words(machine: &Machine, wide: &Wide) -> String {
    let threads = machine.scaling.threads;
    let profiled = machine.scaling.profiled;
    let of_threads = match threads == profiled {
        true => format!("{threads:.0} threads, as profiled"),
        false => format!("{threads:.0} threads (profiled: {profiled:.0})"),
    };
    if wide.part == 1.0 {
        return format!("predicted for {of_threads}");
    }
    format!(
        "predicted for {} ranks that share the machine, of which {:.0} were profiled: these have {of_threads}, and {:.3} of near and of the \
         memories' bandwidth",
        wide.ranks,
        wide.part * f64::from(wide.ranks),
        wide.part
    )
}

/// The arithmetic of an object's gain.
pub fn explained(lines: &[(String, String)]) -> String {
    let widest = lines.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    let mut text = "\n".to_owned();
    for (what, how) in lines {
        let _ = writeln!(text, "{what:<widest$}  {how}");
    }
    text
}

fn objects(advice: &Advice) -> String {
    let mut table = for_output(WIDTH);
    table.set_header(["object", "bytes", "gain of near", "tier", "why"]);
    let counts = |item: &Item| item.near > 0.0 || item.gain.value >= NO_GAIN * advice.times.all_far.value;
    let shown = advice.items.iter().enumerate().filter(|(at, item)| *at < LEAST_ROWS || counts(item)).take(ROWS);
    let mut rows = 0;
    for (_, item) in shown {
        rows += 1;
        let gain = if item.gain.value == 0.0 { "-".to_owned() } else { format!("-{}", seconds(&item.gain)).replace("--", "+") };
        table.add_row([short(&item.name, NAME), Bytes(item.bytes).to_string(), gain, tier(item), item.why.clone()]);
    }
    align_right(&mut table, [1, 2]);
    let mut text = table.to_string();
    if advice.items.len() > rows {
        text += &format!("\nand {} more that gain less", advice.items.len() - rows);
    }
    if advice.items.iter().take(ROWS).any(|item| item.nameless) {
        text += "\n(!) no rule can name it: it stays far, in the prediction too";
    }
    text
}

fn predictions(advice: &Advice) -> String {
    let times = &advice.times;
    let rows = [
        ("all far", &times.all_far),
        ("plan", &times.plan),
        ("all near", &times.all_near),
        ("cache", &times.cache),
        ("hybrid", &times.hybrid),
    ];
    let most = rows.iter().map(|row| row.1.value).fold(0.0, f64::max);
    let mut text = format!("predicted run time (plan: {} near at most{})\n", size(advice.planned), best(advice));
    for (name, time) in rows {
        let _ = writeln!(text, "  {name:<9} {:>18}  {}", seconds(time), bar(time.value, most));
    }
    text.trim_end().to_owned()
}

fn best(advice: &Advice) -> String {
    if advice.exact {
        format!("; under the model no other set of objects is {:.0} % faster", 100.0 * advice.within)
    } else {
        String::new()
    }
}

fn by_near(advice: &Advice, near: f64) -> String {
    let most = advice.curve.iter().map(|point| point.plan.max(point.cache)).fold(0.0, f64::max);
    let mut text = "run time by bytes of near, objects placed by plan (cache mode)\n".to_owned();
    for point in &advice.curve {
        let here = if point.near == near { " <- --near" } else { "" };
        let _ = writeln!(
            text,
            "  {:>10}  {:>7.2} s  {} ({:.2} s){here}",
            size(point.near),
            point.plan,
            bar(point.plan, most),
            point.cache
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_bars() {
        assert_eq!(seconds(&Estimate { value: 12.34, low: 12.0, high: 12.8 }), "12.3 s +- 0.40");
        assert_eq!(seconds(&Estimate::exact(0.0123)), "0.012 s +- 0.000");
        assert_eq!((bar(1.0, 2.0).len(), bar(3.0, 2.0).len(), bar(1.0, 0.0).len()), (BAR / 2, BAR, 0));
        assert_eq!(short("abcdef", 4), "ab..");
        assert_eq!([7.4, 99.0, 100.0, 5399.0, 5400.0].map(duration), ["7 s", "99 s", "2 min", "90 min", "1.5 h"]);
    }
}
