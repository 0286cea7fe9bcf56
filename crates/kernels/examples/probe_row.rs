//! One row of `nearfar probe` as a program: what tests/probe_against_c.sh runs in turn with the C programs of `reference/`.
//!
//!   probe_row triad BYTES_PER_ARRAY SECONDS ordinary|streaming small|huge     bytes per second
//!   probe_row chase BYTES SECONDS local|random small|huge                      nanoseconds per load
//!   probe_row roofs SECONDS                                                    every compute roof with its clock
//!   probe_row gemm SECONDS                                                     DGEMM on one CPU
//!   probe_row loaded BYTES SECONDS reads|both                                  the curve
//!   probe_row cache BYTES_PER_THREAD SECONDS                                   every operation in a cache

use nearfar_core::node::{Chase, Injection, Memory, Operation, Pages, Stores};
use nearfar_kernels::probe::{self, ChaseSetting, ComputeSetting, GemmSetting, LoadedSetting, StreamSetting};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe_row: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pages(word: &str) -> Pages {
    if word == "huge" { Pages::Huge } else { Pages::Small }
}

fn seconds(word: &str) -> Result<Duration, Box<dyn Error>> {
    Ok(Duration::try_from_secs_f64(word.parse()?)?)
}

fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let cpus = nearfar_sys::affinity::of(0)?;
    let cpus = cpus.as_slice();
    let limit_bytes = nearfar_sys::process::memory_available();
    let rows: Vec<(Operation, Stores)> = match words {
        ["triad", _, _, "streaming", _] => vec![(Operation::Triad, Stores::NonTemporal)],
        ["triad", ..] => vec![(Operation::Triad, Stores::Ordinary)],
        _ => Operation::ALL[1..]
            .iter()
            .map(|&operation| (operation, Stores::Ordinary))
            .chain([(Operation::Read, Stores::None)])
            .collect(),
    };
    match *words {
        ["triad", bytes, time, _, size] => {
            let setting = StreamSetting {
                cpus,
                cpu_node: None,
                memory: Memory::Node(0),
                rows: &rows,
                array_bytes: bytes.parse()?,
                pages: pages(size),
                llc_bytes: Some(32 << 20),
                budget: seconds(time)?,
                limit_bytes,
            };
            let measured = probe::bandwidth(&setting)?;
            let row = measured.rows.first().ok_or("this processor has no such stores")?;
            eprintln!("{:?} {:?}", row.pages, row.rate);
            println!("{:.6e}", row.rate.median);
        }
        ["cache", bytes, time] => {
            let setting = StreamSetting {
                cpus,
                cpu_node: Some(0),
                memory: Memory::Cache(1),
                rows: &rows,
                array_bytes: bytes.parse()?,
                pages: Pages::Huge,
                llc_bytes: None,
                budget: seconds(time)?,
                limit_bytes,
            };
            for row in probe::bandwidth(&setting)?.rows {
                println!("{:8} {:8.2} GB/s  {:?}", row.operation.name(), row.rate.median / 1e9, row.rate);
            }
        }
        ["chase", bytes, time, order, size] => {
            let chase = if order == "local" { Chase::PageLocal } else { Chase::Random };
            let setting = ChaseSetting {
                cpu: cpus[0],
                helpers: cpus,
                cpu_node: 0,
                memory: Memory::Node(0),
                chases: &[chase],
                pages: pages(size),
                bytes: bytes.parse()?,
                llc_bytes: Some(32 << 20),
                budget: seconds(time)?,
                limit_bytes,
            };
            for row in probe::latency(&setting)?.0 {
                eprintln!("{:?} {:?}", row.pages, row.time);
                println!("{:.4}", row.time.median);
            }
        }
        ["loaded", bytes, time, what] => {
            let setting = LoadedSetting {
                cpu: cpus[0],
                injectors: &cpus[1..],
                cpu_node: 0,
                node: 0,
                injection: if what == "both" { Injection::ReadsAndWrites } else { Injection::Reads },
                delays: &probe::DELAYS,
                bytes: bytes.parse()?,
                injector_bytes: 128 << 20,
                llc_bytes: Some(32 << 20),
                budget: seconds(time)?,
                limit_bytes,
            };
            for point in probe::loaded(&setting)?.points {
                let delay = point.delay.map_or("idle".to_owned(), |delay| delay.to_string());
                println!("{delay:>6} {:8.2} ns {:8.3} GB/s  {:?}", point.time.median, point.rate.median / 1e9, point.time);
            }
        }
        ["gemm", time] => {
            let row = probe::gemm(&GemmSetting { cpus: &cpus[..1], budget: seconds(time)? })?;
            println!("{:.3} per clock {:?}", row.per_clock.unwrap_or(0.0), row.rate);
        }
        ["roofs", time] => {
            let rows = probe::roofs();
            for cpus in [&cpus[..1], cpus] {
                let mut measured = probe::compute(&ComputeSetting { cpus, rows: &rows, budget: seconds(time)? })?;
                measured.push(probe::gemm(&GemmSetting { cpus, budget: seconds(time)? / 4 })?);
                for row in measured {
                    let clock = row.clock_hz.as_ref().map_or(0.0, |clock| clock.median / 1e9);
                    println!(
                        "{} {:?} {:?} {:?}: {:.2} GFLOP/s at {clock:.3} GHz = {:.3} per clock {:?} {}",
                        row.threads,
                        row.precision,
                        row.isa,
                        row.arithmetic,
                        row.rate.median / 1e9,
                        row.per_clock.unwrap_or(0.0),
                        row.rate.validity,
                        row.rate.why
                    );
                }
            }
        }
        _ => return Err("see the head of crates/kernels/examples/probe_row.rs".into()),
    }
    Ok(())
}
