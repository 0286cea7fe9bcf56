//! What a machine is: its parts, the conclusions drawn from them with their evidence, and how quiet it was.

use crate::probe::display::{certainty, subject};
use crate::ui::html::{self, Cell, heading, paragraph, section, table};
use nearfar_core::node::{Cache, CacheKind, Finding, MemoryNode, Node, Topology, words};

/// The sections on the machine itself.
pub fn sections(node: &Node) -> String {
    let topology = &node.topology;
    [facts(node), findings(&node.findings), nodes(node), distances(topology), caches(node), noise(node)].concat()
}

fn facts(node: &Node) -> String {
    let topology = &node.topology;
    let count = |value: Option<u32>, what: &str| value.map(|value| format!("{value} {what}"));
    let cores = [
        count(topology.packages, "sockets"),
        count(topology.cores, "cores"),
        count(topology.threads_per_core, "hardware threads a core"),
        (!topology.online.is_empty()).then(|| format!("{} CPUs", topology.online.len())),
    ];
    let narrowed = topology.allowed != topology.online;
    let allowed = if narrowed { format!("{} ({})", topology.allowed, topology.allowed.len()) } else { String::new() };
    let pools = topology.huge_pages.reserved.iter().filter(|(_, count)| *count > 0);
    let pools: Vec<String> = pools.map(|(bytes, count)| format!("{count} of {}", words::size(*bytes))).collect();
    let limits = [
        topology.cgroup.memory_bytes.map(|bytes| format!("{} of memory", words::size(bytes))),
        topology.cgroup.cpus.map(|cpus| format!("{cpus:.2} CPUs")),
    ];
    let joined = |parts: &[Option<String>]| parts.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    let how = if node.quick { ", with --quick: fewer rows and repetitions" } else { "" };
    let written = if node.seconds > 0.0 {
        ("Measured", format!("{} by nearfar {}, in {:.0} s{how}", node.written, node.nearfar, node.seconds))
    } else {
        ("Collected", format!("{}{how}", node.written))
    };
    html::facts([
        ("Processor", topology.cpu_model.clone()),
        ("Cores", joined(&cores)),
        ("CPUs that were allowed", allowed),
        ("Architecture", topology.arch.clone()),
        ("Kernel", topology.kernel.clone()),
        ("Virtualisation", topology.virtualisation.clone().unwrap_or_default()),
        ("Transparent huge pages", topology.huge_pages.transparent.clone().unwrap_or_default()),
        ("Reserved huge pages", pools.join(", ")),
        ("Limits of the cgroup", joined(&limits)),
        written,
    ])
}

fn findings(findings: &[Finding]) -> String {
    let row = |finding: &Finding| {
        let value = if finding.value.is_empty() { "unknown" } else { &finding.value };
        let evidence = Cell::lines(finding.evidence.iter().cloned());
        vec![Cell::text(subject(finding.subject)), Cell::text(value), Cell::text(certainty(finding.certainty)), evidence]
    };
    section("Findings", &["about", "conclusion", "how sure", "evidence"], findings.iter().map(row), "")
}

fn nodes(node: &Node) -> String {
    let published = node.topology.online.is_empty();
    let row = |memory: &MemoryNode| {
        let kind = match memory.kind.name() {
            "" => "unknown".to_owned(),
            kind => format!("{kind} ({})", certainty(memory.certainty)),
        };
        let role = node.role(nearfar_core::node::Memory::Node(memory.id)).map_or(String::new(), |role| role.name());
        let cpus = match (memory.cpus.is_empty(), published) {
            (true, true) => "not published".to_owned(),
            (true, false) => "none".to_owned(),
            (false, _) => memory.cpus.to_string(),
        };
        let size = if memory.bytes == 0 { "unknown".to_owned() } else { words::size(memory.bytes) };
        let free = if memory.free_bytes == 0 { String::new() } else { words::size(memory.free_bytes) };
        vec![
            Cell::number(memory.id.to_string()),
            Cell::text(kind),
            Cell::text(role),
            Cell::number(size),
            Cell::number(free),
            Cell::text(cpus),
            Cell::text(if memory.allowed { "yes" } else { "no" }),
            Cell::lines(memory.side_caches.iter().map(side_cache)),
            Cell::lines(claims(memory)),
            Cell::lines(memory.evidence.iter().cloned()),
        ]
    };
    let head = ["node", "kind", "part", "size", "free", "CPUs", "allowed", "cache in front", "claimed", "evidence"];
    let how = "Sizes, CPUs and distances are the kernel's. \"claimed\" is what firmware says (HMAT) of access from the nearest CPUs; it is \
               not measured.";
    section("Memories", &head, node.topology.nodes.iter().map(row), how)
}

fn side_cache(cache: &nearfar_core::node::SideCache) -> String {
    let parts = [Some(words::size(cache.bytes)), cache.indexing.clone(), cache.write_policy.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn claims(memory: &MemoryNode) -> Vec<String> {
    let Some(claim) = memory.claim else { return Vec::new() };
    let of = |what: &str, value: Option<f64>, show: fn(f64) -> String| value.map(|value| format!("{what} {}", show(value)));
    [
        of("read", claim.read_bytes_per_s, words::rate),
        of("write", claim.write_bytes_per_s, words::rate),
        of("read", claim.read_ns, words::time),
        of("write", claim.write_ns, words::time),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn distances(topology: &Topology) -> String {
    if topology.distances.len() < 2 {
        return String::new();
    }
    let mut head = vec!["distance".to_owned()];
    head.extend(topology.nodes.iter().map(|node| format!("to {}", node.id)));
    let row = |(node, distances): (&MemoryNode, &Vec<u32>)| {
        let first = Cell::text(format!("from {}", node.id));
        std::iter::once(first).chain(distances.iter().map(|distance| Cell::number(distance.to_string()))).collect()
    };
    table(&head, topology.nodes.iter().zip(&topology.distances).map(row))
}

/// What a probe files as missing where arrays cannot exceed the memory-side cache.
const BEHIND_SIDE_CACHE: &str = "memory behind the memory-side cache";

fn caches(node: &Node) -> String {
    let topology = &node.topology;
    let kind = |kind| match kind {
        CacheKind::Data => "data",
        CacheKind::Instruction => "instructions",
        CacheKind::Unified => "both",
    };
    let known = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
    let counted = |count: u32| if count == 0 { String::new() } else { count.to_string() };
    let row = |cache: &Cache| {
        vec![
            Cell::text(format!("L{}", cache.level)),
            Cell::text(kind(cache.kind)),
            Cell::number(words::size(cache.bytes)),
            Cell::number(counted(cache.instances)),
            Cell::number(counted(cache.shared_by)),
            Cell::number(known(cache.line)),
            Cell::number(known(cache.ways)),
        ]
    };
    let how = topology.llc.bytes.map_or(String::new(), |bytes| {
        let sources: Vec<String> =
            topology.llc.sources.iter().map(|source| format!("{}: {}", source.source, words::size(source.bytes))).collect();
        let arrays = if node.missing.iter().any(|missing| missing.what == BEHIND_SIDE_CACHE) {
            "The memory-side cache is too large for arrays to exceed it: figures of memory are of that cache, not of the memory behind it."
        } else {
            "Arrays are at least four times as large, or the row is INVALID."
        };
        let size = words::size(bytes);
        format!("Last-level cache, all instances together: {size} ({}). {arrays}", sources.join("; "))
    });
    let head = ["level", "holds", "size of one", "how many", "CPUs that share one", "line", "ways"];
    section("Caches", &head, topology.caches.iter().map(row), &how)
}

fn noise(node: &Node) -> String {
    let noise = &node.noise;
    let parts = [
        noise.load_before.map(|load| format!("load average {load:.2} before the start")),
        noise.steal.map(|share| format!("{} of CPU time taken by the hypervisor", words::percent(share))),
        noise.others.map(|share| format!("{} of CPU time used by other processes", words::percent(share))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() && !noise.noisy {
        return String::new();
    }
    let verdict = if noise.noisy { format!("NOISY: {}. ", noise.why) } else { String::new() };
    heading("How quiet it was") + &paragraph(&format!("{verdict}{}.", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    #[test]
    fn says_what_the_machine_is() {
        let html = sections(&preset::find("knl-flat").expect("found"));
        for words in ["Xeon Phi", "HBM (detected)", "near memory", "16 GiB", "distance 31", "none", "from 1", "32 tiles"] {
            assert!(html.contains(words), "no \"{words}\"");
        }
        assert!(!sections(&Node::default()).contains("<table></table>"));
    }

    #[test]
    fn arrays_that_a_side_cache_holds_are_not_called_larger() {
        let mut node = Node::default();
        node.topology.caches = vec![nearfar_core::node::Cache::default()];
        node.topology.llc.bytes = Some(64 << 30);
        assert!(sections(&node).contains("at least four times as large"));
        node.missing = vec![nearfar_core::node::Missing { what: BEHIND_SIDE_CACHE.to_owned(), why: String::new() }];
        let html = sections(&node);
        assert!(html.contains("of that cache") && !html.contains("four times"), "{html}");
    }

    #[test]
    fn noise_is_told() {
        let mut node = Node::default();
        node.noise.steal = Some(0.12);
        node.noise.noisy = true;
        node.noise.why = "12 % steal".to_owned();
        let html = sections(&node);
        assert!(html.contains("NOISY: 12 % steal") && html.contains("12 % of CPU time taken"));
    }
}
