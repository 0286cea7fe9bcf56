//! Options of `nearfar profile`.

use nearfar_core::units::Bytes;
use nearfar_profile::settings::Denied;
use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar profile`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = PROFILE_NOTES)]
pub struct ProfileArgs {
    /// Where the profile goes. Of several MPI ranks each has a file of its own, with its number before the extension. Without it:
    /// the program's name with .nfprof, in this directory
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Smallest block of memory that is an object of its own
    #[arg(long, value_name = "SIZE", default_value = "4K", allow_hyphen_values = true)]
    pub least: Bytes,

    /// Share of the program's time that observing may take [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = share, allow_hyphen_values = true, conflicts_with = "precise")]
    pub budget: Option<f64>,

    /// Look more often: narrower intervals, for up to 15 % of the run time. A budget of 7%, and more memory samples where the processor
    /// takes them
    #[arg(long)]
    pub precise: bool,

    /// Size that the file may have; when it comes close, small objects are reported together
    #[arg(long, value_name = "SIZE", default_value = "64M", allow_hyphen_values = true)]
    pub limit: Bytes,

    /// Write what the profile says to this file as well, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print no table
    #[arg(short, long)]
    pub quiet: bool,

    /// What random choices start from; 0: the clock
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub seed: u64,

    /// Do without these means of observing, to see what happens then: faults, clock, script, samples, awake
    #[arg(long, value_name = "LIST", default_value = "", hide = true, value_parser = denied, env = "NEARFAR_PROFILE_DENY")]
    pub deny: Denied,

    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = clap::ValueHint::CommandWithArguments
    )]
    pub program: Vec<OsString>,
}

const PROFILE_NOTES: &str = "\
The program runs as it is; all that it starts is observed as well. Random pages
of its memory are taken out of its view for a moment, so that the next touch is
seen: how soon that comes shows how much each object is read and written
beyond the caches. The result is an estimate, with an interval that holds
the truth in 9 of 10 cases.

The program's standard output is untouched; the table goes to standard error.
The exit status is the program's own, as with \"nearfar run\"; 2 when the
request was refused.

Examples:
  nearfar profile -o app.nfprof -- ./solver input.dat
  nearfar report app.nfprof                       (the table again, and a page)
  nearfar advise app.nfprof --near 16G";

/// "2%" or "2" as a share.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim().parse::<f64>().ok().filter(|percent| (0.1..=50.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| format!("{text}: write a share of the time from 0.1% to 50%"))
}

fn denied(list: &str) -> Result<Denied, String> {
    Denied::parse(list).ok_or_else(|| format!("{list}: write one or more of faults, clock, script, samples, awake"))
}
