//! Options of `nearfar try`.

use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar try`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = TRY_NOTES)]
pub struct TryArgs {
    /// A directory on a fast local disk for what does not fit
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub far: PathBuf,

    /// Take the memory and the time of the program from its profile, instead of running it without nearfar first
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Stop a run that takes so many times as long as without nearfar
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    pub limit: f64,

    /// Where the page goes
    #[arg(short, long, value_name = "FILE", default_value = "nearfar-try.html")]
    pub output: PathBuf,

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

const TRY_NOTES: &str = "\
The program runs three times: as it is, then under nearfar in half and in a
third of the memory that it took. Five lines on standard error say what that
costs, why, and what to do next; the page shows both runs. What the program
prints is shown in its first run; later ones must print the same.

Standard input is given to all runs when it is a file; otherwise they get
none. Ctrl-C ends everything at any time. Nothing is left behind but the page
and what the program itself writes, which it writes three times. Processes
that leave the process group of the program, as daemons and ranks of mpirun
do, are neither measured nor ended.

Exit status: 0 when all was measured or there was nothing to gain, that of the
program when it fails without nearfar, 1 when it fails under nearfar, 2 for a
request that cannot be carried out.

Example:
  nearfar try -- python3 solve.py input.npy";
