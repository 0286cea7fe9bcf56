//! What the hooks work with in a managed process, and the three questions that decide where a call goes: whose memory is at
//! an address, who calls, and on what stack.

use crate::stack;
use nearfar_core::addr::Extent;
use nearfar_tiers::memory::Memory;
use std::ffi::{c_int, c_void};
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
    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
    }
    // SAFETY: reads a number from the auxiliary vector: the address at which the kernel mapped the loader.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
    [__libc_malloc as *const () as usize, loader].map(|addr| code_of(addr).unwrap_or(Extent { start: 0, end: 0 }))
}

/// The executable segment of the object that holds `addr`.
pub fn code_of(addr: usize) -> Option<Extent> {
    let mut found = Extent { start: addr, end: 0 };
    // SAFETY: `visit` gets back the pointer to `found`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    (found.end != 0).then_some(found)
}

/// Replaces the address in `found` by the executable segment of the object that holds it.
///
/// # Safety
/// Called by dl_iterate_phdr with a description of a loaded object and the range of `code_of`.
unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: valid for the call, as documented for dl_iterate_phdr.
    let object = unsafe { &*object };
    // SAFETY: the range that `code_of` passed.
    let found = unsafe { &mut *found.cast::<Extent>() };
    if object.dlpi_phdr.is_null() || found.end != 0 {
        return 0;
    }
    // SAFETY: the loader keeps `dlpi_phnum` headers at `dlpi_phdr`.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize) };
    let segments = || {
        headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
            let start = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            (Extent { start, end: start + header.p_memsz as usize }, header.p_flags & libc::PF_X != 0)
        })
    };
    if segments().any(|(segment, _)| segment.contains(found.start))
        && let Some((code, _)) = segments().find(|&(_, executable)| executable)
    {
        *found = code;
    }
    0
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
