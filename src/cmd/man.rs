//! `nearfar man` (hidden): the man pages, from the table of options.

use crate::args::ManArgs;
use crate::cmd::memkind_tools;
use anyhow::Context;
use std::process::ExitCode;

/// Writes a page for `command` and one for each of its subcommands.
pub fn run(args: ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.dir).with_context(|| args.dir.display().to_string())?;
    for (name, text) in pages(command) {
        let path = args.dir.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn pages(command: clap::Command) -> Vec<(String, Vec<u8>)> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut commands = vec![command.clone()];
    commands.extend(command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned());
    commands.extend(memkind_tools::commands());
    commands.into_iter().map(page).collect()
}

fn page(command: clap::Command) -> (String, Vec<u8>) {
    // No date: the same table must give the same page on every day.
    let title = command.get_display_name().unwrap_or(command.get_name()).to_uppercase();
    let man = clap_mangen::Man::new(command).title(title).date("").manual("nearfar");
    let mut text = Vec::new();
    // Writing to a Vec cannot fail.
    let _ = man.render(&mut text);
    (man.get_filename(), text)
}

/// The pages in `dir` that are not those of `command`.
#[cfg(test)]
pub fn out_of_date(command: clap::Command, dir: &std::path::Path) -> Vec<String> {
    let same = |name: &str, text: &[u8]| std::fs::read(dir.join(name)).is_ok_and(|found| found == text);
    pages(command).into_iter().filter(|(name, text)| !same(name, text)).map(|(name, _)| name).collect()
}
