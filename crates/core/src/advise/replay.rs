//! Run time against near size by replay: the pager's own policies go over recorded visits with what things cost, for each size of near.
//!
//! The interval is a rule of experience, chosen so that it held nine in ten of 42 sizes of 11 works that were run.

use crate::addr::PAGE;
use crate::policy::evict_by_name;
use crate::policy::step::Step;
use crate::policy::stream::StreamFetch;
use crate::policy::timed::{Costs, Timed, timed};
use crate::profile::summary::Estimate;
use serde::{Deserialize, Serialize};

/// Nine in ten times that paging takes are within this factor of what is said.
const PAGING: f64 = 1.6;
/// Runs of one program differ by so much, whatever near is.
const RUNS: f64 = 0.06;
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
    let visits = steps.iter().filter(|step| matches!(step, Step::Visit { .. })).count();
    let costs = Costs { visit_ns: known.plain_s * 1e9 / visits.max(1) as f64, ..known.costs };
    sizes.iter().map(|&near| point(steps, near, known.plain_s, &costs)).collect()
}

fn point(steps: &[Step], near: f64, plain_s: f64, costs: &Costs) -> Point {
    let pages = (near / PAGE as f64).max(1.0) as u64;
    let found = match evict_by_name(EVICT, pages) {
        Some(mut evict) => timed(steps, pages, evict.as_mut(), &mut StreamFetch::new(), costs),
        None => Timed::default(),
    };
    let paging_s = (found.seconds - plain_s).max(0.0);
    let bytes = |pages: u64| pages as f64 * PAGE as f64;
    Point {
        near,
        seconds: Estimate {
            value: plain_s + paging_s,
            low: plain_s * (1.0 - RUNS) + paging_s / PAGING,
            high: plain_s * (1.0 + RUNS) + paging_s * PAGING,
        },
        read: bytes(found.pages_in),
        written: bytes(found.pages_out),
        demand: found.demand,
        faults: found.faults,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs { visit_ns: 0.0, fault_ns: 10e3, page_ns: 400.0, latency_ns: 20e3, bytes_per_s: 4e9, width: 1.0 };
    const PAGES: u64 = 256 << 8;

    fn sweeps(count: u64) -> Vec<Step> {
        (0..count * PAGES).map(|at| Step::Visit { page: 512 + at % PAGES, thread: 1, write: at < PAGES }).collect()
    }

    #[test]
    fn more_near_takes_less_and_all_of_it_what_it_takes_without() {
        let all = PAGES as f64 * PAGE as f64;
        let known = Known { plain_s: 0.08, costs: COSTS };
        let found = curve(&sweeps(4), &[all / 4.0, all / 2.0, all], &known);
        let seconds: Vec<f64> = found.iter().map(|point| point.seconds.value).collect();
        assert!(seconds[0] > seconds[1] && seconds[1] > seconds[2], "{seconds:?}");
        // Faults of its first touches, and 400 ns for each page.
        assert!(found[2].read == 0.0 && (0.104..0.128).contains(&seconds[2]), "{found:?}");
        // Three sweeps of which near holds a quarter at the most are read.
        assert!(found[0].read > 2.0 * all && found[0].read < 3.2 * all, "{found:?}");
        assert!(found.iter().all(|point| point.seconds.low < point.seconds.value && point.seconds.value < point.seconds.high));
    }
}
