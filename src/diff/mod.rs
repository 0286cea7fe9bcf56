//! `nearfar diff`: what changed from one profile to another. Pairs are found by `core::profile::compare`; here they are only shown.

use crate::cli::diff::DiffArgs;
use crate::files::nfprof;
use anyhow::{Context, Result};
use nearfar_core::profile::compare::{Change, Side, compare};
use nearfar_core::profile::summary::Summary;
use nearfar_core::units::Bytes;
use std::fmt::Write;
use std::process::ExitCode;

/// Objects whose traffic is a smaller share of all are left out, unless they are asked for.
const LITTLE: f64 = 0.005;

/// Prints the table. A difference is no failure.
pub fn run(args: DiffArgs) -> Result<ExitCode> {
    let before = nfprof::read(std::slice::from_ref(&args.before))?;
    let after = nfprof::read(std::slice::from_ref(&args.after))?;
    let changes = compare(&before, &after);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&changes)?;
        if path.as_os_str() == "-" {
            println!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    print!("{}", shown(&before, &after, &changes, args.all));
    Ok(ExitCode::SUCCESS)
}

fn shown(before: &Summary, after: &Summary, changes: &[Change], all: bool) -> String {
    let total = |summary: &Summary| summary.objects.iter().map(|group| group.total().value).sum::<f64>();
    let (old, new) = (total(before), total(after));
    let mut text = String::new();
    if before.program != after.program {
        let _ = writeln!(text, "note      these are different programs: {} and {}", before.program, after.program);
    }
    let _ = writeln!(text, "time      {:.2} s -> {:.2} s{}", before.wall_s, after.wall_s, ratio(before.wall_s, after.wall_s));
    let _ = writeln!(
        text,
        "memory    {} -> {}{}",
        Bytes(before.peak_bytes),
        Bytes(after.peak_bytes),
        ratio(before.peak_bytes as f64, after.peak_bytes as f64)
    );
    let _ = writeln!(text, "traffic   {} -> {}{}\n", amount(old), amount(new), ratio(old, new));
    let least = LITTLE * old.max(new);
    let matters = |change: &&Change| all || change.traffic().abs() > least || resized(change);
    let (rows, rest): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(matters);
    if rows.is_empty() {
        text += "No object changed noticeably.\n";
    } else {
        let _ = writeln!(text, "{:>11}  {:>10} -> {:<10}  {:>10} -> {:<10}  object", "change", "traffic", "", "bytes", "");
    }
    for change in &rows {
        let side = |side: Option<Side>, of: &dyn Fn(Side) -> String| side.map_or("-".to_owned(), of);
        let (traffic, bytes) = (|side: Side| amount(side.traffic.value), |side: Side| Bytes(side.peak_bytes).to_string());
        let _ = writeln!(
            text,
            "{:>11}  {:>10} -> {:<10}  {:>10} -> {:<10}  {}{}",
            format!("{}{}", if change.traffic() < 0.0 { "-" } else { "+" }, amount(change.traffic().abs())),
            side(change.before, &traffic),
            side(change.after, &traffic),
            side(change.before, &bytes),
            side(change.after, &bytes),
            change.name,
            remark(change)
        );
    }
    if !rest.is_empty() {
        let _ = writeln!(text, "{} more objects changed by less than {} each (--all shows them)", rest.len(), amount(least));
    }
    text
}

/// By a tenth at least.
fn resized(change: &Change) -> bool {
    match (change.before, change.after) {
        (Some(before), Some(after)) => before.peak_bytes.abs_diff(after.peak_bytes) * 10 > before.peak_bytes.max(1 << 20),
        _ => false,
    }
}

fn remark(change: &Change) -> &'static str {
    match (change.before, change.after, change.likeness) {
        (None, ..) => "  (new)",
        (_, None, _) => "  (gone)",
        _ if change.traffic() != 0.0 && change.is_within_intervals() => "  (within the intervals)",
        (.., Some(likeness)) if likeness < 0.7 => "  (probably the same)",
        _ => "",
    }
}

fn amount(bytes: f64) -> String {
    Bytes(bytes.max(0.0) as u64).to_string()
}

fn ratio(before: f64, after: f64) -> String {
    if before > 0.0 { format!("  ({:+.1} %)", 100.0 * (after / before - 1.0)) } else { String::new() }
}
