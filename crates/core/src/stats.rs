//! The one table of counters: name, unit, and what each counts. `--stats`, the summary, `--live` and docs/reference/formats.md derive from it.
//!
//! Counters are plain numbers here; who holds them in shared memory and adds to them atomically lives in `tiers::job`.

/// How a counter of several processes is combined into one of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Totals add up over processes and time.
    Sum,
    /// Present amounts: they add up over processes that live, and end with the process.
    Gauge,
    /// Highest value of any process.
    Max,
}

macro_rules! counters {
    ($($variant:ident, $name:literal, $unit:literal, $combine:ident, $doc:literal;)*) => {
        /// One counter; its discriminant is its index in a snapshot.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter { $(#[doc = $doc] $variant,)* }

        /// Every counter, in order of index.
        pub const COUNTERS: &[Counter] = &[$(Counter::$variant,)*];

        impl Counter {
            /// The name in `--stats` files.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }
            /// The unit: `count`, `bytes`, `ns`.
            pub const fn unit(self) -> &'static str {
                match self { $(Counter::$variant => $unit,)* }
            }
            /// How processes are combined.
            pub const fn combine(self) -> Combine {
                match self { $(Counter::$variant => Combine::$combine,)* }
            }
            /// One line of documentation.
            pub const fn doc(self) -> &'static str {
                match self { $(Counter::$variant => $doc,)* }
            }
        }
    };
}

counters! {
    Faults, "faults", "count", Sum, "Page faults that the pager served, of every kind.";
    FaultsZero, "faults_zero", "count", Sum, "Faults on memory that was never touched (or was discarded): zeros given, no I/O.";
    FaultsDemand, "faults_demand", "count", Sum, "Faults that had to wait for a read from far that nothing had started yet.";
    Demand4K, "demand_4k", "count", Sum, "Of faults_demand, those that brought the page alone (0, as the next three, where the kernel pages).";
    Demand64K, "demand_64k", "count", Sum, "Of faults_demand, those that brought 8K to 64K in one piece.";
    Demand256K, "demand_256k", "count", Sum, "Of faults_demand, those that brought more than 64K, up to 256K.";
    Demand2M, "demand_2m", "count", Sum, "Of faults_demand, those that brought more than 256K, up to 2M.";
    FaultsLate, "faults_late", "count", Sum, "Faults on data whose read from far was under way already (prefetched late, or asked for by another thread).";
    FaultsStaged, "faults_staged", "count", Sum, "Faults on data that prefetch had brought to near in time.";
    FaultsRescued, "faults_rescued", "count", Sum, "Faults on evicted data still in limbo: moved back without I/O.";
    FaultsStale, "faults_stale", "count", Sum, "Faults on pages already present when the pager looked (another thread had asked), or discarded behind nearfar's back.";
    BytesIn, "bytes_in", "bytes", Sum, "Bytes read from far.";
    BytesOut, "bytes_out", "bytes", Sum, "Bytes written to far.";
    ReadOps, "read_ops", "count", Sum, "Reads from far.";
    WriteOps, "write_ops", "count", Sum, "Writes to far.";
    PrefetchBytes, "prefetch_bytes", "bytes", Sum, "Bytes read from far ahead of any demand.";
    PrefetchUsedBytes, "prefetch_used_bytes", "bytes", Sum, "Prefetched bytes that the program then asked for.";
    PrefetchWastedBytes, "prefetch_wasted_bytes", "bytes", Sum, "Prefetched bytes given up before the program asked for them.";
    ReadAroundBytes, "read_around_bytes", "bytes", Sum, "Bytes read beside a demanded page in the same run.";
    EvictedBytes, "evicted_bytes", "bytes", Sum, "Bytes moved out of the program's view.";
    EvictedCleanBytes, "evicted_clean_bytes", "bytes", Sum, "Evicted bytes equal to their far copy: not written.";
    EvictedZeroBytes, "evicted_zero_bytes", "bytes", Sum, "Evicted bytes that were all zero: neither written nor kept in far.";
    StallNs, "stall_ns", "ns", Sum, "Time that threads of the program waited for the pager, summed over threads (from reading the fault to waking the thread).";
    StallFarNs, "stall_far_ns", "ns", Sum, "The part of stall_ns spent on faults that waited for a read from far.";
    FarBusyNs, "far_busy_ns", "ns", Sum, "Time with at least one read or write of far under way.";
    FarQueueNs, "far_queue_ns", "ns", Sum, "Reads and writes under way, integrated over time; divided by far_busy_ns: mean queue depth.";
    FarPeakBps, "far_peak_bytes_per_s", "bytes", Max, "Highest rate of reads plus writes seen over 64 MiB, idle time of far left out: the bandwidth that the bound uses.";
    NearUsed, "near_used_bytes", "bytes", Gauge, "Near memory in use now: frames, present pages and metadata.";
    NearPeak, "near_peak_bytes", "bytes", Max, "Highest near_used_bytes of one process.";
    Metadata, "metadata_bytes", "bytes", Gauge, "Part of near_used_bytes: the pager's own tables.";
    MetadataPeak, "metadata_peak_bytes", "bytes", Max, "Highest metadata_bytes of one process.";
    Committed, "committed_bytes", "bytes", Gauge, "Memory that the program holds and nearfar manages and that is or was writable, touched or not.";
    FarUsed, "far_used_bytes", "bytes", Gauge, "Far space that holds data now.";
    FarPeak, "far_peak_used_bytes", "bytes", Max, "Highest far_used_bytes of one process.";
    FarSecured, "far_secured_bytes", "bytes", Gauge, "Far space that is secured for the processes, in use or ahead of need.";
    AllocationsRefused, "allocations_refused", "count", Sum, "Allocations that failed with ENOMEM because far had no space for them.";
    FarCleanedBytes, "far_cleaned_bytes", "bytes", Sum, "Bytes copied within far to make room there, when it could get no more space.";
    OverBudget, "over_budget_bytes", "bytes", Max, "Most bytes by which near was exceeded because every page was pinned (0 in health).";
    MoveFallbacks, "move_fallbacks", "count", Sum, "Pages copied because the kernel refused to move them.";
    PinnedSkips, "pinned_skips", "count", Sum, "Evictions given up because the kernel held the page (direct I/O in flight, mlock).";
    FarRetries, "far_retries", "count", Sum, "Reads and writes of far that failed, and reads that brought wrong bytes, all of which were tried again (0 in health).";
    Forks, "forks", "count", Sum, "Forks taken while data was in far.";
    Checks, "page_table_checks", "count", Sum, "Checks of the whole page table against itself and the kernel (NEARFAR_CHECK; 0 in ordinary runs).";
    CallsCaught, "calls_caught", "count", Sum, "System calls on paged memory that were caught and handled, where userfaultfd misses the kernel's own accesses (docs/explanation/user-mode.md).";
    PlacedObjects, "placed_objects", "count", Sum, "Objects placed near, each by itself: heap blocks, mappings, static arrays, stacks (flat and hybrid mode).";
    PlacedBytes, "placed_bytes", "bytes", Sum, "Bytes of the placed objects, as asked for.";
    PlacedLive, "placed_live_bytes", "bytes", Gauge, "Bytes of placed objects that live now, touched or not.";
    PlacedPeak, "placed_peak_bytes", "bytes", Max, "Highest placed_live_bytes of one process.";
    PlacedCharged, "placed_charged_bytes", "bytes", Gauge, "Near memory that is set aside for placed objects now; a little more than placed_live_bytes.";
    SpilledObjects, "spilled_objects", "count", Sum, "Objects meant for near that went far because near was full (--full=spill).";
    SpilledBytes, "spilled_bytes", "bytes", Sum, "Bytes of these objects. Pages that the kernel put far, since the node was full, are not among them.";
    NearRefused, "near_refused", "count", Sum, "Allocations that failed with ENOMEM because near was full (--full=fail).";
    NearWaitNs, "near_wait_ns", "ns", Sum, "Time that threads of the program waited for room in near (--full=wait), summed over threads.";
    ReleasedBytes, "released_bytes", "bytes", Sum, "Memory that the program registered with a userfaultfd of its own: it is not paged, and what was in it counts as near.";
    SitesAsked, "sites_asked", "count", Sum, "Allocations whose call stack was compared with the plan.";
    SitesMatched, "sites_matched", "count", Sum, "Of these, the ones that the plan names.";
}

/// A number that is another one whenever the counters are others, or in another order (FNV-1a of their names).
pub const FINGERPRINT: u64 = {
    let (mut hash, mut index) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while index < COUNTERS.len() {
        let (name, mut at) = (COUNTERS[index].name().as_bytes(), 0);
        while at <= name.len() {
            // A zero ends each name.
            let byte = if at < name.len() { name[at] } else { 0 };
            hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        index += 1;
    }
    hash
};

/// What a demand read may bring, in words, and the counter of those that brought so much.
pub const GRAINS: [(&str, Counter); 4] = [
    ("4K", Counter::Demand4K),
    ("8K to 64K", Counter::Demand64K),
    ("64K to 256K", Counter::Demand256K),
    ("256K to 2M", Counter::Demand2M),
];

impl Counter {
    /// The counter of demand reads that bring `pages` pages of 4 KiB.
    pub const fn of_grain(pages: usize) -> Self {
        match pages {
            0..=1 => Self::Demand4K,
            2..=16 => Self::Demand64K,
            17..=64 => Self::Demand256K,
            _ => Self::Demand2M,
        }
    }
}

/// Number of counters.
pub const COUNTER_COUNT: usize = COUNTERS.len();

/// A copy of all counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    values: [u64; COUNTER_COUNT],
}

impl Default for Snapshot {
    fn default() -> Self {
        Self { values: [0; COUNTER_COUNT] }
    }
}

impl Snapshot {
    /// The value of `counter`.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Sets the value of `counter`.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
    }

    /// Adds another process's snapshot; `alive` says whether that process still runs (gauges of dead processes do not count).
    pub fn combine(&mut self, other: &Snapshot, alive: bool) {
        for &counter in COUNTERS {
            let (mine, theirs) = (self.get(counter), other.get(counter));
            let value = match counter.combine() {
                Combine::Sum => mine.saturating_add(theirs),
                Combine::Gauge if alive => mine.saturating_add(theirs),
                Combine::Gauge => mine,
                Combine::Max => mine.max(theirs),
            };
            self.set(counter, value);
        }
    }

    /// What was counted since `before`; amounts and maxima are as they are now.
    pub fn since(&self, before: &Snapshot) -> Snapshot {
        let mut since = self.clone();
        for &counter in COUNTERS.iter().filter(|counter| counter.combine() == Combine::Sum) {
            since.set(counter, self.get(counter).saturating_sub(before.get(counter)));
        }
        since
    }

    /// Raises every total to what it is in `other`, if that is more.
    pub fn raise_totals(&mut self, other: &Snapshot) {
        for &counter in COUNTERS.iter().filter(|counter| counter.combine() == Combine::Sum) {
            self.set(counter, self.get(counter).max(other.get(counter)));
        }
    }

    /// Share of faults on existing data (zero fills and stale ones left out) that did not wait for far, 0 to 1; `None` without any.
    pub fn near_hit_share(&self) -> Option<f64> {
        let hits = self.get(Counter::FaultsStaged) + self.get(Counter::FaultsRescued);
        let misses = self.get(Counter::FaultsDemand) + self.get(Counter::FaultsLate);
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    /// Seconds that far needs at the least for the bytes moved, at the highest rate seen in this run; `None` when that rate is unknown.
    pub fn bound_seconds(&self) -> Option<f64> {
        let rate = self.get(Counter::FarPeakBps);
        let bytes = self.get(Counter::BytesIn) + self.get(Counter::BytesOut);
        (rate > 0).then(|| bytes as f64 / rate as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_indices_match() {
        for (index, &counter) in COUNTERS.iter().enumerate() {
            assert_eq!(counter as usize, index);
            assert!(COUNTERS.iter().filter(|c| c.name() == counter.name()).count() == 1);
            assert!(counter.doc().ends_with('.') || counter.doc().ends_with(')'));
        }
    }

    #[test]
    fn reads_are_counted_by_their_size() {
        let sizes = [1, 2, 16, 17, 64, 65, 512].map(Counter::of_grain).map(Counter::name);
        assert_eq!(sizes, ["demand_4k", "demand_64k", "demand_64k", "demand_256k", "demand_256k", "demand_2m", "demand_2m"]);
    }

    #[test]
    fn dead_processes_keep_sums_and_lose_gauges() {
        let mut job = Snapshot::default();
        let mut process = Snapshot::default();
        process.set(Counter::BytesIn, 7);
        process.set(Counter::NearUsed, 9);
        job.combine(&process, false);
        job.combine(&process, true);
        assert_eq!((job.get(Counter::BytesIn), job.get(Counter::NearUsed)), (14, 9));
    }
}
