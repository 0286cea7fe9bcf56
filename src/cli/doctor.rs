//! Options of `nearfar doctor`.

use super::run::{DEFAULT_FAR, KernelArgs};
use std::path::PathBuf;

/// `nearfar doctor`.
#[derive(clap::Args, Clone, Debug)]
pub struct DoctorArgs {
    /// The directory that far would use
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FAR)]
    pub far: PathBuf,

    /// Measure nothing: without it, paging is tried for a few seconds, with 96 MiB in that directory
    #[arg(long)]
    pub quick: bool,

    #[command(flatten)]
    pub kernel: KernelArgs,
}
