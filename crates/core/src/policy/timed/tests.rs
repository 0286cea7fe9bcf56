//! What programs of a few lines wait for, and that the counts add up.

use super::threads::PART;
use super::*;
use crate::policy::evict_by_name;
use crate::policy::fetch_grain::GrainFetch;
use crate::random_numbers::mix;
use proptest::prelude::*;
use std::collections::HashMap;

const COSTS: Costs =
    Costs { visit_ns: 1000.0, fault_ns: 10_000.0, page_ns: 0.0, latency_ns: 90_000.0, bytes_per_s: 4096e5, width: 1.0 };
const DATA: u64 = 8192;

/// Two sweeps over the data, from the second page of the address space on.
fn sweeps(write: bool) -> Vec<Step> {
    (0..2 * DATA).map(|at| Step::Visit { page: 512 + at % DATA, thread: 1, write: write || at < DATA }).collect()
}

fn run(steps: &[Step], near: u64, grain: u32) -> Timed {
    let mut evict = evict_by_name("fifo", near).unwrap();
    timed(steps, near, evict.as_mut(), &mut GrainFetch::new(grain), &COSTS)
}

#[test]
fn each_page_once_and_a_latency_for_each_group() {
    let of = |grain| {
        let (mut evict, mut fetch) = (evict_by_name("fifo", 4096).unwrap(), GrainFetch::new(grain));
        let mut sim = start(4096, evict.as_mut(), &mut fetch, &COSTS);
        sim.fill(512..512 + DATA);
        let reads = (0..DATA).map(|at| Step::Visit { page: 512 + at, thread: 1, write: false });
        sim.follow(&reads.collect::<Vec<Step>>());
        sim.finish()
    };
    let (one, group) = (of(1), of(16));
    assert_eq!((one.demand, one.pages_in, one.pages_out), (DATA, DATA, 0));
    assert_eq!((group.demand, group.pages_in), (DATA / 16, DATA));
    // A read of 16 pages: 90 us, and 10 us for each page.
    let waited = (DATA / 16) as f64 * 250e-6;
    assert!((group.waited_s - waited).abs() < 0.01 * waited, "{} for {waited}", group.waited_s);
    assert!(one.seconds > 2.0 * group.seconds);
}

#[test]
fn what_fits_is_read_never() {
    let all = run(&sweeps(false), 2 * DATA, 16);
    assert_eq!((all.demand, all.pages_in, all.pages_out), (0, 0, 0));
}

#[test]
fn reads_wait_for_writes_before_them() {
    let of = |write| {
        let (mut evict, mut fetch) = (evict_by_name("fifo", 4096).unwrap(), GrainFetch::new(16));
        let mut sim = start(4096, evict.as_mut(), &mut fetch, &COSTS);
        sim.fill(512..512 + DATA);
        let visits = (0..DATA).map(|at| Step::Visit { page: 512 + at, thread: 1, write });
        sim.follow(&visits.collect::<Vec<Step>>());
        sim.finish()
    };
    let (reads, writes) = (of(false), of(true));
    assert_eq!(reads.pages_in, writes.pages_in);
    // 16 pages are written in the 90 us of latency, a fault and 16 visits; the next read waits for what is left of 160 us.
    let later = writes.pages_out as f64 / 16.0 * 44e-6;
    let found = writes.waited_s - reads.waited_s;
    assert!(writes.pages_out >= DATA - 4096 && (found / later - 1.0).abs() < 0.2, "{found} for {later}");
}

/// Each thread sweeps twice over a part of its own, by turns.
fn threads(count: u64) -> Vec<Step> {
    let part = DATA / count;
    let visit =
        |at: u64, thread: u64| Step::Visit { page: 512 + thread * part + at % part, thread: thread as u32 + 1, write: at < part };
    (0..2 * part).flat_map(|at| (0..count).map(move |thread| visit(at, thread))).collect()
}

#[test]
fn threads_compute_and_wait_beside_each_other() {
    let costs = Costs { bytes_per_s: 65536e5, ..COSTS };
    assert_eq!((width(&threads(1)), width(&threads(4))), (1.0, 4.0));
    let of = |count, width| {
        let mut evict = evict_by_name("fifo", 4096).unwrap();
        timed(&threads(count), 4096, evict.as_mut(), &mut GrainFetch::new(16), &Costs { width, ..costs })
    };
    let (one, four) = (of(1, 1.0), of(4, 4.0));
    // As much is read, and waited for in sum, but at the same time. The program computes as long as before.
    assert!((one.pages_in as f64 / four.pages_in as f64 - 1.0).abs() < 0.01, "{four:?} for {one:?}");
    let computed = 2.0 * DATA as f64 * COSTS.visit_ns / 1e9;
    let beside = computed + (one.seconds - computed) / 4.0;
    assert!((four.waited_s / one.waited_s - 1.0).abs() < 0.2, "{four:?} for {one:?}");
    assert!((four.seconds / beside - 1.0).abs() < 0.1, "{} for {beside}", four.seconds);
    // Where they take turns, waits add up.
    let turns = of(4, 1.0);
    assert!((turns.seconds / one.seconds - 1.0).abs() < 0.1, "{} for {}", turns.seconds, one.seconds);
}

#[test]
fn computing_takes_what_it_takes_however_visits_are_divided() {
    // By turns one of the threads has most of a part's visits.
    let thread = |at: usize| 1 + u32::from(at.is_multiple_of(4) != (at / PART).is_multiple_of(2));
    let steps: Vec<Step> =
        (0..8 * PART).map(|at| Step::Visit { page: 512 + at as u64 % DATA, thread: thread(at), write: true }).collect();
    assert!((width(&steps) - 4.0 / 3.0).abs() < 1e-9, "{}", width(&steps));
    let costs = Costs { fault_ns: 0.0, width: width(&steps), ..COSTS };
    let mut evict = evict_by_name("fifo", 2 * DATA).unwrap();
    let found = timed(&steps, 2 * DATA, evict.as_mut(), &mut GrainFetch::new(16), &costs);
    let all = steps.len() as f64 * COSTS.visit_ns / 1e9;
    assert!((found.seconds / all - 1.0).abs() < 1e-6, "{} for {all}", found.seconds);
}

#[test]
fn what_one_thread_asked_for_is_waited_for_by_all() {
    let of = |threads: u32| {
        let (mut evict, mut fetch) = (evict_by_name("fifo", 2 * DATA).unwrap(), GrainFetch::new(16));
        let mut sim = start(2 * DATA, evict.as_mut(), &mut fetch, &Costs { width: f64::from(threads), ..COSTS });
        sim.fill(512..512 + DATA);
        let visit = |page: u64, thread: u32| Step::Visit { page, thread, write: false };
        let steps: Vec<Step> = (512..512 + DATA).flat_map(|page| (0..threads).map(move |thread| visit(page, thread))).collect();
        sim.follow(&steps);
        sim.finish()
    };
    let (one, two) = (of(1), of(2));
    assert_eq!(one.pages_in, two.pages_in);
    assert!((two.waited_s / one.waited_s - 2.0).abs() < 0.2, "{two:?} for {one:?}");
}

#[test]
fn a_thread_that_comes_after_another_begins_when_that_ends() {
    // The first ends in the middle of a part.
    let visit = |at, thread| Step::Visit { page: at, thread, write: false };
    let all = (0..3).flat_map(|thread| (0..DATA + 100).map(move |at| visit(at, thread)));
    let steps: Vec<Step> = all.collect();
    assert_eq!(width(&steps), 1.0);
    assert_eq!(threads::follow(&steps, 7.0, |_, now| now + 1.0), 7.0 + steps.len() as f64);
}

proptest! {
    /// In parts of eight, of threads that come and go.
    #[test]
    fn every_step_is_told_once_in_the_order_of_time(runs in proptest::collection::vec((0..40u32, 1..6usize, any::<bool>()), 0..60)) {
        let steps = |(thread, count, gone): &(u32, usize, bool)| {
            let one = match gone {
                true => Step::Gone { page: 0, pages: 1 },
                false => Step::Visit { page: 0, thread: *thread, write: false },
            };
            vec![one; *count]
        };
        let mut steps: Vec<Step> = runs.iter().flat_map(steps).collect();
        for (at, step) in steps.iter_mut().enumerate() {
            match step {
                Step::Visit { page, .. } | Step::Gone { page, .. } => *page = at as u64,
            }
        }
        let (mut told, mut last, mut begun, mut ends) = (vec![false; steps.len()], 5.0, HashMap::new(), HashMap::new());
        let end = threads::follow_in(8, &steps, 5.0, |step, now| {
            assert!(now >= last, "{now} after {last}");
            last = now;
            let took = match *step {
                Step::Gone { page, .. } => {
                    assert!(!std::mem::replace(&mut told[page as usize], true));
                    0.0
                }
                Step::Visit { page, thread, .. } => {
                    assert!(!std::mem::replace(&mut told[page as usize], true));
                    let clock = ends.insert(thread, now + 1.0);
                    assert!(clock.is_none_or(|clock| now >= clock));
                    begun.entry(thread).or_insert((page, now));
                    1.0
                }
            };
            now + took
        });
        prop_assert!(told.iter().all(|told| *told) && ends.values().all(|clock| *clock <= end));
        // Who came after the last visit of another began when that had ended.
        for (thread, (first, now)) in &begun {
            for (other, clock) in &ends {
                let is = |step: &&Step| matches!(step, Step::Visit { thread, .. } if thread == other);
                let last = steps.iter().rev().find(is).map_or(0, |step| if let Step::Visit { page, .. } = step { *page } else { 0 });
                prop_assert!(last >= *first || now >= clock, "{thread} after {other}");
            }
        }
    }
}

#[test]
fn near_is_empty_when_all_is_given_up() {
    // Somewhat more than near, in an order without a pattern.
    let near = 1024;
    let data = near + near / 8;
    let visit = |at| Step::Visit { page: 512 + mix(at) % data, thread: 1, write: true };
    let steps: Vec<Step> = (0..40 * near).map(visit).collect();
    let (mut evict, mut fetch) = (evict_by_name("fifo", near).unwrap(), GrainFetch::new(1));
    let mut sim = start(near, evict.as_mut(), &mut fetch, &COSTS);
    sim.follow(&steps);
    assert!(sim.timed.faults > sim.timed.demand + data, "some were rescued");
    sim.follow(&[Step::Gone { page: 0, pages: u64::MAX }]);
    assert_eq!((sim.view_pages, sim.staged_pages, sim.limbo_pages), (0, 0, 0));
}

#[test]
fn what_is_given_up_is_not_read_again() {
    let mut steps = sweeps(false);
    steps.insert(DATA as usize, Step::Gone { page: 0, pages: u64::MAX / 2 });
    assert_eq!(run(&steps, 4096, 16).pages_in, 0);
}
