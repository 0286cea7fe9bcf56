//! Run time against near size by replay: the pager's own policies go over recorded visits with what things cost, for each size of near.
//!
//! What a machine does not do twice alike is in the interval: costs a quarter higher or lower, near that differs by a few pages more or
//! less set aside, and the spread of runs. It holds what is measured in nine of ten cases, as far as the trace is of the same run.

use crate::addr::PAGE;
use crate::policy::evict_by_name;
use crate::policy::step::Step;
use crate::policy::stream::StreamFetch;
use crate::policy::timed::{Costs, Timed, timed};
use crate::profile::summary::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Nine in ten measured costs are within this factor of what they will be.
const SURE: f64 = 1.25;
/// Near differs by this share: what is set aside depends on the moment.
const NEAR: f64 = 0.03;
/// Runs of one program differ by so much, whatever near is.
const RUNS: f64 = 0.04;
/// The pager's own eviction policy.
const EVICT: &str = "adaptive";

/// What is known beside the trace.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Wall seconds without nearfar.
    pub plain_s: f64,
    /// What paging costs; the time between visits is not used.
    pub costs: Costs,
}

/// One size of near.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of near.
    pub near: f64,
    /// Predicted seconds.
    pub seconds: Estimate,
    /// Bytes from far.
    pub read: f64,
    /// Bytes to far.
    pub written: f64,
    /// Faults that wait for far.
    pub demand: u64,
    /// All faults.
    pub faults: u64,
}

/// What `steps` take with each of `sizes` bytes of near.
pub fn curve(steps: &[Step], sizes: &[f64], known: &Known) -> Vec<Point> {
    let visits = steps.iter().filter_map(|step| if let Step::Visit { page, .. } = step { Some(*page) } else { None });
    let visit_ns = known.plain_s * 1e9 / visits.clone().count().max(1) as f64;
    let data = visits.collect::<HashSet<u64>>().len() as u64;
    let costs = Costs { visit_ns, ..known.costs };
    sizes.iter().map(|&near| point(steps, data, near, costs)).collect()
}

fn point(steps: &[Step], data: u64, near: f64, costs: Costs) -> Point {
    let of = |costs: &Costs, near: f64| run(steps, data, near, costs);
    let middle = of(&costs, near);
    let dear = Costs {
        fault_ns: costs.fault_ns * SURE,
        page_ns: costs.page_ns * SURE,
        latency_ns: costs.latency_ns * SURE,
        bytes_per_s: costs.bytes_per_s / SURE,
        ..costs
    };
    let cheap = Costs {
        fault_ns: costs.fault_ns / SURE,
        page_ns: costs.page_ns / SURE,
        latency_ns: costs.latency_ns / SURE,
        bytes_per_s: costs.bytes_per_s * SURE,
        ..costs
    };
    let all = [of(&dear, near), of(&cheap, near), of(&costs, near * (1.0 - NEAR)), of(&costs, near * (1.0 + NEAR))];
    let seconds = || all.iter().map(|one| one.seconds).chain([middle.seconds]);
    let low = seconds().fold(f64::INFINITY, f64::min) * (1.0 - RUNS);
    let high = seconds().fold(0.0, f64::max) * (1.0 + RUNS);
    let bytes = |pages: u64| pages as f64 * PAGE as f64;
    Point {
        near,
        seconds: Estimate { value: middle.seconds, low, high },
        read: bytes(middle.pages_in),
        written: bytes(middle.pages_out),
        demand: middle.demand,
        faults: middle.faults,
    }
}

/// `steps` over `data` pages.
fn run(steps: &[Step], data: u64, near: f64, costs: &Costs) -> Timed {
    let pages = (near / PAGE as f64).max(1.0) as u64;
    // What is set aside of near is only where something leaves it.
    let pages = if data <= pages { 2 * pages } else { pages };
    let Some(mut evict) = evict_by_name(EVICT, pages) else { return Timed::default() };
    timed(steps, pages, evict.as_mut(), &mut StreamFetch::new(), costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { visit_ns: 0.0, fault_ns: 10e3, page_ns: 400.0, latency_ns: 20e3, bytes_per_s: 4e9 };
    const PAGES: u64 = 32 << 8;

    fn sweeps(count: u64) -> Vec<Step> {
        (0..count * PAGES).map(|at| Step::Visit { page: 512 + at % PAGES, thread: 1, write: at < PAGES }).collect()
    }

    #[test]
    fn more_near_takes_less_and_all_of_it_what_it_takes_without() {
        let all = PAGES as f64 * PAGE as f64;
        let known = Known { plain_s: 0.01, costs: COSTS };
        let found = curve(&sweeps(4), &[all / 4.0, all / 2.0, all], &known);
        let seconds: Vec<f64> = found.iter().map(|point| point.seconds.value).collect();
        assert!(seconds[0] > seconds[1] && seconds[1] > seconds[2], "{seconds:?}");
        // Faults of its first touches, and 400 ns for each page.
        assert!(found[2].read == 0.0 && (0.013..0.016).contains(&seconds[2]), "{found:?}");
        // Three sweeps of which near holds a quarter at the most are read.
        assert!(found[0].read > 2.0 * all && found[0].read < 3.2 * all, "{found:?}");
        assert!(found.iter().all(|point| point.seconds.low < point.seconds.value && point.seconds.value < point.seconds.high));
    }
}
