//! Parts of `nearfar probe` that measure nothing: the list of published machines, a machine beside one of them, and two machines
//! against each other.

use crate::files::preset;
use crate::ui::table::{Table, for_output};
use nearfar_core::node::{self, Difference, Node, Side, words};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub use crate::files::document::load;

/// Medians of two machines may differ by this share before that is told.
pub const TOLERANCE: f64 = 0.05;

/// Prints the published machines with what is known of them.
///
/// # Errors
/// When a built-in description cannot be read, which a test rules out.
pub fn list_machines() -> anyhow::Result<ExitCode> {
    let mut table = table(&["name", "near", "far", "what it is"]);
    for name in preset::names() {
        let machine = preset::find(name)?;
        let rate = |role| best(&machine, role).map_or("-".to_owned(), words::rate);
        table.add_row([name.to_owned(), rate(node::Role::Near), rate(node::Role::Far), machine.about.clone()]);
    }
    print(&format!("{table}\nBest published bandwidth, of devices too; - is unknown. Sources: nearfar probe --compare NAME\n"));
    Ok(ExitCode::SUCCESS)
}

/// The best bandwidth of a part, preferring measurements to data sheets; of devices their best reading counts as far.
fn best(machine: &Node, role: node::Role) -> Option<f64> {
    let rows = || machine.bandwidth.iter().filter(|row| machine.role(row.memory) == Some(role) && row.rate.is_usable());
    let of = |theoretical| {
        let rates = rows().map(|row| &row.rate).filter(move |rate| rate.is_theoretical() == theoretical);
        rates.map(|rate| rate.median).reduce(f64::max)
    };
    let devices = || {
        let points = machine.far.iter().flat_map(|tier| &tier.points).filter(|point| point.rate.is_usable());
        points.map(|point| point.rate.median).reduce(f64::max).filter(|_| role == node::Role::Far)
    };
    of(false).or_else(|| of(true)).or_else(devices)
}

/// The machine to compare with: a description in a file, or a published one.
///
/// # Errors
/// A refusal when there is neither.
pub fn find(name: &str) -> anyhow::Result<Node> {
    if Path::new(name).is_file() { load(Path::new(name)) } else { preset::find(name) }
}

/// `node` beside another machine, as a table with sources.
pub fn compare(node: &Node, other: &Node) -> String {
    let ratios = node::compare(node, other);
    let mut text = format!("Beside {}: {}\n", other.name, other.about);
    if ratios.is_empty() {
        text += "No figure of this machine has a counterpart there.\n";
        return text;
    }
    let mut table = table(&["what", "here", "there", "", "source and notes"]);
    for ratio in &ratios {
        let shown = if ratio.measure.more_is_better() {
            words::percent(ratio.ratio)
        } else {
            format!("{} times", words::digits(ratio.ratio))
        };
        let notes: Vec<String> = std::iter::once(ratio.source.clone()).chain(ratio.notes.iter().cloned()).collect();
        let (ours, theirs) = (ratio.measure.show(ratio.ours), ratio.measure.show(ratio.theirs));
        table.add_row([ratio.what.clone(), ours, theirs, shown, notes.join("; ").trim_start_matches("; ").to_owned()]);
    }
    text += &format!("{table}\n");
    let absent: Vec<String> = other.missing.iter().map(|missing| format!("{} ({})", missing.what, missing.why)).collect();
    if !absent.is_empty() {
        text += &format!("Unknown of {}: {}\n", other.name, absent.join("; "));
    }
    text
}

/// Prints where the machine of file `b` differs from that of file `a`, the reference. Status 1 when `b` is significantly slower in a
/// row, lacks a figure of a part that was measured there too, or has significantly less of something (memory, CPUs); 0 otherwise, also
/// when it is faster.
///
/// # Errors
/// A refusal when a file cannot be used.
pub fn diff(a: &Path, b: &Path) -> anyhow::Result<ExitCode> {
    let (first, second) = (load(a)?, load(b)?);
    let differences = node::diff(&first, &second, TOLERANCE);
    let (text, worse) = differences_text(&first, &second, &differences);
    print(&text);
    Ok(if worse > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The table, and in how many ways B is significantly worse.
fn differences_text(a: &Node, b: &Node, differences: &[Difference]) -> (String, usize) {
    // Two files of one machine, before and after a change, have one name.
    let names = if a.name == b.name || a.name.is_empty() || b.name.is_empty() {
        ("A".to_owned(), "B".to_owned())
    } else {
        (format!("A: {}", a.name), format!("B: {}", b.name))
    };
    let worse = |side| differences.iter().filter(|row| row.significant && row.worse == Some(side)).count();
    let (a_worse, b_worse) = (worse(Side::A), worse(Side::B));
    let mut text = String::new();
    if !differences.is_empty() {
        let mut table = table(&["what", &names.0, &names.1, "change", "", "why"]);
        for row in differences {
            let verdict = match (row.worse, row.significant) {
                (Some(Side::A), true) => "A WORSE",
                (Some(Side::B), true) => "B WORSE",
                _ => "",
            };
            let change = row.change.map_or(String::new(), |change| format!("{:+.0} %", change * 100.0));
            table.add_row([&row.what, &row.a, &row.b, &change, verdict, &row.why]);
        }
        text = format!("{table}\n");
    }
    let of = words::percent(TOLERANCE);
    text += &match (a_worse, b_worse) {
        (0, 0) => format!("no significant difference (more than {of} with intervals that do not overlap)\n"),
        _ => format!(
            "significantly worse: A in {a_worse}, B in {b_worse} (more than {of} with intervals that do not overlap, or no figure)\n"
        ),
    };
    if a.noise.noisy || b.noise.noisy {
        text += "one of the machines was not quiet while it was measured: measure again before drawing conclusions\n";
    }
    (text, b_worse)
}

fn table(head: &[&str]) -> Table {
    let mut table = for_output(130);
    table.set_header(head.iter().copied());
    table
}

fn print(text: &str) {
    // A reader that closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{Bandwidth, Figure, MemoryNode, Operation};

    fn machine(name: &str, gib: u64, rates: &[f64]) -> Node {
        let mut node = Node { name: name.to_owned(), ..Node::default() };
        node.topology.nodes = vec![MemoryNode { bytes: gib << 30, ..MemoryNode::default() }];
        let row = Bandwidth { operation: Operation::Triad, moved_bytes: 32, rate: Figure::of(rates), ..Bandwidth::default() };
        node.bandwidth = vec![row];
        node
    }

    #[test]
    fn a_machine_beside_a_published_one() {
        let node = machine("here", 64, &[280e9]);
        let text = compare(&node, &find("xeon-max-9480-flat").expect("known"));
        assert!(text.contains("560 GB/s") && text.contains("50 %") && text.contains("Unknown of"), "{text}");
        assert!(find("no such").is_err());
        assert!(compare(&Node::default(), &find("hbv5").expect("known")).contains("No figure"));
    }

    #[test]
    fn every_machine_can_be_compared_with_every_other() {
        for name in preset::names() {
            let node = preset::find(name).expect("found");
            for other in preset::names() {
                let found = find(other).expect("found");
                assert!(!compare(&node, &found).contains("NaN"), "{name} {other}");
            }
        }
    }

    #[test]
    fn only_a_worse_second_machine_fails() {
        let (good, slow) = (machine("n1", 64, &[100e9, 101e9]), machine("n2", 48, &[60e9, 61e9]));
        let told = |a: &Node, b: &Node| differences_text(a, b, &node::diff(a, b, TOLERANCE));
        let (text, worse) = told(&good, &slow);
        assert_eq!(worse, 2, "{text}");
        assert!(text.contains("B WORSE") && text.contains("B: n2"));
        assert_eq!(told(&slow, &good).1, 0);
        let mut broken = good.clone();
        broken.bandwidth[0].rate = Figure::invalid("a checksum is wrong");
        let (text, worse) = told(&good, &broken);
        assert!(worse == 1 && text.contains("B WORSE"), "{text}");
        let (text, worse) = told(&good, &good);
        assert!(worse == 0 && text.starts_with("no significant difference"));
    }
}
