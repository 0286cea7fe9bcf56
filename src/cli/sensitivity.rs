//! Options of `nearfar sensitivity`.

use std::ffi::OsString;
use std::path::PathBuf;

/// `nearfar sensitivity`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = SENSITIVITY_NOTES)]
pub struct SensitivityArgs {
    /// Runs under each condition, at least 3; one more comes first and is not counted
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: usize,

    /// Drop what the program prints in its first run as well
    #[arg(long)]
    pub mute: bool,

    /// Save the verdict and every time measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// One run of everything, on tiny data: shows that all parts work, not what limits the program
    #[arg(long, hide = true)]
    pub smoke: bool,

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

const SENSITIVITY_NOTES: &str = "\
The program runs several times: as it is, on half of the cores of each
memory node, there beside a hog of memory bandwidth and beside one that
takes processor time alone, and with a lower clock where root may set it.
It must do the same work every time, needs no standard input, and must end
with status 0. Its output is passed on in the first run and then dropped.

Each change is made to two kernels as well, triad (memory alone) and
arithmetic in registers. Where the program stands between them is the share
of its time that follows memory.

Exit status: 0 when all was measured, 1 when the program failed, 2 for a
request that cannot be carried out.

Example:
  nearfar sensitivity -- ./solver input.dat";
