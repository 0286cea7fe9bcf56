//! The one error of core. Each message echoes what was given and shows something that would be accepted.

/// What core can refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not an amount of memory.
    #[error("\"{input}\" is not a size: {why}; write for example 4096, 800M, 1.5G or 16GiB (K, M, G, T are powers of 1024)")]
    Size {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a share.
    #[error("\"{input}\" is not a percentage: {why}; write for example 50% or 12.5%")]
    Percent {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a bandwidth.
    #[error("\"{input}\" is not a bandwidth: {why}; write for example 4G or 800MiB/s (bytes per second)")]
    Rate {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a duration.
    #[error("\"{input}\" is not a duration: {why}; write for example 200ns, 10us, 1.5ms or 2s")]
    Duration {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a near tier.
    #[error(
        "near \"{input}\" is not understood: {why}; write a size (800M, 16GiB), a share of memory (50%) or nodes (node:1, node:1,3:12G)"
    )]
    Near {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a far tier.
    #[error("far \"{input}\" is not understood: {why}; write a file or directory (/scratch), node:0 or emu:bw=4G,lat=10us")]
    Far {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a mode.
    #[error("mode \"{input}\" is not understood: {why}; write cache, flat or hybrid=0.25 (the share of near that is cache)")]
    Mode {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a placement policy.
    #[error("place \"{input}\" is not understood: {why}; write all, size:1M..5M,10M.. (sizes of objects), plan:FILE or calls")]
    Place {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a list of faults.
    #[error("faults \"{input}\" are not understood: {why}; write for example read-eio=once@100,slow=5ms (see CONTRIBUTING.md)")]
    Faults {
        /// The text as given.
        input: String,
        /// What is wrong with it.
        why: String,
    },
    /// A range was given back that is free already, in part or whole, or that the allocator does not own.
    #[error("range {start:#x}..{end:#x} is not in use (bytes): it was freed twice or never belonged here")]
    NotTaken {
        /// First byte.
        start: usize,
        /// One past the last byte.
        end: usize,
    },
}
