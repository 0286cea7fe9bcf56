//! The words between a stream and the policy that keeps many of them: what a fault may cost, when it came, how it fits.

/// What a fault may cost: derived from the pager's room, once per fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Largest run in pages, a power of two of at most a block.
    pub unit: u64,
    /// Most units that one stream may hold ahead.
    pub units_ahead: u32,
    /// Pages that may still be asked for.
    pub budget: u64,
    /// Pages of near: no hole is longer.
    pub near: u64,
    /// Strides shorter than this (pages) are read with what lies between.
    pub span: u64,
    /// Least run in pages, a power of two: 1 where data is read, more where fresh memory is given.
    pub floor: u64,
}

/// Which thread asks, and when, in faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub thread: u32,
    /// Faults of all threads so far.
    pub all: u64,
    /// Faults of this thread so far.
    pub own: u64,
}

/// How a fault relates to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It is where the stream was expected.
    Next,
    /// It enters a unit that was issued ahead, at the edge where a stream enters.
    Entry,
    /// It hit issued data in the middle: chance rather than the stream.
    Inside,
    /// It lies in what the stream asked for last: still under way, or left out by the pager (untouched pages amid far ones).
    Again,
    /// The stream went on beyond data that was resident.
    Jump,
    /// The stream went back to where it came from.
    Restart,
    /// Strided only: more is needed beside each step.
    Widen,
}
