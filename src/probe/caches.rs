//! The caches of a probe: rows of each level, and rows of memories that are behind a memory-side cache.

use super::measure::Session;
use super::plan::Group;
use crate::cli::probe::Part;
use nearfar_core::node::{Cache, CacheKind, Chase, Memory, Operation, Stores};
use nearfar_core::units::Bytes;
use nearfar_kernels::probe as kernels;

/// What is measured of each.
const CACHE_ROWS: &[(Operation, Stores)] = &[
    (Operation::Read, Stores::None),
    (Operation::Write, Stores::Ordinary),
    (Operation::Copy, Stores::Ordinary),
    (Operation::Triad, Stores::Ordinary),
];

impl Session<'_> {
    /// Rows of nodes behind a memory-side cache that arrays cannot exceed are rows of that cache, one level above the others.
    pub(super) fn file_as_side_cache(&mut self) {
        let topology = &mut self.node.topology;
        let level = topology.caches.iter().map(|cache| cache.level).max().unwrap_or(0) + 1;
        let behind: Vec<u32> = topology.nodes.iter().filter(|node| !node.side_caches.is_empty()).map(|node| node.id).collect();
        let Some(bytes) = topology.nodes.iter().flat_map(|node| &node.side_caches).map(|side| side.bytes).max() else { return };
        let (instances, shared_by) = (behind.len() as u32, topology.online.len().max(1) as u32 / behind.len().max(1) as u32);
        topology.caches.push(Cache { level, bytes, instances, shared_by, ..Cache::default() });
        let file = |memory: &mut Memory| {
            if matches!(memory, Memory::Node(id) if behind.contains(id)) {
                *memory = Memory::Cache(level);
            }
        };
        self.node.bandwidth.iter_mut().for_each(|row| file(&mut row.memory));
        self.node.scaling.iter_mut().for_each(|row| file(&mut row.memory));
        self.node.latency.iter_mut().for_each(|row| file(&mut row.memory));
        self.node.loaded.iter_mut().for_each(|row| file(&mut row.memory));
        self.node.parallel_loads.iter_mut().for_each(|row| file(&mut row.memory));
    }

    /// Bandwidth and latency of each cache that holds data.
    pub(super) fn caches(&mut self) {
        let caches: Vec<Cache> =
            self.node.topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction).cloned().collect();
        if caches.is_empty() {
            self.missing("caches", "the kernel does not say how large they are");
        }
        let group = self.plan.groups[0].clone();
        let mut inner = 0;
        for cache in caches {
            self.progress.step(&format!("level {} cache", cache.level));
            // What a thread has of it when one runs on each core.
            let sharing = (cache.shared_by.max(1) / self.node.topology.threads_per_core.unwrap_or(1).max(1)).max(1);
            let own = cache.bytes / group.cores.len().min(sharing as usize) as u64;
            if self.wants(Part::Bandwidth) {
                self.cache_bandwidth(&group, cache.level, own, inner);
            }
            if self.wants(Part::Latency) {
                // A part of it: other cores, and other guests of a virtual machine, use the outer ones as well.
                let bytes =
                    if cache.shared_by > 1 { cache.bytes / 4 } else { cache.bytes / 2 }.max(2 * inner).min(cache.bytes / 4 * 3);
                self.cache_latency(&group, cache.level, bytes);
            }
            inner = own;
        }
    }

    /// Rows of a cache of which a thread has `own` bytes, and `inner` of the one before it.
    fn cache_bandwidth(&mut self, group: &Group, level: u32, own: u64, inner: u64) {
        let what = format!("bandwidth of the level {level} cache");
        if own / 2 < 2 * inner {
            let why = format!(
                "all cores at once have {} of it each, hardly more than the {} of the level before it",
                Bytes(own),
                Bytes(inner)
            );
            return self.missing(what, why);
        }
        for &row in CACHE_ROWS {
            // Half of it is what the operation touches; the setting's bytes are of three arrays.
            let arrays = (row.0.reads() + row.0.writes()) as u64;
            let rows = [row];
            let setting = kernels::StreamSetting {
                memory: Memory::Cache(level),
                array_bytes: own / 2 / arrays * 3,
                limit_bytes: self.limit(None),
                llc_bytes: None,
                budget: self.plan.row / 2,
                ..self.stream(&group.cores, Some(group.node), group.node, &rows)
            };
            match kernels::bandwidth(&setting) {
                Ok(measured) => self.node.bandwidth.extend(measured.rows),
                Err(error) => self.missing(what.clone(), error.to_string()),
            }
        }
    }

    fn cache_latency(&mut self, group: &Group, level: u32, bytes: u64) {
        let setting = kernels::ChaseSetting {
            cpu: group.cores[0],
            helpers: &group.cores[..1],
            cpu_node: group.node,
            memory: Memory::Cache(level),
            chases: &[Chase::Random],
            pages: self.pages(),
            bytes,
            llc_bytes: None,
            budget: self.plan.chase / 4,
            limit_bytes: self.limit(None),
        };
        match kernels::latency(&setting) {
            Ok((rows, _)) => self.node.latency.extend(rows),
            Err(error) => self.missing(format!("latency of the level {level} cache"), error.to_string()),
        }
    }
}
