//! What programs of a few lines wait for, and that the counts add up.

use super::*;
use crate::policy::evict_by_name;
use crate::policy::fetch_grain::GrainFetch;

const COSTS: Costs = Costs { visit_ns: 1000.0, fault_ns: 10_000.0, page_ns: 0.0, latency_ns: 90_000.0, bytes_per_s: 4096e5 };
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
    let one = run(&sweeps(false), 4096, 1);
    assert_eq!((one.demand, one.pages_in, one.pages_out), (DATA, DATA, DATA));
    let group = run(&sweeps(false), 4096, 16);
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
fn writes_wait_only_when_too_many_are_pending() {
    let (reads, writes) = (run(&sweeps(false), 4096, 64), run(&sweeps(true), 4096, 64));
    assert_eq!(reads.pages_in, writes.pages_in);
    assert!(writes.pages_out > reads.pages_out && writes.seconds > reads.seconds);
}

#[test]
fn near_is_empty_when_all_is_given_up() {
    // Somewhat less than near with its limbo, so that what is asked for next is what has been in limbo longest.
    let near = 1024;
    let visit = |at| Step::Visit { page: 512 + at % (near - 8), thread: 1, write: true };
    let steps: Vec<Step> = (0..40 * near).map(visit).collect();
    let (mut evict, mut fetch) = (evict_by_name("fifo", near).unwrap(), GrainFetch::new(1));
    let mut sim = start(near, evict.as_mut(), &mut fetch, &COSTS);
    sim.follow(&steps);
    assert!(sim.timed.faults > sim.timed.demand + near, "some were rescued");
    sim.follow(&[Step::Gone { page: 0, pages: u64::MAX }]);
    assert_eq!((sim.view_pages, sim.staged_pages, sim.limbo_pages), (0, 0, 0));
}

#[test]
fn what_is_given_up_is_not_read_again() {
    let mut steps = sweeps(false);
    steps.insert(DATA as usize, Step::Gone { page: 0, pages: u64::MAX / 2 });
    assert_eq!(run(&steps, 4096, 16).pages_in, 0);
}
