//! Static data: the arrays of the program and its libraries (.data, .bss, Fortran COMMON) that go near, found by their symbols. Only
//! whole pages inside an array are placed: the rest of its first and last page may belong to its neighbours. Thread-local data
//! and what is loaded later by dlopen(3) stay where they are.

use super::sites::Sites;
use crate::objects::{self, Object};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::table::name_hash;
use nearfar_core::placement::{ObjectKind, Placement, Policy, Tier};
use nearfar_sys::elf::{self, SymbolKind};
use std::sync::atomic::AtomicU8;

/// Lies in our own data, which is nobody's array.
static OWN: AtomicU8 = AtomicU8::new(0);

/// The parts of static arrays that are to go near, without overlaps.
pub fn find(placement: &Placement, sites: Option<&Sites>) -> Vec<Extent> {
    let least = match placement.policy {
        Policy::Sizes => placement.sizes().iter().map(|range| range.least).min().unwrap_or(u64::MAX),
        Policy::Plan => sites
            .map_or(u64::MAX, |sites| sites.sizes(ObjectKind::Static).iter().map(|range| range.least).min().unwrap_or(u64::MAX)),
        _ => u64::MAX,
    };
    let mut found = Vec::new();
    // An array that has no whole page cannot be placed.
    let least = least.max(PAGE as u64);
    for object in objects::loaded() {
        let data: usize = object.writable().map(|segment| segment.len()).sum();
        if (data as u64) < least || object.contains((&raw const OWN).addr()) {
            continue;
        }
        arrays_of(&object, placement, sites, &mut found);
    }
    without_overlaps(found)
}

/// Every writable page of the program and its libraries, but ours.
pub fn all() -> Vec<Extent> {
    let objects = objects::loaded();
    let others = objects.iter().filter(|object| !object.contains((&raw const OWN).addr()));
    others.flat_map(|object| object.writable().map(whole_pages).collect::<Vec<_>>()).flatten().collect()
}

fn arrays_of(object: &Object, placement: &Placement, sites: Option<&Sites>, out: &mut Vec<Extent>) {
    let segments: Vec<Extent> = object.writable().collect();
    let module = name_hash(&object.file_name());
    let goes_near = |name: &[u8], size: u64| match placement.policy {
        Policy::Sizes => placement.by_size(size) == Some(Tier::Near),
        Policy::Plan => sites.is_some_and(|sites| {
            let hash = name_hash(name);
            let meant = sites.table().rules().find(|rule| {
                rule.fits(ObjectKind::Static, size)
                    && rule.depth() == 0
                    && rule.symbol.is_none_or(|symbol| symbol == hash)
                    && rule.module.is_none_or(|other| other == module)
            });
            meant.is_some_and(|rule| rule.tier == Tier::Near)
        }),
        _ => false,
    };
    // A library without symbols, or whose file is gone, has no arrays that could be told apart.
    let _ = elf::symbols(&object.path, |name, symbol| {
        if symbol.kind != SymbolKind::Data || symbol.size < PAGE as u64 || !goes_near(name, symbol.size) {
            return;
        }
        let start = object.base.wrapping_add(symbol.value as usize);
        let array = Extent { start, end: start.saturating_add(symbol.size as usize) };
        if segments.iter().any(|segment| segment.contains_extent(array)) {
            out.extend(whole_pages(array));
        }
    });
}

/// The whole pages inside `range`.
fn whole_pages(range: Extent) -> Option<Extent> {
    let start = range.start.checked_next_multiple_of(PAGE)?;
    let end = range.end & !(PAGE - 1);
    (start < end).then_some(Extent { start, end })
}

/// Arrays may have several names.
fn without_overlaps(mut ranges: Vec<Extent>) -> Vec<Extent> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut out: Vec<Extent> = Vec::new();
    for range in ranges {
        let start = range.start.max(out.last().map_or(0, |last| last.end));
        if start < range.end {
            out.push(Extent { start, end: range.end });
        }
    }
    out
}

/// What is left of `ranges` without `taken`, whose parts do not overlap.
pub fn without(ranges: Vec<Extent>, taken: &[Extent]) -> Vec<Extent> {
    let mut left = ranges;
    for hole in taken {
        left = left
            .into_iter()
            .flat_map(|range| {
                let before = Extent { start: range.start, end: range.end.min(hole.start) };
                let behind = Extent { start: range.start.max(hole.end), end: range.end };
                [before, behind].into_iter().filter(|part| part.start < part.end)
            })
            .collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: usize, end: usize) -> Extent {
        Extent { start, end }
    }

    #[test]
    fn pages_and_holes() {
        assert_eq!(whole_pages(range(1, 3 * PAGE + 1)), Some(range(PAGE, 3 * PAGE)));
        assert_eq!((whole_pages(range(1, PAGE + 5)), whole_pages(range(PAGE, PAGE))), (None, None));
        assert_eq!(without_overlaps(vec![range(4, 9), range(0, 5), range(0, 5), range(6, 7)]), [range(0, 5), range(5, 9)]);
        assert_eq!(
            without(vec![range(0, 10), range(20, 30)], &[range(5, 25), range(28, 29)]),
            [range(0, 5), range(25, 28), range(29, 30)]
        );
        assert_eq!(without(vec![range(0, 10)], &[range(0, 10)]), []);
    }
}
