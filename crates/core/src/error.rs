//! The one error of core: text that is not what it should be. Each message echoes what was given and shows something that
//! would be accepted.

/// What core can refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}\"{input}\" {}: {why}; write {}", wanted.before, wanted.behind, wanted.example)]
pub struct Error {
    wanted: &'static Wanted,
    input: String,
    why: String,
}

/// What text should be: words before and behind the text as it was given, and what would be accepted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    before: &'static str,
    behind: &'static str,
    example: &'static str,
}

impl Wanted {
    const fn new(before: &'static str, behind: &'static str, example: &'static str) -> Self {
        Self { before, behind, example }
    }

    /// `input` is not this, because of `why`.
    pub(crate) fn refuse(&'static self, input: &str, why: impl Into<String>) -> Error {
        Error { wanted: self, input: input.to_owned(), why: why.into() }
    }
}

const NOT_UNDERSTOOD: &str = "is not understood";

pub(crate) static SIZE: Wanted =
    Wanted::new("", "is not a size", "for example 4096, 800M, 1.5G or 16GiB (K, M, G, T are powers of 1024)");
pub(crate) static PERCENT: Wanted = Wanted::new("", "is not a percentage", "for example 50% or 12.5%");
pub(crate) static RATE: Wanted = Wanted::new("", "is not a bandwidth", "for example 4G or 800MiB/s (bytes per second)");
pub(crate) static DURATION: Wanted = Wanted::new("", "is not a duration", "for example 200ns, 10us, 1.5ms or 2s");
pub(crate) static NEAR: Wanted =
    Wanted::new("near ", NOT_UNDERSTOOD, "a size (800M, 16GiB), a share of memory (50%) or nodes (node:1, node:1,3:12G)");
pub(crate) static FAR: Wanted =
    Wanted::new("far ", NOT_UNDERSTOOD, "a file or directory (/scratch), node:0 or emu:bw=4G,lat=10us");
pub(crate) static MODE: Wanted =
    Wanted::new("mode ", NOT_UNDERSTOOD, "cache, flat or hybrid=0.25 (the share of near that is cache)");
pub(crate) static PLACE: Wanted =
    Wanted::new("place ", NOT_UNDERSTOOD, "all, size:1M..5M,10M.. (sizes of objects), plan:FILE or calls");
pub(crate) static FAULTS: Wanted =
    Wanted::new("faults ", "are not understood", "for example read-eio=once@100,slow=5ms (see CONTRIBUTING.md)");
