//! `nearfar bench memkind --suite`: memkind's own tests as judges, with its library and with ours, each test in a process of its own.
//!
//! Builds nothing: takes memkind's tree as its own makefiles left it. Every test runs with theirs, then with ours.

use super::conditions::Conditions;
use super::expected_failures;
use super::gtest::{self, End};
use crate::exit::refuse;
use crate::machine::read;
use crate::ui::table::{Table, align_right, framed};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// memkind's programs of tests that need neither another machine nor hours; others in the tree are left alone: some fill all memory.
const PROGRAMS: [&str; 4] = ["all_tests", "memkind_memtier_test", "get_capacity_test", "memkind_highcapacity_test"];
/// Where they are below a tree. Libtool leaves scripts beside the real ones, which set the library themselves.
const DIRS: [&str; 4] = ["test/.libs", ".libs", "test", "."];
/// Where memkind's library is below it.
const LIBRARIES: [&str; 4] =
    [".libs/libmemkind.so.0", "libmemkind.so.0", "../.libs/libmemkind.so.0", "../../.libs/libmemkind.so.0"];
/// Time of the slowest things that end by themselves: a thousand threads on two CPUs.
const LIMIT: Duration = Duration::from_secs(300);
/// For a list of tests.
const LIST_LIMIT: Duration = Duration::from_secs(30);
const NODES: &str = "MEMKIND_HBW_NODES";

/// What to run.
#[derive(Debug)]
pub struct Suite<'a> {
    /// memkind's tree.
    pub dir: &'a Path,
    /// Its library; else the tree's.
    pub theirs: Option<PathBuf>,
    /// Our library.
    pub ours: PathBuf,
    /// GoogleTest's filter.
    pub only: &'a str,
}

/// A library, in a directory where it has the name that programs look for.
struct Library {
    dir: PathBuf,
    file: PathBuf,
}

impl Drop for Library {
    fn drop(&mut self) {
        // What cannot be removed is a link in the directory of temporary files.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A test and its two ends.
struct Ends {
    test: String,
    theirs: End,
    ours: End,
}

/// Runs all and prints. Exits with 1 when a test passes with theirs, not with ours, and nothing explains it.
pub fn run(suite: &Suite) -> Result<ExitCode> {
    let programs = programs(suite.dir)?;
    let theirs = match &suite.theirs {
        Some(file) => file.clone(),
        None => LIBRARIES.iter().map(|name| suite.dir.join(name)).find(|path| path.is_file()).ok_or_else(|| {
            let dir = suite.dir.display();
            refuse(format_args!("--suite {dir}: no .libs/libmemkind.so.0 there; build memkind (make), or name it with --theirs"))
        })?,
    };
    let (theirs, ours) = (Library::new(&theirs, "theirs")?, Library::new(&suite.ours, "ours")?);
    heading(&theirs, &ours);
    let mut all = Vec::new();
    for program in &programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tests = gtest::list(&mut theirs.command(program, suite.dir)?, suite.only, LIST_LIMIT)?;
        let mut ends = Vec::new();
        for (at, test) in tests.into_iter().enumerate() {
            eprintln!("[{}] {name} {test}", at + 1);
            let end = |library: &Library| gtest::run(&mut library.command(program, suite.dir)?, &test, LIMIT);
            ends.push(Ends { theirs: end(&theirs)?, ours: end(&ours)?, test });
        }
        all.push((name, ends));
    }
    if all.iter().all(|(_, ends)| ends.is_empty()) {
        return Err(refuse(format_args!("--only {}: no test has such a name; * stands for anything, as in *ratio*", suite.only)));
    }
    println!("\n{}", counts(&all));
    let unexplained = differences(&all);
    println!(
        "\n{}",
        match unexplained {
            0 => "every test that passes with theirs passes with ours, or is explained".to_owned(),
            1 => "1 test passes with theirs and not with ours, and nothing explains it".to_owned(),
            more => format!("{more} tests pass with theirs and not with ours, and nothing explains it"),
        }
    );
    Ok(if unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The programs in the first directory that has any.
fn programs(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_program = |path: &PathBuf| {
        let mut start = [0; 4];
        let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
        read.is_ok() && start == *b"\x7fELF"
    };
    let found = DIRS.iter().map(|below| {
        let below = dir.join(below);
        PROGRAMS.iter().map(|name| below.join(name)).filter(is_program).collect::<Vec<_>>()
    });
    found.into_iter().find(|programs| !programs.is_empty()).ok_or_else(|| {
        refuse(format_args!(
            "--suite {}: no built tests of memkind there (test/.libs/all_tests and its like); build them: make && make checkprogs",
            dir.display()
        ))
    })
}

fn heading(theirs: &Library, ours: &Library) {
    let conditions = Conditions::here(Path::new("/var/tmp"));
    println!("machine   {} ({} CPUs), kernel {}", conditions.machine.cpu, conditions.machine.cpus, conditions.machine.kernel);
    println!("theirs    {}\nours      {}", theirs.file.display(), ours.file.display());
    println!("set       {NODES}={}", nodes());
    match read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").as_str() {
        "" | "0" => {
            println!("huge      none reserved: tests of huge pages skip or fail with both (vm.nr_hugepages reserves them)")
        }
        pages => println!("huge      {pages} pages of 2 MiB reserved"),
    }
    println!("run       each test in a process of its own, theirs, then ours; {} s at most", LIMIT.as_secs());
}

/// Node 0, which every machine has, counts as memory of high bandwidth, but for users who say otherwise.
fn nodes() -> String {
    std::env::var(NODES).unwrap_or_else(|_| "0".to_owned())
}

impl Library {
    fn new(file: &Path, whose: &str) -> Result<Self> {
        let file = file.canonicalize().with_context(|| file.display().to_string())?;
        let dir = std::env::temp_dir().join(format!("nearfar-suite-{}-{whose}", std::process::id()));
        // Not over what is there already, which may be somebody else's.
        std::fs::DirBuilder::new().mode(0o700).create(&dir).with_context(|| dir.display().to_string())?;
        let library = Self { dir, file };
        std::os::unix::fs::symlink(&library.file, library.dir.join("libmemkind.so.0"))?;
        Ok(library)
    }

    /// Starts `program` with this library.
    fn command(&self, program: &Path, dir: &Path) -> Result<Command> {
        let with = |preload: bool| -> Result<Command> {
            let mut command = Command::new(program.canonicalize()?);
            command.current_dir(dir).env(NODES, nodes()).env("LD_LIBRARY_PATH", &self.dir).env_remove("LD_PRELOAD");
            if preload {
                command.env("LD_PRELOAD", &self.file);
            }
            Ok(command)
        };
        // Libtool may have written its own directory into the program so that it comes first (DT_RPATH). A library that is there already
        // is not looked for.
        for preload in [false, true] {
            let output = with(preload)?.env("LD_TRACE_LOADED_OBJECTS", "1").output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if loaded(&text).is_some_and(|path| path.canonicalize().is_ok_and(|path| path == self.file)) {
                return with(preload);
            }
        }
        bail!("{} does not load {}: is it linked with libmemkind.so.0?", program.display(), self.file.display())
    }
}

/// The library that the loader's list of `text` names: "libmemkind.so.0 => PATH (0x...)", or "PATH (0x...)" where it was preloaded.
fn loaded(text: &str) -> Option<PathBuf> {
    let paths = text.lines().filter(|line| line.contains("libmemkind"));
    let path = |line: &str| line.rsplit("=> ").next()?.trim().split(" (0x").next().map(PathBuf::from);
    paths.filter_map(path).next()
}

/// How many passed.
fn counts(all: &[(String, Vec<Ends>)]) -> Table {
    let mut table = framed();
    table.set_header(["program", "tests", "theirs passed", "ours passed", "skipped, theirs", "ours", "theirs only"]);
    align_right(&mut table, 1..7);
    for (name, ends) in all {
        let count = |what: &dyn Fn(&Ends) -> bool| ends.iter().filter(|ends| what(ends)).count().to_string();
        table.add_row([
            name.clone(),
            ends.len().to_string(),
            count(&|ends| ends.theirs.is_pass()),
            count(&|ends| ends.ours.is_pass()),
            count(&|ends| ends.theirs == End::Skipped),
            count(&|ends| ends.ours == End::Skipped),
            count(&|ends| ends.theirs.is_pass() && !ends.ours.is_pass()),
        ]);
    }
    table
}

/// Prints each test that ends otherwise, and returns how many pass with theirs only without a reason.
fn differences(all: &[(String, Vec<Ends>)]) -> usize {
    let sort = |end: &End| std::mem::discriminant(end);
    let mut said = HashSet::new();
    let mut unexplained = 0;
    for (name, ends) in all {
        for Ends { test, theirs, ours } in ends.iter().filter(|ends| sort(&ends.theirs) != sort(&ends.ours)) {
            if said.insert(name) {
                println!("\n{name}");
            }
            println!("  {test}\n    theirs  {theirs}\n    ours    {ours}");
            if !theirs.is_pass() {
                continue;
            }
            match expected_failures::reason(name, test) {
                Some(reason) => println!("    why     {reason}"),
                None => unexplained += 1,
            }
        }
    }
    unexplained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_list_is_read() {
        let plain = "\tlinux-vdso.so.1 (0x00007f)\n\tlibmemkind.so.0 => /a b/libmemkind.so.0 (0x00007f)\n\tlibc.so.6 => /lib/libc.so.6 (0x0)\n";
        assert_eq!(loaded(plain), Some("/a b/libmemkind.so.0".into()));
        assert_eq!(loaded("\t/x/libmemkind.so (0x00007f)\n"), Some("/x/libmemkind.so".into()));
        assert_eq!(loaded("\tlibc.so.6 => /lib/libc.so.6 (0x0)\n"), None);
    }

    #[test]
    fn only_what_passes_with_theirs_must_pass() {
        let ends = |test: &str, theirs, ours| Ends { test: test.to_owned(), theirs, ours };
        let failed = || End::Failed("x".to_owned());
        let all = [
            (
                "all_tests".to_owned(),
                vec![
                    ends("A.same", End::Passed, End::Passed),
                    ends("A.both", failed(), End::Crashed(11)),
                    ends("A.better", End::TimedOut, End::Passed),
                    ends("A.worse", End::Passed, End::Crashed(11)),
                    ends("A.skips", End::Passed, End::Skipped),
                ],
            ),
            ("memkind_memtier_test".to_owned(), vec![ends(expected_failures::EXPLAINED[0].test, End::Passed, failed())]),
        ];
        assert_eq!(differences(&all), 2);
        assert!(counts(&all).to_string().lines().any(|line| line.contains("all_tests") && line.contains('5')));
    }
}
