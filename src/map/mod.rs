//! What `nearfar map` does besides starting a program: looking at processes again and again, and showing what was seen.
//!
//! Modules are listed lowest first.

mod crowd;
mod facts;
mod track;
pub mod watch;
pub mod tables;
pub mod xthi;
pub mod json;
