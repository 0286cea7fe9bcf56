//! Which nodes of near are the nearest to each CPU, as far as it makes a difference: groups of the machine's nodes whose CPUs have the
//! same nearest ones (each quarter of a Knights Landing in SNC-4 has MCDRAM of its own).

use nearfar_core::placement::{MAX_NODES, NodeSet};
use nearfar_sys::root::Root;

/// Group of each node with CPUs; empty when there is only one group.
#[derive(Default)]
pub struct Nearest {
    groups: Vec<u8>,
}

impl Nearest {
    /// For memory on `nodes`, by the distances that the kernel knows.
    pub fn of(nodes: &NodeSet) -> Self {
        if nodes.len() < 2 {
            return Self::default();
        }
        let root = Root::this();
        let numbers = root.numbered("/sys/devices/system/node", "node");
        let rows: Vec<(u32, Vec<u32>)> = numbers
            .iter()
            .filter_map(|&node| {
                let text = root.text(&format!("/sys/devices/system/node/node{node}/distance"))?;
                Some((node, text.split_whitespace().filter_map(|word| word.parse().ok()).collect()))
            })
            .collect();
        Self::from_distances(nodes, &rows, &numbers)
    }

    /// `rows`: a node and its distances to the nodes of `columns`.
    fn from_distances(nodes: &NodeSet, rows: &[(u32, Vec<u32>)], columns: &[u32]) -> Self {
        let mut sets: Vec<NodeSet> = Vec::new();
        let mut groups = Vec::new();
        for (node, distances) in rows.iter().filter(|(node, _)| *node < MAX_NODES) {
            let near = || columns.iter().zip(distances).filter(|(other, _)| nodes.contains(**other));
            let least = near().map(|(_, distance)| *distance).min();
            let nearest: NodeSet = near().filter(|(_, distance)| Some(**distance) == least).map(|(&other, _)| other).collect();
            let group = sets.iter().position(|set| *set == nearest).unwrap_or_else(|| {
                sets.push(nearest);
                sets.len() - 1
            });
            let index = *node as usize;
            if groups.len() <= index {
                groups.resize(index + 1, 0);
            }
            groups[index] = u8::try_from(group).unwrap_or(u8::MAX);
        }
        if sets.len() < 2 { Self::default() } else { Self { groups } }
    }

    /// True when it makes no difference where a thread runs.
    pub fn is_uniform(&self) -> bool {
        self.groups.is_empty()
    }

    /// How many groups there are, at least one.
    pub fn groups(&self) -> usize {
        self.groups.iter().max().map_or(1, |&most| most as usize + 1)
    }

    /// The group of the CPUs of `node`.
    pub fn group_of(&self, node: u32) -> usize {
        self.groups.get(node as usize).map_or(0, |&group| group as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_have_memory_of_their_own() {
        // Knights Landing in SNC-2, flat: 0 and 1 have CPUs, 2 is near 0 and 3 near 1.
        let rows = [(0, vec![10, 21, 31, 41]), (1, vec![21, 10, 41, 31]), (2, vec![31, 41, 10, 41]), (3, vec![41, 31, 41, 10])];
        let near: NodeSet = [2, 3].into_iter().collect();
        let reach = Nearest::from_distances(&near, &rows, &[0, 1, 2, 3]);
        assert!(!reach.is_uniform() && reach.group_of(0) != reach.group_of(1));
        assert_eq!((reach.group_of(0), reach.group_of(1)), (reach.group_of(2), reach.group_of(3)));
        // One node of near: no difference.
        let one: NodeSet = [3].into_iter().collect();
        assert!(Nearest::from_distances(&one, &rows, &[0, 1, 2, 3]).is_uniform());
        assert!(Nearest::of(&one).is_uniform());
    }
}
