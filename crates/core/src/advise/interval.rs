//! How far off a prediction may be: the same question asked of many models whose unknowns are drawn from what is plausible and from the
//! intervals of the profile.

use super::demand::Demands;
use super::machine::Machine;
use super::model::Model;
use super::unknowns::Unknowns;
use crate::profile::summary::{Estimate, Summary};
use crate::random_numbers::Random;

/// Draws: enough for the 5th and the 95th percentile.
const DRAWS: usize = 80;

/// Draws that are the same in every run: advice does not change when it is asked for again.
struct Draws(Random);

impl Draws {
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.0.unit()).sum::<f64>() - 6.0
    }

    /// Around `middle`, nine in ten within a factor of `factor`.
    fn around(&mut self, middle: f64, factor: f64) -> f64 {
        middle * (self.normal() * factor.ln() / 1.645).exp()
    }
}

/// Models with drawn unknowns.
pub fn draws<'a>(summary: &Summary, demands: &'a Demands, machine: &'a Machine) -> Vec<Model<'a>> {
    let mut random = Draws(Random::new(1));
    let middle = Unknowns::middle(summary);
    (0..DRAWS)
        .map(|_| {
            let traffic = summary.objects.iter().map(|group| {
                let total = group.total();
                // Where lines say nothing (it stays in the cache), visits of pages do.
                let known = if total.value > 0.0 { total } else { group.page_visits };
                let spread =
                    if known.value > 0.0 { ((known.high - known.low) / (3.29 * known.value)).clamp(0.0, 1.0) } else { 0.0 };
                (random.normal() * spread).exp()
            });
            let guess = Unknowns {
                traffic: traffic.collect(),
                overlap: random.around(middle.overlap, 2.0).max(1.0),
                paged_overlap: random.around(middle.paged_overlap, 1.8).max(1.0),
                parallelism: random.0.unit(),
                // Runs of one program on a shared machine differ by so much, whatever is near.
                unobserved: (1.0 - summary.overhead.clamp(0.0, 0.5) * (0.5 + random.0.unit())) * random.around(1.0, 1.1),
                rates: (random.around(1.0, 1.08), random.around(1.0, 1.08)),
                scaled: if machine.scaling.doubt > 1.0 { random.around(1.0, machine.scaling.doubt) } else { 1.0 },
            };
            Model::new(summary, demands, machine, guess)
        })
        .collect()
}

/// `value` with the interval that nine in ten of `drawn` are in.
pub fn estimate(value: f64, mut drawn: Vec<f64>) -> Estimate {
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((share * drawn.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(value);
    Estimate { value, low: at(0.05).min(value), high: at(0.95).max(value) }
}

#[cfg(test)]
mod tests {
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::{Far, Tier};
    use super::*;

    #[test]
    fn intervals_hold_the_value_and_grow_with_what_is_not_known() {
        let tier = |rate: f64| Tier::plain("t", rate, 100.0, 1e12);
        let machine = Machine {
            name: "m".into(),
            near: tier(100e9),
            far: Far::Memory(tier(10e9)),
            home: tier(10e9),
            cores: 1,
            cpus: 1,
            scaling: Default::default(),
            notes: Vec::new(),
        };
        let width = |spread: f64| {
            let mut group = swept("a", 1e9, 30.0, 4);
            (group.read.low, group.read.high) = (group.read.value * (1.0 - spread), group.read.value * (1.0 + spread));
            let summary = summary(5.0, 4, vec![group]);
            let demands = Demands::of(&summary);
            let models = draws(&summary, &demands, &machine);
            let middle = Model::new(&summary, &demands, &machine, Unknowns::middle(&summary)).time(&[1.0], 0.0);
            let found = estimate(middle, models.iter().map(|model| model.time(&[1.0], 0.0)).collect());
            assert!(found.low < middle && middle < found.high);
            found.high - found.low
        };
        assert!(width(0.6) > width(0.05));
        assert_eq!(estimate(2.0, Vec::new()), Estimate::exact(2.0));
    }
}
