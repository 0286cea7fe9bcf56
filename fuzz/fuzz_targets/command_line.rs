//! A command line, one argument a line: it is understood or refused.
#![no_main]
#![allow(dead_code, unused_imports)]

#[path = "../../src/cli/mod.rs"]
mod cli;

use clap::Parser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = cli::Cli::try_parse_from(std::iter::once("nearfar").chain(text.lines()));
});
