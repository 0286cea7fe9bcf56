//! What it costs to start, synchronise and join threads: the method of the EPCC OpenMP microbenchmarks, on our own threads and on
//! any OpenMP runtime that can be loaded, without a compiler.
//!
//! The overhead of a construct is the time of many constructs around a short delay, less the time of the same delays alone, over
//! their number. Unlike EPCC, which measures the delays once, they are measured beside each test, so that a change of clock between
//! them cancels, and the figure is a median with an interval. Results of barriers and reductions are checked first: what a broken
//! runtime does fast is invalid.

// Lowest first: a module uses only modules above it.
mod epcc;
mod own;
mod gomp;

pub use epcc::{Effort, Samples, figure};
pub use gomp::{ConstructOverhead, Loaded, RuntimeOverheads, load};
pub use own::own;

/// Constructs that are measured, by their names in files.
pub const CONSTRUCTS: [&str; 3] = ["fork-join", "barrier", "reduction"];

/// Thread counts to measure on `cpus` CPUs: powers of two, and all of them.
pub fn thread_counts(cpus: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|&count| count < cpus).collect();
    counts.push(cpus.max(1));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_double_and_end_with_all() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(0), [1]);
    }
}
