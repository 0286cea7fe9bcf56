//! The table of options: what can be typed, one file for each sub-command. Parsing, `--help` and the man pages derive from it. A field has the
//! name of its option. Each value is understood here by itself; whether it can be carried out is for the sub-command to say.

pub mod run;
pub mod r#try;
pub mod probe;
pub mod profile;
pub mod map;
pub mod top;
pub mod doctor;
pub mod bench;
pub mod advise;
pub mod diff;
pub mod sensitivity;
pub mod report;
pub mod demo;
pub mod completions;
pub mod man;

use clap::{Parser, Subcommand};

/// Runs programs that need more fast memory than the machine has.
#[derive(Parser)]
#[command(name = "nearfar", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    /// What is to be done.
    pub command: Command,
}

/// A command with its options.
#[derive(Subcommand)]
pub enum Command {
    /// Run a program in less memory than it needs; the rest goes to a disk
    Run(Box<run::RunArgs>),
    /// Run a program as it is, then in half and in a third of its memory, and tell what that costs
    Try(r#try::TryArgs),
    /// Measure this machine's memories, processors and far tiers; works without root
    Probe(probe::ProbeArgs),
    /// Show which of a program's data cause its memory traffic
    Profile(profile::ProfileArgs),
    /// Show where threads run and may run, where pages are, and what is wrong with that
    Map(map::MapArgs),
    /// Show the jobs that run now: near memory, hits and misses, traffic, stalls
    Top(top::TopArgs),
    /// Show what this kernel and user allow, and how to get the rest
    Doctor(doctor::DoctorArgs),
    /// Measure efficiency against all-DRAM and against the kernel's own means
    Bench(bench::BenchArgs),
    /// Show which of a profiled program's data deserve near memory, and what that gains
    Advise(advise::AdviseArgs),
    /// Show what changed from one profile to another
    Diff(diff::DiffArgs),
    /// Find out whether memory or computing limits a program
    Sensitivity(sensitivity::SensitivityArgs),
    /// Write one HTML page from machine descriptions (node.json) and run files
    Report(report::ReportArgs),
    /// A two-minute tour with figures of this machine
    Demo(demo::DemoArgs),
    /// Print what a shell completes after nearfar when Tab is pressed
    Completions(completions::CompletionsArgs),
    /// Write the man pages
    #[command(hide = true)]
    Man(man::ManArgs),
}
