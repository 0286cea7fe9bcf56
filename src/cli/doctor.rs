//! Options of `nearfar doctor`.

use super::run::{DEFAULT_FAR, denied};
use nearfar_sys::kernel::Denied;
use std::path::PathBuf;

/// `nearfar doctor`.
#[derive(clap::Args, Clone, Debug)]
pub struct DoctorArgs {
    /// The directory that far would use
    #[arg(long, value_name = "DIR", default_value = DEFAULT_FAR)]
    pub far: PathBuf,

    /// Do as if these facilities were missing: move, uffd, io_uring, odirect, thp, awake, kernel-faults
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true,
        value_parser = denied,
        env = "NEARFAR_DENY",
        hide_env_values = true
    )]
    pub deny: Denied,
}
