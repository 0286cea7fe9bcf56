//! What a profile says, as a table for people.

use crate::ui::table::{align_right, unframed};
use nearfar_core::profile::record::{Kind, Method};
use nearfar_core::profile::summary::{Estimate, ObjectGroup, Pattern, Summary};
use nearfar_core::units::Bytes;
use std::fmt::Write as _;

/// Width where it is not read on a terminal.
const WIDTH: u16 = 150;
/// Objects shown; what is left is told together.
const SHOWN: usize = 20;

/// The table; `to_terminal` when it is read on one.
pub fn table(summary: &Summary, to_terminal: bool) -> String {
    let mut text = head(summary);
    let all = summary.objects.iter().map(|object| object.total().value).sum::<f64>();
    let mut table = unframed(WIDTH, to_terminal);
    let mut header = vec!["object", "kind", "count", "bytes", "read GB", "written GB", "share %", "pattern", "lines", "looks"];
    let sampled = summary.samples > 0;
    if sampled {
        header.extend(["samples", "cycles"]);
    }
    header.push("by");
    table.set_header(header);
    for object in summary.objects.iter().take(SHOWN) {
        table.add_row(row(object, all, summary.saw_anything(), sampled));
    }
    align_right(&mut table, 2..=6);
    let _ = writeln!(text, "{table}");
    let rest = summary.objects.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes: u64 = rest.iter().map(|object| object.peak_bytes).sum();
        let traffic: f64 = rest.iter().map(|object| object.total().value).sum();
        let _ =
            writeln!(text, "and {} more places, {} in all, {} of the traffic", rest.len(), Bytes(bytes), percent(traffic, all));
    }
    for routine in summary.routines.iter().filter(|routine| routine.self_s > 0.0).take(8) {
        let share = percent(routine.self_s, summary.cpu_s);
        let _ =
            writeln!(text, "time: {share} in {} ({}), {:.2} GB", routine.function, routine.module, routine.traffic.value / 1e9);
    }
    for note in &summary.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn head(summary: &Summary) -> String {
    let how = match summary.method {
        Method::None => "objects only: accesses were not observed",
        Method::PageFaults => "random pages were watched by userfaultfd",
        Method::Breakpoints => "random lines were watched by breakpoints",
        Method::Hardware => "memory samples of the processor; pages were not watched",
        Method::Both => "random pages were watched by userfaultfd, beside memory samples of the processor",
    };
    let looks: u64 = summary.objects.iter().map(|object| object.looks).sum();
    let counted = match summary.samples {
        0 => format!("{looks} looks"),
        samples => format!("{looks} looks, {samples} samples"),
    };
    let confidence = summary.confidence().map_or(String::new(), |half| format!("; shares to +-{:.1} points", 100.0 * half));
    format!(
        "nearfar profile: {}; {:.2} s, {:.2} s of CPU, {} at most in {}; {how}, {counted}{confidence}; observing took {:.1} % of the CPU time\n",
        summary.program,
        summary.wall_s,
        summary.cpu_s,
        Bytes(summary.peak_bytes),
        if summary.processes == 1 { "one process".to_owned() } else { format!("{} processes", summary.processes) },
        100.0 * summary.overhead,
    )
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1} %", 100.0 * part / whole) } else { "-".to_owned() }
}

fn gigabytes(estimate: Estimate) -> String {
    let half = (estimate.high - estimate.low) / 2.0;
    format!("{:.2} +-{:.2}", estimate.value / 1e9, half / 1e9)
}

/// The word for a kind of object.
pub const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Heap => "heap",
        Kind::Map => "mapping",
        Kind::Static => "static",
        Kind::MainStack | Kind::ThreadStack => "stack",
        Kind::SmallBlocks => "small blocks",
        Kind::ThreadLocal => "thread",
    }
}

/// The word for a pattern of access; empty when it is not known.
pub const fn pattern(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Stream => "stream",
        Pattern::Strided => "strided",
        Pattern::Random => "random",
        Pattern::Unknown => "",
    }
}

fn row(object: &ObjectGroup, all: f64, observed: bool, sampled: bool) -> Vec<String> {
    let total = object.total();
    let seen = object.touches > 0;
    let half = (total.high - total.low) / 2.0;
    let share = if all > 0.0 { format!("{:.1} +-{:.1}", 100.0 * total.value / all, 100.0 * half / all) } else { "-".to_owned() };
    let pattern = Some(pattern(object.pattern)).filter(|word| !word.is_empty());
    let routines: Vec<String> =
        object.routines.iter().take(2).map(|(name, share)| format!("{name} {:.0} %", 100.0 * share)).collect();
    let mut cells = vec![
        object.name.clone(),
        kind(object.kind).to_owned(),
        object.count.to_string(),
        Bytes(object.peak_bytes).to_string(),
        if observed { gigabytes(object.read) } else { "-".to_owned() },
        if observed { gigabytes(object.written) } else { "-".to_owned() },
        share,
        pattern.unwrap_or("-").to_owned(),
        if seen { format!("{:.0}", object.lines_per_visit.value) } else { "-".to_owned() },
        object.looks.to_string(),
    ];
    if sampled {
        cells.push(object.samples.to_string());
        cells.push(if object.load_cycles > 0.0 { format!("{:.0}", object.load_cycles) } else { "-".to_owned() });
    }
    cells.push(routines.join(", "));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::profile::analyse::{Options, analyse};
    use nearfar_core::profile::file::{Batch, Content};
    use nearfar_core::profile::names::NoNames;
    use nearfar_core::profile::record::{Access, Object, Record, Source, Start};

    #[test]
    fn objects_are_listed() {
        let object = Object { id: 1, kind: Kind::Static, addr: 4096, len: 8192, site: 0, name: "table_of_all".into(), at: 5 };
        let start = Start { at: 1, pid: 1, program: "/bin/x".into(), ..Start::default() };
        let end = Record::End { at: 1_000_000_000, cpu_user_ns: 5, cpu_system_ns: 5, peak_resident: 10_000 };
        let records = vec![Record::Start(start), Record::Object(object), end];
        let content = Content { batches: vec![Batch { pid: 1, records }], lost_bytes: 0 };
        let text = table(&analyse(&content, &NoNames, &Options::default()), false);
        assert!(!text.contains("0.00 +-"), "{text}");
        assert!(text.contains("table_of_all") && text.contains("one process") && text.contains("objects only"), "{text}");
    }

    #[test]
    fn the_method_is_named_with_its_confidence() {
        let access = |at: u64| Access {
            at,
            ip: 0,
            tid: 1,
            addr: 4096 + at % 8192,
            stands_for: 1000,
            cycles: 321,
            source: Source::Memory,
            writes: false,
        };
        let object = Object { id: 1, kind: Kind::Static, addr: 4096, len: 8192, site: 0, name: "sampled".into(), at: 5 };
        let start = Start { at: 1, pid: 1, method: Method::Hardware, ..Start::default() };
        let samples = Record::Accesses { at: 900, samples: (10..410).map(access).collect(), lost: 0 };
        let records = vec![Record::Start(start), Record::Object(object), samples];
        let content = Content { batches: vec![Batch { pid: 1, records }], lost_bytes: 0 };
        let text = table(&analyse(&content, &NoNames, &Options::default()), false);
        for expected in
            ["memory samples of the processor; pages were not", "400 samples; shares to +-8.2 points", " 321 ", "cycles"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
