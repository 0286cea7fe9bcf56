//! Words that options of `nearfar run` take.

/// Which part of the heap is managed.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// Every byte
    All,
    /// Only large allocations
    Large,
}

/// When far space is secured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// For what is touched, in steps ahead of need
    Lazy,
    /// For all that may be written, at allocation
    Strict,
}

/// Who moves pages in cache mode between nodes.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// The kernel where its tiering is on, otherwise nearfar
    Auto,
    /// Nearfar, even where the kernel's tiering is on
    Force,
    /// Nobody: memory stays where it was touched first
    Off,
}

/// What happens when near is full.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Further objects go far
    Spill,
    /// Allocations fail
    Fail,
    /// Allocations wait
    Wait,
}

/// Nodes of which tier take pages in turn.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Those of near
    Near,
    /// Those of far
    Far,
    /// Those of near in turn, and those of far
    Both,
}

/// What becomes of a program that is stuck.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStall {
    /// It is told of, and may go on.
    Wait,
    /// All processes of the job are ended.
    Stop,
}
