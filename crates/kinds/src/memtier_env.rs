//! The environment of libmemtier: MEMKIND_MEM_TIERS, MEMKIND_MEM_THRESHOLDS and MEMKIND_MEM_TIERING_LOG_LEVEL, parsed. Pure.
//!
//! The documented grammar, and on top of it: the kinds HBW and NODE:LIST, any case, blanks around words, `=` where `:` is meant, and
//! text of any length.

use crate::memtier::{Policy, Threshold};
use nearfar_core::node::CpuList;
use nearfar_core::placement::{MAX_NODES, NodeSet};
use nearfar_core::units::Bytes;

/// A file for allocations must have this size at least, as for memkind_create_pmem().
const LEAST_FILE: u64 = 16 << 20;

/// The memory of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierKind {
    /// Ordinary memory.
    Dram,
    /// Persistent memory that is a NUMA node.
    KmemDax,
    /// A file.
    FsDax {
        /// The directory that it is made in.
        path: String,
        /// Most bytes, if there is a limit.
        limit: Option<usize>,
    },
    /// High-bandwidth memory. Ours.
    Hbw,
    /// NUMA nodes by number. Ours.
    Nodes(NodeSet),
}

/// A tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its memory.
    pub kind: TierKind,
    /// Its parts of the whole.
    pub ratio: u32,
}

/// Tiers, and how allocations are spread over them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// Nearest first.
    pub tiers: Vec<Tier>,
    /// How.
    pub policy: Policy,
    /// Thresholds as far as they were given, complete with what is documented for the rest of each.
    pub thresholds: Vec<Threshold>,
}

/// How much libmemtier prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// What is wrong.
    #[default]
    Error,
    /// What was chosen besides.
    Info,
    /// Every call besides.
    Debug,
}

/// What to write, for those who wrote something else.
pub const EXAMPLE: &str = "MEMKIND_MEM_TIERS=\"KIND:DRAM,RATIO:1;KIND:KMEM_DAX,RATIO:4;POLICY:STATIC_RATIO\"";

/// The tiers that the two variables describe, as they are in the environment (`None`: not set).
///
/// # Errors
/// What is wrong, where, and what could be written.
pub fn parse(tiers: Option<&str>, thresholds: Option<&str>) -> Result<Tiers, String> {
    let text = tiers.ok_or_else(|| format!("MEMKIND_MEM_TIERS is not set; write for example {EXAMPLE}"))?;
    let (tiers, policy) = parse_tiers(text).map_err(|why| format!("MEMKIND_MEM_TIERS: {why}; write for example {EXAMPLE}"))?;
    let thresholds = match thresholds {
        None => Vec::new(),
        Some(_) if policy == Policy::StaticRatio => {
            return Err("MEMKIND_MEM_THRESHOLDS goes with POLICY:DYNAMIC_THRESHOLD only; unset it, or change the policy".into());
        }
        Some(text) => parse_thresholds(text, tiers.len() - 1)
            .map_err(|why| format!("MEMKIND_MEM_THRESHOLDS: {why}; write for example \"INIT_VAL:64,MIN_VAL:1,MAX_VAL:10000\""))?,
    };
    Ok(Tiers { tiers, policy, thresholds })
}

/// MEMKIND_MEM_TIERING_LOG_LEVEL.
///
/// # Errors
/// What could be written.
pub fn parse_log(text: Option<&str>) -> Result<LogLevel, String> {
    match text.map(str::trim) {
        None | Some("0") => Ok(LogLevel::Error),
        Some("1") => Ok(LogLevel::Info),
        Some("2") => Ok(LogLevel::Debug),
        Some(other) => Err(format!(
            "MEMKIND_MEM_TIERING_LOG_LEVEL: \"{other}\" is not a level; write 0 (errors), 1 (information) or 2 (every call)"
        )),
    }
}

/// Name and value of a parameter.
fn parameter(item: &str) -> Option<(&str, &str)> {
    let at = item.find([':', '='])?;
    Some((item[..at].trim(), item[at + 1..].trim()))
}

fn parse_tiers(text: &str) -> Result<(Vec<Tier>, Policy), String> {
    let mut groups: Vec<_> = text.split(';').map(str::trim).collect();
    if groups.last() == Some(&"") {
        groups.pop();
    }
    let last = groups.pop().ok_or("it is empty")?;
    let policy = match parameter(last) {
        Some((name, value)) if name.eq_ignore_ascii_case("POLICY") => parse_policy(value)?,
        _ => return Err(format!("\"{last}\" comes last, where POLICY:STATIC_RATIO or POLICY:DYNAMIC_THRESHOLD should be")),
    };
    let mut tiers = Vec::new();
    for group in groups {
        let tier = parse_tier(group)?;
        // Several files are several memories, even in one directory.
        if !matches!(tier.kind, TierKind::FsDax { .. }) && tiers.iter().any(|other: &Tier| other.kind == tier.kind) {
            return Err(format!("\"{group}\" is the memory of an earlier tier; add up their ratios"));
        }
        tiers.push(tier);
    }
    match (tiers.len(), policy) {
        (0, _) => Err("there is no tier".into()),
        (1, Policy::DynamicThreshold) => Err("DYNAMIC_THRESHOLD needs at least two tiers".into()),
        _ => Ok((tiers, policy)),
    }
}

fn parse_policy(value: &str) -> Result<Policy, String> {
    if value.eq_ignore_ascii_case("STATIC_RATIO") {
        Ok(Policy::StaticRatio)
    } else if value.eq_ignore_ascii_case("DYNAMIC_THRESHOLD") {
        Ok(Policy::DynamicThreshold)
    } else {
        Err(format!("\"{value}\" is not a policy: write STATIC_RATIO or DYNAMIC_THRESHOLD"))
    }
}

/// Sets `place` unless it is set.
fn once<T>(place: &mut Option<T>, name: &str, group: &str, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} comes twice in \"{group}\"")),
    }
}

fn parse_tier(group: &str) -> Result<Tier, String> {
    let (mut kind, mut ratio, mut path, mut limit) = (None, None, None, None);
    // Numbers after KIND:NODE:1 are more of its nodes.
    let mut nodes: Option<String> = None;
    let mut in_list = false;
    for item in group.split(',').map(str::trim) {
        let is_number = item.starts_with(|c: char| c.is_ascii_digit());
        if let (true, true, Some(list)) = (in_list, is_number, &mut nodes) {
            *list += ",";
            *list += item;
            continue;
        }
        in_list = false;
        let (name, value) = parameter(item).ok_or_else(|| format!("\"{item}\" in \"{group}\" is not NAME:VALUE"))?;
        match name.to_ascii_uppercase().as_str() {
            "KIND" => match parameter(value) {
                Some((node, list)) if node.eq_ignore_ascii_case("NODE") => {
                    once(&mut kind, "KIND", group, "NODE".to_owned())?;
                    nodes = Some(list.to_owned());
                    in_list = true;
                }
                _ => once(&mut kind, "KIND", group, value.to_ascii_uppercase())?,
            },
            "RATIO" => once(&mut ratio, "RATIO", group, parse_ratio(value)?)?,
            "PATH" => once(&mut path, "PATH", group, value.to_owned())?,
            "PMEM_SIZE_LIMIT" => once(&mut limit, "PMEM_SIZE_LIMIT", group, parse_limit(value)?)?,
            _ => {
                return Err(format!("\"{name}\" in \"{group}\" is not a parameter: write KIND, RATIO, PATH or PMEM_SIZE_LIMIT"));
            }
        }
    }
    let kind = kind.ok_or_else(|| format!("KIND is missing in \"{group}\""))?;
    let ratio = ratio.ok_or_else(|| format!("RATIO is missing in \"{group}\""))?;
    let for_file = path.is_some() || limit.is_some();
    let kind = match (kind.as_str(), path, nodes) {
        ("FS_DAX", Some(path), None) if !path.is_empty() => TierKind::FsDax { path, limit: limit.flatten() },
        ("FS_DAX", ..) => return Err(format!("PATH, the directory of the file, is missing in \"{group}\"")),
        _ if for_file => return Err(format!("PATH and PMEM_SIZE_LIMIT go with KIND:FS_DAX only, not with \"{group}\"")),
        ("NODE", _, Some(list)) => TierKind::Nodes(parse_nodes(&list)?),
        ("DRAM", ..) => TierKind::Dram,
        ("KMEM_DAX", ..) => TierKind::KmemDax,
        ("HBW", ..) => TierKind::Hbw,
        _ => {
            return Err(format!("\"{kind}\" is not a kind of memory: write DRAM, KMEM_DAX, FS_DAX, HBW or NODE:LIST (NODE:1,3)"));
        }
    };
    Ok(Tier { kind, ratio })
}

fn parse_ratio(value: &str) -> Result<u32, String> {
    let ratio = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten();
    ratio
        .filter(|&ratio| ratio > 0)
        .ok_or_else(|| format!("\"{value}\" is not a ratio: write a whole number from 1 to {}", u32::MAX))
}

/// 0 is no limit, as for memkind_create_pmem().
fn parse_limit(value: &str) -> Result<Option<usize>, String> {
    match parse_size(value)? {
        0 => Ok(None),
        limit if (limit as u64) < LEAST_FILE => {
            Err(format!("PMEM_SIZE_LIMIT:{value} is too small: write at least 16M, or 0 for no limit"))
        }
        limit => Ok(Some(limit)),
    }
}

fn parse_size(value: &str) -> Result<usize, String> {
    if value == "0" {
        return Ok(0);
    }
    let bytes = value.parse::<Bytes>().map_err(|error| error.to_string())?;
    usize::try_from(bytes.0).map_err(|_| format!("\"{value}\" is more than this machine can address"))
}

fn parse_nodes(list: &str) -> Result<NodeSet, String> {
    let refuse = || format!("\"{list}\" is not a list of nodes below {MAX_NODES}, such as 1 or 0,2-3");
    let nodes: CpuList = list.parse().map_err(|_| refuse())?;
    if nodes.is_empty() || nodes.as_slice().iter().any(|&node| node >= MAX_NODES) {
        return Err(refuse());
    }
    Ok(nodes.as_slice().iter().copied().collect())
}

fn parse_thresholds(text: &str, gaps: usize) -> Result<Vec<Threshold>, String> {
    let mut groups: Vec<_> = text.split(';').map(str::trim).collect();
    if groups.last() == Some(&"") {
        groups.pop();
    }
    if groups.len() > gaps {
        return Err(format!("there are {} thresholds, but {} tiers have {gaps} between them", groups.len(), gaps + 1));
    }
    let threshold = |(index, group): (usize, &&str)| parse_threshold(group, Threshold::default_of(index));
    groups.iter().enumerate().map(threshold).collect()
}

fn parse_threshold(group: &str, default: Threshold) -> Result<Threshold, String> {
    let (mut val, mut min, mut max) = (None, None, None);
    for item in group.split(',').map(str::trim) {
        let (name, value) = parameter(item).ok_or_else(|| format!("\"{item}\" is not NAME:VALUE"))?;
        match name.to_ascii_uppercase().as_str() {
            "INIT_VAL" => once(&mut val, "INIT_VAL", group, parse_size(value)?)?,
            "MIN_VAL" => once(&mut min, "MIN_VAL", group, parse_size(value)?)?,
            "MAX_VAL" => once(&mut max, "MAX_VAL", group, parse_size(value)?)?,
            _ => return Err(format!("\"{name}\" is not a parameter: write INIT_VAL, MIN_VAL or MAX_VAL")),
        }
    }
    let (val, min, max) = (val.unwrap_or(default.val), min.unwrap_or(default.min), max.unwrap_or(default.max));
    Ok(Threshold { val, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tiers(text: &str) -> Result<Tiers, String> {
        parse(Some(text), None)
    }

    #[test]
    fn the_documented_examples() {
        let file = TierKind::FsDax { path: "/mnt/pmem0".into(), limit: Some(10 << 30) };
        let expected = vec![Tier { kind: file, ratio: 1 }, Tier { kind: TierKind::Dram, ratio: 4 }];
        let text = "KIND:FS_DAX,PATH:/mnt/pmem0,PMEM_SIZE_LIMIT:10G,RATIO:1;KIND:DRAM,RATIO:4;POLICY:STATIC_RATIO";
        assert_eq!(tiers(text), Ok(Tiers { tiers: expected, policy: Policy::StaticRatio, thresholds: vec![] }));
        let text = "KIND:DRAM,RATIO:1;KIND:KMEM_DAX,RATIO:4;POLICY:DYNAMIC_THRESHOLD";
        for thresholds in ["INIT_VAL:64,MIN_VAL:1,MAX_VAL:10000", "INIT_VAL=64, MIN_VAL=1, MAX_VAL=10000;"] {
            let parsed = parse(Some(text), Some(thresholds)).expect(thresholds);
            assert_eq!(parsed.thresholds, [Threshold { val: 64, min: 1, max: 10000 }]);
        }
        let parsed = parse(Some(text), Some("MAX_VAL:4K")).expect("the rest is as documented");
        assert_eq!(parsed.thresholds, [Threshold { val: 1024, min: 513, max: 4096 }]);
    }

    #[test]
    fn our_kinds_and_more_than_1023_characters() {
        let parsed = tiers("KIND:HBW,RATIO:1;KIND:NODE:1,3-5,RATIO:2;kind:node:0 , ratio:1;POLICY:STATIC_RATIO").expect("tiers");
        let nodes = |list: &[u32]| TierKind::Nodes(list.iter().copied().collect());
        let kinds: Vec<_> = parsed.tiers.into_iter().map(|tier| tier.kind).collect();
        assert_eq!(kinds, [TierKind::Hbw, nodes(&[1, 3, 4, 5]), nodes(&[0])]);
        let path = format!("/{}", "long".repeat(1000));
        let parsed = tiers(&format!("KIND:FS_DAX,PATH:{path},RATIO:1;POLICY:STATIC_RATIO")).expect("a long path");
        assert_eq!(parsed.tiers[0].kind, TierKind::FsDax { path, limit: None });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("", "empty"),
            ("KIND:DRAM,RATIO:1", "POLICY"),
            ("POLICY:STATIC_RATIO", "no tier"),
            ("POLICY:STATIC_RATIO;KIND:DRAM,RATIO:1", "comes last"),
            ("KIND:DRAM,RATIO:1;POLICY:RANDOM", "RANDOM"),
            ("KIND:DRAM;POLICY:STATIC_RATIO", "RATIO is missing"),
            ("RATIO:1;POLICY:STATIC_RATIO", "KIND is missing"),
            ("KIND:DRAM,RATIO:0;POLICY:STATIC_RATIO", "\"0\""),
            ("KIND:DRAM,RATIO:-1;POLICY:STATIC_RATIO", "\"-1\""),
            ("KIND:DRAM,RATIO:4294967296;POLICY:STATIC_RATIO", "4294967295"),
            ("KIND:DRAM,RATIO:1,RATIO:2;POLICY:STATIC_RATIO", "twice"),
            ("KIND:DRAM,RATIO:1;KIND:DRAM,RATIO:2;POLICY:STATIC_RATIO", "earlier"),
            ("KIND:MCDRAM,RATIO:1;POLICY:STATIC_RATIO", "HBW"),
            ("KIND:DRAM,SIZE:1,RATIO:1;POLICY:STATIC_RATIO", "SIZE"),
            ("KIND:DRAM,RATIO:1,3;POLICY:STATIC_RATIO", "\"3\""),
            ("KIND:FS_DAX,RATIO:1;POLICY:STATIC_RATIO", "PATH"),
            ("KIND:DRAM,PATH:/tmp,RATIO:1;POLICY:STATIC_RATIO", "FS_DAX"),
            ("KIND:FS_DAX,PATH:/tmp,PMEM_SIZE_LIMIT:1M,RATIO:1;POLICY:STATIC_RATIO", "16M"),
            ("KIND:NODE:x,RATIO:1;POLICY:STATIC_RATIO", "list of nodes"),
            ("KIND:NODE:1024,RATIO:1;POLICY:STATIC_RATIO", "list of nodes"),
            ("KIND:DRAM,RATIO:1;POLICY:DYNAMIC_THRESHOLD", "two tiers"),
        ] {
            let why = tiers(text).expect_err(text);
            assert!(why.contains(named) && why.contains("KIND:DRAM"), "{text}: {why}");
        }
        assert!(parse(None, None).expect_err("nothing is set").contains("KIND:DRAM"));
        let two = "KIND:DRAM,RATIO:1;KIND:HBW,RATIO:1;POLICY:";
        let thresholds = |policy: &str, text| parse(Some(&format!("{two}{policy}")), Some(text)).expect_err(text);
        assert!(thresholds("STATIC_RATIO", "INIT_VAL:1").contains("DYNAMIC_THRESHOLD"));
        assert!(thresholds("DYNAMIC_THRESHOLD", "INIT_VAL:1;INIT_VAL:2").contains("2 thresholds"));
        assert!(thresholds("DYNAMIC_THRESHOLD", "INIT_VAL:1,INIT_VAL:2").contains("twice"));
        assert!(thresholds("DYNAMIC_THRESHOLD", "INIT:1").contains("INIT_VAL"));
    }

    #[test]
    fn levels_of_talk() {
        assert_eq!((parse_log(None), parse_log(Some("2"))), (Ok(LogLevel::Error), Ok(LogLevel::Debug)));
        assert!(parse_log(Some("3")).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_understood_or_refused(tiers in ".*", thresholds in ".*") {
            let _ = parse(Some(&tiers), Some(&thresholds));
        }

        #[test]
        fn nearly_right_text_too(parts in prop::collection::vec(prop::sample::select(vec![
            "KIND", "RATIO", "PATH", "POLICY", "STATIC_RATIO", "DYNAMIC_THRESHOLD", "NODE", "DRAM", "HBW", "FS_DAX", ":", ",", ";", "=", "1", "0-3", " ",
        ]), 0..30)) {
            if let Ok(parsed) = parse(Some(&parts.concat()), None) {
                prop_assert!(!parsed.tiers.is_empty() && parsed.tiers.iter().all(|tier| tier.ratio > 0));
            }
        }
    }
}
