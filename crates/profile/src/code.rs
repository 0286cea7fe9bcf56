//! What an instruction does with memory: how its operand moves through the innermost loop around it, from the machine code alone.
//!
//! One pass of the loop is carried out with symbols: registers and stack slots hold sums of what they held at the top of the loop,
//! plus what cannot be said (products, loads), of which only is known on what it depends. What stands in a register at the end
//! of the pass tells how it changes. Branches within the loop are taken as if all of it were carried out.

mod value;
#[cfg(target_arch = "x86_64")]
mod machine;

use nearfar_core::profile::names::Access;

/// What the instruction at `ip` does; `bytes` is code that begins at `start`. With `aligned` an instruction begins at `start` (a
/// function); otherwise the beginnings are found from `ip` backward. `None`: not known, or another kind of processor.
pub fn access(bytes: &[u8], start: u64, ip: u64, aligned: bool) -> Option<Access> {
    #[cfg(target_arch = "x86_64")]
    return machine::access(bytes, start, ip, aligned);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (bytes, start, ip, aligned);
        None
    }
}

/// Where the innermost loop around `ip` begins, in the code of a function that begins at `start`; `None`: in no loop, or not known.
pub fn inner_loop(bytes: &[u8], start: u64, ip: u64) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    return machine::inner_loop(bytes, start, ip);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (bytes, start, ip);
        None
    }
}
