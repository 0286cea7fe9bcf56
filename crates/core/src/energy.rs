//! From counted joules to figures: watts, and joules per byte or flop above idle. Does not read counters: that is `sys::rapl`.

use crate::node::{Energy, Figure, Validity, median_with_interval};

/// Energy that was counted during some work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyUsed {
    /// Wall seconds.
    pub seconds: f64,
    /// Joules by domain ("package-0", "package-0/dram", ...).
    pub joules: Vec<(String, f64)>,
}

impl EnergyUsed {
    /// Watts of a domain.
    pub fn watts(&self, domain: &str) -> Option<f64> {
        let (_, joules) = self.joules.iter().find(|(name, _)| name == domain)?;
        (self.seconds > 0.0).then(|| joules / self.seconds)
    }
}

/// Shorter windows than this hold too few updates of the counters (one in about a millisecond) for a figure.
pub const SHORTEST_WINDOW_S: f64 = 0.05;

/// Energy of doing nothing: a row for each domain, in joules per second.
pub fn idle_rows(idle: &[EnergyUsed]) -> Vec<Energy> {
    domains(idle)
        .map(|domain| {
            let watts: Vec<f64> = idle.iter().filter_map(|spent| spent.watts(&domain)).collect();
            let joules = window_problem(idle).map_or_else(|| Figure::of(&watts), Figure::invalid);
            Energy { load: "idle".into(), watts: joules.median, joules, domain, unit: "second".into() }
        })
        .collect()
}

/// Energy of a load: for each domain that was counted, watts while it ran, and joules per unit of work above what the domain takes
/// when idle. `busy`: windows in which the load ran, with the units of work (bytes, flops, loads) done in each.
pub fn load_rows(load: &str, unit: &str, idle: &[EnergyUsed], busy: &[(EnergyUsed, f64)]) -> Vec<Energy> {
    let windows: Vec<EnergyUsed> = busy.iter().map(|(spent, _)| spent.clone()).collect();
    let rows = domains(&windows).map(|domain| {
        let idle_watts: Vec<f64> = idle.iter().filter_map(|spent| spent.watts(&domain)).collect();
        let watts: Vec<f64> = windows.iter().filter_map(|spent| spent.watts(&domain)).collect();
        let median = |values: &[f64]| if values.is_empty() { 0.0 } else { median_with_interval(values).0 };
        let joules = match window_problem(&windows) {
            Some(why) => Figure::invalid(why),
            None if idle_watts.is_empty() => Figure::invalid("the idle machine was not measured"),
            None if !busy.iter().all(|(_, units)| *units > 0.0) => Figure::invalid("no work was done"),
            None => {
                let base = median(&idle_watts);
                let above = busy.iter().filter_map(|(spent, units)| Some((spent.watts(&domain)? - base) * spent.seconds / units));
                above_idle(&above.collect::<Vec<f64>>())
            }
        };
        Energy { load: load.into(), watts: median(&watts), joules, domain, unit: unit.into() }
    });
    rows.collect()
}

/// A load may take no more than idling as far as a domain goes (DRAM in a compute kernel): that is a result, not a broken run.
fn above_idle(joules: &[f64]) -> Figure {
    if joules.iter().all(|joules| *joules > 0.0) {
        return Figure::of(joules);
    }
    let (median, low, high) = median_with_interval(joules);
    Figure {
        median: median.max(0.0),
        low: low.max(0.0),
        high: high.max(0.0),
        runs: joules.len() as u32,
        validity: Validity::Noisy,
        why: "not distinguishable from idle".into(),
        source: None,
    }
}

fn domains(windows: &[EnergyUsed]) -> impl Iterator<Item = String> {
    let names = windows.first().map(|spent| spent.joules.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    names.unwrap_or_default().into_iter()
}

fn window_problem(windows: &[EnergyUsed]) -> Option<&'static str> {
    let long = windows.iter().all(|spent| spent.seconds >= SHORTEST_WINDOW_S);
    (!long).then_some("a window was too short for the counters, which change every millisecond or so")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(seconds: f64, package: f64, dram: f64) -> EnergyUsed {
        EnergyUsed { seconds, joules: vec![("package-0".into(), package), ("dram".into(), dram)] }
    }

    #[test]
    fn joules_per_unit_are_above_idle() {
        let idle = [spent(1.0, 50.0, 5.0), spent(2.0, 100.0, 10.0), spent(1.0, 51.0, 5.0)];
        let rows = idle_rows(&idle);
        assert_eq!((rows[0].domain.as_str(), rows[0].watts, rows[1].joules.median), ("package-0", 50.0, 5.0));
        let busy = [(spent(1.0, 150.0, 5.0), 1e9), (spent(2.0, 300.0, 9.0), 2e9)];
        let rows = load_rows("triad", "byte", &idle, &busy);
        assert_eq!((rows[0].watts, rows[0].joules.median, rows[0].joules.validity), (150.0, 1e-7, Validity::Valid));
        // The second domain took less than idle: nothing is told, nothing is broken.
        assert_eq!((rows[1].joules.validity, rows[1].joules.low), (Validity::Noisy, 0.0));
    }

    #[test]
    fn what_cannot_be_is_invalid() {
        let idle = [spent(1.0, 50.0, 5.0)];
        for busy in [(spent(0.001, 1.0, 1.0), 1.0), (spent(f64::NAN, 1.0, 1.0), 1.0), (spent(1.0, 60.0, 6.0), 0.0)] {
            assert!(!load_rows("triad", "byte", &idle, &[busy])[0].joules.is_valid());
        }
        assert!(!load_rows("triad", "byte", &[], &[(spent(1.0, 60.0, 6.0), 1.0)])[0].joules.is_valid());
        assert!(idle_rows(&[]).is_empty());
    }
}
