//! Memory that leaves management for good while the kernel pages: what becomes executable.

use super::{Memory, inner::Inner};
use crate::region::Attr;
use nearfar_core::addr::Extent;
use nearfar_sys::errno::Errno;
use nearfar_sys::map::{self, ANON, OwnedMap, RW};

impl Memory {
    /// Replaces managed ranges by private memory with the same content. The program must not write to them meanwhile: it is
    /// about to execute what is there.
    pub(super) fn make_ordinary(&self, inner: &mut Inner, parts: &[(Extent, Attr)]) -> Result<(), Errno> {
        for &(part, attr) in parts {
            let copy = OwnedMap::new(part.len())?;
            if attr.prot & libc::PROT_READ == 0 {
                // SAFETY: more access than before does no harm, and it is replaced below.
                unsafe { map::mprotect(part, attr.prot | libc::PROT_READ)? };
            }
            let (from, to) = (part.start as *const u8, copy.range().start as *mut u8);
            // SAFETY: a readable range of the program and a fresh mapping of the same length. Nobody serves faults here, so
            // that the lock may be held.
            unsafe { std::ptr::copy_nonoverlapping(from, to, part.len()) };
            // SAFETY: the program's range, with the same content again before this call returns.
            unsafe { map::mmap(part.start, part.len(), RW, ANON | libc::MAP_FIXED, -1, 0)? };
            // SAFETY: as above, the other way round.
            unsafe { std::ptr::copy_nonoverlapping(copy.range().start as *const u8, part.start as *mut u8, part.len()) };
            if attr.committed {
                inner.decommit(part.len());
            }
            inner.unpin(part);
            inner.discard(part);
            inner.regions().remove(part);
        }
        Ok(())
    }
}
