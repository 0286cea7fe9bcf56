//! `nearfar probe`: what the memories, processors and far tiers of this machine really do, without root, as tables and as node.json.
//!
//! What cannot be measured becomes a line of what is missing, and the rest goes on. Measuring itself is in `nearfar-kernels` and
//! `nearfar-tiers`; what the machine is made of comes from `nearfar-sys`; conclusions are drawn in `nearfar-core`.

// Lowest first: a module uses only modules above it.
mod plan;
mod mpi;
mod threading;
mod noise;
pub mod far;
pub mod display;
mod measure;
mod caches;
mod all_nodes;
pub mod compare;

use crate::cli::probe::{Action, Part, ProbeArgs};
use crate::exit::refuse;
use crate::files::output::OutputFile;
use crate::ui::message;
use crate::ui::progress::Progress;
use anyhow::Result;
use clap::ValueEnum;
use measure::Session;
use nearfar_core::node::{FORMAT, Node};
use nearfar_sys::root::Root;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Measures, prints and writes. Exits with 1 when a figure is invalid.
pub fn run(args: ProbeArgs) -> Result<ExitCode> {
    if let Some(Action::Diff { a, b }) = &args.action {
        return compare::diff(a, b);
    }
    if args.list_machines {
        return compare::list_machines();
    }
    let start = Instant::now();
    let root = match &args.from {
        Some(path) => Root::open(path).map_err(refuse)?,
        None => Root::this(),
    };
    let other = args.compare.as_deref().map(compare::find).transpose()?;
    let to_stdout = args.output == Path::new("-");
    let target = if to_stdout { None } else { Some(OutputFile::new("-o", args.output.clone())?) };
    if let Some(target) = &target {
        keep_what_is_there(target, &args.only)?;
    }
    if let Some(path) = &args.capture {
        OutputFile::new("--capture", path.clone())?.write(&nearfar_sys::machine::capture(&root))?;
    }

    let mut node = describe(&root);
    if root.is_this() {
        let progress = Progress::new(measure::steps(&args, &node.topology), args.quiet);
        Session::new(&args, &mut node, &progress).measure();
        progress.end();
    } else {
        node.missing.push(nearfar_core::node::Missing {
            what: "everything but the topology".into(),
            why: "this is another machine's description (--from)".into(),
        });
    }
    node.seconds = start.elapsed().as_secs_f64();
    let text = serde_json::to_string_pretty(&node)? + "\n";
    match &target {
        Some(target) => target.write(&text)?,
        None => print(&text),
    }
    if !to_stdout && !args.quiet {
        print(&display::render(&node));
        if let Some(other) = other {
            print(&format!("\n{}", compare::compare(&node, &other)));
        }
        print(&format!("\nWritten to {} in {:.0} s.\n", args.output.display(), node.seconds));
    }
    let invalid = display::invalid(&node);
    if invalid.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if to_stdout || args.quiet {
        invalid.iter().for_each(|(what, why)| message::line(format_args!("INVALID: {what}: {why}")));
    }
    message::line(format_args!("{} figures are INVALID and must not be used", invalid.len()));
    Ok(ExitCode::FAILURE)
}

/// What the machine is, and what follows from it.
fn describe(root: &Root) -> Node {
    let topology = nearfar_sys::machine::topology(root);
    let firmware = nearfar_sys::machine::firmware(root);
    let findings = nearfar_core::node::detect::findings(&topology, firmware.as_ref());
    Node {
        format: FORMAT,
        nearfar: env!("CARGO_PKG_VERSION").into(),
        written: now(),
        name: root.text("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".into()),
        topology,
        findings,
        ..Node::default()
    }
}

/// The time, in RFC 3339 and UTC.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Refuses to write over a file that is no description of a machine, or has figures that `only` leaves out.
fn keep_what_is_there(target: &OutputFile, only: &[Part]) -> Result<()> {
    let Ok(facts) = std::fs::metadata(target.path()) else { return Ok(()) };
    if !facts.is_file() || facts.len() == 0 {
        return Ok(());
    }
    let shown = target.path().display();
    let node = std::fs::read_to_string(target.path()).ok().and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let Some(node) = node.filter(|node| node.get("topology").is_some()) else {
        return Err(refuse(format_args!(
            "-o {shown} exists and is not a machine description, so it is not overwritten; name another file"
        )));
    };
    // A part has the name of its rows.
    let names = Part::value_variants().iter().filter(|part| !only.contains(part)).filter_map(|part| part.to_possible_value());
    let has_rows = |name: &str| node[name].as_array().is_some_and(|rows| !rows.is_empty());
    let lost: Vec<String> = names.map(|name| name.get_name().to_owned()).filter(|name| has_rows(name)).collect();
    if only.is_empty() || lost.is_empty() {
        return Ok(());
    }
    let lost = lost.join(", ");
    Err(refuse(format_args!(
        "-o {shown} has figures ({lost}) that --only would leave out; name another file, or remove this one"
    )))
}

/// A reader that closed the pipe has seen enough.
fn print(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_a_time() {
        let now = now();
        assert!(now.len() == 20 && now.starts_with("20") && now.ends_with('Z'), "{now}");
    }

    #[test]
    fn other_files_are_kept() {
        let dir = std::env::temp_dir().join(format!("nearfar-probe-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let path = dir.join("precious.json");
        let target = |path: &Path| OutputFile::new("-o", path.to_owned()).expect("can be written");
        std::fs::write(&path, "{\"data\": 1}").expect("written");
        assert!(keep_what_is_there(&target(&path), &[]).is_err());
        std::fs::write(&path, serde_json::to_string(&Node::default()).expect("JSON")).expect("written");
        keep_what_is_there(&target(&path), &[]).expect("a node of ours");
        keep_what_is_there(&target(&dir.join("new.json")), &[]).expect("a new file");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
