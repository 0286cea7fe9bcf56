//! What a profile says of its number of threads: what is computed and what is moved, for [`super::scaling`] to fit.

use super::demand::Demands;
use super::machine::{Far, Machine};
use super::model::Model;
use super::scaling::{Sample, Scaling};
use super::unknowns::Unknowns;
use crate::profile::summary::Summary;

/// That of a profile that was taken on the home of `machine`.
pub fn sample(summary: &Summary, machine: &Machine) -> Sample {
    let demands = Demands::of(summary);
    // As at home: what memory does not explain there is computing.
    let at_home = Machine { far: Far::Memory(machine.home.clone()), scaling: Scaling::default(), ..machine.clone() };
    let model = Model::new(summary, &demands, &at_home, Unknowns::middle(summary));
    let computing = (0..demands.seconds.len()).map(|bin| model.at_home(bin).1).sum();
    let traffic = summary.objects.iter().map(|group| group.total().value).sum();
    Sample { threads: demands.threads(), computing, traffic }
}

#[cfg(test)]
mod tests {
    use super::super::demand::tests::{summary, swept};
    use super::super::machine::Tier;
    use super::*;

    #[test]
    fn a_sample_leaves_out_what_memory_explains() {
        let tier = Tier { per_core: 10e9, ..Tier::plain("t", 10e9, 100.0, 1e12) };
        let machine = Machine {
            name: "m".into(),
            near: tier.clone(),
            far: Far::Memory(tier.clone()),
            home: tier,
            cores: 1,
            cpus: 1,
            scaling: Scaling::default(),
            notes: Vec::new(),
        };
        let of = |sweeps: f64| sample(&summary(10.0, 10, vec![swept("a", 1e9, sweeps, 10)]), &machine);
        // 90 GB at 10 GB/s are 9 of the 10 s.
        assert!(of(1.0).computing > 9.9 && of(90.0).computing < 7.0, "{:?} {:?}", of(1.0), of(90.0));
        assert_eq!(of(1.0).threads, 1.0);
    }
}
