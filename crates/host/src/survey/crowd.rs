//! One look at running threads: how many there are, against the CPUs that they may use, and how they lie on CPUs and cores.

use nearfar_core::affinity::Crowding;
use nearfar_core::node::{CpuList, Placement};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A thread that runs or wants to.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// CPU that it is on, or whose queue it is in.
    pub cpu: Option<u32>,
    /// CPUs that it may use.
    pub allowed: &'a CpuList,
}

/// A core, or the CPU itself where the kernel does not tell cores.
type Core = (Option<u32>, u32);

/// Core of each CPU.
pub struct Cores(HashMap<u32, Core>);

impl Cores {
    /// From where the CPUs are.
    pub fn new(placement: &[Placement]) -> Self {
        let core = |place: &Placement| match place.core {
            Some(core) => (place.package, core),
            None => (None, place.cpu),
        };
        Self(placement.iter().map(|place| (place.cpu, core(place))).collect())
    }

    fn of(&self, cpu: u32) -> Core {
        self.0.get(&cpu).copied().unwrap_or((None, cpu))
    }
}

/// Adds a look at `runners` to `crowding`.
pub fn count(crowding: &mut Crowding, runners: &[Runner<'_>], cores: &Cores) {
    if runners.is_empty() {
        return;
    }
    // Most threads have the same few lists.
    let lists: HashSet<&CpuList> = runners.iter().map(|runner| runner.allowed).collect();
    let cpus: BTreeSet<u32> = lists.iter().flat_map(|list| list.as_slice().iter().copied()).collect();
    crowding.looks += 1;
    let running = runners.len() as u32;
    if running > crowding.most {
        (crowding.most, crowding.cpus) = (running, cpus.len() as u32);
    }
    if running as usize > cpus.len() && !cpus.is_empty() {
        crowding.over += 1;
        return;
    }
    if piled(runners, |cpu| cpu) {
        crowding.stacked += 1;
    } else if piled(runners, |cpu| cores.of(cpu)) {
        crowding.siblings += 1;
    }
}

/// True when two runners are in one place while one of them may use a place that has none.
fn piled<P: Eq + std::hash::Hash + Copy>(runners: &[Runner<'_>], place: impl Fn(u32) -> P) -> bool {
    let mut used: HashMap<P, u32> = HashMap::new();
    for cpu in runners.iter().filter_map(|runner| runner.cpu) {
        *used.entry(place(cpu)).or_default() += 1;
    }
    let shares = |runner: &&Runner<'_>| runner.cpu.is_some_and(|cpu| used.get(&place(cpu)).is_some_and(|&count| count > 1));
    let has_choice = |runner: &Runner<'_>| runner.allowed.as_slice().iter().any(|&cpu| !used.contains_key(&place(cpu)));
    runners.iter().filter(shares).any(has_choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores of two hardware threads.
    fn look(cpus: &[(u32, &str)]) -> Crowding {
        let place = |cpu: u32| Placement { cpu, package: Some(0), core: Some(cpu / 2), node: Some(0) };
        let placement: Vec<Placement> = (0..4).map(place).collect();
        let lists: Vec<CpuList> = cpus.iter().map(|(_, list)| list.parse().expect("a list")).collect();
        let runners: Vec<Runner<'_>> =
            cpus.iter().zip(&lists).map(|((cpu, _), allowed)| Runner { cpu: Some(*cpu), allowed }).collect();
        let mut crowding = Crowding::default();
        count(&mut crowding, &runners, &Cores::new(&placement));
        crowding
    }

    #[test]
    fn one_look() {
        assert_eq!(look(&[]), Crowding::default());
        let spread = look(&[(0, "0-3"), (2, "0-3")]);
        assert_eq!(spread, Crowding { looks: 1, most: 2, cpus: 4, ..Crowding::default() });
        assert_eq!(look(&[(0, "0-3"), (0, "0-3")]).stacked, 1);
        assert_eq!(look(&[(0, "0-3"), (1, "0-3")]).siblings, 1);
        assert_eq!(look(&[(0, "0-1"), (1, "0-1")]).siblings, 0, "they have no other core");
        let over = look(&[(0, "0-1"), (1, "0-1"), (1, "0-1")]);
        assert_eq!((over.over, over.most, over.cpus, over.stacked), (1, 3, 2, 0));
    }
}
