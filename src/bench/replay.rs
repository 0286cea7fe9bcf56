//! `nearfar bench replay`: what a recorded program would take under each rule of how much to bring, by replay with times. Nothing is run.

use crate::cli::bench::ReplayArgs;
use crate::exit::refuse;
use anyhow::Result;
use nearfar_core::addr::PAGE;
use nearfar_core::policy::Prefetch;
use nearfar_core::policy::fetch_grain::GrainFetch;
use nearfar_core::policy::step::Step;
use nearfar_core::policy::stream::StreamFetch;
use nearfar_core::policy::timed::{Costs, timed, width};
use nearfar_core::policy::{EVICT_NAMES, evict_by_name};
use nearfar_core::trace::steps;
use nearfar_core::units::Bytes;
use std::collections::BTreeSet;
use std::process::ExitCode;

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
    let (steps, summary) = steps(&bytes).ok_or_else(|| {
        refuse(format_args!(
            "{shown} is not a trace that this version reads; record it with \"nearfar run --trace FILE --grain 4K\""
        ))
    })?;
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
        return Err(refuse(format_args!("{shown} has no visits: nothing of the program was paged, or it ended at once")));
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
        width: width(&steps),
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
