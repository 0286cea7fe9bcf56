//! The columns of the list of jobs: one table of what they are called, how wide they are, and what they say of a job.

use crate::top::figures::{bytes, count, cut, megabytes, or_dash, percent};
use crate::top::rates::Rates;
use crate::top::watched::Watched;
use std::cmp::Ordering;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The program's process.
    Pid,
    /// Its name.
    Program,
    /// Near memory in use and the budget.
    Near,
    /// Page faults that did not wait.
    Hit,
    /// Those that did.
    Misses,
    /// Traffic.
    In,
    /// Traffic.
    Out,
    /// Time that threads waited.
    Wait,
    /// How much comes at a time.
    Grain,
    /// Time in which far worked.
    Busy,
    /// At how much at once.
    Depth,
    /// Processes.
    Processes,
    /// The far tier.
    Far,
}

use Column::{Busy, Depth, Far, Grain, Hit, In, Misses, Near, Out, Pid, Processes, Program, Wait};

/// Those of a terminal of 80 columns, in the order in which they stand there.
const NARROW: [Column; 9] = [Pid, Program, Near, Hit, Misses, In, Out, Wait, Grain];
/// Those of a terminal that has room.
const ALL: [Column; 13] = [Pid, Program, Near, Hit, Misses, In, Out, Wait, Grain, Busy, Depth, Processes, Far];
/// Narrower terminals lack these first, in this order.
const DISPENSABLE: [Column; 4] = [Grain, Out, In, Wait];
/// Jobs can be sorted by these.
pub const SORTABLE: [Column; 9] = [Pid, Program, Near, Hit, Misses, In, Out, Wait, Busy];

/// Letters of a program's name, at least.
const NAME: usize = 12;
/// Letters of far, at least.
const FAR: usize = 10;
/// Before the columns: which job is selected.
pub const MARK: usize = 2;

/// Shorter than the words of `core::stats::GRAINS`, of which each ends with one of these.
pub const GRAIN_NAMES: [&str; 4] = ["4K", "64K", "256K", "2M"];

impl Column {
    /// What stands above it.
    pub const fn title(self) -> &'static str {
        match self {
            Pid => "PID",
            Program => "PROGRAM",
            Near => "NEAR/BUDGET",
            Hit => "HIT%",
            Misses => "MISS/s",
            In => "IN MB/s",
            Out => "OUT MB/s",
            Wait => "WAIT%",
            Grain => "GRAIN",
            Busy => "BUSY%",
            Depth => "DEPTH",
            Processes => "PROCS",
            Far => "FAR",
        }
    }

    /// Letters it takes; of the two that hold names at least.
    const fn width(self) -> usize {
        match self {
            Pid => 7,
            Program => NAME,
            Near => 11,
            Hit => 5,
            Misses => 6,
            In => 7,
            Out => 8,
            Wait => 5,
            Grain | Busy | Depth | Processes => 5,
            Far => FAR,
        }
    }

    /// True of columns of numbers.
    pub const fn is_right(self) -> bool {
        !matches!(self, Program | Far)
    }

    /// What it says of `job`, in full.
    pub fn text(self, job: &Watched) -> String {
        let rate = |of: fn(&Rates) -> Option<f64>, text: fn(f64) -> String| or_dash(job.rates.as_ref().and_then(of), text);
        match self {
            Pid => job.pid().to_string(),
            Program => format!("{}{}", job.program.short(), ended(job)),
            Near => format!("{}/{}", or_dash(job.near_used(), bytes), bytes(job.seen.near_bytes)),
            Hit => rate(|rates| rates.hit_share, percent),
            Misses => rate(|rates| rates.misses_per_s, count),
            In => rate(|rates| rates.in_bytes_per_s, megabytes),
            Out => rate(|rates| rates.out_bytes_per_s, megabytes),
            Wait => rate(|rates| rates.wait_share, percent),
            Grain => or_dash(job.rates.as_ref().and_then(Rates::usual_grain), |grain| GRAIN_NAMES[grain].into()),
            Busy => rate(|rates| rates.far_busy_share, percent),
            Depth => rate(|rates| rates.far_depth, count),
            Processes => job.seen.members.len().to_string(),
            Far => job.far(),
        }
    }

    /// The same in `width` letters, on its side.
    pub fn cell(self, job: &Watched, width: usize) -> String {
        let text = if self == Program {
            let ended = ended(job);
            cut(job.program.short(), width.saturating_sub(ended.len())) + ended
        } else {
            cut(&self.text(job), width)
        };
        self.aligned(&text, width)
    }

    /// `text` at the column's side.
    pub fn aligned(self, text: &str, width: usize) -> String {
        if self.is_right() { format!("{text:>width$}") } else { format!("{text:<width$}") }
    }

    /// The order of two jobs: the larger figures first, names and numbers of processes ascending.
    pub fn order(self, a: &Watched, b: &Watched) -> Ordering {
        let figure = |job: &Watched| {
            let rates = job.rates.as_ref();
            let value = match self {
                Near => job.near_used().map(|used| used as f64),
                Misses => rates.and_then(|rates| rates.misses_per_s),
                Hit => rates.and_then(|rates| rates.hit_share),
                In => rates.and_then(|rates| rates.in_bytes_per_s),
                Out => rates.and_then(|rates| rates.out_bytes_per_s),
                Wait => rates.and_then(|rates| rates.wait_share),
                Busy => rates.and_then(|rates| rates.far_busy_share),
                _ => None,
            };
            value.unwrap_or(-1.0)
        };
        let by_name = if self == Program { a.program.short().cmp(b.program.short()) } else { Ordering::Equal };
        by_name.then(figure(b).total_cmp(&figure(a))).then(a.pid().cmp(&b.pid()))
    }
}

fn ended(job: &Watched) -> &'static str {
    if job.ended_ns.is_some() { " (ended)" } else { "" }
}

/// The columns that fit into `width` letters, and their widths: what is left goes to the program's name and to far.
pub fn fit(width: usize) -> Vec<(Column, usize)> {
    let needed = |columns: &[Column]| MARK + columns.iter().map(|column| column.width() + 1).sum::<usize>() - 1;
    let mut columns = if needed(&ALL) <= width { ALL.to_vec() } else { NARROW.to_vec() };
    for dispensable in DISPENSABLE {
        if needed(&columns) > width {
            columns.retain(|column| *column != dispensable);
        }
    }
    let spare = width.saturating_sub(needed(&columns));
    let has_far = columns.contains(&Far);
    let widened = |column: Column| match column {
        Program if has_far => spare / 2,
        Program => spare,
        Far => spare - spare / 2,
        _ => 0,
    };
    columns.into_iter().map(|column| (column, column.width() + widened(column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::busy;

    #[test]
    fn as_many_as_fit() {
        let names = |width| fit(width).into_iter().map(|(column, _)| column).collect::<Vec<_>>();
        assert_eq!((names(80), names(120)), (NARROW.to_vec(), ALL.to_vec()));
        assert_eq!(names(60), [Pid, Program, Near, Hit, Misses, Wait]);
        for width in 60..200 {
            let taken = MARK + fit(width).iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
            assert_eq!(taken, width);
            assert!(fit(width).iter().all(|(column, width)| column.title().len() <= *width));
        }
        assert!(!fit(10).is_empty());
    }

    #[test]
    fn what_is_said_of_a_job() {
        let mut job = busy(1, "/opt/bin/a-program-of-a-long-name");
        let row: Vec<String> = fit(80).into_iter().map(|(column, width)| column.cell(&job, width)).collect();
        let row = row.join(" ");
        assert_eq!(row, "   4711 a-program-of-a-…   799M/800M  75.0   1.2k    1500      250   125   64K", "{row}");
        job.ended_ns = Some(1);
        assert!(Program.cell(&job, 16) == "a-progr… (ended)");
        job.rates = None;
        assert_eq!([Hit, Misses, Wait, Grain, Depth].map(|column| column.text(&job)), ["-"; 5]);
    }

    #[test]
    fn the_order_of_jobs() {
        let (mut first, second) = (busy(1, "b"), busy(2, "a"));
        if let Some(rates) = &mut first.rates {
            rates.misses_per_s = Some(1.0);
        }
        assert_eq!(Pid.order(&first, &second), Ordering::Less);
        assert_eq!(Program.order(&first, &second), Ordering::Greater);
        assert_eq!(Misses.order(&first, &second), Ordering::Greater);
        assert_eq!(Hit.order(&first, &second), Ordering::Less, "equal: by number");
        assert!(SORTABLE.iter().all(|column| ALL.contains(column)));
    }
}
