//! What is mapped from files: the program, its libraries, their static arrays. Read from /proc/self/maps and the files, never asked of
//! the loader: its locks may be held by a thread that waits for us.

use crate::python::Found;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::profile::record::Module;
use nearfar_sys::elf::{self, SymbolKind};
use nearfar_sys::proc_maps::Mapping;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, PF_W, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, ReadCache};
use std::fs::File;
use std::path::Path;

/// Smaller arrays are not told apart.
const LEAST_ARRAY: u64 = 64 << 10;
/// Larger notes are a mistake.
const MOST_NOTES: u64 = 1 << 16;

/// A mapped file, and where in it what is.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// As it is recorded.
    pub module: Module,
    /// Writable segments, with what has no place in the file (.bss).
    pub writable: Vec<Extent>,
    /// Executable mappings.
    pub code: Vec<Extent>,
}

/// A static array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its symbol.
    pub name: String,
    /// Its bytes.
    pub range: Extent,
}

/// The mapped files among `maps` that are ELF files with code or data.
pub fn among(maps: &[Mapping]) -> Vec<Mapped> {
    let mut found: Vec<(&str, u64, Extent, Vec<Extent>)> = Vec::new();
    for mapping in maps.iter().filter(|mapping| mapping.inode != 0 && mapping.name.starts_with('/') && !mapping.shared) {
        let code = (mapping.prot & libc::PROT_EXEC != 0).then_some(mapping.range);
        match found.iter_mut().find(|(name, inode, ..)| (*name, *inode) == (&mapping.name, mapping.inode)) {
            Some((_, _, range, codes)) => {
                *range = Extent { start: range.start.min(mapping.range.start), end: range.end.max(mapping.range.end) };
                codes.extend(code);
            }
            None => found.push((&mapping.name, mapping.inode, mapping.range, code.into_iter().collect())),
        }
    }
    let is_module = |(.., code): &&(&str, u64, Extent, Vec<Extent>)| !code.is_empty();
    found.iter().filter(is_module).filter_map(|(name, _, range, code)| module(name, *range, code)).collect()
}

/// The module at `path`, mapped at `range`. What is no ELF file is `None`; what cannot be read (it was removed) is told by its range alone.
fn module(path: &str, range: Extent, code: &[Extent]) -> Option<Mapped> {
    let plain = Module { path: path.into(), start: range.start as u64, end: range.end as u64, ..Module::default() };
    let mut mapped = Mapped { module: plain, writable: Vec::new(), code: code.to_vec() };
    let Ok(file) = File::open(path) else { return Some(mapped) };
    let file = ReadCache::new(file);
    let header = FileHeader64::<LittleEndian>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &file).ok()?;
    let loaded = || segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let lowest = loaded().map(|segment| segment.p_vaddr(endian) & !(PAGE as u64 - 1)).min()?;
    let bias = (range.start as u64).wrapping_sub(lowest);
    for segment in loaded() {
        let start = bias.wrapping_add(segment.p_vaddr(endian));
        let end = start.saturating_add(segment.p_memsz(endian));
        mapped.module.end = mapped.module.end.max(end);
        if segment.p_flags(endian) & PF_W != 0 {
            mapped.writable.push(Extent { start: start as usize, end: end as usize });
        }
    }
    let small = segments.iter().filter(|segment| segment.p_filesz(endian) <= MOST_NOTES);
    let mut notes = small.filter_map(|segment| segment.notes(endian, &file).ok().flatten()).flatten().flatten();
    let build_id = notes.find(|note| note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID);
    mapped.module.build_id = build_id.map(|note| note.desc().to_vec()).unwrap_or_default();
    mapped.module.bias = bias;
    Some(mapped)
}

impl Mapped {
    /// True when `addr` lies in it.
    pub fn contains(&self, addr: u64) -> bool {
        self.module.start <= addr && addr < self.module.end
    }

    /// Its large static arrays, in order, without overlaps (one may have several names).
    pub fn arrays(&self) -> Vec<Array> {
        let mut found = Vec::new();
        if self.writable.iter().map(Extent::len).sum::<usize>() as u64 >= LEAST_ARRAY {
            // Without symbols there are no arrays that could be told apart.
            let _ = elf::symbols(Path::new(&self.module.path), |name, symbol| {
                if symbol.kind != SymbolKind::Data || symbol.size < LEAST_ARRAY {
                    return;
                }
                let start = (self.module.bias.wrapping_add(symbol.value)) as usize;
                let range = Extent { start, end: start.saturating_add(symbol.size as usize) };
                if self.writable.iter().any(|segment| segment.contains_extent(range)) {
                    found.push(Array { name: String::from_utf8_lossy(name).into_owned(), range });
                }
            });
        }
        found.sort_by(|a, b| (a.range.start, &a.name).cmp(&(b.range.start, &b.name)));
        let mut end = 0;
        found.retain(|array| {
            let is_free = array.range.start >= end;
            end = end.max(array.range.end);
            is_free
        });
        found
    }

    /// The functions of a Python interpreter, if it is one.
    pub fn python(&self) -> Option<Found> {
        let name = Path::new(&self.module.path).file_name()?.to_str()?;
        if !name.starts_with("libpython3") && !name.starts_with("python3") {
            return None;
        }
        let mut found = Found::default();
        let _ = elf::symbols(Path::new(&self.module.path), |name, symbol| {
            found.see(name, self.module.bias.wrapping_add(symbol.value) as usize);
        });
        Some(found)
    }
}

/// The heaps of the C library: the brk heap, and its arenas, which begin at multiples of 64 MiB and go on as reserved memory.
pub fn heaps(maps: &[Mapping]) -> Vec<(Extent, bool)> {
    const ARENA: usize = 64 << 20;
    const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let mut found: Vec<(Extent, bool)> = Vec::new();
    let is_data = |mapping: &Mapping| mapping.prot & ACCESS == ACCESS && !mapping.shared && mapping.inode == 0;
    for mapping in maps.iter().filter(|mapping| is_data(mapping)) {
        // What is looked at is a mapping of its own for a while.
        if let Some((last, is_main)) = found.last_mut()
            && last.end == mapping.range.start
            && ((*is_main && mapping.name == "[heap]")
                || (!*is_main && mapping.name.is_empty() && !last.end.is_multiple_of(ARENA)))
        {
            last.end = mapping.range.end;
        } else if mapping.name == "[heap]" {
            found.push((mapping.range, true));
        } else if mapping.name.is_empty() && mapping.range.start.is_multiple_of(ARENA) {
            found.push((mapping.range, false));
        }
    }
    let is_reserved = |end: usize| {
        let rest = end.next_multiple_of(ARENA) - end;
        rest == 0 || maps.iter().any(|next| next.range.start == end && next.prot == 0 && next.range.len() == rest)
    };
    found.retain(|(range, is_main)| *is_main || (range.len() <= ARENA && is_reserved(range.end)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::proc_maps;

    #[unsafe(no_mangle)]
    static NEARFAR_TEST_BIG: [std::sync::atomic::AtomicU8; 100_000] = [const { std::sync::atomic::AtomicU8::new(1) }; 100_000];

    #[test]
    fn this_program() {
        NEARFAR_TEST_BIG[7].store(2, std::sync::atomic::Ordering::Relaxed);
        let modules = among(&proc_maps::own());
        let here = this_program as *const () as u64;
        let own = modules.iter().find(|module| module.contains(here)).unwrap();
        assert_eq!(Path::new(&own.module.path), std::env::current_exe().unwrap());
        assert!(own.code.iter().any(|code| code.contains(here as usize)) && !own.writable.is_empty());
        let arrays = own.arrays();
        let big = arrays.iter().find(|array| array.name == "NEARFAR_TEST_BIG").unwrap();
        assert_eq!((big.range.start, big.range.len()), ((&raw const NEARFAR_TEST_BIG).addr(), 100_000));
        let libc = modules.iter().find(|module| module.contains(libc::getpid as *const () as u64)).unwrap();
        assert!(libc.module.build_id.len() >= 16 && libc.python().is_none());
    }

    #[test]
    fn heaps_of_the_c_library() {
        let maps = "\
5000-9000 rw-p 00000000 00:00 0    [heap]
9000-a000 rw-p 00000000 00:00 0    [heap]
4000000-4021000 rw-p 00000000 00:00 0
4021000-4022000 rw-p 00000000 00:00 0
4022000-8000000 ---p 00000000 00:00 0
c000000-c021000 rw-p 00000000 00:00 0
";
        let maps: Vec<_> = maps.lines().filter_map(proc_maps::parse_line).collect();
        let range = |start, end| Extent { start, end };
        assert_eq!(heaps(&maps), [(range(0x5000, 0xa000), true), (range(0x400_0000, 0x402_2000), false)]);
    }
}
