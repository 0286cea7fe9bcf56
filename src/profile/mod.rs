//! `nearfar profile`: starts the program with the library, which records what it sees; reads that at the end and prints a table.

pub mod display;

use crate::cli::profile::ProfileArgs;
use crate::exit::refuse;
use crate::files::output::OutputFile;
use crate::files::{nfprof, rank_name};
use crate::launch::supervisor::{Supervisor, end_like, not_executed};
use crate::launch::{executable, library};
use crate::ui::message;
use anyhow::Context;
use nearfar_core::profile::file;
use nearfar_profile::facts;
use nearfar_profile::settings::{ENV_PROFILE, Settings};
use nearfar_sys::child::Signals;
use nearfar_tiers::job::ENV_JOB;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Share of the time that `--precise` may take as the governor counts it. What a program loses is about twice that (docs/explanation/how-profile-works.md), and
/// 15 % is the most it should.
const PRECISE_BUDGET: f64 = 0.07;

/// Runs the program that `args` name.
pub fn run(args: ProfileArgs) -> anyhow::Result<ExitCode> {
    let name = args.program.first().context("a program")?;
    let path = executable::find(name, std::env::var_os("PATH").as_deref())?;
    executable::check_preloadable(&path)?;
    let library = library::find()?;
    let settings = settings(&args)?;
    let json = args.json.clone().map(|json| OutputFile::new("--json", json)).transpose()?;
    create(&settings.file)?;
    let mut command = Command::new(&path);
    command.arg0(name).args(&args.program[1..]).env_remove(ENV_JOB).env(ENV_PROFILE, settings.to_value());
    command.env("LD_PRELOAD", library::preload_with(&library, std::env::var_os("LD_PRELOAD").as_deref()));
    let signals = Signals::catch().context("signals cannot be caught")?;
    let child = match signals.spawn(&mut command) {
        Ok(child) => child,
        Err(error) => return Ok(not_executed(&path, &error)),
    };
    let end = Supervisor { child, signals }.until_end(|_| ())?;
    // The program has ended: a failure here is told but does not replace its status.
    if let Err(error) = tell(&settings.file, json.as_ref(), args.quiet) {
        message::line(format_args!("{error:#}"));
    }
    Ok(end_like(end))
}

fn tell(path: &Path, json: Option<&OutputFile>, quiet: bool) -> anyhow::Result<()> {
    if quiet && json.is_none() {
        return Ok(());
    }
    let summary = nfprof::read(std::slice::from_ref(&path.to_owned()))?;
    if !quiet {
        message::raw(&display::table(&summary, std::io::stderr().is_terminal()));
        message::line(format_args!("wrote {}", path.display()));
    }
    if let Some(json) = json {
        json.write(&(serde_json::to_string_pretty(&summary)? + "\n"))?;
    }
    Ok(())
}

fn settings(args: &ProfileArgs) -> anyhow::Result<Settings> {
    let usual = if args.precise { PRECISE_BUDGET } else { Settings::default().budget };
    let (least, limit, budget) = (args.least.0, args.limit.0, args.budget.unwrap_or(usual));
    if limit < 1 << 20 {
        return Err(refuse(format_args!("--limit {} is too little for a profile; write 1M or more", args.limit.exact())));
    }
    Ok(Settings { file: output(args)?, least, budget, limit, precise: args.precise, seed: args.seed, denied: args.deny })
}

/// The file's absolute path; of a rank of many, its own.
fn output(args: &ProfileArgs) -> anyhow::Result<PathBuf> {
    let path = args.output.clone().unwrap_or_else(|| {
        let name = args.program.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        Path::new(name).with_extension("nfprof")
    });
    let path = match facts::rank() {
        Some((rank, _)) => rank_name::add(&path, &format!(".{rank}")),
        None => path,
    };
    std::path::absolute(&path).map_err(|error| refuse(format_args!("-o {}: {error}", path.display())))
}

/// Makes the file with its head. What is there already is replaced if it is a profile, or empty, and else refused.
fn create(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let cannot = |error: std::io::Error| refuse(format_args!("-o {shown} cannot be written: {error}"));
    match File::open(path) {
        Ok(mut old) => {
            let facts = old.metadata().map_err(cannot)?;
            if !facts.is_file() {
                return Err(refuse(format_args!(
                    "-o {shown} is not an ordinary file, as a profile must be: many processes write it, and it is read back"
                )));
            }
            let mut head = [0; 8];
            let is_profile = facts.len() == 0 || (old.read_exact(&mut head).is_ok() && head == file::MAGIC);
            if !is_profile {
                return Err(refuse(format_args!("-o {shown} exists and is not a profile: name another file, or remove it")));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(cannot(error)),
    }
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).open(path).map_err(cannot)?;
    new.write_all(&file::head()).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_replaced_only_if_it_is_a_profile() {
        let dir = std::env::temp_dir().join(format!("nearfar-profile-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join("a.nfprof");
        create(&path).expect("new");
        std::fs::write(&path, [&file::head()[..], b"more"].concat()).expect("written");
        create(&path).expect("again");
        assert_eq!(std::fs::read(&path).expect("there"), file::head());
        std::fs::write(&path, "text of somebody's").expect("written");
        assert!(create(&path).expect_err("no profile").to_string().contains("not a profile"));
        assert!(create(&dir).is_err() && create(&dir.join("none/a")).is_err());
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
