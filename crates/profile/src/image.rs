//! One program or library on disk: its symbols, its debug information, its code.

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache, SectionKind, SymbolKind};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";
/// Functions larger than this are looked at in part only.
const MOST_CODE: u64 = 256 << 10;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Address in the file's own space.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// As the symbol table has it.
    pub name: String,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Mangled; empty: not known.
    pub function: String,
    /// `file:line`; empty: not known.
    pub line: String,
}

/// What a file says.
pub struct Image {
    symbols: Vec<Symbol>,
    /// Of the file, then of the file with its debug information.
    lines: Vec<addr2line::Loader>,
    path: PathBuf,
    /// Code: address, bytes, place in the file.
    code: Vec<(u64, u64, u64)>,
}

/// Why a file says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is not there, or cannot be read.
    Gone,
    /// It is another than the one that ran.
    Changed,
}

type Elf<'a> = ElfFile64<'a, object::Endianness, &'a ReadCache<File>>;

impl Image {
    /// Opens the file at `path`, if its build id is `build_id` (empty: any).
    ///
    /// # Errors
    /// See [`Missing`].
    pub fn open(path: &Path, build_id: &[u8]) -> Result<Self, Missing> {
        let cache = ReadCache::new(File::open(path).map_err(|_| Missing::Gone)?);
        let elf = Elf::parse(&cache).map_err(|_| Missing::Gone)?;
        let own = elf.build_id().ok().flatten().unwrap_or_default().to_vec();
        if !build_id.is_empty() && build_id != own {
            return Err(Missing::Changed);
        }
        let mut symbols = symbols(&elf);
        let code = elf.sections().filter(|section| section.kind() == SectionKind::Text);
        let code = code.filter_map(|section| section.file_range().map(|(at, len)| (section.address(), len, at))).collect();
        let mut lines: Vec<addr2line::Loader> = Vec::new();
        if elf.section_by_name(".debug_info").is_some() {
            lines.extend(addr2line::Loader::new(path).ok());
        } else if let Some(debug) = debug_file(&elf, path, &own) {
            let cache = ReadCache::new(File::open(&debug).map_err(|_| Missing::Gone)?);
            if let Ok(elf) = Elf::parse(&cache) {
                symbols.extend(self::symbols(&elf));
            }
            lines.extend(addr2line::Loader::new(&debug).ok());
        }
        Ok(Self { symbols: ordered(symbols), lines, path: path.to_owned(), code })
    }

    /// The function around an address of the file.
    pub fn symbol(&self, offset: u64) -> Option<&Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= offset);
        // Symbols may lie within others (entry points): the nearest that reaches so far.
        self.symbols[..after].iter().rev().take(8).find(|symbol| offset < symbol.end)
    }

    /// Functions and lines at an address, innermost first: all but the last were inlined.
    pub fn spots(&self, offset: u64) -> Vec<Spot> {
        let mut spots = Vec::new();
        for loader in &self.lines {
            let Ok(mut frames) = loader.find_frames(offset) else { continue };
            while let Ok(Some(frame)) = frames.next() {
                let function = frame.function.as_ref().and_then(|name| name.raw_name().ok()).map(|name| name.into_owned());
                let line = frame.location.and_then(|location| Some((location.file?.rsplit('/').next()?, location.line?)));
                let line = line.map(|(file, line)| format!("{file}:{line}")).unwrap_or_default();
                spots.push(Spot { function: function.unwrap_or_default(), line });
            }
            if !spots.is_empty() {
                break;
            }
        }
        spots
    }

    /// The code of the function around an address, and where it begins.
    pub fn function_code(&self, offset: u64) -> Option<(Vec<u8>, u64)> {
        use std::os::unix::fs::FileExt;
        let symbol = self.symbol(offset).filter(|symbol| symbol.end - symbol.start <= MOST_CODE)?;
        let &(address, len, at) = self.code.iter().find(|(address, len, _)| (*address..address + len).contains(&symbol.start))?;
        let end = symbol.end.min(address + len);
        let mut bytes = vec![0; usize::try_from(end.checked_sub(symbol.start)?).ok()?];
        File::open(&self.path).ok()?.read_exact_at(&mut bytes, at + (symbol.start - address)).ok()?;
        Some((bytes, symbol.start))
    }
}

fn symbols(elf: &Elf<'_>) -> Vec<Symbol> {
    let all = elf.symbols().chain(elf.dynamic_symbols());
    let functions = all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0);
    functions
        .filter_map(|symbol| {
            // Dynamic symbols may have a version appended.
            let name = symbol.name().ok()?.split('@').next()?.to_owned();
            let start = symbol.address();
            Some(Symbol { start, end: start.checked_add(symbol.size())?, name })
        })
        .filter(|symbol| !symbol.name.is_empty())
        .collect()
}

/// In order of address, one name for each: of several the plainest.
fn ordered(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    let plainness = |symbol: &Symbol| (symbol.name.len() - symbol.name.trim_start_matches('_').len(), symbol.name.len());
    symbols.sort_by(|a, b| {
        a.start.cmp(&b.start).then(b.end.cmp(&a.end)).then(plainness(a).cmp(&plainness(b))).then(a.name.cmp(&b.name))
    });
    symbols.dedup_by_key(|symbol| symbol.start);
    // Hand-written code may have no size: it ends where the next begins.
    for at in 0..symbols.len() {
        if symbols[at].end == symbols[at].start {
            symbols[at].end = symbols.get(at + 1).map_or(symbols[at].start + 4096, |next| next.start);
        }
    }
    symbols
}

fn debug_file(elf: &Elf<'_>, path: &Path, build_id: &[u8]) -> Option<PathBuf> {
    let mut candidates = Vec::new();
    if let Some((first, rest)) = build_id.split_first() {
        candidates.push(Path::new(DEBUG).join(format!(".build-id/{first:02x}/{}.debug", hex(rest))));
    }
    if let Ok(Some((name, _))) = elf.gnu_debuglink()
        && let Ok(name) = std::str::from_utf8(name)
        && let Some(dir) = path.parent()
    {
        let below = dir.strip_prefix("/").unwrap_or(dir);
        candidates.extend([dir.join(name), dir.join(".debug").join(name), Path::new(DEBUG).join(below).join(name)]);
    }
    candidates.into_iter().filter(|candidate| candidate != path).find(|candidate| {
        let Ok(file) = File::open(candidate) else { return false };
        let cache = ReadCache::new(file);
        let Ok(elf) = Elf::parse(&cache) else { return false };
        elf.build_id().ok().flatten().unwrap_or_default() == build_id
    })
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
