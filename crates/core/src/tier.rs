//! What near and far are made of, as the user names them. Parses and prints specs; opens nothing and asks no machine.
//!
//! Printing a spec gives text that parses back to the same spec, so that run files can hold it.

use crate::error::{Error, FAR, NEAR};
use crate::units::{Bytes, BytesPerSec, Nanos, Percent};
use std::fmt;
use std::str::FromStr;

/// The fast and small tier: `800M`, `16GiB`, `50%`, `node:1`, `node:1,3:12G`.
#[derive(Clone, Debug, PartialEq)]
pub enum NearSpec {
    /// A budget of ordinary memory, in bytes.
    Bytes(u64),
    /// A budget as a share of the machine's memory, more than 0 and at most 100 percent.
    Percent(f64),
    /// Memory of these NUMA nodes.
    Node {
        /// Node numbers, ascending, at least one.
        nodes: Vec<u32>,
        /// At most this many bytes of them; all of them when `None`.
        limit: Option<u64>,
    },
}

/// The large and slower tier: a path, `node:0`, `emu:bw=4G,lat=10us`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FarSpec {
    /// A file or directory. A path that begins with `node:` or `emu:` is written `./node:...`.
    Path(String),
    /// Memory of these NUMA nodes.
    Node {
        /// Node numbers, ascending, at least one.
        nodes: Vec<u32>,
    },
    /// Ordinary memory behind a throttle.
    Emulated {
        /// Bandwidth in bytes per second.
        bytes_per_s: u64,
        /// Latency of one access in ns.
        latency_ns: u64,
    },
}

impl NearSpec {
    /// The budget in bytes where `total` is the machine's memory in bytes; `None` when nodes are meant without a limit.
    pub fn budget(&self, total: u64) -> Option<u64> {
        match self {
            NearSpec::Bytes(bytes) => Some(*bytes),
            NearSpec::Percent(percent) => Percent::new(*percent).map(|p| p.of(Bytes(total)).0),
            NearSpec::Node { limit, .. } => *limit,
        }
    }
}

impl FromStr for NearSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("node:") {
            let (list, limit) = match rest.split_once(':') {
                Some((list, limit)) => (list, Some(limit.parse::<Bytes>().map_err(|e| NEAR.refuse(text, e.to_string()))?.0)),
                None => (rest, None),
            };
            return Ok(NearSpec::Node { nodes: node_list(list).map_err(|why| NEAR.refuse(text, why))?, limit });
        }
        if text.ends_with('%') {
            return Ok(NearSpec::Percent(text.parse::<Percent>()?.get()));
        }
        Ok(NearSpec::Bytes(text.parse::<Bytes>()?.0))
    }
}

impl FromStr for FarSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Err(FAR.refuse(text, "it is empty"));
        }
        if text.contains('\0') {
            return Err(FAR.refuse(text, "a path cannot contain a NUL character"));
        }
        if let Some(list) = text.strip_prefix("node:") {
            return Ok(FarSpec::Node { nodes: node_list(list).map_err(|why| FAR.refuse(text, why))? });
        }
        match text.strip_prefix("emu:") {
            Some(keys) => emulated(keys).map_err(|why| FAR.refuse(text, why)),
            None => Ok(FarSpec::Path(text.to_owned())),
        }
    }
}

/// Parses `bw=4G,lat=10us`; the bandwidth is required, the latency is 0 when left out.
fn emulated(keys: &str) -> Result<FarSpec, String> {
    let (mut rate, mut latency) = (None, None);
    for pair in keys.split(',') {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("\"{pair}\" is not key=value"))?;
        let twice = match key {
            "bw" => rate.replace(value.parse::<BytesPerSec>().map_err(|e| e.to_string())?.0).is_some(),
            "lat" => latency.replace(value.parse::<Nanos>().map_err(|e| e.to_string())?.0).is_some(),
            _ => return Err(format!("\"{key}\" is neither bw nor lat")),
        };
        if twice {
            return Err(format!("{key} is given twice"));
        }
    }
    let bytes_per_s = rate.ok_or("the bandwidth (bw=) is missing")?;
    Ok(FarSpec::Emulated { bytes_per_s, latency_ns: latency.unwrap_or(0) })
}

/// The kernel's own limit (CONFIG_NODES_SHIFT is at most 10).
const MAX_NODES: u32 = 1024;

/// Parses `1,3` or `0-3` into ascending numbers without doubles.
fn node_list(list: &str) -> Result<Vec<u32>, &'static str> {
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        plain
            .then(|| text.parse::<u32>().ok())
            .flatten()
            .filter(|&n| n < MAX_NODES)
            .ok_or("nodes are numbers such as 1 or 1,3 or 0-3")
    };
    let mut nodes = Vec::new();
    for part in list.split(',') {
        let (low, high) = match part.split_once('-') {
            Some((low, high)) => (number(low)?, number(high)?),
            None => (number(part)?, number(part)?),
        };
        if low > high {
            return Err("a range of nodes goes from low to high");
        }
        nodes.extend(low..=high);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

fn write_nodes(f: &mut fmt::Formatter<'_>, nodes: &[u32]) -> fmt::Result {
    f.write_str("node:")?;
    for (index, node) in nodes.iter().enumerate() {
        write!(f, "{}{node}", if index == 0 { "" } else { "," })?;
    }
    Ok(())
}

impl fmt::Display for NearSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NearSpec::Bytes(bytes) => f.write_str(&Bytes(*bytes).exact()),
            NearSpec::Percent(percent) => write!(f, "{percent}%"),
            NearSpec::Node { nodes, limit } => {
                write_nodes(f, nodes)?;
                limit.map_or(Ok(()), |limit| write!(f, ":{}", Bytes(limit).exact()))
            }
        }
    }
}

impl fmt::Display for FarSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FarSpec::Path(path) => f.write_str(path),
            FarSpec::Node { nodes } => write_nodes(f, nodes),
            FarSpec::Emulated { bytes_per_s, latency_ns } => {
                write!(f, "emu:bw={},lat={latency_ns}ns", Bytes(*bytes_per_s).exact())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn near_specs_round_trip() {
        for (text, spec) in [
            ("800M", NearSpec::Bytes(800 << 20)),
            ("16GiB", NearSpec::Bytes(16 << 30)),
            ("50%", NearSpec::Percent(50.0)),
            ("node:1", NearSpec::Node { nodes: vec![1], limit: None }),
            ("node:3,1:12G", NearSpec::Node { nodes: vec![1, 3], limit: Some(12 << 30) }),
            ("node:0-2", NearSpec::Node { nodes: vec![0, 1, 2], limit: None }),
        ] {
            assert_eq!(text.parse::<NearSpec>().as_ref(), Ok(&spec), "{text}");
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for text in ["", "0", "node:", "node:x", "node:1:", "node:1:0", "node:3-1", "node:-1", "node:9999", "150%", "lots"] {
            let error = text.parse::<NearSpec>().unwrap_err().to_string();
            assert!(error.contains(&format!("\"{text}\"")) && error.contains("write"), "{error}");
        }
    }

    #[test]
    fn far_specs_round_trip() {
        for (text, spec) in [
            ("/scratch/spill", FarSpec::Path("/scratch/spill".into())),
            ("./node:0", FarSpec::Path("./node:0".into())),
            ("node:0", FarSpec::Node { nodes: vec![0] }),
            ("emu:bw=4G,lat=10us", FarSpec::Emulated { bytes_per_s: 4 << 30, latency_ns: 10_000 }),
            ("emu:lat=0,bw=1M", FarSpec::Emulated { bytes_per_s: 1 << 20, latency_ns: 0 }),
            ("emu:bw=1M", FarSpec::Emulated { bytes_per_s: 1 << 20, latency_ns: 0 }),
        ] {
            assert_eq!(text.parse::<FarSpec>().as_ref(), Ok(&spec), "{text}");
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for text in ["", " ", "emu:", "emu:lat=1us", "emu:bw=0", "emu:bw=1G,bw=2G", "emu:bw=1G,x=1", "node:", "a\0b"] {
            assert!(text.parse::<FarSpec>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn budget_of_a_share() {
        assert_eq!(NearSpec::Percent(25.0).budget(1 << 30), Some(1 << 28));
        assert_eq!(NearSpec::Bytes(7).budget(1 << 30), Some(7));
        assert_eq!(NearSpec::Node { nodes: vec![0], limit: None }.budget(1), None);
    }

    proptest! {
        #[test]
        fn never_panics(head in prop::sample::select(vec!["", "node:", "emu:bw=", "emu:"]), tail in "\\PC{0,16}") {
            let text = format!("{head}{tail}");
            if let Ok(near) = text.parse::<NearSpec>() {
                prop_assert_eq!(near.to_string().parse(), Ok(near));
            }
            if let Ok(far) = text.parse::<FarSpec>() {
                prop_assert_eq!(far.to_string().parse(), Ok(far));
            }
        }
    }
}
