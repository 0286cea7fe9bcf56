//! Whether pages are moved in this run, by whom, and why not: settled before the program starts.

use super::pair::{NoPair, Pair};
use super::report::Report;
use super::rounds::{Limits, Rounds, Shared};
use nearfar_core::node::{Node, Topology};
use nearfar_core::placement::{NodeSet, Placement};
use nearfar_core::policy::migrate::Gain;
use nearfar_core::units::Bytes;
use nearfar_sys::damon;
use nearfar_sys::numa::{MemoryPolicy, PolicyMode};
use nearfar_sys::root::Root;
use nearfar_sys::tiering::Tiering;
use nearfar_sys::visits::Sampler;
use std::sync::Arc;

/// Who moves pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrator {
    /// The kernel where its tiering is on, otherwise nearfar.
    Auto,
    /// Nearfar, even where the kernel's tiering is on.
    Force,
    /// Nobody: memory stays where it was touched first.
    Off,
}

/// What is done in cache mode among nodes.
#[derive(Debug)]
pub struct NumaCache {
    pair: Pair,
    sampler: Option<Sampler>,
    limits: Limits,
    kernel: bool,
    /// What the user should know before the program starts.
    pub notes: Vec<String>,
}

impl NumaCache {
    /// Settles it for `placement` on this machine; `measured` is this machine's node.json, if there is one.
    ///
    /// # Errors
    /// There are no two sets of nodes.
    pub fn plan(
        placement: &Placement,
        topology: &Topology,
        measured: Option<&Node>,
        who: Migrator,
        limits: Limits,
    ) -> Result<Self, NoPair> {
        let pair = Pair::of(placement, topology, measured)?;
        let tiering = Tiering::of(&Root::this());
        let mut cache = Self { pair, sampler: None, limits, kernel: false, notes: Vec::new() };
        let Pair { near, far, gain, .. } = &cache.pair;
        let first = format!("cache mode: new memory goes to near (nodes {near}) while it has room, then to far (nodes {far})");
        let note = match who {
            Migrator::Off => format!("{first}, and stays there (--migrate off)"),
            Migrator::Auto if tiering.serves(near, far) => {
                cache.kernel = true;
                kernel_note(&tiering)
            }
            _ if gain.ns_per_visit <= 0.0 => {
                format!("{first}, and stays there: moving pages does not pay, since near is not faster than far ({gain})")
            }
            _ => match Sampler::best() {
                Ok(sampler) => {
                    let means = sampler.means();
                    cache.sampler = Some(sampler);
                    let forced =
                        if tiering.serves(near, far) { "; the kernel's tiering is on as well, and may undo moves" } else { "" };
                    format!(
                        "{first}; hot pages of far are moved to near, at most {}/s; visits are seen by {means}, which {}; {gain}{forced}",
                        Bytes(cache.limits.bytes_per_s as u64),
                        means.confidence()
                    )
                }
                Err(why) => format!(
                    "{first}, and stays there: nearfar cannot see which pages are visited ({}); run nearfar as root on a kernel that has one of these",
                    why.join("; ")
                ),
            },
        };
        cache.notes.push(note);
        if placement.near_limit != u64::MAX {
            cache.notes.extend(cache.not_held());
        }
        Ok(cache)
    }

    /// Near is at most `bytes` from now on: a rank's share, which is known only when the other ranks are.
    pub fn limit_near(&mut self, bytes: u64) {
        self.pair.near_limit = bytes;
    }

    /// What is to be said of a limit of near where nobody holds it.
    pub fn not_held(&self) -> Option<String> {
        let said = "the limit of near is not enforced: nearfar moves no pages in this run, and memory goes to near while the nodes have room";
        self.sampler.is_none().then(|| said.to_owned())
    }

    /// Where the program's memory comes from: near while there is room. `None` where the kernel moves pages, which it does not do for
    /// programs with a policy of their own.
    pub fn memory(&self) -> Option<MemoryPolicy> {
        let near: &NodeSet = &self.pair.near;
        let mode = if near.len() == 1 { PolicyMode::Preferred } else { PolicyMode::PreferredMany };
        (!self.kernel).then(|| MemoryPolicy::new(mode, *near))
    }

    /// Begins to move pages of process `leader` and what descends from it.
    pub fn start(self, leader: u32) -> Mover {
        let shared = Arc::new(Shared::default());
        let gain = self.pair.gain;
        let has_damon = matches!(self.sampler, Some(Sampler::Damon(..)));
        let works = self.sampler.is_some_and(|sampler| {
            let rounds = Rounds::new(self.pair, sampler, leader, self.limits);
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name("mover".to_owned()).spawn(move || rounds.run(&shared)).is_ok()
        });
        Mover { shared: works.then_some(shared), gain, has_damon }
    }
}

fn kernel_note(tiering: &Tiering) -> String {
    let demotion = match tiering.demotion {
        Some(true) => "it demotes cold ones too",
        _ => "but it does not demote cold ones (as root: \"echo 1 > /sys/kernel/mm/numa/demotion_enabled\")",
    };
    format!(
        "cache mode: the kernel's own tiering is on (kernel.numa_balancing includes 2) and promotes hot pages, {demotion}; nearfar leaves it to \
         the kernel (unless --migrate force is given)"
    )
}

/// The mover of a running program.
pub struct Mover {
    shared: Option<Arc<Shared>>,
    gain: Gain,
    has_damon: bool,
}

impl Mover {
    /// Ends it; what it did, and the lines of the summary. `None` when nothing was moved by nearfar.
    pub fn stop(self) -> Option<(Report, Vec<String>)> {
        let (report, stopped) = self.shared?.stop();
        if !stopped && self.has_damon {
            // The command ends in a moment, and its thread with it.
            damon::give_back();
        }
        let lines = report.lines(&self.gain);
        Some((report, lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_is_said() {
        let on = Tiering { balancing: Some(2), demotion: Some(false), tiers: Vec::new() };
        let note = kernel_note(&on);
        assert!(note.contains("leaves it to the kernel") && note.contains("demotion_enabled"), "{note}");
        assert!(kernel_note(&Tiering { demotion: Some(true), ..on }).contains("demotes cold ones too"));
    }

    /// The share of a rank is known after the plan, and it is what the mover must hold.
    #[test]
    fn a_limit_that_comes_later_is_the_mover_s() {
        let node = |id| nearfar_core::node::MemoryNode { id, bytes: 1 << 30, allowed: true, ..Default::default() };
        let topology = Topology { nodes: vec![node(0), node(1)], ..Topology::default() };
        let set = |id: u32| NodeSet::from_iter([id]);
        let placement = Placement { near: set(0), far: set(1), near_limit: 64 << 20, ..Placement::default() };
        let limits = Limits { bytes_per_s: 1e9, cpu_share: 0.01 };
        let mut cache = NumaCache::plan(&placement, &topology, None, Migrator::Off, limits).expect("planned");
        assert!(cache.notes.iter().any(|note| note.contains("not enforced")), "{:?}", cache.notes);
        cache.limit_near(16 << 20);
        assert_eq!(cache.pair.room(&cache.pair.free(), 17 << 20).near.min(0), -(1 << 20));
        let unlimited = NumaCache::plan(&Placement { near_limit: u64::MAX, ..placement }, &topology, None, Migrator::Off, limits)
            .expect("planned");
        assert!(!unlimited.notes.iter().any(|note| note.contains("not enforced")), "{:?}", unlimited.notes);
    }
}
