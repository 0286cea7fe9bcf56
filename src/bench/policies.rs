//! `nearfar bench policies`: every eviction policy on built-in or recorded traces, by replay. Nothing is measured here: the same
//! trace gives the same table on every machine.

use crate::cli::bench::{PoliciesArgs, UnitSize};
use crate::exit::refuse;
use anyhow::Result;
use nearfar_core::addr::{BLOCK_PAGES, CHUNK_PAGES, PAGE};
use nearfar_core::policy::replay::{self, Access, LIMBO_SHARE, Tally};
use nearfar_core::policy::{EVICT_NAMES, learned::learned, traces};
use nearfar_core::trace::{self, Grain, Summary};
use nearfar_core::units::Bytes;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

impl UnitSize {
    fn pages(self) -> u32 {
        match self {
            UnitSize::Chunk => CHUNK_PAGES as u32,
            UnitSize::Block => BLOCK_PAGES as u32,
        }
    }
}

/// Fewer units in near than these are no near.
const LEAST_UNITS: u64 = 32;
/// Below this share of hits, ratios say nothing.
const FEW_HITS: f64 = 0.01;

/// Prints the table.
pub fn run(args: &PoliciesArgs) -> Result<ExitCode> {
    println!("{}", heading());
    let mut worst = Worst::default();
    if args.trace.is_empty() {
        let list = if args.near.is_empty() { vec!["256M".to_owned()] } else { args.near.clone() };
        for text in list {
            let near = text.parse::<Bytes>().map_err(|error| refuse(format_args!("--near: {error}")))?;
            let pages = args.unit.pages();
            let units = checked(&text, near)?.0 / PAGE as u64 / u64::from(pages);
            if units < LEAST_UNITS {
                return Err(refuse(format_args!("--near {text} is less than {LEAST_UNITS} units")));
            }
            for (name, trace) in traces::all(units, pages) {
                show(name, near, &trace, &mut worst);
            }
        }
    }
    for path in &args.trace {
        let (accesses, summary) = load(path, args.unit)?;
        println!("{}", describe(path, &summary));
        let list = if args.near.is_empty() { ["25%", "50%", "75%"].map(str::to_owned).into() } else { args.near.clone() };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        for text in list {
            let near = Bytes::parse_of(&text, Bytes(summary.pages * PAGE as u64));
            let near = near.map_err(|error| refuse(format_args!("--near: {error}")))?;
            if near.0 / PAGE as u64 / u64::from(args.unit.pages()) < LEAST_UNITS {
                println!("{name:21}{:>9} left out: less than {LEAST_UNITS} units", near.to_string());
                continue;
            }
            show(&name, checked(&text, near)?, &accesses, &mut worst);
        }
    }
    print!("{}", worst.words());
    Ok(ExitCode::SUCCESS)
}

/// More than this is no near that exists, and would make built-in traces larger than memory.
fn checked(text: &str, near: Bytes) -> Result<Bytes> {
    const MOST: u64 = 64 << 30;
    if near.0 > MOST { Err(refuse(format_args!("--near {text} is more than {}", Bytes(MOST)))) } else { Ok(near) }
}

fn load(path: &Path, unit: UnitSize) -> Result<(Vec<Access>, Summary)> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| refuse(format_args!("--trace {shown}: {error}")))?;
    let grain = match unit {
        UnitSize::Chunk => Grain::Chunk,
        UnitSize::Block => Grain::Block,
    };
    trace::accesses(&bytes, grain).ok_or_else(|| {
        refuse(format_args!("--trace {shown} is not a trace that this version reads; record it with \"nearfar run --trace\""))
    })
}

fn describe(path: &Path, summary: &Summary) -> String {
    let pages = |pages: u64| Bytes(pages * PAGE as u64);
    let mut text = format!(
        "\n{}: {} visits to {} in {} units; {} faults of {} processes; {} in view at a time",
        path.display(),
        summary.visits,
        pages(summary.pages),
        summary.units,
        summary.faults,
        summary.processes,
        pages(u64::from(summary.window_chunks) * CHUNK_PAGES as u64)
    );
    for line in summary.losses() {
        let _ = write!(text, "\n  {line}");
    }
    text
}

const YARDSTICKS: [&str; 3] = ["lru*", "learned", "MIN"];

fn heading() -> String {
    let mut text = String::from(
        "Replay: near holds the trace's units, 1/32 of it as limbo. Policies see what they see in the pager: misses and rescues,\n\
         never hits. Yardsticks that see everything: lru* is true LRU, learned evicts by the order of the last time, MIN is\n\
         Belady's bound. read and written: bytes between near and far. best: hits of adaptive over those of the best fixed\n\
         policy, and below its bytes, read and written together, over those of the fixed policy that moves least; of MIN: misses\n\
         of adaptive over those of MIN.\n\n",
    );
    let _ = write!(text, "{:21}{:>9} {:8}", "trace", "near", "");
    for name in EVICT_NAMES.iter().chain(&YARDSTICKS) {
        let _ = write!(text, "{name:>9}");
    }
    text + "   best  of MIN"
}

/// Replays `trace` and prints three lines.
fn show(name: &str, near: Bytes, trace: &[Access], worst: &mut Worst) {
    let capacity = (near.0 / PAGE as u64).max(1);
    let mut tallies: Vec<Tally> = EVICT_NAMES.iter().filter_map(|name| one(trace, capacity, name)).collect();
    let fixed = tallies[1..].iter().map(Tally::hit_rate).fold(0.0, f64::max);
    let bound = replay::belady(trace, capacity);
    tallies.extend([replay::lru(trace, capacity), learned(trace, capacity), bound]);
    let line = |what: &str, figure: &dyn Fn(&Tally) -> String| {
        let mut text = format!("{what:8}");
        tallies.iter().for_each(|tally| text += &format!("{:>9}", figure(tally)));
        text
    };
    let ours = tallies[0];
    let moved = |tally: &Tally| (tally.pages_in + tally.pages_out) as f64;
    let least = tallies[1..EVICT_NAMES.len()].iter().map(moved).fold(f64::MAX, f64::min);
    let mut hits = line("hits %", &|tally| format!("{:.1}", 100.0 * tally.hit_rate()));
    if fixed >= FEW_HITS {
        let ratio = ours.hit_rate() / fixed;
        let _ = write!(hits, "  {ratio:5.2}");
        worst.note(ratio, moved(&ours) / least, name, near);
    } else {
        hits += "      -";
    }
    let _ = write!(hits, "  {:6.2}", ours.misses as f64 / bound.misses.max(1) as f64);
    let bytes = |pages: u64| Bytes(pages * PAGE as u64).to_string();
    println!("{name:21}{:>9} {hits}", near.to_string());
    println!("{:30} {}", "", line("read", &|tally| short(&bytes(tally.pages_in))));
    let written = line("written", &|tally| short(&bytes(tally.pages_out)));
    println!("{:30} {written}  {:5.2}", "", moved(&ours) / least.max(1.0));
}

/// `1.5 GiB` as `1.5G`.
fn short(bytes: &str) -> String {
    match bytes.split_once(' ') {
        Some((number, unit)) => format!("{number}{}", unit.trim_end_matches("iB")),
        None => bytes.to_owned(),
    }
}

fn one(trace: &[Access], capacity: u64, name: &str) -> Option<Tally> {
    let mut policy = nearfar_core::policy::evict_by_name(name, capacity)?;
    Some(replay::replay(trace, capacity, capacity / LIMBO_SHARE, policy.as_mut()))
}

/// Where the default policy fares worst.
#[derive(Default)]
struct Worst {
    hits: Option<(f64, String)>,
    bytes: Option<(f64, String)>,
    rows: usize,
    few_hits: usize,
    many_bytes: usize,
}

impl Worst {
    /// The target (issue 3).
    const TARGET: f64 = 0.95;

    fn note(&mut self, hits: f64, bytes: f64, name: &str, near: Bytes) {
        self.rows += 1;
        self.few_hits += usize::from(hits < Self::TARGET);
        self.many_bytes += usize::from(bytes > 1.0 / Self::TARGET);
        let place = || format!("{name}, near {near}");
        if self.hits.as_ref().is_none_or(|(least, _)| hits < *least) {
            self.hits = Some((hits, place()));
        }
        if self.bytes.as_ref().is_none_or(|(most, _)| bytes > *most) {
            self.bytes = Some((bytes, place()));
        }
    }

    fn words(&self) -> String {
        let (Some((hits, fewest)), Some((bytes, most))) = (&self.hits, &self.bytes) else { return String::new() };
        format!(
            "\nadaptive has at least {:.2} of the hits of the best fixed policy in {} of {} rows; least: {hits:.2} ({fewest})\n\
             it moves at most {:.2} of the bytes of the fixed policy that moves least in {} of them; most: {bytes:.2} ({most})\n",
            Self::TARGET,
            self.rows - self.few_hits,
            self.rows,
            1.0 / Self::TARGET,
            self.rows - self.many_bytes,
        )
    }
}
