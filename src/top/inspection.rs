//! What is asked of the processes themselves about their large objects: who allocated them, and how much of them is in view.

use crate::top::objects::Hot;
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::profile::names::Names;
use nearfar_profile::modules::{self, Mapped};
use nearfar_profile::names::FileNames;
use nearfar_sys::pagemap::Pagemap;
use nearfar_sys::proc_maps;
use nearfar_sys::root::Root;
use std::collections::HashMap;
use std::path::Path;

/// Of a larger object so many pieces of 2 MiB are looked at, evenly spread.
const PIECES: usize = 64;

/// A process: its number, and when it started.
type ProcessId = (u32, u64);

/// What is known already.
#[derive(Default)]
pub struct Inspection {
    names: HashMap<(ProcessId, u64), String>,
    modules: HashMap<ProcessId, (Vec<Mapped>, FileNames)>,
}

impl Inspection {
    /// Says of `hot` what can be found out.
    pub fn complete(&mut self, root: &Root, hot: &mut Hot) {
        let process = (hot.pid, hot.process_start);
        let known = self.names.get(&(process, hot.site)).cloned();
        hot.name = known.unwrap_or_else(|| {
            let name = self.name(root, process, hot.site);
            self.names.insert((process, hot.site), name.clone());
            name
        });
        hot.near_share = near_share(hot.pid, Extent::new(hot.address as usize, hot.bytes as usize));
    }

    /// Forgets processes of which `lives` is not true.
    pub fn forget(&mut self, lives: impl Fn(ProcessId) -> bool) {
        self.names.retain(|&(process, _), _| lives(process));
        self.modules.retain(|&process, _| lives(process));
    }

    fn name(&mut self, root: &Root, process: ProcessId, site: u64) -> String {
        let is_known = |(mapped, _): &(Vec<Mapped>, FileNames)| mapped.iter().any(|one| one.contains(site));
        if !self.modules.get(&process).is_some_and(is_known) {
            self.modules.insert(process, read(root, process.0));
        }
        let Some((mapped, names)) = self.modules.get(&process) else { return String::new() };
        let Some(of) = mapped.iter().find(|mapped| mapped.contains(site)) else { return format!("code at {site:#x}") };
        let module = Path::new(&of.module.path).file_name().unwrap_or_default().to_string_lossy();
        if of.writable.iter().any(|data| data.contains(site as usize)) {
            return format!("static arrays of {module}");
        }
        match names.frames(0, &[site]).pop() {
            Some(frame) if !frame.line.is_empty() => format!("{} ({})", frame.function, frame.line),
            Some(frame) if !frame.symbol.is_empty() => format!("{} ({module})", frame.function),
            Some(frame) => frame.function,
            None => module.into_owned(),
        }
    }
}

fn read(root: &Root, pid: u32) -> (Vec<Mapped>, FileNames) {
    let text = root.text(&format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut maps: Vec<_> = text.lines().filter_map(proc_maps::parse_line).collect();
    // The process may be another user's, who has put something else there since, such as a pipe that never answers.
    maps.retain(|map| map.inode == 0 || std::fs::metadata(&map.name).is_ok_and(|facts| facts.is_file()));
    let mapped = modules::among(&maps);
    let names = FileNames::of_modules(mapped.iter().map(|mapped| mapped.module.clone()).collect());
    (mapped, names)
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
    let pages = Extent { start: range.start / PAGE * PAGE, end: range.end.div_ceil(PAGE) * PAGE };
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

    #[inline(never)]
    fn own_site() -> u64 {
        // Behind the first instruction.
        own_site as *const () as u64 + 1
    }

    static ARRAY: [std::sync::atomic::AtomicU8; 1 << 20] = [const { std::sync::atomic::AtomicU8::new(0) }; 1 << 20];

    #[test]
    fn names_and_shares_of_this_process() {
        let data = vec![1u8; 4 << 20];
        let pid = std::process::id();
        let of = |site: u64| Hot {
            pid,
            process_start: process::start_of(pid),
            address: data.as_ptr() as u64,
            bytes: data.len() as u64,
            site,
            ..Hot::default()
        };
        let mut inspection = Inspection::default();
        let mut complete = |site: u64| {
            let mut hot = of(site);
            inspection.complete(&Root::this(), &mut hot);
            hot
        };
        let function = complete(own_site());
        assert!(function.name.contains("own_site") && function.name.contains('('), "{function:?}");
        assert!(function.near_share.is_some_and(|share| share > 0.99), "{function:?}");
        let array = complete((&raw const ARRAY).addr() as u64);
        assert!(array.name.starts_with("static arrays of "), "{array:?}");
        assert_eq!(complete(4096).name, "code at 0x1000");
        inspection.forget(|_| false);
        assert!(inspection.names.is_empty() && inspection.modules.is_empty());
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
