//! Options of `nearfar man`.

use std::path::PathBuf;

/// `nearfar man`.
#[derive(clap::Args, Clone, Debug)]
pub struct ManArgs {
    /// Where the pages are written
    pub dir: PathBuf,
}
