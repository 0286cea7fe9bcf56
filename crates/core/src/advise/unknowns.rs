//! What the model cannot know.

use super::overlap::PAGED_OVERLAP;
use crate::profile::summary::Summary;

/// What nobody measured, and what is known only roughly: the middle of it, or one of many draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknowns {
    /// How computing and moving lines overlap: 1 not at all, infinite wholly.
    pub overlap: f64,
    /// The same for computing and transfers of pages.
    pub paged_overlap: f64,
    /// How many loads a thread has under way where it goes through memory without order, on a logarithmic scale: 0 one after the other,
    /// 1 as many as the core can.
    pub parallelism: f64,
    /// The run without observation, as a share of the profiled one.
    pub unobserved: f64,
    /// Factor on what is computed, where the run has other threads or cores than the profiled one.
    pub scaled: f64,
    /// Factors on the bandwidth of near and far.
    pub rates: (f64, f64),
    /// Factor on the traffic and visits of each group.
    pub traffic: Vec<f64>,
}

impl Unknowns {
    /// The middle of everything.
    pub fn middle(summary: &Summary) -> Self {
        Self {
            overlap: 3.0,
            paged_overlap: PAGED_OVERLAP,
            parallelism: 0.5,
            unobserved: 1.0 - summary.overhead.clamp(0.0, 0.5),
            scaled: 1.0,
            rates: (1.0, 1.0),
            traffic: vec![1.0; summary.objects.len()],
        }
    }
}
