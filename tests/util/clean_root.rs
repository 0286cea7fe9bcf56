//! A system without Rust, a compiler or nearfar, to install packages in. Made once, by `packaging/clean-root`, from the mirror of this
//! system; later runs find it in target/.

use super::root;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The release of Debian: `NEARFAR_TEST_SUITE`, or bookworm.
fn suite() -> String {
    std::env::var("NEARFAR_TEST_SUITE").unwrap_or_else(|_| "bookworm".to_owned())
}

/// Where it is.
pub fn dir() -> PathBuf {
    root().join("target").join(format!("clean-root-{}", suite()))
}

/// Makes it, unless it is there.
pub fn make() -> Result<(), String> {
    let output = Command::new(root().join("packaging/clean-root")).arg(dir()).arg(suite()).output();
    let output = output.map_err(|error| format!("packaging/clean-root: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// [`make`], once for all tests: without a network it takes a while to fail.
pub fn made() -> Result<(), String> {
    static MADE: OnceLock<Result<(), String>> = OnceLock::new();
    MADE.get_or_init(make).clone()
}
