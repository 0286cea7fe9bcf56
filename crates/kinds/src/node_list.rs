//! Lists of NUMA nodes as users write them in MEMKIND_HBW_NODES: the syntax of `numa_parse_nodestring` of libnuma.
//!
//! `1-3,5`, `all`, `!0` (all but), `+0-1` (counted among the nodes that this process may use). Names of devices and files, which
//! libnuma also takes, are refused.

use nearfar_core::placement::{MAX_NODES, NodeSet};

/// What a list says, before it is known which nodes there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeList {
    ranges: Vec<(u32, u32)>,
    is_all: bool,
    is_inverse: bool,
    is_relative: bool,
}

impl NodeList {
    /// Parses a list.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.trim();
        let mut list = Self { ranges: Vec::new(), is_all: false, is_inverse: false, is_relative: false };
        if let Some(behind) = rest.strip_prefix('!') {
            (list.is_inverse, rest) = (true, behind);
        }
        if let Some(behind) = rest.strip_prefix('+') {
            (list.is_relative, rest) = (true, behind);
        }
        if rest == "all" {
            return Ok(Self { is_all: true, ..list });
        }
        for part in rest.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().ok().filter(|_| text.trim().bytes().all(|b| b.is_ascii_digit()));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last && last < MAX_NODES => list.ranges.push((first, last)),
                (Some(_), Some(last)) if last >= MAX_NODES => return Err(format!("no machine has a node {last}")),
                _ => return Err("not a list of NUMA nodes such as 1-3,5".to_owned()),
            }
        }
        Ok(list)
    }

    /// The nodes, of those `usable` by this process: with memory, and allowed by its cpuset.
    ///
    /// # Errors
    /// The node that cannot be used, or that none is left.
    pub fn nodes(&self, usable: &NodeSet) -> Result<NodeSet, String> {
        let named: NodeSet = if self.is_all {
            *usable
        } else {
            let mut set = NodeSet::EMPTY;
            for number in self.ranges.iter().flat_map(|&(first, last)| first..=last) {
                let node = if self.is_relative { usable.iter().nth(number as usize) } else { Some(number) };
                match node.filter(|&node| usable.contains(node)) {
                    Some(node) => set.insert(node),
                    // What is to be left out need not be there.
                    None if self.is_inverse => {}
                    None => return Err(format!("node {number} has no memory that this process may use (it may use {usable})")),
                }
            }
            set
        };
        let chosen = if self.is_inverse { usable.iter().filter(|&node| !named.contains(node)).collect() } else { named };
        if chosen.is_empty() { Err("no node is left".to_owned()) } else { Ok(chosen) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, usable: &[u32]) -> Result<String, String> {
        Ok(NodeList::parse(text)?.nodes(&usable.iter().copied().collect())?.to_string())
    }

    #[test]
    fn lists_as_libnuma_takes_them() {
        let usable = [0, 1, 2, 3, 8, 9];
        for (text, nodes) in [
            ("1-3,8", "1-3,8"),
            (" 0 ", "0"),
            ("all", "0-3,8,9"),
            ("!0-2", "3,8,9"),
            ("+4-5", "8,9"),
            ("!+0", "1-3,8,9"),
            ("1,1", "1"),
        ] {
            assert_eq!(of(text, &usable).as_deref(), Ok(nodes), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", "nonsense", "1,", "3-1", "-1", "1-", "7", "0-4", "!all", "+6", "1024", "99999999999", "0x1", "+", "eth0"]
        {
            assert!(of(bad, &[0, 1, 2, 3, 8, 9]).is_err(), "{bad}");
        }
    }
}
