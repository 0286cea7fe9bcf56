//! Judges where a program ran: figures in, warnings out. Thresholds are constants with their reasons.
//!
//! A few looks can be chance (start-up, another program's turn), so a warning takes a share of the looks, and enough of them.

use super::{Crowding, Launcher, Object, Pages, PidList, Process, Survey, Thread, Tier, Warning, team, tier_of};
use crate::node::{CpuList, Placement};
use std::collections::{BTreeMap, BTreeSet};

/// Share of looks from which on crowding is the rule, not a moment.
const OVER_SHARE: f64 = 0.1;
/// Share of looks at which threads lie badly or move: schedulers do so now and then.
const OFTEN: f64 = 0.33;
/// Shares of fewer looks mean nothing.
const FEWEST_LOOKS: u32 = 10;
/// Where less data lies hardly matters: caches hold a good part of it.
const MUCH_DATA: u64 = 64 << 20;
/// Beyond the reach of the second-level TLB with small pages many times over (1536 to 3072 entries of 4 KiB).
const NEEDS_HUGE: u64 = 256 << 20;
/// Share of the memory limit from which on the next allocation may be the last.
const LIMIT_SHARE: f64 = 0.9;

/// What is wrong with where the program of `survey` ran, worst first.
pub fn judge(survey: &Survey) -> Vec<Warning> {
    let mut warnings = Vec::new();
    crowded(survey, &mut warnings);
    let is_crowded = !warnings.is_empty();
    pinned(survey, &mut warnings);
    if !is_crowded && warnings.is_empty() {
        loose(survey, &mut warnings);
    }
    limits(survey, &mut warnings);
    for process in &survey.processes {
        if let Some(pages) = &process.memory {
            placed(survey, process, pages, &mut warnings);
        }
    }
    warnings
}

fn is_over(crowding: &Crowding) -> bool {
    crowding.looks >= FEWEST_LOOKS && crowding.over >= 2 && f64::from(crowding.over) >= OVER_SHARE * f64::from(crowding.looks)
}

fn over_share(crowding: &Crowding) -> f64 {
    f64::from(crowding.over) / f64::from(crowding.looks.max(1))
}

fn has_openmp<'a>(processes: impl IntoIterator<Item = &'a Process>) -> bool {
    processes.into_iter().any(|process| !process.openmp.is_empty())
}

fn launcher_of<'a>(processes: impl IntoIterator<Item = &'a Process>) -> Option<Launcher> {
    processes.into_iter().find_map(|process| process.rank.as_ref()).map(|rank| rank.launcher)
}

/// More threads than CPUs: per process, nested, ranks times threads, and all together.
fn crowded(survey: &Survey, warnings: &mut Vec<Warning>) {
    let over: Vec<&Process> = survey.processes.iter().filter(|process| is_over(&process.crowding)).collect();
    if !over.is_empty() {
        let pools: BTreeSet<_> = over.iter().flat_map(|process| process.pools.iter().copied()).collect();
        let share = over.iter().map(|process| over_share(&process.crowding)).fold(0.0, f64::max);
        warnings.push(Warning::Oversubscribed {
            processes: PidList(over.iter().map(|process| process.pid).collect()),
            threads: over.iter().map(|process| process.crowding.most).max().unwrap_or(0),
            cpus: over.iter().map(|process| process.crowding.cpus).min().unwrap_or(0),
            share,
            openmp: has_openmp(over.iter().copied()),
            pools: pools.into_iter().collect(),
            launcher: launcher_of(over.iter().copied()),
        });
    }
    let nested: Vec<&Process> = survey.processes.iter().filter(|process| is_nested(process)).collect();
    if let Some(first) = nested.first() {
        let pools: BTreeSet<_> = nested.iter().flat_map(|process| process.pools.iter().copied()).collect();
        warnings.push(Warning::Nested {
            processes: PidList(nested.iter().map(|process| process.pid).collect()),
            threads: nested.iter().map(|process| process.crowding.most).max().unwrap_or(0),
            team: team(first),
            asked: first.settings.contains_key("OMP_NUM_THREADS"),
            pools: pools.into_iter().collect(),
        });
    }
    ranks_times_threads(survey, warnings);
    if warnings.is_empty() && is_over(&survey.crowding) {
        let busy = survey.processes.iter().filter(|process| process.threads.iter().any(Thread::is_busy));
        warnings.push(Warning::Oversubscribed {
            processes: PidList(Vec::new()),
            threads: survey.crowding.most,
            cpus: survey.crowding.cpus,
            share: over_share(&survey.crowding),
            openmp: has_openmp(busy.clone()),
            pools: Vec::new(),
            launcher: launcher_of(busy),
        });
    }
}

/// More threads at once than the outermost team has: they are of inner teams, or of another library.
fn is_nested(process: &Process) -> bool {
    let team = team(process);
    let Some(first) = process.threads.first() else { return false };
    let like_openmp = process.threads.iter().filter(|thread| thread.name == first.name && thread.is_busy()).count();
    !process.openmp.is_empty() && process.crowding.most > team && like_openmp as u32 > team
}

fn ranks_times_threads(survey: &Survey, warnings: &mut Vec<Warning>) {
    let of_ranks = || survey.processes.iter().filter(|process| process.rank.is_some());
    let ranks: BTreeSet<u32> = of_ranks().filter_map(|process| process.rank.as_ref()).map(|rank| rank.number).collect();
    let threads = |process: &Process| process.threads.iter().filter(|thread| thread.openmp.is_some()).count() as u32;
    let threads = of_ranks().map(threads).max().unwrap_or(0);
    let cpus: CpuList = of_ranks().flat_map(|process| process.allowed.as_slice().iter().copied()).collect();
    let (ranks, cpus) = (ranks.len() as u32, cpus.len() as u32);
    if let (Some(launcher), true) = (launcher_of(of_ranks()), ranks > 1 && threads > 1 && ranks * threads > cpus) {
        warnings.push(Warning::RanksTimesThreads { ranks, threads, cpus, launcher });
    }
}

/// A core: its package and its number there, or the CPU itself where the kernel does not say.
type Core = (Option<u32>, Option<u32>, Option<u32>);

fn core_of(placement: &[Placement], cpu: u32) -> Core {
    match placement.iter().find(|place| place.cpu == cpu) {
        Some(place) if place.core.is_some() => (place.package, place.core, None),
        _ => (None, None, Some(cpu)),
    }
}

/// The core that all of `cpus` belong to.
fn only_core(placement: &[Placement], cpus: &CpuList) -> Option<Core> {
    let first = core_of(placement, *cpus.as_slice().first()?);
    cpus.as_slice().iter().all(|&cpu| core_of(placement, cpu) == first).then_some(first)
}

/// Most of `threads` that lived at one time.
fn most_at_once(threads: &[&Thread]) -> u32 {
    let at = |moment: f64| threads.iter().filter(|thread| thread.first_s <= moment && moment <= thread.last_s).count();
    threads.iter().map(|thread| at(thread.first_s)).max().unwrap_or(0) as u32
}

/// Busy threads that are pinned to one core each, the same for several.
fn pinned(survey: &Survey, warnings: &mut Vec<Warning>) {
    let all_cpus: CpuList = survey.processes.iter().flat_map(|process| process.allowed.as_slice().iter().copied()).collect();
    let mut by_core: BTreeMap<Core, Vec<&Thread>> = BTreeMap::new();
    // Of crowded processes that was said.
    let roomy = survey.processes.iter().filter(|process| !is_over(&process.crowding));
    for thread in roomy.flat_map(|process| &process.threads).filter(|thread| thread.is_busy()) {
        // Whoever may use one core only has no choice; that is oversubscription, if anything.
        if let Some(core) = only_core(&survey.placement, &thread.allowed)
            && thread.allowed.len() < all_cpus.len()
        {
            by_core.entry(core).or_default().push(thread);
        }
    }
    let cpus_of =
        |threads: &[&Thread]| -> CpuList { threads.iter().flat_map(|t| t.allowed.as_slice().iter().copied()).collect() };
    let (mut together, mut siblings) = (Vec::new(), Vec::new());
    for threads in by_core.values() {
        let at_once = most_at_once(threads);
        if at_once as usize > cpus_of(threads).len() || at_once > 1 && has_twins(threads) {
            together.extend(threads);
        } else if at_once > 1 {
            siblings.extend(threads);
        }
    }
    if !together.is_empty() {
        warnings.push(Warning::PinnedTogether {
            threads: together.len() as u32,
            cpus: cpus_of(&together),
            openmp: together.iter().any(|thread| thread.openmp.is_some()),
            launcher: launcher_of(&survey.processes),
        });
    }
    let cores: BTreeSet<Core> = all_cpus.as_slice().iter().map(|&cpu| core_of(&survey.placement, cpu)).collect();
    let idle_cores = cores.iter().filter(|core| !by_core.contains_key(*core)).count() as u32;
    if !siblings.is_empty() && idle_cores > 0 {
        warnings.push(Warning::PinnedToSiblings {
            threads: siblings.len() as u32,
            cpus: cpus_of(&siblings),
            idle_cores,
            openmp: siblings.iter().any(|thread| thread.openmp.is_some()),
        });
    }
}

/// Two of `threads` that live at one time have the same single CPU.
fn has_twins(threads: &[&Thread]) -> bool {
    let overlap = |a: &Thread, b: &Thread| a.first_s <= b.last_s && b.first_s <= a.last_s;
    let same = |a: &Thread, b: &Thread| a.allowed.len() == 1 && a.allowed == b.allowed && overlap(a, b);
    threads.iter().enumerate().any(|(index, a)| threads[index + 1..].iter().any(|b| same(a, b)))
}

/// Threads that are not bound and lie or move badly.
fn loose(survey: &Survey, warnings: &mut Vec<Warning>) {
    let crowding = &survey.crowding;
    let often = |looks: u32| crowding.looks >= FEWEST_LOOKS && f64::from(looks) > OFTEN * f64::from(crowding.looks);
    let share = |looks: u32| f64::from(looks) / f64::from(crowding.looks.max(1));
    let openmp = has_openmp(&survey.processes);
    if often(crowding.stacked) {
        warnings.push(Warning::Stacked { share: share(crowding.stacked), siblings: false, openmp });
    } else if often(crowding.siblings) {
        warnings.push(Warning::Stacked { share: share(crowding.siblings), siblings: true, openmp });
    }
    let moves = |thread: &Thread| {
        let looks: u32 = thread.seen.iter().map(|(_, looks)| looks).sum();
        let share = f64::from(thread.moves) / f64::from(looks.max(1));
        (looks >= FEWEST_LOOKS && thread.is_busy() && share > OFTEN).then_some((share, thread.openmp.is_some()))
    };
    let moving: Vec<(f64, bool)> = survey.processes.iter().flat_map(|process| &process.threads).filter_map(moves).collect();
    if !moving.is_empty() {
        warnings.push(Warning::Migrating {
            threads: moving.len() as u32,
            share: moving.iter().map(|(share, _)| *share).fold(0.0, f64::max),
            openmp: moving.iter().any(|(_, openmp)| *openmp),
            launcher: launcher_of(&survey.processes),
        });
    }
}

/// Limits from outside.
fn limits(survey: &Survey, warnings: &mut Vec<Warning>) {
    let limits = &survey.limits;
    let threads = survey.crowding.most;
    if let Some(quota) = limits.quota_cpus
        && f64::from(threads) > quota + 0.5
        && threads > 1
    {
        let openmp = has_openmp(&survey.processes);
        warnings.push(Warning::QuotaBelowThreads { quota, threads, throttled: limits.throttled, openmp });
    }
    if let (Some(limit), Some(used)) = (limits.memory_bytes, limits.memory_used_bytes)
        && used as f64 >= LIMIT_SHARE * limit as f64
    {
        warnings.push(Warning::MemoryLimitNear { used, limit });
    }
}

/// Where the pages of one process lie.
fn placed(survey: &Survey, process: &Process, pages: &Pages, warnings: &mut Vec<Warning>) {
    let pid = process.pid;
    let swap = pages.swap_bytes();
    if swap >= 1 << 20 && swap as f64 >= 0.01 * (pages.bytes() + swap) as f64 {
        warnings.push(Warning::Swapped { pid, bytes: swap });
    }
    if pages.nodes_known {
        on_nodes(survey, process, pages, warnings);
    }
    let arrays = [Object::Heap, Object::Anonymous, Object::ProgramData];
    let arrays = pages.objects.iter().filter(|pages| arrays.contains(&pages.object));
    let (bytes, huge) = arrays.fold((0, 0), |(bytes, huge), pages| (bytes + pages.bytes, huge + pages.huge_bytes));
    let share = huge as f64 / bytes.max(1) as f64;
    if let (Some(setting), true) = (&survey.limits.huge_pages, bytes >= NEEDS_HUGE && share < 0.1) {
        warnings.push(Warning::SmallPages { pid, bytes, share, setting: setting.clone() });
    }
}

fn on_nodes(survey: &Survey, process: &Process, pages: &Pages, warnings: &mut Vec<Warning>) {
    let pid = process.pid;
    let by_node = pages.own_by_node();
    let total: u64 = by_node.values().sum();
    let Some((&pages_on, &most)) = by_node.iter().max_by_key(|(_, bytes)| **bytes) else { return };
    if total < MUCH_DATA {
        return;
    }
    let far: u64 = by_node.iter().filter(|(id, _)| tier_of(&survey.nodes, **id) == Some(Tier::Far)).map(|(_, bytes)| bytes).sum();
    let near = survey.nodes.iter().filter(|node| tier_of(&survey.nodes, node.id) == Some(Tier::Near));
    let near_free: u64 = near.clone().map(|node| node.free_bytes).sum();
    if far * 2 > total && near_free >= far.min(1 << 30) {
        warnings.push(Warning::PagesInFar { pid, bytes: far, near: near.map(|node| node.id).collect(), near_free });
    }
    let share = most as f64 / total as f64;
    let busy = process.threads.iter().filter(|thread| thread.is_busy());
    let threads_on: CpuList = busy.filter_map(|thread| survey.place(thread.usual_cpu()?).node).collect();
    let usual = pages.policies.iter().max_by_key(|(_, bytes)| **bytes).map(|(policy, _)| policy.clone());
    let policy = usual.filter(|policy| policy != "default" && policy != "local");
    // Memory without CPUs is remote to all: that is a question of tiers.
    let has_cpus = survey.nodes.iter().any(|node| node.id == pages_on && !node.cpus.is_empty());
    match threads_on.as_slice() {
        [only] if has_cpus && *only != pages_on && share > 0.5 => {
            warnings.push(Warning::RemoteMemory { pid, threads_on: *only, pages_on, share, policy });
        }
        [_, _, ..] if has_cpus && share >= 0.9 => {
            warnings.push(Warning::OneNodeHasAll { pid, pages_on, share, threads_on, policy });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
