//! What memory and time cost: for each size of near the price of a run and of the memory, and which of these configurations nobody beats
//! in both time and price (the Pareto front).

use super::advice::Point;
use serde::{Deserialize, Serialize};

const GIB: f64 = 1_073_741_824.0;
const HOURS_A_YEAR: f64 = 8766.0;

/// A file of prices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// What numbers are in, for people: "EUR".
    pub currency: String,
    /// An hour of the machine without its memory; 0: only memory counts.
    #[serde(default)]
    pub machine_hour: f64,
    /// The fast and small memory.
    pub near: Memory,
    /// The other one.
    pub far: Memory,
}

/// What a memory costs: by the hour, or bought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// For people.
    #[serde(default)]
    pub name: String,
    /// A GiB for an hour.
    pub gib_hour: Option<f64>,
    /// A GiB, bought,
    pub gib: Option<f64>,
    /// and used for so many years.
    pub years: Option<f64>,
}

/// Why prices cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongPrice {
    /// Neither way of giving it.
    #[error("[{0}] has no price: write gib_hour (a GiB for an hour), or gib and years (a GiB, bought, and how long it is used)")]
    None(&'static str),
    /// Both ways.
    #[error("[{0}] has two prices: write gib_hour, or gib and years, not both")]
    Two(&'static str),
    /// Not a price.
    #[error("{what} is {value}: write a number of 0 or more")]
    Number {
        /// Which.
        what: String,
        /// What was written.
        value: String,
    },
}

/// A size of near with what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Priced {
    /// Bytes of near.
    pub near: f64,
    /// Bytes of far.
    pub far: f64,
    /// Predicted seconds of a run by plan.
    pub seconds: f64,
    /// Price of all memory for an hour.
    pub memory_hour: f64,
    /// Price of a run: machine and memory as long as it takes.
    pub run: f64,
    /// No other size is both faster and cheaper in memory.
    pub front: bool,
}

impl Memory {
    fn hour(&self, which: &'static str) -> Result<f64, WrongPrice> {
        let number = |what: &str, value: f64, least: f64| match value.is_finite() && value >= least {
            true => Ok(value),
            false => Err(WrongPrice::Number { what: format!("[{which}] {what}"), value: value.to_string() }),
        };
        match (self.gib_hour, self.gib, self.years) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(WrongPrice::Two(which)),
            (Some(price), None, None) => number("gib_hour", price, 0.0),
            (None, Some(price), Some(years)) => {
                Ok(number("gib", price, 0.0)? / (number("years", years, f64::MIN_POSITIVE)? * HOURS_A_YEAR))
            }
            (None, ..) => Err(WrongPrice::None(which)),
        }
    }
}

impl Prices {
    /// Whether all of them are prices.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), WrongPrice> {
        let machine = self.machine_hour;
        if !machine.is_finite() || machine < 0.0 {
            return Err(WrongPrice::Number { what: "machine_hour".to_owned(), value: machine.to_string() });
        }
        self.near.hour("near")?;
        self.far.hour("far").map(|_| ())
    }

    /// `curve` with prices, for a program of `peak` bytes that has `part` of the machine, which is priced as a whole. Where pages are cached,
    /// near holds copies: at least `cache` bytes of near are that.
    ///
    /// # Errors
    /// What is no price.
    pub fn of(&self, curve: &[Point], peak: f64, cache: Option<f64>, part: f64) -> Result<Vec<Priced>, WrongPrice> {
        self.check()?;
        let (near_hour, far_hour) = (self.near.hour("near")? / GIB, self.far.hour("far")? / GIB);
        let mut priced: Vec<Priced> = curve
            .iter()
            .map(|point| {
                let (near, far) = match cache {
                    Some(cache) => (point.near.max(cache), if point.near >= peak + cache { 0.0 } else { peak }),
                    None => (point.near, (peak - point.near).max(0.0)),
                };
                let (near, far) = (near / part, far / part);
                let memory_hour = near * near_hour + far * far_hour;
                let run = (self.machine_hour + memory_hour) * point.plan / 3600.0;
                Priced { near, far, seconds: point.plan, memory_hour, run, front: true }
            })
            .collect();
        for at in 0..priced.len() {
            let one = priced[at];
            let beats = |other: &Priced| {
                let as_good = other.seconds <= one.seconds && other.memory_hour <= one.memory_hour;
                as_good && (other.seconds < one.seconds || other.memory_hour < one.memory_hour)
            };
            priced[at].front = !priced.iter().any(beats);
        }
        Ok(priced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prices() -> Prices {
        let memory = |gib_hour: f64| Memory { name: "m".into(), gib_hour: Some(gib_hour), gib: None, years: None };
        Prices { currency: "EUR".into(), machine_hour: 3.6, near: memory(0.1), far: memory(0.01) }
    }

    #[test]
    fn a_run_costs_machine_and_memory_as_long_as_it_takes() {
        let point = |near: f64, plan: f64| Point { near: near * GIB, plan, cache: plan };
        let found =
            prices().of(&[point(0.0, 100.0), point(4.0, 50.0), point(8.0, 50.0), point(16.0, 20.0)], 16.0 * GIB, None, 1.0);
        let found = found.expect("prices");
        assert!((found[1].memory_hour - 0.52).abs() < 1e-9 && (found[1].run - (3.6 + 0.52) * 50.0 / 3600.0).abs() < 1e-9);
        let front: Vec<bool> = found.iter().map(|one| one.front).collect();
        assert_eq!(front, [true, true, false, true], "8 GiB are no faster than 4");
        // A cache holds copies.
        let found = prices().of(&[point(4.0, 50.0)], 16.0 * GIB, Some(1.0), 1.0).expect("prices");
        assert!((found[0].memory_hour - 0.56).abs() < 1e-9);
        // As one of two ranks; and no near at all cannot be had.
        let found = prices().of(&[point(0.0, 50.0)], 16.0 * GIB, Some(GIB), 0.5).expect("prices");
        assert!((found[0].memory_hour - 2.0 * (0.1 + 0.16)).abs() < 1e-9);
    }

    #[test]
    fn what_was_bought_is_divided_by_its_hours() {
        let bought = Memory { name: String::new(), gib_hour: None, gib: Some(87.66), years: Some(5.0) };
        assert!((bought.hour("near").expect("a price") - 0.002).abs() < 1e-12);
        let wrong = |gib_hour: Option<f64>, gib: Option<f64>, years: Option<f64>| {
            Memory { name: String::new(), gib_hour, gib, years }.hour("near").expect_err("no price")
        };
        assert_eq!(wrong(None, Some(1.0), None), WrongPrice::None("near"));
        assert_eq!(wrong(Some(1.0), Some(1.0), Some(1.0)), WrongPrice::Two("near"));
        assert!(matches!(wrong(Some(-1.0), None, None), WrongPrice::Number { .. }));
        assert!(matches!(wrong(None, Some(1.0), Some(0.0)), WrongPrice::Number { .. }));
    }

    proptest! {
        #[test]
        fn what_is_not_on_the_front_is_beaten_by_one_that_is(points in prop::collection::vec((0.0..1e11f64, 0.1..100.0f64), 1..20)) {
            let curve: Vec<Point> = points.iter().map(|&(near, plan)| Point { near, plan, cache: plan }).collect();
            let found = prices().of(&curve, 1e11, None, 1.0).expect("prices");
            for one in found.iter().filter(|one| !one.front) {
                prop_assert!(found.iter().any(|other| other.front && other.seconds <= one.seconds && other.memory_hour <= one.memory_hour));
            }
        }
    }
}
