//! The captured machines (tests/machines/*.capture): which nodes each kind is made of there.

use nearfar_core::node::Topology;
use nearfar_kinds::choice::{Choice, choose};
use nearfar_kinds::environment::Environment;
use nearfar_kinds::static_kind::StaticKind;
use nearfar_sys::machine;
use nearfar_sys::root::Root;
use std::path::{Path, PathBuf};

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines")
}

fn machine(name: &str) -> Topology {
    machine::nodes(&Root::open(&dir().join(format!("{name}.capture"))).expect("a capture"))
}

fn with(pairs: &[(&str, &str)]) -> Environment {
    Environment::parse(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

/// "0:4 1:5 2:6 3:7": the nodes for each CPU node, or the code.
fn text(result: &Result<Choice, nearfar_kinds::choice::Unavailable>) -> String {
    match result {
        Ok(choice) => match choice.only() {
            Some(set) => format!("{:?} {set}", choice.mode),
            None => {
                let sets = choice.by_cpu_node.iter().enumerate().map(|(node, set)| format!("{node}:{set}"));
                format!("{:?} {}", choice.mode, sets.collect::<Vec<_>>().join(" "))
            }
        },
        Err(error) => error.code.to_string(),
    }
}

/// What each kind is made of: mode and nodes, for each CPU node where that differs, or the code of the error.
#[rustfmt::skip]
const EXPECTED: &[(&str, &[(StaticKind, &str)])] = &[
    ("booted-knl-flat", &[
        (StaticKind::Hbw, "Bind 1"), (StaticKind::HbwPreferred, "Preferred 1"), (StaticKind::HbwAll, "Bind 1"),
        (StaticKind::HbwInterleave, "Interleave 1"), (StaticKind::Regular, "Bind 0"), (StaticKind::Interleave, "Interleave 0,1"),
        (StaticKind::HighestCapacity, "Bind 0"), (StaticKind::HighestBandwidthLocal, "Bind 1"),
        (StaticKind::LowestLatencyLocal, "Bind 0"), (StaticKind::DaxKmem, "-1"), (StaticKind::Default, "Default 0,1"),
        (StaticKind::HbwGbtlb, "-1"),
    ]),
    // No HMAT: what the processor is decides.
    ("booted-knl-snc4-no-hmat", &[
        (StaticKind::Hbw, "Bind 0:4 1:5 2:6 3:7"), (StaticKind::HbwPreferred, "Preferred 0:4 1:5 2:6 3:7"),
        (StaticKind::HbwAll, "Bind 4-7"), (StaticKind::HbwInterleave, "Interleave 4-7"), (StaticKind::Regular, "Bind 0-3"),
        (StaticKind::HighestBandwidthLocal, "Bind 0:4 1:5 2:6 3:7"), (StaticKind::LowestLatencyLocal, "Bind 0:0 1:1 2:2 3:3"),
    ]),
    ("knl-cache", &[(StaticKind::Hbw, "-20"), (StaticKind::HighestBandwidthLocal, "Bind 0"), (StaticKind::Regular, "Bind 0")]),
    ("knl-quad-hybrid", &[(StaticKind::Hbw, "Bind 1"), (StaticKind::HighestCapacityLocal, "Bind 0")]),
    // Not a Knights Landing, and found all the same.
    ("booted-xeonmax-flat-no-hmat", &[
        (StaticKind::Hbw, "Bind 0:2 1:3"), (StaticKind::HbwPreferred, "Preferred 0:2 1:3"), (StaticKind::HbwAll, "Bind 2,3"),
        (StaticKind::HighestBandwidthLocal, "Bind 0:2 1:3"), (StaticKind::HighestCapacityLocal, "Bind 0:0 1:1"),
    ]),
    ("xeonmax-snc4-flat", &[
        (StaticKind::Hbw, "Bind 0:8 1:9 2:10 3:11 4:12 5:13 6:14 7:15"), (StaticKind::HbwAll, "Bind 8-15"),
        (StaticKind::DaxKmem, "-1"),
    ]),
    // HBM is all there is.
    ("a64fx", &[
        (StaticKind::Hbw, "Bind 0:0 1:1 2:2 3:3"), (StaticKind::HbwPreferred, "Preferred 0:0 1:1 2:2 3:3"),
        (StaticKind::HbwInterleave, "Interleave 0-3"), (StaticKind::Regular, "Bind 0-3"),
    ]),
    ("xeonmax-hbm-only", &[(StaticKind::HbwAll, "Bind 0-7"), (StaticKind::HbwPreferred, "Preferred 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7")]),
    ("mi300a", &[(StaticKind::Hbw, "Bind 0:0 1:1 2:2 3:3")]),
    ("optane-kmem", &[
        (StaticKind::Hbw, "-20"), (StaticKind::DaxKmem, "Bind 0:2 1:3"), (StaticKind::DaxKmemAll, "Bind 2,3"),
        (StaticKind::DaxKmemPreferred, "Preferred 0:2 1:3"), (StaticKind::DaxKmemInterleave, "Interleave 2,3"),
        (StaticKind::HighestCapacity, "Bind 2,3"), (StaticKind::HighestCapacityPreferred, "-255"),
        (StaticKind::HighestCapacityLocal, "Bind 0:2 1:3"), (StaticKind::LowestLatencyLocal, "Bind 0:0 1:1"),
    ]),
    ("cxl-region", &[(StaticKind::DaxKmem, "Bind 1"), (StaticKind::HighestBandwidthLocal, "Bind 0"), (StaticKind::Regular, "Bind 0")]),
    // Not known which is which.
    ("booted-cxl-no-hmat", &[
        (StaticKind::Hbw, "-20"), (StaticKind::HighestBandwidthLocal, "-20"), (StaticKind::LowestLatencyLocal, "-20"),
        (StaticKind::HighestCapacity, "Bind 1"),
    ]),
    // Memory of the GPU is not taken unasked.
    ("grace-hopper", &[
        (StaticKind::Interleave, "Interleave 0"), (StaticKind::HighestBandwidthLocal, "Bind 0"), (StaticKind::DaxKmem, "-1"),
    ]),
    ("milan-nps4", &[(StaticKind::HighestCapacity, "Bind 0-7"), (StaticKind::HighestCapacityPreferred, "-255")]),
    // The job may use node 1 alone.
    ("snc2-slurm-job", &[(StaticKind::Interleave, "Interleave 1"), (StaticKind::Regular, "Bind 1"), (StaticKind::Hbw, "-20")]),
    ("two-sockets-sapphire-rapids", &[(StaticKind::Hbw, "-20"), (StaticKind::HighestBandwidthLocal, "Bind 0:0 1:1")]),
    // Nothing is shown: ordinary kinds are ordinary memory.
    ("container-without-anything", &[
        (StaticKind::Regular, "Default "), (StaticKind::HighestCapacityPreferred, "Default "), (StaticKind::Hbw, "-20"),
    ]),
];

#[test]
fn kinds_on_captured_machines() {
    let mut wrong = Vec::new();
    for (name, kinds) in EXPECTED {
        let topology = machine(name);
        for (kind, expected) in *kinds {
            let found = text(&choose(&topology, &with(&[]), *kind));
            if found != *expected {
                wrong.push(format!("{name}: {} is {found}, and should be {expected}", kind.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn what_is_chosen_is_there_on_every_machine() {
    for entry in std::fs::read_dir(dir()).expect("tests/machines").flatten() {
        let name = entry.path().file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let topology = machine(&name);
        for kind in StaticKind::ALL {
            let Ok(choice) = choose(&topology, &with(&[]), kind) else { continue };
            for node in choice.nodes.iter() {
                let node = topology.node(node).expect("a node of the machine");
                assert!(node.bytes > 0 && node.allowed, "{name}: {}", kind.name());
            }
            for set in &choice.by_cpu_node {
                assert_eq!(set.and(&choice.nodes), *set, "{name}: {}", kind.name());
                assert!(
                    kind.node_choice() != nearfar_kinds::static_kind::NodeChoice::Preferred || set.len() <= 1,
                    "{name}: {}",
                    kind.name()
                );
            }
            let is_free = choice.mode == nearfar_sys::numa::PolicyMode::Default;
            assert!(is_free || choice.bytes > 0, "{name}: {}", kind.name());
        }
    }
}

#[test]
fn variables_go_before_the_machine() {
    let xeon = machine("booted-xeonmax-flat");
    let of = |topology: &Topology, pairs: &[(&str, &str)], kind| text(&choose(topology, &with(pairs), kind));
    assert_eq!(of(&xeon, &[("MEMKIND_HBW_NODES", "0-1")], StaticKind::Hbw), "Bind 0:0 1:1");
    assert_eq!(of(&xeon, &[("MEMKIND_HBW_NODES", "3")], StaticKind::HbwPreferred), "Preferred 3");
    assert_eq!(of(&xeon, &[("MEMKIND_HBW_NODES", "all")], StaticKind::HbwInterleave), "Interleave 0-3");
    for bad in ["7", "nonsense", "", "0-9"] {
        assert_eq!(of(&xeon, &[("MEMKIND_HBW_NODES", bad)], StaticKind::Hbw), "-12", "{bad}");
    }
    assert_eq!(of(&xeon, &[("MEMKIND_HBW_NODES", "nonsense")], StaticKind::Regular), "Bind 0,1", "does not depend on it");
    assert_eq!(of(&xeon, &[("MEMKIND_DAX_KMEM_NODES", "2-3")], StaticKind::DaxKmem), "Bind 0:2 1:3");
    // Two nodes at the same distance: kinds that want one fail, the others take both.
    let two_sockets = machine("two-sockets-sapphire-rapids");
    assert_eq!(of(&two_sockets, &[("MEMKIND_HBW_NODES", "0-1")], StaticKind::HbwPreferred), "Preferred 0:0 1:1");
    let knl = machine("knl-quad-hybrid");
    assert_eq!(of(&knl, &[("MEMKIND_HBW_THRESHOLD", "99999999")], StaticKind::Hbw), "-20");
    let grace = machine("grace-hopper");
    assert_eq!(of(&grace, &[("MEMKIND_HBW_NODES", "1")], StaticKind::Hbw), "Bind 1", "named, so it is taken");
}

#[test]
fn a_tie_is_no_preference() {
    let mut topology = machine("booted-knl-snc4");
    topology.distances.clear();
    assert_eq!(text(&choose(&topology, &with(&[]), StaticKind::HbwPreferred)), "-255");
    assert_eq!(text(&choose(&topology, &with(&[]), StaticKind::Hbw)), "Bind 4-7");
}
