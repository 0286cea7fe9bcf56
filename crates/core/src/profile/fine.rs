//! Small pages that speak for huge ones. A look at a huge page ends with a touch anywhere in its 2 MiB. Where visits jump about, that
//! is a few microseconds, less than a look can tell, and where in it the touch lies says nothing of how many lines a visit brings. So
//! the sampler splits a few huge pages of an object and looks at the small ones of those, too, and these count alone there.

use super::groups::{Group, Look};
use super::names::{Names, Step};
use super::record::WatchEnd;
use super::visits::{Code, touched};
use crate::addr::BLOCK;

/// Blocks of 2 MiB in an object from which on some may be split, and of how many it is one: what is split costs the program more
/// misses of the TLB, and what is not split is spoken for by fewer places.
pub const FINE_OF: u64 = 16;
/// Touches of small pages that must have been seen, and as a share of all touches: some lie at the edges of objects, and huge pages
/// elsewhere are another matter.
const FEWEST: usize = 10;
const LEAST_SHARE: f64 = 0.2;
/// Share of the touches of huge pages, by weight, that jump about.
const JUMPING: f64 = 0.25;

/// Leaves out looks at huge pages where small ones tell more; the next ones in time stand for them. Smaller objects of a group, in which
/// nothing is split, keep theirs. What the code is not known for counts as a sweep.
pub(super) fn prefer<N: Names + ?Sized>(group: &mut Group, code: &mut Code<'_, N>) {
    let is_small = |look: &Look| look.watch.pages <= 1;
    // Wherever it begins, so much has whole blocks enough.
    let is_split: Vec<bool> = group.items.iter().map(|item| item.most() > FINE_OF * BLOCK as u64 + BLOCK as u64).collect();
    let is_split = |look: &Look| is_split.get(look.item).copied().unwrap_or(false);
    let (mut small, mut number, mut huge, mut jumping) = (0_usize, 0_usize, 0.0, 0.0);
    for look in group.looks.iter().filter(|look| touched(look) && is_split(look)) {
        number += 1;
        if is_small(look) {
            small += 1;
            continue;
        }
        huge += look.weight;
        let access = code.access(look.process, look.watch.ip);
        let jumps = access.is_some_and(|access| matches!(access.step, Step::Varies | Step::Constant(0)));
        jumping += if jumps { look.weight } else { 0.0 };
    }
    if small < FEWEST || (small as f64) < LEAST_SHARE * number as f64 || jumping < JUMPING * huge || huge <= 0.0 {
        return;
    }
    let (mut carried, mut last) = (0.0, None);
    for (at, look) in group.looks.iter_mut().enumerate().filter(|(_, look)| is_split(look)) {
        if !is_small(look) {
            carried += std::mem::take(&mut look.weight);
        } else if look.watch.end != WatchEnd::Absent {
            look.weight += std::mem::take(&mut carried);
            last = Some(at);
        }
    }
    if let Some(last) = last {
        group.looks[last].weight += carried;
    }
    group.looks.retain(|look| is_small(look) || !is_split(look));
}

#[cfg(test)]
mod tests {
    use super::super::groups::{Item, Key};
    use super::super::names::Access;
    use super::super::record::{Kind, Watch};
    use super::super::summary::NamedFrame;
    use super::*;

    /// The instruction at 1 jumps about, others go on by 8 bytes.
    struct Steps;

    impl Names for Steps {
        fn frames(&self, _: usize, _: &[u64]) -> Vec<NamedFrame> {
            Vec::new()
        }

        fn function(&self, _: usize, _: u64) -> Option<(String, String)> {
            None
        }

        fn access(&self, _: usize, ip: u64) -> Option<Access> {
            let step = if ip == 1 { Step::Varies } else { Step::Constant(8) };
            Some(Access { step, size: 8, also_writes: false, non_temporal: false, flops: 0, access_bytes: 8 })
        }
    }

    /// Looks at huge pages, every `small`th at a small one, and every tenth at one that is absent.
    fn group(small: usize, ip: u64) -> Group {
        let look = |at: usize| {
            let (pages, end) = match at {
                at if at.is_multiple_of(10) => (1, WatchEnd::Absent),
                at if at % small == 1 => (1, WatchEnd::Read),
                _ => (512, WatchEnd::Read),
            };
            let watch = Watch {
                object: 1,
                page: 0,
                pages,
                at: at as u64,
                waited: 1000,
                stalled: 0,
                end,
                touched: 8,
                ip,
                tid: 1,
                wrote: None,
                lines: None,
            };
            Look { watch, process: 0, item: 0, at: at as f64, waited: 1e-6, weight: 1.0, died: false }
        };
        let (symbol, library) = (String::new(), String::new());
        Group {
            key: Key { kind: Kind::Heap, symbol, library, frames: Vec::new(), script: Vec::new() },
            origin: (0, Vec::new()),
            script: Vec::new(),
            items: [64 << 20, 8 << 20].map(|len| Item { object: (0, 1), sizes: vec![(0.0, len)], end: 200.0 }).into(),
            briefs: Vec::new(),
            looks: (0..200).map(look).collect(),
            page_seconds: 200.0,
        }
    }

    #[test]
    fn small_pages_speak_for_huge_ones_where_visits_jump_about() {
        let preferred = |small: usize, ip: u64| {
            let mut group = group(small, ip);
            prefer(&mut group, &mut Code::new(&Steps));
            group.looks
        };
        let looks = preferred(2, 1);
        assert!(looks.iter().all(|look| look.watch.pages == 1) && looks.len() == 120, "{}", looks.len());
        let absent = looks.iter().filter(|look| look.watch.end == WatchEnd::Absent);
        assert!(absent.clone().count() == 20 && absent.clone().all(|look| look.weight == 1.0), "how many are absent stays known");
        assert_eq!(looks.iter().map(|look| look.weight).sum::<f64>(), 200.0);
        assert!(looks.iter().all(|look| look.weight <= 2.0), "those next to them in time");
        assert_eq!(preferred(2, 2).len(), 200, "a stream is seen in huge pages as well");
        assert_eq!(preferred(8, 1).len(), 200, "too few to speak for the others");
        let mut mixed = group(2, 1);
        mixed.looks.iter_mut().step_by(3).for_each(|look| look.item = 1);
        prefer(&mut mixed, &mut Code::new(&Steps));
        let of = |item: usize| mixed.looks.iter().filter(move |look| look.item == item);
        assert_eq!((of(1).count(), of(1).map(|look| look.weight).sum::<f64>()), (67, 67.0), "nothing is split in a small object");
        assert!(of(0).all(|look| look.watch.pages == 1) && of(0).map(|look| look.weight).sum::<f64>() == 133.0);
    }
}
