//! Which memories are near and far in this run: from what was typed and from what the machine is. Reads nothing itself.

use crate::cli::run::{Commit, Heap, RunArgs};
use crate::exit::refuse;
use nearfar_core::faults::Faults;
use nearfar_core::mode::Mode;
use nearfar_core::node::Topology;
use nearfar_core::placement::{Choice, NodeSet, nodes};
use nearfar_core::policy::fetch_grain::Grain;
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_sys::kernel::Denied;

/// The two memories.
#[derive(Clone, Debug, PartialEq)]
pub enum Tiers {
    /// A budget of ordinary memory over a file or emulated memory: the pager.
    Paged(Paged),
    /// Nodes over nodes: nothing is paged.
    Nodes(Nodes),
}

/// Near is a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Paged {
    /// Its size; `None`: half of the memory.
    pub near: Option<NearSpec>,
    /// Far; `None`: the usual directory.
    pub far: Option<FarSpec>,
    /// How near is used.
    pub mode: Mode,
    /// The nodes that near is taken from, when they were named.
    pub on: Option<NodeSet>,
    /// One line for people when nobody chose, and nodes might have been expected.
    pub told: Option<String>,
}

/// Both are nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// The fast ones.
    pub near: NodeSet,
    /// The slower ones; none when near is all there are.
    pub far: NodeSet,
    /// At most this much of near.
    pub limit: Option<u64>,
    /// True in cache mode.
    pub cache: bool,
    /// One line for people when nobody chose: what was taken, and why.
    pub told: Option<String>,
}

/// Settles what the user left open. `topology` is asked for only where nodes are named, or the machine may have two kinds of memory;
/// `may_place` whether memory can be given to nodes only where nobody named them, since memory is paged then where it cannot.
///
/// # Errors
/// A refusal that says what to write instead.
pub fn settle(
    args: &RunArgs,
    several_nodes: bool,
    topology: impl FnOnce() -> Topology,
    may_place: impl FnOnce(&NodeSet) -> Result<(), String>,
) -> anyhow::Result<Tiers> {
    let by_nodes = |spec: &Option<FarSpec>| matches!(spec, Some(FarSpec::Node { .. }));
    match (&args.near, &args.far) {
        (None, None) if !several_nodes || of_pager(args).is_some() || matches!(args.mode, Some(Mode::Hybrid(_))) => {
            paged(args, None)
        }
        (None, None) => {
            let topology = topology();
            match nodes::tiers_of(&topology) {
                Some(found) => match may_place(&found.near) {
                    Ok(()) => of_machine(args, &topology, found),
                    Err(why) => {
                        instead(args, format!("this machine has two kinds of memory, but {why}: memory is paged instead"))
                    }
                },
                None => match nodes::gpu_nodes(&topology) {
                    gpu if gpu.is_empty() => paged(args, None),
                    gpu => instead(
                        args,
                        format!(
                            "{} is left to the GPU, and memory is paged to a directory; --far node:{gpu} would use it",
                            nodes::name(&topology, &gpu)
                        ),
                    ),
                },
            }
        }
        (Some(NearSpec::Node { nodes, .. }), Some(FarSpec::Path(_) | FarSpec::Emulated { .. })) => {
            let on: NodeSet = nodes.iter().copied().collect();
            nodes::check(&topology(), &on).map_err(|error| refuse(format_args!("--near: {error}")))?;
            paged(args, Some(on))
        }
        (near @ (None | Some(NearSpec::Node { .. })), far) if near.is_some() || by_nodes(far) => named(args, &topology()),
        (Some(near), Some(far @ FarSpec::Node { .. })) => Err(refuse(format_args!(
            "--near {near} --far {far}: a budget of ordinary memory cannot spill to a node; name the fast node (--near node:1{}), or a \
             directory or emu:bw=4G,lat=10us with --far",
            match near {
                NearSpec::Bytes(_) => format!(":{near}"),
                _ => String::new(),
            }
        ))),
        _ => paged(args, None),
    }
}

fn paged(args: &RunArgs, on: Option<NodeSet>) -> anyhow::Result<Tiers> {
    let chosen = args.place.as_ref().filter(|choice| **choice != Choice::All);
    let mode = match (args.mode, chosen) {
        (Some(Mode::Cache), Some(choice)) => {
            return Err(refuse(format_args!(
                "--place {choice} chooses what stays near, but in cache mode nothing is chosen; write --mode flat or --mode hybrid=0.25"
            )));
        }
        (Some(mode), _) => mode,
        (None, Some(_)) => Mode::Flat,
        (None, None) => Mode::Cache,
    };
    Ok(Tiers::Paged(Paged { near: args.near.clone(), far: args.far.clone(), mode, on, told: None }))
}

/// Paging, where nodes might have been expected.
fn instead(args: &RunArgs, told: String) -> anyhow::Result<Tiers> {
    Ok(match paged(args, None)? {
        Tiers::Paged(paged) => Tiers::Paged(Paged { told: Some(told), ..paged }),
        nodes => nodes,
    })
}

fn of_machine(args: &RunArgs, topology: &Topology, found: nodes::Tiers) -> anyhow::Result<Tiers> {
    let told = format!(
        "near is {}, far is {}: {}; --near and --far choose otherwise",
        nodes::name(topology, &found.near),
        nodes::name(topology, &found.far),
        found.why
    );
    on_nodes(args, Nodes { near: found.near, far: found.far, limit: None, cache: false, told: Some(told) })
}

/// At least one tier was named by nodes, and the other one was not named otherwise.
fn named(args: &RunArgs, topology: &Topology) -> anyhow::Result<Tiers> {
    let set = |nodes: &[u32]| nodes.iter().copied().collect::<NodeSet>();
    let without = |set: NodeSet, other: &NodeSet| set.iter().filter(|&node| !other.contains(node)).collect::<NodeSet>();
    let found = nodes::tiers_of(topology);
    let (given_near, limit) = match &args.near {
        Some(NearSpec::Node { nodes, limit }) => (Some(set(nodes)), *limit),
        _ => (None, None),
    };
    let given_far = match &args.far {
        Some(FarSpec::Node { nodes }) => Some(set(nodes)),
        _ => None,
    };
    if let Some(near) = &given_near {
        nodes::check(topology, near).map_err(|error| refuse(format_args!("--near: {error}")))?;
    }
    if let Some(far) = &given_far {
        nodes::check(topology, far).map_err(|error| refuse(format_args!("--far: {error}")))?;
    }
    // What was left out: the other kind of memory where there are two, otherwise all other nodes.
    let rest = |given: &NodeSet, kind: Option<NodeSet>| {
        let of_kind = kind.map(|kind| without(kind, given)).unwrap_or_default();
        if of_kind.is_empty() { nodes::others(topology, given) } else { of_kind }
    };
    let (near, far) = match (given_near, given_far) {
        (Some(near), Some(far)) => (near, far),
        (Some(near), None) => (near, rest(&near, found.map(|found| found.far))),
        (None, Some(far)) => (rest(&far, found.map(|found| found.near)), far),
        (None, None) => return paged(args, None),
    };
    // Memory of GPUs is nobody's other memory.
    let gpu = || match nodes::gpu_nodes(topology) {
        gpu if gpu.is_empty() => String::new(),
        gpu => format!(" ({} is used only when it is named)", nodes::name(topology, &gpu)),
    };
    if near.is_empty() {
        return Err(refuse(format_args!(
            "--far leaves no node: nothing is left to be near{}; name fewer, or name a directory",
            gpu()
        )));
    }
    if far.is_empty() && !(args.interleave.is_some() && near.len() > 1) {
        let shown = args.near.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(refuse(format_args!(
            "--near {shown}: there is no other node that could be far{}; name a directory or emu:bw=4G,lat=10us with --far, or write a size \
             such as --near 800M",
            gpu()
        )));
    }
    nodes::check_pair(topology, &near, &far, limit).map_err(|error| refuse(format_args!("--near and --far: {error}")))?;
    let left_open = args.near.is_none() || args.far.is_none();
    let named = |set: &NodeSet| if set.is_empty() { "nothing".to_owned() } else { nodes::name(topology, set) };
    let told = left_open.then(|| format!("near is {}, far is {}", named(&near), named(&far)));
    on_nodes(args, Nodes { near, far, limit, cache: false, told })
}

fn on_nodes(args: &RunArgs, nodes: Nodes) -> anyhow::Result<Tiers> {
    if let Some(option) = of_pager(args) {
        return Err(refuse(format_args!(
            "{option} is about paging, but between nodes nothing is paged; leave it out, or name a directory with --far"
        )));
    }
    let cache = match args.mode {
        None | Some(Mode::Flat) => false,
        Some(Mode::Cache) => true,
        Some(mode @ Mode::Hybrid(_)) => {
            return Err(refuse(format_args!(
                "--mode {mode} needs a budget of ordinary memory and a file or emulated memory; between nodes write --mode flat or \
                 --mode cache"
            )));
        }
    };
    if cache && let Some(choice) = args.place.as_ref().filter(|choice| **choice != Choice::All) {
        return Err(refuse(format_args!("--place {choice}: in cache mode nothing is chosen; write --mode flat")));
    }
    Ok(Tiers::Nodes(Nodes { cache, ..nodes }))
}

/// An option that only paging has, if one was typed.
fn of_pager(args: &RunArgs) -> Option<&'static str> {
    let all = [
        (args.trace.is_some(), "--trace"),
        (args.grain != Grain::Auto, "--grain"),
        (args.encrypt, "--encrypt"),
        (args.check, "--check"),
        (args.far_max.is_some(), "--far-max"),
        (args.commit == Commit::Strict, "--commit strict"),
        (args.heap == Heap::Large, "--heap large"),
        (args.faults != Faults::default(), "--faults"),
        (args.kernel.deny != Denied(0), "--deny (NEARFAR_DENY)"),
    ];
    all.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::machine;
    use nearfar_sys::root::Root;
    use std::path::Path;

    fn captured(name: &str) -> Topology {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/machines/{name}.capture"));
        machine::topology(&Root::open(&path).expect("a capture"))
    }

    /// `--near`, `--far`, `--mode` and `--place`; empty for what is left out.
    fn on(name: &str, typed: [&str; 4]) -> Result<Tiers, String> {
        on_with(name, typed, Ok(()))
    }

    /// The same where memory can be given to nodes, or cannot.
    fn on_with(name: &str, [near, far, mode, place]: [&str; 4], may_place: Result<(), String>) -> Result<Tiers, String> {
        let topology = captured(name);
        let options = [("--near", near), ("--far", far), ("--mode", mode), ("--place", place)];
        let given: Vec<&str> =
            options.iter().filter(|(_, value)| !value.is_empty()).flat_map(|&(name, value)| [name, value]).collect();
        let args = RunArgs::typed(&given);
        settle(&args, topology.nodes.len() > 1, || topology, |_| may_place).map_err(|error| error.to_string())
    }

    fn pair(name: &str, typed: [&str; 4]) -> String {
        match on(name, typed) {
            Ok(Tiers::Nodes(nodes)) => format!("{} over {}{}", nodes.near, nodes.far, if nodes.cache { ", cache" } else { "" }),
            Ok(Tiers::Paged(paged)) => format!("paged, {}", paged.mode),
            Err(error) => error,
        }
    }

    #[test]
    fn two_kinds_of_memory_are_found() {
        for (name, found) in [
            ("knl-snc4-flat", "4-7 over 0-3"),
            ("xeonmax-snc4-flat", "8-15 over 0-7"),
            ("booted-knl-flat-no-hmat", "1 over 0"),
            ("cxl-region", "0 over 1"),
            ("grace-hopper", "paged, cache"),
            ("two-sockets-sapphire-rapids", "paged, cache"),
            ("booted-cxl-no-hmat", "paged, cache"),
            ("development-machine", "paged, cache"),
            ("container-without-anything", "paged, cache"),
        ] {
            assert_eq!(pair(name, ["", "", "", ""]), found, "{name}");
        }
        let Ok(Tiers::Nodes(nodes)) = on("cxl-region", [""; 4]) else { panic!("nodes") };
        let told = nodes.told.expect("said");
        assert!(told.contains("near is DRAM on node 0, far is CXL on node 1") && told.contains("--near"), "{told}");
    }

    #[test]
    fn where_nodes_cannot_be_given_memory_it_is_paged_unless_they_are_named() {
        let denied = || Err("set_mempolicy: denied".to_owned());
        let Ok(Tiers::Paged(paged)) = on_with("cxl-region", [""; 4], denied()) else { panic!("paged") };
        let told = paged.told.expect("said");
        assert!(paged.mode == Mode::Cache && told.contains("set_mempolicy: denied") && !told.contains('\n'), "{told}");
        let named = on_with("cxl-region", ["node:0", "", "", ""], denied());
        assert!(matches!(named, Ok(Tiers::Nodes(_))), "refused later, when it is tried: {named:?}");
    }

    #[test]
    fn memory_of_gpus_is_taken_only_when_it_is_named() {
        let Ok(Tiers::Paged(paged)) = on("grace-hopper", [""; 4]) else { panic!("paged") };
        let told = paged.told.expect("said");
        assert!(told.contains("node 1 is left to the GPU") && told.contains("--far node:1"), "{told}");
        assert_eq!(pair("grace-hopper", ["", "node:1", "", ""]), "0 over 1");
        assert_eq!(pair("grace-hopper", ["node:1", "", "", ""]), "1 over 0");
        let error = on("grace-hopper", ["node:0", "", "", ""]).expect_err("nothing is far");
        assert!(error.contains("used only when it is named"), "{error}");
        let Ok(Tiers::Paged(paged)) = on("two-sockets-sapphire-rapids", [""; 4]) else { panic!("paged") };
        assert_eq!(paged.told, None);
    }

    #[test]
    fn what_is_left_out_is_the_other_memory() {
        for (name, typed, found) in [
            ("knl-snc4-flat", ["node:4", "", "", ""], "4 over 0-3"),
            ("knl-snc4-flat", ["", "node:0", "", ""], "4-7 over 0"),
            ("knl-snc4-flat", ["", "node:4-7", "", ""], "0-3 over 4-7"),
            ("two-sockets-sapphire-rapids", ["node:0", "", "", ""], "0 over 1"),
            ("two-sockets-sapphire-rapids", ["", "node:0", "cache", ""], "1 over 0, cache"),
            ("knl-snc4-flat", ["", "", "cache", "all"], "4-7 over 0-3, cache"),
            ("knl-snc4-flat", ["", "", "hybrid=0.25", ""], "paged, hybrid=0.25"),
            ("knl-snc4-flat", ["1G", "", "", ""], "paged, cache"),
            ("knl-snc4-flat", ["", "/scratch", "", "size:1M.."], "paged, flat"),
            ("knl-snc4-flat", ["node:4-7", "/scratch", "", ""], "paged, cache"),
            ("development-machine", ["", "", "flat", ""], "paged, flat"),
        ] {
            assert_eq!(pair(name, typed), found, "{name} {typed:?}");
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (name, typed, hint) in [
            ("two-sockets-sapphire-rapids", ["node:0", "node:0", "", ""], "node 0 cannot be near and far"),
            ("two-sockets-sapphire-rapids", ["node:2", "", "", ""], "there is no node 2; this machine has nodes 0-1"),
            ("two-sockets-sapphire-rapids", ["node:0:900T", "", "", ""], "were asked for"),
            ("two-sockets-sapphire-rapids", ["1G", "node:1", "", ""], "--near node:1:1G"),
            ("two-sockets-sapphire-rapids", ["", "node:0-1", "", ""], "nothing is left to be near"),
            ("two-sockets-sapphire-rapids", ["node:0", "", "hybrid=0.5", ""], "--mode flat or --mode cache"),
            ("two-sockets-sapphire-rapids", ["node:0", "", "cache", "size:1M.."], "write --mode flat"),
            ("development-machine", ["node:0", "", "", ""], "no other node"),
            ("development-machine", ["node:1", "/tmp", "", ""], "there is no node 1"),
            ("development-machine", ["1G", "/tmp", "cache", "calls"], "--mode hybrid"),
            ("snc2-slurm-job", ["node:0", "", "", ""], "may not be used"),
        ] {
            let error = on(name, typed).expect_err(name);
            assert!(error.contains(hint), "{name} {typed:?}: {error}");
        }
        for (options, name) in [
            (["--trace", "t"], "--trace"),
            (["--deny", "move"], "--deny (NEARFAR_DENY)"),
            (["--grain", "4K"], "--grain"),
            (["--faults", "watch=2s"], "--faults"),
        ] {
            let args = RunArgs::typed(&[&["--near", "node:0"], &options[..]].concat());
            let settled = settle(&args, true, || captured("two-sockets-sapphire-rapids"), |_| Ok(()));
            let error = settled.expect_err("no pager").to_string();
            assert!(error.contains(&format!("{name} is about paging")), "{error}");
        }
    }
}
