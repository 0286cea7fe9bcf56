//! Start: the variables are read and the tiers opened, or the program ends.

use crate::{talk, tiers};
use nearfar_kinds::environment::variable;
use nearfar_kinds::memtier_env::{self, LogLevel};
use nearfar_sys::process;

fn start() {
    match memtier_env::parse_log(variable("MEMKIND_MEM_TIERING_LOG_LEVEL").as_deref()) {
        Ok(level) => talk::set_level(level),
        Err(why) => talk::say(LogLevel::Error, &format_args!("{why}; errors are printed")),
    }
    let (text, thresholds) = (variable("MEMKIND_MEM_TIERS"), variable("MEMKIND_MEM_THRESHOLDS"));
    let opened = memtier_env::parse(text.as_deref(), thresholds.as_deref()).and_then(|parsed| {
        let open = tiers::start(&parsed).map_err(|why| format!("MEMKIND_MEM_TIERS: {why}"))?;
        Ok((parsed, open))
    });
    match opened {
        Ok((parsed, open)) => {
            for (number, tier) in open.kinds().iter().zip(&parsed.tiers) {
                talk::say(LogLevel::Info, &format_args!("tier {} with ratio {}", open.name(*number), tier.ratio));
            }
        }
        Err(why) => {
            talk::say(LogLevel::Error, &why);
            // As documented: a program without its tiers does not run.
            process::abort_now();
        }
    }
}

fn finish() {
    let Some(open) = tiers::open().filter(|_| talk::talks(LogLevel::Info) && tiers::counts()) else { return };
    for &tier in open.kinds() {
        talk::say(LogLevel::Info, &format_args!("{} bytes in tier {} at exit", tiers::allocated(tier), open.name(tier)));
    }
}

nearfar_kinds::library_over_next_heap!(start, finish);
