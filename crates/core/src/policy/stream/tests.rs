//! Tests of the prefetcher in the pager of `timed`, one per kind of access, and for any sequence of faults.

use super::*;
use crate::policy::evict_by_name;
use crate::policy::timed::{Costs, Sim, Timed, start};
use crate::random_numbers::xorshift;
use proptest::prelude::*;

const NEAR: u64 = 64 * BLOCK;
const DATA: u64 = 256 * BLOCK;
const ROOM: Room = Room {
    near_pages: NEAR,
    free_pages: 0,
    data_pages: DATA,
    staging_pages: u64::MAX,
    staged_pages: 0,
    far_bytes_per_s: 1 << 30,
};

/// First page of the data; not at a border of much.
const BASE: u64 = 1000 * BLOCK;
/// Work per page takes a little more than its transfer, so that prefetch can keep up.
const COSTS: Costs =
    Costs { visit_ns: 5_000.0, fault_ns: 0.0, page_ns: 0.0, latency_ns: 80_000.0, bytes_per_s: (1u64 << 30) as f64, width: 1.0 };

/// A near that is empty.
struct Model(Sim<'static>);

impl Model {
    /// `data` pages from `BASE` on are in far.
    fn new(near: u64, data: u64) -> Self {
        let mut model = Self::empty(near, "fifo");
        model.0.fill(BASE..BASE + data);
        model
    }

    /// Nothing was ever written.
    fn empty(near: u64, evict: &str) -> Self {
        let evict = evict_by_name(evict, near).unwrap();
        Self(start(near, Box::leak(evict), Box::leak(Box::new(Checked(StreamFetch::new()))), &COSTS))
    }

    fn access(&mut self, thread: u32, page: u64) {
        self.0.visit(BASE + page, thread, false, COSTS.visit_ns);
    }

    fn finish(self) -> Timed {
        self.0.finish()
    }
}

/// The prefetcher, each decision of which must be one that a pager can carry out.
struct Checked(StreamFetch);

impl Prefetch for Checked {
    fn on_fault(&mut self, fault: &Fault, room: &Room, view: &dyn View) -> Fetch {
        let fetch = self.0.on_fault(fault, room, view);
        check(&fetch, fault.page);
        fetch
    }

    fn on_wasted(&mut self, run: Run) {
        self.0.on_wasted(run);
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }
}

fn check(fetch: &Fetch, page: u64) {
    let in_one_block = |run: &Run| run.count >= 1 && run.first / BLOCK == (run.first + u64::from(run.count) - 1) / BLOCK;
    if let Some(run) = fetch.run {
        let contains = run.first <= page && page - run.first < u64::from(run.count);
        assert!(contains && in_one_block(&run), "{run:?} for {page}");
    }
    assert!(fetch.ahead.iter().all(in_one_block), "{:?}", fetch.ahead);
}

/// At most 5 % useless, and at least `share` of the faults that met data found it staged (or on its way).
fn good_stream(tally: &Timed, share: f64) {
    let faults = tally.demand + tally.late + tally.staged;
    assert!(tally.useless as f64 <= 0.05 * tally.pages_in as f64, "{tally:?}");
    assert!((tally.staged + tally.late) as f64 >= share * faults as f64, "{tally:?}");
}

#[test]
fn sequential_up_and_down() {
    for down in [false, true] {
        let mut sim = Model::new(NEAR, DATA);
        for i in 0..DATA {
            sim.access(1, if down { DATA - 1 - i } else { i });
        }
        let tally = sim.finish();
        good_stream(&tally, 0.95);
        assert!(tally.demand <= 5, "whole blocks are prefetched within a block of the start: {tally:?}");
        assert!(tally.late < 40, "{tally:?}");
    }
}

#[test]
fn repeated_sweeps() {
    let mut sim = Model::new(NEAR, DATA);
    for i in 0..4 * DATA {
        sim.access(1, i % DATA);
    }
    good_stream(&sim.finish(), 0.98);
}

/// A share of the loop stays in near: holes in the streams, which pass them and have the rest prefetched as before, but for a fault each.
#[test]
fn repeated_sweeps_with_adaptive_eviction() {
    for (near, threads) in [(64, 1), (128, 1), (128, 2), (200, 2)] {
        let mut sim = Model::empty(near * BLOCK, "adaptive");
        sim.0.fill(BASE..BASE + DATA);
        let part = DATA / threads;
        for i in 0..6 * part {
            (0..threads).for_each(|t| sim.access(t as u32 + 1, t * part + i % part));
        }
        let tally = sim.finish();
        let least = 6 * DATA - 5 * (near * BLOCK).min(DATA);
        println!(
            "{near} of 256 blocks, {threads} threads: reads {:.3} of the bound, {tally:?}",
            tally.pages_in as f64 / least as f64
        );
        good_stream(&tally, 0.94);
        // What was not read as a block leaves in chunks, not as one: the more of the loop stays, the more that costs.
        let bound = if near == 200 { 1.3 } else { 1.1 };
        assert!(tally.pages_in as f64 <= bound * least as f64, "{tally:?}, at best {least}");
    }
}

#[test]
fn triad_is_three_streams() {
    let mut sim = Model::new(NEAR, DATA);
    let third = DATA / 3;
    for i in 0..third {
        for array in [1, 2, 0] {
            sim.access(1, array * third + i);
        }
    }
    good_stream(&sim.finish(), 0.94);
}

#[test]
fn stride_of_three_pages_reads_the_span() {
    let mut sim = Model::new(NEAR, DATA);
    for i in 0..DATA / 3 {
        sim.access(1, 3 * i);
    }
    let tally = sim.finish();
    // Two thirds lie between the steps, by choice; no more than that is useless.
    assert!(tally.useless as f64 <= 0.70 * tally.pages_in as f64, "{tally:?}");
    assert!(tally.demand <= 12 && tally.staged + tally.late > 200, "{tally:?}");
}

#[test]
fn column_walk_with_a_stride_of_a_mebibyte() {
    let (rows, stride) = (512, 256);
    for down in [false, true] {
        let mut sim = Model::new(16 * BLOCK, rows * stride);
        // Other pages of each row are touched in later columns; near is far too small to keep them.
        for column in 0..24 {
            for row in 0..rows {
                let page = row * stride + column * 8;
                sim.access(1, if down { rows * stride - 1 - page } else { page });
            }
        }
        let tally = sim.finish();
        good_stream(&tally, 0.9);
    }
}

/// Column after column of a matrix, page by page along its rows: the pieces at each step grow, so that reads become few, and no
/// more than near has room for, however many rows there are.
#[test]
fn a_walk_by_columns_reads_along_the_rows() {
    for (rows, near) in [(64, NEAR), (512, NEAR), (512, 8 * BLOCK), (512, 2 * BLOCK), (4000, NEAR)] {
        let (stride, columns) = (256, 128);
        let mut sim = Model::new(near, rows * stride);
        for column in 0..columns {
            for row in 0..rows {
                sim.access(1, row * stride + column);
            }
        }
        let tally = sim.finish();
        let (pages, room) = (rows * columns, near / rows);
        let reads = tally.demand + tally.late + tally.staged;
        println!("{rows} rows, room for {room} pages of each: {tally:?}");
        // The last pieces reach beyond the last column.
        assert!(tally.pages_in <= pages + (room / 8).clamp(1, 64) * rows, "{pages} pages are used: {tally:?}");
        let least = (room / 16).clamp(1, 32);
        assert!(reads < pages / least, "pieces of {least} pages at the least: {tally:?}");
    }
}

#[test]
fn strides_of_blocks_and_pieces_at_each_step() {
    let mut sim = Model::new(16 * BLOCK, 1200 * BLOCK);
    for i in 0..600 {
        for piece in 0..4 {
            sim.access(1, i * 2 * BLOCK + 77 + piece);
        }
    }
    let tally = sim.finish();
    assert!(tally.useless as f64 <= 0.10 * tally.pages_in as f64, "{tally:?}");
    assert!(
        tally.demand < 60 && tally.demand + tally.late + tally.staged < 200,
        "most steps are shown without a fault: {tally:?}"
    );
}

#[test]
fn two_threads_sweep_halves() {
    let mut sim = Model::new(NEAR, DATA);
    for _ in 0..3 {
        for i in 0..DATA / 2 {
            sim.access(1, i);
            sim.access(2, DATA / 2 + i);
        }
    }
    good_stream(&sim.finish(), 0.95);
}

#[test]
fn stolen_work_keeps_its_stream() {
    let mut sim = Model::new(NEAR, DATA);
    let mut seed = 7;
    let mut thread = 0;
    for i in 0..DATA {
        // Four threads take turns by chance, a few blocks each.
        if i % (3 * BLOCK) == 0 {
            thread = 1 + (xorshift(&mut seed) % 4) as u32;
        }
        sim.access(thread, i);
    }
    let tally = sim.finish();
    good_stream(&tally, 0.94);
    assert!(tally.demand <= 8, "{tally:?}");
}

#[test]
fn uniform_random_reads_single_pages() {
    for blocks in [64, 256, 4096] {
        let mut sim = Model::new(blocks * BLOCK / 4, blocks * BLOCK);
        let mut seed = 99;
        for _ in 0..60_000 {
            let page = xorshift(&mut seed) % (blocks * BLOCK);
            sim.access(1 + (page % 3) as u32, page);
        }
        let tally = sim.finish();
        let faults = tally.demand + tally.late + tally.staged;
        assert!(tally.pages_in as f64 <= 1.02 * faults as f64, "{blocks} blocks: {tally:?}");
        assert!(tally.ahead <= faults / 500, "{tally:?}");
    }
}

/// A table is filled in order and then hit at random: what is left of the stream must not be taken up by chance.
#[test]
fn random_after_a_sweep() {
    let mut sim = Model::new(NEAR, DATA);
    for i in 0..DATA {
        sim.access(1, i);
    }
    let before = sim.0.timed.pages_in;
    let mut seed = 5;
    for _ in 0..100_000 {
        let page = xorshift(&mut seed) % DATA;
        sim.access(1, page);
    }
    let faults = 75_000.0;
    assert!((sim.0.timed.pages_in - before) as f64 <= 1.03 * faults + 3000.0, "{:?}", sim.0.timed);
}

#[test]
fn random_with_a_hot_chunk() {
    let mut sim = Model::new(NEAR, DATA);
    let (mut seed, mut hot_faults) = (3, 0);
    for round in 0..2000 {
        // Every so often another chunk is hot for a while.
        let hot = (round / 40 * 7919) % (DATA / CHUNK) * CHUNK;
        for i in 0..8 {
            let any = xorshift(&mut seed);
            let before = sim.0.timed.demand;
            sim.access(1, if i % 2 == 0 { hot + any % CHUNK } else { any % DATA });
            hot_faults += if i % 2 == 0 { sim.0.timed.demand - before } else { 0 };
        }
    }
    // Each of the 50 chunks has 16 pages.
    assert!(hot_faults < 50 * 8, "a hot chunk is fetched whole after a few faults: {hot_faults}, {:?}", sim.finish());
}

#[test]
fn streams_amid_random_faults_of_the_same_thread() {
    let mut sim = Model::new(NEAR, 2 * DATA);
    let mut seed = 11;
    for i in 0..DATA {
        sim.access(1, i);
        if i % 4 == 0 {
            sim.access(1, DATA + xorshift(&mut seed) % DATA);
        }
    }
    let tally = sim.finish();
    // 128 Ki streamed pages, and about 32 Ki random ones.
    assert!(tally.pages_in as f64 <= 1.06 * (DATA + DATA / 4) as f64, "{tally:?}");
    assert!(tally.staged + tally.late >= 240, "{tally:?}");
}

#[test]
fn first_touch_gives_blocks_then_streams_go_on_in_far() {
    let mut sim = Model::empty(NEAR, "fifo");
    for sweep in 0..3 {
        for i in 0..DATA {
            sim.access(1, i);
        }
        if sweep == 0 {
            assert!(sim.0.timed.faults <= 260 && sim.0.timed.ahead == 0, "{:?}", sim.0.timed);
        }
    }
    let tally = sim.finish();
    good_stream(&tally, 0.98);
}

#[test]
fn scarce_room_makes_first_touch_small() {
    let room =
        Room { near_pages: NEAR, free_pages: 10, data_pages: DATA, staging_pages: u64::MAX, staged_pages: 0, far_bytes_per_s: 0 };
    let mut policy = StreamFetch::new();
    let fault = |page| Fault { page: BASE + page, thread: 1, found: Found::Zero, write: true, now_ns: 0 };
    assert_eq!(policy.on_fault(&fault(21), &room, &()).run, Some(Run { first: BASE + 16, count: 16 }));
    let run = policy.on_fault(&fault(32), &room, &()).run.unwrap();
    assert_eq!((run.first, run.count), (BASE + 32, 32), "grows by adjacency, aligned");
    let run = policy.on_fault(&fault(64), &room, &()).run.unwrap();
    assert_eq!((run.first, run.count), (BASE + 64, 448), "a stream takes the rest of the block");
}

#[test]
fn tiny_near_gets_small_units_and_little_ahead() {
    let mut sim = Model::new(BLOCK, 64 * BLOCK);
    for i in 0..64 * BLOCK {
        sim.access(1, i);
        assert!(sim.0.staged_pages <= BLOCK / 4);
    }
    good_stream(&sim.finish(), 0.9);
}

#[test]
fn wasted_streams_are_muted() {
    let room =
        Room { near_pages: NEAR, free_pages: 0, data_pages: DATA, staging_pages: u64::MAX, staged_pages: 0, far_bytes_per_s: 0 };
    let mut policy = StreamFetch::new();
    let fault = |policy: &mut StreamFetch, page| {
        policy.on_fault(&Fault { page: BASE + page, thread: 1, found: Found::Far, write: false, now_ns: 0 }, &room, &()).ahead
    };
    let mut ahead = vec![];
    for page in [0, 1, 4, 16, 64] {
        ahead.extend(fault(&mut policy, page));
    }
    assert_eq!(ahead, [Run { first: BASE + BLOCK, count: 512 }, Run { first: BASE + 2 * BLOCK, count: 512 }]);
    for run in ahead {
        policy.on_wasted(run);
    }
    assert!(fault(&mut policy, BLOCK).is_empty());
}

/// All but the last block of a stream stays in near, so that nothing is asked for between two visits to that block: it comes as
/// a whole each time, not chunk by chunk.
#[test]
fn a_block_that_a_stream_comes_by_again_is_read_whole() {
    let mut policy = StreamFetch::new();
    let mut fault = |page| {
        let fault = Fault { page: BASE + page, thread: 1, found: Found::Far, write: false, now_ns: 0 };
        policy.on_fault(&fault, &ROOM, &()).run.map(|run| (run.first - BASE, run.count))
    };
    for page in [0, 1, 4, 16, 64] {
        fault(page);
    }
    (1..8).for_each(|block| assert_eq!(fault(block * BLOCK), Some((block * BLOCK, 512))));
    for _ in 0..3 {
        assert_eq!(fault(7 * BLOCK), Some((7 * BLOCK, 512)));
    }
    // Entered elsewhere, it may be chance at first; then pieces grow.
    let pieces: Vec<_> = [100, 112, 176].map(|page| fault(7 * BLOCK + page)).into_iter().flatten().collect();
    assert_eq!(pieces, [(7 * BLOCK + 100, 12), (7 * BLOCK + 112, 64), (7 * BLOCK + 176, 256)]);
}

/// Where a stream ended pages are asked for at random, now and then: that does not keep it alive, not even one that is known to
/// be slow, and pages come alone.
#[test]
fn random_where_a_stream_ended() {
    for slow in [false, true] {
        let mut policy = StreamFetch::new();
        let mut fault = |page| {
            let fault = Fault { page: BASE + page, thread: 1, found: Found::Far, write: false, now_ns: 0 };
            policy.on_fault(&fault, &ROOM, &()).run.map_or(1, |run| run.count)
        };
        for page in [0, 1, 4, 16, 64, BLOCK] {
            fault(page);
        }
        let mut seed = 9;
        for _ in 0..if slow { 100 } else { 0 } {
            fault(8 * BLOCK + xorshift(&mut seed) % (DATA - 8 * BLOCK));
        }
        fault(2 * BLOCK);
        let (mut brought, mut hits) = (0, 0);
        for i in 0..32_000 {
            let any = xorshift(&mut seed);
            if i % 16 > 0 {
                fault(any % DATA);
            } else {
                let count = fault(2 * BLOCK + any % BLOCK);
                (brought, hits) = if i >= 16_000 { (brought + count, hits + 1) } else { (0, 0) };
            }
        }
        assert!(brought < 2 * hits, "{brought} pages in {hits} faults, slow: {slow}");
    }
}

proptest! {
    #[test]
    fn any_sequence_gives_valid_runs(
        faults in prop::collection::vec((0u64..1 << 21, 0u32..70, 0u8..5, any::<bool>()), 1..400),
        near in prop_oneof![Just(0u64), 1u64..64, 1u64..1 << 20],
        data in 0u64..1 << 22,
        high in any::<bool>(),
    ) {
        let mut policy = StreamFetch::new();
        let mut last = 0;
        for (raw, thread, kind, dense) in faults {
            let page = if dense { last + raw % 9 } else { raw };
            last = page;
            let page = if high { (1 << 52) - 1 - page } else { page };
            let found = [Found::Zero, Found::Far, Found::Late, Found::Staged, Found::Limbo][kind as usize];
            let room = Room { near_pages: near, free_pages: raw % 1000, data_pages: data, staging_pages: raw % 700, staged_pages: raw % 300, far_bytes_per_s: raw << 20 };
            let fetch = policy.on_fault(&Fault { page, thread, found, write: dense, now_ns: raw }, &room, &());
            check(&fetch, page);
            prop_assert!(found != Found::Zero || fetch.ahead.is_empty());
            for run in fetch.ahead.iter().take(1) {
                policy.on_wasted(*run);
            }
        }
    }
}

/// Columns of matrices whose rows are not whole pages: the steps differ by a page now and then. The pages of a column are used
/// by some 500 columns, so that near holds what is asked for, if no more than that is read.
#[test]
fn column_walk_with_rows_of_odd_length() {
    for row_bytes in [28_800, 57_600, 100_000, 1_000_008] {
        let mut sim = Model::new(NEAR, DATA);
        let rows = DATA * PAGE as u64 / row_bytes;
        for column in 0..20 {
            for row in 0..rows {
                sim.access(1, (row * row_bytes + column * 8) / PAGE as u64);
            }
        }
        let tally = sim.finish();
        let faults = tally.demand + tally.late + tally.staged;
        println!("rows of {row_bytes} bytes ({rows}): {tally:?}");
        assert!(tally.pages_in < rows + rows / 4, "{rows} pages are used: {tally:?}");
        assert!(4 * faults < tally.pages_in, "most are shown without a fault: {tally:?}");
    }
}

/// The last axis of a Fourier transform after its first: every step is as long as the units of the sweep before.
#[test]
fn steps_of_whole_units_after_a_sweep_are_no_stream() {
    let (rows, columns) = (64, 48);
    let mut sim = Model::new(16 * BLOCK, rows * BLOCK);
    (0..2 * rows * BLOCK).for_each(|page| sim.access(1, page % (rows * BLOCK)));
    let before = sim.0.timed.pages_in;
    // A page is wide: several columns of numbers lie in it.
    for column in 0..4 * columns {
        (0..rows).for_each(|row| sim.access(1, row * BLOCK + column / 4));
    }
    let read = sim.0.timed.pages_in - before;
    // The first column may be taken for another sweep, and half of what is asked for ahead of it has no room in so small a near.
    assert!(read < 5 * rows * BLOCK / 2, "{read} pages for {}: {:?}", rows * columns, sim.0.timed);
}

/// Block columns of a matrix in tiles: steps of seven pages through two MiB, column beside column, then the next two MiB.
#[test]
fn short_walks_beside_each_other_bring_all_that_they_span() {
    let (data, step) = (64 * BLOCK, 7);
    let mut sim = Model::new(data / 3, data);
    for part in 0..data / BLOCK {
        for column in 0..step {
            (column..BLOCK).step_by(step as usize).for_each(|page| sim.access(1, part * BLOCK + page));
        }
    }
    let tally = sim.0.timed;
    assert!(tally.demand + tally.late + tally.staged < data / 8, "{tally:?}");
    assert!(tally.pages_in < data * 5 / 4, "{tally:?}");
}
