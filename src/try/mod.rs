//! `nearfar try`: a program as it is, then in half and in a third of its memory. What that costs, why, and what to do next.

// Lowest first: a module uses only modules above it.
mod memory;
mod attempt;
mod verdict;

use crate::cli::r#try::TryArgs;
use crate::exit::{self, refuse};
use crate::files::output::OutputFile;
use crate::files::private_dir::PrivateDir;
use crate::files::spill_dir::FarDir;
use crate::files::{document, nfprof};
use crate::launch::supervisor::{End, not_executed};
use crate::launch::{executable, library};
use crate::report;
use crate::run::surroundings;
use crate::ui::message;
use anyhow::Context;
use attempt::{Attempt, Interrupted};
use nearfar_core::units::Bytes;
use nearfar_sys::child::{self, Signals};
use std::fs::File;
use std::io::{IsTerminal, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use verdict::{Done, Failed, Limited, Plain};

/// A program with less has nothing to gain.
const LEAST: u64 = 64 << 20;
/// A run is not stopped before.
const LEAST_LIMIT: Duration = Duration::from_secs(10);
/// Room in far beside what does not fit.
const SPARE: u64 = 64 << 20;
/// Parts of the memory that are tried, with their names.
const PARTS: [(u64, &str); 2] = [(2, "half"), (3, "a third")];

/// Runs the program three times, and tells.
pub fn run(args: TryArgs) -> anyhow::Result<ExitCode> {
    if args.limit < 1.0 || !args.limit.is_finite() {
        return Err(refuse(format_args!("--limit {}: write 1 or more", args.limit)));
    }
    // Before a plain run of hours.
    if let Some(problem) = surroundings::problem() {
        return Err(refuse(problem));
    }
    let search = std::env::var_os("PATH");
    let program = executable::find(args.program.first().map_or("".as_ref(), AsRef::as_ref), search.as_deref())?;
    executable::check_preloadable(&program)?;
    let page = OutputFile::new("-o", args.output.clone())?;
    let far = FarDir::open(&args.far, true)?;
    library::find()?;
    let signals = Signals::catch().context("signals cannot be caught")?;
    match trial(&args, &program, &far, &page, &signals) {
        Err(error) => match error.downcast_ref::<Interrupted>() {
            // Everything is gone by now.
            Some(&Interrupted(signal)) => child::die_by(signal),
            None => Err(error),
        },
        status => status,
    }
}

fn trial(args: &TryArgs, program: &Path, far: &FarDir, page: &OutputFile, signals: &Signals) -> anyhow::Result<ExitCode> {
    let input = Input::this();
    let (plain, printed) = match &args.profile {
        Some(profile) => (profiled(profile)?, None),
        None => {
            let mut command = Command::new(program);
            command.arg0(&args.program[0]).args(&args.program[1..]).stdin(input.again()?);
            let attempt = match attempt::run(signals, &mut command, None, true) {
                Err(error) => match error.downcast_ref::<std::io::Error>() {
                    Some(why) => return Ok(not_executed(program, why)),
                    None => return Err(error),
                },
                Ok(attempt) => attempt,
            };
            if let Some(end) = attempt.end.filter(|end| *end != End::Status(0)) {
                message::line(format_args!(
                    "the program failed without nearfar: {}; there is nothing to compare with",
                    words(end)
                ));
                return Ok(match end {
                    End::Status(status) => ExitCode::from(status),
                    End::Signal(signal) => child::die_by(signal),
                });
            }
            (Plain { wall_s: attempt.wall_s, cpu_s: attempt.cpu_s, memory: attempt.memory, profiled: false }, attempt.printed)
        }
    };
    if plain.memory < LEAST {
        message::line(format_args!(
            "the program needs {} of memory, {:.1} s: there is nothing to gain below {}",
            Bytes(plain.memory),
            plain.wall_s,
            Bytes(LEAST)
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let (least, free) = (plain.memory / 3 * 2 + SPARE, far.file_system.free);
    if free < least {
        return Err(refuse(format_args!(
            "far {}: {} is free, and {} may be needed: name a directory with more (--far DIR)",
            far.path.display(),
            Bytes(free),
            Bytes(least)
        )));
    }
    let limit = LEAST_LIMIT.max(Duration::try_from_secs_f64(plain.wall_s * args.limit).unwrap_or(Duration::MAX));
    let dir = PrivateDir::new("nearfar-try-").context("no temporary directory can be made")?;
    let (mut runs, mut files) = (Vec::new(), Vec::new());
    for (part, name) in PARTS {
        let near = format!("{}M", (plain.memory / part) >> 20);
        if runs.last().is_some_and(|run: &Limited| matches!(run.result, Err(Failed::Slow(..)))) {
            runs.push(Limited { part: name, near, result: Err(Failed::NotRun) });
            continue;
        }
        let file = dir.path().join(format!("{part}.json"));
        message::line(format_args!("in {name} of its memory, {near}: {:.0} s at most", limit.as_secs_f64()));
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["run", "--near", &near, "--far"]).arg(&far.path).arg("--stats").arg(&file).arg("--");
        let attempt =
            attempt::run(signals, command.args(&args.program).stdin(input.again()?), Some(limit), false).inspect_err(|_| {
                // What is known, when somebody has enough.
                message::raw(&(verdict::times(&plain, &runs).join("\n") + "\n"));
            })?;
        if runs.is_empty() {
            attempt.errors.notes.iter().for_each(|note| message::raw(&format!("{note}\n")));
        }
        let result = result(attempt, printed, &file);
        if !matches!(result, Err(Failed::Ended(_))) && file.exists() {
            files.push(file);
        }
        runs.push(Limited { part: name, near, result });
    }
    let command = args.program.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ");
    let text = verdict::lines(&plain, &runs, &quoted(&far.path.to_string_lossy()), &command);
    // Standard output is the program's own.
    message::raw(&(text.join("\n") + "\n"));
    if !files.is_empty() {
        page.write(&report::page_of(&files.iter().map(|file| document::read(file)).collect::<anyhow::Result<Vec<_>>>()?, &text))?;
        open(page.path(), signals);
    }
    Ok(if runs.iter().any(|run| matches!(run.result, Err(Failed::Ended(_)))) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a profile says of the program.
fn profiled(path: &Path) -> anyhow::Result<Plain> {
    let summary = nfprof::read(&[path.to_owned()])?;
    if summary.wall_s <= 0.0 {
        return Err(refuse(format_args!("{} does not say how long the program ran: profile it again", path.display())));
    }
    Ok(Plain { wall_s: summary.wall_s, cpu_s: summary.cpu_s, memory: summary.peak_bytes, profiled: true })
}

fn result(attempt: Attempt, printed: Option<u64>, file: &Path) -> Result<Done, Failed> {
    let file = std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    match attempt.end {
        None => Err(Failed::Slow(attempt.wall_s, file)),
        Some(End::Status(0)) => {
            let same_output = printed.zip(attempt.printed).map(|(first, now)| first == now);
            Ok(Done { wall_s: attempt.wall_s, same_output, file })
        }
        Some(end) => {
            attempt.errors.last.iter().for_each(|line| message::raw(&format!("{line}\n")));
            Err(Failed::Ended(words(end)))
        }
    }
}

fn words(end: End) -> String {
    match end {
        End::Status(exit::STOPPED_BY_NEARFAR) => "nearfar stopped it".to_owned(),
        End::Status(status) => format!("exit status {status}"),
        End::Signal(signal) => format!("ended by {}", child::signal_name(signal)),
    }
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=,:+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// What all runs read.
struct Input {
    file: Option<(PathBuf, u64)>,
}

impl Input {
    /// Standard input, where it is a file; tells when it is something that could be read only once.
    fn this() -> Self {
        let path = PathBuf::from("/proc/self/fd/0");
        let is = |what: fn(&std::fs::FileType) -> bool| std::fs::metadata(&path).is_ok_and(|facts| what(&facts.file_type()));
        let same = || std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
        let offset = || same().and_then(|mut file| file.stream_position()).unwrap_or(0);
        if is(std::fs::FileType::is_file) {
            // By descriptor: the file may have no name any more.
            return Self { file: Some((path, offset())) };
        }
        let is_null = std::fs::canonicalize(&path).is_ok_and(|path| path == Path::new("/dev/null"));
        if !is_null && !std::io::stdin().is_terminal() {
            message::line("standard input can be read only once: the program gets none; give it a file");
        }
        Self { file: None }
    }

    /// It from where it stood.
    fn again(&self) -> anyhow::Result<Stdio> {
        let Some((path, offset)) = &self.file else { return Ok(Stdio::null()) };
        let mut file = File::open(path).with_context(|| format!("standard input {}", path.display()))?;
        file.seek(SeekFrom::Start(*offset))?;
        Ok(file.into())
    }
}

/// Opens the page where somebody looks at a screen; names it in any case.
fn open(page: &Path, signals: &Signals) {
    message::line(format_args!("wrote {}", page.display()));
    let on_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if on_screen && std::io::stdout().is_terminal() {
        // Nothing to say when there is no such command.
        let mut command = Command::new("xdg-open");
        let _ = signals.spawn(command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("a-b_1.2/x=3"), "a-b_1.2/x=3");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $x"), "'it'\\''s $x'");
    }
}
