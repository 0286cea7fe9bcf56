//! What is asked of the processes themselves about their large objects: who allocated them, and how much of them is in view.
//!
//! Files are read for processes of one's own user only: another's may be made to hang or mislead whoever reads them, and a job of his may
//! name any process. Of those the place in the module is told.

use crate::top::objects::ObjectRates;
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::names::Names;
use nearfar_core::profile::record::Module;
use nearfar_profile::modules::{self, Array, Mapped};
use nearfar_profile::names::FileNames;
use nearfar_sys::pagemap::Pagemap;
use nearfar_sys::proc_maps::{self, Mapping};
use nearfar_sys::root::Root;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

/// Of a larger object so many pieces of 2 MiB are looked at, evenly spread.
const PIECES: usize = 64;

/// A program that a process runs: its number, when it started, and the inode of the program, which exec changes.
type ProgramId = (u32, u64, u64);

/// What a program has mapped from files.
#[derive(Default)]
struct Files {
    mapped: Vec<Mapped>,
    arrays: Vec<Array>,
    names: FileNames,
}

/// What is known already.
#[derive(Default)]
pub struct Inspection {
    names: HashMap<(ProgramId, u64), String>,
    files: HashMap<ProgramId, Files>,
}

impl Inspection {
    /// Says of `object` what can be found out.
    pub fn complete(&mut self, root: &Root, object: &mut ObjectRates) {
        let program = std::fs::metadata(format!("/proc/{}/exe", object.pid)).map_or(0, |file| file.ino());
        let program = (object.pid, object.process_start, program);
        let range = Extent::new(object.address as usize, object.bytes as usize);
        let name = self.names.get(&(program, object.site)).cloned().or_else(|| {
            let name = self.name(root, program, object.site, range)?;
            self.names.insert((program, object.site), name.clone());
            Some(name)
        });
        object.name = Some(name.unwrap_or_else(|| format!("code at {:#x}", object.site)));
        object.near_share = near_share(object.pid, range);
    }

    /// Forgets processes, by number and start, of which `lives` is not true.
    pub fn forget(&mut self, lives: impl Fn((u32, u64)) -> bool) {
        self.names.retain(|&((pid, start, _), _), _| lives((pid, start)));
        self.files.retain(|&(pid, start, _), _| lives((pid, start)));
    }

    /// The name for `site`; `None` where nothing is mapped from a file, or nobody may know.
    fn name(&mut self, root: &Root, program: ProgramId, site: u64, range: Extent) -> Option<String> {
        let is_known = |files: &Files| files.mapped.iter().any(|one| one.contains(site));
        if !self.files.get(&program).is_some_and(is_known) {
            self.files.insert(program, Files::of(root, program.0));
        }
        let files = self.files.get(&program)?;
        let of = files.mapped.iter().find(|mapped| mapped.contains(site))?;
        let path = of.module.path.trim_end_matches(" (deleted)");
        let module = path.rsplit('/').next().unwrap_or(path);
        if of.writable.iter().any(|data| data.contains(site as usize)) {
            return Some(static_name(module, files.arrays.iter().filter(|array| range.contains_extent(array.range))));
        }
        Some(match files.names.frames(0, &[site]).pop() {
            Some(frame) if !frame.line.is_empty() => format!("{} ({})", frame.function, frame.line),
            Some(frame) if !frame.symbol.is_empty() => format!("{} ({module})", frame.function),
            Some(frame) => frame.function,
            None => module.to_owned(),
        })
    }
}

/// What the static `arrays` of a module are called together: by the largest of them.
fn static_name<'a>(module: &str, arrays: impl Iterator<Item = &'a Array>) -> String {
    let arrays: Vec<&Array> = arrays.collect();
    match (arrays.iter().max_by_key(|array| array.range.len()), arrays.len()) {
        (None, _) => format!("static arrays of {module}"),
        (Some(array), 1) => format!("{} (static, {module})", array.name),
        (Some(array), count) => format!("{} and {} more (static, {module})", array.name, count - 1),
    }
}

impl Files {
    fn of(root: &Root, pid: u32) -> Self {
        let text = root.text(&format!("/proc/{pid}/maps")).unwrap_or_default();
        let maps: Vec<_> = text.lines().filter_map(proc_maps::parse_line).collect();
        let owner = |path: &str| std::fs::metadata(path).ok().map(|facts| facts.uid());
        let is_ours = owner("/proc/self").is_some_and(|own| owner(&format!("/proc/{pid}")) == Some(own));
        let mapped = if is_ours { modules::among(&in_its_root(maps, pid)) } else { unread(&maps) };
        let arrays = if is_ours { mapped.iter().flat_map(Mapped::arrays).collect() } else { Vec::new() };
        let names = FileNames::of_modules(mapped.iter().map(|mapped| mapped.module.clone()).collect());
        Self { mapped, arrays, names }
    }
}

/// Files as the process sees them, which may be in a container; what is there is what it has mapped unless the kernel says otherwise.
fn in_its_root(mut maps: Vec<Mapping>, pid: u32) -> Vec<Mapping> {
    for map in maps.iter_mut().filter(|map| map.name.starts_with('/')) {
        map.name = format!("/proc/{pid}/root{}", map.name);
    }
    maps
}

/// Modules by their ranges alone, as if their files were gone.
fn unread(maps: &[Mapping]) -> Vec<Mapped> {
    let mut found: Vec<Mapped> = Vec::new();
    for map in maps.iter().filter(|map| map.inode != 0 && map.name.starts_with('/') && !map.shared) {
        let (start, end) = (map.range.start as u64, map.range.end as u64);
        let path = format!("{} (deleted)", map.name.trim_end_matches(" (deleted)"));
        match found.iter_mut().find(|one| one.module.path == path) {
            Some(one) => one.module.end = end,
            None => {
                let module = Module { path, start, end, bias: start, ..Module::default() };
                found.push(Mapped { module, ..Mapped::default() });
            }
        }
    }
    found
}

/// Share of the pages of `range` that process `pid` has in view.
fn near_share(pid: u32, range: Extent) -> Option<f64> {
    let mut pagemap = Pagemap::of_process(pid).ok()?;
    let (mut looked, mut present) = (0, 0);
    for piece in pieces(range) {
        pagemap.mapped(piece, &mut |run, _| present += run.len()).ok()?;
        looked += piece.len();
    }
    (looked > 0).then(|| present as f64 / looked as f64)
}

fn pieces(range: Extent) -> Vec<Extent> {
    // Figures of other users' jobs may be anything.
    let pages = Extent { start: range.start / PAGE * PAGE, end: range.end.div_ceil(PAGE).saturating_mul(PAGE) };
    if pages.len() <= PIECES * BLOCK {
        return vec![pages];
    }
    let step = (pages.len() / PIECES) / PAGE * PAGE;
    (0..PIECES).map(|piece| Extent::new(pages.start + piece * step, BLOCK)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::process;
    use std::sync::atomic::AtomicU8;

    #[inline(never)]
    fn own_site() -> u64 {
        // Behind the first instruction.
        own_site as *const () as u64 + 1
    }

    static ARRAY: [AtomicU8; 1 << 20] = [const { AtomicU8::new(0) }; 1 << 20];

    #[test]
    fn names_and_shares_of_this_process() {
        let data = vec![1u8; 4 << 20];
        let pid = std::process::id();
        let mut inspection = Inspection::default();
        let mut complete = |address: u64, bytes: u64, site: u64| {
            let mut object =
                ObjectRates { pid, process_start: process::start_of(pid), address, bytes, site, ..ObjectRates::default() };
            inspection.complete(&Root::this(), &mut object);
            (object.name.expect("a name"), object.near_share)
        };
        let (function, share) = complete(data.as_ptr() as u64, data.len() as u64, own_site());
        assert!(function.contains("own_site") && function.contains('('), "{function}");
        assert!(share.is_some_and(|share| share > 0.99), "{share:?}");
        let array = (&raw const ARRAY).addr() as u64;
        let (name, _) = complete(array, 1 << 20, array);
        assert!(name.contains("static"), "{name}");
        assert_eq!(complete(4096, 4096, 4096).0, "code at 0x1000");
        assert_eq!(complete(0, u64::MAX, 4096).0, "code at 0x1000", "nonsense does no harm");
        inspection.forget(|_| false);
        assert!(inspection.names.is_empty() && inspection.files.is_empty());
    }

    #[test]
    fn static_arrays_are_called_by_the_largest() {
        let array = |name: &str, start: usize, len: usize| Array { name: name.into(), range: Extent::new(start, len) };
        let arrays = [array("small", 0, 10), array("grid", 10, 1000), array("table", 1010, 100)];
        assert_eq!(static_name("app", arrays.iter()), "grid and 2 more (static, app)");
        assert_eq!(static_name("app", arrays[2..].iter()), "table (static, app)");
        assert_eq!(static_name("app", [].iter()), "static arrays of app");
    }

    #[test]
    fn files_of_others_are_not_read() {
        let text = "55550000-55551000 r--p 00000000 fe:00 42 /home/x/app\n55551000-55553000 r-xp 00001000 fe:00 42 /home/x/app\n";
        let maps: Vec<_> = text.lines().filter_map(proc_maps::parse_line).collect();
        let mapped = unread(&maps);
        let names = FileNames::of_modules(mapped.iter().map(|one| one.module.clone()).collect());
        assert_eq!(names.frames(0, &[0x5555_1010]).pop().map(|frame| frame.function).as_deref(), Some("app+0x1010"));
    }

    #[test]
    fn large_objects_are_looked_at_in_pieces() {
        let small = Extent::new(4096 + 100, 1 << 20);
        assert_eq!(pieces(small), [Extent::new(4096, (1 << 20) + 4096)]);
        let large = Extent::new(1 << 40, 1 << 40);
        let found = pieces(large);
        assert!(found.len() == PIECES && found.iter().all(|piece| large.contains_extent(*piece) && piece.len() == BLOCK));
    }
}
