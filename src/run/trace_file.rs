//! The file that `run --trace` records to: refused before anything starts, or begun anew.

use crate::exit::refuse;
use nearfar_core::addr::CHUNK;
use nearfar_core::trace;
use nearfar_core::units::Bytes;
use nearfar_tiers::job::Settings;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Fewer chunks in view than these make a program go round in circles: one instruction may need several.
const LEAST: u64 = 16;

/// A trace that is to be written.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// Absolute: processes may change directory.
    path: PathBuf,
    window_chunks: u32,
}

impl TraceFile {
    /// Checks `path` and the window against `near_bytes`, and notes both in `settings`.
    pub fn new(path: &Path, window: Bytes, near_bytes: u64, settings: &mut Settings) -> anyhow::Result<Self> {
        let chunks = window.0 / CHUNK as u64;
        let most = near_bytes / 2 / CHUNK as u64;
        if chunks < LEAST || chunks > most {
            return Err(refuse(format_args!(
                "--trace-window {}: write between {} and half of near, {}",
                window.exact(),
                Bytes(LEAST * CHUNK as u64).exact(),
                Bytes(most * CHUNK as u64).exact()
            )));
        }
        let cannot = |why: &dyn std::fmt::Display| refuse(format_args!("--trace {} cannot be written: {why}", path.display()));
        let absolute = std::path::absolute(path).map_err(|error| cannot(&error))?;
        match std::fs::metadata(&absolute) {
            Ok(facts) if facts.is_dir() => return Err(cannot(&"it is a directory; name a file in it")),
            Ok(facts) if !facts.is_file() => {
                return Err(cannot(&"several processes append to it, which needs an ordinary file"));
            }
            _ => {}
        }
        let trace = Self { path: absolute, window_chunks: chunks as u32 };
        settings.set_trace(trace.path.as_os_str().as_bytes(), trace.window_chunks).map_err(|errno| cannot(&errno))?;
        Ok(trace)
    }

    /// Begins the file; what was in it is gone.
    pub fn create(&self) -> anyhow::Result<()> {
        let begin = || std::fs::File::create(&self.path)?.write_all(&trace::header(self.window_chunks));
        begin().map_err(|error| refuse(format_args!("--trace {} cannot be written: {error}", self.path.display())))
    }

    /// A line for the summary.
    pub fn summary(&self) -> String {
        let size = std::fs::metadata(&self.path).map_or(0, |facts| facts.len());
        format!("trace: {} in {}", Bytes(size), self.path.display())
    }
}
