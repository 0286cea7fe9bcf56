//! The works of the suite: each stands for a kind of program that the literature measured on two memories.
//!
//! A table: what runs is nearfar-kernel, and each work's file in `crates/kernels` says what it does and counts.

/// A work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// As `--only` takes it.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// How it goes over its data: the reason for what is seen.
    pub access: &'static str,
    /// Workload of nearfar-kernel, and its own options.
    pub arguments: &'static [&'static str],
    /// Data is the suite's by this: less where the arithmetic would take minutes.
    pub part: u64,
    /// Whether it chooses tiles for near (`--near`).
    pub tiled: bool,
    /// Whether it is run in all-DRAM only: others are held against it.
    pub reference: bool,
    /// Whether it belongs to a first look (`--quick`): one of each kind, and none that takes long.
    pub quick: bool,
    /// What a repetition is.
    pub repetition: Repetition,
    /// What the medium under far limits it to.
    pub limit: Limit,
}

/// What a repetition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// A fixed amount of work.
    Work,
    /// As many operations as the time allows.
    Clock,
}

/// What must move between near and far, whatever the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A repetition goes so many times over the same data, and nothing is used again before the rest was. What near cannot hold must be
    /// read each time; of what it changes (a share of the data), what near could not hold if it kept nothing else must be written.
    Passes {
        /// How often.
        passes: f64,
        /// Share of the data that a pass goes over.
        touched: f64,
        /// Share of the data that a pass changes.
        changed: f64,
    },
    /// The same over all data, which each pass changes, as often as what the work counts says: each pass reads and writes all.
    CountedPasses,
    /// Each operation visits a page of all of them at random, and waits for it when it is far.
    Visits,
    /// None is known.
    Unknown,
}

const fn work(name: &'static str, title: &'static str, access: &'static str, arguments: &'static [&'static str]) -> Work {
    Work {
        name,
        title,
        access,
        arguments,
        part: 1,
        tiled: false,
        reference: false,
        quick: false,
        repetition: Repetition::Work,
        limit: Limit::Unknown,
    }
}

/// A part of the data, where a repetition would take minutes.
const fn part(work: Work, part: u64) -> Work {
    Work { part, ..work }
}

const fn tiled(work: Work) -> Work {
    Work { tiled: true, ..work }
}

/// By the clock, and every operation visits a page of all of them.
const fn visits(work: Work) -> Work {
    Work { limit: Limit::Visits, ..clocked(work) }
}

const fn clocked(work: Work) -> Work {
    Work { repetition: Repetition::Clock, ..work }
}

const fn quick(work: Work) -> Work {
    Work { quick: true, ..work }
}

const fn passes(work: Work, passes: f64, changed: f64) -> Work {
    over(work, passes, 1.0, changed)
}

/// Passes over a share of the data.
const fn over(work: Work, passes: f64, touched: f64, changed: f64) -> Work {
    Work { limit: Limit::Passes { passes, touched, changed }, ..work }
}

const SWEEP: &str = "sweeps over data that are used once in each";
const TILES: &str = "tiles that are used many times while they are near";

/// All of them, in the order that they run and are shown in.
pub const WORKS: &[Work] = &[
    passes(work("copy", "STREAM copy", SWEEP, &["copy"]), 1.0, 0.5),
    passes(work("scale", "STREAM scale", SWEEP, &["scale"]), 1.0, 0.5),
    passes(work("add", "STREAM add", SWEEP, &["add"]), 1.0, 1.0 / 3.0),
    quick(passes(work("triad", "STREAM triad", SWEEP, &["triad"]), 1.0, 1.0 / 3.0)),
    passes(work("poly-16", "Polynomials of degree 16", SWEEP, &["polynomial", "--degree", "16"]), 1.0, 0.5),
    passes(work("poly-128", "Polynomials of degree 128", SWEEP, &["polynomial", "--degree", "128"]), 1.0, 0.5),
    quick(passes(part(work("poly-1024", "Polynomials of degree 1024", SWEEP, &["polynomial", "--degree", "1024"]), 4), 1.0, 0.5)),
    passes(part(work("poly-8192", "Polynomials of degree 8192", SWEEP, &["polynomial", "--degree", "8192"]), 8), 1.0, 0.5),
    // Threads with rows of their own go over the same matrix: how often it must be read depends on how they keep pace.
    work("gemm-plain", "Matrix product, row by row", "every row of the result goes over a whole matrix", &["gemm-plain"]),
    quick(tiled(work("gemm-tiled", "Matrix product in tiles for near", TILES, &["gemm"]))),
    passes(
        work("lu-columns", "LU column by column", "the rest of the matrix is read and written for each column", &["lu-columns"]),
        8.0,
        1.0,
    ),
    part(
        work("lu-panels", "LU by panels of 64 columns", "the rest of the matrix is read and written after each panel", &["lu"]),
        4,
    ),
    quick(tiled(part(work("lu-tiled", "LU in tiles for near", TILES, &["lu-tiled"]), 4))),
    quick(passes(work("fft", "3-D FFT axis by axis", "passes along memory, across rows and across planes", &["fft"]), 3.0, 1.0)),
    quick(passes(work("fft-blocked", "3-D FFT, blocked", "two passes over tiles of huge pages", &["fft-blocked"]), 2.0, 1.0)),
    quick(work(
        "cholesky",
        "Sparse Cholesky by supernodes",
        "dense fronts, most of them small, in the order of a tree",
        &["cholesky"],
    )),
    work("trisolve", "Sparse triangular solve", "sweeps along rows, and values of earlier rows", &["trisolve"]),
    // Factors are used once in each of four iterations, vectors more often; the first finds zeros, which need not be read.
    quick(passes(work("spectral", "CG on spectral elements", SWEEP, &["spectral"]), 3.0, 0.4)),
    // Most of the data are links, which each of four applications goes over.
    passes(work("su3", "SU(3) lattice stencil", "sweeps with neighbours of four dimensions", &["su3"]), 4.0, 0.07),
    // Two steps, from one copy to the other.
    quick(passes(work("hydro", "3-D hydrodynamics", "sweeps with neighbouring planes", &["hydro"]), 2.0, 0.5)),
    // Six steps read the list of neighbours, of which 312 of an atom's 441 bytes are in use.
    quick(over(
        work("md", "Molecular dynamics, cell lists", "sweeps over lists of neighbours, and positions close by", &["md"]),
        6.0,
        0.70,
        0.0,
    )),
    quick(Work {
        limit: Limit::CountedPasses,
        ..work("qft", "Quantum Fourier transform", "passes with partners at every distance", &["qft"])
    }),
    // Besides, eight over a quarter.
    passes(work("circuit", "Random quantum circuit", "passes with partners at random distances", &["circuit"]), 16.0, 1.0),
    quick(passes(work("integrals", "Two-electron integrals, stored", SWEEP, &["integrals"]), 1.0, 0.0)),
    quick(Work {
        reference: true,
        ..work(
            "integrals-direct",
            "Two-electron integrals, recomputed",
            "small matrices that are used all the time",
            &["integrals", "--direct"],
        )
    }),
    quick(work("planewave", "Plane-wave DFT loop", "bands that are used one by one, then all with all", &["planewave"])),
    quick(visits(work("random", "Random updates", "random access to data that are used once", &["random"]))),
    visits(work(
        "chase",
        "Pointer chase",
        "random access, one at a time, to data that are used once",
        &["chase", "--stride", "4096"],
    )),
    clocked(work(
        "zipf",
        "Hash table, skewed requests",
        "random access to few data much more often than to the rest",
        &["objects"],
    )),
    quick(work("sort", "Sort of 64-bit keys", "passes over shrinking parts", &["sort"])),
    quick(work("join", "Hash join", "random access to a table that is used again and again", &["join"])),
    work("bfs", "Breadth-first search", "random access to a graph that is used once", &["bfs"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_work_says_how_it_goes_over_its_data() {
        let names: BTreeSet<&str> = WORKS.iter().map(|work| work.name).collect();
        assert_eq!(names.len(), WORKS.len());
        for work in WORKS {
            assert!(!work.access.is_empty() && !work.access.ends_with('.') && work.part > 0, "{}", work.name);
            // It stands in a sentence.
            assert!(work.access.starts_with(|first: char| first.is_lowercase()), "{}", work.name);
        }
    }
}
