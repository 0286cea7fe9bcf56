//! What a job runs, as the command line of its `nearfar run` says.

use crate::cli::{Cli, Command};
use clap::Parser;
use nearfar_sys::root::Root;

/// A program with its arguments, as they were typed. Bytes that are not UTF-8 become U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The rest.
    pub args: Vec<String>,
}

impl Program {
    /// What process `command` was told to run; where it was told in another way, what it is itself.
    pub fn of(root: &Root, command: u32) -> Self {
        let bytes = root.bytes(&format!("/proc/{command}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let words: Vec<&str> = text.strip_suffix('\0').unwrap_or(&text).split('\0').collect();
        let program = match Cli::try_parse_from(&words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            _ => words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(),
        };
        let mut words = program.into_iter();
        Self { name: words.next().unwrap_or_default(), args: words.collect() }
    }

    /// Its file's name.
    pub fn short(&self) -> &str {
        let name = self.name.rsplit('/').next().unwrap_or_default();
        if name.is_empty() { "?" } else { name }
    }

    /// The line that was typed.
    pub fn line(&self) -> String {
        let words: Vec<&str> = std::iter::once(&self.name).chain(&self.args).map(String::as_str).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Program {
        let root = Root::captured(&format!("=== /proc/7/cmdline\n {}\n", words.join("\0"))).expect("a capture");
        // A capture's files end with a line feed, and what the kernel writes does not.
        let mut program = Program::of(&root, 7);
        let last = program.args.last_mut().unwrap_or(&mut program.name);
        *last = last.trim_end().to_owned();
        program
    }

    #[test]
    fn programs_are_told_from_options() {
        let program = of(&["/usr/bin/nearfar", "run", "--near", "64M", "--live", "--", "/opt/bin/solver", "-q", "--near"]);
        assert_eq!((program.short(), program.line().as_str()), ("solver", "/opt/bin/solver -q --near"));
        assert_eq!(of(&["/opt/other", "x"]).short(), "other");
        assert_eq!(Program::of(&Root::captured("").expect("a capture"), 7).short(), "?");
    }
}
