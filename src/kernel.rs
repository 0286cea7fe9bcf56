//! Where nearfar-kernel is: beside this executable, as cargo builds and packages install them.

use std::path::PathBuf;

/// The program of the workloads.
///
/// # Errors
/// What is missing and how to get it, for people.
pub fn find() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find my own executable: {error}"))?;
    let beside = own.with_file_name("nearfar-kernel");
    if !beside.is_file() {
        return Err(format!("{} is missing; build all of nearfar: cargo build --release --workspace", beside.display()));
    }
    Ok(beside)
}
