//! What one visit to a page costs more when the page lies in far: from what is known of the two memories.
//!
//! Time of threads, not of the wall. A visit is at least one cache line; how many more is not known. Where latency counts, few lines are
//! taken; where bandwidth counts, the page is taken to be streamed, as nothing else fills a memory's bandwidth.

use std::fmt;

/// What is known of one memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speed {
    /// Latency of a read, ns.
    pub latency_ns: Option<f64>,
    /// Bytes per second, all CPUs together.
    pub bytes_per_s: Option<f64>,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Measured by `nearfar probe`.
    Measured,
    /// Claimed by the firmware (HMAT).
    Firmware,
    /// Guessed from the distances of the nodes (SLIT).
    Distance,
    /// Nothing is known: near is taken to be faster because the user says so.
    Assumed,
}

/// Time that a visit to a page takes longer in far than in near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// ns per visit; not above 0 when near is not the faster one.
    pub ns_per_visit: f64,
    /// Where that comes from.
    pub origin: Origin,
}

/// Lines of a page that are read in a visit where latency counts.
const LINES: f64 = 4.0;
/// Lines of a page.
const LINES_PER_PAGE: f64 = 64.0;
/// Bytes of a line.
const LINE: f64 = 64.0;
/// Latency per unit of SLIT distance (10 is the own node), ns.
const NS_PER_DISTANCE: f64 = 10.0;
/// What is taken when nothing is known, ns per line.
const ASSUMED_NS: f64 = 50.0;

impl Gain {
    /// From figures of both memories, for `cpus` CPUs; `None` when there are too few figures.
    pub fn of(near: Speed, far: Speed, cpus: u32, origin: Origin) -> Option<Self> {
        let latency = near.latency_ns.zip(far.latency_ns).map(|(near, far)| (far - near) * LINES);
        let bandwidth = near.bytes_per_s.zip(far.bytes_per_s).filter(|&(near, far)| near > 0.0 && far > 0.0);
        // While all CPUs wait for one memory, a line takes each of them as long as it takes the memory to serve them all.
        let bandwidth = bandwidth.map(|(near, far)| (1e9 / far - 1e9 / near) * LINE * LINES_PER_PAGE * f64::from(cpus.max(1)));
        let ns_per_visit = match (latency, bandwidth) {
            (Some(latency), Some(bandwidth)) => latency.max(bandwidth),
            (one, other) => one.or(other)?,
        };
        Some(Self { ns_per_visit, origin })
    }

    /// From the distances of CPUs to both, or from nothing. Distances do not know HBM from DDR: a near that is no nearer is
    /// taken to be what the user says it is.
    pub fn from_distances(near: Option<u32>, far: Option<u32>) -> Self {
        match near.zip(far) {
            Some((near, far)) if far > near => {
                Self { ns_per_visit: f64::from(far - near) * NS_PER_DISTANCE * LINES, origin: Origin::Distance }
            }
            _ => Self { ns_per_visit: ASSUMED_NS * LINES, origin: Origin::Assumed },
        }
    }
}

/// "a visit saves 600 ns (by the firmware's figures)".
impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Measured => "by what nearfar probe measured",
            Origin::Firmware => "by the firmware's figures",
            Origin::Distance => "guessed from the distances of the nodes",
            Origin::Assumed => "assumed: nothing is known about these nodes",
        };
        write!(f, "a visit to a page saves {:.0} ns in near ({origin})", self.ns_per_visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(near: (f64, f64), far: (f64, f64), cpus: u32) -> f64 {
        let speed = |(latency, rate)| Speed { latency_ns: Some(latency), bytes_per_s: Some(rate) };
        Gain::of(speed(near), speed(far), cpus, Origin::Firmware).expect("figures").ns_per_visit
    }

    #[test]
    fn what_kind_of_memory_is_faster_counts() {
        let cxl = gain((100.0, 200e9), (250.0, 30e9), 4);
        assert!((cxl - 600.0).abs() < 1.0, "{cxl}");
        // HBM answers later than DDR, but never keeps 256 threads waiting.
        let knl = gain((155.0, 400e9), (130.0, 90e9), 256);
        assert!(knl > 5000.0, "{knl}");
        // The wrong way round.
        assert!(gain((250.0, 30e9), (100.0, 200e9), 64) < 0.0);
    }

    #[test]
    fn without_figures() {
        assert_eq!(Gain::of(Speed::default(), Speed::default(), 4, Origin::Firmware), None);
        assert_eq!(Gain::from_distances(Some(10), Some(21)), Gain { ns_per_visit: 440.0, origin: Origin::Distance });
        assert_eq!(Gain::from_distances(Some(31), Some(10)).origin, Origin::Assumed);
        assert!(Gain::from_distances(None, None).ns_per_visit > 0.0);
    }
}
