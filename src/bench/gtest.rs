//! Programs of tests made with GoogleTest: which tests they have, and how one of them ends in a process of its own.
//!
//! Does not know what is tested.

use crate::launch::helper;
use anyhow::{Context, Result, bail};
use nearfar_sys::child::signal_name;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Passed.
    Passed,
    /// It said that the machine lacks something.
    Skipped,
    /// Its first failed check, or what else it said.
    Failed(String),
    /// The signal that ended it.
    Crashed(i32),
    /// It had no end within its time, and was killed with all that it had started.
    TimedOut,
}

impl End {
    /// What counts as passed.
    pub fn is_pass(&self) -> bool {
        *self == Self::Passed
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Skipped => f.write_str("skipped"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Crashed(signal) => write!(f, "crashed: {}", signal_name(*signal)),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}

/// Most bytes of a reason: a line of a table.
const MOST_WORDS: usize = 120;

/// The tests of the program that `command` starts and that `filter` (GoogleTest's) leaves, in its order; disabled ones left out.
///
/// # Errors
/// It does not start, or does not list tests.
pub fn list(command: &mut Command, filter: &str, limit: Duration) -> Result<Vec<String>> {
    let program = command.get_program().to_owned();
    command.args(["--gtest_list_tests", &format!("--gtest_filter={filter}")]);
    let finished = helper::run(command, limit).with_context(|| format!("cannot start {}", program.display()))?;
    if !finished.is_ok() {
        bail!("{} --gtest_list_tests: {}", program.display(), finished.problem(limit));
    }
    Ok(names(&finished.stdout))
}

/// "Suite.", then a line with two blanks for each of its tests; values of parameters behind "#".
fn names(listed: &str) -> Vec<String> {
    let mut suite = "";
    let mut names = Vec::new();
    for line in listed.lines() {
        let name = line.split('#').next().unwrap_or_default();
        match name.strip_prefix("  ") {
            Some(test) if !suite.is_empty() => names.push(format!("{suite}{}", test.trim())),
            _ if name.trim_end().ends_with('.') => suite = name.trim_end(),
            // What a library says when it is loaded.
            _ => {}
        }
    }
    names.retain(|name| !name.split(['.', '/']).any(|part| part.starts_with("DISABLED_")));
    names
}

/// Runs `test` alone in the program that `command` starts.
///
/// # Errors
/// It does not start.
pub fn run(command: &mut Command, test: &str, limit: Duration) -> Result<End> {
    command.arg(format!("--gtest_filter={test}"));
    let finished = helper::run(command, limit).with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let Some(status) = finished.status else { return Ok(End::TimedOut) };
    if let Some(signal) = status.signal() {
        return Ok(End::Crashed(signal));
    }
    Ok(match (status.success(), finished.stdout.as_str()) {
        (true, text) if text.contains("[  SKIPPED ]") => End::Skipped,
        // Not by the status alone: a program whose tests call exit(0), or that runs none, ends well too.
        (true, text) if text.contains("[  PASSED  ] 1 test") => End::Passed,
        (true, _) => End::Failed("it ended without a verdict".to_owned()),
        (false, text) => End::Failed(reason(text).unwrap_or_else(|| finished.problem(limit))),
    })
}

/// The first failed check in a line: the file without its directory, and what was said of it.
fn reason(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.contains(": Failure"));
    let place = Path::new(lines.next()?.split(": Failure").next()?).file_name()?.to_string_lossy().into_owned();
    let words = lines.take_while(|line| !line.starts_with('[') && !line.is_empty()).map(str::trim);
    let mut line = format!("{place}: {}", words.collect::<Vec<_>>().join(" "));
    if let Some((at, _)) = line.char_indices().nth(MOST_WORDS) {
        line.truncate(at);
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_listed_as_googletest_prints_them() {
        let listed = "a warning of a library\nPlain.\n  one\n  DISABLED_two\nKinds/Param.\n  size/0  # GetParam() = 16\n  size/1  # GetParam() = 32\n\
                      DISABLED_All.\n  three\nTyped/0.  # TypeParam = int\n  four\n";
        assert_eq!(names(listed), ["Plain.one", "Kinds/Param.size/0", "Kinds/Param.size/1", "Typed/0.four"]);
    }

    fn ends(script: &str) -> End {
        run(Command::new("sh").args(["-c", script]), "Suite.test", Duration::from_millis(700)).expect("sh")
    }

    #[test]
    fn every_end_is_told_apart() {
        assert_eq!(ends("echo '[  PASSED  ] 1 test.'"), End::Passed);
        assert_eq!(ends("echo '[  PASSED  ] 0 tests.'; echo '[  SKIPPED ] 1 test, listed below:'"), End::Skipped);
        assert_eq!(ends("echo '[  PASSED  ] 0 tests.'").to_string(), "failed: it ended without a verdict");
        assert_eq!(ends("kill -SEGV $$"), End::Crashed(11));
        assert_eq!(ends("sleep 60 & sleep 60"), End::TimedOut);
        let said = "printf '[ RUN ]\\n/a/b/c.cpp:7: Failure\\nExpected: x\\n  Which is: 3\\n[  FAILED  ] t\\n'; exit 1";
        assert_eq!(ends(said), End::Failed("c.cpp:7: Expected: x Which is: 3".to_owned()));
        assert_eq!(ends("echo no such thing >&2; exit 3").to_string(), "failed: exit status: 3: no such thing");
    }
}
