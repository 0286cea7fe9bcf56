//! Why a measurement could not be made at all. A measurement that was made and cannot be trusted is no error, but an invalid figure.

use nearfar_core::units::Bytes;
use nearfar_sys::affinity::AffinityError;
use nearfar_sys::errno::Errno;
use nearfar_sys::numa::NumaError;

/// What stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More memory than may be used: the limit of the cgroup, of the node, or what is free.
    #[error("{} are needed, but only {} may be used", Bytes(*needed), Bytes(*limit))]
    TooLarge {
        /// Bytes that the arrays take.
        needed: u64,
        /// Bytes that the caller allowed.
        limit: u64,
    },
    /// The kernel did not give the address space or promise the memory.
    #[error("the kernel refused {} of memory: {errno}", Bytes(*needed))]
    NoMemory {
        /// Bytes asked for.
        needed: u64,
        /// What it said.
        errno: Errno,
    },
    /// The memory cannot come from the node.
    #[error(transparent)]
    Node(#[from] NumaError),
    /// A thread cannot run where it should.
    #[error(transparent)]
    Cpu(#[from] AffinityError),
    /// A thread could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(Errno),
    /// Too few CPUs for the measurement.
    #[error("{0}")]
    TooFewCpus(&'static str),
    /// Sizes that make no sense together.
    #[error("{0}")]
    Setting(&'static str),
}
