//! Run time against near size from a recorded trace: the pager's own policies are replayed with what things cost on this machine. And,
//! with `--verify`, measured beside.

use super::tiers;
use crate::cli::advise::AdviseArgs;
use crate::exit::refuse;
use crate::files::curve::{FORMAT, Replayed, Size};
use crate::files::output::OutputFile;
use crate::launch::executable;
use crate::sample::median;
use crate::ui::chart::axis::{self, Axis, Scale};
use crate::ui::chart::plot::{Frame, Line, draw};
use crate::ui::chart::svg::{Look, cut};
use crate::ui::message;
use anyhow::{Context, Result, ensure};
use nearfar_core::addr::PAGE;
use nearfar_core::advise::replay::{Known, curve};
use nearfar_core::policy::step::Step;
use nearfar_core::policy::timed::{Costs, width};
use nearfar_core::trace;
use nearfar_core::units::Bytes;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Sizes of near that the curve has, as parts of all data.
const PARTS: [f64; 8] = [0.2, 0.25, 1.0 / 3.0, 0.4, 0.5, 2.0 / 3.0, 0.8, 1.0];
/// Those that are measured.
const MEASURED: [f64; 4] = [0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0];
/// A smaller near is none.
const LEAST: f64 = 32.0 * 1_048_576.0;
/// What all versions of traces begin with.
const MAGIC_BYTES: usize = 8;
/// Sizes that differ by a smaller share are one.
const ALIKE: f64 = 0.02;
/// Runs without nearfar.
const PLAIN_RUNS: usize = 3;

/// Whether the file begins as traces do.
pub fn is_trace(path: &Path) -> bool {
    let mut first = [0; MAGIC_BYTES];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && trace::header(0).starts_with(&first)
}

/// Answers what `args` ask of a trace.
pub fn run(args: &AdviseArgs) -> Result<ExitCode> {
    let [path] = args.files.as_slice() else {
        return Err(refuse("a trace is asked about alone: name one file"));
    };
    let near = tiers::near(&args.near)?;
    let shown = path.display().to_string();
    let unused = [
        ("--machine", args.machine.is_some()),
        ("--home", args.home.is_some()),
        ("--output", args.output.is_some()),
        ("--threads", args.threads.is_some()),
        ("--ranks", args.ranks.is_some()),
        ("--scaling", !args.scaling.is_empty()),
        ("--prices", args.prices.is_some()),
        ("--explain", args.explain.is_some()),
        ("--fractions", args.fractions),
        ("--each", args.each),
        ("--sets", args.sets),
    ];
    if let Some((option, _)) = unused.iter().find(|(_, given)| *given) {
        return Err(refuse(format_args!("{option} needs a profile, and {shown} is a trace: it knows pages, not objects")));
    }
    if args.verify && args.program.is_empty() {
        return Err(refuse("--verify runs the program: write it after --"));
    }
    if args.verify && args.runs == 0 {
        return Err(refuse("--runs 0: nothing can be verified without runs; write 1 or more"));
    }
    let target = |option, path: &Option<std::path::PathBuf>| path.clone().map(|path| OutputFile::new(option, path)).transpose();
    let (json, plot) = (target("--json", &args.json)?, target("--plot", &args.plot)?);
    let Some(far) = &args.far else {
        return Err(refuse("name what is far, whose costs are measured: --far emu:bw=4G,lat=10us, or a directory"));
    };
    tiers::check_far(Some(far))?;
    if near < LEAST {
        return Err(refuse(format_args!("--near {}: write at least {}", args.near, Bytes(LEAST as u64).exact())));
    }
    let bytes = std::fs::read(path).map_err(|error| refuse(format_args!("{shown}: {error}")))?;
    let (steps, summary) = trace::steps(&bytes).ok_or_else(|| {
        refuse(format_args!(
            "{shown} is not a trace that this version reads; record it with \"nearfar run --trace FILE --grain 4K\""
        ))
    })?;
    let visits = steps.iter().filter_map(|step| if let Step::Visit { page, .. } = step { Some(*page) } else { None });
    let pages: BTreeSet<u64> = visits.collect();
    let data = pages.len() as f64 * PAGE as f64;
    if pages.is_empty() {
        return Err(refuse(format_args!("{shown} has no visits: nothing of the program was paged, or it ended at once")));
    }
    summary.losses().iter().for_each(message::line);
    if let Some(program) = args.program.first() {
        executable::check_preloadable(&executable::find(program, std::env::var_os("PATH").as_deref())?)?;
    }
    let plain_s = match args.plain {
        Some(seconds) if seconds.is_finite() && seconds > 0.0 => seconds,
        Some(seconds) => {
            return Err(refuse(format_args!("--plain {seconds}: write the seconds that the program takes without nearfar")));
        }
        None if args.program.is_empty() => {
            return Err(refuse(
                "a trace does not say how long the program takes without nearfar: write --plain SECONDS, or the program after --",
            ));
        }
        None => median(&(0..PLAIN_RUNS).map(|_| wall(&mut command(&args.program))).collect::<Result<Vec<_>>>()?)
            .context("no run without nearfar")?,
    };
    let (threads, cpus) = (width(&steps), std::thread::available_parallelism().map_or(1, |cpus| cpus.get()));
    let turns = take_turns(threads, cpus);
    if turns {
        message::line(format_args!(
            "{threads:.0} threads and the pager share {cpus} CPU{}: threads are taken to take turns, so that their waits add up; where they \
             spin while they wait for each other, runs take longer than is said",
            if cpus == 1 { "" } else { "s" }
        ));
    }
    let costs = Costs { width: if turns { 1.0 } else { threads }, ..tiers::paging_costs(far)? };
    let mut sizes: Vec<f64> = PARTS.iter().map(|part| part * data).filter(|size| *size >= LEAST).collect();
    // In the place of one that is about as large.
    sizes.retain(|size| (size / near - 1.0).abs() > ALIKE);
    sizes.push(near);
    sizes.sort_by(f64::total_cmp);
    let points = curve(&steps, &sizes, &Known { plain_s, costs });
    let mut replayed = Replayed {
        nearfar_curve: FORMAT,
        trace: shown,
        far: far.to_string(),
        data_bytes: data,
        plain_s,
        sizes: points.into_iter().map(|said| Size { said, measured: Vec::new() }).collect(),
    };
    message::line(format_args!(
        "costs here: {:.0} us for a fault, {:.2} us for each page, {:.0} us more for a page that is waited for, {:.1} GB/s",
        costs.fault_ns / 1e3,
        costs.page_ns / 1e3,
        costs.latency_ns / 1e3,
        costs.bytes_per_s / 1e9
    ));
    super::print(&text(&replayed, near));
    let write = |replayed: &Replayed| match &json {
        Some(target) => target.write(&format!("{}\n", serde_json::to_string_pretty(replayed)?)),
        None => Ok(()),
    };
    // Before the runs, which may fail.
    write(&replayed)?;
    if args.verify {
        measure(args, near, &mut replayed)?;
        super::print(&text(&replayed, near));
        write(&replayed)?;
    }
    if let Some(target) = plot {
        match chart(&replayed) {
            Some(svg) => target.write(&svg)?,
            None => message::line("no plot was written: there is nothing to draw"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether so many threads have so few CPUs that the pager takes much of what one of them needs: then no thread computes while another
/// waits. Of more than three CPUs the pager's is a small part.
fn take_turns(threads: f64, cpus: usize) -> bool {
    threads >= 1.5 && cpus <= 3 && threads + 0.5 > cpus as f64
}

fn command(program: &[std::ffi::OsString]) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]);
    command
}

/// Wall seconds of a run that ends well.
fn wall(command: &mut Command) -> Result<f64> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the program ended with {}: {}", output.status, said.lines().last().unwrap_or_default());
    Ok(start.elapsed().as_secs_f64())
}

/// The program with some sizes of near, by turns.
fn measure(args: &AdviseArgs, near: f64, replayed: &mut Replayed) -> Result<()> {
    let nearfar = std::env::current_exe().context("cannot find my own executable")?;
    let data = replayed.data_bytes;
    let asked = |size: f64| MEASURED.iter().map(|part| part * data).chain([near]).any(|one| (one - size).abs() < PAGE as f64);
    for round in 0..args.runs {
        for size in replayed.sizes.iter_mut().filter(|size| asked(size.said.near)) {
            let pages = (size.said.near / PAGE as f64) as u64;
            message::line(format_args!("round {} of {}: near {}", round + 1, args.runs, Bytes(size.said.near as u64)));
            let mut command = Command::new(&nearfar);
            command.args(["run", "--quiet", "--near", &format!("{}K", pages * PAGE as u64 / 1024), "--far", &replayed.far, "--"]);
            size.measured.push(wall(command.args(&args.program))?);
        }
    }
    Ok(())
}

/// The table.
fn text(replayed: &Replayed, near: f64) -> String {
    let mut text = format!(
        "{}: {} of data; without nearfar {:.2} s; far {}\n",
        replayed.trace,
        Bytes(replayed.data_bytes as u64),
        replayed.plain_s,
        replayed.far
    );
    let _ = writeln!(
        text,
        "  {:>10}  {:>24}  {:>6}  {:>9}  {:>9}  measured",
        "near", "predicted run time", "of it", "from far", "to far"
    );
    for Size { said, measured } in &replayed.sizes {
        let time = said.seconds;
        let found = median(measured)
            .map_or(String::new(), |found| format!("{found:.2} s ({:+.1} %)", 100.0 * (time.value / found - 1.0)));
        let _ = writeln!(
            text,
            "  {:>10}  {:>9.2} s ({:.2} .. {:.2})  {:>4.0} %  {:>9}  {:>9}  {found}{}",
            Bytes(said.near as u64).to_string(),
            time.value,
            time.low,
            time.high,
            100.0 * replayed.plain_s / time.value,
            Bytes(said.read as u64).to_string(),
            Bytes(said.written as u64).to_string(),
            if (said.near - near).abs() < PAGE as f64 { " <- --near" } else { "" }
        );
    }
    text
}

/// Run time against near size, and what was measured.
fn chart(replayed: &Replayed) -> Option<String> {
    let line = |label: &str, dashes: usize, of: fn(&Size) -> f64| Line {
        label: label.to_owned(),
        points: replayed.sizes.iter().map(|size| (size.said.near, of(size))).collect(),
        look: Look { colour: 0, dashes, thin: dashes > 0 },
        marks: dashes == 0,
        ..Line::default()
    };
    let mut lines = vec![
        line("predicted", 0, |size| size.said.seconds.value),
        line("at least, 9 of 10", 1, |size| size.said.seconds.low),
        line("at most, 9 of 10", 1, |size| size.said.seconds.high),
    ];
    let measured = replayed.sizes.iter().filter_map(|size| Some((size.said.near, median(&size.measured)?)));
    let measured: Vec<(f64, f64)> = measured.collect();
    if !measured.is_empty() {
        let look = Look { colour: 1, dashes: 0, thin: false };
        lines.push(Line { label: "measured".to_owned(), points: measured, look, marks: true, ..Line::default() });
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let words = |value: f64| format!("{} s", axis::short(value));
    let x = Axis::spanning("near memory", Scale::Linear, all().map(|point| point.0), axis::size)?;
    let y = Axis::spanning("run time", Scale::Linear, all().map(|point| point.1), words)?;
    let title = format!("Run time by near memory: {}", cut(&replayed.trace, 60));
    let notes = [format!("Far: {}. Without nearfar {:.2} s.", cut(&replayed.far, 60), replayed.plain_s)];
    Some(draw(&Frame::new(x, y), &title, &lines, &notes))
}

#[cfg(test)]
mod tests {
    #[test]
    fn few_cpus_are_taken_in_turns() {
        let turns = |threads, cpus| super::take_turns(threads, cpus);
        assert!(turns(2.0, 1) && turns(2.0, 2) && turns(3.0, 3) && turns(8.0, 2));
        assert!(!turns(1.0, 1) && !turns(1.0, 2) && !turns(2.0, 3) && !turns(4.0, 4) && !turns(64.0, 32));
    }
}
