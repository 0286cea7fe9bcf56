//! What the hooks work with in a managed process, and the three questions that decide where a call goes: whose memory is at
//! an address, who calls, and on what stack.

use crate::loaded::code_of;
use crate::{libc_heap, stack};
use nearfar_core::addr::Extent;
use nearfar_tiers::memory::Memory;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Lives as long as the process.
pub struct Managed {
    memory: Memory,
    /// Smallest allocation that comes straight from the arena.
    pub min_size: usize,
    /// Smaller allocations are paged too.
    pub heap_all: bool,
    /// Code of the C library and of the loader.
    libraries: [Code; 2],
    /// Static arrays that are paged.
    arrays: OnceLock<Vec<Extent>>,
    /// A mapping lies outside the arena: mimalloc's memory may too.
    pub overflowed: AtomicBool,
}

/// A range in the form that is quickest to ask.
#[derive(Clone, Copy)]
struct Code {
    start: usize,
    len: usize,
}

/// The half of the arena that an address lies in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// What `Memory::alloc` hands out.
    Blocks,
    /// What `Memory::mmap` hands out.
    Maps,
}

impl Managed {
    /// With `memory`.
    pub fn new(memory: Memory, min_size: usize, heap_all: bool) -> Self {
        let libraries = library_code().map(|code| Code { start: code.start, len: code.len() });
        Self { memory, min_size, heap_all, libraries, arrays: OnceLock::new(), overflowed: AtomicBool::new(false) }
    }

    /// Says which static arrays the memory has adopted; once.
    pub fn set_arrays(&self, arrays: Vec<Extent>) {
        let _ = self.arrays.set(arrays);
    }

    /// Calls `act` with the memory, on a stack that is not paged.
    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&Memory) -> R) -> R {
        if self.is_paged(stack::here()) { stack::call_on_own(|| act(&self.memory)) } else { act(&self.memory) }
    }

    /// Where in the arena `addr` lies, if it does.
    #[inline]
    pub fn half(&self, addr: usize) -> Option<Half> {
        if self.memory.is_mapped(addr) {
            Some(Half::Maps)
        } else if self.memory.is_block(addr) {
            Some(Half::Blocks)
        } else {
            None
        }
    }

    /// True when `addr` lies in memory that may be paged. Mappings that the kernel placed at the program's wish are not known
    /// here; nobody has stacks there.
    #[inline]
    pub fn is_paged(&self, addr: usize) -> bool {
        self.half(addr).is_some() || self.arrays.get().is_some_and(|arrays| arrays.iter().any(|array| array.contains(addr)))
    }

    /// True when `caller`, a return address, lies in the C library or the loader.
    #[inline]
    pub fn is_library_code(&self, caller: usize) -> bool {
        self.libraries.iter().any(|code| caller.wrapping_sub(code.start) < code.len)
    }

    /// True when the pager uses the descriptor.
    pub fn is_own_fd(&self, fd: c_int) -> bool {
        self.memory.is_own_fd(fd)
    }
}

/// Where the code of the C library and of the loader is.
fn library_code() -> [Extent; 2] {
    // SAFETY: reads a number from the auxiliary vector: the address at which the kernel mapped the loader.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
    [libc_heap::code(), loader].map(|addr| code_of(addr).unwrap_or(Extent { start: 0, end: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_c_library_is_found() {
        let [libc_code, loader_code] = library_code();
        assert!(libc_code.contains(libc::getpid as *const () as usize) && !libc_code.is_empty() && !loader_code.is_empty());
        assert!(!libc_code.overlaps(&loader_code) && !libc_code.contains(library_code as *const () as usize));
    }
}
