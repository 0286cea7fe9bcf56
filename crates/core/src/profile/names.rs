//! What the machine code says, as the estimates ask for it. The crate `profile` answers from symbols, line tables and instructions;
//! here is only the question, so that the estimates are tested without any program.

use super::summary::NamedFrame;

/// How far the operand of a load or store moves from one pass of its innermost loop to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// By so many bytes, the same each time. 0: it stays where it is, or there is no loop.
    Constant(i64),
    /// By what the data say: an index that was loaded, a pointer that is followed.
    Varies,
}

/// A load or store, and the innermost loop around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// How the operand moves.
    pub step: Step,
    /// Bytes of the operand.
    pub size: u8,
    /// Whether the same place is also written: by the instruction itself, or by another of the loop with the same operand.
    pub also_writes: bool,
    /// Whether it is a store that goes past the caches, so that its line is never read.
    pub non_temporal: bool,
    /// Floating-point operations of one pass of the loop; 0 without a loop.
    pub flops: u32,
    /// Bytes that one pass loads and stores.
    pub access_bytes: u32,
}

/// Names of places in the code, and what instructions do. `process` is the index of a process as [`split`](super::process::split)
/// numbers them: every `Start` record begins one, so that an exec makes another.
pub trait Names {
    /// What stands at each return address, innermost first; functions that were inlined there are frames of their own before it.
    /// An address of which nothing is known still makes a frame (module and offset where there are, else all empty).
    fn frames(&self, process: usize, addrs: &[u64]) -> Vec<NamedFrame>;

    /// Function (for people, demangled, inlined functions left out) and module of an instruction.
    fn function(&self, process: usize, ip: u64) -> Option<(String, String)>;

    /// The symbol of an array as people say it.
    fn spoken(&self, symbol: &str) -> String {
        symbol.to_owned()
    }

    /// What the instruction at `ip` does with memory; `None`: not known.
    fn access(&self, process: usize, ip: u64) -> Option<Access>;

    /// Where the innermost loop around an instruction begins; `None`: not known, or there is none.
    fn inner_loop(&self, _process: usize, _ip: u64) -> Option<u64> {
        None
    }
}

/// Knows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Names for NoNames {
    fn frames(&self, _process: usize, addrs: &[u64]) -> Vec<NamedFrame> {
        addrs.iter().map(|&offset| NamedFrame { offset, ..NamedFrame::default() }).collect()
    }

    fn function(&self, _process: usize, _ip: u64) -> Option<(String, String)> {
        None
    }

    fn access(&self, _process: usize, _ip: u64) -> Option<Access> {
        None
    }
}
