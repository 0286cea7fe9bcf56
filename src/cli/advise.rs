//! Options of `nearfar advise`.

use super::run::far_parser;
use nearfar_core::tier::{FarSpec, NearSpec};
use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar advise`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = ADVISE_NOTES)]
pub struct AdviseArgs {
    /// Profiles that "nearfar profile" wrote (those of several ranks are combined), or one trace that "nearfar run --trace" wrote
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How much near memory there is: 16G, or 50% (of this machine's memory)
    #[arg(long, value_name = "SIZE", required = true, allow_hyphen_values = true)]
    pub near: NearSpec,

    /// The machine to predict for: a published one (see "nearfar probe --list-machines"), or a node.json from "nearfar probe".
    /// Without it, or with "this": this machine's memory, over what --far names
    #[arg(long, value_name = "NAME | FILE")]
    pub machine: Option<String>,

    /// What is behind near: emu:bw=4G,lat=10us or a directory, whose speed is measured. Without it: the machine's far memory
    #[arg(long, value_name = "SPEC", value_parser = far_parser())]
    pub far: Option<FarSpec>,

    /// The machine that the profile was taken on, as a node.json or a published one, when that is not --machine
    #[arg(long, value_name = "NAME | FILE")]
    pub home: Option<String>,

    /// Of a trace: seconds that the program takes without nearfar. Without it, the program after -- is run
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub plain: Option<f64>,

    /// Threads of the run to predict, of each rank, when not those of the profile
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "verify")]
    pub threads: Option<u32>,

    /// Ranks that share the machine, each as large as a profiled one (--near is for all); without it: as many as there are profiles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "verify")]
    pub ranks: Option<u32>,

    /// A profile of the same program and input with another number of threads, to fit how computing and traffic grow with threads
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    pub scaling: Vec<PathBuf>,

    /// What memory and an hour of the machine cost: adds the price of a run for each size of near, and says which sizes are worth their price
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,

    /// Print the arithmetic of this object's gain: what was measured, the rates, each formula with its numbers. A part of the name will do
    #[arg(long, value_name = "OBJECT")]
    pub explain: Option<String>,

    /// Write the plan to this file, for "nearfar run --place plan:FILE"; a person can read and edit it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write all results to this file, as JSON; "nearfar report" makes a page of it, but for those of a trace
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw run time against bytes of near to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Allow a part of a group that does not fit to be near: the objects that are allocated first
    #[arg(long)]
    pub fractions: bool,

    /// Run the program with everything far, by the plan and with everything near, and print what was measured beside what was
    /// predicted, in total and by routine. Needs --far. The program is the one after --, or that of the profile
    #[arg(long)]
    pub verify: bool,

    /// With --verify: rounds of runs
    #[arg(long, value_name = "N", default_value_t = 2, requires = "verify")]
    pub runs: usize,

    /// With --verify: also runs with each object of the plan alone near
    #[arg(long, requires = "verify")]
    pub each: bool,

    /// With --verify: also runs with every set that fits of the six objects that gain most alone, then the plan and the fastest again in turn
    #[arg(long, requires = "verify")]
    pub sets: bool,

    /// With --verify, or of a trace: the program and its arguments
    #[arg(value_name = "PROGRAM", last = true)]
    pub program: Vec<OsString>,
}

const ADVISE_NOTES: &str = "\
Nothing is run without --verify, but for a trace the program after --, as it is.
What is predicted rests on the profile and
on the machine's figures. Intervals cover what is uncertain in these, not what
the model gets wrong: of 36 measured times, 15 were inside.
docs/explanation/how-advise-works.md explains the method.

Exit status: 0; 1 when a program failed with --verify; 2 when the request was
refused, for example a file that is not a profile, or one without observations.

Examples:
  nearfar advise app.nfprof --near 16G --machine knl-flat -o plan.toml
  nearfar advise app.nfprof --near 2G --far emu:bw=4G,lat=10us --verify
  nearfar run --near 2G --far /scratch --place plan:plan.toml -- ./app";
