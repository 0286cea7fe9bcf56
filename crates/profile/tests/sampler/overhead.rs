//! What looking costs a program that sweeps through arrays: its speed with the sampler paused and not, by turns.

use crate::feed::Feed;
use crate::memory::{Memory, process_cpu};
use nearfar_profile::sampler::{Options, Sampler};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Prints it for one thread and for two.
pub fn measure(budget: f64) {
    let options = Options { budget, seed: 1, longest: Duration::from_secs(5) };
    let sampler = match Sampler::start(options) {
        Ok(sampler) => sampler,
        Err(errno) => return println!("skipped: {errno}"),
    };
    let _awake = sampler.settle_waking(true);
    let feed = Feed::start(sampler, Duration::ZERO);
    for threads in [1, 2] {
        let memories: Vec<Memory> = (0..threads).map(|_| Memory::new(16_384)).collect();
        memories.iter().for_each(|memory| memory.fill(0));
        memories.iter().for_each(|memory| feed.add(memory.range));
        sweep(&feed, &memories);
        feed.clear();
    }
}

fn sweep(feed: &Feed, memories: &[Memory]) {
    let (over, passes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for memory in memories {
            let (over, passes) = (&over, &passes);
            scope.spawn(move || {
                let mut sum = 0u64;
                while !over.load(Ordering::Relaxed) {
                    for index in 0..memory.words() {
                        // SAFETY: within the mapping.
                        sum = sum.wrapping_add(unsafe { memory.word(index).read_volatile() });
                        if index % 65_536 == 0 {
                            passes.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                std::hint::black_box(sum);
            });
        }
        std::thread::sleep(Duration::from_secs(1));
        let (mut with, mut without) = (0.0, 0.0);
        let (cost, cpu, start) = (feed.sampler.cost(), process_cpu(), Instant::now());
        const TURNS: u32 = 24;
        for turn in 0..TURNS {
            let paused = turn % 4 == 0 || turn % 4 == 3;
            if paused {
                feed.sampler.pause();
            }
            let (before, began) = (passes.load(Ordering::Relaxed), Instant::now());
            std::thread::sleep(Duration::from_millis(250));
            let speed = (passes.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
            if paused {
                without += speed;
                feed.sampler.resume();
            } else {
                with += speed;
            }
        }
        let (spent, wall) = (feed.sampler.cost(), start.elapsed().as_secs_f64());
        let looks = (spent.watches - cost.watches) as f64;
        let (own, stall) = ((spent.cpu_ns - cost.cpu_ns) as f64 / 1e9, (spent.stall_ns - cost.stall_ns) as f64 / 1e9);
        println!(
            "{} threads: {:.0} looks/s while looking, {:.1} us CPU and {:.1} us stall each, {:.2} % of wall time by our count ({:.2} CPU of {:.2}), {:.2} % slower",
            memories.len(),
            looks / wall * 2.0,
            own * 1e6 / looks,
            stall * 1e6 / looks,
            (own + stall) / wall * 200.0,
            own,
            process_cpu() - cpu,
            (without / with - 1.0) * 100.0,
        );
        over.store(true, Ordering::Relaxed);
    });
}
