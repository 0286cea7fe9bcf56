//! A profile as it was recorded, to its summary; and a summary as JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::profile::analyse::{Options, analyse};
use nearfar_core::profile::file;
use nearfar_core::profile::names::{NamedFrame, Names};
use nearfar_core::profile::summary::Summary;

/// Nothing has a name.
struct Nameless;

impl Names for Nameless {
    fn frames(&self, _: usize, addrs: &[u64]) -> Vec<NamedFrame> {
        addrs.iter().map(|_| NamedFrame::default()).collect()
    }

    fn function(&self, _: usize, _: u64) -> Option<(String, String)> {
        None
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = file::read(bytes) {
        analyse(&content, &Nameless, &Options::default());
    }
    if let Ok(summary) = serde_json::from_slice::<Summary>(bytes) {
        let _ = summary.check();
    }
});
