//! A trace of `nearfar run --trace`, and what replays take from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::trace::{Grain, accesses, steps};

fuzz_target!(|bytes: &[u8]| {
    let _ = accesses(bytes, Grain::Chunk);
    let _ = accesses(bytes, Grain::Block);
    let _ = steps(bytes);
});
