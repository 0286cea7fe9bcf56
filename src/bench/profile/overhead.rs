//! What profiling costs: plain and profiled runs by turns, so that what drifts meets both.

use super::programs::{Started, output_of};
use crate::sample;
use anyhow::{Context, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Figures of one program.
#[derive(Serialize)]
pub struct Cost {
    program: &'static str,
    plain_s: Vec<f64>,
    profiled_s: Vec<f64>,
    /// Median of the ratios of neighbours, less one.
    cost: f64,
    /// Where the middle half of those is, in per cent.
    quarters: (f64, f64),
    /// The most that profiling should cost so.
    limit: f64,
    met: bool,
}

/// The most that profiling should cost: as it is, and with `--precise`.
const LIMIT: f64 = 0.05;
const PRECISE_LIMIT: f64 = 0.15;

const TRIAD: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  long n = 16 << 20;
  double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8);
#pragma omp parallel for
  for (long i = 0; i < n; i++) a[i] = 0, b[i] = i, c[i] = 2 * i;
  for (int k = 0; k < 200; k++)
#pragma omp parallel for
    for (long i = 0; i < n; i++) a[i] = b[i] + 1e-9 * k * c[i];
  printf("%g\n", a[n / 2]);
}
"#;

/// Measures what is there; says what is not.
pub fn measure(dir: &Path, pairs: u32, precise: bool, options: &[String], wanted: impl Fn(&str) -> bool) -> Result<Vec<Cost>> {
    let triad = || Started::compiled("triad", TRIAD, &[], dir);
    let lammps = || Started::lammps(3, dir);
    let lu = || Started::numpy_lu();
    let programs: [(&'static str, &dyn Fn() -> Result<Started>); 3] = [("triad", &triad), ("lammps", &lammps), ("numpy-lu", &lu)];
    let precisely = precise.then(|| "--precise".to_owned());
    let options: Vec<String> = precisely.into_iter().chain(options.iter().cloned()).collect();
    let limit = if precise { PRECISE_LIMIT } else { LIMIT };
    println!("program      plain s  profiled s   median     middle half of pairs   pairs   at most {:.0} %", 100.0 * limit);
    let mut found = Vec::new();
    for (name, prepare) in programs.into_iter().filter(|(name, _)| wanted(name)) {
        match prepare().and_then(|started| by_turns(name, &started, dir, pairs.max(1), &options, limit)) {
            Ok(cost) => found.push(cost),
            Err(error) => println!("{name:12} left out: {error:#}"),
        }
    }
    Ok(found)
}

fn by_turns(program: &'static str, started: &Started, dir: &Path, pairs: u32, options: &[String], limit: f64) -> Result<Cost> {
    let this = std::env::current_exe()?.into_os_string();
    // Without the table afterwards: that is not the program's time.
    let mut profiled = vec![this, "profile".into(), "-q".into(), "-o".into(), "a.nfprof".into()];
    profiled.extend(options.iter().map(OsString::from));
    profiled.push("--".into());
    profiled.extend(started.command.iter().cloned());
    let mut cost =
        Cost { program, plain_s: Vec::new(), profiled_s: Vec::new(), cost: 0.0, quarters: (0.0, 0.0), limit, met: false };
    // Once unmeasured: files are in the page cache then.
    seconds(&started.command, started, dir)?;
    for pair in 0..pairs {
        // Each is first as often, so that drift in one direction adds to neither.
        let mut plain = None;
        if pair % 2 == 0 {
            plain = Some(seconds(&started.command, started, dir)?);
        }
        let with = seconds(&profiled, started, dir)?;
        let plain = if let Some(plain) = plain { plain } else { seconds(&started.command, started, dir)? };
        cost.plain_s.push(plain);
        cost.profiled_s.push(with);
    }
    let mut ratios: Vec<f64> = cost.profiled_s.iter().zip(&cost.plain_s).map(|(with, without)| with / without - 1.0).collect();
    cost.cost = median(&ratios);
    cost.met = cost.cost <= limit;
    ratios.sort_by(f64::total_cmp);
    let quarter = |of: f64| ratios.get((ratios.len() as f64 * of) as usize).map_or(0.0, |ratio| 100.0 * ratio);
    cost.quarters = (quarter(0.25), quarter(0.75));
    println!(
        "{program:12} {:7.2}  {:10.2}   {:+6.1} %   {:+6.1} .. {:+5.1} %   {pairs:5}   {}",
        median(&cost.plain_s),
        median(&cost.profiled_s),
        100.0 * cost.cost,
        cost.quarters.0,
        cost.quarters.1,
        if cost.met { "met" } else { "missed" },
    );
    Ok(cost)
}

fn seconds(command: &[OsString], started: &Started, dir: &Path) -> Result<f64> {
    let (program, arguments) = command.split_first().context("a program")?;
    let begun = Instant::now();
    let mut command = Command::new(program);
    command.args(arguments).envs(started.environment.iter().map(|(name, value)| (name, value))).current_dir(dir);
    output_of(&mut command).with_context(|| program.to_string_lossy().into_owned())?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The median; 0 without any.
fn median(numbers: &[f64]) -> f64 {
    sample::median(numbers).unwrap_or(0.0)
}
