//! Large static arrays (.bss) of the program and of the libraries it was started with: a Fortran program may have all its
//! data there. Found in the program headers, at start, before any of it is large. Libraries loaded later are left alone.

use crate::loader::each_object;
use nearfar_core::addr::{Extent, PAGE, round_up};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU8;

/// Below this the .bss of the C library itself could come under management, which we use ourselves.
const LEAST: usize = 1 << 20;
/// Lies in our own writable segment, which must never be paged.
static OWN: AtomicU8 = AtomicU8::new(0);

/// The static arrays of at least `min_size`.
pub fn find(min_size: usize) -> Vec<Extent> {
    let min_size = min_size.max(LEAST);
    let mut arrays = Vec::new();
    each_object(&mut |object| {
        for (whole, header) in object.headers(libc::PT_LOAD) {
            if header.p_flags & libc::PF_W != 0 && !whole.contains((&raw const OWN).addr()) {
                arrays.extend(anonymous_tail(whole, header.p_filesz as usize).filter(|tail| tail.len() >= min_size));
            }
        }
        ControlFlow::Continue(())
    });
    arrays
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
