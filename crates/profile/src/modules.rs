//! What is mapped from files: the program, its libraries, their static arrays. Read from /proc/self/maps and the files, never asked of
//! the loader: its locks may be held by a thread that waits for us.

use crate::locals::{Locals, Way};
use crate::python::Found;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::profile::record::Module;
use nearfar_sys::elf::{self, SymbolKind};
use nearfar_sys::proc_maps::Mapping;
use object::elf::{
    ELF_NOTE_GNU, ET_EXEC, FileHeader64, NT_GNU_BUILD_ID, PF_W, PT_INTERP, PT_LOAD, PT_TLS, R_X86_64_DTPMOD64, R_X86_64_TPOFF64,
    SHT_DYNSYM,
};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use object::{LittleEndian, ReadCache, SymbolIndex};
use std::fs::File;
use std::path::Path;

/// Smaller arrays are not told apart.
const LEAST_ARRAY: u64 = 64 << 10;
/// Larger notes are a mistake.
const MOST_NOTES: u64 = 1 << 16;

/// A mapped file, and where in it what is.
#[derive(Clone, Debug, Default)]
pub struct Mapped {
    /// As it is recorded.
    pub module: Module,
    /// Writable segments, with what has no place in the file (.bss).
    pub writable: Vec<Extent>,
    /// Executable mappings.
    pub code: Vec<Extent>,
    /// Bytes of its thread-local data.
    pub local: u64,
    /// It is there; false after dlclose(3).
    pub is_mapped: bool,
}

/// A static array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its symbol.
    pub name: String,
    /// Its bytes.
    pub range: Extent,
}

/// A file as it is mapped: its name, inode, range and code, and where in it the last mapping began.
struct Span<'a> {
    name: &'a str,
    inode: u64,
    range: Extent,
    code: Vec<Extent>,
    offset: u64,
}

/// The mapped files among `maps` that are ELF files with code or data. A file may be there several times (dlmopen(3)): each begins
/// anew with its first bytes.
pub fn among(maps: &[Mapping]) -> Vec<Mapped> {
    let mut found: Vec<Span<'_>> = Vec::new();
    for mapping in maps.iter().filter(|mapping| mapping.inode != 0 && mapping.name.starts_with('/') && !mapping.shared) {
        let code = (mapping.prot & libc::PROT_EXEC != 0).then_some(mapping.range);
        let is_of =
            |file: &&mut Span<'_>| (file.name, file.inode) == (&mapping.name, mapping.inode) && file.offset <= mapping.offset;
        match found.iter_mut().rev().find(is_of) {
            Some(file) => {
                file.range.end = file.range.end.max(mapping.range.end);
                file.offset = mapping.offset;
                file.code.extend(code);
            }
            None => found.push(Span {
                name: &mapping.name,
                inode: mapping.inode,
                range: mapping.range,
                code: code.into_iter().collect(),
                offset: mapping.offset,
            }),
        }
    }
    let modules = found.iter().filter(|file| !file.code.is_empty());
    modules.filter_map(|file| module(file.name, file.range, &file.code)).collect()
}

/// The module at `path`, mapped at `range`. What is no ELF file is `None`; what cannot be read (it was removed) is told by its range alone.
fn module(path: &str, range: Extent, code: &[Extent]) -> Option<Mapped> {
    let plain = Module { path: path.into(), start: range.start as u64, end: range.end as u64, ..Module::default() };
    let mut mapped = Mapped { module: plain, writable: Vec::new(), code: code.to_vec(), local: 0, is_mapped: true };
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
    let local = segments.iter().find(|segment| segment.p_type(endian) == PT_TLS);
    mapped.local = local.map_or(0, |segment| segment.p_memsz(endian));
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

    /// Its path, also when it was deleted since.
    pub fn path(&self) -> &str {
        self.module.path.trim_end_matches(" (deleted)")
    }

    /// Its file name.
    pub fn file_name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or_default()
    }

    /// Its large thread-local arrays, if it has any, and how they are found in a thread.
    pub fn locals(&self) -> Option<Locals> {
        if self.local < LEAST_ARRAY || cfg!(not(target_arch = "x86_64")) {
            return None;
        }
        let mut found = Vec::new();
        let _ = elf::symbols(Path::new(&self.module.path), |name, symbol| {
            let end = symbol.value.saturating_add(symbol.size);
            if symbol.kind == SymbolKind::ThreadLocal && symbol.size >= LEAST_ARRAY && end <= self.local {
                let range = Extent { start: symbol.value as usize, end: end as usize };
                found.push(Array { name: String::from_utf8_lossy(name).into_owned(), range });
            }
        });
        let arrays = without_overlaps(found);
        if arrays.is_empty() {
            return None;
        }
        let arrays = arrays.into_iter().map(|array| (array.name, array.range)).collect();
        Some(Locals::new(self.way()?, arrays))
    }

    /// How thread-local data of the module are found: as its own code finds them. `None`: it has none that touches them.
    fn way(&self) -> Option<Way> {
        let file = ReadCache::new(File::open(&self.module.path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(&file).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, &file).ok()?;
        // Libraries may name an interpreter too, for people who start them.
        let is_program = || std::fs::read_link("/proc/self/exe").is_ok_and(|program| program == Path::new(&self.module.path));
        let interpreted = segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP);
        if header.e_type(endian) == ET_EXEC || (interpreted && is_program()) {
            return Some(Way::First);
        }
        let sections = header.sections(endian, &file).ok()?;
        let symbols = sections.symbols(endian, &file, SHT_DYNSYM).ok()?;
        // Where the symbol lies in the block; what another module defines is in that one's.
        let value = |index: u32| match index {
            0 => Some(0),
            _ => {
                let symbol = symbols.symbol(SymbolIndex(index as usize)).ok()?;
                (!symbol.is_undefined(endian)).then(|| symbol.st_value(endian))
            }
        };
        let mut distance = None;
        for section in sections.iter() {
            let Ok(Some((entries, _))) = object::read::elf::SectionHeader::rela(section, endian, &file) else { continue };
            for entry in entries {
                let at = self.module.bias.wrapping_add(entry.r_offset.get(endian));
                let (kind, symbol) = (entry.r_type(endian, false), entry.r_sym(endian, false));
                match kind {
                    R_X86_64_DTPMOD64 if value(symbol).is_some() => return Some(Way::Number(at)),
                    R_X86_64_TPOFF64 => {
                        let place = |value: u64| value.wrapping_add_signed(entry.r_addend.get(endian));
                        distance = distance.or_else(|| value(symbol).map(|value| Way::Distance { at, symbol: place(value) }));
                    }
                    _ => {}
                }
            }
        }
        distance
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
        without_overlaps(found)
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

/// In order; of several at one place the first by name.
fn without_overlaps(mut found: Vec<Array>) -> Vec<Array> {
    found.sort_by(|a, b| (a.range.start, &a.name).cmp(&(b.range.start, &b.name)));
    let mut end = 0;
    found.retain(|array| {
        let is_free = array.range.start >= end;
        end = end.max(array.range.end);
        is_free
    });
    found
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

    /// As after dlmopen(3): two, each with its own beginning.
    #[test]
    fn a_file_that_is_mapped_twice() {
        let own = proc_maps::own();
        let here = a_file_that_is_mapped_twice as *const () as u64;
        let one = among(&own).into_iter().find(|module| module.contains(here)).unwrap();
        let of = own.iter().filter(|mapping| mapping.name == one.module.path);
        let again: Vec<Mapping> = of
            .clone()
            .map(|mapping| {
                let mut copy = mapping.clone();
                (copy.range.start, copy.range.end) = (copy.range.start + (1 << 44), copy.range.end + (1 << 44));
                copy
            })
            .collect();
        let both: Vec<Mapping> = of.cloned().chain(again).collect();
        let found = among(&both);
        let starts: Vec<u64> = found.iter().map(|module| module.module.start).collect();
        assert_eq!(starts, [one.module.start, one.module.start + (1 << 44)]);
        assert_eq!(found[1].module.bias, one.module.bias + (1 << 44));
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
