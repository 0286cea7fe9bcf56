//! Several runs beside each other: what near memory does to run time.

use crate::ui::html::{Cell, method, table};
use nearfar_core::node::words;
use serde_json::Value;

/// Near memory of a run, in words.
pub fn near(run: &Value) -> String {
    run["near_bytes"].as_u64().map_or_else(|| "of unknown size".to_owned(), words::size)
}

/// A table of `runs`, the one with the most near memory first.
pub fn table_of(runs: &[&Value]) -> String {
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| std::cmp::Reverse(run["near_bytes"].as_u64()));
    let head = ["near", "program", "wall time", "threads that waited", "read from far", "written", "of the bound", "end"];
    table(&head, runs.into_iter().map(row)) + &method("Threads that waited: for far, on average over the run.")
}

fn row(run: &Value) -> Vec<Cell> {
    let number = |value: Option<String>| Cell::number(value.unwrap_or_default());
    let bytes = |name: &str| number(run["counters"][name].as_u64().map(words::size));
    vec![
        Cell::number(near(run)),
        Cell::text(run["program"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default()),
        number(run["wall_s"].as_f64().map(|seconds| format!("{} s", words::digits(seconds)))),
        number(run["derived"]["stall_share"].as_f64().map(|share| format!("{share:.2}"))),
        bytes("bytes_in"),
        bytes("bytes_out"),
        number(run["derived"]["efficiency_vs_bound"].as_f64().map(words::percent)),
        Cell::text(super::run::end(&run["exit"])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_near_comes_first() {
        let run = |near: u64, wall: f64| serde_json::json!({"program": "/bin/x", "near_bytes": near, "wall_s": wall});
        let (little, much) = (run(1 << 20, 9.0), run(1 << 30, 3.0));
        let html = table_of(&[&little, &much]);
        assert!(html.find("1 GiB").expect("much") < html.find("1 MiB").expect("little"), "{html}");
        assert!(html.contains("9 s") || html.contains("9.00 s"), "{html}");
    }
}
