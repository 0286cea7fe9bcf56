//! `nearfar sensitivity`: is a program limited by memory or by computing? Takes things from it, one at a time, and looks at its run
//! time: half packed and lower clock as in the VASP study (CUG 2016), and a bandwidth hog beside it.
//!
//! What each change can tell, and cannot:
//! - *Bandwidth hog* on CPUs that the program does not use, against a hog of processor time there: follows bandwidth, and also latency
//!   under load and the share of the last-level cache, which the hog takes too. Tells nothing where one half of the CPUs cannot disturb
//!   the other's memory.
//! - *Half packed.* On several memory nodes: as many threads on twice the nodes, so with twice the bandwidth (and cache) each. On one
//!   node: half of the cores against all. That cannot tell bandwidth from locks or serial parts, which do not gain from cores either, so
//!   it never decides alone. Tells nothing where half of the cores do not reach the memory's limit, or the program uses few CPUs.
//! - *Lower clock*: memory does not slow down with the cores (caches do): a program that does not either waits for memory.
//!
//! Judged in `core::sensitivity`; this runs and prints.

// Lowest first: a module uses only modules above it.
mod plan;
mod clock;
mod hog;
mod session;
mod display;

use crate::cli::sensitivity::SensitivityArgs;
use crate::exit::refuse;
use crate::launch::{executable, kernel_program};
use crate::ui::message;
use anyhow::Context;
use nearfar_core::sensitivity::judge;
use nearfar_sys::root::Root;
use nearfar_sys::{affinity, child, machine};
use plan::Plan;
use session::{Interrupted, ProgramFailed, Session};
use std::process::ExitCode;

/// Fewer give no interval.
const FEWEST_RUNS: usize = 3;

/// Runs the program that `args` name, again and again.
pub fn run(args: SensitivityArgs) -> anyhow::Result<ExitCode> {
    match measure(args) {
        Err(error) => match (error.downcast_ref::<Interrupted>(), error.downcast_ref::<ProgramFailed>()) {
            (Some(Interrupted(signal)), _) => child::die_by(*signal),
            (_, Some(failed)) => {
                message::line(failed);
                Ok(ExitCode::FAILURE)
            }
            _ => Err(error),
        },
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// Everything that must be put back has been when this returns.
fn measure(args: SensitivityArgs) -> anyhow::Result<()> {
    if args.runs < FEWEST_RUNS {
        return Err(refuse(format_args!("--runs {}: that is too few to tell noise; write {FEWEST_RUNS} or more", args.runs)));
    }
    let search = std::env::var_os("PATH");
    let path = executable::find(args.program.first().map_or("".as_ref(), AsRef::as_ref), search.as_deref())?;
    if let Some(file) = &args.json {
        // Before hours of measuring.
        std::fs::write(file, "").map_err(|error| refuse(format_args!("--json {}: {error}", file.display())))?;
    }
    let kernel = kernel_program::find().map_err(refuse)?;
    let all = affinity::of(0).context("the CPUs that may be used are not known")?;
    let topology = machine::topology(&Root::this());
    let plan = Plan::new(&topology, &all);
    let sizes = session::sizes(topology.llc.bytes, all.len(), args.smoke);
    let rounds = if args.smoke { 1 } else { args.runs };
    let session = Session::new(kernel, path, args.program, plan, sizes, args.mute)?;
    let seconds = session.warm_up()?;
    let conditions = session.conditions();
    let runs = rounds * conditions.len();
    message::line(format_args!("a run takes {seconds:.1} s; {runs} more follow, with calibration: about {:.0} s", {
        // Some runs have half of the CPUs, or a hog beside them.
        runs as f64 * (seconds * 1.4 + 1.0)
    }));
    let samples = session.measure(rounds, |round, condition| {
        message::line(format_args!("round {} of {rounds}: {}", round + 1, condition.words()));
    })?;
    let evidence = session.evidence(&samples);
    let judgement = judge(&evidence);
    if let Some(file) = &args.json {
        let json = display::json(&session, &samples, &evidence, &judgement);
        std::fs::write(file, format!("{json:#}\n")).with_context(|| format!("cannot write {}", file.display()))?;
    }
    // A reader that closed the pipe has seen enough.
    let _ =
        std::io::Write::write_all(&mut std::io::stdout(), display::text(&session, &samples, &evidence, &judgement).as_bytes());
    Ok(())
}
