//! `nearfar advise`: which of a profiled program's objects deserve near memory on a machine, what that gives, and (with `--verify`)
//! whether it comes true. Decided in `core::advise`; this reads, prints and writes.

// Lowest first: a module uses only modules above it.
mod tiers;
mod scaling;
mod display;
mod curve;
mod prices;
mod replayed;
mod routines;
mod verify;

use crate::cli::advise::AdviseArgs;
use crate::exit::refuse;
use crate::files::advice::{Costs, FORMAT, Verified};
use crate::files::nfprof;
use crate::files::output::OutputFile;
use crate::ui::message;
use nearfar_core::advise::advice::{Advice, Question, advice};
use nearfar_core::advise::explain;
use nearfar_core::advise::machine::Machine;
use nearfar_core::advise::rules;
use nearfar_core::profile::summary::Summary;
use nearfar_core::units::Bytes;
use serde::Serialize;
use std::process::ExitCode;

/// What is written with `--json`.
#[derive(Serialize)]
struct Document<'a> {
    nearfar_advice: u32,
    program: &'a str,
    near_bytes: f64,
    machine: &'a Machine,
    advice: &'a Advice,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<&'a Costs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<&'a Verified>,
    notes: Vec<String>,
}

/// Everything that was typed, understood before any work is done.
struct Request {
    near: f64,
    output: Option<OutputFile>,
    json: Option<OutputFile>,
    plot: Option<OutputFile>,
}

impl Request {
    fn new(args: &AdviseArgs) -> anyhow::Result<Self> {
        let target =
            |option, path: &Option<std::path::PathBuf>| path.clone().map(|path| OutputFile::new(option, path)).transpose();
        if args.verify && args.far.is_none() {
            return Err(refuse(
                "--verify runs the program on this machine: name what is far (--far emu:bw=4G,lat=10us, or a directory)",
            ));
        }
        if args.verify && args.runs == 0 {
            return Err(refuse("--runs 0: nothing can be verified without runs; write 1 or more"));
        }
        let near = tiers::near(&args.near)?;
        tiers::check_far(args.far.as_ref())?;
        let (output, json) = (target("-o", &args.output)?, target("--json", &args.json)?);
        Ok(Self { near, output, json, plot: target("--plot", &args.plot)? })
    }
}

/// Answers what `args` ask.
pub fn run(args: AdviseArgs) -> anyhow::Result<ExitCode> {
    if args.files.iter().any(|path| replayed::is_trace(path)) {
        return replayed::run(&args);
    }
    if !args.program.is_empty() && !args.verify {
        return Err(refuse("the program after -- is run with --verify only; write --verify, or leave it out"));
    }
    if args.plain.is_some() {
        return Err(refuse("--plain belongs to a trace; a profile has its own time"));
    }
    let request = Request::new(&args)?;
    let prices = args.prices.as_deref().map(prices::read).transpose()?;
    let summary = nfprof::read(&args.files)?;
    // Before anything is measured or computed.
    let job = args.verify.then(|| verify::Job::new(&args, &summary)).transpose()?;
    let mut machine = tiers::machine(&args, request.near)?;
    tiers::fits(&machine, &args.near, request.near)?;
    let wide = scaling::scaled(&args, &summary, &mut machine)?;
    // The profiled ranks have their part of near.
    let request = Request { near: request.near * wide.part, ..request };
    let explained = args.explain.as_deref().map(|name| explain::find(&summary, name)).transpose();
    let explained =
        explained.map_err(|error| refuse(format_args!("--explain {}: {error}", args.explain.as_deref().unwrap_or_default())))?;
    let question = Question { near: request.near, fractions: args.fractions };
    let advice = advice(&summary, &machine, question).map_err(|error| {
        let files = args.files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        refuse(format_args!("{files}: {error}"))
    })?;
    print(&display::text(&summary, &machine, &advice, request.near, &wide));
    let costs = prices.map(|prices| prices::priced(&prices, &summary, &machine, &advice)).transpose()?;
    if let Some(costs) = &costs {
        print(&prices::text(costs));
    }
    if let Some(group) = explained {
        print(&display::explained(&explain::explain(&summary, &machine, &advice, group)));
    }
    for note in machine.notes.iter().chain(&summary.notes) {
        message::line(note);
    }
    let plan = plan_text(&summary, &machine, &advice, request.near);
    if let Some(target) = &request.output {
        match advice.rules.is_empty() {
            true => message::line(format_args!("no plan was written: no object is worth a rule, or no rule can name it")),
            false => target.write(&plan)?,
        }
    }
    if let Some(target) = &request.plot {
        match curve::draw(&summary, &machine, &advice, request.near) {
            Some(svg) => target.write(&svg)?,
            None => message::line("no plot was written: there is nothing to draw"),
        }
    }
    let write = |verified: Option<&Verified>| match &request.json {
        Some(target) => {
            let notes = machine.notes.iter().chain(&summary.notes).cloned().collect();
            let (program, near_bytes) = (summary.program.as_str(), request.near);
            let (nearfar_advice, machine, advice, costs) = (FORMAT, &machine, &advice, costs.as_ref());
            let document = Document { nearfar_advice, program, near_bytes, machine, advice, costs, verified, notes };
            target.write(&format!("{}\n", serde_json::to_string_pretty(&document)?))
        }
        None => Ok(()),
    };
    // Before the runs, which may fail.
    write(None)?;
    let Some(job) = job else { return Ok(ExitCode::SUCCESS) };
    match job.run(&advice, &plan, &summary) {
        Ok(verified) => {
            print(&verify::text(&verified));
            write(Some(&verified))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.is::<verify::ProgramFailed>() => {
            message::line(error);
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error),
    }
}

fn plan_text(summary: &Summary, machine: &Machine, advice: &Advice, near: f64) -> String {
    let times = &advice.times;
    let about = [
        format!("nearfar advise, for {} of near on {}, far {}", Bytes(near as u64), machine.name, machine.far_name()),
        format!("program: {} {}", summary.program, summary.args.join(" ")),
        format!(
            "predicted: all far {}, this plan {}, all near {}",
            display::seconds(&times.all_far),
            display::seconds(&times.plan),
            display::seconds(&times.all_near)
        ),
        "The first rule that fits an object decides; what no rule fits goes far.".to_owned(),
    ];
    rules::text(&about, &advice.rules)
}

fn print(text: &str) {
    // A reader that closed the pipe has seen enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
}
