//! What the writer reads from the list of mappings: modules that come and go, their arrays, heaps, the first thread's stack.

use super::*;
use crate::modules;
use nearfar_sys::proc_maps::{self, Mapping};

/// Its path while it is there; the kernel marks one whose file was deleted.
fn path(mapping: &Mapping) -> &str {
    mapping.name.trim_end_matches(" (deleted)")
}

impl Writer {
    /// Reads the mappings: modules that are new or gone, their static arrays, heaps, the main stack.
    pub(super) fn read_maps(&mut self, sites: &Sites) {
        let now = event::now_ns();
        self.next_maps = now + MAPS_NS;
        let maps = proc_maps::own();
        self.forget_modules(&maps, now);
        // A name that is known at the same place is not looked into again.
        let is_known = |mapping: &Mapping| {
            self.modules.iter().any(|module| {
                module.is_mapped
                    && module.contains(mapping.range.start as u64)
                    && module.contains(mapping.range.end as u64 - 1)
                    && module.path() == path(mapping)
            })
        };
        let new: Vec<Mapping> = maps.iter().filter(|mapping| mapping.inode != 0 && !is_known(mapping)).cloned().collect();
        for module in modules::among(&new) {
            self.know(module, sites, now);
        }
        self.read_regions(&maps, now);
        if let Some(clock) = &mut self.clock {
            clock.set_ours(own_threads());
        }
        if let Some(processor) = &mut self.processor {
            processor.set_ours(own_threads());
        }
    }

    /// Ends what belongs to modules that are not there any more. The loader unmaps them without a call that we could see.
    fn forget_modules(&mut self, maps: &[Mapping], now: u64) {
        if maps.is_empty() {
            // They could not be read, as when the program has no descriptors left.
            return;
        }
        for number in 0..self.modules.len() {
            let module = &self.modules[number];
            let is_there = |mapping: &Mapping| {
                mapping.inode != 0 && module.contains(mapping.range.start as u64) && module.path() == path(mapping)
            };
            if module.is_mapped && !maps.iter().any(is_there) {
                self.modules[number].is_mapped = false;
                let arrays = self.arrays.remove(&number).unwrap_or_default();
                self.book.end(&arrays, now);
                self.book.module_gone(number, now);
                self.locals.retain(|(of, _)| *of != number);
            }
        }
    }

    fn know(&mut self, module: Mapped, sites: &Sites, now: u64) {
        let number = self.modules.len();
        let is_own = module.contains(self.own.start as u64);
        if !is_own {
            for array in module.arrays() {
                let (start, len) = (array.range.start as u64, array.range.len() as u64);
                if self.book.live.overlapping(start, start + len).is_empty() {
                    let id = self.book.begin(Kind::Static, start, len, 0, Some(array.name.into_boxed_str()), now);
                    self.arrays.entry(number).or_default().push((id, start));
                }
            }
            self.locals.extend(module.locals().map(|locals| (number, locals)));
        }
        if let Some(found) = module.python().filter(|_| !self.settings.denied.script) {
            // SAFETY: symbols of an interpreter that is mapped at that address; it is never unloaded.
            if let Err(version) = unsafe { sites.python.begin(&found) }
                && version != "not whole"
            {
                self.notes.push(format!("Python {version} is not known here: its objects have no script lines"));
            }
        }
        self.modules.push(module);
    }

    /// Looks for thread-local arrays of threads that are not known to have them yet.
    pub(super) fn find_locals(&mut self) {
        for (number, locals) in &self.locals {
            let file = self.modules[*number].file_name();
            self.book.begin_locals(*number, file, locals, &mut call_memory::word_if_there);
        }
    }

    fn read_regions(&mut self, maps: &[Mapping], now: u64) {
        if let Some(stack) = maps.iter().find(|mapping| mapping.name == "[stack]") {
            self.book.stacks.main(stack.range.start as u64, stack.range.end as u64, now);
        }
        let dead = self.book.stacks.gone(task::lives);
        self.book.stacks_gone(dead, now);
        let heaps = modules::heaps(maps).into_iter().filter(|(range, _)| range.len() >= LEAST_REGION);
        let found: Vec<(Extent, Kind)> = heaps.map(|(range, _)| (range, Kind::SmallBlocks)).collect();
        for &(range, kind) in &found {
            let inside = self.book.live.bytes_in(range.start as u64, range.end as u64);
            let len = (range.len() as u64).saturating_sub(inside);
            // A heap begins where it began.
            let same = |region: &&mut Region| region.kind == kind && region.range.start == range.start;
            match self.regions.iter_mut().find(same) {
                Some(region) => {
                    region.range = range;
                    if region.len.abs_diff(len) > region.len / 16 {
                        region.len = len;
                        if region.written {
                            self.book.records.push(Record::Resized { id: region.id, addr: range.start as u64, len, at: now });
                        }
                    }
                }
                None => {
                    let id = self.book.live.number();
                    self.regions.push(Region { id, kind, range, len, at: now, written: false });
                }
            }
        }
        let records = &mut self.book.records;
        self.regions.retain(|region| {
            let stays = found
                .iter()
                .any(|(range, kind)| *kind == region.kind && range.end > region.range.start && range.start < region.range.end);
            if !stays && region.written {
                records.push(Record::Gone { id: region.id, at: now });
            }
            stays
        });
    }
}
