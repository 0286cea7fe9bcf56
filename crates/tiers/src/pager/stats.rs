//! What the pager tells about itself: gauges of its own, and a meter of how busy far is.

use super::Pager;
use crate::block::Block;
use crate::hash_map::soon;
use crate::job::Slot;
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::kernel::Denied;
use nearfar_sys::pm_qos::LatencyRequest;
use std::os::fd::AsRawFd;

/// Bytes that a window of traffic must move for its rate to count as far's bandwidth.
const WINDOW_BYTES: u64 = 64 << 20;

/// Integrates the number of operations under way, and finds the highest rate. Time in which far is idle is left out: streams that
/// do not ask for much at once, since the rate is not known, would otherwise never find out.
#[derive(Default)]
pub struct Meter {
    since_ns: u64,
    window_busy_ns: u64,
    window_bytes: u64,
    peak: u64,
}

impl Meter {
    fn advance(&mut self, slot: &Slot, ops: u32, now: u64) {
        if ops > 0 {
            let passed = now - self.since_ns;
            slot.add(Counter::FarBusyNs, passed);
            slot.add(Counter::FarQueueNs, passed * u64::from(ops));
            self.window_busy_ns += passed;
        }
        self.since_ns = now;
    }

    /// An operation starts while `ops` are under way.
    pub fn started(&mut self, slot: &Slot, ops: u32) {
        self.advance(slot, ops, now_ns());
    }

    /// An operation of `bytes`, one of `ops` under way, has ended at `now`.
    pub fn ended(&mut self, slot: &Slot, ops: u32, bytes: u64, now: u64) {
        self.advance(slot, ops, now);
        self.window_bytes += bytes;
        if self.window_bytes >= WINDOW_BYTES && self.window_busy_ns > 0 {
            let rate = (u128::from(self.window_bytes) * 1_000_000_000 / u128::from(self.window_busy_ns)) as u64;
            self.peak = self.peak.max(rate);
            slot.raise(Counter::FarPeakBps, self.peak);
            (self.window_busy_ns, self.window_bytes) = (0, 0);
        }
    }

    /// The highest rate so far, 0 when unknown.
    pub fn peak_bytes_per_s(&self) -> u64 {
        self.peak
    }
}

/// CPUs are kept from sleeping while faults come so often, per second: each makes two threads wait for each other.
const WAITS_PER_S: u64 = 1000;
const WAITS_WINDOW_NS: u64 = 20_000_000;
/// Windows without that many waits, until CPUs may sleep again.
const CALM_WINDOWS: u32 = 5;

/// Decides when CPUs should wake up quickly: while there are many faults.
#[derive(Default)]
pub struct WakeupControl {
    request: Option<LatencyRequest>,
    waits: u64,
    since_ns: u64,
    calm: u32,
}

impl WakeupControl {
    /// Without permission to ask for it, nothing is asked.
    pub fn new(denied: Denied) -> Self {
        let request = if denied.has("awake") { None } else { LatencyRequest::open().ok() };
        Self { request, ..Self::default() }
    }

    /// A thread begins to wait.
    pub fn waits(&mut self) {
        self.waits += 1;
    }

    /// Looks at the time, at least a few times per second.
    pub fn look(&mut self, now: u64) {
        let passed = now - self.since_ns;
        if passed < WAITS_WINDOW_NS {
            return;
        }
        let often = self.waits * 1_000_000_000 / passed > WAITS_PER_S;
        self.calm = if often { 0 } else { self.calm.saturating_add((passed / WAITS_WINDOW_NS) as u32) };
        if let Some(request) = &mut self.request {
            if often {
                request.set(true);
            } else if self.calm >= CALM_WINDOWS {
                request.set(false);
            }
        }
        (self.waits, self.since_ns) = (0, now);
    }

    /// CPUs may sleep.
    pub fn lift(&mut self) {
        if let Some(request) = &mut self.request {
            request.set(false);
        }
    }

    /// The descriptor of the request.
    pub fn fd(&self) -> Option<i32> {
        self.request.as_ref().map(AsRawFd::as_raw_fd)
    }
}

impl Pager {
    /// Bytes of the pager's tables: blocks with their hashes, holds, frame lists, and what far and policies keep.
    fn metadata_bytes(&mut self) -> u64 {
        const PER_UNIT: u64 = 64;
        let blocks = self.blocks.len() * (size_of::<Block>() + 24);
        let holds = self.holds.capacity() * size_of::<Option<crate::block::Hold>>();
        let units = self.evict.resident_pages() / 16 * PER_UNIT;
        let far = self.far.backend().near_bytes() + self.far.metadata_bytes() + self.log.metadata_bytes();
        let records = self.recorder.as_ref().map_or(0, crate::recorder::Recorder::metadata_bytes);
        (blocks + holds + self.table_bytes + far + self.frames.metadata_bytes() + records) as u64 + units
    }

    /// Pages by which tables that double when they are full will soon grow at once.
    fn metadata_step(&mut self) -> usize {
        let holds = soon(self.holds.len(), self.holds.capacity()) * size_of::<Option<crate::block::Hold>>();
        (holds + self.far.backend().near_step() + self.frames.metadata_step() + self.log.metadata_step()).div_ceil(PAGE)
    }

    /// Writes the gauges.
    pub fn publish(&mut self) {
        // Metadata is part of near: it is charged like frames, in whole pages, as it grows.
        let metadata = self.metadata_bytes() as usize / PAGE + 1;
        self.tables_pages = metadata;
        let due = metadata.saturating_sub(self.metadata_pages);
        if due > 0 {
            // The budget may be spent: free frames make room for the tables, then the oldest of limbo.
            let mut tries = 64;
            while !self.job.try_charge(self.slot, due as u64) {
                tries -= 1;
                let released = self.frames.release(due);
                self.uncharge(released);
                if tries == 0 || (released == 0 && !self.end_oldest_limbo()) {
                    self.job.force_charge(self.slot, due as u64);
                    break;
                }
            }
            self.metadata_pages = metadata;
        }
        let used = self.slot.charged_pages() * PAGE as u64;
        self.slot.set(Counter::NearUsed, used);
        self.slot.raise(Counter::NearPeak, used);
        self.slot.set(Counter::Metadata, (metadata * PAGE) as u64);
        self.slot.raise(Counter::MetadataPeak, (metadata * PAGE) as u64);
        self.slot.set(Counter::FarUsed, self.far.used_bytes());
        self.slot.raise(Counter::FarPeak, self.far.used_bytes());
    }

    /// Pages that are still to be charged so that tables can grow.
    pub(super) fn tables_want(&mut self) -> usize {
        let aim = self.tables_pages + (self.job.near_pages() as usize / 512).clamp(64, 256) + self.metadata_step();
        aim.saturating_sub(self.metadata_pages)
    }

    /// Charges a little more than tables need now, bit by bit, since nothing may be free in the moment when they grow.
    pub(super) fn charge_ahead(&mut self) {
        const STEP: usize = 32;
        let some = self.tables_want().min(STEP);
        // Not after a fork, when all give away what they have.
        if some == 0 || self.job.charged_pages() > self.job.near_pages() {
            return;
        }
        if self.job.try_charge(self.slot, some as u64) {
            self.metadata_pages += some;
            return;
        }
        if self.frames.free_pages() == (0, 0) {
            self.end_oldest_limbo();
        }
        let released = self.frames.release(some);
        self.uncharge(released);
        if released > 0 && self.job.try_charge(self.slot, released as u64) {
            self.metadata_pages += released;
        }
    }
}
