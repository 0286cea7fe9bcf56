//! A small model of the pager for tests: near with FIFO or a policy and a limbo, a far device with latency and bandwidth.

use super::*;
use crate::policy::{Arrival, Evict, Unit};
use std::collections::{HashMap, VecDeque};

/// Work per page: a little more than its transfer takes, so that prefetch can keep up.
const COMPUTE_NS: u64 = 5_000;
const LATENCY_NS: u64 = 80_000;
const BYTES_PER_S: u64 = 1 << 30;
const PAGE_NS: u64 = PAGE as u64 * 1_000_000_000 / BYTES_PER_S;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Mapped { used: bool },
    Staged { run: usize },
    Limbo { used: bool },
}

#[derive(Default, Debug)]
pub(super) struct Tally {
    pub zero: u64,
    pub far: u64,
    pub late: u64,
    pub staged: u64,
    pub limbo: u64,
    pub pages_in: u64,
    pub useless: u64,
    pub ahead: u64,
}

pub(super) struct Sim {
    policy: StreamFetch,
    pub near: u64,
    data: u64,
    pages: HashMap<u64, State>,
    /// Pages that were written to far (all other pages are zero).
    pub in_far: std::ops::Range<u64>,
    runs: Vec<(Run, u64)>,
    order: VecDeque<u64>,
    pub staged: u64,
    now: u64,
    device_free: u64,
    pub tally: Tally,
    /// Evicts whole blocks instead of pages in order of arrival.
    pub evict: Option<Box<dyn Evict>>,
    limbo: VecDeque<u64>,
}

impl Sim {
    /// `data` pages from page `BASE` on, all in far; near holds `near` pages.
    pub fn new(near: u64, data: u64) -> Self {
        let in_far = BASE..BASE + data;
        let policy = StreamFetch::new();
        let (pages, order) = (HashMap::new(), VecDeque::new());
        Self {
            policy,
            near,
            data,
            pages,
            in_far,
            runs: vec![],
            order,
            staged: 0,
            now: 0,
            device_free: 0,
            tally: Tally::default(),
            evict: None,
            limbo: VecDeque::new(),
        }
    }

    fn read(&mut self, count: u64) -> u64 {
        self.device_free = self.device_free.max(self.now) + count * PAGE_NS;
        self.tally.pages_in += count;
        self.device_free + LATENCY_NS
    }

    pub fn access(&mut self, thread: u32, page: u64) {
        let page = BASE + page;
        self.now += COMPUTE_NS;
        let state = self.pages.get_mut(&page);
        if let Some(State::Mapped { used }) = state {
            *used = true;
            return;
        }
        let found = match state {
            Some(State::Limbo { .. }) => Found::Limbo,
            Some(State::Staged { run }) if self.runs[*run].1 > self.now => Found::Late,
            Some(_) => Found::Staged,
            None if self.in_far.contains(&page) => Found::Far,
            None => Found::Zero,
        };
        let room = Room {
            near_pages: self.near,
            free_pages: self.near.saturating_sub(self.pages.len() as u64),
            data_pages: self.data,
            staging_pages: u64::MAX,
            staged_pages: self.staged,
            far_bytes_per_s: BYTES_PER_S,
        };
        let fault = Fault { page, thread, found, write: false, now_ns: self.now };
        let view = Near { pages: &self.pages, in_far: &self.in_far };
        let fetch = self.policy.on_fault(&fault, &room, &view);
        check(&fetch, page);
        let run = fetch.run.unwrap_or(Run { first: page, count: 1 });
        if let Some(State::Staged { run }) = self.pages.get(&page).copied() {
            self.now = self.now.max(self.runs[run].1);
            self.map_staged(run);
        }
        if found == Found::Limbo {
            self.rescue(page / BLOCK);
        }
        let fresh: Vec<u64> = (run.first..run.first + u64::from(run.count)).filter(|p| !self.pages.contains_key(p)).collect();
        let reads = fresh.iter().filter(|p| self.in_far.contains(p)).count() as u64;
        if reads > 0 {
            self.now = self.read(reads);
        }
        for p in fresh {
            // A fault on far data brings far pages only, a first touch zero pages only.
            if self.in_far.contains(&p) == (found != Found::Zero) {
                self.pages.insert(p, State::Mapped { used: false });
                self.order.push_back(p);
            }
        }
        self.pages.insert(page, State::Mapped { used: true });
        self.arrived(page, if found == Found::Limbo { Arrival::Rescued } else { Arrival::Demanded });
        for run in &fetch.show {
            if let Some(State::Staged { run }) = self.pages.get(&run.first).copied() {
                self.map_staged(run);
            }
        }
        for run in &fetch.ahead {
            self.stage(*run);
        }
        match found {
            Found::Zero => self.tally.zero += 1,
            Found::Limbo => self.tally.limbo += 1,
            Found::Far => self.tally.far += 1,
            Found::Late => self.tally.late += 1,
            Found::Staged => self.tally.staged += 1,
        }
        self.evict();
    }

    fn stage(&mut self, run: Run) {
        let wanted = |p: &u64| self.in_far.contains(p) && !self.pages.contains_key(p);
        let fresh: Vec<u64> = (run.first..run.first + u64::from(run.count)).filter(wanted).collect();
        if fresh.is_empty() {
            return;
        }
        let ready = self.read(fresh.len() as u64);
        self.tally.ahead += fresh.len() as u64;
        self.staged += fresh.len() as u64;
        self.runs.push((run, ready));
        for p in fresh {
            self.pages.insert(p, State::Staged { run: self.runs.len() - 1 });
            self.order.push_back(p);
        }
    }

    fn map_staged(&mut self, id: usize) {
        let run = self.runs[id].0;
        for p in run.first..run.first + u64::from(run.count) {
            if self.pages.get(&p) == Some(&State::Staged { run: id }) {
                self.pages.insert(p, State::Mapped { used: false });
                self.staged -= 1;
            }
        }
    }

    /// The block of `page` is visible, as far as it is mapped.
    fn arrived(&mut self, page: u64, arrival: Arrival) {
        let block = page / BLOCK;
        let mapped = (block * BLOCK..(block + 1) * BLOCK).filter(|p| matches!(self.pages.get(p), Some(State::Mapped { .. })));
        let count = mapped.count() as u32;
        if let Some(evict) = &mut self.evict {
            evict.insert(Unit::block(block as usize), count, arrival);
        }
    }

    fn rescue(&mut self, block: u64) {
        self.limbo.retain(|&b| b != block);
        for p in block * BLOCK..(block + 1) * BLOCK {
            if let Some(State::Limbo { used }) = self.pages.get(&p).copied() {
                self.pages.insert(p, State::Mapped { used });
            }
        }
    }

    /// Moves a block to limbo, and what has been there longest out of near.
    fn evict_block(&mut self) -> bool {
        let Some(unit) = self.evict.as_mut().and_then(|evict| evict.victim()) else { return false };
        let block = unit.block_number() as u64;
        for p in block * BLOCK..(block + 1) * BLOCK {
            if let Some(State::Mapped { used }) = self.pages.get(&p).copied() {
                self.pages.insert(p, State::Limbo { used });
            }
        }
        self.limbo.retain(|&b| b != block);
        self.limbo.push_back(block);
        if self.limbo.len() as u64 > (self.near / BLOCK / 32).max(2) {
            let block = self.limbo.pop_front().unwrap();
            for p in block * BLOCK..(block + 1) * BLOCK {
                if let Some(State::Limbo { used }) = self.pages.get(&p) {
                    self.tally.useless += u64::from(!used);
                    self.pages.remove(&p);
                }
            }
        }
        true
    }

    fn evict(&mut self) {
        while self.evict.is_some() && self.pages.len() as u64 > self.near && self.evict_block() {}
        if self.evict.is_some() {
            return;
        }

        while self.pages.len() as u64 > self.near {
            let page = self.order.pop_front().unwrap();
            match self.pages.remove(&page).unwrap() {
                State::Mapped { used } | State::Limbo { used } => self.tally.useless += u64::from(!used),
                State::Staged { run } => {
                    let wasted = self.runs[run].0;
                    self.map_staged(run);
                    self.staged = self.staged.saturating_sub(1);
                    self.tally.useless += 1;
                    self.policy.on_wasted(wasted);
                }
            }
            // What was evicted is in far from now on.
            self.in_far = self.in_far.start.min(page)..self.in_far.end.max(page + 1);
        }
    }

    /// Counts what was never used.
    pub fn finish(mut self) -> Tally {
        let unused = |s: &&State| !matches!(s, State::Mapped { used: true } | State::Limbo { used: true });
        self.tally.useless += self.pages.values().filter(unused).count() as u64;
        self.tally
    }
}

/// What is in far: whole runs, unless parts are in near.
struct Near<'a> {
    pages: &'a HashMap<u64, State>,
    in_far: &'a std::ops::Range<u64>,
}

impl View for Near<'_> {
    fn in_far(&self, run: Run, down: bool) -> Option<Run> {
        let far = |p: &u64| self.in_far.contains(p) && !self.pages.contains_key(p);
        let range = run.first..run.first + u64::from(run.count);
        if !range.clone().any(|p| self.pages.contains_key(&p)) {
            return range.clone().any(|p| far(&p)).then_some(run);
        }
        let part: Vec<u64> = match down {
            false => range.skip_while(|p| !far(p)).take_while(far).collect(),
            true => {
                let last = range.clone().rev().find(far)?;
                let first = (run.first..=last).rev().take_while(far).last()?;
                (first..=last).collect()
            }
        };
        Some(Run { first: *part.first()?, count: part.len() as u32 })
    }
}

/// First page of the data; not at a border of much.
pub(super) const BASE: u64 = 1000 * BLOCK;

pub(super) fn check(fetch: &Fetch, page: u64) {
    if let Some(run) = fetch.run {
        let last = run.first + u64::from(run.count) - 1;
        assert!(run.count >= 1 && run.first <= page && page <= last && run.first / BLOCK == last / BLOCK, "{run:?} for {page}");
    }
    for run in &fetch.ahead {
        let last = run.first + u64::from(run.count) - 1;
        assert!(run.count >= 1 && run.first / BLOCK == last / BLOCK, "{run:?}");
    }
}
