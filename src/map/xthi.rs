//! The lines of xthi, which scripts of computing centres read: host, rank, OpenMP thread, CPU, node, affinity; one line per thread.
//!
//! Columns that no thread has are left out, as xthi does, and numbers are aligned to the right. Affinity is whole, not cut at 50 characters.
//! Threads without an OpenMP number in a program that has OpenMP are left out; without OpenMP, all threads have a line.

use nearfar_core::affinity::Survey;
use std::fmt::Write as _;

struct Row {
    rank: Option<u32>,
    openmp: Option<u32>,
    tid: u32,
    cpu: String,
    node: String,
    allowed: String,
}

/// The lines for `survey` on `host`.
pub fn lines(survey: &Survey, host: &str) -> String {
    let has_ranks = survey.processes.iter().any(|process| process.rank.is_some());
    let has_openmp = survey.processes.iter().flat_map(|process| &process.threads).any(|thread| thread.openmp.is_some());
    let mut rows: Vec<Row> = Vec::new();
    for process in &survey.processes {
        let rank = process.rank.as_ref().map(|rank| rank.number);
        // Launchers and shells are not of the program.
        if has_ranks && rank.is_none() {
            continue;
        }
        for thread in process.threads.iter().filter(|thread| !has_openmp || thread.openmp.is_some()) {
            let node = thread.cpu.and_then(|cpu| survey.place(cpu).node);
            let number = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
            rows.push(Row {
                rank,
                openmp: thread.openmp,
                tid: thread.tid,
                cpu: number(thread.cpu),
                node: number(node),
                allowed: thread.allowed.to_string(),
            });
        }
    }
    rows.sort_by_key(|row| (row.rank, row.openmp, row.tid));
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(1);
    let digits = |number: Option<u32>| number.map_or(1, |number| number.to_string().len());
    let rank_width = width(&mut rows.iter().map(|row| digits(row.rank)));
    let thread_width = width(&mut rows.iter().map(|row| digits(row.openmp)));
    let cpu_width = width(&mut rows.iter().map(|row| row.cpu.len()));
    let node_width = width(&mut rows.iter().map(|row| row.node.len()));
    let mut text = String::new();
    for Row { rank, openmp, cpu, node, allowed, .. } in rows {
        let _ = write!(text, "Host={host}");
        if let Some(rank) = rank {
            let _ = write!(text, "  MPI Rank={rank:>rank_width$}");
        }
        if let Some(openmp) = openmp {
            let _ = write!(text, "  OMP Thread={openmp:>thread_width$}");
        }
        let _ = writeln!(text, "  CPU={cpu:>cpu_width$}  NUMA Node={node:>node_width$}  CPU Affinity={allowed}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_xthi() {
        let mut survey = crate::map::display::tests::sample();
        survey.processes[0].threads[0].cpu = Some(254);
        let text = lines(&survey, "n1");
        let expected = "Host=n1  MPI Rank=3  OMP Thread=1  CPU=  6  NUMA Node=0  CPU Affinity=6";
        assert_eq!(text.lines().nth(1), Some(expected), "{text}");
        assert!(text.lines().next().is_some_and(|line| line.contains("CPU=254") && line.ends_with(",252,254")), "{text}");
        survey.processes[0].rank = None;
        survey.processes[0].threads.iter_mut().for_each(|thread| thread.openmp = None);
        assert_eq!(lines(&survey, "n1").lines().nth(1), Some("Host=n1  CPU=  6  NUMA Node=0  CPU Affinity=6"));
    }
}
