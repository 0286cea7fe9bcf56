//! What nearfar starts nearfar-kernel for beside workloads: things that need a process of their own. Arguments in, one line of JSON out.
//!
//! `hog`: see [`crate::hog`]; it says "ready" when it is at work, and stops at the end of its standard input, so that it never
//! outlives who started it. `allocator`: see [`crate::allocator`]. `openmp`: loads an OpenMP runtime, whose threads would stay in the process that loads it.

use std::io::{Read, Write as _};

use nearfar_core::units::Bytes;
use serde::Serialize;

use crate::allocator::{self, Api};
use crate::hog::{self, HogResource};
use crate::probe_overhead::{self, Effort};

/// Does what `arguments` ask for, and returns the line to print; `None` when they name a workload or nothing.
///
/// # Errors
/// What was wrong, for people.
pub fn run(arguments: &[String]) -> Option<Result<String, String>> {
    let (name, options) = arguments.split_first()?;
    match name.as_str() {
        "hog" => Some(run_hog(options)),
        "openmp" => Some(run_openmp(options)),
        "allocator" => Some(run_allocator(options)),
        _ => None,
    }
}

fn value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let at = options.iter().position(|option| option == name)?;
    options.get(at + 1).map(String::as_str)
}

fn line(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}

fn run_hog(options: &[String]) -> Result<String, String> {
    let takes = if options.iter().any(|option| option == "--processor") { HogResource::Processor } else { HogResource::Memory };
    let bytes = value(options, "--bytes").unwrap_or("256M").parse::<Bytes>().map_err(|error| format!("--bytes: {error}"))?;
    let ready = || {
        // Who does not read it does not want to know.
        let _ = std::io::stdout().write_all(b"ready\n").and_then(|()| std::io::stdout().flush());
    };
    let stop = || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
    };
    let taken = hog::hog(takes, bytes.0 as usize, ready, stop);
    line(&taken)
}

fn run_allocator(options: &[String]) -> Result<String, String> {
    let library = value(options, "--library");
    let api = if library.is_some() { Api::Hbw } else { Api::Libc };
    let library = library.unwrap_or_default();
    if options.iter().any(|option| option == "--start") {
        allocator::start(api, library)?;
        return Ok("{}".to_owned());
    }
    if let Some(bytes) = value(options, "--left") {
        let bytes = bytes.parse::<Bytes>().map_err(|error| format!("--left: {error}"))?;
        return line(&allocator::left(api, library, bytes.0 as usize)?);
    }
    let seconds = value(options, "--seconds").unwrap_or("2");
    let seconds = seconds.parse::<f64>().ok().filter(|s| s.is_finite() && *s > 0.0).ok_or("--seconds: a number above 0")?;
    line(&allocator::measure(api, library, seconds)?)
}

fn run_openmp(options: &[String]) -> Result<String, String> {
    let library = value(options, "--library").ok_or("openmp needs --library NAME")?;
    let counts =
        value(options, "--threads").unwrap_or("1").split(',').map(|count| count.parse::<usize>().ok().filter(|&n| n > 0));
    let counts: Vec<usize> = counts.collect::<Option<_>>().ok_or("--threads: write numbers above 0, separated by commas")?;
    let effort = if options.iter().any(|option| option == "--quick") { Effort::QUICK } else { Effort::FULL };
    line(&probe_overhead::load(library)?.measure(&counts, effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn workloads_are_not_ours_and_nonsense_is_refused() {
        assert!(run(&words("triad --bytes 1M")).is_none() && run(&[]).is_none());
        for bad in ["hog --bytes x", "openmp", "openmp --library libc.so.6 --threads 0", "openmp --library /no/such/file"] {
            assert!(matches!(run(&words(bad)), Some(Err(_))), "{bad}");
        }
    }
}
