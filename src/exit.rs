//! The exit statuses of nearfar itself, and the one error that means "you asked for something that cannot be".
//!
//! A program that ran passes its own status through; these are for the rest. `main.rs` is the only place that turns an error
//! into a status.

use std::fmt;

/// What was typed, or what this machine allows, does not permit the request; nothing was started or created.
pub const BAD_INPUT: u8 = 2;
/// Status with which the preloaded library ends a program whose data it can no longer keep right.
pub const STOPPED_BY_NEARFAR: u8 = 86;
/// nearfar itself failed after it had accepted the request.
pub const FAILED: u8 = 125;
/// The program was found but could not be executed, as with env(1).
pub const CANNOT_EXECUTE: u8 = 126;
/// The program, or the interpreter it names, vanished before it could be executed, as with env(1).
pub const NOT_FOUND: u8 = 127;

/// Refusal of a request, with what to do instead.
#[derive(Debug)]
pub struct BadInput(String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// An error that ends the command with status 2.
pub fn refuse(message: impl fmt::Display) -> anyhow::Error {
    BadInput(message.to_string()).into()
}
