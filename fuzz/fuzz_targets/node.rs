//! A machine's description (node.json), and what is made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::advise::machine::{Machine, home};
use nearfar_core::node::{Node, compare, diff};

fuzz_target!(|bytes: &[u8]| {
    let Ok(node) = serde_json::from_slice::<Node>(bytes) else { return };
    let _ = Machine::of_node(&node, home(&node).ok());
    compare(&node, &node);
    assert!(diff(&node, &node, 0.1).is_empty(), "it differs from itself");
    let again = serde_json::to_vec(&node).expect("it is written");
    serde_json::from_slice::<Node>(&again).expect("what was written is read");
});
