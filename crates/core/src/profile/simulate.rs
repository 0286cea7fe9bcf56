//! A machine in which programs run touch by touch, for tests: an exact LRU cache of lines tells the true traffic, exact LRU memories of
//! pages the true misses, and pages are looked at as the sampler does.

use super::file::{Batch, Content};
use super::names::{Access, Names, Step};
use super::record::{self, Kind, Method, Object, Record, Site, Source, Start, Watch, WatchEnd};
use super::summary::NamedFrame;
use crate::random_numbers::Random;
use std::collections::HashMap;

/// Least recently used of numbered things.
pub struct Lru {
    /// Before and after each thing, by number; the last is the ring's mark.
    links: HashMap<u64, (u64, u64)>,
    capacity: usize,
}

const MARK: u64 = u64::MAX;

impl Lru {
    pub fn new(capacity: usize) -> Self {
        Self { links: HashMap::from([(MARK, (MARK, MARK))]), capacity }
    }

    fn unlink(&mut self, id: u64) -> bool {
        let Some((before, after)) = self.links.remove(&id) else { return false };
        self.links.get_mut(&before).unwrap().1 = after;
        self.links.get_mut(&after).unwrap().0 = before;
        true
    }

    pub fn holds(&self, id: u64) -> bool {
        self.links.contains_key(&id)
    }

    /// Touches a thing: whether it was there, and what had to go.
    pub fn touch(&mut self, id: u64) -> (bool, Option<u64>) {
        if self.links[&MARK].1 == id {
            return (true, None);
        }
        let hit = self.unlink(id);
        let first = self.links[&MARK].1;
        self.links.insert(id, (MARK, first));
        self.links.get_mut(&first).unwrap().0 = id;
        self.links.get_mut(&MARK).unwrap().1 = id;
        let gone = (self.links.len() - 1 > self.capacity).then(|| self.links[&MARK].0);
        gone.into_iter().for_each(|gone| assert!(self.unlink(gone)));
        (hit, gone)
    }
}

/// How instructions go, by their address.
pub const UNKNOWN: u64 = 0x10;
pub const STREAM: u64 = 0x11;
pub const VARIES: u64 = 0x12;
pub const COLUMN: u64 = 0x13;

/// Knows the instructions above.
pub struct Machine;

impl Names for Machine {
    fn frames(&self, _process: usize, addrs: &[u64]) -> Vec<NamedFrame> {
        let frame = |&addr: &u64| NamedFrame {
            module: "app".into(),
            function: format!("object{addr}"),
            line: "a.c:1".into(),
            ..NamedFrame::default()
        };
        addrs.iter().map(frame).collect()
    }

    fn function(&self, _process: usize, ip: u64) -> Option<(String, String)> {
        Some((format!("function{ip}"), "app".into()))
    }

    fn access(&self, _process: usize, ip: u64) -> Option<Access> {
        let step = match ip {
            STREAM => Step::Constant(8),
            VARIES => Step::Varies,
            COLUMN => Step::Constant(8192),
            _ => return None,
        };
        Some(Access { step, size: 8, also_writes: false, non_temporal: false, flops: 2, access_bytes: 24 })
    }
}

struct Live {
    object: usize,
    base: u64,
    len: u64,
    begun: u64,
    present: Vec<bool>,
}

/// Memory samples as a processor takes them.
pub struct Sampling {
    /// One of so many loads and stores, as a mean.
    period: f64,
    /// Share of the lines of streams that are fetched ahead, so that loads find them under way.
    ahead: f64,
    random: Random,
    next: f64,
    samples: Vec<record::Access>,
}

impl Sampling {
    pub fn new(period: f64, ahead: f64, seed: u64) -> Self {
        Self { period, ahead, random: Random::new(seed), next: period / 2.0, samples: Vec::new() }
    }

    fn see(&mut self, at: u64, addr: u64, ip: u64, writes: bool, holds: bool) {
        self.next -= 1.0;
        if self.next > 0.0 {
            return;
        }
        self.next += self.period * (0.5 + self.random.unit());
        let source = match (holds, writes) {
            (true, true) => Source::L1,
            (false, true) => Source::Unknown,
            (true, false) => Source::L2,
            (false, false) if ip == STREAM && self.random.unit() < self.ahead => Source::FillBuffer,
            (false, false) => Source::Memory,
        };
        let cycles = if source == Source::Memory { 300 } else { 20 };
        let stands_for = self.period as u64;
        self.samples.push(record::Access { at, ip, tid: 1, addr, stands_for, cycles, source, writes });
    }
}

/// A program as it runs.
pub struct Run {
    sampling: Option<Sampling>,
    pub now: u64,
    cache: Lru,
    dirty: std::collections::HashSet<u64>,
    /// Lines read and written of each site.
    pub truth: Vec<(f64, f64)>,
    memories: Vec<Lru>,
    /// Page misses of each memory.
    pub missed: Vec<f64>,
    last_page: u64,
    lives: HashMap<u64, Live>,
    next: u64,
    /// Watches to be taken: moment, site, where in it.
    plan: Vec<(u64, usize, f64)>,
    open: HashMap<u64, Vec<usize>>,
    watches: Vec<(Watch, usize)>,
    records: Vec<Record>,
    limit: u64,
    /// Life of each site's memory: page and time, to draw from.
    spans: Vec<(usize, u64, u64)>,
}

pub const SITES: usize = 8;

impl Run {
    fn new(cache: usize, memories: &[usize], plan: Vec<(u64, usize, f64)>, limit: u64) -> Self {
        Self {
            sampling: None,
            now: 1_000_000_000,
            cache: Lru::new(cache / 64),
            dirty: Default::default(),
            truth: vec![(0.0, 0.0); SITES],
            memories: memories.iter().map(|bytes| Lru::new(bytes / 4096)).collect(),
            missed: vec![0.0; memories.len()],
            last_page: 0,
            lives: HashMap::new(),
            next: 1,
            plan,
            open: HashMap::new(),
            watches: Vec::new(),
            records: Vec::new(),
            limit,
            spans: Vec::new(),
        }
    }

    /// A new object of a site.
    pub fn alloc(&mut self, site: usize, len: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        let base = id << 32;
        if !self.lives.values().any(|live| live.object == site) {
            self.records.push(Record::Site(Site { id: site as u32 + 1, frames: vec![site as u64 + 1], script: vec![] }));
        }
        let object = Object { id, kind: Kind::Heap, addr: base, len, site: site as u32 + 1, name: String::new(), at: self.now };
        self.records.push(Record::Object(object));
        self.lives
            .insert(id, Live { object: site, base, len, begun: self.now, present: vec![false; len.div_ceil(4096) as usize] });
        id
    }

    pub fn free(&mut self, id: u64) {
        let live = self.lives.remove(&id).unwrap();
        for page in 0..live.present.len() as u64 {
            for watch in self.open.remove(&(live.base + page * 4096)).unwrap_or_default() {
                let watch = &mut self.watches[watch].0;
                (watch.end, watch.waited) = (WatchEnd::Lost, self.now - watch.at);
            }
        }
        self.spans.push((live.object, live.begun, self.now));
        self.records.push(Record::Gone { id, at: self.now });
        // What is freed is not written back by this object any more, but by whoever gets the memory: nobody here.
        let lines: Vec<u64> = self.dirty.iter().copied().filter(|line| (line * 64) >> 32 == id).collect();
        lines.iter().for_each(|line| assert!(self.dirty.remove(line)));
    }

    /// Takes the pages whose moment has come out of view.
    fn look(&mut self) {
        while let Some(&(at, site, place)) = self.plan.last().filter(|plan| plan.0 <= self.now) {
            self.plan.pop();
            let mut ids: Vec<_> = self.lives.iter().filter(|(_, live)| live.object == site).map(|(&id, _)| id).collect();
            ids.sort_unstable();
            let Some(&id) = ids.get((place * 7919.0) as usize % ids.len().max(1)) else { continue };
            let live = &self.lives[&id];
            let page = ((place * live.present.len() as f64) as usize).min(live.present.len() - 1);
            let end = if live.present[page] { WatchEnd::Nobody } else { WatchEnd::Absent };
            let page = live.base + page as u64 * 4096;
            let watch = Watch {
                object: id,
                page,
                pages: 1,
                at,
                waited: 0,
                stalled: 0,
                end,
                touched: 0,
                ip: 0,
                tid: 1,
                wrote: None,
                lines: None,
            };
            if end == WatchEnd::Nobody {
                self.open.entry(page).or_default().push(self.watches.len());
            }
            self.watches.push((watch, site));
        }
    }

    /// The program touches 8 bytes.
    pub fn touch(&mut self, id: u64, offset: u64, write: bool, ip: u64) {
        self.now += 40;
        self.look();
        let live = self.lives.get_mut(&id).unwrap();
        assert!(offset < live.len);
        let (site, addr) = (live.object, live.base + offset);
        let page = addr & !4095;
        let first = !std::mem::replace(&mut live.present[(offset / 4096) as usize], true);
        if first {
            // The kernel gives zeros: lines that are written without ever being read.
            (0..64).for_each(|line| self.bring(page / 64 + line, true));
        }
        if let Some(open) = (!self.open.is_empty()).then(|| self.open.remove(&page)).flatten() {
            for watch in open {
                let watch = &mut self.watches[watch].0;
                watch.waited = self.now - watch.at;
                if watch.waited > self.limit {
                    watch.waited = self.limit;
                    continue;
                }
                watch.end = if write { WatchEnd::Write } else { WatchEnd::Read };
                (watch.touched, watch.ip) = (addr, ip);
            }
        }
        let holds = self.cache.holds(addr / 64);
        if let Some(sampling) = &mut self.sampling {
            sampling.see(self.now, addr, ip, write, holds);
        }
        if !holds {
            self.now += 120;
            self.truth[site].0 += 1.0;
        }
        self.bring(addr / 64, write);
        if page != self.last_page {
            self.last_page = page;
            for (memory, missed) in self.memories.iter_mut().zip(&mut self.missed) {
                *missed += f64::from(u8::from(!memory.touch(page).0 && !first));
            }
        }
    }

    /// Brings a line to the cache.
    fn bring(&mut self, line: u64, write: bool) {
        let (_, gone) = self.cache.touch(line);
        if write {
            self.dirty.insert(line);
        }
        if let Some(gone) = gone.filter(|gone| self.dirty.remove(gone))
            && let Some(owner) = self.lives.get(&((gone * 64) >> 32))
        {
            self.truth[owner.object].1 += 1.0;
        }
    }

    /// Goes once through an object, a touch per 8 or 64 bytes.
    pub fn sweep(&mut self, id: u64, len: u64, write: bool) {
        (0..len / 64).for_each(|line| self.touch(id, line * 64, write, STREAM));
    }
}

/// A profile of a simulated run, and the truth about it.
pub struct Simulated {
    pub content: Content,
    /// Bytes read and written of each site.
    pub truth: Vec<(f64, f64)>,
    pub missed: Vec<f64>,
}

/// Runs a program with so many looks at each of its sites, spread over its life; watches give up after `limit` ns.
pub fn simulate(program: impl Fn(&mut Run), cache: usize, memories: &[usize], looks: usize, seed: u64) -> Simulated {
    simulate_sampled(program, cache, memories, looks, seed, None)
}

/// The same with memory samples beside the looks.
pub fn simulate_sampled(
    program: impl Fn(&mut Run),
    cache: usize,
    memories: &[usize],
    looks: usize,
    seed: u64,
    sampling: Option<Sampling>,
) -> Simulated {
    let limit = 2_000_000_000;
    let mut dry = Run::new(cache, memories, Vec::new(), limit);
    program(&mut dry);
    let ids: Vec<u64> = dry.lives.keys().copied().collect();
    ids.into_iter().for_each(|id| dry.free(id));
    let mut random = Random::new(seed);
    let mut plan = Vec::new();
    for site in 0..SITES {
        let spans: Vec<_> = dry.spans.iter().filter(|span| span.0 == site).collect();
        let all: u64 = spans.iter().map(|span| span.2 - span.1).sum();
        let mut drawn = 0;
        while all > 0 && drawn < looks {
            let mut place = (random.unit() * all as f64) as u64;
            let span = spans.iter().find(|span| {
                if place < span.2 - span.1 {
                    true
                } else {
                    place -= span.2 - span.1;
                    false
                }
            });
            let span = span.unwrap();
            plan.push((span.1 + place, site, random.unit()));
            drawn += 1;
        }
    }
    plan.sort_by_key(|plan| std::cmp::Reverse(plan.0));
    let mut run = Run::new(cache, &[], plan, limit);
    run.sampling = sampling;
    program(&mut run);
    let end = run.now;
    for watch in run.open.into_values().flatten() {
        let watch = &mut run.watches[watch].0;
        (watch.waited, watch.end) =
            if end - watch.at > limit { (limit, WatchEnd::Nobody) } else { (end - watch.at, WatchEnd::Lost) };
    }
    let start = Start {
        at: 1_000_000_000,
        pid: 1,
        cache_bytes: cache as u64,
        method: match (&run.sampling, looks) {
            (None, _) => Method::PageFaults,
            (Some(_), 0) => Method::Hardware,
            (Some(_), _) => Method::Both,
        },
        program: "app".into(),
        ..Start::default()
    };
    let mut records = vec![Record::Start(start)];
    records.extend(run.records);
    records.extend(run.watches.into_iter().map(|(watch, _)| Record::Watch(watch)));
    if let Some(sampling) = run.sampling {
        records.push(Record::Accesses { at: end, samples: sampling.samples, lost: 0 });
    }
    records.push(Record::End { at: end, cpu_user_ns: end - 1_000_000_000, cpu_system_ns: 0, peak_resident: 0 });
    let truth = dry.truth.iter().map(|&(read, written)| (read * 64.0, written * 64.0)).collect();
    Simulated { content: Content { batches: vec![Batch { pid: 1, records }], lost_bytes: 0 }, truth, missed: dry.missed }
}
