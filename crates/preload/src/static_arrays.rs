//! Large static arrays (.bss) of the program and of the libraries it was started with: a Fortran program may have all its
//! data there. Found in the program headers, at start, before any of it is large. Libraries loaded later are left alone.

use crate::loader::look_up;
use nearfar_core::addr::{Extent, PAGE, round_up};
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicU8;

/// Below this the .bss of the C library itself could come under management, which we use ourselves.
const LEAST: usize = 1 << 20;
/// Lies in our own writable segment, which must never be paged.
static OWN: AtomicU8 = AtomicU8::new(0);

struct Found {
    min_size: usize,
    arrays: Vec<Extent>,
}

/// The static arrays of at least `min_size`.
pub fn find(min_size: usize) -> Vec<Extent> {
    let mut found = Found { min_size: min_size.max(LEAST), arrays: Vec::new() };
    // SAFETY: `visit` gets back the pointer to `found`, which outlives the call.
    look_up(|| unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) });
    found.arrays
}

/// # Safety
/// Called by dl_iterate_phdr with a description of a loaded object and our `Found`.
unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: valid for the call, as documented for dl_iterate_phdr.
    let object = unsafe { &*object };
    // SAFETY: the pointer that `adopt_all` passed.
    let found = unsafe { &mut *found.cast::<Found>() };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader keeps `dlpi_phnum` headers at `dlpi_phdr`.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum as usize) };
    for header in headers {
        let base = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        let whole = Extent { start: base, end: base.wrapping_add(header.p_memsz as usize) };
        let is_own = (whole.start..whole.end).contains(&(&raw const OWN).addr());
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W == 0 || is_own {
            continue;
        }
        found.arrays.extend(anonymous_tail(whole, header.p_filesz as usize).filter(|tail| tail.len() >= found.min_size));
    }
    0
}

/// The whole pages of a segment that lie behind its file content.
fn anonymous_tail(segment: Extent, file_bytes: usize) -> Option<Extent> {
    let start = round_up(segment.start.checked_add(file_bytes)?, PAGE)?;
    let end = segment.end & !(PAGE - 1);
    (start < end).then_some(Extent { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails() {
        let segment = Extent { start: 0x1800, end: 0x5800 };
        assert_eq!(anonymous_tail(segment, 0x100), Some(Extent { start: 0x2000, end: 0x5000 }));
        assert_eq!(anonymous_tail(segment, 0x4000), None);
        assert_eq!(anonymous_tail(segment, 0x3800), None);
    }
}
