//! Descriptions of published machines, built in. Each number names its source; a number that nobody published is absent. They live in
//! `machines/`, one file each, in the format of node.json.

use crate::exit::refuse;
use nearfar_core::node::Node;

/// Name and text of each, in the order of lists: near memory on the package, DRAM alone, far memories, devices.
const PRESETS: [(&str, &str); 18] = [
    ("knl-flat", include_str!("../../machines/knl-flat.json")),
    ("knl-7250-flat", include_str!("../../machines/knl-7250-flat.json")),
    ("knl-cache", include_str!("../../machines/knl-cache.json")),
    ("xeon-max-9480-flat", include_str!("../../machines/xeon-max-9480-flat.json")),
    ("xeon-max-9480-cache", include_str!("../../machines/xeon-max-9480-cache.json")),
    ("hbv5", include_str!("../../machines/hbv5.json")),
    ("mi300a", include_str!("../../machines/mi300a.json")),
    ("grace-hopper", include_str!("../../machines/grace-hopper.json")),
    ("sapphire-rapids-8480", include_str!("../../machines/sapphire-rapids-8480.json")),
    ("ice-lake-8360y", include_str!("../../machines/ice-lake-8360y.json")),
    ("genoa-9004", include_str!("../../machines/genoa-9004.json")),
    ("genoa-cxl", include_str!("../../machines/genoa-cxl.json")),
    ("hbv4", include_str!("../../machines/hbv4.json")),
    ("cxl-type3", include_str!("../../machines/cxl-type3.json")),
    ("optane-dcpmm", include_str!("../../machines/optane-dcpmm.json")),
    ("imdt", include_str!("../../machines/imdt.json")),
    ("nvme-gen4", include_str!("../../machines/nvme-gen4.json")),
    ("nvme-gen5", include_str!("../../machines/nvme-gen5.json")),
];

/// The names that [`find`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The machine called `name`, in letters of either case, with spaces or underscores for hyphens.
///
/// # Errors
/// A refusal with the names there are, those that look like `name` first, when there is none.
pub fn find(name: &str) -> anyhow::Result<Node> {
    let wanted = plain(name);
    match PRESETS.iter().find(|(known, _)| *known == wanted) {
        Some((known, text)) => serde_json::from_str(text).map_err(|error| anyhow::anyhow!("machines/{known}.json: {error}")),
        None => Err(refuse(unknown(name, &wanted))),
    }
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '_'], "-")
}

fn unknown(name: &str, wanted: &str) -> String {
    let all = names().collect::<Vec<_>>().join(", ");
    let close: Vec<&str> = names().filter(|known| is_close(wanted, known)).collect();
    let hint = if close.is_empty() { String::new() } else { format!("did you mean {}? ", close.join(" or ")) };
    format!("no machine is called \"{name}\"; {hint}There are: {all}")
}

/// Part of it, or a slip of at most two letters.
fn is_close(wanted: &str, known: &str) -> bool {
    (wanted.len() >= 3 && known.contains(wanted)) || distance(wanted, known) <= 2
}

/// Letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{FORMAT, Figure};

    fn is_absent(figure: &Figure) -> bool {
        *figure == Figure::default()
    }

    #[test]
    fn every_number_has_a_source() {
        for name in names() {
            let node = find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((node.format, node.name.as_str()), (FORMAT, name));
            assert!(!node.about.is_empty() && !node.written.is_empty(), "{name}");
            assert!(node.figures().any(Figure::is_known), "{name} says nothing");
            let clocks = node.compute.iter().filter_map(|row| row.clock_hz.as_ref());
            for figure in node.figures().chain(clocks) {
                // Of a request to a device only the rate, or only the time, may be known.
                if is_absent(figure) {
                    continue;
                }
                assert!(figure.median > 0.0 && figure.low > 0.0, "{name}: {figure:?}");
                assert!(figure.low <= figure.median && figure.median <= figure.high, "{name}: {figure:?}");
                assert!(figure.source.as_ref().is_some_and(|source| source.len() > 10), "{name}: {figure:?}");
                assert_eq!(figure.runs, 0, "{name}: measured by somebody else");
            }
            let alone = node.far.iter().flat_map(|tier| &tier.points);
            assert!(alone.clone().all(|point| point.rate.is_known() || point.time.is_known()), "{name}");
            assert!(node.figures().filter(|figure| is_absent(figure)).count() <= alone.count(), "{name}: a row without a figure");
            for memory in &node.topology.nodes {
                assert!(!memory.evidence.is_empty(), "{name}: where node {} is from", memory.id);
            }
        }
    }

    #[test]
    fn files_hold_nothing_that_the_format_has_no_field_for() {
        for (name, text) in PRESETS {
            let node = find(name).expect("found");
            let again: Node = serde_json::from_str(&serde_json::to_string(&node).expect("written")).expect("read");
            assert!(node == again, "{name}: not the same when written and read again");
            let raw: serde_json::Value = serde_json::from_str(text).expect("JSON");
            let known = serde_json::to_value(&node).expect("JSON");
            contained(&raw, &known, name);
        }
    }

    /// Every field of `part` is a field of `whole` (a word misspelt in a file would be ignored otherwise).
    fn contained(part: &serde_json::Value, whole: &serde_json::Value, place: &str) {
        match (part, whole) {
            (serde_json::Value::Object(part), serde_json::Value::Object(whole)) => {
                for (key, value) in part {
                    let place = format!("{place}.{key}");
                    contained(value, whole.get(key).unwrap_or_else(|| panic!("{place}: unknown")), &place);
                }
            }
            (serde_json::Value::Array(part), serde_json::Value::Array(whole)) => {
                assert_eq!(part.len(), whole.len(), "{place}");
                part.iter().zip(whole).for_each(|(part, whole)| contained(part, whole, place));
            }
            (serde_json::Value::Number(part), serde_json::Value::Number(whole)) => {
                assert_eq!(part.as_f64(), whole.as_f64(), "{place}")
            }
            _ => assert_eq!(part, whole, "{place}"),
        }
    }

    #[test]
    fn names_are_found_and_near_misses_are_told() {
        assert_eq!(find(" KNL_Flat ").expect("found").name, "knl-flat");
        assert_eq!(find("Xeon Max 9480 Flat").expect("found").name, "xeon-max-9480-flat");
        let told = |name: &str| find(name).expect_err("unknown").to_string();
        assert!(told("knl-flta").contains("did you mean knl-flat?"), "{}", told("knl-flta"));
        assert!(told("genoa").contains("genoa-9004 or genoa-cxl"));
        assert!(told("max").contains("xeon-max-9480-flat or xeon-max-9480-cache"));
        assert!(!told("zx81").contains("did you mean") && told("zx81").contains("hbv5"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn triads_that_people_quote() {
        let max = find("xeon-max-9480-flat").expect("found");
        let near = max.bandwidth.iter().find(|row| max.role(row.memory) == Some(nearfar_core::node::Role::Near)).expect("HBM");
        assert_eq!(near.rate.median, 559.6e9);
        let knl = find("knl-cache").expect("found");
        assert_eq!(knl.role(nearfar_core::node::Memory::Cache(3)), Some(nearfar_core::node::Role::Near));
    }
}
