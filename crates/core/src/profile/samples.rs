//! Memory samples of the processor, by the objects that were at their addresses at their time.
//!
//! A sample of a load tells where its line came from; of a store, whether the first cache held it. Loads of lines that a prefetcher
//! brought hit a cache, so that streams show fewer loads from memory than they cause: `combine` knows that.

use super::groups::{Group, seconds};
use super::names::{Names, Step};
use super::process::Process;
use super::record::{Access, Kind, ObjectId, Record, Source};
use super::summary::Pattern;
use super::timeline::Timeline;
use super::visits::{Code, LINE};
use std::collections::{BTreeMap, HashMap};

/// Samples of one sort.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighed {
    /// Events that they stand for.
    pub events: f64,
    /// Squares of what each stands for: the variance of `events`, as events are sampled alike.
    pub squares: f64,
}

impl Weighed {
    fn add(&mut self, access: &Access) {
        let weight = access.stands_for as f64;
        self.events += weight;
        self.squares += weight * weight;
    }

    /// How many samples of equal weight would tell as much.
    pub fn number(&self) -> f64 {
        if self.squares > 0.0 { self.events * self.events / self.squares } else { 0.0 }
    }
}

/// Samples by what they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// How many, of all sorts.
    pub samples: u64,
    /// Loads from memory.
    pub memory: Weighed,
    /// Loads that a cache beyond the first held, or that waited for a line on its way.
    pub cached: Weighed,
    /// Stores that the first cache did not hold.
    pub stores: Weighed,
    /// Cycles of loads that the first cache did not hold, and the events these are of.
    cycles: (f64, f64),
}

impl Sums {
    fn add(&mut self, access: &Access) {
        self.samples += 1;
        let weight = access.stands_for as f64;
        match (access.writes, access.source) {
            (true, Source::L1) | (false, Source::L1 | Source::Unknown) => return,
            (true, _) => return self.stores.add(access),
            (false, Source::Memory) => self.memory.add(access),
            (false, _) => self.cached.add(access),
        }
        if access.cycles > 0 {
            self.cycles.0 += weight * f64::from(access.cycles);
            self.cycles.1 += weight;
        }
    }

    /// Mean cycles of loads that the first cache did not hold; 0: not measured.
    pub fn load_cycles(&self) -> f64 {
        if self.cycles.1 > 0.0 { self.cycles.0 / self.cycles.1 } else { 0.0 }
    }

    /// Of the loads that the first cache did not hold, the share that came from memory.
    pub fn memory_share(&self) -> Option<f64> {
        let all = self.memory.events + self.cached.events;
        (all > 0.0).then(|| self.memory.events / all)
    }
}

/// The samples of a group.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By process and instruction, in that order, so that sums are the same each time.
    pub by_ip: BTreeMap<(usize, u64), Sums>,
    /// All of them.
    pub all: Sums,
    /// Loads from memory and stores beyond the first cache over time.
    pub bins: Vec<f64>,
}

impl Tally {
    fn add(&mut self, process: usize, access: &Access, line: &mut Timeline) {
        self.by_ip.entry((process, access.ip)).or_default().add(access);
        self.all.add(access);
        let beyond = if access.writes { access.source != Source::L1 } else { access.source == Source::Memory };
        if beyond {
            let at = seconds(access.at);
            line.add(at, at, access.stands_for as f64);
        }
    }

    /// How most of its loads from memory go through it, by the machine code.
    pub fn pattern<N: Names + ?Sized>(&self, code: &mut Code<'_, N>) -> Pattern {
        let mut weights = [(Pattern::Unknown, 0.0), (Pattern::Stream, 0.0), (Pattern::Strided, 0.0), (Pattern::Random, 0.0)];
        for (&(process, ip), sums) in &self.by_ip {
            let of = match code.access(process, ip).map(|access| access.step) {
                Some(Step::Varies) => Pattern::Random,
                Some(Step::Constant(step)) if step.unsigned_abs() as f64 > LINE => Pattern::Strided,
                Some(Step::Constant(step)) if step != 0 => Pattern::Stream,
                _ => Pattern::Unknown,
            };
            let weight = sums.memory.events + sums.stores.events;
            weights.iter_mut().filter(|(pattern, _)| *pattern == of).for_each(|(_, sum)| *sum += weight);
        }
        weights.into_iter().fold((Pattern::Unknown, 0.0), |most, one| if one.1 > most.1 { one } else { most }).0
    }
}

/// What samples there are at all.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Of each group.
    pub tallies: Vec<Tally>,
    /// Of all, objects or not.
    pub all: Sums,
    /// How many the kernel had no room for.
    pub lost: u64,
}

impl Samples {
    /// True when they tell of memory: the processor says where data come from.
    pub fn tell(&self) -> bool {
        self.all.memory_share().is_some()
    }
}

/// What happens at one time, in the order of what counts first.
enum Event<'a> {
    Gone(ObjectId),
    Is { id: ObjectId, kind: Option<Kind>, addr: u64, len: u64 },
    Sampled(&'a Access),
}

/// So many objects that begin before an address are looked at for one that reaches to it.
const NESTED: usize = 8;

/// Objects by address.
#[derive(Default)]
struct Live {
    /// Address to length and number.
    blocks: BTreeMap<u64, (u64, ObjectId)>,
    /// Heaps of small blocks: what is in no block of its own. Their length leaves blocks out, so that where they end is not known.
    heaps: BTreeMap<u64, (u64, ObjectId)>,
    /// Where each is, and whether it is a heap.
    places: HashMap<ObjectId, (u64, bool)>,
}

impl Live {
    fn remove(&mut self, id: ObjectId) -> Option<bool> {
        let (addr, is_heap) = self.places.remove(&id)?;
        let map = if is_heap { &mut self.heaps } else { &mut self.blocks };
        if map.get(&addr).is_some_and(|(_, of)| *of == id) {
            map.remove(&addr);
        }
        Some(is_heap)
    }

    fn put(&mut self, id: ObjectId, kind: Option<Kind>, addr: u64, len: u64) {
        let was = self.remove(id);
        let is_heap = kind.map_or(was == Some(true), |kind| kind == Kind::SmallBlocks);
        let map = if is_heap { &mut self.heaps } else { &mut self.blocks };
        map.insert(addr, (len, id));
        self.places.insert(id, (addr, is_heap));
    }

    fn at(&self, addr: u64) -> Option<ObjectId> {
        // Objects seldom lie in one another: a few steps back find the one around.
        let mut before = self.blocks.range(..=addr).rev().take(NESTED);
        if let Some((_, (_, id))) = before.find(|(start, (len, _))| addr - **start < *len) {
            return Some(*id);
        }
        let (&start, &(len, id)) = self.heaps.range(..=addr).next_back()?;
        let within = addr - start;
        if within < len {
            return Some(id);
        }
        // Blocks in between are not in its length; the sum is asked for seldom, and over few.
        let blocks: u64 = self.blocks.range(start..addr).map(|(_, (len, _))| *len).fold(0, u64::saturating_add);
        (within < len.saturating_add(blocks)).then_some(id)
    }
}

/// Gives all samples to the groups of [`collect`](super::groups::collect).
pub fn tally(processes: &[Process<'_>], groups: &[Group], (begin, end, bin): (f64, f64, f64)) -> Samples {
    let mut found = Samples { tallies: vec![Tally::default(); groups.len()], ..Samples::default() };
    let is_sampled = |process: &Process<'_>| process.records.iter().any(|record| matches!(record, Record::Accesses { .. }));
    if !processes.iter().any(is_sampled) {
        return found;
    }
    let mut lines = vec![Timeline::with_bin(begin, end, bin); groups.len()];
    let mut of: HashMap<(usize, ObjectId), usize> = HashMap::new();
    for (at, group) in groups.iter().enumerate() {
        of.extend(group.items.iter().map(|item| (item.object, at)));
    }
    for (index, process) in processes.iter().enumerate().filter(|(_, process)| is_sampled(process)) {
        let mut live = Live::default();
        for (_, _, event) in events(process, &mut found.lost) {
            match event {
                Event::Gone(id) => {
                    live.remove(id);
                }
                Event::Is { id, kind, addr, len } => live.put(id, kind, addr, len),
                Event::Sampled(access) => {
                    found.all.add(access);
                    let group = live.at(access.addr).and_then(|id| of.get(&(index, id)).copied());
                    if let Some(group) = group
                        && let (Some(tally), Some(line)) = (found.tallies.get_mut(group), lines.get_mut(group))
                    {
                        tally.add(index, access, line);
                    }
                }
            }
        }
    }
    found.tallies.iter_mut().zip(lines).for_each(|(tally, line)| tally.bins = line.bins);
    found
}

/// All of a process in order of time; what ends goes before what begins at its place.
fn events<'a>(process: &Process<'a>, lost: &mut u64) -> Vec<(u64, u8, Event<'a>)> {
    let mut events = Vec::new();
    for record in &process.records {
        match record {
            Record::Object(object) => {
                let is = Event::Is { id: object.id, kind: Some(object.kind), addr: object.addr, len: object.len };
                events.push((object.at, 1, is));
            }
            Record::Resized { id, addr, len, at } => {
                events.push((*at, 1, Event::Is { id: *id, kind: None, addr: *addr, len: *len }));
            }
            Record::Gone { id, at } => events.push((*at, 0, Event::Gone(*id))),
            Record::Accesses { samples, lost: more, .. } => {
                *lost = lost.saturating_add(*more);
                events.extend(samples.iter().map(|access| (access.at, 2, Event::Sampled(access))));
            }
            _ => {}
        }
    }
    events.sort_by_key(|(at, order, _)| (*at, *order));
    events
}
