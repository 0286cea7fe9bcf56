//! Which pages of other processes are visited: whichever means this kernel and user have, behind one face.
//!
//! Every means gives the same: for each region, how many looks at a random page of it found that it was visited since the look before.

use crate::damon::{self, Damon, DamonError, Target};
use crate::idle_pages::{Frames, IdlePages};
use nearfar_core::random_numbers::xorshift;
use std::fmt;
use std::time::Duration;

/// How visits can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// DAMON.
    Damon,
    /// Idle page tracking.
    IdlePages,
    /// Samples of memory accesses by the processor (PEBS, IBS, SPE); not made use of yet.
    PmuSamples,
}

impl Means {
    /// How far its figures can be trusted, in words.
    pub const fn confidence(self) -> &'static str {
        match self {
            Self::Damon | Self::IdlePages => {
                "tells which pages were visited in an interval, but not how often; a visit to a page that the processor still has in its \
                 TLB is missed"
            }
            Self::PmuSamples => "shows single accesses that missed the caches",
        }
    }
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Damon => "DAMON",
            Self::IdlePages => "idle page tracking",
            Self::PmuSamples => "memory samples of the processor",
        })
    }
}

/// What each means says when it is asked for, best first. Takes nothing.
pub fn offers() -> Vec<(Means, Result<(), String>)> {
    vec![
        (Means::Damon, damon::check().map_err(|error| error.to_string())),
        (Means::IdlePages, IdlePages::open().map(drop)),
        (Means::PmuSamples, Err("memory samples of the processor are not used yet".to_owned())),
    ]
}

/// What a round saw of one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Looks that found a visit.
    pub visits: u32,
    /// Looks.
    pub looks: u32,
}

/// A means in use.
#[derive(Debug)]
pub enum Sampler {
    /// DAMON, and CPU time of its threads so far.
    Damon(Damon, u64),
    /// Idle page tracking, and the state of a generator of random numbers.
    IdlePages(IdlePages, u64),
}

impl Sampler {
    /// The best means that can be had.
    ///
    /// # Errors
    /// Why none can, one clause for each.
    pub fn best() -> Result<Self, Vec<String>> {
        let damon = match Damon::claim() {
            Ok(damon) => return Ok(Self::Damon(damon, 0)),
            Err(error) => error.to_string(),
        };
        match IdlePages::open() {
            Ok(idle) => Ok(Self::IdlePages(idle, 0x9e37_79b9_7f4a_7c15)),
            Err(why) => Err(vec![damon, why]),
        }
    }

    /// Which means it is.
    pub const fn means(&self) -> Means {
        match self {
            Self::Damon(..) => Means::Damon,
            Self::IdlePages(..) => Means::IdlePages,
        }
    }

    /// CPU time that the kernel's own threads took for it, ns.
    pub const fn kernel_cpu_ns(&self) -> u64 {
        match self {
            Self::Damon(_, ns) => *ns,
            Self::IdlePages(..) => 0,
        }
    }

    /// Looks at each region of `targets`, in order, `looks` times, `interval` apart. Lets time pass by `pause`, which returns false when
    /// the round is to be given up.
    ///
    /// # Errors
    /// When the kernel refuses; processes that are gone are not visited. `Stopped` when the round was given up.
    pub fn round(
        &mut self,
        targets: &[Target],
        looks: u32,
        interval: Duration,
        pause: &dyn Fn(Duration) -> bool,
    ) -> Result<Vec<Looked>, DamonError> {
        match self {
            Self::Damon(damon, cpu_ns) => {
                let round = damon.round(targets, looks, interval, pause)?;
                *cpu_ns += round.cpu_ns;
                Ok(round.visits.into_iter().map(|visits| Looked { visits, looks }).collect())
            }
            Self::IdlePages(idle, state) => look(idle, state, targets, looks, &mut || pause(interval)).ok_or(DamonError::Stopped),
        }
    }
}

/// `None` when `pause` said so.
fn look(
    idle: &IdlePages,
    state: &mut u64,
    targets: &[Target],
    looks: u32,
    pause: &mut dyn FnMut() -> bool,
) -> Option<Vec<Looked>> {
    let mut random = || xorshift(state);
    let opened: Vec<Option<Frames>> = targets.iter().map(|target| Frames::of(target.pid).ok()).collect();
    let regions = || targets.iter().zip(&opened).flat_map(|(target, frames)| target.regions.iter().map(move |&at| (frames, at)));
    let mut looked = vec![Looked::default(); regions().count()];
    for _ in 0..looks {
        let mut mark = |frames: &Frames, region| idle.mark(frames.random(region, &mut random)?);
        let marked: Vec<Option<u64>> =
            regions().map(|(frames, region)| frames.as_ref().and_then(|frames| mark(frames, region))).collect();
        if !pause() {
            return None;
        }
        for (one, frame) in looked.iter_mut().zip(marked) {
            if let Some(frame) = frame {
                one.looks += 1;
                one.visits += u32::from(idle.was_visited(frame));
            }
        }
    }
    Some(looked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_means_answers() {
        let offers = offers();
        assert_eq!(offers.len(), 3);
        for (means, offer) in offers {
            assert!(offer.as_ref().err().is_none_or(|why| !why.is_empty()), "{means}: {offer:?}");
        }
    }
}
