//! What a profile says, as part of the page: objects with their traffic, routines, how much near memory is worth what, and where the
//! program stands on the roofline of a machine, if one is described beside it.

use super::answers;
use crate::profile::display::{kind, pattern};
use crate::ui::chart::profile::{live, misses, traffic};
use crate::ui::chart::roofline::{self, Application};
use crate::ui::chart::roofs;
use crate::ui::html::{self, Cell, heading, method, paragraph, section, table};
use nearfar_core::node::{Node, words};
use nearfar_core::profile::record::Method;
use nearfar_core::profile::roofline::{Counted, brackets};
use nearfar_core::profile::summary::{Estimate, ObjectGroup, Routine, Summary};

/// Rows of the table of objects and of routines.
const ROWS: usize = 40;

/// The heading: program and arguments.
pub fn title(summary: &Summary) -> String {
    format!("{} {}", summary.program, summary.args.join(" ")).trim_end().to_owned()
}

/// The sections on a profile; `node` is the machine of the roofline.
pub fn sections(summary: &Summary, node: Option<&Node>) -> String {
    let charts = [traffic(summary), live(summary), misses(summary)];
    let figures: String = charts.into_iter().flatten().map(|svg| format!("<figure>{svg}</figure>\n")).collect();
    let roofline = node.map_or(String::new(), |node| on_roofline(summary, node));
    let answer = html::conclusion(&answers::profile(summary), &summary.notes);
    [answer, figures, roofline, objects(summary), routines(summary), heading("How it was observed"), facts(summary)].concat()
}

fn bytes(value: f64) -> String {
    words::size(value.max(0.0) as u64)
}

/// The value with its interval.
fn interval(estimate: &Estimate) -> String {
    if estimate.high > estimate.low {
        format!("{} ({} – {})", bytes(estimate.value), bytes(estimate.low), bytes(estimate.high))
    } else {
        bytes(estimate.value)
    }
}

fn facts(summary: &Summary) -> String {
    let how = match summary.method {
        Method::PageFaults => "random pages moved out of view, the next touch timed (userfaultfd)",
        Method::Breakpoints => "hardware breakpoints on random lines",
        Method::Hardware => "memory samples of the processor",
        Method::Both => {
            "random pages moved out of view, the next touch timed (userfaultfd), beside memory samples of the processor"
        }
        Method::None => "accesses were not observed: allocations only",
    };
    let seconds = |value: f64| format!("{} s", words::digits(value));
    let confidence = summary
        .confidence()
        .map_or("unknown".to_owned(), |half| format!("±{} points, in 9 of 10 cases", words::digits(100.0 * half)));
    let rows = [
        ("Host", summary.host.clone()),
        ("Processes", summary.processes.to_string()),
        ("Wall time", seconds(summary.wall_s)),
        ("Processor time", seconds(summary.cpu_s)),
        ("Most bytes at a time", words::size(summary.peak_bytes)),
        ("Last-level cache, as assumed", words::size(summary.cache_bytes)),
        ("How accesses were observed", how.to_owned()),
        ("Shares of traffic are known to", confidence),
        ("Cost of observing", format!("{} of the processor time", words::percent(summary.overhead))),
    ];
    html::facts(rows)
}

fn objects(summary: &Summary) -> String {
    let all: f64 = summary.objects.iter().map(|object| object.total().value).sum();
    let row = |object: &ObjectGroup| {
        let share = if all > 0.0 { object.total().value / all } else { 0.0 };
        let places = object.frames.iter().take(4).map(|frame| format!("{} {}", frame.function, frame.line).trim().to_owned());
        let users = object.routines.iter().take(3).map(|(name, share)| format!("{name} {}", words::percent(*share)));
        vec![
            Cell::text(&object.name),
            Cell::text(kind(object.kind)),
            Cell::number(words::size(object.peak_bytes)),
            Cell::number(object.count.to_string()),
            Cell::number(words::percent(share)),
            Cell::number(interval(&object.read)),
            Cell::number(interval(&object.written)),
            Cell::text(pattern(object.pattern)),
            Cell::number(words::digits(object.lines_per_visit.value)),
            Cell::number(object.touches.to_string()),
            Cell::lines(users),
            Cell::lines(places),
        ]
    };
    let head = [
        "object",
        "kind",
        "most bytes",
        "count",
        "traffic",
        "read",
        "written",
        "pattern",
        "lines a visit",
        "touches seen",
        "touched by",
        "allocated in",
    ];
    let mut html = heading("Objects") + &table(&head, summary.objects.iter().take(ROWS).map(row));
    if summary.objects.len() > ROWS {
        html += &paragraph(&format!("{} more objects have less traffic.", summary.objects.len() - ROWS));
    }
    html + &method(
        "Traffic: bytes from and to memory, which no cache held. Intervals hold the truth in 9 of 10 cases; few touches seen, wide \
         intervals.",
    )
}

fn routines(summary: &Summary) -> String {
    let row = |routine: &Routine| {
        let flops = routine.flops_per_access_byte.map_or(String::new(), words::digits);
        vec![
            Cell::text(&routine.function),
            Cell::text(&routine.module),
            Cell::number(format!("{} s", words::digits(routine.self_s))),
            Cell::number(interval(&routine.traffic)),
            Cell::number(flops),
        ]
    };
    let head = ["routine", "in", "processor time", "traffic", "FLOP per byte loaded or stored"];
    let how = "Time: samples of a software clock. FLOP: from the machine code of inner loops, not counted.";
    section("Routines", &head, summary.routines.iter().take(ROWS).map(row), how)
}

/// The roofline of `node` with the program on it.
fn on_roofline(summary: &Summary, node: &Node) -> String {
    let peak = roofs::ceilings(node).iter().filter(|top| !top.single).map(|top| top.flops).reduce(f64::max);
    let Some(peak) = peak else { return String::new() };
    let cpus = node.topology.allowed.len().max(1) as u32;
    let all = brackets(summary, peak, cpus, None);
    let applications: Vec<Application> = all
        .iter()
        .take(6)
        .map(|one| Application { name: one.name.clone(), low: one.low, high: one.high, rate: one.bytes_per_s })
        .collect();
    let Some(svg) = roofline::draw(node, None, &applications).filter(|_| !applications.is_empty()) else { return String::new() };
    let guessed = all.iter().any(|one| one.counted == Counted::Peak);
    let mut html = heading("On the roofline") + &format!("<figure>{svg}</figure>\n");
    html += &method(
        "Bandwidth is from the profile. Operations were not counted: a piece of the bandwidth's line begins at what the inner loops do for \
         each byte they load or store (if each came from memory once), and ends at what the cores could compute in that time.",
    );
    if guessed {
        html += &method("Where the machine code of inner loops is not known, the piece begins at a thousandth of its end.");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;
    use crate::ui::chart::profile::tests::summary;

    #[test]
    fn a_profile_is_a_part_of_a_page() {
        let node = preset::find("knl-flat").expect("found");
        let html = sections(&summary(), Some(&node));
        for text in ["object 8", "a.c:3", "On the roofline", "Misses by near memory", "a note", "2 others"] {
            assert!(html.contains(text), "{text}");
        }
        assert_eq!(title(&summary()), "a.out 1");
        assert!(!sections(&summary(), None).contains("roofline"));
        let empty = Summary { objects: Vec::new(), routines: Vec::new(), ..summary() };
        assert!(sections(&empty, Some(&node)).contains("Processor time"));
    }

    #[test]
    fn names_do_not_become_markup() {
        let mut evil = summary();
        evil.objects[0].name = "<script>".into();
        evil.program = "<img>".into();
        evil.routines[0].function = "<b>".into();
        let html = sections(&evil, preset::find("knl-flat").ok().as_ref());
        assert!(!html.contains("<script>") && !html.contains("<img>") && !html.contains("<b>"));
    }
}
