//! What is printed, as the original prints it: MEMKIND_MEM_TIERING_LOG_ERROR and so on, on standard error.

use nearfar_kinds::memtier_env::LogLevel;
use nearfar_sys::process;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

static LEVEL: AtomicU8 = AtomicU8::new(LogLevel::Error as u8);

/// Sets how much is printed.
pub fn set_level(level: LogLevel) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// True when messages of `level` are printed.
#[inline(always)]
pub fn talks(level: LogLevel) -> bool {
    LEVEL.load(Ordering::Relaxed) >= level as u8
}

/// Prints one line of `level`.
pub fn say(level: LogLevel, text: &dyn fmt::Display) {
    if talks(level) {
        let name = match level {
            LogLevel::Error => "ERROR",
            LogLevel::Info => "INFO",
            LogLevel::Debug => "DEBUG",
        };
        process::write_stderr(format!("MEMKIND_MEM_TIERING_LOG_{name}: {text}\n").as_bytes());
    }
}
