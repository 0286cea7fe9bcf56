//! Which records are whose: a file holds batches of many processes, mixed, and a process that executes another program is another
//! one from then on.

use super::file::Content;
use super::record::{Record, Start};

/// The records of one program from its start to its end or exec, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Process<'a> {
    /// Number of the process.
    pub pid: u32,
    /// What it began with; `None`: its beginning is not in the file.
    pub start: Option<&'a Start>,
    /// All that followed.
    pub records: Vec<&'a Record>,
    /// The process that this one became by exec, and when.
    pub became: Option<(usize, u64)>,
}

/// Whether the process that now begins under the same number is what `old` executed: else it would have ended, or be of another machine.
fn executes(old: &Process<'_>, new: &Start) -> bool {
    let ended = old.records.iter().any(|record| matches!(record, Record::End { .. }));
    !ended && old.start.is_none_or(|start| start.host == new.host && start.at <= new.at)
}

/// Sorts the records of a file by process. A process is known by its index in what is returned, everywhere in the profile.
pub fn split(content: &Content) -> Vec<Process<'_>> {
    let mut processes: Vec<Process<'_>> = Vec::new();
    let mut current = std::collections::HashMap::new();
    for batch in &content.batches {
        for record in &batch.records {
            if let Record::Start(start) = record {
                let next = processes.len();
                if let Some(old) = current.insert(batch.pid, next).and_then(|old: usize| processes.get_mut(old))
                    && executes(old, start)
                {
                    old.became = Some((next, start.at));
                }
                processes.push(Process { pid: batch.pid, start: Some(start), records: Vec::new(), became: None });
                continue;
            }
            let index = *current.entry(batch.pid).or_insert_with(|| {
                processes.push(Process { pid: batch.pid, start: None, records: Vec::new(), became: None });
                processes.len() - 1
            });
            processes[index].records.push(record);
        }
    }
    processes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::file::Batch;

    #[test]
    fn processes_are_told_apart_and_exec_makes_another() {
        let start = |program: &str| Record::Start(Start { program: program.into(), ..Start::default() });
        let gone = |id| Record::Gone { id, at: 0 };
        let content = Content {
            batches: vec![
                Batch { pid: 1, records: vec![start("sh"), gone(1)] },
                Batch { pid: 2, records: vec![gone(2)] },
                Batch { pid: 1, records: vec![gone(3), start("app"), gone(4)] },
            ],
            lost_bytes: 0,
        };
        let found: Vec<_> = split(&content)
            .iter()
            .map(|process| (process.pid, process.start.map(|start| start.program.clone()), process.records.len()))
            .collect();
        assert_eq!(split(&content)[0].became, Some((2, 0)));
        assert_eq!(found, [(1, Some("sh".into()), 2), (2, None, 1), (1, Some("app".into()), 1)]);
    }
}
