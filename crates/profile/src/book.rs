//! What events come to: the live objects, and the records of what changes. Pure bookkeeping, without files and threads.

mod locals;

use crate::live::{Live, Object};
use crate::output::Thin;
use crate::queue::{Event, What};
use crate::stacks::{Stack, Stacks};
use nearfar_core::addr::PAGE;
use nearfar_core::profile::record::{self, Brief, Kind, ObjectId, Record, SiteId, Watch};
use nearfar_core::random_numbers::Random;
use std::collections::HashMap;

/// Objects below this that come and go between two writes are told of together.
const BRIEF: u64 = 1 << 20;
/// Of one site, so many in one go are told of each by itself, however large.
const BRIEF_MANY: u64 = 16;
/// Objects above this are told of by themselves even when the file is nearly full.
const HUGE: u64 = 16 << 20;
/// Groups below this are small.
const SMALL_GROUP: u64 = 1 << 20;
/// No look lasts so long: one that has no result after that was not begun, or its result found no room.
const FORGET_NS: u64 = 20_000_000_000;
/// A length that means: the call failed, the object is what it was.
pub const UNCHANGED: u64 = u64::MAX;

/// Looks at an object that are under way, or whose results are.
#[derive(Debug, Default)]
struct Looked {
    group: usize,
    count: u32,
    ended: Option<u64>,
    /// When the last was wanted.
    at: u64,
}

/// The books of a process.
#[derive(Debug, Default)]
pub struct Book {
    /// What lives.
    pub live: Live,
    /// Stacks of threads; those that were used enough are in `live` too.
    pub stacks: Stacks,
    /// What is to be written next.
    pub records: Vec<Record>,
    briefs: HashMap<SiteId, Brief>,
    large_briefs: HashMap<SiteId, u64>,
    /// Objects within a call that reallocates them, by its ticket.
    parked: HashMap<u64, Object>,
    looked: HashMap<ObjectId, Looked>,
    locals: locals::ThreadLocals,
    /// When looks without a result are forgotten next.
    next_forget: u64,
    /// Objects that began.
    pub allocations: u64,
    least: u64,
    thin: Thin,
    watches: u64,
}

impl Book {
    /// Empty; objects have at least `least` bytes.
    pub fn new(least: u64) -> Self {
        Self { least, ..Self::default() }
    }

    /// Takes an event into account.
    pub fn note(&mut self, ticket: u64, event: &Event) {
        let Event { what, site, addr, len, at, of } = *event;
        let end = addr.saturating_add(len);
        match what {
            What::Alloc => {
                self.clear(addr, end, at);
                self.begin(Kind::Heap, addr, len, site, None, at);
            }
            What::Free => {
                self.heap_gone(addr, at);
                if let Some(object) = self.live.remove(addr) {
                    self.gone(object, at);
                }
            }
            What::Take => {
                if let Some(object) = self.live.remove(addr) {
                    self.parked.insert(ticket, object);
                }
            }
            What::Map => {
                // What is mapped within a mapping of the same kind makes a part of it usable, or empty: it stays one object.
                let within = self.live.overlapping(addr, end);
                let is_part = |addr: &u64| {
                    let object = self.live.at(*addr);
                    object.is_some_and(|object| {
                        object.kind == Kind::Map && object.addr <= event.addr && end <= object.addr + object.len
                    })
                };
                if !within.first().is_some_and(is_part) {
                    self.clear(addr, end, at);
                    self.begin(Kind::Map, addr, len, site, None, at);
                }
            }
            What::Unmap => self.clear(addr, end, at),
            What::MapTake => {
                if self.live.at(addr).is_some_and(|object| object.kind == Kind::Map && object.len <= len)
                    && let Some(object) = self.live.remove(addr)
                {
                    self.parked.insert(ticket, object);
                } else {
                    self.clear(addr, end, at);
                }
            }
            What::Put | What::MapPut => self.put(event, of),
            What::StackBegin => {
                // Beside the stack lie the thread's own data, and behind them its descriptor; 0: not known.
                let descriptor = if site == 0 { 0 } else { end + u64::from(site) };
                let over = self.stacks.begin(addr, end, (of as u32, descriptor), at);
                self.stacks_gone(over, at);
            }
            What::StackEnd => {
                let ended = self.stacks.end(addr);
                self.stacks_gone(ended, at);
            }
        }
    }

    /// Ends the objects of these stacks.
    pub fn stacks_gone(&mut self, stacks: impl IntoIterator<Item = Stack>, at: u64) {
        for stack in stacks {
            self.end(stack.object.as_slice(), at);
            self.thread_gone(stack.descriptor, at);
        }
    }

    /// Begins and enlarges the objects of stacks as they were used; `lowest` tells the first page of a range that is in memory.
    pub fn measure_stacks(&mut self, at: u64, lowest: &mut dyn FnMut(u64, u64) -> Option<u64>) {
        for stack in self.stacks.all_mut() {
            let Some(low) = lowest(stack.start, stack.low).and_then(|low| stack.used_from(low)) else { continue };
            let known = stack.object;
            // A stack in memory that the program has made for it belongs to that object, and one that was mapped over is no more.
            if !self.live.overlapping(low, known.map_or(stack.end, |(_, addr)| addr)).is_empty() {
                continue;
            }
            let len = stack.end - low;
            let Some((id, addr)) = known else {
                let id = self.live.begin(stack.kind, low, len, 0, None, stack.at);
                stack.object = Some((id, low));
                continue;
            };
            if self.live.at(addr).is_none_or(|object| object.id != id) {
                continue;
            }
            if let Some(mut object) = self.live.remove(addr) {
                (object.addr, object.len) = (low, len);
                if object.written {
                    self.records.push(Record::Resized { id, addr: low, len, at });
                }
                self.live.insert(object);
                stack.object = Some((id, low));
            }
        }
    }

    fn put(&mut self, event: &Event, of: u64) {
        let Event { what, site, addr, len, at, .. } = *event;
        let kind = if what == What::Put { Kind::Heap } else { Kind::Map };
        match self.parked.remove(&of) {
            Some(object) if len == UNCHANGED => self.live.insert(object),
            Some(object) if len < self.least => self.gone(object, at),
            Some(mut object) => {
                self.clear(addr, addr.saturating_add(len), at);
                (object.addr, object.len) = (addr, len);
                if object.written {
                    self.records.push(Record::Resized { id: object.id, addr, len, at });
                }
                self.live.insert(object);
            }
            None if len != UNCHANGED && len >= self.least => {
                self.clear(addr, addr.saturating_add(len), at);
                self.begin(kind, addr, len, site, None, at);
            }
            None => {}
        }
    }

    /// A new object.
    pub fn begin(&mut self, kind: Kind, addr: u64, len: u64, site: SiteId, name: Option<Box<str>>, at: u64) -> ObjectId {
        self.allocations += u64::from(matches!(kind, Kind::Heap | Kind::Map));
        self.live.begin(kind, addr, len, site, name, at)
    }

    /// Ends what lies in a range; of mappings only those parts.
    fn clear(&mut self, start: u64, end: u64, at: u64) {
        for addr in self.live.overlapping(start, end) {
            let Some(object) = self.live.remove(addr) else { continue };
            let (first, last) = (object.addr, object.addr + object.len);
            if object.kind != Kind::Map || (start <= first && last <= end) {
                self.gone(object, at);
                continue;
            }
            let (before, behind) = (start.saturating_sub(first), last.saturating_sub(end));
            let (addr, len, rest) = if before > 0 { (first, before, behind) } else { (end, behind, 0) };
            let (site, mut object) = (object.site, object);
            (object.addr, object.len) = (addr, len);
            if object.written {
                self.records.push(Record::Resized { id: object.id, addr, len, at });
            }
            self.live.insert(object);
            if rest > 0 {
                self.live.begin(Kind::Map, end, rest, site, None, at);
            }
        }
    }

    fn gone(&mut self, object: Object, at: u64) {
        if let Some(looked) = self.looked.get_mut(&object.id) {
            looked.ended = Some(at);
        }
        if object.written {
            self.records.push(Record::Gone { id: object.id, at });
            return;
        }
        // What is told of together is blocks.
        if !matches!(object.kind, Kind::Heap | Kind::Map) {
            if self.thin < Thin::Most {
                self.write_object(&object);
                self.records.push(Record::Gone { id: object.id, at });
            }
            return;
        }
        if object.len >= BRIEF && self.thin < Thin::Small {
            let many = self.large_briefs.entry(object.site).or_default();
            *many += 1;
            if *many <= BRIEF_MANY {
                self.write_object(&object);
                self.records.push(Record::Gone { id: object.id, at });
                return;
            }
        }
        self.brief(&object, at);
    }

    fn brief(&mut self, object: &Object, at: u64) {
        let brief = self.briefs.entry(object.site).or_insert_with(|| Brief { site: object.site, ..Brief::default() });
        brief.at = at;
        brief.count += 1;
        brief.bytes += object.len;
        brief.largest = brief.largest.max(object.len);
        brief.lifetime_ns += at.saturating_sub(object.at);
    }

    fn write_object(&mut self, object: &Object) {
        let name = object.name.as_deref().unwrap_or_default().to_owned();
        let Object { id, kind, addr, len, site, at, .. } = *object;
        self.records.push(Record::Object(record::Object { id, kind, addr, len, site, name, at }));
    }

    /// The object at `addr` is looked at: returns its number and whether all of the block around `page` is its own.
    pub fn look(&mut self, addr: u64, page: u64, at: u64) -> Option<(ObjectId, bool)> {
        let object = self.live.at_mut(addr)?;
        let was_written = std::mem::replace(&mut object.written, true);
        let object = object.clone();
        if !was_written {
            self.write_object(&object);
        }
        let looked = self.looked.entry(object.id).or_default();
        looked.group = self.live.group_of(addr);
        looked.count += 1;
        looked.at = at;
        Some((object.id, object.has_block_of(page)))
    }

    /// An object that is not kept in `live` is looked at.
    pub fn look_elsewhere(&mut self, id: ObjectId, at: u64) {
        let looked = self.looked.entry(id).or_default();
        looked.group = usize::MAX;
        looked.count += 1;
        looked.at = at;
    }

    /// The result of a look: of an object that had ended before it began nothing is said.
    pub fn watched(&mut self, watch: Watch) {
        let ended = match self.looked.get_mut(&watch.object) {
            None => return,
            Some(looked) => {
                looked.count -= 1;
                let ended = looked.ended;
                self.live.looked(looked.group, watch.touched != 0, watch.waited);
                if looked.count == 0 {
                    self.looked.remove(&watch.object);
                }
                ended
            }
        };
        self.watches += 1;
        let wanted = match self.thin {
            Thin::No => true,
            Thin::Small => self.watches.is_multiple_of(2),
            Thin::Most => self.watches.is_multiple_of(8),
            Thin::Full => false,
        };
        if wanted && ended.is_none_or(|at| watch.at < at) {
            self.records.push(Record::Watch(watch));
        }
    }

    /// A look that was not taken on.
    pub fn not_looked(&mut self, id: ObjectId) {
        if let Some(looked) = self.looked.get_mut(&id) {
            looked.count -= 1;
            if looked.count == 0 && looked.ended.is_none() {
                self.looked.remove(&id);
            }
        }
    }

    /// Objects that live and have no record of their own yet.
    pub fn unwritten(&self) -> u64 {
        self.live.all().filter(|object| !object.written).count() as u64
    }

    /// What is to be written now, in order of time; `last`: also of what still lives and was not told of by itself.
    pub fn take(&mut self, thin: Thin, at: u64, last: bool) -> Vec<Record> {
        self.thin = thin;
        if at >= self.next_forget {
            self.next_forget = at + FORGET_NS / 4;
            self.looked.retain(|_, looked| looked.at + FORGET_NS > at);
        }
        let wanted: Vec<u64> = match thin {
            Thin::Full => Vec::new(),
            _ => {
                let fits = |object: &&Object| {
                    !object.written
                        && (thin == Thin::No
                            || object.len >= HUGE
                            || (thin == Thin::Small && self.live.group_bytes(object) >= SMALL_GROUP))
                };
                self.live.all().filter(fits).map(|object| object.addr).collect()
            }
        };
        for addr in wanted {
            if let Some(object) = self.live.at_mut(addr) {
                object.written = true;
                let object = object.clone();
                self.write_object(&object);
            }
        }
        if last {
            let rest: Vec<Object> = self.live.all().filter(|object| !object.written).cloned().collect();
            rest.iter().for_each(|object| self.brief(object, at));
            self.live.all_mut().for_each(|object| object.written = true);
        }
        let time = |record: &Record| match record {
            Record::Object(object) => object.at,
            Record::Resized { at, .. } | Record::Gone { at, .. } => *at,
            _ => u64::MAX,
        };
        self.records.sort_by_key(time);
        self.large_briefs.clear();
        let mut out = std::mem::take(&mut self.records);
        out.extend(self.briefs.drain().map(|(_, brief)| Record::Brief(brief)));
        out
    }

    /// In the child of a fork, on the stack that `here` lies in: nothing is written yet, and no look is under way.
    pub fn forked(&mut self, here: u64, tid: u32) {
        let gone = self.stacks.forked(here, tid);
        self.stacks_gone(gone, 0);
        self.records.clear();
        self.briefs.clear();
        self.looked.clear();
        self.allocations = 0;
        for (_, object) in self.parked.drain().collect::<Vec<_>>() {
            self.live.insert(object);
        }
        self.live.all_mut().for_each(|object| object.written = false);
    }

    /// A random page of a heap of the C library in which no object has a byte.
    pub fn free_page(&self, start: u64, end: u64, random: &mut Random) -> Option<u64> {
        let page = PAGE as u64;
        let (first, pages) = (start.div_ceil(page), (end / page).saturating_sub(start.div_ceil(page)));
        (0..16).filter(|_| pages > 0).find_map(|_| {
            let addr = (first + random.below(pages)) * page;
            self.live.overlapping(addr, addr + page).is_empty().then_some(addr)
        })
    }
}

#[cfg(test)]
mod tests;
