//! The nearfar command: arguments -> request -> command -> output. Holds no policy; decides the exit status in one place.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.
#![forbid(unsafe_code)]

mod exit;
mod machine;
mod sample;
mod cli;
mod files;
mod ui;
mod launch;
mod run;
mod probe;
mod profile;
mod advise;
mod diff;
mod map;
mod top;
mod sensitivity;
mod report;
mod r#try;
mod bench;
mod doctor;
mod demo;
mod memkind_tools;
mod completions;
mod man;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use std::error::Error;
use std::process::ExitCode;
use ui::message;

fn main() -> ExitCode {
    if let Some(result) = memkind_tools::dispatch(&std::env::args_os().collect::<Vec<_>>()) {
        return result.unwrap_or_else(failed);
    }
    let command = Cli::try_parse().unwrap_or_else(|error| not_understood(&error)).command;
    if let Some(line) = misplaced_option(&command) {
        return failed(exit::refuse(line));
    }
    let result = match command {
        Command::Run(args) => run::run(*args),
        Command::Try(args) => r#try::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Profile(args) => profile::run(args),
        Command::Map(args) => map::run(args),
        Command::Top(args) => top::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Advise(args) => advise::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Sensitivity(args) => sensitivity::run(args),
        Command::Report(args) => report::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(args, Cli::command()),
    };
    result.unwrap_or_else(failed)
}

/// The line about an option that there is none, which the parser takes for the program.
fn misplaced_option(command: &Command) -> Option<String> {
    let (name, program) = match command {
        Command::Run(args) => ("run", &args.program),
        Command::Try(args) => ("try", &args.program),
        Command::Profile(args) => ("profile", &args.program),
        Command::Sensitivity(args) => ("sensitivity", &args.program),
        Command::Advise(args) => ("advise", &args.program),
        Command::Map(args) => ("map", &args.what),
        _ => return None,
    };
    let typed = program.first()?.to_str()?;
    ui::typo::about_option(typed, Cli::command().find_subcommand(name)?)
}

/// Ends the command with the status of what was typed: 2 when it is wrong, 0 for help. A value that an option does not take is told of
/// like all that is refused later.
fn not_understood(error: &clap::Error) -> ! {
    match refusal(error).or_else(|| ui::typo::about_command(error, &Cli::command())) {
        Some(text) => {
            message::line(text);
            std::process::exit(exit::BAD_INPUT.into())
        }
        None => error.exit(),
    }
}

/// The line about a value that an option does not take, which is repeated where the reason does not.
fn refusal(error: &clap::Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, why) = (word(ContextKind::InvalidArg)?, error.source()?.to_string());
    let option = option.split(' ').next()?;
    match word(ContextKind::InvalidValue) {
        Some(value) if !why.contains(value) => Some(format!("{option} {value}: {why}")),
        _ => Some(format!("{option}: {why}")),
    }
}

fn failed(error: anyhow::Error) -> ExitCode {
    message::line(format_args!("{error:#}"));
    let status = if error.is::<exit::BadInput>() { exit::BAD_INPUT } else { exit::FAILED };
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_options_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_man_pages_are_those_of_the_table() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/man");
        let late = man::out_of_date(Cli::command(), &dir);
        assert!(late.is_empty(), "behind the table of options: {late:?}; run \"make docs\"");
    }

    #[test]
    fn options_after_the_program_are_the_program_s() {
        let cli = Cli::try_parse_from(["nearfar", "run", "--near", "1G", "ls", "-q", "--live"]).expect("parsed");
        let Command::Run(args) = cli.command else { panic!("run") };
        assert_eq!(args.program, ["ls", "-q", "--live"]);
        assert!(!args.quiet && !args.live);
    }

    #[test]
    fn bad_values_are_explained_with_the_option() {
        for (options, begin, hint) in [
            (["--near", "-5"], "--near: \"-5\" is not a size", "negative"),
            (["--deny", "mov"], "--deny: \"mov\"", "io_uring"),
            (["--grain", "3K"], "--grain: \"3K\"", "power of two"),
            (["--migrate-rate", "nonsense"], "--migrate-rate: \"nonsense\"", "800M"),
            (["--migrate-cpu", "much"], "--migrate-cpu much: ", "invalid float"),
        ] {
            let line = [&["nearfar", "run"], &options[..], &["ls"]].concat();
            let error = Cli::try_parse_from(line).err().expect("refused");
            let text = refusal(&error).expect("a reason");
            assert!(text.starts_with(begin) && text.contains(hint), "{options:?}: {text}");
        }
        let error = Cli::try_parse_from(["nearfar", "run", "--migrate", "x", "ls"]).err().expect("refused");
        assert_eq!(refusal(&error), None, "clap lists the words");
    }
}
