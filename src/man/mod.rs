//! `nearfar man` (hidden): the man pages, from the table of options.

use crate::cli::man::ManArgs;
use crate::memkind_tools;
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

/// The pages of `command` that `dir` has not or has otherwise, and what `dir` has besides.
#[cfg(test)]
pub fn out_of_date(command: clap::Command, dir: &std::path::Path) -> Vec<String> {
    let same = |name: &str, text: &[u8]| std::fs::read(dir.join(name)).is_ok_and(|found| found == text);
    let pages = pages(command);
    let is_page = |name: &str| pages.iter().any(|(page, _)| page == name);
    let there =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let strangers: Vec<String> = there.filter(|name| !is_page(name)).collect();
    pages.iter().filter(|(name, text)| !same(name, text)).map(|(name, _)| name.clone()).chain(strangers).collect()
}
