//! What was typed of modes and placement, as every process of a job reads it (`core::placement::Placement`): policy, sizes, what happens
//! when near is full, how pages are spread over nodes.

use crate::cli::run::{Full as FullArg, Interleave, RunArgs};
use crate::exit::refuse;
use crate::files::document;
use crate::launch::executable;
use crate::run::plan_file::PlanFile;
use crate::run::tiers::Nodes;
use nearfar_core::mode::Mode;
use nearfar_core::node::{Node, Topology};
use nearfar_core::placement::nodes::{self, Source};
use nearfar_core::placement::{Choice, Full, NodeSet, Placement, Spread};
use nearfar_core::units::Bytes;
use nearfar_sys::root::Root;
use std::path::{Path, PathBuf};

/// A placement, and what comes with it.
pub struct PlacementRequest {
    /// What programs are told.
    pub placement: Placement,
    /// The plan that it is about.
    pub plan: Option<PlanFile>,
    /// What the user should know.
    pub notes: Vec<String>,
}

const WHOLE: u32 = 1_000_000;

fn full(args: &RunArgs) -> Full {
    match args.full {
        None | Some(FullArg::Spill) => Full::Spill,
        Some(FullArg::Fail) => Full::Fail,
        Some(FullArg::Wait) => Full::Wait,
    }
}

/// The program that is to be run; whether it can be is checked elsewhere.
fn program_of(args: &RunArgs) -> Option<PathBuf> {
    let name = args.program.first()?;
    executable::find(name, std::env::var_os("PATH").as_deref()).ok()?.canonicalize().ok()
}

impl PlacementRequest {
    fn of(args: &RunArgs) -> anyhow::Result<Self> {
        let choice = args.place.clone().unwrap_or_default();
        let mut placement = Placement { full: full(args), ..Placement::default() };
        choice.put(&mut placement);
        let plan = match &choice {
            Choice::Plan(file) => Some(PlanFile::read(Path::new(file), program_of(args).as_deref(), args.force)?),
            _ => None,
        };
        let notes = plan.iter().flat_map(|plan| plan.notes.clone()).collect();
        Ok(Self { placement, plan, notes })
    }

    /// For a budget of `near` bytes, `least` of which the pager needs for itself.
    pub fn of_budget(mode: Mode, args: &RunArgs, near: u64, least: u64) -> anyhow::Result<Self> {
        if args.interleave.is_some() {
            return Err(refuse("--interleave needs nodes; name them with --near, such as --near node:0,1"));
        }
        let share = match mode {
            Mode::Cache if args.full.is_some() => {
                return Err(refuse(
                    "--full is for flat and hybrid mode: in cache mode near is always full, and nothing fails because of that; leave it out",
                ));
            }
            Mode::Cache => return Ok(Self { placement: Placement::default(), plan: None, notes: Vec::new() }),
            // As little cache as the pager can work with: what is not placed is paged through it.
            Mode::Flat => (least.max(near / 64) as f64 / near as f64).min(1.0),
            Mode::Hybrid(share) => share,
        };
        let cache = (near as f64 * share) as u64;
        if cache < least || near - cache < least {
            return Err(refuse(format_args!(
                "--mode {mode} with {} of near leaves {} of cache and {} for placed objects; each needs {} or more: write more --near, or \
                 another share",
                Bytes(near),
                Bytes(cache),
                Bytes(near - cache),
                Bytes(least).exact()
            )));
        }
        let mut requested = Self::of(args)?;
        requested.placement.cache_ppm = ((share * f64::from(WHOLE)).ceil() as u32).clamp(1, WHOLE);
        Ok(requested)
    }

    /// For `tiers` that are nodes of this machine.
    pub fn of_nodes(tiers: &Nodes, args: &RunArgs, topology: &Topology) -> anyhow::Result<Self> {
        let mut requested = if tiers.cache {
            if args.full.is_some() || args.interleave == Some(Interleave::Near) || args.interleave == Some(Interleave::Both) {
                return Err(refuse(
                    "--full and --interleave near are for flat mode: in cache mode pages come and go; leave them out",
                ));
            }
            Self { placement: Placement::default(), plan: None, notes: Vec::new() }
        } else {
            Self::of(args)?
        };
        let placement = &mut requested.placement;
        (placement.near, placement.far) = (tiers.near, tiers.far);
        placement.near_limit = tiers.limit.unwrap_or(u64::MAX);
        placement.cache_ppm = if tiers.cache { WHOLE } else { 0 };
        if let Some(which @ (Interleave::Far | Interleave::Both)) = args.interleave
            && tiers.far.is_empty()
        {
            let which = if which == Interleave::Far { "far" } else { "both" };
            return Err(refuse(format_args!(
                "--interleave {which}: near is all there is (nodes {}), and nothing is far; write --interleave near",
                tiers.near
            )));
        }
        requested.notes.extend(tiers.told.clone());
        let (free, wanted) = (nodes::free_bytes(topology, &tiers.near), tiers.limit.unwrap_or(0));
        if wanted > free {
            let plural = if tiers.near.len() == 1 { "" } else { "s" };
            requested.notes.push(format!(
                "near is {} of node{plural} {}, of which {} is free now",
                Bytes(wanted),
                tiers.near,
                Bytes(free)
            ));
        }
        requested.spread(args, topology)?;
        Ok(requested)
    }

    fn spread(&mut self, args: &RunArgs, topology: &Topology) -> anyhow::Result<()> {
        let Some(which) = args.interleave else { return Ok(()) };
        let near = matches!(which, Interleave::Near | Interleave::Both);
        let far = matches!(which, Interleave::Far | Interleave::Both);
        let measured = args.machine.as_deref().map(|path| this_machine(path, topology)).transpose()?;
        let Self { placement, notes, .. } = self;
        let mut spread = |set: NodeSet| {
            if !args.weighted || set.len() < 2 {
                return Spread::Interleave;
            }
            let Some((rates, source)) = nodes::rates(topology, measured.as_ref(), &set) else {
                notes.push(format!(
                    "the bandwidths of nodes {set} are not known, so pages go to them equally, in turn; measure them (nearfar probe -o \
                     node.json), then write --machine node.json"
                ));
                return Spread::Interleave;
            };
            let found = nodes::weights(&rates);
            let source = if source == Source::Measured { "measured" } else { "claimed by the firmware" };
            let shown: Vec<String> = found.iter().map(u8::to_string).collect();
            let proportion = format!("{} (bandwidths {source})", shown.join(":"));
            notes.push(kernel_weights(&Root::this(), &set, &found, &proportion));
            Spread::Weighted
        };
        if near {
            placement.near_spread = spread(placement.near);
        }
        if far {
            placement.far_spread = spread(placement.far);
        }
        Ok(())
    }
}

/// The description at `path`, if it is of this machine as far as can be told.
pub fn this_machine(path: &Path, topology: &Topology) -> anyhow::Result<Node> {
    let node = document::load(path)?;
    let (theirs, ours) = (&node.topology.cpu_model, &topology.cpu_model);
    if theirs != ours && !theirs.is_empty() && !ours.is_empty() {
        return Err(refuse(format_args!(
            "--machine {}: it describes a machine with {theirs}, but this one has {ours}; measure this one with \"nearfar probe -o node.json\"",
            path.display()
        )));
    }
    Ok(node)
}

/// What is to be said of the kernel's weights, by which it spreads pages; `wanted` are the nodes' bandwidths, which `proportion` shows.
fn kernel_weights(root: &Root, set: &NodeSet, wanted: &[u8], proportion: &str) -> String {
    let dir = "/sys/kernel/mm/mempolicy/weighted_interleave";
    let theirs: Option<Vec<u8>> = set.iter().map(|node| root.text(&format!("{dir}/node{node}"))?.trim().parse().ok()).collect();
    let same = |theirs: &[u8]| {
        let product = |(a, b): (&u8, &u8)| u32::from(*a) * u32::from(*b);
        let first = (theirs.first().zip(wanted.first()), theirs.iter().zip(wanted));
        let Some((their_first, our_first)) = first.0 else { return true };
        first.1.into_iter().all(|(theirs, ours)| product((theirs, our_first)) == product((ours, their_first)))
    };
    match theirs {
        Some(theirs) if same(&theirs) => format!("pages go to nodes {set} in the proportion {proportion}"),
        Some(theirs) => {
            let theirs: Vec<String> = theirs.iter().map(u8::to_string).collect();
            let commands: Vec<String> =
                set.iter().zip(wanted).map(|(node, weight)| format!("echo {weight} > {dir}/node{node}")).collect();
            format!(
                "pages go to nodes {set} by the kernel's weights, {}; for {proportion}, as root: \"{}\"",
                theirs.join(":"),
                commands.join("; ")
            )
        }
        None => format!(
            "this kernel has no weighted interleave (Linux 6.9): pages go to nodes {set} equally, in turn, not as {proportion}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::placement::Policy;

    fn captured(name: &str) -> Topology {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/machines/{name}.capture"));
        nearfar_sys::machine::topology(&Root::open(&path).expect("a capture"))
    }

    fn cxl(options: &[&str]) -> anyhow::Result<PlacementRequest> {
        let set = |nodes: &[u32]| nodes.iter().copied().collect::<NodeSet>();
        let tiers = Nodes { near: set(&[0, 1]), far: NodeSet::EMPTY, limit: Some(1 << 40), cache: false, told: None };
        PlacementRequest::of_nodes(&tiers, &RunArgs::typed(options), &captured("booted-cxl"))
    }

    #[test]
    fn weights_come_from_the_firmware_or_a_file() {
        let requested = cxl(&["--interleave", "near", "--weighted", "--full", "wait", "--place", "size:1M.."]).expect("accepted");
        let placement = &requested.placement;
        assert_eq!((placement.near_spread, placement.far_spread), (Spread::Weighted, Spread::Nearest));
        assert_eq!((placement.full, placement.policy), (Full::Wait, Policy::Sizes));
        assert_eq!((placement.near_limit, placement.cache_ppm), (1 << 40, 0));
        assert!(requested.notes[0].contains("is free now"), "{:?}", requested.notes);
        assert!(requested.notes[1].contains("13:2 (bandwidths claimed by the firmware)"), "{:?}", requested.notes);
        assert!(cxl(&["--interleave", "near", "--weighted", "--machine", "/nowhere"]).is_err());
        let set = |nodes: &[u32]| nodes.iter().copied().collect::<NodeSet>();
        let tiers = Nodes { near: set(&[0]), far: set(&[1]), limit: None, cache: false, told: None };
        let far = PlacementRequest::of_nodes(&tiers, &RunArgs::typed(&["--interleave", "far"]), &captured("booted-cxl"))
            .expect("accepted");
        assert_eq!(far.placement.far_spread, Spread::Interleave);
        for which in ["far", "both"] {
            let error = cxl(&["--interleave", which]).err().expect("nothing is far").to_string();
            assert!(error.contains(&format!("--interleave {which}")) && error.contains("write --interleave near"), "{error}");
        }
    }

    #[test]
    fn budgets_are_shared_between_cache_and_objects() {
        let (near, least) = (1 << 30, 16 << 20);
        let share = |mode: Mode, options: &[&str], near| {
            PlacementRequest::of_budget(mode, &RunArgs::typed(options), near, least).map(|requested| requested.placement)
        };
        let placement = share(Mode::Hybrid(0.25), &["--place", "calls"], near).expect("accepted");
        assert_eq!((placement.cache_ppm, placement.policy, placement.is_numa()), (250_000, Policy::Calls, false));
        let placement = share(Mode::Flat, &[], near).expect("accepted");
        assert_eq!((placement.cache_ppm, placement.policy), (15_625, Policy::All));
        let placement = share(Mode::Cache, &[], near).expect("accepted");
        assert_eq!((placement.cache_ppm, placement.policy), (WHOLE, Policy::None));
        for (mode, options, near, hint) in [
            (Mode::Cache, &["--full", "fail"][..], near, "--full is for flat"),
            (Mode::Flat, &["--interleave", "near"], near, "--near node:0,1"),
            (Mode::Flat, &[], 20 << 20, "write more --near"),
            (Mode::Hybrid(0.001), &[], near, "another share"),
            (Mode::Hybrid(0.999), &[], near, "another share"),
            (Mode::Flat, &["--place", "plan:/nowhere"], near, "No such file"),
        ] {
            let error = share(mode, options, near).expect_err(hint).to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn the_kernel_has_weights_of_its_own() {
        let set: NodeSet = [0, 1].into_iter().collect();
        let said = |weights: [u8; 2]| {
            let file = |node: usize| format!("=== /sys/kernel/mm/mempolicy/weighted_interleave/node{node}\n {}\n", weights[node]);
            kernel_weights(&Root::captured(&(file(0) + &file(1))).expect("a capture"), &set, &[3, 2], "3:2")
        };
        assert!(said([6, 4]).ends_with("in the proportion 3:2"), "{}", said([6, 4]));
        assert!(said([1, 1]).contains("weights, 1:1") && said([1, 1]).contains("echo 3 >"), "{}", said([1, 1]));
        assert!(kernel_weights(&Root::captured("").expect("empty"), &set, &[3, 2], "3:2").contains("6.9"));
    }
}
