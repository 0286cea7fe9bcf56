//! What is asked about: the machine that was named, or this one over a far tier.

use crate::cli::advise::AdviseArgs;
use crate::exit::refuse;
use crate::launch::kernel_program;
use crate::probe::{compare, far};
use crate::ui::message;
use crate::{machine, sample};
use nearfar_core::advise::machine::{Machine, MachineError, Paged, Tier, home};
use nearfar_core::advise::overlap::{PAGED_OVERLAP, without};
use nearfar_core::advise::scaling::Scaling;
use nearfar_core::node::{FarAccess, FarTier, Node, Precision};
use nearfar_core::policy::timed::Costs;
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What the pager takes for a page that a thread waits for, beside the device, where it cannot be measured.
const FAULT_NS: f64 = 12_000.0;
/// And for one that was fetched ahead, per page: it is moved in with many others.
const PAGE_NS: f64 = 350.0;
/// Cache of far that a plan leaves in flat mode at the least, and its share of near. `run` takes half of that too, but then streams pass in
/// pieces, and the pager works hard.
const CACHE: (f64, f64) = (32.0 * 1_048_576.0, 64.0);
/// Bandwidth and latency of ordinary memory, of which a paged far is far away in any case.
const ORDINARY: (f64, f64) = (20e9, 100.0);
const MEASURE: Duration = Duration::from_secs(3);

/// Bytes of near.
pub fn near(spec: &NearSpec) -> anyhow::Result<f64> {
    match spec {
        NearSpec::Node { limit: None, .. } => Err(refuse(format_args!(
            "--near {spec}: write a size, such as 16G; the machine's description says which nodes are near"
        ))),
        spec => match spec.budget(machine::memory_limit().bytes) {
            Some(bytes) if bytes > 0 => Ok(bytes as f64),
            _ => Err(refuse(format_args!("--near {spec}: there must be some near memory; write a size above 0"))),
        },
    }
}

/// Refuses a far that is nodes.
pub fn check_far(far: Option<&FarSpec>) -> anyhow::Result<()> {
    match far {
        Some(spec @ FarSpec::Node { .. }) => Err(refuse(format_args!(
            "--far {spec}: nothing is paged between nodes; describe the machine instead: --machine node.json (nearfar probe -o)"
        ))),
        _ => Ok(()),
    }
}

/// The machine, of which `near` bytes are near.
pub fn machine(args: &AdviseArgs, near: f64) -> anyhow::Result<Machine> {
    let named = args.machine.as_deref().filter(|name| *name != "this");
    let node = named.map(compare::find).transpose()?;
    let home_node = args.home.as_deref().map(compare::find).transpose()?;
    let at_home = home_node.as_ref().map(home).transpose().map_err(refuse)?;
    let core = home_node.as_ref().zip(node.as_ref()).and_then(|(from, to)| Some(per_core(from)? / per_core(to)?));
    let this = || Tier::plain("memory", ORDINARY.0, ORDINARY.1, f64::INFINITY);
    let found = match (&args.far, node) {
        (Some(spec), node) => {
            let own = node.as_ref().and_then(|node| home(node).ok());
            let tier = at_home.or(own).unwrap_or_else(this);
            let known = node.as_ref().and_then(|node| node.far.iter().find(|far| far.spec == spec.to_string()));
            let paged = match (spec, known) {
                (FarSpec::Emulated { bytes_per_s, latency_ns }, _) => {
                    emulated(spec, *bytes_per_s as f64, *latency_ns as f64, near)
                }
                (_, Some(far)) => of_points(far, near)?,
                _ => {
                    message::line(format_args!("measuring {spec} for a few seconds"));
                    let far = far::measure(&spec.to_string(), true, MEASURE, |_| ());
                    of_points(&far.map_err(|missing| refuse(format_args!("{}: {}", missing.what, missing.why)))?, near)?
                }
            };
            // What paging costs is measured where it will be paid.
            let paged = if named.is_none() { calibrated(spec, paged) } else { paged };
            let name = node.as_ref().map_or_else(|| "this machine".to_owned(), |node| node.name.clone());
            let machine = Machine::paged(&name, tier, paged);
            let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32);
            Ok(match node {
                Some(node) => machine.with_cores(&node),
                None if args.threads.is_some() || args.ranks.is_some() => {
                    let note = format!(
                        "memory of this machine is taken to move {:.0} GB/s; name it with --home node.json (nearfar probe -o)",
                        ORDINARY.0 / 1e9
                    );
                    let notes = if args.home.is_some() { Vec::new() } else { vec![note] };
                    Machine { cores: cpus, cpus, notes, ..machine }
                }
                None => machine,
            })
        }
        (None, Some(node)) => of_node(&node, at_home, this(), near),
        (None, None) => Err(refuse(
            "no machine is named; write --far emu:bw=4G,lat=10us or a directory for this machine's memory over that; --machine knl-flat or another \
             one of \"nearfar probe --list-machines\"; or --machine node.json, as \"nearfar probe\" writes it",
        )),
    };
    found.map(|machine: Machine| match core {
        Some(core) => Machine { scaling: Scaling { core, ..machine.scaling }, ..machine },
        None => machine,
    })
}

/// Operations per second of a core, in double precision; `None`: not known.
fn per_core(node: &Node) -> Option<f64> {
    let peak = node.peak(Precision::F64)?;
    let cores = if peak.threads > 0 { peak.threads } else { node.topology.cores? };
    (cores > 0 && peak.rate.median > 0.0).then(|| peak.rate.median / f64::from(cores))
}

/// Refuses more near memory than the machine has, where that is known.
pub fn fits(machine: &Machine, spec: &NearSpec, near: f64) -> anyhow::Result<()> {
    let has = machine.near.bytes;
    if !has.is_finite() || has <= 0.0 || near <= has {
        return Ok(());
    }
    let (near, has) = (Bytes(near as u64), Bytes(has as u64));
    Err(refuse(format_args!("--near {spec}: that is {near}, but {} has {has} of near memory; write at most that", machine.name)))
}

fn of_node(node: &Node, at_home: Option<Tier>, this: Tier, near: f64) -> anyhow::Result<Machine> {
    match Machine::of_node(node, at_home.clone()) {
        Ok(machine) => Ok(machine),
        // One memory, but a device: pages.
        Err(MachineError::OneMemory(_) | MachineError::NoBandwidth { .. }) if !node.far.is_empty() => {
            let tier = at_home.or_else(|| home(node).ok()).unwrap_or(this);
            Ok(Machine::paged(&node.name, tier, of_points(&node.far[0], near)?))
        }
        Err(error) => Err(refuse(error)),
    }
}

/// Data of the measuring program, its near memory, and random accesses.
const DATA_MIB: f64 = 384.0;
const NEAR_MIB: f64 = 32.0;
const ACCESSES: f64 = 12_000.0;
const SWEEPS: usize = 4;
/// As often where far is emulated and nothing waits: these take little, and what disturbs one of them counts most.
const QUICK_SWEEPS: usize = 16;

/// A far tier that no paging waits for: what is left is what handling a page takes.
const AT_ONCE: &str = "emu:bw=200G,lat=0";

/// The far tier with what its pages cost a program here: a program of ours touches each page of its data in order, with and without writing,
/// pages at random, and memory that it makes anew. As it was where that cannot be run.
fn calibrated(spec: &FarSpec, paged: Paged) -> Paged {
    message::line(format_args!("measuring what paging over {spec} costs here, for a few seconds"));
    let is_emulated = matches!(spec, FarSpec::Emulated { .. });
    // A device is not always as fast: there the middle one counts.
    let usual = |seconds: &[f64]| if is_emulated { fastest(seconds) } else { sample::median(seconds) };
    let run = |workload: &[&str]| usual(&repetitions(&spec.to_string(), workload, SWEEPS)?);
    let sweep = ["strided", "--stride", "4096"];
    // Beside what it takes without far: that is in the time of the profile.
    let made_anew = || Some((run(&["touch"])?, fastest(&plain_touches()?)?));
    let (Some(handled), Some(read), Some(update), Some(random), Some((new, plain))) = (
        repetitions(AT_ONCE, &sweep, QUICK_SWEEPS).and_then(|seconds| fastest(&seconds)),
        run(&sweep),
        run(&["strided", "--stride", "4096", "--update"]),
        run(&["random", "--ops", &ACCESSES.to_string()]),
        made_anew(),
    ) else {
        message::line("that could not be measured: typical figures are used instead");
        return paged;
    };
    // What of the accesses finds its page far.
    let far = 1.0 - NEAR_MIB / DATA_MIB;
    let pages = DATA_MIB * 256.0 * far;
    let (page_ns, read_ns, update_ns) = (handled / pages * 1e9, read / pages * 1e9, update / pages * 1e9);
    // Pages are handled while others are on their way, which takes at least what an emulated tier lets them take.
    let least_ns = if is_emulated { 4096e9 / paged.read } else { 0.0 };
    let moved = |ns: f64| without(ns, page_ns, PAGED_OVERLAP).max(0.2 * ns);
    let moved_ns = moved(read_ns).max(least_ns);
    let back_ns = (moved(update_ns) - moved_ns).max(0.1 * moved_ns).max(least_ns);
    Paged {
        read: 4096e9 / moved_ns,
        write: 4096e9 / back_ns,
        one_channel: true,
        fault_ns: random / (ACCESSES * far) * 1e9,
        page_ns,
        new_ns: (without(new / pages * 1e9, back_ns, PAGED_OVERLAP) - plain / pages * far * 1e9).max(0.0),
        ..paged
    }
}

/// The least of `seconds`: what else the machine does makes it slower, never faster.
fn fastest(seconds: &[f64]) -> Option<f64> {
    seconds.iter().copied().min_by(f64::total_cmp)
}

/// Seconds of `sweeps` repetitions of a workload of `nearfar-kernel` by one thread over that far tier.
fn repetitions(far: &str, workload: &[&str], sweeps: usize) -> Option<Vec<f64>> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["run", "--quiet", "--mode", "cache", "--near", &format!("{NEAR_MIB}M"), "--far", far, "--"]);
    seconds_of(command.arg(kernel_program::find().ok()?), workload, sweeps)
}

/// The same of memory that is made anew, without nearfar.
fn plain_touches() -> Option<Vec<f64>> {
    seconds_of(&mut Command::new(kernel_program::find().ok()?), &["touch"], SWEEPS)
}

fn seconds_of(command: &mut Command, workload: &[&str], sweeps: usize) -> Option<Vec<f64>> {
    command.args(workload).args(["--sweeps", &sweeps.to_string()]);
    command.args(["--bytes", &format!("{DATA_MIB}M"), "--threads", "1", "--verify", "none", "--json"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let seconds = kernel_program::seconds(std::str::from_utf8(&output.stdout).ok()?)?;
    (output.status.success() && seconds.iter().all(|&seconds| seconds > 0.0)).then_some(seconds)
}

/// Takes for a fault, from the instruction and back, where nothing is read.
const EMPTY_FAULT_NS: f64 = 14_000.0;

/// What paging over that far tier costs here, for a replay with times.
///
/// # Errors
/// A refusal: it cannot be measured.
pub fn paging_costs(spec: &FarSpec) -> anyhow::Result<Costs> {
    let paged = match spec {
        FarSpec::Emulated { bytes_per_s, latency_ns } => emulated(spec, *bytes_per_s as f64, *latency_ns as f64, 0.0),
        _ => {
            message::line(format_args!("measuring {spec} for a few seconds"));
            let far = far::measure(&spec.to_string(), true, MEASURE, |_| ());
            of_points(&far.map_err(|missing| refuse(format_args!("{}: {}", missing.what, missing.why)))?, 0.0)?
        }
    };
    let paged = calibrated(spec, paged);
    let transfer_ns = 4096e9 / paged.read;
    Ok(Costs {
        visit_ns: 0.0,
        fault_ns: EMPTY_FAULT_NS,
        page_ns: paged.page_ns,
        latency_ns: (paged.fault_ns - EMPTY_FAULT_NS - transfer_ns).max(0.0),
        bytes_per_s: paged.read,
        width: 1.0,
    })
}

fn cache(near: f64) -> f64 {
    (near / CACHE.1).max(CACHE.0)
}

fn emulated(spec: &FarSpec, bytes_per_s: f64, latency_ns: f64, near: f64) -> Paged {
    Paged {
        name: spec.to_string(),
        read: bytes_per_s,
        write: bytes_per_s,
        one_channel: true,
        fault_ns: FAULT_NS + latency_ns + 4096e9 / bytes_per_s,
        page_ns: PAGE_NS,
        new_ns: 0.0,
        cache_bytes: cache(near),
    }
}

/// A far tier that was measured: streams at its best rate, waits at the time of a single small request.
fn of_points(far: &FarTier, near: f64) -> anyhow::Result<Paged> {
    let best = |access: FarAccess| {
        let points = far.points.iter().filter(|point| point.access == access && point.rate.median > 0.0);
        points.map(|point| point.rate.median).max_by(f64::total_cmp)
    };
    let alone = far.points.iter().filter(|point| point.access == FarAccess::RandomRead && point.time.median > 0.0);
    let alone = alone.min_by_key(|point| (point.depth, point.request_bytes)).map(|point| point.time.median);
    let Some(read) = best(FarAccess::SequentialRead).or_else(|| best(FarAccess::RandomRead)) else {
        return Err(refuse(format_args!("the bandwidth of {} is not known: nothing can be predicted for it", far.spec)));
    };
    Ok(Paged {
        name: far.spec.clone(),
        read,
        write: best(FarAccess::SequentialWrite).or_else(|| best(FarAccess::RandomWrite)).unwrap_or(read),
        one_channel: false,
        fault_ns: FAULT_NS + alone.unwrap_or(100_000.0),
        page_ns: PAGE_NS,
        new_ns: 0.0,
        cache_bytes: cache(near),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;
    use nearfar_core::advise::machine::Far;

    #[test]
    fn every_published_machine_with_two_memories_can_be_asked_about() {
        let this = || Tier::plain("memory", 1e9, 100.0, 1e9);
        let mut two = 0;
        for name in preset::names() {
            let node = preset::find(name).expect("found");
            match of_node(&node, None, this(), 1e9) {
                Ok(machine) => {
                    two += usize::from(matches!(machine.far, Far::Memory(_)));
                    let near = &machine.near;
                    assert!(
                        near.read > 0.0 && near.write > 0.0 && near.per_core > 0.0 && near.latency_ns > 1.0,
                        "{name}: {near:?}"
                    );
                }
                Err(error) => assert!(error.to_string().contains("memory"), "{name}: {error}"),
            }
        }
        assert!(two >= 4, "{two}");
        let knl = of_node(&preset::find("knl-flat").expect("found"), None, this(), 1e9).expect("two memories");
        let Far::Memory(far) = &knl.far else { panic!("memory") };
        assert!(knl.near.read > 4.0 * far.read && knl.near.latency_ns > far.latency_ns);
        let nvme = of_node(&preset::find("nvme-gen4").expect("found"), None, this(), 1e9).expect("a device");
        assert!(matches!(nvme.far, Far::Paged(_)));
    }

    #[test]
    fn sizes_of_near() {
        let near = |text: &str| near(&text.parse()?);
        assert_eq!(near("16G").expect("a size"), (16u64 << 30) as f64);
        assert!(near("50%").expect("a share") > 1e6);
        for bad in ["node:1", "0", "x"] {
            assert!(near(bad).is_err(), "{bad}");
        }
    }
}
