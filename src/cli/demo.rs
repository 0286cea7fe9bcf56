//! Options of `nearfar demo`.

use nearfar_core::units::Bytes;
use std::path::PathBuf;

/// A two-minute tour: programs with three times more data than near memory, with figures of this machine
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Near memory; the programs' data is three times as much [default: 800M, less when memory or disk is short]
    #[arg(long, value_name = "SIZE")]
    pub near: Option<Bytes>,
    /// Directory of the far tier, and of the swap file that nearfar is compared with
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub far: PathBuf,

    /// Draw the speeds as bars to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}
