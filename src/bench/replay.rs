//! `nearfar bench replay`: what a recorded program would take under each rule of how much to bring, by replay with times. Nothing is run.

use crate::exit::refuse;
use anyhow::Result;
use nearfar_core::addr::PAGE;
use nearfar_core::policy::Prefetch;
use nearfar_core::policy::fetch_grain::GrainFetch;
use nearfar_core::policy::step::Step;
use nearfar_core::policy::stream::StreamFetch;
use nearfar_core::policy::timed::{Costs, timed};
use nearfar_core::policy::{EVICT_NAMES, evict_by_name};
use nearfar_core::trace::steps;
use nearfar_core::units::{Bytes, BytesPerSec, Nanos};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Replay recorded visits to pages with every rule of how much to bring around a page, with the times of a device: predicted run times
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// A trace that "nearfar run --trace FILE --grain 4K" recorded
    #[arg(value_name = "FILE")]
    trace: PathBuf,
    /// Sizes of near, with commas: amounts, or shares of all that is visited
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "33%")]
    near: Vec<String>,
    /// Seconds that the program takes without nearfar
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    plain: f64,
    /// Time of one read of a page, the device being idle
    #[arg(long, value_name = "TIME", default_value = "80us", allow_hyphen_values = true)]
    latency: Nanos,
    /// Bandwidth of the device
    #[arg(long, value_name = "RATE", default_value = "2G", allow_hyphen_values = true)]
    bandwidth: BytesPerSec,
    /// Time of a page fault that needs no read
    #[arg(long, value_name = "TIME", default_value = "14us", allow_hyphen_values = true)]
    fault: Nanos,
    /// Time for each page that is brought, beside the device's
    #[arg(long, value_name = "TIME", default_value = "500ns", allow_hyphen_values = true)]
    page: Nanos,
    /// Eviction policy: those of "nearfar bench policies"
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    evict: String,
}

/// A near of fewer pages is none.
const LEAST_PAGES: u64 = 1024;

/// The rules, by name.
fn rules() -> Vec<(String, Box<dyn Prefetch>)> {
    let fixed = [1, 4, 16, 64, 256, 512]
        .map(|pages| (Bytes(u64::from(pages) * PAGE as u64).exact(), Box::new(GrainFetch::new(pages)) as Box<dyn Prefetch>));
    let mut all: Vec<(String, Box<dyn Prefetch>)> = fixed.into();
    all.push(("auto".to_owned(), Box::new(StreamFetch::new())));
    all
}

/// Prints the table.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let shown = args.trace.display();
    let bytes = std::fs::read(&args.trace).map_err(|error| refuse(format_args!("{shown}: {error}")))?;
    let (steps, summary) = steps(&bytes).ok_or_else(|| refuse(format_args!("{shown} is not a trace of this version")))?;
    let (mut visits, mut pages) = (0u64, BTreeSet::new());
    for step in &steps {
        if let Step::Visit { page, .. } = step {
            visits += 1;
            pages.insert(*page);
        }
    }
    let data = Bytes(pages.len() as u64 * PAGE as u64);
    if !(args.plain.is_finite() && args.plain > 0.0) {
        return Err(refuse(format_args!("--plain {}: write the seconds that the program takes without nearfar", args.plain)));
    }
    if visits == 0 {
        return Err(refuse(format_args!("{shown} has no visits: the program did not page, or ended at once")));
    }
    println!("{shown}: {visits} visits to {data}; without nearfar {} s", args.plain);
    for line in summary.losses() {
        println!("  {line}");
    }
    let no_policy = || refuse(format_args!("--evict {}: write one of {}", args.evict, EVICT_NAMES.join(", ")));
    evict_by_name(&args.evict, LEAST_PAGES).ok_or_else(no_policy)?;
    let mut nears = Vec::new();
    for text in &args.near {
        let near = Bytes::parse_of(text, data).map_err(|error| refuse(format_args!("--near: {error}")))?;
        if near.0 / (PAGE as u64) < LEAST_PAGES {
            return Err(refuse(format_args!("--near {text}: write at least {}", Bytes(LEAST_PAGES * PAGE as u64).exact())));
        }
        nears.push(near);
    }
    let costs = Costs {
        visit_ns: args.plain * 1e9 / visits as f64,
        fault_ns: args.fault.0 as f64,
        page_ns: args.page.0 as f64,
        latency_ns: args.latency.0 as f64,
        bytes_per_s: args.bandwidth.0 as f64,
    };
    for near in nears {
        let capacity = near.0 / PAGE as u64;
        println!(
            "{:10} {:>9} {:>8} {:>6} {:>10} {:>10} {:>10} {:>10}",
            "near", "rule", "s", "E %", "faults", "demand", "in", "out"
        );
        for (name, mut fetch) in rules() {
            let mut evict = evict_by_name(&args.evict, capacity).ok_or_else(no_policy)?;
            let one = timed(&steps, capacity, evict.as_mut(), fetch.as_mut(), &costs);
            let moved = |pages: u64| Bytes(pages * PAGE as u64).to_string();
            println!(
                "{:10} {name:>9} {:>8.2} {:>6.1} {:>10} {:>10} {:>10} {:>10}",
                near.to_string(),
                one.seconds,
                100.0 * args.plain / one.seconds,
                one.faults,
                one.demand,
                moved(one.pages_in),
                moved(one.pages_out)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
