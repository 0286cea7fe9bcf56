//! `nearfar run`: starts the program with the library and the job, passes signals and the exit on, and reports.
//!
//! Modules are listed lowest first.

pub mod surroundings;
pub mod tiers;
pub mod trace_file;
mod plan_fit;
pub mod plan_file;
pub mod placement;
pub mod binding;
pub mod paging;
pub mod request;
pub mod watchdog;
pub mod outcome;
pub mod oom_kills;
mod account;
mod summary;
mod status_line;
pub mod run_file;
mod ranks;

use crate::cli::run::RunArgs;
use crate::exit;
use crate::files::output::OutputFile;
use crate::launch::library;
use crate::launch::supervisor::End;
use crate::launch::supervisor::{Supervisor, end_like, not_executed};
use crate::machine::{Machine, memory_limit};
use crate::run::account::{Account, RankRecord};
use crate::run::oom_kills::OomKills;
use crate::run::outcome::Outcome;
use crate::run::plan_file::PlanFile;
use crate::run::request::RunRequest;
use crate::run::run_file::{Invocation, RunFile};
use crate::run::status_line::StatusLine;
use crate::run::watchdog::Watchdog;
use crate::ui::message;
use anyhow::Context;
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_host::mover::{Mover, Report};
use nearfar_host::residence::{Observer, Observing};
use nearfar_sys::child::Signals;
use nearfar_sys::root::Root;
use nearfar_sys::usage::{UsageOf, used};
use nearfar_tiers::job::{ENV_JOB, Job};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Runs the program that `args` name.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let (args, rank) = ranks::prepare(args)?;
    let mut request = RunRequest::new(args)?;
    let ranked = rank.map(|rank| rank.join(&mut request)).transpose()?;
    if !request.quiet {
        for note in &request.notes {
            message::line(note);
        }
    }
    if let Some(trace) = &request.trace {
        trace.create()?;
    }
    // Open until the end: programs read them through this process.
    let plan = request.plan.as_ref().map(PlanFile::publish).transpose()?;
    let mut settings = request.settings.clone();
    if let Some(plan) = &plan {
        settings.set_plan(own_descriptor(plan).as_bytes()).context("the plan cannot be named")?;
    }
    let (job, segment) = Job::create(settings).context("the job segment cannot be created")?;
    let signals = Signals::catch().context("signals cannot be caught")?;
    let oom_kills = OomKills::begin();
    let start = Instant::now();
    let child = match request.binding.with(|| signals.spawn(&mut command(&request, &segment)))? {
        Ok(child) => child,
        Err(error) => return Ok(not_executed(&request.program, &error)),
    };
    let mover = request.migration.take().map(|migration| migration.start(child.id()));
    let paged = !request.is_on_nodes();
    let live = (request.live && !request.quiet && paged).then(|| StatusLine::new(request.settings.near_bytes));
    let placement = &request.settings.placement;
    let observer = (!paged).then(|| Observer::new(Root::this(), child.id(), placement.near, placement.far).start());
    let watchdog = Watchdog::new(request.on_stall, request.settings.faults.watch_ns);
    let mut watch = Watch { job, live, observer, last_tick: start, near_peak_seen: 0, watchdog };
    let end = Supervisor { child, signals }.until_end(|asked| watch.tick(asked))?;
    let end = if watch.watchdog.has_stopped() { End::Status(exit::STOPPED_BY_NEARFAR) } else { end };
    let outcome = watch.outcome(start.elapsed(), end);
    let moved = mover.and_then(Mover::stop);
    let write = |of: &Account, target: &OutputFile| write(&request, of, moved.as_ref().map(|(report, _)| report), target);
    let kills = oom_kills.came();
    let tell = |of: &Account| {
        tell(&request, of, moved.as_ref().map_or(&[], |(_, lines)| lines));
        // The kernel counts those of others in the group, too: a program that ended well has nothing to do with them.
        if kills > 0 && of.outcome.end != End::Status(0) && !request.quiet {
            let is_outside = paged && !request.settings.emulated;
            message::line(oom_kills::words(kills, is_outside.then_some(of.near_bytes), memory_limit()));
        }
    };
    match ranked {
        Some(ranked) => ranked.leave(&request, outcome, &write, &tell),
        None => {
            let alone = Account::alone(outcome, request.settings.near_bytes);
            tell(&alone);
            request.stats.as_ref().inspect(|target| write(&alone, target));
        }
    }
    Ok(end_like(end))
}

fn command(request: &RunRequest, segment: &OwnedFd) -> Command {
    let mut command = Command::new(&request.program);
    let old = std::env::var_os("LD_PRELOAD");
    if let [name, args @ ..] = request.argv.as_slice() {
        command.arg0(name).args(args);
    }
    if let Some(library) = &request.library {
        command.env(ENV_JOB, own_descriptor(segment)).env("LD_PRELOAD", library::preload_with(library, old.as_deref()));
    }
    command
}

/// By path, since a program may close every descriptor it inherits; ours stays open as long as this command lives.
fn own_descriptor(fd: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd())
}

/// The program while it runs.
struct Watch {
    job: Job,
    live: Option<StatusLine>,
    observer: Option<Observing>,
    last_tick: Instant,
    near_peak_seen: u64,
    watchdog: Watchdog,
}

impl Watch {
    fn tick(&mut self, asked: Option<Duration>) {
        self.job.bury_dead();
        self.watchdog.look(&self.job, asked);
        let near_used = self.job.charged_pages() * PAGE as u64;
        self.near_peak_seen = self.near_peak_seen.max(near_used);
        let elapsed = self.last_tick.elapsed();
        self.last_tick = Instant::now();
        if let Some(live) = &mut self.live {
            live.show(&self.job.snapshot().0, near_used, elapsed);
        }
    }

    fn outcome(mut self, wall: Duration, end: End) -> Outcome {
        if let Some(live) = &mut self.live {
            live.clear();
        }
        self.job.bury_dead();
        let (counters, processes) = self.job.snapshot();
        let used = used(UsageOf::Children);
        Outcome {
            wall,
            cpu_user: used.user,
            cpu_system: used.system,
            resident_peak: used.resident_peak,
            end,
            counters,
            processes,
            unmanaged: self.job.unmanaged(),
            still_running: self.job.processes(),
            near_peak_seen: self.near_peak_seen,
            residence: self.observer.map(Observing::stop),
        }
    }
}

/// Writes the summary.
fn tell(request: &RunRequest, of: &Account, moved: &[String]) {
    let get = |counter| of.outcome.counters.get(counter);
    let asked = get(Counter::SitesAsked);
    if asked > 0 && get(Counter::SitesMatched) == 0 {
        // Otherwise hard to find out; of all processes together, since a plan is for one of them.
        message::line(format_args!(
            "the plan matched none of {asked} allocations of the sizes that it names. Was the program rebuilt, or is it another one?"
        ));
    }
    if request.quiet {
        return;
    }
    if !of.ranks.is_empty() {
        let host = of.ranks.first().map_or("", |rank| rank.host.as_str());
        message::line(format_args!("{} ranks on {host}, together:", of.ranks.len()));
        of.ranks.iter().filter_map(RankRecord::trouble).for_each(message::line);
    }
    // How ranks ended is told above, one by one.
    let end = if of.ranks.is_empty() { of.outcome.end } else { End::Status(0) };
    let outcome = Outcome { end, ..of.outcome.clone() };
    let settings = &request.settings;
    message::raw(&match &outcome.residence {
        Some(residence) => summary::on_nodes(&outcome, residence, &settings.placement, request.library.is_some()),
        None => summary::summary(&outcome, of.near_bytes, &request.far, settings.kernel_paging),
    });
    moved.iter().for_each(message::line);
    if let Some(trace) = &request.trace {
        message::line(trace.summary());
    }
}

/// Writes the run file. The program has ended: a failure here is told but does not replace its status.
fn write(request: &RunRequest, of: &Account, migration: Option<&Report>, target: &OutputFile) {
    let mut settings = request.settings.clone();
    if !of.ranks.is_empty() && request.is_on_nodes() {
        settings.placement.near_limit = of.near_bytes;
    } else if !of.ranks.is_empty() {
        settings.near_bytes = of.near_bytes;
    }
    let ran = Invocation {
        program: &request.program,
        args: request.argv.get(1..).unwrap_or_default(),
        near: &request.near,
        far: &request.far,
        mode: request.mode,
        place: request.place.as_deref(),
        settings: &settings,
        ranks: &of.ranks,
        migration,
    };
    let machine = Machine::this();
    let file = RunFile::new(&ran, &machine, &of.outcome);
    if let Err(error) = file.text().and_then(|text| target.write(&text)) {
        message::line(format_args!("{error:#}"));
    }
}
