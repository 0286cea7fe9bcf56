//! A plan, as `nearfar run --place plan:FILE` reads it; and the table that processes get of it, whose bytes they check, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nearfar_core::placement::{plan::Plan, table};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(plan) = toml::from_str::<Plan>(text)
        && plan.check().is_ok()
        && let Ok(compiled) = table::compile(&plan)
    {
        let table = table::Table::new(&compiled).expect("what was compiled can be read");
        assert_eq!(table.len(), plan.place.len());
    }
    if let Ok(table) = table::Table::new(bytes) {
        table.rules().for_each(|rule| rule.frames().for_each(drop));
        table.frames().for_each(drop);
        (0..=table.len()).for_each(|index| _ = table.first_frame(index));
    }
});
