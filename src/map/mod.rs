//! `nearfar map`: watches a process, or starts a program and watches that, and reports where it ran and where its pages lie.
//!
//! A program's standard streams, its signals and its end are its own, as with `nearfar run`; the report goes to standard error.
//!
//! Modules are listed lowest first.

mod display;
mod xthi;
mod json;

use crate::cli::map::MapArgs;
use crate::exit::refuse;
use crate::files::output::OutputFile;
use crate::launch::executable;
use crate::launch::supervisor::{End, not_executed};
use crate::ui::message;
use anyhow::Context;
use nearfar_core::affinity::{Survey, judge};
use nearfar_host::survey::Watch;
use nearfar_sys::child::{self, Signals};
use nearfar_sys::event::wait_readable;
use nearfar_sys::proc_tasks;
use nearfar_sys::root::Root;
use nearfar_sys::usage::{UsageOf, Used, used};
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

/// How long a process is watched where nobody says: CPU use takes some time to tell.
const SECONDS: f64 = 1.0;

/// Watches what `args` name.
pub fn run(args: MapArgs) -> anyhow::Result<ExitCode> {
    let after = args.after;
    let what = match args.what.as_slice() {
        [number, option, ..] if is_number(number) && option.as_encoded_bytes().starts_with(b"-") => {
            return Err(refuse("options go before the number of the process: nearfar map --after 2 PID"));
        }
        [only] if is_number(only) => What::Process(process(only)?),
        [name, ..] => What::Program(executable::find(name, std::env::var_os("PATH").as_deref())?, args.what.clone()),
        [] => return Err(refuse("name a process by its number, or a program")),
    };
    let form = if args.json {
        Form::Json
    } else if args.xthi {
        Form::Xthi
    } else {
        Form::Tables
    };
    let output = Output::new(args.output.as_deref(), form, matches!(what, What::Program(..)))?;
    match what {
        What::Process(pid) => of_process(pid, after.unwrap_or(Duration::from_secs_f64(SECONDS)), output),
        What::Program(path, argv) => of_program(&path, &argv, after, output),
    }
}

enum What {
    Process(u32),
    Program(PathBuf, Vec<OsString>),
}

fn is_number(text: &OsStr) -> bool {
    text.to_str().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The process that `text` is the number of; that of a thread stands for its process.
fn process(text: &OsStr) -> anyhow::Result<u32> {
    let shown = text.to_string_lossy();
    let pid = shown.parse().ok().filter(|pid| *pid > 0).and_then(|id| proc_tasks::process_of(&Root::this(), id));
    pid.ok_or_else(|| {
        refuse(format_args!("there is no process {shown} (\"ps -e\" lists them; for a program of that name write ./{shown})"))
    })
}

#[derive(Clone, Copy)]
enum Form {
    Tables,
    Xthi,
    Json,
}

/// Where the report goes, and how it looks.
struct Output {
    file: Option<OutputFile>,
    form: Form,
    /// Standard output is the program's.
    on_stderr: bool,
}

impl Output {
    /// Checks `path` before anything is started, so that a long run is not lost; what is there stays until the report is written.
    fn new(path: Option<&Path>, form: Form, on_stderr: bool) -> anyhow::Result<Self> {
        let file = path.map(|path| OutputFile::new("-o", path.to_owned())).transpose()?;
        Ok(Self { file, form, on_stderr })
    }

    /// Writes the report. The program may have ended: a failure is told but does not replace its status.
    fn write(&self, survey: &Survey) {
        let host = Root::this().text("/proc/sys/kernel/hostname").unwrap_or_else(|| "localhost".to_owned());
        let terminal = match (&self.file, self.on_stderr) {
            (Some(_), _) => false,
            (None, true) => std::io::stderr().is_terminal(),
            (None, false) => std::io::stdout().is_terminal(),
        };
        let warnings = judge(survey);
        let text = match self.form {
            Form::Tables => Ok(display::report(survey, &warnings, terminal)),
            Form::Xthi => Ok(xthi::lines(survey, &host)),
            Form::Json => json::document(survey, &warnings, &host),
        };
        let written = text.and_then(|text| match &self.file {
            Some(file) => file.write(&text),
            None => {
                if self.on_stderr {
                    message::raw(&text);
                } else {
                    // A reader that closed the pipe has seen enough.
                    let _ = std::io::stdout().write_all(text.as_bytes());
                }
                Ok(())
            }
        });
        if let Err(error) = written {
            message::line(format_args!("{error:#}"));
        }
        if matches!(self.form, Form::Xthi) {
            // Other lines would disturb who reads these.
            survey.notes.iter().for_each(message::line);
        }
    }
}

/// Watches a process for `time`, or until it ends or somebody presses Ctrl-C.
fn of_process(pid: u32, time: Duration, output: Output) -> anyhow::Result<ExitCode> {
    let signals = Signals::catch().context("signals cannot be caught")?;
    let begin = Instant::now();
    let mut watch = Watch::new(Root::this(), pid, proc_tasks::page_bytes());
    while begin.elapsed() < time {
        watch.look(false);
        let left = watch.left().min(time.saturating_sub(begin.elapsed()));
        wait(&signals, left);
        if signals.next().is_some() || !watch.is_alive() {
            break;
        }
    }
    watch.look_at_all();
    output.write(&watch.into_survey());
    Ok(ExitCode::SUCCESS)
}

/// Starts a program and watches it until it ends, or for `after`.
fn of_program(path: &Path, argv: &[OsString], after: Option<Duration>, output: Output) -> anyhow::Result<ExitCode> {
    let signals = Signals::catch().context("signals cannot be caught")?;
    let mut command = Command::new(path);
    if let [name, args @ ..] = argv {
        command.arg0(name).args(args);
    }
    let begin = Instant::now();
    let mut child = match signals.spawn(&mut command) {
        Ok(child) => child,
        Err(error) => {
            return Ok(not_executed(path, &error));
        }
    };
    let mut watch = Some(Watch::new(Root::this(), child.id(), proc_tasks::page_bytes()));
    let end = loop {
        forward(&signals, &child);
        if let Some(status) = child.try_wait().context("waiting for the program")? {
            break End::from(status);
        }
        let late = after.is_some_and(|after| begin.elapsed() >= after);
        if let Some(mut watch) = watch.take_if(|_| late) {
            watch.look_at_all();
            output.write(&watch.into_survey());
        }
        let Some(watch) = &mut watch else {
            wait(&signals, Duration::MAX);
            continue;
        };
        watch.look(false);
        let until_report = after.map_or(Duration::MAX, |after| after.saturating_sub(begin.elapsed()));
        if wait(&signals, watch.left().min(until_report)) {
            // Most often the program has ended: until it is waited for, the kernel still knows what it has used.
            watch.look(true);
        }
    };
    if let Some(watch) = watch {
        let mut survey = watch.into_survey();
        let Used { user, system, .. } = used(UsageOf::Children);
        survey.cpu_s = Some((user + system).as_secs_f64());
        output.write(&survey);
    }
    match end {
        End::Status(status) => Ok(ExitCode::from(status)),
        End::Signal(signal) => child::die_by(signal),
    }
}

/// Passes on to the program what somebody sent to this process.
fn forward(signals: &Signals, child: &Child) {
    while let Some(arrived) = signals.next() {
        // What the terminal sent has reached the program as well, which is in the same process group.
        if !arrived.from_kernel {
            child::send(child, arrived.signal);
        }
    }
}

/// Waits for a signal, at most for `time`. True when one came.
fn wait(signals: &Signals, time: Duration) -> bool {
    // Rounded up, since less than what is left would wake for nothing.
    let millis = i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    let mut ready = [false];
    wait_readable(&[signals.as_raw_fd()], millis, &mut ready);
    ready[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_watched() {
        let own = std::process::id().to_string();
        assert_eq!(process(own.as_ref()).ok(), Some(std::process::id()));
        assert!(is_number(own.as_ref()) && ["./7", "", "-7"].iter().all(|text| !is_number(text.as_ref())));
        for bad in ["0", "4294967295", "99999999999999999999"] {
            let message = process(bad.as_ref()).expect_err(bad).to_string();
            assert!(message.contains(&format!("no process {bad}")), "{message}");
        }
    }

    #[test]
    fn a_file_stays_until_the_report_is_written() {
        let path = std::env::temp_dir().join(format!("nearfar-map-{}", std::process::id()));
        std::fs::write(&path, "before").expect("written");
        let output = Output::new(Some(&path), Form::Json, true).expect("can be written");
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "before");
        output.write(&Survey::default());
        assert!(std::fs::read_to_string(&path).expect("read").starts_with('{'));
        std::fs::remove_file(&path).expect("clean up");
    }
}
