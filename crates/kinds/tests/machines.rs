//! The captured machines (tests/machines/*.capture): which nodes each kind is made of there.

use nearfar_kinds::choice::{Choice, choose};
use nearfar_kinds::environment::Environment;
use nearfar_kinds::static_kind::StaticKind;
use nearfar_core::node::Topology;
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

#[test]
fn print() {
    for entry in std::fs::read_dir(dir()).expect("tests/machines").flatten() {
        let name = entry.path().file_stem().unwrap().to_str().unwrap().to_owned();
        let topology = machine(&name);
        println!("== {name}");
        for kind in StaticKind::ALL {
            println!("{name} {}: {}", kind.name(), text(&choose(&topology, &with(&[]), kind)));
        }
    }
}
