//! Test data, no measurement: the results of a suite that never ran, by formula, as the JSON of `nearfar bench suite`.
//!
//! Tests of pages and unit tests of `src/report/suite` share it. Two threads and one, seven ratios, five systems; some runs are stopped,
//! some failed, some points are missing, one gave other data.

use serde_json::{Value, json};

/// (name, title, access, seconds of waiting for the disk by second of computing if all were far, operation).
const WORKS: &[(&str, &str, &str, f64, &str)] = &[
    ("triad", "STREAM triad", "sweeps over data that are used once in each", 0.9, "elements"),
    ("copy", "Copy of an array", "sweeps over data that are used once in each", 1.0, "elements"),
    ("columns", "Sums of columns", "sweeps over data that are used once in each", 0.8, "elements"),
    ("gemm-tiled", "Matrix product in tiles for near", "tiles that are used many times while they are near", 0.01, "flop"),
    ("gemm-rows", "Matrix product by rows", "one matrix is read again for each block of rows", 0.15, "flop"),
    ("fft", "3-D FFT axis by axis", "three passes: along memory, across rows, across planes", 0.5, "flop"),
    ("lu", "LU by panels of columns", "the rest of the matrix is read and written after each panel", 0.2, "flop"),
    ("cholesky", "Cholesky by blocks", "blocks that are used many times while they are near", 0.06, "flop"),
    ("trisolve", "Sparse triangular solve", "one pass along rows, and values of earlier rows", 0.3, "flop"),
    ("spmv", "Sparse matrix by vector", "one pass along rows, and a vector that stays near", 0.25, "flop"),
    ("stencil", "Heat equation, 7 points", "sweeps over data that are used once in each", 0.55, "updates"),
    ("hydro", "Hydrodynamics on a grid", "sweeps with much arithmetic for each element", 0.1, "updates"),
    ("nbody", "N bodies, direct", "all data once for each tile, much arithmetic", 0.02, "interactions"),
    ("sort", "Sort of 64-bit keys", "passes over shrinking parts", 0.12, "keys"),
    ("join", "Hash join", "random access to a table that is used again and again", 2.2, "rows"),
    ("random", "Random updates", "random access to data that are used once", 14.0, "updates"),
    ("chase", "Pointer chase", "random access, one at a time, to data that are used once", 30.0, "visits"),
    ("zipf", "Hash table, skewed requests", "random access, a few data much more often than the rest", 0.35, "requests"),
    ("btree", "B-tree, look-ups", "a path from a hot root to leaves that are used once", 1.1, "look-ups"),
    ("bfs", "Breadth-first search", "random access to data that are used once", 9.0, "edges"),
    ("pagerank", "Page rank", "one pass over edges, random access to a vector", 0.4, "edges"),
    ("scan", "Filter over columns", "sweeps over data that are used once in each", 0.7, "rows"),
    ("histogram", "Histogram", "one pass, and counts that stay near", 0.33, "values"),
    ("polynomial", "Polynomial of degree 64", "sweeps with much arithmetic for each element", 0.03, "flop"),
];

const RATIOS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
const THREADS: [u64; 2] = [1, 2];
const SYSTEMS: [&str; 4] = ["disk", "emulated", "swap", "mmap"];
const DATA: u64 = 1 << 30;

/// Something between -1 and 1 that is always the same for the same `seed`.
fn noise(seed: u64) -> f64 {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D;
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 40) as f64 / f64::from(1 << 23) - 1.0
}

/// Seconds of `system`'s waiting for each second of computing; 0 for what has no limit.
fn waiting(system: &str, cost: f64, ratio: f64) -> f64 {
    let missed = 1.0 - 1.0 / ratio.max(1.0);
    let by_system = match system {
        "disk" => 1.0,
        "emulated" => 0.45,
        // The kernel brings single pages: worse the more at random.
        "swap" => 2.2 + 0.4 * cost,
        "mmap" => 1.6 + 0.2 * cost,
        _ => 0.0,
    };
    cost * missed * by_system
}

fn runs(work: usize, system: &str, threads: u64, ratio: f64) -> Vec<Value> {
    let (name, _, _, cost, _) = WORKS[work];
    let dram_seconds = (0.4 + 0.15 * work as f64) / threads as f64;
    let one = |number: u64| {
        let seed = work as u64 * 1009 + threads * 101 + (ratio * 16.0) as u64 * 7 + system.len() as u64 * 31 + number;
        let wait = waiting(system, cost, ratio);
        let seconds = dram_seconds * (1.0 + wait) * (1.0 + 0.04 * noise(seed));
        let wall = 1.0 + 5.0 * seconds;
        if name == "bfs" && system == "swap" && ratio == 8.0 {
            return json!({ "rate": 0.0, "seconds": 0.0, "bytes_per_s": 0.0, "failed": "the kernel killed it: out of memory", "wall_s": 3.0 });
        }
        let stopped = seconds > 30.0;
        let seconds = if stopped { 30.0 } else { seconds };
        let nearfar = matches!(system, "disk" | "emulated");
        let stall = if nearfar { wall * threads as f64 * wait / (1.0 + wait) * 0.9 } else { 0.0 };
        let mut run = json!({
            "rate": 1.0e9 / seconds, "seconds": seconds, "bytes_per_s": DATA as f64 * 1.5 / seconds,
            "checksum": if name == "sort" && system == "mmap" && ratio == 6.0 { "0bad" } else { "600d" },
            "wall_s": if stopped { 150.0 } else { wall }, "stall_s": stall, "far_s": stall * 0.8,
            "bytes_in": (DATA as f64 * (1.0 - 1.0 / ratio.max(1.0))) as u64, "bytes_out": 0,
        });
        if stopped {
            run["stopped"] = json!(true);
        }
        run
    };
    (0..3).map(one).collect()
}

fn point(work: usize, system: &str, threads: u64, ratio: f64) -> Value {
    let (name, _, _, cost, _) = WORKS[work];
    let near = if ratio > 0.0 { (DATA as f64 / ratio) as u64 } else { 0 };
    let obstacle = (name == "nbody" && system == "mmap").then_some("it keeps its data in many allocations, not in one file");
    let bound = (matches!(system, "disk" | "emulated") && ratio > 1.0 && name != "zipf" && name != "btree").then(|| {
        json!({ "efficiency": 1.0 / (1.0 + 0.75 * waiting(system, cost, ratio)), "because": "what is not near crosses the device once a pass" })
    });
    let command = match system {
        "dram" => format!("nearfar-kernel {name} --bytes 1G --threads {threads}"),
        "disk" => format!("nearfar run --near {near} --far /var/tmp -- nearfar-kernel {name} --bytes 1G --threads {threads}"),
        "emulated" => format!(
            "nearfar run --near {near} --far emu:bw=1.5G,lat=10us -- nearfar-kernel {name} --bytes 1G --threads {threads}"
        ),
        other => {
            format!("systemd-run --scope -p MemoryMax={near} nearfar-kernel {name} --bytes 1G --threads {threads} # {other}")
        }
    };
    let runs = if obstacle.is_some() { Vec::new() } else { runs(work, system, threads, ratio) };
    json!({ "system": system, "threads": threads, "ratio": ratio, "near_bytes": near, "command": command, "obstacle": obstacle,
            "bound": bound, "runs": runs })
}

fn work(number: usize) -> Value {
    let (name, title, access, _, operation) = WORKS[number];
    let mut points = Vec::new();
    for threads in THREADS {
        points.push(point(number, "dram", threads, 0.0));
        for ratio in RATIOS {
            // Where a suite was stopped: the last work has no more of these.
            let done = |system: &&&str| number + 1 < WORKS.len() || **system != "swap" || ratio < 6.0;
            points.extend(SYSTEMS.iter().filter(done).map(|system| point(number, system, threads, ratio)));
        }
    }
    json!({ "name": name, "title": title, "access": access, "operation": operation, "data_bytes": DATA, "intensity": 0.1 * number as f64,
            "points": points })
}

/// The file, as text.
pub fn json() -> String {
    let file = json!({
        "format": "nearfar-suite", "version": 1, "nearfar": "0.0.0 (test data, never measured)", "started_unix_s": 1_790_000_000_u64,
        "machine": { "cpu": "Made-up processor (test data)", "cpus": 2, "ram": 8_u64 << 30, "kernel": "0.0", "huge_pages": "madvise",
                     "far": "/var/tmp (ext4, made-up disk)" },
        "settings": { "data_bytes": DATA, "ratios": RATIOS, "threads": THREADS, "systems": SYSTEMS, "runs": 3, "seconds": 30.0 },
        "dram_triad": 12.0e9,
        "works": (0..WORKS.len()).map(work).collect::<Vec<_>>(),
    });
    file.to_string()
}
