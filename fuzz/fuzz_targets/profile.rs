//! A profile as it was recorded, to its summary; and a summary as JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::profile::analyse::{Options, analyse};
use nearfar_core::profile::file;
use nearfar_core::profile::names::NoNames;
use nearfar_core::profile::summary::Summary;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = file::read(bytes) {
        analyse(&content, &NoNames, &Options::default());
    }
    if let Ok(summary) = serde_json::from_slice::<Summary>(bytes) {
        let _ = summary.check();
    }
});
