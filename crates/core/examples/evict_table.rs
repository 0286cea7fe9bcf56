//! Hit rates of every eviction policy on synthetic traces, beside Belady and an LRU that sees hits.
//! `cargo run --release -p nearfar-core --example evict_table [PART OF A TRACE NAME]`

use nearfar_core::policy::{EVICT_NAMES, replay, traces::Trace};

fn main() {
    let only: Option<String> = std::env::args().nth(1);
    for (units, pages) in [(400u64, 512u32), (4000, 16)] {
        let c = units;
        let t = || Trace::new(pages);
        let list: Vec<(String, Vec<replay::Access>)> = vec![
            ("sweep1.05".into(), t().sweep(0, c * 21 / 20, 20).done()),
            ("sweep1.25".into(), t().sweep(0, c * 5 / 4, 20).done()),
            ("sweep2".into(), t().sweep(0, c * 2, 20).done()),
            ("sweep4".into(), t().sweep(0, c * 4, 20).done()),
            ("sweep8".into(), t().sweep(0, c * 8, 20).done()),
            ("zigzag2".into(), t().zigzag(0, c * 2, 20).done()),
            ("uniform2".into(), t().uniform(0, c * 2, c * 40).done()),
            ("uniform4".into(), t().uniform(0, c * 4, c * 40).done()),
            ("zipf0.7x4".into(), t().zipf(0, c * 4, 0.7, c * 40).done()),
            ("zipf1.0x8".into(), t().zipf(0, c * 8, 1.0, c * 40).done()),
            ("zipf1.2x8".into(), t().zipf(0, c * 8, 1.2, c * 40).done()),
            ("phase_sweep.9".into(), t().sweep(0, c * 9 / 10, 10).sweep(c * 10, c * 9 / 10, 10).sweep(0, c * 9 / 10, 10).done()),
            (
                "phase_unif.9".into(),
                t().uniform(0, c * 9 / 10, c * 10).uniform(c * 10, c * 9 / 10, c * 10).uniform(c * 20, c * 9 / 10, c * 10).done(),
            ),
            ("phase_sw2".into(), t().sweep(0, c * 2, 10).sweep(c * 10, c * 2, 10).done()),
            ("drift.5".into(), t().drift(0, c * 10, c / 2, c * 60).done()),
            ("drift.5fast".into(), t().drift(0, c * 10, c / 2, c * 20).done()),
            ("drift.95".into(), t().drift(0, c * 10, c * 95 / 100, c * 60).done()),
            ("stencil2".into(), t().stencil(0, c * 2, c / 50, 10).done()),
            ("stencil2w".into(), t().stencil(0, c * 2, c / 10, 10).done()),
            ("stencil2ww".into(), t().stencil(0, c * 2, c / 4, 10).done()),
            ("tiles.5".into(), t().tiles(0, c * 4, c / 2, 5, 4).done()),
            ("tiles.9".into(), t().tiles(0, c * 4, c * 9 / 10, 5, 4).done()),
            ("tiles1.5".into(), t().tiles(0, c * 6, c * 3 / 2, 5, 4).done()),
            ("sweep+zipf".into(), t().sweep_and_zipf(c * 4, c, 0.9, 2, c * 40).done()),
            ("sweep+hot".into(), t().sweep_and_zipf(c * 2, c / 4, 0.5, 1, c * 40).done()),
        ];
        println!("capacity {units} units of {pages} pages");
        print!("{:14}", "trace");
        for n in EVICT_NAMES {
            print!("{n:>9}");
        }
        println!("{:>9}{:>9}  adaptive/best-fixed", "lru*", "belady");
        let mut worst = 9.0f64;
        for (name, trace) in &list {
            if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
                continue;
            }
            let cap = units * u64::from(pages);
            let rows = replay::table(trace, &[cap], EVICT_NAMES);
            print!("{name:14}");
            for r in &rows {
                print!("{:9.3}", r.tally.hit_rate());
            }
            let best = rows[1..EVICT_NAMES.len()].iter().map(|r| r.tally.hit_rate()).fold(0.0, f64::max);
            let ratio = rows[0].tally.hit_rate() / best;
            worst = worst.min(ratio);
            println!("  {ratio:.3} resc {:.3}", rows[0].tally.rescued as f64 / rows[0].tally.accesses as f64);
        }
        println!("worst {worst:.3}");
    }
}
