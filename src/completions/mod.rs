//! `nearfar completions`: what the shell completes when Tab is pressed, from the table of options.

use crate::cli::completions::CompletionsArgs;
use std::io::Write;
use std::process::ExitCode;

/// Prints the script.
pub fn run(args: &CompletionsArgs, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "nearfar", &mut script);
    // A reader that closed the pipe has seen enough.
    let _ = std::io::stdout().write_all(&script);
    Ok(ExitCode::SUCCESS)
}
