//! Plans for modes that place objects: a work is profiled once for each number of threads, and advised for each near.
//!
//! Profiles and plans stay beside the results: the commands in them can be repeated, and a suite that goes on uses the same.

use super::super::case::{Case, Far, LEAST_NEAR};
use super::super::runner::Runner;
use crate::files::suite::System;
use crate::launch::helper;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest time of a profile or of an advice.
const LIMIT: Duration = Duration::from_secs(300);

/// The directory of plans beside the results in `path`. Each run has its own, by when it began: plans of another one are of other data,
/// another nearfar, another far.
pub fn folder(path: &Path, started_unix_s: u64) -> PathBuf {
    path.with_extension(format!("plans-{started_unix_s}"))
}

/// The plan for `case` (that of the mode, with its near) in `folder`, which is made when it is not there; `None` where the advisor finds
/// nothing worth a rule. `plain`: the same work in all-DRAM, long enough to be profiled. `stem`: a name for work and threads.
///
/// # Errors
/// What failed, and what it said.
pub fn plan(
    runner: &Runner,
    folder: &Path,
    (stem, system): (&str, System),
    plain: &Case,
    case: &Case,
) -> Result<Option<PathBuf>> {
    let share = system.cache_share();
    let flat = case.near_bytes as f64 * (1.0 - share);
    // The advisor takes the cache of flat mode off what it is given; in hybrid mode the cache is apart.
    let near = if share == 0.0 { flat } else { flat + (flat / 64.0).max(LEAST_NEAR as f64) };
    let path = folder.join(format!("{stem}-{:.0}M.toml", near / f64::from(1 << 20)));
    if path.is_file() {
        return Ok(Some(path));
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let profile = folder.join(format!("{stem}.nfprof"));
    if !profile.is_file() {
        let (program, arguments) = runner.plain(plain);
        let part = profile.with_extension("part.nfprof");
        let mut command = runner.nearfar();
        // Seconds only: at the usual rate there would be too few looks.
        command.args(["profile", "--precise", "-q", "-o"]).arg(&part).arg("--").arg(program).args(arguments);
        finish(&mut command, "profile")?;
        std::fs::rename(&part, &profile).with_context(|| format!("cannot write {}", profile.display()))?;
    }
    let mut command = runner.nearfar();
    command.arg("advise").arg(&profile).args(["--near", &format!("{near:.0}"), "-o"]).arg(&path);
    match case.far {
        Far::Nodes => command.arg("--machine").arg(probed(runner, folder)?),
        _ => command.arg("--far").arg(runner.tiers(case).1),
    };
    finish(&mut command, "advise")?;
    Ok(path.is_file().then_some(path))
}

/// The figures of this machine's memories, measured once for all plans in `folder`.
fn probed(runner: &Runner, folder: &Path) -> Result<PathBuf> {
    let path = folder.join("node.json");
    if !path.is_file() {
        let part = folder.join("part.node.json");
        let mut command = runner.nearfar();
        command.args(["probe", "--quick", "--no-far", "--quiet", "--only", "bandwidth", "--only", "latency", "-o"]).arg(&part);
        finish(&mut command, "probe")?;
        std::fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

fn finish(command: &mut Command, what: &str) -> Result<()> {
    let finished = helper::run(command, LIMIT).with_context(|| format!("nearfar {what} cannot be started"))?;
    ensure!(finished.is_ok(), "nearfar {what}: {}", finished.problem(LIMIT));
    Ok(())
}
