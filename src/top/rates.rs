//! What happened between two looks at a job or at one of its processes, per second. Pure.

use nearfar_core::stats::{Counter, GRAINS, Snapshot};
use serde::Serialize;

/// Who moves the pages of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Paging {
    /// nearfar's pager.
    Pager,
    /// The kernel, in a mapped file: nobody knows how long threads wait.
    Kernel,
    /// Nobody: near and far are NUMA nodes.
    Nodes,
}

/// Rates. `None`: nothing of the kind happened, or it cannot be known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Share of page faults on existing data that did not wait for far, 0 to 1.
    pub hit_share: Option<f64>,
    /// Page faults that waited for far.
    pub misses_per_s: Option<f64>,
    /// Bytes read from far.
    pub in_bytes_per_s: Option<f64>,
    /// Bytes written to far.
    pub out_bytes_per_s: Option<f64>,
    /// Seconds that threads waited for the pager, per second; above 1 when several wait at once.
    pub wait_share: Option<f64>,
    /// Share of the time in which far had something to do, 0 to 1 (of several processes: their sum).
    pub far_busy_share: Option<f64>,
    /// Reads and writes under way while far had something to do.
    pub far_depth: Option<f64>,
    /// Reads that a thread had to ask for, by how much they brought: 4K, up to 64K, up to 256K, up to 2M.
    pub grains_per_s: [f64; GRAINS.len()],
}

impl Rates {
    /// Of what was counted in `seconds`.
    pub fn of(since: &Snapshot, seconds: f64, paging: Paging) -> Self {
        let get = |counter| since.get(counter) as f64;
        let per_s = |count: f64| count / seconds.max(1e-3);
        if paging == Paging::Nodes {
            return Self::default();
        }
        let by_pager = |value: f64| (paging == Paging::Pager).then_some(value);
        let busy = get(Counter::FarBusyNs);
        Self {
            hit_share: since.near_hit_share(),
            misses_per_s: Some(per_s(get(Counter::FaultsDemand) + get(Counter::FaultsLate))),
            in_bytes_per_s: Some(per_s(get(Counter::BytesIn))),
            out_bytes_per_s: Some(per_s(get(Counter::BytesOut))),
            wait_share: by_pager(per_s(get(Counter::StallNs) / 1e9)),
            far_busy_share: by_pager(per_s(busy / 1e9)),
            far_depth: by_pager(get(Counter::FarQueueNs) / busy).filter(|depth| depth.is_finite()),
            grains_per_s: GRAINS.map(|(_, counter)| per_s(get(counter))),
        }
    }

    /// The grain that most reads brought, as an index into [`GRAINS`].
    pub fn usual_grain(&self) -> Option<usize> {
        let most = (0..GRAINS.len()).max_by(|&a, &b| self.grains_per_s[a].total_cmp(&self.grains_per_s[b]))?;
        (self.grains_per_s[most] > 0.0).then_some(most)
    }
}

/// What a process counted between `before` and `now`. One that has replaced itself (exec) begins at zero.
pub fn of_process(before: &Snapshot, now: &Snapshot) -> Snapshot {
    let is_new = now.get(Counter::Faults) < before.get(Counter::Faults);
    if is_new { now.clone() } else { now.since(before) }
}

/// The totals of a job, which never become less: those that are read may, for the moment in which a process is counted out.
#[derive(Clone, Debug, Default)]
pub struct Totals(Snapshot);

impl Totals {
    /// From now on.
    pub fn from(now: &Snapshot) -> Self {
        Self(now.clone())
    }

    /// What was counted since the last look.
    pub fn next(&mut self, now: &Snapshot) -> Snapshot {
        let since = now.since(&self.0);
        self.0.raise_totals(now);
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(counters: &[(Counter, u64)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        counters.iter().for_each(|&(counter, value)| snapshot.set(counter, value));
        snapshot
    }

    #[test]
    fn rates_are_of_the_interval() {
        let before = counted(&[(Counter::BytesIn, 1000), (Counter::FaultsDemand, 90), (Counter::StallNs, 5)]);
        let now = counted(&[
            (Counter::BytesIn, 3000),
            (Counter::FaultsDemand, 100),
            (Counter::FaultsLate, 10),
            (Counter::FaultsStaged, 60),
            (Counter::StallNs, 1_000_000_005),
            (Counter::FarBusyNs, 500_000_000),
            (Counter::FarQueueNs, 2_000_000_000),
            (Counter::Demand64K, 7),
            (Counter::Demand4K, 3),
        ]);
        let rates = Rates::of(&now.since(&before), 2.0, Paging::Pager);
        assert_eq!((rates.hit_share, rates.misses_per_s, rates.in_bytes_per_s), (Some(0.75), Some(10.0), Some(1000.0)));
        assert_eq!((rates.wait_share, rates.far_busy_share, rates.far_depth), (Some(0.5), Some(0.25), Some(4.0)));
        assert_eq!((rates.grains_per_s, rates.usual_grain()), ([1.5, 3.5, 0.0, 0.0], Some(1)));
        let kernel = Rates::of(&now.since(&before), 2.0, Paging::Kernel);
        assert_eq!((kernel.wait_share, kernel.far_depth, kernel.in_bytes_per_s), (None, None, Some(1000.0)));
        assert_eq!(Rates::of(&now, 2.0, Paging::Nodes), Rates::default());
    }

    #[test]
    fn nothing_happened() {
        let rates = Rates::of(&Snapshot::default(), 1.0, Paging::Pager);
        assert_eq!((rates.hit_share, rates.far_depth, rates.usual_grain()), (None, None, None));
        assert_eq!((rates.misses_per_s, rates.wait_share), (Some(0.0), Some(0.0)));
        assert!(Rates::of(&Snapshot::default(), 0.0, Paging::Pager).misses_per_s.is_some_and(f64::is_finite));
    }

    #[test]
    fn a_process_that_replaced_itself_begins_at_zero() {
        let old = counted(&[(Counter::Faults, 100), (Counter::BytesIn, 500)]);
        let new = counted(&[(Counter::Faults, 10), (Counter::BytesIn, 700)]);
        assert_eq!(of_process(&old, &new).get(Counter::BytesIn), 700);
        let more = counted(&[(Counter::Faults, 101), (Counter::BytesIn, 700)]);
        assert_eq!(of_process(&old, &more).get(Counter::BytesIn), 200);
    }

    #[test]
    fn totals_that_dip_do_not_jump_afterwards() {
        let at = |bytes| counted(&[(Counter::BytesIn, bytes)]);
        let mut totals = Totals::from(&at(1000));
        let mut next = |bytes| totals.next(&at(bytes)).get(Counter::BytesIn);
        assert_eq!((next(1100), next(300), next(1150), next(1150)), (100, 0, 50, 0));
    }
}
