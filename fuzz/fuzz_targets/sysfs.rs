//! What a kernel and its firmware say of a machine, as a capture of /sys and /proc.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::node::detect;
use nearfar_core::placement::nodes;
use nearfar_sys::machine;
use nearfar_sys::root::Root;

fuzz_target!(|text: &str| {
    let Ok(root) = Root::captured(text) else { return };
    let (topology, firmware) = (machine::topology(&root), machine::firmware(&root));
    detect::findings(&topology, firmware.as_ref());
    let _ = nodes::tiers_of(&topology);
    nodes::gpu_nodes(&topology);
    nodes::usable(&topology);
});
