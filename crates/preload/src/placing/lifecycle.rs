//! How placing starts in a process, what happens to it around fork, and how it ends.

use super::accounting::Limits;
use super::nodes::NodeCapacity;
use super::sites::Sites;
use super::{Placing, by_process, get, say};
use crate::managed::Managed;
use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::table::Table;
use nearfar_core::placement::{Full, Policy};
use nearfar_sys::numa;
use nearfar_tiers::job::{Job, Settings, Slot};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

fn plan_of(settings: &Settings) -> Option<Sites> {
    if settings.placement.policy != Policy::Plan {
        return None;
    }
    let path = std::path::Path::new(OsStr::from_bytes(settings.plan()));
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            say(&format!("the plan in {} cannot be read ({error}): nothing is placed", path.display()));
            return None;
        }
    };
    match Table::new(bytes.leak()) {
        Ok(table) => Some(Sites::new(table)),
        Err(error) => {
            say(&format!("{error}: nothing is placed"));
            None
        }
    }
}

/// Starts placing in a job whose tiers are NUMA nodes.
pub fn start_nodes(job: Job) {
    let settings = job.settings();
    let placement = settings.placement.clone();
    job.bury_own_past();
    let slot = job.join();
    if slot.is_none() {
        job.note_unmanaged();
    }
    let limited = placement.near_limit != u64::MAX || placement.full != Full::Spill;
    let limits = match slot {
        Some(_) if limited => Limits::Nodes(NodeCapacity::new(job, placement.near, placement.near_limit, placement.full)),
        _ => Limits::None,
    };
    let mut placing = Placing::new(placement, None, limits, slot);
    placing.sites = plan_of(settings);
    if placing.placement.policy == Policy::All && !by_process(&placing.placement) {
        // Each object is counted: what is not placed must not be near by the process's policy.
        let policy = placing.far_policy.unwrap_or_default();
        let _ = numa::set_thread(&policy);
    }
    let placing = placing.publish();
    if !by_process(&placing.placement) {
        placing.place_statics();
        placing.place_main_stack();
    }
    placing.open_windows();
}

/// Starts placing in a paged job: returns the static arrays that are near and must not be paged. `start_paged` follows.
pub fn start_paged(settings: &Settings, managed: &'static Managed, slot: &'static Slot) -> Vec<Extent> {
    let placement = settings.placement.clone();
    let near = u128::from(settings.near_bytes);
    let flat = (near * u128::from(1_000_000 - placement.cache_ppm.min(1_000_000)) / 1_000_000) as u64;
    let limits = Limits::Budget(managed, flat.min(placement.near_limit) / PAGE as u64);
    let mut placing = Placing::new(placement, Some(managed), limits, Some(slot));
    placing.sites = plan_of(settings);
    let placing = placing.publish();
    if placing.placement.policy == Policy::None { Vec::new() } else { placing.place_statics() }
}

/// In a paged job, once static arrays are managed: allocations may be placed from now on.
pub fn open() {
    if let Some(placing) = get() {
        placing.open_windows();
    }
}

/// Before fork, before any other lock is taken: who asks the loader may need them.
pub fn fork_begin() {
    if let Some(sites) = get().and_then(|placing| placing.sites.as_ref()) {
        sites.hold();
    }
}

/// Before fork.
pub fn fork_prepare() {
    if let Some(placing) = get() {
        placing.maps.hold();
    }
}

impl Placing {
    /// Lets go of what `fork_prepare` took.
    fn let_go(&self) {
        self.maps.release();
        if let Some(sites) = &self.sites {
            sites.release();
        }
    }
}

/// After fork, in the parent; in the child before memory is set up again, which makes and ends mappings.
pub fn fork_parent() {
    if let Some(placing) = get() {
        placing.let_go();
    }
}

/// After fork, in the child, which has `slot`.
pub fn fork_child(slot: Option<&'static Slot>) {
    if let Some(placing) = get() {
        placing.let_go();
        placing.room.after_fork(slot);
    }
}

/// At exit: writes the gauges.
#[cfg_attr(test, allow(dead_code))]
pub fn finish() {
    let Some(placing) = get() else { return };
    placing.room.publish();
}
