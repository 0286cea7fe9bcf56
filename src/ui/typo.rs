//! Mistyped commands and options: the one that was probably meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The one of `words` that `typed` is nearest to: at most one letter in three is changed, added, left out or has its place exchanged with
/// the next (Damerau and Levenshtein), at least one may be.
pub fn meant<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (typed.chars().count() / 3).max(1);
    let near = words.map(|word| (strsim::damerau_levenshtein(typed, word), word));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

/// The line about a sub-command that there is none, where one is like it.
pub fn about_command(error: &clap::Error, table: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let commands = || table.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let meant = meant(typed, commands())?;
    Some(format!("there is no command \"{typed}\"; did you mean \"{} {meant}\"?", table.get_name()))
}

/// The line about a word in the program's place that looks like an option of `command`: what follows the first word that is no option
/// is the program, so that the parser does not complain.
pub fn about_option(typed: &str, command: &clap::Command) -> Option<String> {
    let name = typed.strip_prefix("--").unwrap_or(typed.strip_prefix('-')?);
    let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
    let meant = meant(name, command.get_arguments().filter_map(clap::Arg::get_long));
    let hint = match (meant, value) {
        (Some(meant), Some(value)) => format!("did you mean \"--{meant}={value}\"?"),
        (Some(meant), None) => format!("did you mean \"--{meant}\"?"),
        (None, _) => format!("\"nearfar {} --help\" shows all; a program of that name is ./{typed}", command.get_name()),
    };
    Some(format!("there is no option \"{typed}\"; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn what_is_like_a_command_is_taken_for_it() {
        let table = Cli::command();
        let about = |typed: &str| {
            let error = Cli::try_parse_from(["nearfar", typed]).err().expect("refused");
            about_command(&error, &table)
        };
        for (typed, wanted) in
            [("rnu", "run"), ("porfile", "profile"), ("docter", "doctor"), ("repport", "report"), ("advice", "advise")]
        {
            let line = about(typed).expect("a line");
            assert!(line.ends_with(&format!("did you mean \"nearfar {wanted}\"?")), "{typed}: {line}");
        }
        // "run" without a program is another mistake, nothing is like "frobnicate", and "man" is hidden.
        assert_eq!((about("run"), about("frobnicate"), about("mann")), (None, None, None));
    }

    #[test]
    fn what_is_like_an_option_is_taken_for_it() {
        let table = Cli::command();
        let run = table.find_subcommand("run").expect("run");
        for (typed, wanted) in [("--neer", "\"--near\"?"), ("--farr=/tmp", "\"--far=/tmp\"?"), ("--quite", "\"--quiet\"?")] {
            let line = about_option(typed, run).expect("a line");
            assert!(line.ends_with(wanted), "{typed}: {line}");
        }
        let line = about_option("-Z", run).expect("a line");
        assert!(line.starts_with("there is no option \"-Z\"") && line.contains("run --help"), "{line}");
        assert_eq!((about_option("ls", run), about_option("./-Z", run)), (None, None));
    }
}
