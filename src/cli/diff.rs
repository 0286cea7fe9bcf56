//! Options of `nearfar diff`.

use std::path::PathBuf;

/// Arguments of `nearfar diff`.
#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    /// The earlier profile
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The later one
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Show all objects, not only those that changed
    #[arg(long)]
    pub all: bool,
    /// Write what changed here as JSON; "-" is the terminal
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
