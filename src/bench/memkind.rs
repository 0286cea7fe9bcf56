//! `nearfar bench memkind`: our libmemkind.so.0 beside another one and the C library's malloc, each in processes of its own, in turn.
//!
//! With `--suite`, memkind's own tests as judges instead. Does not measure itself: `nearfar-kernel allocator` does.

use super::conditions::Conditions;
use super::display;
use super::goal::{Figure, Target, Unit, Verdict};
use super::peer_suite::{self, Suite};
use crate::cli::bench::MemkindArgs;
use crate::exit::refuse;
use crate::launch::kernel_program;
use crate::sample::median;
use crate::ui::table::{Table, align_right, framed};
use anyhow::{Context, Result, bail};
use nearfar_core::units::Bytes;
use nearfar_kernels::allocator::{Batch, Left, Measured, Pair, Together};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Where an installed libmemkind may be.
const INSTALLED: [&str; 4] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib"];
/// Ours, relative to the command.
const OURS: [&str; 3] = ["libmemkind.so", "../lib/nearfar/libmemkind.so.0", "../lib/libmemkind.so.0"];

/// The library that `path` is, or that lies in it as in an unpacked package.
fn library_at(path: &Path) -> Option<PathBuf> {
    let below = INSTALLED.iter().map(|dir| path.join(dir.trim_start_matches('/')).join("libmemkind.so.0"));
    std::iter::once(path.to_owned()).chain([path.join("libmemkind.so.0")]).chain(below).find(|path| path.is_file())
}

/// What `--theirs` names.
fn named(path: &Path) -> Result<PathBuf> {
    library_at(path).ok_or_else(|| {
        refuse(format_args!("--theirs {}: no such file, and no directory with usr/lib/*/libmemkind.so.0", path.display()))
    })
}

/// Our library, beside the command.
fn ours(executable: &Path) -> Result<PathBuf> {
    let dir = executable.parent().unwrap_or(Path::new("/"));
    let ours = OURS.iter().map(|name| dir.join(name)).find(|path| path.is_file());
    ours.with_context(|| {
        format!("no libmemkind.so beside {}; build all of nearfar: cargo build --release --workspace", dir.display())
    })
}

/// Processes that are started per round to time a start.
const STARTS: usize = 20;

/// Bytes of the blocks whose memory is looked for after they were freed.
const LEFT: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// What is compared, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Library {
    Ours,
    Theirs,
    Libc,
}

const ALL: [Library; 3] = [Library::Ours, Library::Theirs, Library::Libc];

/// One measurement of one library.
#[derive(Clone, Debug, Serialize)]
struct Run {
    #[serde(flatten)]
    measured: Measured,
    /// After everything was freed.
    left: Vec<Left>,
    /// Wall milliseconds of processes that load the library, call it once and end.
    starts_ms: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct Results {
    nearfar: &'static str,
    conditions: Conditions,
    theirs: PathBuf,
    ours: Vec<Run>,
    theirs_runs: Vec<Run>,
    libc: Vec<Run>,
    verdicts: Vec<Verdict>,
}

struct Bench {
    kernel: PathBuf,
    ours: PathBuf,
    theirs: PathBuf,
    seconds: f64,
}

/// Measures and prints; a missed target is a result, not a failure.
pub fn run(args: &MemkindArgs) -> Result<ExitCode> {
    if let Some(dir) = &args.suite {
        let theirs = args.theirs.as_deref().map(named).transpose()?;
        return peer_suite::run(&Suite { dir, theirs, ours: ours(&std::env::current_exe()?)?, only: &args.only });
    }
    let bench = Bench::new(args)?;
    let conditions = Conditions::here(Path::new("/var/tmp"));
    println!("machine   {} ({} CPUs), kernel {}", conditions.machine.cpu, conditions.machine.cpus, conditions.machine.kernel);
    println!("ours      {}\ntheirs    {}", bench.ours.display(), bench.theirs.display());
    println!(
        "measured  MEMKIND_HBW_NODES=0, {} rounds in turn; medians of rounds, each the least of many repetitions",
        args.runs
    );
    if let Some(note) = conditions.disturbance() {
        println!("note      {note}");
    }
    let mut runs: [Vec<Run>; 3] = Default::default();
    for round in 0..args.runs.max(1) {
        for (library, runs) in ALL.iter().zip(&mut runs) {
            eprintln!("[{}/{}] {library:?}", round + 1, args.runs.max(1));
            runs.push(bench.measure(*library)?);
        }
    }
    let [ours, theirs, libc] = runs;
    println!("\n{}", figures(&ours, &theirs, &libc));
    let verdicts = verdicts(&ours, &theirs, &libc);
    println!("\n{}", display::speed_table(&verdicts).trim_end());
    if let Some(path) = &args.json {
        let nearfar = env!("CARGO_PKG_VERSION");
        let results = Results { nearfar, conditions, theirs: bench.theirs, ours, theirs_runs: theirs, libc, verdicts };
        std::fs::write(path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
        println!("\nsaved in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

impl Bench {
    fn new(args: &MemkindArgs) -> Result<Self> {
        let executable = std::env::current_exe().context("cannot find my own executable")?;
        let ours = ours(&executable)?;
        let installed = || {
            let paths = INSTALLED.iter().map(|dir| Path::new(dir).join("libmemkind.so.0"));
            paths.into_iter().find(|path| path.is_file())
        };
        let Some(theirs) = args.theirs.clone().or_else(installed) else {
            return Err(refuse(format_args!(
                "no other libmemkind.so.0 is installed to compare with; name one with --theirs (apt-get download libmemkind0 && \
                 dpkg -x libmemkind0_*.deb DIR gets Debian's)"
            )));
        };
        let theirs = named(&theirs)?;
        if !(args.seconds.is_finite() && args.seconds > 0.0) {
            return Err(refuse(format_args!("--seconds: write a number above 0")));
        }
        Ok(Self { kernel: kernel_program::find().map_err(anyhow::Error::msg)?, ours, theirs, seconds: args.seconds })
    }

    fn command(&self, library: Library) -> Command {
        let mut command = Command::new(&self.kernel);
        command.arg("allocator").env("MEMKIND_HBW_NODES", "0");
        match library {
            Library::Ours => command.arg("--library").arg(&self.ours),
            Library::Theirs => command.arg("--library").arg(&self.theirs),
            Library::Libc => &mut command,
        };
        command
    }

    fn measure(&self, library: Library) -> Result<Run> {
        let output = self.command(library).arg("--seconds").arg(self.seconds.to_string()).output()?;
        if !output.status.success() {
            bail!("{library:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        let measured = serde_json::from_slice(&output.stdout).with_context(|| format!("{library:?}"))?;
        let mut run = Run { measured, left: Vec::new(), starts_ms: Vec::new() };
        for bytes in LEFT {
            let output = self.command(library).arg("--left").arg(bytes.to_string()).output()?;
            run.left.push(serde_json::from_slice(&output.stdout).with_context(|| format!("{library:?}: --left"))?);
        }
        for _ in 0..STARTS {
            let start = Instant::now();
            let status = self.command(library).arg("--start").output()?.status;
            run.starts_ms.push(start.elapsed().as_secs_f64() * 1e3);
            if !status.success() {
                bail!("{library:?}: a start ended with {status}");
            }
        }
        Ok(run)
    }
}

/// A figure of each round of a library.
fn of(runs: &[Run], figure: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(figure).collect()
}

fn pair(bytes: u64, touched: bool) -> impl Fn(&Run) -> Option<f64> {
    move |run| run.measured.pairs.iter().find(|pair| (pair.bytes, pair.touched) == (bytes, touched)).map(|pair| pair.ns)
}

fn together(bytes: u64, threads: usize) -> impl Fn(&Run) -> Option<f64> {
    move |run| run.measured.threads.iter().find(|row| (row.bytes, row.threads) == (bytes, threads)).map(|row| row.ns)
}

fn left(bytes: u64) -> impl Fn(&Run) -> Option<f64> {
    move |run| run.left.iter().find(|row| row.bytes == bytes).map(|row| row.left as f64)
}

fn start(run: &Run) -> Option<f64> {
    median(&run.starts_ms)
}

/// The table of all figures.
fn figures(ours: &[Run], theirs: &[Run], libc: &[Run]) -> Table {
    let mut table = framed();
    table.set_header(["", "ours", "theirs", "C library", "theirs / ours"]);
    align_right(&mut table, 1..5);
    let mut row = |name: String, unit: &str, scale: f64, figure: &dyn Fn(&Run) -> Option<f64>| {
        let [a, b, c] = [ours, theirs, libc].map(|runs| median(&of(runs, figure)));
        let show = |value: Option<f64>| match value.map(|value| value / scale) {
            None => "-".to_owned(),
            Some(value) if value < 100.0 => format!("{value:.1} {unit}"),
            Some(value) => format!("{value:.0} {unit}"),
        };
        let ratio = a.zip(b).map_or("-".to_owned(), |(a, b)| format!("{:.2}", b / a));
        table.add_row([name, show(a), show(b), show(c), ratio]);
    };
    let Some(first) = ours.first() else { return table };
    for Pair { bytes, touched, .. } in &first.measured.pairs {
        let how = if *touched { ", touched" } else { "" };
        let (unit, scale) = if *bytes > 16 << 20 { ("us", 1e3) } else { ("ns", 1.0) };
        row(format!("malloc + free, {}{how}", Bytes(*bytes)), unit, scale, &pair(*bytes, *touched));
    }
    for Batch { bytes, alive, .. } in &first.measured.batches {
        let figure = |run: &Run| run.measured.batches.iter().find(|row| row.bytes == *bytes).map(|row| row.ns);
        row(format!("{alive} of {} alive, then freed: each", Bytes(*bytes)), "ns", 1.0, &figure);
    }
    for Together { bytes, threads, .. } in &first.measured.threads {
        let threads_name = if *threads == 1 { "thread" } else { "threads" };
        row(format!("{threads} {threads_name}, {}", Bytes(*bytes)), "ns", 1.0, &together(*bytes, *threads));
    }
    for Left { bytes, live, .. } in &first.left {
        row(format!("left of {} in {} blocks, all freed", Bytes(*live), Bytes(*bytes)), "MiB", 1048576.0, &left(*bytes));
    }
    row("loading the library".to_owned(), "us", 1.0, &|run| Some(run.measured.load_us));
    row("first call".to_owned(), "us", 1.0, &|run| Some(run.measured.first_call_us));
    row("a process: load, one call, end".to_owned(), "ms", 1.0, &start);
    table
}

fn verdicts(ours: &[Run], theirs: &[Run], libc: &[Run]) -> Vec<Verdict> {
    let ratio = |figure: &dyn Fn(&Run) -> Option<f64>| {
        let ratios: Vec<f64> = of(theirs, figure).iter().zip(of(ours, figure)).map(|(theirs, ours)| theirs / ours).collect();
        Figure::of(&ratios).ok_or_else(|| "no runs".to_owned())
    };
    let mut all = Vec::new();
    for (bytes, touched, least) in
        [(64, false, 2.0), (4 << 10, false, 2.0), (64 << 10, false, 4.0), (1 << 20, false, 4.0), (64 << 20, true, 1.0)]
    {
        let how = if touched { ", touched" } else { "" };
        let work = format!("malloc + free, {}{how}", Bytes(bytes));
        all.push(Verdict::new(&work, "theirs".to_owned(), ratio(&pair(bytes, touched)), Unit::Times, (Target::AtLeast, least)));
    }
    // How much slower a pair gets from one thread to eight, beside the same of the C library.
    for bytes in [64, 1 << 20] {
        let slower = |runs: &[Run]| -> Vec<f64> {
            let pairs = of(runs, together(bytes, 8)).into_iter().zip(of(runs, together(bytes, 1)));
            pairs.map(|(eight, one)| eight / one).collect()
        };
        let ratios: Vec<f64> = slower(libc).iter().zip(slower(ours)).map(|(libc, ours)| libc / ours).collect();
        let figure = Figure::of(&ratios).ok_or_else(|| "no runs".to_owned());
        let work = format!("8 threads against 1, {}", Bytes(bytes));
        all.push(Verdict::new(&work, "C library's".to_owned(), figure, Unit::Times, (Target::AtLeast, 0.9)));
    }
    let first = Figure::of(&of(ours, |run| Some(run.measured.first_call_us))).ok_or_else(|| "no runs".to_owned());
    all.push(Verdict::new("first call", "-".to_owned(), first, Unit::Us, (Target::AtMost, 300.0)));
    let added: Vec<f64> = of(ours, start).iter().zip(of(libc, start)).map(|(ours, libc)| ours - libc).collect();
    let added = Figure::of(&added).ok_or_else(|| "no runs".to_owned());
    all.push(Verdict::new("start-up added to a program", "the same alone".to_owned(), added, Unit::Ms, (Target::AtMost, 5.0)));
    for bytes in LEFT {
        let work = format!("memory left, {} blocks", Bytes(bytes));
        all.push(Verdict::new(&work, "theirs".to_owned(), ratio(&left(bytes)), Unit::Times, (Target::AtLeast, 2.0)));
    }
    all
}
