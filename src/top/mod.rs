//! `nearfar top`: the jobs that run on this machine, once or for as long as somebody looks.
//!
//! Jobs are found and read from outside (`host::jobs`, `tiers::job::view`): they do not notice. Modules are listed lowest first.

mod rates;
mod program;
mod objects;
mod inspection;
mod watched;
mod jobs;
mod figures;
mod columns;
mod choice;
mod display;
mod json;
mod live;

use crate::cli::top::TopArgs;
use crate::exit::refuse;
use crate::top::jobs::Jobs;
use crate::ui::screen;
use nearfar_sys::event::now_ns;
use nearfar_sys::root::Root;
use std::io::Write;
use std::process::ExitCode;

/// Shows what `args` ask for.
pub fn run(args: TopArgs) -> anyhow::Result<ExitCode> {
    if !args.once && !screen::is_possible() {
        return Err(refuse(
            "top draws on a terminal, and standard input and output are not both one; write --once for a table, or --once --json for scripts",
        ));
    }
    let mut jobs = Jobs::new(Root::this());
    jobs.look(now_ns());
    if let Some(pid) = args.pid {
        jobs.keep_only(pid)?;
    }
    if !args.once {
        return live::show(jobs, args.interval);
    }
    std::thread::sleep(args.interval);
    jobs.look(now_ns());
    let text = if args.json {
        jobs.list.iter().map(|job| job.id).collect::<Vec<_>>().into_iter().for_each(|id| jobs.inspect(id));
        let host = Root::this().text("/proc/sys/kernel/hostname").unwrap_or_else(|| "localhost".to_owned());
        json::document(&jobs, &host, args.interval)?
    } else {
        display::table(&jobs, screen::width())
    };
    // A reader that closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
