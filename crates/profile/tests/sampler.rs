//! The sampler against programs that do everything to their memory, as fast as it can look: every word is checked. A hang is ended
//! by an alarm. With BUDGET=0.03 in the environment it measures instead what looking costs.

#[path = "sampler/feed.rs"]
mod feed;
#[path = "sampler/memory.rs"]
mod memory;
#[path = "sampler/scenarios.rs"]
mod scenarios;
#[path = "sampler/stacks.rs"]
mod stacks;
#[path = "sampler/processes.rs"]
mod processes;

#[path = "sampler/overhead.rs"]
mod overhead;

use feed::Feed;
use nearfar_profile::sampler::{Options, Sampler};
use std::time::{Duration, Instant};

type Scenario = (&'static str, fn(&Feed));

const SCENARIOS: &[Scenario] = &[
    ("four threads write", scenarios::writers),
    ("mappings come and go at the same addresses", scenarios::churn),
    ("mremap, held", scenarios::mremap_held),
    ("mremap, not held", scenarios::mremap_free),
    ("content is discarded", scenarios::discard),
    ("protections change", scenarios::protections),
    ("pages are locked", scenarios::locks),
    ("system calls read and write", scenarios::pipes),
    ("huge pages", scenarios::huge),
    ("huge pages that are updated", scenarios::huge_updated),
    ("heap, stacks and threads that end", scenarios::everything),
    ("stacks that recursion and signals use", stacks::stacks),
    ("forks", processes::forks),
    ("forks that nobody announces", processes::raw_forks),
    ("vfork and exec", processes::spawns),
    ("futexes", scenarios::futexes),
    ("all memory is locked", scenarios::lock_all),
];

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let seconds = std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.5);
    if let Some(budget) = std::env::var("BUDGET").ok().and_then(|text| text.parse().ok()) {
        return overhead::measure(budget);
    }
    let options = Options { budget: 1.0, seed: 1, longest: Duration::from_millis(500) };
    let sampler = match Sampler::start(options) {
        Ok(sampler) => sampler,
        Err(errno) => return println!("skipped: {errno}"),
    };
    let feed = Feed::start(sampler, Duration::from_secs_f64(seconds));
    for (name, run) in
        SCENARIOS.iter().filter(|(name, _)| only.is_empty() || only.iter().any(|word| name.contains(word.as_str())))
    {
        // SAFETY: no handler: a hang ends the program.
        unsafe { libc::alarm(60) };
        let before = feed.counts();
        let (cost, cpu, start) = (sampler.cost(), memory::process_cpu(), Instant::now());
        run(&feed);
        let (after, spent, wall) = (feed.counts(), sampler.cost(), start.elapsed().as_secs_f64());
        feed.clear();
        let looks = (spent.watches - cost.watches).max(1);
        println!(
            "{name}: ok; {:.0} looks/s, {:.1} us CPU and {:.1} us stall each, {:?}, CPU {:.2} of {:.2}",
            looks as f64 / wall,
            (spent.cpu_ns - cost.cpu_ns) as f64 / 1e3 / looks as f64,
            (spent.stall_ns - cost.stall_ns) as f64 / 1e3 / looks as f64,
            after.since(before),
            (spent.cpu_ns - cost.cpu_ns) as f64 / 1e9,
            memory::process_cpu() - cpu,
        );
    }
}
