//! The nearfar command: arguments -> request -> command -> output. Holds no policy; decides the exit status in one place.
//!
//! Modules are listed lowest first; a module uses only modules above it in this list.
#![forbid(unsafe_code)]

mod exit;
mod say;
mod stall;
mod choices;
mod args;
mod machine;
mod library;
mod kernel;
mod limited;
mod threading;
mod mpi;
mod program;
mod far_dir;
mod pace;
mod residence;
mod mover;
mod outcome;
mod running;
mod together;
mod summary;
mod live;
mod target;
mod runfile;
mod trace_file;
mod presets;
mod advice_file;
mod by_routine;
mod node_file;
mod tiers;
mod plan_fit;
mod plan_file;
mod profile_file;
mod profile_table;
mod order;
mod start;
mod paging;
mod request;
mod broker;
mod rank_files;
mod ranks;
mod map;
mod chart;
mod report;
mod cmd;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Runs programs that need more fast memory than the machine has.
#[derive(Parser)]
#[command(name = "nearfar", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program in less memory than it needs; the rest goes to a disk
    Run(args::RunArgs),
    /// Measure this machine's memories, processors and far tiers; no root is needed
    Probe(cmd::probe::ProbeArgs),
    /// Tell which of a program's data cause its memory traffic
    Profile(args::ProfileArgs),
    /// Tell where threads run and may run, where pages lie, and what is wrong with that
    Map(args::MapArgs),
    /// Tell what this kernel and user allow, and how to get the rest
    Doctor(args::DoctorArgs),
    /// Measure efficiency against all-DRAM and against the kernel's own means
    Bench(cmd::bench::BenchArgs),
    /// Tell which of a profiled program's data deserve near memory, and what that gives
    Advise(args::AdviseArgs),
    /// Tell what changed from one profile to another
    Diff(cmd::diff::DiffArgs),
    /// Tell whether memory or computing limits a program
    Sensitivity(args::SensitivityArgs),
    /// Write one HTML page from machine descriptions (node.json) and run files
    Report(args::ReportArgs),
    /// A two-minute tour with figures of this machine
    Demo(cmd::demo::DemoArgs),
    /// Write the man pages
    #[command(hide = true)]
    Man(args::ManArgs),
}

fn main() -> ExitCode {
    if let Some(result) = cmd::memkind_tools::dispatch(&std::env::args_os().collect::<Vec<_>>()) {
        return result.unwrap_or_else(failed);
    }
    let result = match Cli::parse().command {
        Command::Run(args) => cmd::run::run(args),
        Command::Probe(args) => cmd::probe::run(args),
        Command::Profile(args) => cmd::profile::run(args),
        Command::Map(args) => cmd::map::run(args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::Bench(args) => cmd::bench::run(args),
        Command::Advise(args) => cmd::advise::run(args),
        Command::Diff(args) => cmd::diff::run(args),
        Command::Sensitivity(args) => cmd::sensitivity::run(args),
        Command::Report(args) => cmd::report::run(args),
        Command::Demo(args) => cmd::demo::run(args),
        Command::Man(args) => cmd::man::run(args, Cli::command()),
    };
    result.unwrap_or_else(failed)
}

fn failed(error: anyhow::Error) -> ExitCode {
    say::line(format_args!("{error:#}"));
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
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/man");
        let late = cmd::man::out_of_date(Cli::command(), &dir);
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
    fn negative_sizes_reach_the_parser_that_explains_them() {
        let cli = Cli::try_parse_from(["nearfar", "run", "--near", "-5", "ls"]).expect("parsed");
        let Command::Run(args) = cli.command else { panic!("run") };
        assert_eq!(args.near.as_deref(), Some("-5"));
    }
}
