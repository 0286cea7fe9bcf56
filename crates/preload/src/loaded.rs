//! Loaded objects: which one an address lies in, where its code is, and what it defines.
//!
//! dlsym(3) answers for the order of loading, in which an allocator of the program comes before the C library. Here one object is
//! asked. Takes no memory, and no locks but the loader's own for walking its list.

use crate::loader::each_object;
use nearfar_core::addr::Extent;
use std::ffi::{CStr, c_char};
use std::ops::ControlFlow;

/// The executable segment of the object that holds `addr`.
pub fn code_of(addr: usize) -> Option<Extent> {
    let mut found = None;
    with_object_of(addr, &mut |object| found = object.code);
    found
}

/// The address of the function `name` that the object that holds `addr` defines for others.
pub fn symbol_of(addr: usize, name: &CStr) -> Option<usize> {
    let mut found = None;
    with_object_of(addr, &mut |object| found = object.dynamic.and_then(|dynamic| object.symbol(dynamic, name)));
    found
}

/// One loaded object.
struct Object {
    base: usize,
    code: Option<Extent>,
    dynamic: Option<usize>,
}

/// Calls `each` if an object holds `addr`.
fn with_object_of(addr: usize, each: &mut dyn FnMut(&Object)) {
    each_object(&mut |object| {
        let segments = object.headers(libc::PT_LOAD);
        if !segments.clone().any(|(segment, _)| segment.contains(addr)) {
            return ControlFlow::Continue(());
        }
        let code = segments.clone().find(|(_, header)| header.p_flags & libc::PF_X != 0).map(|(segment, _)| segment);
        let dynamic = object.headers(libc::PT_DYNAMIC).next().map(|(section, _)| section.start);
        each(&Object { base: object.base(), code, dynamic });
        ControlFlow::Break(())
    });
}

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// An indirect function: the value is that of a resolver.
const STT_FUNC: u8 = 2;

impl Object {
    /// Looks `name` up in the hash table of the object, which is laid out as GNU tools do.
    fn symbol(&self, dynamic: usize, name: &CStr) -> Option<usize> {
        let (mut strings, mut symbols, mut table) = (None, None, None);
        let mut entry = dynamic as *const [i64; 2];
        loop {
            // SAFETY: the loader has the object's dynamic section mapped, which ends with DT_NULL.
            let [tag, value] = unsafe { entry.read() };
            // SAFETY: not beyond that end.
            entry = unsafe { entry.add(1) };
            // The loader has added the base to what it reads itself; not on every architecture.
            let addr = value as usize;
            let addr = if addr < self.base { addr + self.base } else { addr };
            match tag {
                DT_NULL => break,
                DT_STRTAB => strings = Some(addr as *const c_char),
                DT_SYMTAB => symbols = Some(addr as *const libc::Elf64_Sym),
                DT_GNU_HASH => table = Some(addr as *const u32),
                _ => {}
            }
        }
        let (strings, symbols, table) = (strings?, symbols?, table?);
        // SAFETY: the table begins with four words: buckets, first symbol, words of the filter, its shift.
        let [buckets, first, filter] = [0, 1, 2].map(|index| unsafe { table.add(index).read() });
        // SAFETY: the filter of 64-bit words lies between the head and the buckets, the chains are behind those.
        let (bucket, chain) = unsafe {
            let bucket = table.add(4 + 2 * filter as usize);
            (bucket, bucket.add(buckets as usize))
        };
        let hash = name.to_bytes().iter().fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        // SAFETY: within the buckets.
        let mut index = unsafe { bucket.add((hash % buckets.max(1)) as usize).read() };
        if buckets == 0 || index < first {
            return None;
        }
        loop {
            // SAFETY: a chain holds the hashes of the symbols of a bucket, one after the other; the last has bit 0 set.
            let (symbol, found) = unsafe { (&*symbols.add(index as usize), chain.add((index - first) as usize).read()) };
            if found | 1 == hash | 1
                && symbol.st_info & 15 == STT_FUNC
                && symbol.st_shndx != 0
                // SAFETY: the name of a symbol is a string of the string table.
                && unsafe { CStr::from_ptr(strings.add(symbol.st_name as usize)) } == name
            {
                return Some(self.base + symbol.st_value as usize);
            }
            if found & 1 == 1 {
                return None;
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_functions_of_the_c_library_are_found() {
        let getpid = libc::getpid as *const () as usize;
        assert!(code_of(getpid).is_some_and(|code| code.contains(getpid) && !code.contains(code_of as *const () as usize)));
        assert_eq!(symbol_of(getpid, c"getpid"), Some(getpid));
        assert_eq!(symbol_of(getpid, c"nearfar_has_no_such_function"), None);
        assert_eq!(symbol_of(1, c"getpid"), None);
        assert!(symbol_of(getpid, c"malloc_usable_size").is_some());
    }
}
