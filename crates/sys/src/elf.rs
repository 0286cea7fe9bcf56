//! The symbols of an ELF file (64 bits, little-endian): names, addresses and sizes of functions and static data.
//!
//! Reads the symbol table in pieces, not the file: programs with debug information are large. Nothing of the content is trusted: what
//! does not fit together is left out.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A variable: static array, COMMON block.
    Data,
    /// A function.
    Function,
    /// A variable that each thread has: its value counts from where the thread-local data of the file begin.
    ThreadLocal,
}

/// One defined symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// What it names.
    pub kind: SymbolKind,
    /// Address as in the file: relative to where the file is loaded.
    pub value: u64,
    /// Bytes.
    pub size: u64,
}

const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// Symbols read at a time.
const BATCH: usize = 2048;
/// Larger string tables are a mistake.
const MOST_NAMES: u64 = 1 << 30;

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(part) = bytes.get(at..at + N) {
        word[..N].copy_from_slice(part);
    }
    u64::from_le_bytes(word)
}

fn damaged() -> Error {
    Error::new(ErrorKind::InvalidData, "not a 64-bit ELF file, or a damaged one")
}

struct Section {
    kind: u32,
    link: usize,
    offset: u64,
    size: u64,
}

fn sections(file: &File) -> Result<Vec<Section>> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0)?;
    if head[..6] != [0x7f, b'E', b'L', b'F', 2, 1] || number::<2>(&head, 58) as usize != SECTION {
        return Err(damaged());
    }
    let (offset, count) = (number::<8>(&head, 40), number::<2>(&head, 60) as usize);
    let mut table = vec![0; count * SECTION];
    file.read_exact_at(&mut table, offset)?;
    let section = |entry: &[u8]| Section {
        kind: number::<4>(entry, 4) as u32,
        link: number::<4>(entry, 40) as usize,
        offset: number::<8>(entry, 24),
        size: number::<8>(entry, 32),
    };
    Ok(table.chunks_exact(SECTION).map(section).collect())
}

/// Calls `each` with name and symbol for all functions, data and thread-local data that the file at `path` defines: from its full symbol table, from the
/// dynamic one where it is stripped.
///
/// # Errors
/// Those of opening and reading, and `InvalidData`.
pub fn symbols(path: &Path, mut each: impl FnMut(&[u8], Symbol)) -> Result<()> {
    let file = File::open(path)?;
    let sections = sections(&file)?;
    let table = |kind: u32| sections.iter().find(|section| section.kind == kind && section.size >= SYMBOL as u64);
    let Some(table) = table(SHT_SYMTAB).or_else(|| table(SHT_DYNSYM)) else { return Ok(()) };
    let strings = sections.get(table.link).filter(|strings| strings.size <= MOST_NAMES).ok_or_else(damaged)?;
    let file_len = file.metadata()?.len();
    if strings.offset.checked_add(strings.size).is_none_or(|end| end > file_len) {
        return Err(damaged());
    }
    let mut names = vec![0; strings.size as usize];
    file.read_exact_at(&mut names, strings.offset)?;
    let count = table.size as usize / SYMBOL;
    let mut batch = vec![0; BATCH.min(count) * SYMBOL];
    for first in (0..count).step_by(BATCH) {
        let some = BATCH.min(count - first);
        let batch = &mut batch[..some * SYMBOL];
        file.read_exact_at(batch, table.offset + (first * SYMBOL) as u64)?;
        for entry in batch.chunks_exact(SYMBOL) {
            let kind = match entry[4] & 15 {
                // Data, and COMMON that was not allocated by the linker yet.
                1 | 5 => SymbolKind::Data,
                // Functions, and those chosen at load.
                2 | 10 => SymbolKind::Function,
                6 => SymbolKind::ThreadLocal,
                _ => continue,
            };
            // Not defined here.
            if number::<2>(entry, 6) == 0 {
                continue;
            }
            let name = names.get(number::<4>(entry, 0) as usize..).unwrap_or_default();
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            each(name, Symbol { kind, value: number::<8>(entry, 8), size: number::<8>(entry, 16) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the test below.
    #[unsafe(no_mangle)]
    static NEARFAR_TEST_ARRAY: [u8; 77] = [1; 77];

    #[test]
    fn own_symbols_are_found() {
        let own = std::env::current_exe().expect("a path");
        let (mut data, mut functions) = (None, 0);
        symbols(&own, |name, symbol| {
            if name == b"NEARFAR_TEST_ARRAY" {
                data = Some(symbol);
            }
            functions += usize::from(symbol.kind == SymbolKind::Function);
        })
        .expect("readable");
        let data = data.expect("the array");
        assert_eq!((data.kind, data.size, std::hint::black_box(&NEARFAR_TEST_ARRAY)[3]), (SymbolKind::Data, 77, 1));
        assert!(functions > 100);
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert!(symbols(Path::new("/proc/self/cmdline"), |_, _| ()).is_err());
        assert!(symbols(Path::new("/nowhere"), |_, _| ()).is_err());
        let dir = std::env::temp_dir().join(format!("nearfar-elf-{}", std::process::id()));
        let mut bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        // Sections said to be elsewhere.
        bytes.truncate(4096);
        std::fs::write(&dir, &bytes).expect("written");
        assert!(symbols(&dir, |_, _| ()).is_err());
        std::fs::remove_file(&dir).expect("removed");
    }
}
