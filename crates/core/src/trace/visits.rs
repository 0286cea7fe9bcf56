//! From what the pager saw to visits of units, for replay.
//!
//! A recorder keeps a small window of chunks in view, first in, first out. A visit here is one stay in that window: whatever
//! the program does to a chunk meanwhile counts once. So replays speak of nears that are well above the window.

use super::{Process, Reader, Record};
use crate::addr::{BLOCK_PAGES, CHUNK_PAGES};
use crate::policy::replay::{Access, Action};
use crate::policy::units::UnitMap;
use crate::policy::{Found, Unit};
use std::collections::HashMap;

/// What the replayed near evicts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// 64 KiB.
    Chunk,
    /// 2 MiB.
    Block,
}

/// Address spaces lie side by side: none has 2^28 blocks (512 TiB).
pub(super) const PROCESS_SHIFT: u32 = 28;

impl Grain {
    fn pages(self) -> u64 {
        match self {
            Grain::Chunk => CHUNK_PAGES as u64,
            Grain::Block => BLOCK_PAGES as u64,
        }
    }

    /// The unit of a process's page, and its size.
    fn unit(self, process: usize, page: u64) -> (Unit, u32) {
        let number = ((page as usize / BLOCK_PAGES) & ((1 << PROCESS_SHIFT) - 1)) + (process << PROCESS_SHIFT);
        let unit = match self {
            Grain::Chunk => Unit::chunk(number, page as usize % BLOCK_PAGES / CHUNK_PAGES),
            Grain::Block => Unit::block(number),
        };
        (unit, self.pages() as u32)
    }

    /// Process and first page of a unit.
    fn place(self, unit: Unit) -> (usize, u64) {
        let (number, chunk) = (unit.block_number(), unit.chunk_index().unwrap_or(0));
        let block = number & ((1 << PROCESS_SHIFT) - 1);
        (number >> PROCESS_SHIFT, (block * BLOCK_PAGES + chunk * CHUNK_PAGES) as u64)
    }
}

/// What a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Processes (programs that one process executed count each).
    pub processes: usize,
    /// Faults.
    pub faults: u64,
    /// Visits to units.
    pub visits: u64,
    /// Different units that were visited.
    pub units: u64,
    /// Pages of those.
    pub pages: u64,
    /// Records that recorders had to drop.
    pub dropped: u64,
    /// Bytes of the file that belong to no whole batch.
    pub damaged: u64,
    /// Chunks that were in view at a time.
    pub window_chunks: u32,
}

impl Summary {
    /// Lines about what is not there.
    pub fn losses(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.dropped > 0 {
            lines.push(format!("{} records are missing: they came faster than they could be written", self.dropped));
        }
        if self.damaged > 0 {
            lines.push(format!("{} bytes are damaged or half written, and were skipped", self.damaged));
        }
        lines
    }
}

/// Builds the accesses of one trace.
struct Builder {
    grain: Grain,
    accesses: Vec<Access>,
    /// Units in view, with the place of their latest visit.
    visible: UnitMap<usize>,
    latest: UnitMap<usize>,
    last: Option<Unit>,
}

impl Builder {
    fn visit(&mut self, process: usize, page: u64, write: bool, fresh: bool) {
        let (unit, pages) = self.grain.unit(process, page);
        let act = if fresh && !self.latest.contains_key(&unit) {
            Action::Fresh
        } else if write || fresh {
            Action::Write
        } else {
            Action::Read
        };
        // Another page of a unit that is in view, or of the block that was visited last, is the same visit.
        let same = self.visible.get(&unit).copied().filter(|_| self.grain == Grain::Chunk || self.last == Some(unit));
        if let Some(at) = same {
            if act == Action::Write && self.accesses[at].act == Action::Read {
                self.accesses[at].act = Action::Write;
            }
            return;
        }
        self.visible.insert(unit, self.accesses.len());
        self.latest.insert(unit, self.accesses.len());
        self.last = Some(unit);
        self.accesses.push(Access { unit, pages, act });
    }

    fn out(&mut self, process: usize, page: u64, changed: bool) {
        let (unit, _) = self.grain.unit(process, page);
        if self.grain == Grain::Chunk {
            self.visible.remove(&unit);
        }
        if changed
            && let Some(&at) = self.latest.get(&unit)
            && self.accesses[at].act == Action::Read
        {
            self.accesses[at].act = Action::Write;
        }
    }

    /// Whole units end; of the others a part still holds something.
    fn gone(&mut self, process: usize, page: u64, pages: u64) {
        let step = self.grain.pages();
        let range = page.div_ceil(step)..page.saturating_add(pages) / step;
        let ended: Vec<Unit> = if range.end.saturating_sub(range.start) <= self.latest.len() as u64 {
            range.map(|number| self.grain.unit(process, number * step).0).collect()
        } else {
            // Programs unmap far more than they touched.
            let mut all: Vec<Unit> = self.latest.keys().copied().collect();
            all.retain(|&unit| self.grain.place(unit).0 == process && range.contains(&(self.grain.place(unit).1 / step)));
            all.sort_unstable();
            all
        };
        for unit in ended {
            if self.latest.remove(&unit).is_some() {
                self.visible.remove(&unit);
                self.last = self.last.filter(|&last| last != unit);
                self.accesses.push(Access { unit, pages: step as u32, act: Action::Discard });
            }
        }
    }

    fn empty(grain: Grain) -> Self {
        Self { grain, accesses: Vec::new(), visible: UnitMap::default(), latest: UnitMap::default(), last: None }
    }
}

/// All records of the trace in `bytes` with the number of their process, in order of time; `None` when it is no trace of this version.
pub(super) fn in_order(bytes: &[u8]) -> Option<(Vec<(usize, Record)>, Summary)> {
    let mut reader = Reader::new(bytes)?;
    let mut summary = Summary { window_chunks: reader.window_chunks(), ..Summary::default() };
    let mut numbers: HashMap<Process, (usize, u64, u64)> = HashMap::new();
    let mut records: Vec<(u64, usize, Record)> = Vec::new();
    for batch in reader.by_ref() {
        let fresh = (numbers.len(), 0, 0);
        let (number, time, dropped) = numbers.entry(batch.process).or_insert(fresh);
        *dropped = batch.dropped.max(*dropped);
        for record in batch.records {
            if let Record::Visit { time_us, .. } = record {
                *time = time_us;
                summary.faults += 1;
            }
            records.push((*time, *number, record));
        }
    }
    summary.damaged = reader.damaged_bytes();
    summary.processes = numbers.len();
    summary.dropped = numbers.values().fold(0, |sum: u64, &(_, _, dropped)| sum.saturating_add(dropped));
    // Stable: what one process did stays in order.
    records.sort_by_key(|&(time, _, _)| time);
    Some((records.into_iter().map(|(_, process, record)| (process, record)).collect(), summary))
}

/// The visits of all processes of the trace in `bytes`, in order of time, as units of `grain`; `None` when it is no trace of
/// this version. The child of a fork is a process of its own: what it shares with its parent is not known here.
pub fn accesses(bytes: &[u8], grain: Grain) -> Option<(Vec<Access>, Summary)> {
    let (records, mut summary) = in_order(bytes)?;
    let mut builder = Builder::empty(grain);
    for (process, record) in records {
        match record {
            Record::Visit { page, write, found, .. } => builder.visit(process, page, write, found == Found::Zero),
            Record::Out { page, changed } => builder.out(process, page, changed),
            Record::Gone { page, pages } => builder.gone(process, page, pages),
        }
    }
    let mut sizes: UnitMap<u32> = UnitMap::default();
    for access in builder.accesses.iter().filter(|access| access.act != Action::Discard) {
        summary.visits += 1;
        sizes.insert(access.unit, access.pages);
    }
    summary.units = sizes.len() as u64;
    summary.pages = sizes.values().map(|&pages| u64::from(pages)).sum();
    Some((builder.accesses, summary))
}
