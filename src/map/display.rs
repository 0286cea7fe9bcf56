//! The report of `nearfar map` for people: a table of threads and one of pages for each process, then what is wrong.

use crate::ui::table::{Table, align_right, wrapped};
use nearfar_core::affinity::{Pages, Process, Survey, Thread, Warning, tier_of};
use nearfar_core::node::{MemoryKind, MemoryNode};
use nearfar_core::units::Bytes;
use std::fmt::Write as _;

/// Width where the report is not read on a terminal. Nothing is cut: long lists of CPUs are folded.
const WIDTH: u16 = 150;

/// The report; `to_terminal` when it is read on one.
pub fn report(survey: &Survey, warnings: &[Warning], to_terminal: bool) -> String {
    let mut text = head(survey);
    for process in &survey.processes {
        let _ = write!(text, "\n{}", of_process(survey, process, to_terminal));
    }
    text.push('\n');
    if let Some(line) = limits(survey) {
        let _ = writeln!(text, "limits: {line}");
    }
    for note in &survey.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if warnings.is_empty() {
        text.push_str("nothing wrong was seen\n");
    }
    for warning in warnings {
        let _ = writeln!(text, "warning: {warning}\n  advice: {}", warning.advice());
    }
    text
}

fn head(survey: &Survey) -> String {
    let threads: usize = survey.processes.iter().map(|process| process.threads.len()).sum();
    let mut text = format!(
        "nearfar map: {}, {} in {:.2} s; looked {}; new threads were looked for at least every {:.0} ms, so shorter-lived ones may be missing\n",
        count(survey.processes.len(), "process", "processes"),
        count(threads, "thread", "threads"),
        survey.seconds,
        count(survey.looks as usize, "time", "times"),
        survey.longest_gap_s * 1e3,
    );
    if survey.unlisted_threads > 0 {
        let _ = writeln!(text, "{} more threads are not listed one by one", survey.unlisted_threads);
    }
    let listed: f64 = survey.processes.iter().flat_map(|process| &process.threads).map(|thread| thread.cpu_s).sum();
    if let Some(all) = survey.cpu_s {
        let _ = write!(text, "CPU time: {all:.2} s");
        // Below that it is what is spent between the last look and the end.
        let unseen = all - listed;
        if unseen > 0.02 + 0.05 * all {
            let _ = write!(text, ", {unseen:.2} s of it between looks or by threads that were not seen");
        }
        text.push('\n');
    }
    text
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn of_process(survey: &Survey, process: &Process, to_terminal: bool) -> String {
    let mut text = format!("process {}", process.pid);
    if let Some(rank) = &process.rank {
        let _ = write!(text, ", {rank}");
    }
    let command = if process.command.is_empty() { &process.name } else { &process.command };
    let _ = writeln!(text, "{}: {}", if process.ended { ", ended" } else { "" }, command.replace('\n', " "));
    let settings: Vec<String> = process.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !process.openmp.is_empty() {
        let _ = writeln!(text, "  OpenMP: {} (numbers of threads are inferred from their creation)", process.openmp.join(", "));
    }
    if !settings.is_empty() {
        let _ = writeln!(text, "  environment: {}", settings.join(" "));
    }
    if process.under_nearfar {
        text.push_str(
            "  under nearfar run: what it manages is among the anonymous pages; paged-out data are in far and not shown\n",
        );
    }
    let crowding = &process.crowding;
    let _ = write!(text, "  may use CPUs {} and memory of nodes {}", process.allowed, process.allowed_nodes);
    if crowding.most > 0 {
        let _ = write!(text, "; at most {} wanted to run at once", count(crowding.most as usize, "thread", "threads"));
    }
    let _ = writeln!(text, "\n{}", indent(&threads(survey, process, to_terminal)));
    if process.unlisted_threads > 0 {
        let _ = writeln!(text, "  and {} threads more", process.unlisted_threads);
    }
    if let Some(pages) = &process.memory {
        text.push_str(&memory(survey, pages, to_terminal));
    }
    text
}

fn indent(table: &Table) -> String {
    table.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn share(part: Option<f64>) -> String {
    or_dash(part.map(|part| format!("{:.0} %", part * 100.0)))
}

fn threads(survey: &Survey, process: &Process, to_terminal: bool) -> Table {
    let mut table = wrapped(WIDTH, to_terminal);
    let has_openmp = process.threads.iter().any(|thread| thread.openmp.is_some());
    let mut header = vec!["thread", "name"];
    header.extend(has_openmp.then_some("OpenMP"));
    header.extend(["state", "CPU use", "waits", "CPU", "core", "package", "node", "seen on", "moves", "may use"]);
    table.set_header(header);
    for thread in &process.threads {
        let place = thread.cpu.map(|cpu| survey.place(cpu)).unwrap_or_default();
        let mut row = vec![thread.tid.to_string(), thread.name.clone()];
        row.extend(has_openmp.then(|| or_dash(thread.openmp)));
        row.extend([
            state(thread).to_owned(),
            share(thread.cpu_share()),
            share(thread.waited_s.zip(thread.cpu_share()).map(|(waited, _)| (waited / thread.watched_s).min(1.0))),
            or_dash(thread.cpu),
            or_dash(place.core),
            or_dash(place.package),
            or_dash(place.node),
            thread.seen_cpus().to_string(),
            thread.moves.to_string(),
            thread.allowed.to_string(),
        ]);
        table.add_row(row);
    }
    table
}

fn state(thread: &Thread) -> &'static str {
    match thread.state.as_str() {
        _ if thread.ended => "ended",
        "R" => "runs",
        "S" => "sleeps",
        "D" => "waits (disk)",
        "T" | "t" => "stopped",
        "Z" | "X" => "ended",
        "I" => "idle",
        _ => "?",
    }
}

fn kind(node: &MemoryNode) -> Option<&'static str> {
    match node.kind {
        MemoryKind::Unknown => None,
        MemoryKind::Dram => Some("DRAM"),
        MemoryKind::Hbm => Some("HBM"),
        MemoryKind::Cxl => Some("CXL"),
        MemoryKind::Pmem => Some("PMem"),
        MemoryKind::Gpu => Some("GPU"),
    }
}

fn node_title(survey: &Survey, id: u32) -> String {
    let node = survey.nodes.iter().find(|node| node.id == id);
    let mut words: Vec<String> = node.and_then(kind).map(str::to_owned).into_iter().collect();
    words.extend(tier_of(&survey.nodes, id).map(|tier| tier.to_string()));
    words.extend(node.filter(|node| node.cpus.is_empty()).map(|_| "no CPUs".to_owned()));
    if words.is_empty() { format!("node {id}") } else { format!("node {id} ({})", words.join(", ")) }
}

fn memory(survey: &Survey, pages: &Pages, to_terminal: bool) -> String {
    let mut ids: Vec<u32> = pages.objects.iter().flat_map(|pages| pages.by_node.keys().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut table = wrapped(WIDTH, to_terminal);
    let mut header = vec!["pages of".to_owned()];
    header.extend(ids.iter().map(|&id| node_title(survey, id)));
    header.extend(["in memory", "in huge pages", "in swap"].map(str::to_owned));
    let columns = header.len();
    table.set_header(header);
    let size = |bytes: u64| if bytes == 0 { "-".to_owned() } else { Bytes(bytes).to_string() };
    for pages in &pages.objects {
        let mut row = vec![pages.object.to_string()];
        row.extend(ids.iter().map(|id| size(pages.by_node.get(id).copied().unwrap_or(0))));
        row.push(size(pages.bytes));
        row.push(match pages.huge_bytes {
            0 => "-".to_owned(),
            huge => format!("{:.0} %", huge as f64 / pages.bytes.max(1) as f64 * 100.0),
        });
        row.push(size(pages.swap_bytes));
        table.add_row(row);
    }
    align_right(&mut table, 1..columns);
    let mut text = format!("  memory at its peak ({} at {:.2} s)", Bytes(pages.bytes()), pages.at_s);
    if !pages.nodes_known {
        text.push_str("; the kernel does not say which nodes the pages are on");
    }
    let special: Vec<String> = pages
        .policies
        .iter()
        .filter(|(policy, _)| *policy != "default")
        .map(|(policy, bytes)| format!("{policy} ({})", Bytes(*bytes)))
        .collect();
    match special.as_slice() {
        [] if pages.policies.is_empty() => {}
        [] => text.push_str("; memory policy: default"),
        some => {
            let _ = write!(text, "; memory policy: {}", some.join(", "));
        }
    }
    let _ = writeln!(text, "\n{}", indent(&table));
    text
}

fn limits(survey: &Survey) -> Option<String> {
    let limits = &survey.limits;
    let mut parts = Vec::new();
    if let Some(quota) = limits.quota_cpus {
        let stopped = limits.throttled.filter(|times| *times > 0).map(|times| format!(", stopped {times} times"));
        parts.push(format!("{quota:.2} CPUs of time{}", stopped.unwrap_or_default()));
    }
    if let Some(bytes) = limits.memory_bytes {
        let used = limits.memory_used_bytes.map(|used| format!(" ({} used)", Bytes(used)));
        parts.push(format!("{} of memory{}", Bytes(bytes), used.unwrap_or_default()));
    }
    (!parts.is_empty()).then(|| format!("the cgroup allows {}", parts.join(" and ")))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nearfar_core::affinity::{Crowding, Object, ObjectPages, Rank, judge};
    use nearfar_core::node::{CpuList, Placement};

    /// An OpenMP program of two threads on a machine with HBM, one thread of which may use many scattered CPUs.
    pub fn sample() -> Survey {
        let thread = |tid: u32, openmp: u32, cpu: u32, allowed: &CpuList| Thread {
            tid,
            name: "solve".into(),
            openmp: Some(openmp),
            state: "R".into(),
            watched_s: 2.0,
            cpu_s: 1.5,
            waited_s: Some(0.5),
            cpu: Some(cpu),
            seen: vec![(cpu, 20)],
            allowed: allowed.clone(),
            ..Thread::default()
        };
        let many: CpuList = (0..256).step_by(2).collect();
        let heap = ObjectPages {
            object: Object::Anonymous,
            bytes: 3 << 30,
            by_node: [(0, 1 << 30), (1, 2 << 30)].into(),
            huge_bytes: 3 << 29,
            swap_bytes: 0,
        };
        let process = Process {
            pid: 40,
            name: "solve".into(),
            command: "./solve -n 5".into(),
            rank: Some(Rank { number: 3, source: "PMIX_RANK", ..Rank::default() }),
            openmp: vec!["libgomp.so.1.0.0".into()],
            settings: [("OMP_NUM_THREADS".to_owned(), "2".to_owned())].into(),
            allowed: many.clone(),
            allowed_nodes: "0-1".parse().expect("a list"),
            threads: vec![thread(40, 0, 4, &many), thread(41, 1, 6, &"6".parse().expect("a list"))],
            crowding: Crowding { looks: 20, most: 2, cpus: 128, ..Crowding::default() },
            memory: Some(Pages {
                at_s: 1.0,
                nodes_known: true,
                objects: vec![heap],
                policies: [("bind:1".to_owned(), 5)].into(),
            }),
            under_nearfar: true,
            ..Process::default()
        };
        let node = |id, kind, cpus: &str| MemoryNode {
            id,
            kind,
            bytes: 16 << 30,
            cpus: cpus.parse().expect("a list"),
            ..MemoryNode::default()
        };
        Survey {
            seconds: 2.0,
            looks: 20,
            longest_gap_s: 0.1,
            placement: (0..256).map(|cpu| Placement { cpu, package: Some(0), core: Some(cpu), node: Some(0) }).collect(),
            nodes: vec![node(0, MemoryKind::Dram, "0-255"), node(1, MemoryKind::Hbm, "")],
            processes: vec![process],
            ..Survey::default()
        }
    }

    #[test]
    fn everything_is_shown_and_nothing_is_cut() {
        let survey = sample();
        let text = report(&survey, &judge(&survey), false);
        for wanted in
            ["process 40, MPI rank 3 (PMIX_RANK): ./solve -n 5", "OMP_NUM_THREADS=2", "node 0 (DRAM, far)", "bind:1 (5 B)"]
        {
            assert!(text.contains(wanted), "no {wanted:?} in\n{text}");
        }
        assert!(text.contains("node 1 (HBM, near, no CPUs)") && text.contains("under nearfar run"), "{text}");
        assert!(text.contains("75 %") && text.contains("25 %") && text.contains("nothing wrong was seen"), "{text}");
        // Folded within a cell, so joined again.
        let last_column: String = text.lines().filter_map(|line| line.trim_end_matches(" │").rsplit("  ").next()).collect();
        assert!(last_column.contains("248,250,252,254"), "{text}");
    }
}
