//! Bandwidth of all nodes of a machine at once.

use super::measure::{FEW_ROWS, Session};
use nearfar_core::node::{Bandwidth, Figure, Validity};
use nearfar_kernels::probe as kernels;

/// The rate of two groups that were measured at the same time.
fn added(a: Figure, b: &Figure) -> Figure {
    if !a.is_valid() {
        return a;
    }
    if !b.is_valid() {
        return b.clone();
    }
    let worse = if b.validity == Validity::Noisy { b } else { &a };
    let (validity, why) = (worse.validity, worse.why.clone());
    Figure { median: a.median + b.median, low: a.low + b.low, high: a.high + b.high, validity, why, ..a }
}

impl Session<'_> {
    /// All CPUs at once, each on its node's own memory, where there are several nodes with CPUs: every group measures the same rows
    /// for the same time, and the rates are added up.
    pub(super) fn together(&mut self) {
        if self.plan.groups.len() < 2 {
            return;
        }
        self.progress.step("bandwidth of all nodes together");
        let groups = self.plan.groups.clone();
        let settings: Vec<kernels::StreamSetting> =
            groups.iter().map(|group| self.stream(&group.cores, None, group.node, FEW_ROWS)).collect();
        // Each group takes its share of what the machine has.
        let share = |setting: &kernels::StreamSetting| setting.limit_bytes / settings.len() as u64;
        let results: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = settings
                .iter()
                .map(|setting| {
                    let setting =
                        kernels::StreamSetting { limit_bytes: share(setting).max(3 * setting.array_bytes), ..setting.clone() };
                    scope.spawn(move || kernels::bandwidth(&setting))
                })
                .collect();
            runs.into_iter().map(|run| run.join()).collect()
        });
        let mut all: Vec<Vec<Bandwidth>> = Vec::new();
        for result in results {
            match result {
                Ok(Ok(measured)) => all.push(measured.rows),
                Ok(Err(error)) => return self.missing("bandwidth of all nodes together", error.to_string()),
                Err(_) => return self.missing("bandwidth of all nodes together", "a measuring thread failed"),
            }
        }
        let Some((first, others)) = all.split_first() else { return };
        for row in first {
            let same = |rows: &Vec<Bandwidth>| {
                rows.iter().find(|other| (other.operation, other.stores) == (row.operation, row.stores)).cloned()
            };
            let mut sum = Bandwidth { cpu_node: None, ..row.clone() };
            for other in others.iter().filter_map(same) {
                sum.threads += other.threads;
                sum.array_bytes += other.array_bytes;
                sum.rate = added(sum.rate, &other.rate);
            }
            self.node.bandwidth.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_is_wrong() {
        let (good, noisy) = (Figure::of(&[10.0, 10.0]), Figure::of(&[5.0, 6.0, 9.0]));
        let sum = added(good.clone(), &noisy);
        assert_eq!((sum.median, sum.low, sum.validity), (16.0, 15.0, Validity::Noisy));
        assert!(!added(good.clone(), &Figure::invalid("bad")).is_valid() && !added(Figure::invalid("bad"), &good).is_valid());
    }
}
