//! Whatever comes in: parsers refuse or give back what was meant, and never panic; the fetch policy asks for nothing that is not
//! there and for no more than there is room for. `make fuzz` runs many more cases (PROPTEST_CASES).

use nearfar_core::addr::{BLOCK_PAGES, Extent, PAGE, round_down, round_up};
use nearfar_core::mode::Mode;
use nearfar_core::policy::stream::StreamFetch;
use nearfar_core::policy::{Fault, Found, Prefetch, Room, Run, View};
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use proptest::prelude::*;
use std::collections::HashSet;

const WORDS: &[&str] = &[
    "emu:",
    "node:",
    "bw=",
    "lat=",
    ",",
    ":",
    "=",
    "0",
    "1",
    "9",
    "16",
    "1.5",
    ".",
    "%",
    "K",
    "M",
    "GiB",
    "T",
    "B/s",
    "us",
    "ns",
    "-",
    "+",
    " ",
    "e9",
    "hybrid",
    "cache",
    "flat",
    "/",
    "nan",
    "inf",
    "18446744073709551615",
    "99999999999999999999999",
    "é",
    "\0",
];

/// Text that is nearly right: the words and signs of all the little languages, thrown together.
fn nearly_right() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![4 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => any::<String>()], 0..8)
        .prop_map(|parts| parts.concat())
}

/// Which pages are in far; everything else is in near or nowhere.
struct Far(HashSet<u64>);

impl View for Far {
    fn in_far(&self, run: Run, down: bool) -> Option<Run> {
        let pages = run.first..run.first + u64::from(run.count);
        let found = if down {
            pages.clone().rev().find(|page| self.0.contains(page))
        } else {
            pages.clone().find(|page| self.0.contains(page))
        }?;
        let (mut first, mut end) = (found, found + 1);
        while first > pages.start && self.0.contains(&(first - 1)) {
            first -= 1;
        }
        while end < pages.end && self.0.contains(&end) {
            end += 1;
        }
        Some(Run { first, count: (end - first) as u32 })
    }
}

fn in_one_block(run: Run) -> bool {
    run.count >= 1 && run.first / BLOCK_PAGES as u64 == (run.first + u64::from(run.count) - 1) / BLOCK_PAGES as u64
}

/// Walks of a few threads, with steps, turns and jumps, over `blocks` blocks.
fn walks(blocks: u64) -> impl Strategy<Value = Vec<(u32, u64)>> {
    let pages = blocks * BLOCK_PAGES as u64;
    let walk = (0u32..4, 0..pages, prop_oneof![Just(1i64), Just(-1), Just(17), -600i64..600], 1usize..60);
    prop::collection::vec(walk, 1..12).prop_map(move |walks| {
        let steps = walks.into_iter().flat_map(|(thread, start, stride, len)| {
            (0..len as i64).map(move |step| (thread, (start as i64 + step * stride).rem_euclid(pages as i64) as u64))
        });
        steps.collect()
    })
}

proptest! {
    #[test]
    fn parsers_never_panic(text in nearly_right()) {
        if let Ok(bytes) = text.parse::<Bytes>() {
            prop_assert_eq!(bytes.exact().parse::<Bytes>().ok(), Some(bytes), "{:?}", text);
        }
        if let Ok(near) = text.parse::<NearSpec>() {
            prop_assert!(near.budget(1 << 40).is_none_or(|bytes| bytes > 0 || text.contains('0')), "{:?}", text);
        }
        if let Ok(FarSpec::Emulated { bytes_per_s, .. }) = text.parse::<FarSpec>() {
            prop_assert!(bytes_per_s > 0, "{:?}", text);
        }
        let _ = text.parse::<Mode>();
    }

    #[test]
    fn fetches_stay_within_what_is_there(
        faults in walks(6),
        holes in prop::collection::vec((0u64..6 * BLOCK_PAGES as u64, 1u64..900), 0..12),
        near in prop_oneof![Just(0u64), 1u64..600, 600u64..100_000],
        staged in 0u64..2000,
        rate in prop_oneof![Just(0u64), 1u64..1 << 40],
        found in 0usize..5,
    ) {
        let mut far: HashSet<u64> = (0..6 * BLOCK_PAGES as u64).collect();
        holes.iter().for_each(|&(first, count)| far.retain(|page| !(first..first + count).contains(page)));
        let far = Far(far);
        let mut policy = StreamFetch::default();
        let room = Room { near_pages: near, free_pages: near / 3, data_pages: 6 * BLOCK_PAGES as u64, staging_pages: rate % 2000, staged_pages: staged, far_bytes_per_s: rate };
        for (index, &(thread, page)) in faults.iter().enumerate() {
            let kinds = [Found::Zero, Found::Far, Found::Late, Found::Staged, Found::Limbo];
            let found = kinds[(found + index) % 5];
            let fault = Fault { page, thread, found, write: index % 3 == 0, now_ns: index as u64 * 5000 };
            let fetch = policy.on_fault(&fault, &room, &far);
            if let Some(run) = fetch.run {
                prop_assert!(in_one_block(run) && (run.first..run.first + u64::from(run.count)).contains(&page), "{:?} for {}", run, page);
            }
            for run in &fetch.ahead {
                prop_assert!(in_one_block(*run), "{:?}", run);
                let all_there = (run.first..run.first + u64::from(run.count)).all(|page| far.0.contains(&page));
                prop_assert!(all_there, "{:?} is not all in far", run);
            }
            let asked: u64 = fetch.ahead.iter().map(|run| u64::from(run.count)).sum();
            prop_assert!(asked <= near, "{} pages ahead with {} near", asked, near);
            if let Some(&run) = fetch.ahead.first() {
                policy.on_wasted(run);
            }
        }
    }

    #[test]
    fn extents_agree_with_sets_of_pages(a in (0usize..40, 0usize..40), b in (0usize..40, 0usize..40), addr in 0usize..41 * PAGE) {
        let extent = |(start, len): (usize, usize)| Extent::new(start * PAGE, len * PAGE);
        let (x, y) = (extent(a), extent(b));
        let inside = |extent: &Extent, addr: usize| extent.start <= addr && addr < extent.end;
        prop_assert_eq!(x.contains(addr), inside(&x, addr));
        let both = (0..80).map(|page| page * PAGE).filter(|&addr| inside(&x, addr) && inside(&y, addr)).count();
        prop_assert_eq!(x.intersect(&y).map_or(0, |part| part.len() / PAGE), both);
        prop_assert_eq!(x.overlaps(&y), both > 0);
        prop_assert_eq!(round_down(addr, PAGE), addr / PAGE * PAGE);
        prop_assert_eq!(round_up(addr, PAGE), Some(addr.div_ceil(PAGE) * PAGE));
    }
}
