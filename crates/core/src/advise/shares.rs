//! Which routine took how much of a stretch of the run, and which asks how much of each group of objects.

use crate::profile::summary::Summary;

/// Shares of the routines, and of none of them at the end, in each stretch.
pub struct Shares {
    /// Of the wall time, per stretch; each sums to 1.
    pub time: Vec<Vec<f64>>,
    /// CPU seconds, per stretch, without an end.
    pub cpu: Vec<Vec<f64>>,
    /// Of what is asked of each group, in the whole run.
    pub groups: Vec<Vec<f64>>,
}

/// Adds the kernel's CPU time, which samples leave out, to those that ran: first where they leave a part of the wall time free.
fn with_kernel(cpu: &mut [Vec<f64>], seconds: &[f64], kernel: f64) {
    let free = |ran: &[f64], seconds: f64| {
        let sum: f64 = ran.iter().sum();
        if sum > 0.0 { (seconds - sum).max(0.0) } else { 0.0 }
    };
    let all: f64 = cpu.iter().zip(seconds).map(|(ran, &seconds)| free(ran, seconds)).sum();
    let filled = if all > 0.0 { (kernel / all).min(1.0) } else { 0.0 };
    for (ran, &seconds) in cpu.iter_mut().zip(seconds) {
        let (sum, more) = (ran.iter().sum::<f64>(), filled * free(ran, seconds));
        ran.iter_mut().filter(|_| sum > 0.0).for_each(|ran| *ran *= 1.0 + more / sum);
    }
    let sum: f64 = cpu.iter().flatten().sum();
    let scale = if sum > 0.0 { 1.0 + (kernel - filled * all).max(0.0) / sum } else { 1.0 };
    cpu.iter_mut().flatten().for_each(|ran| *ran *= scale);
}

impl Shares {
    /// Those of `summary`, in stretches of so many seconds; `None` where the profile has no times of routines.
    pub fn of(summary: &Summary, seconds: &[f64]) -> Option<Self> {
        let all: f64 = summary.routines.iter().map(|routine| routine.self_s).sum();
        if all.is_nan() || all <= 0.0 || seconds.is_empty() {
            return None;
        }
        let wall: f64 = seconds.iter().sum();
        let bins = seconds.len();
        let mut cpu = vec![vec![0.0; summary.routines.len()]; bins];
        for (at, routine) in summary.routines.iter().enumerate() {
            let told: f64 = routine.time.iter().sum();
            if told > 0.0 {
                let fine = routine.time.len();
                routine.time.iter().enumerate().for_each(|(from, part)| cpu[from * bins / fine][at] += part);
                continue;
            }
            for (bin, seconds) in seconds.iter().enumerate() {
                let even = if wall > 0.0 { seconds / wall } else { 1.0 / bins as f64 };
                cpu[bin][at] = routine.self_s * even;
            }
        }
        with_kernel(&mut cpu, seconds, (summary.cpu_s - all).max(0.0));
        let time = cpu.iter().zip(seconds).map(|(ran, &seconds)| {
            let sum: f64 = ran.iter().sum();
            let whole = sum.max(seconds);
            if whole <= 0.0 {
                return ran.iter().map(|_| 0.0).chain([1.0]).collect();
            }
            ran.iter().map(|one| one / whole).chain([(whole - sum) / whole]).collect()
        });
        let time = time.collect();
        let groups = summary.objects.iter().map(|group| {
            let mut shares = vec![0.0; summary.routines.len()];
            for (name, share) in &group.routines {
                if let Some(at) = summary.routines.iter().position(|routine| routine.function == *name) {
                    shares[at] += share;
                }
            }
            shares
        });
        let groups = groups.collect();
        Some(Self { time, cpu, groups })
    }

    /// Whose what is asked of `group` in `bin` is: of those of its routines that ran then, by how much of their time was then.
    pub fn asking(&self, group: usize, bin: usize, totals: &[f64]) -> Vec<f64> {
        let known = &self.groups[group];
        let then = known.iter().zip(&self.cpu[bin]).zip(totals);
        let mut shares: Vec<f64> =
            then.map(|((share, ran), total)| if *total > 0.0 { share * ran / total } else { 0.0 }).chain([0.0]).collect();
        let sum: f64 = shares.iter().sum();
        if sum > 0.0 {
            shares.iter_mut().for_each(|share| *share /= sum);
            return shares;
        }
        // None of those who were seen at it ran: whoever did.
        self.time[bin].clone()
    }

    /// CPU seconds of each routine.
    pub fn totals(&self) -> Vec<f64> {
        let count = self.cpu.first().map_or(0, Vec::len);
        (0..count).map(|at| self.cpu.iter().map(|bin| bin[at]).sum()).collect()
    }

    /// What share of each stretch's wall time is of routines at work on each group: `[group][stretch]`. `visits` says how much each
    /// group was asked for in each; what a routine asks of several groups divides its time.
    pub fn at_work(&self, visits: &[&[f64]]) -> Vec<Vec<f64>> {
        let mut at_work: Vec<Vec<f64>> = visits.iter().map(|of| vec![0.0; of.len()]).collect();
        let count = self.cpu.first().map_or(0, Vec::len);
        for (bin, time) in self.time.iter().enumerate() {
            for (routine, &part) in time.iter().enumerate().take(count).filter(|(_, part)| **part > 0.0) {
                let asks = |group: usize| self.groups[group][routine] * visits[group].get(bin).copied().unwrap_or(0.0);
                let sum: f64 = (0..visits.len()).map(asks).sum();
                if sum > 0.0 {
                    (0..visits.len()).for_each(|group| at_work[group][bin] += part * asks(group) / sum);
                }
            }
        }
        at_work
    }
}
