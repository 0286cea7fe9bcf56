//! Keeps what the kernel holds of the spill file within near: takes blocks from view, writes them early, lets them go, and has
//! blocks read ahead of sequential movement. State behind the lock of `Memory`; one thread calls `round`.
//!
//! A block that is taken from view stays in memory for a while (*limbo*): when the program comes back to it, that is seen in
//! the page tables, and it stays. This is all that is known of use; the policies of `core` decide. Nothing can stop the
//! program from touching new memory, so near may be exceeded until the device has taken what must go.

use super::{Chores, Mapped};
use crate::hash_map::Map;
use crate::job::{Job, Slot};
use crate::region::Regions;
use nearfar_core::addr::{BLOCK, BLOCK_PAGES, Extent, PAGE, block_extent};
use nearfar_core::policy::read_around::{Progress, ReadAround};
use nearfar_core::policy::{self, Arrival, Evict, Unit};
use nearfar_core::stats::Counter;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::pagemap::Pagemap;
use nearfar_sys::resident::Resident;
use nearfar_sys::usage::{UsageOf, used};
use nearfar_sys::{map, page_cache};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::os::fd::{AsRawFd, RawFd};

/// Rest while there is room: new memory comes in at a few GB/s at most.
const IDLE_MS: i32 = 4;
/// Rounds take at most this part of one CPU.
const CPU_SHARE: u64 = 4;
/// Blocks let go in a round, so that the next look is not far.
const DROPPED_AT_ONCE: usize = 24;
/// Blocks let go in a round although they must be waited for, when far too much is in memory.
const WAITS: usize = 4;
/// Blocks ahead of a stream, at most.
const AHEAD: usize = 8;
/// Part of near that may be ahead of streams.
const AHEAD_SHARE: u64 = 8;
/// A process works with at least this many pages, whatever the others have.
const LEAST_PAGES: u64 = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In the program's view.
    Seen,
    /// Taken from view, still in memory.
    Limbo,
    /// Read ahead.
    Ahead,
}

struct Known {
    state: State,
    /// Pages in view; in limbo and ahead, pages in memory.
    pages: u32,
    /// Pages of a block in limbo that came into view again, too few to call it used.
    back: u32,
    /// It was let go before: what of it comes into view has been read from far.
    read: bool,
}

/// The state of keeping. Blocks are numbered as in the address space.
pub struct Keeper {
    pagemap: Pagemap,
    resident: Resident,
    evict: Box<dyn Evict>,
    read_around: ReadAround,
    /// Pages that came into view and had been read.
    read_pages: u64,
    known: BTreeMap<usize, Known>,
    limbo: VecDeque<usize>,
    ahead: VecDeque<usize>,
    /// Blocks that are in far.
    gone: HashSet<usize>,
    handed_on: bool,
    /// Pages of the file in memory at the last count, and pages in view then.
    counted: u64,
    in_view: u64,
    charged: u64,
    told_starving: bool,
}

impl Keeper {
    /// Begins to keep, for a process that has charged `charged` pages for what it has until then.
    pub fn new(job: Job, charged: u64) -> Result<Self, Errno> {
        let evict = policy::evict_by_name("adaptive", job.near_pages()).ok_or(Errno::EINVAL)?;
        let (pagemap, resident) = (Pagemap::open()?, Resident::open()?);
        Ok(Self {
            pagemap,
            resident,
            evict,
            read_around: ReadAround::default(),
            read_pages: 0,
            known: BTreeMap::new(),
            limbo: VecDeque::new(),
            ahead: VecDeque::new(),
            gone: HashSet::new(),
            handed_on: false,
            // More than any process has: the first round counts.
            counted: u64::MAX / 2,
            in_view: 0,
            charged,
            told_starving: false,
        })
    }

    pub(super) fn own_fds(&self) -> [RawFd; 2] {
        [self.pagemap.as_raw_fd(), self.resident.as_raw_fd()]
    }

    /// Pages in memory, from the last count and what came into view since.
    fn estimate(&self) -> u64 {
        let now = self.resident.file_pages().unwrap_or(0);
        (self.counted + now).saturating_sub(self.in_view)
    }

    fn charge(&mut self, job: Job, slot: &Slot, pages: u64) {
        let near = job.near_pages();
        if pages > self.charged {
            job.force_charge(slot, pages - self.charged);
        } else {
            job.uncharge(slot, self.charged - pages);
        }
        self.charged = pages;
        let bytes = pages * PAGE as u64;
        slot.set(Counter::NearUsed, bytes);
        slot.raise(Counter::NearPeak, bytes);
        slot.raise(Counter::OverBudget, job.charged_pages().saturating_sub(near) * PAGE as u64);
    }

    /// What this process may have now, in pages.
    fn allowance(&mut self, job: Job, slot: &Slot) -> u64 {
        let others = job.charged_pages().saturating_sub(self.charged);
        let (left, fair) = (job.near_pages().saturating_sub(others), job.fair_share_pages());
        let starving = left < fair && self.charged >= left;
        if starving != self.told_starving {
            job.set_starving(slot, starving);
            self.told_starving = starving;
        }
        let most = if job.is_starving() { left.min(fair) } else { left };
        most.max(LEAST_PAGES.min(fair))
    }
}

/// CPU time of the program outside of the kernel: that of all threads but the one that keeps.
fn used_ns() -> u64 {
    used(UsageOf::Process).user.saturating_sub(used(UsageOf::Thread).user).as_nanos() as u64
}

/// Where a round stands.
struct Round {
    job: Job,
    slot: &'static Slot,
    /// Blocks that came into view.
    arrivals: Vec<usize>,
    chores: Chores,
}

impl Mapped {
    /// Looks once, decides, and takes blocks from view; `None` when nobody keeps. The rest is in the chores, for when the lock
    /// is given up.
    pub fn round(&mut self, job: Job, slot: &'static Slot, regions: &Regions, pins: &[Extent]) -> Option<Chores> {
        let mut keeper = self.keeper.take()?;
        let chores = keeper.round(self, job, slot, regions, pins);
        let now_ns = now_ns();
        if self.reads_much && keeper.read_around.is_due(now_ns) {
            let progress = Progress { now_ns, user_ns: used_ns(), read_pages: keeper.read_pages };
            self.let_kernel_read_around(keeper.read_around.is_wanted(progress));
        }
        self.keeper = Some(keeper);
        Some(chores)
    }
}

impl Keeper {
    fn round(&mut self, mapped: &Mapped, job: Job, slot: &'static Slot, regions: &Regions, pins: &[Extent]) -> Chores {
        let begin = now_ns();
        let file = mapped.file.clone();
        let chores = Chores {
            file,
            handed_on: self.handed_on,
            fetch: vec![],
            write: vec![],
            wait: vec![],
            drop: vec![],
            crowded: false,
            patience_ms: IDLE_MS,
        };
        let mut round = Round { job, slot, arrivals: Vec::new(), chores };
        let allowed = self.allowance(job, slot);
        // A part of near is for limbo; what is above the rest is pressure.
        let limbo_goal = (allowed / 8).max(BLOCK_PAGES as u64);
        let full = allowed - (allowed / 16).min(allowed / 2);
        let estimate = self.estimate();
        if estimate + limbo_goal < full {
            self.charge(job, slot, estimate);
            return round.chores;
        }
        self.look(mapped, &mut round, regions);
        self.count(mapped);
        let resident = self.counted;
        round.chores.crowded = resident > allowed;
        self.drop_limbo(mapped, &mut round, resident.saturating_sub(full));
        let dropped: u64 = round.chores.drop.len() as u64;
        self.fill_limbo(mapped, &mut round, regions, pins, (resident + limbo_goal).saturating_sub(full));
        if dropped == 0 && resident > allowed && round.chores.write.is_empty() {
            // Pages that nobody has in view and that no block accounts for: what the kernel read ahead by itself.
            page_cache::let_go(&*mapped.file, 0, mapped.len as u64);
        }
        self.fetch_ahead(mapped, &mut round, regions, allowed);
        // Taking blocks from view changed what is in view, not what is in memory.
        self.in_view = self.resident.file_pages().unwrap_or(0);
        self.charge(job, slot, resident);
        let took_ms = (now_ns() - begin) / 1_000_000;
        round.chores.patience_ms = (took_ms * CPU_SHARE).clamp(1, 200) as i32;
        round.chores
    }

    /// Compares what is in view with what was.
    fn look(&mut self, mapped: &Mapped, round: &mut Round, regions: &Regions) {
        let mut now: Map<usize, (u32, bool)> = Map::default();
        for (range, _) in regions.all().into_iter().filter(|(_, attr)| attr.arena) {
            let looked = self.pagemap.mapped(range, &mut |run, is_file| {
                for number in run.blocks() {
                    let pages = block_extent(number).intersect(&run).map_or(0, |part| part.len() / PAGE);
                    let entry = now.entry(number).or_insert((0, true));
                    *entry = (entry.0 + pages as u32, entry.1 && is_file);
                }
            });
            if looked.is_err() {
                return;
            }
        }
        // Something that is not the file's was mapped past the C library: not ours to take from view.
        now.retain(|_, (_, is_file)| *is_file);
        let lost: Vec<usize> = self
            .known
            .iter()
            .filter(|(block, its)| its.state == State::Seen && !now.contains_key(block))
            .map(|(&b, _)| b)
            .collect();
        for block in lost {
            // Discarded by the program, or paged out by the kernel.
            self.known.remove(&block);
            self.evict.remove(Unit::block(block));
            let place = mapped.place_of(block);
            if matches!(mapped.file.data_from(place), Ok(Some((data, _))) if data < place + BLOCK as u64) {
                self.gone.insert(block);
            }
        }
        let mut blocks: Vec<(usize, u32)> = now.into_iter().map(|(block, (pages, _))| (block, pages)).collect();
        blocks.sort_unstable();
        for (block, pages) in blocks {
            self.see(round, block, pages);
        }
    }

    fn see(&mut self, round: &mut Round, block: usize, pages: u32) {
        let unit = Unit::block(block);
        let before = self.known.get(&block).map(|its| (its.state, its.pages, its.read));
        let read = before.is_some_and(|(_, _, read)| read) || self.gone.remove(&block);
        let fresh = match before {
            Some((State::Seen, old, _)) if old == pages => return,
            Some((State::Seen, old, _)) => {
                self.evict.insert(unit, pages, Arrival::Demanded);
                pages.saturating_sub(old)
            }
            // One page of many: the rest is not kept for it.
            Some((State::Limbo, had, _)) if pages < had / 4 => {
                self.known.insert(block, Known { state: State::Limbo, pages: had, back: pages, read });
                return;
            }
            Some((State::Limbo, ..)) => {
                round.slot.add(Counter::FaultsRescued, 1);
                self.evict.insert(unit, pages, Arrival::Rescued);
                0
            }
            Some((State::Ahead, ahead, _)) => {
                round.slot.add(Counter::FaultsStaged, 1);
                round.slot.add(Counter::PrefetchUsedBytes, u64::from(ahead) * PAGE as u64);
                round.arrivals.push(block);
                self.evict.insert(unit, pages, Arrival::Demanded);
                0
            }
            None => {
                if read {
                    round.slot.add(Counter::FaultsDemand, 1);
                }
                round.arrivals.push(block);
                self.evict.insert(unit, pages, if read { Arrival::Demanded } else { Arrival::Touched });
                pages
            }
        };
        if read {
            self.read_pages += u64::from(fresh);
            round.slot.add(Counter::BytesIn, u64::from(fresh) * PAGE as u64);
        }
        self.known.insert(block, Known { state: State::Seen, pages, back: 0, read });
    }

    /// Counts the pages of the file that are in memory.
    fn count(&mut self, mapped: &Mapped) {
        let seen: u64 = self.known.values().filter(|its| its.state == State::Seen).map(|its| u64::from(its.pages)).sum();
        let other: u64 = self.known.values().filter(|its| its.state != State::Seen).map(|its| u64::from(its.pages)).sum();
        let cached = page_cache::cached(&*mapped.file, 0, mapped.len as u64).map_or(0, |cached| cached.pages);
        // A little less than seen is a matter of moments; far less is a file whose pages are kept elsewhere.
        self.handed_on = cached < seen / 2;
        self.counted = if self.handed_on { seen + other } else { cached };
    }

    /// Has the oldest of limbo, and what was read ahead in vain, let go: `excess` pages.
    fn drop_limbo(&mut self, mapped: &Mapped, round: &mut Round, excess: u64) {
        let mut left = excess;
        // Waiting for writes would keep the thread from looking. When it is far behind, there is nothing better to do.
        let mut waits = if excess > round.job.near_pages() / 2 { WAITS } else { 0 };
        let mut unwritten = VecDeque::new();
        while left > 0 && round.chores.drop.len() < DROPPED_AT_ONCE {
            let Some(block) = self.limbo.pop_front() else { break };
            // Rescued meanwhile, or discarded: then it is in limbo no more.
            if !self.known.get(&block).is_some_and(|its| its.state == State::Limbo) {
                continue;
            }
            let offset = mapped.place_of(block);
            let cached = page_cache::cached(&*mapped.file, offset, BLOCK as u64).unwrap_or_default();
            if cached.dirty > 0 {
                round.chores.write.push(offset);
            }
            let unready = cached.dirty + cached.writing;
            if unready > 0 && unready * 2 >= cached.pages {
                if waits == 0 {
                    unwritten.push_back(block);
                    continue;
                }
                waits -= 1;
                round.chores.wait.push(offset);
            }
            left = left.saturating_sub(self.let_go(mapped, round, block));
        }
        unwritten.append(&mut self.limbo);
        self.limbo = unwritten;
        let most = (round.job.near_pages() / AHEAD_SHARE) as usize / BLOCK_PAGES + 1;
        while (left > 0 || self.ahead.len() > 2 * most) && round.chores.drop.len() < DROPPED_AT_ONCE {
            let Some(block) = self.ahead.pop_front() else { break };
            let Some(its) = self.known.get(&block).filter(|its| its.state == State::Ahead) else { continue };
            round.slot.add(Counter::PrefetchWastedBytes, u64::from(its.pages) * PAGE as u64);
            left = left.saturating_sub(self.let_go(mapped, round, block));
        }
    }

    fn let_go(&mut self, mapped: &Mapped, round: &mut Round, block: usize) -> u64 {
        let Some(its) = self.known.remove(&block) else { return 0 };
        let offset = mapped.place_of(block);
        let cached = page_cache::cached(&*mapped.file, offset, BLOCK as u64).ok().filter(|_| !self.handed_on);
        let pages = cached.map_or(u64::from(its.pages), |cached| cached.pages - cached.dirty.min(cached.pages));
        let pages = pages.saturating_sub(u64::from(its.back));
        round.slot.add(Counter::EvictedBytes, pages * PAGE as u64);
        round.chores.drop.push(offset);
        if its.back > 0 {
            self.evict.insert(Unit::block(block), its.back, Arrival::Demanded);
            self.known.insert(block, Known { state: State::Seen, pages: its.back, back: 0, read: true });
        } else {
            self.gone.insert(block);
        }
        pages
    }

    /// Takes blocks from view until limbo holds `wanted` pages.
    fn fill_limbo(&mut self, mapped: &Mapped, round: &mut Round, regions: &Regions, pins: &[Extent], wanted: u64) {
        let mut have: u64 = self.known.values().filter(|its| its.state == State::Limbo).map(|its| u64::from(its.pages)).sum();
        let mut kept = Vec::new();
        while have < wanted {
            let Some(block) = self.evict.victim().map(Unit::block_number) else { break };
            let Some(its) = self.known.get_mut(&block).filter(|its| its.state == State::Seen) else { continue };
            let extent = block_extent(block);
            if pins.iter().any(|pin| pin.overlaps(&extent)) {
                kept.push((block, its.pages));
                round.slot.add(Counter::PinnedSkips, 1);
                continue;
            }
            let parts = regions.parts(extent);
            for (part, _) in parts.iter().filter(|(_, attr)| attr.arena) {
                // SAFETY: a shared mapping of the file (`look` saw its pages): the content stays, only the view of it goes.
                let _ = unsafe { map::madvise(*part, libc::MADV_DONTNEED) };
            }
            its.state = State::Limbo;
            its.back = 0;
            let offset = mapped.place_of(block);
            if let Ok(cached) = page_cache::cached(&*mapped.file, offset, BLOCK as u64)
                && !self.handed_on
            {
                its.pages = its.pages.max(cached.pages as u32);
                round.slot.add(Counter::BytesOut, cached.dirty * PAGE as u64);
            } else {
                // Nobody tells what is changed; this is the most it can be.
                round.slot.add(Counter::BytesOut, u64::from(its.pages) * PAGE as u64);
            }
            have += u64::from(its.pages);
            round.chores.write.push(offset);
            self.limbo.push_back(block);
        }
        for (block, pages) in kept {
            self.evict.insert(Unit::block(block), pages, Arrival::Demanded);
        }
    }

    /// Blocks next to those that came into view just now, where the one on the other side is there: movement in one direction.
    fn fetch_ahead(&mut self, mapped: &Mapped, round: &mut Round, regions: &Regions, allowed: u64) {
        let room = ((allowed / AHEAD_SHARE) as usize / BLOCK_PAGES).min(AHEAD);
        let mut used = self.known.values().filter(|its| its.state == State::Ahead).count();
        for &block in &round.arrivals {
            let is_seen =
                |block: Option<usize>| block.and_then(|b| self.known.get(&b)).is_some_and(|its| its.state == State::Seen);
            let (up, down) = (is_seen(block.checked_sub(1)), is_seen(block.checked_add(1)));
            if up == down {
                continue;
            }
            if let Some(its) = self.known.get(&block).filter(|its| its.read && (its.pages as usize) < BLOCK_PAGES / 2) {
                // Its own rest, too: the kernel may have fallen back to reading page by page.
                let bytes = (BLOCK_PAGES - its.pages as usize) as u64 * PAGE as u64;
                round.slot.add(Counter::ReadAroundBytes, bytes);
                round.chores.fetch.push(mapped.place_of(block));
            }
            for step in 1..=room {
                let next = if up { block.checked_add(step) } else { block.checked_sub(step) };
                let Some(next) = next.filter(|next| self.gone.contains(next) || self.known.contains_key(next)) else { break };
                if self.known.contains_key(&next) {
                    continue;
                }
                let extent = block_extent(next);
                if used >= room || regions.uniform(extent).is_none_or(|attr| !attr.arena) {
                    break;
                }
                let offset = mapped.place_of(next);
                let there = page_cache::cached(&*mapped.file, offset, BLOCK as u64).map_or(0, |cached| cached.pages);
                let bytes = (BLOCK_PAGES as u64).saturating_sub(there) * PAGE as u64;
                round.slot.add(Counter::PrefetchBytes, bytes);
                round.slot.add(Counter::BytesIn, bytes);
                round.chores.fetch.push(offset);
                self.gone.remove(&next);
                let pages = (bytes / PAGE as u64) as u32;
                self.known.insert(next, Known { state: State::Ahead, pages, back: 0, read: true });
                self.ahead.push_back(next);
                used += 1;
            }
        }
    }

    /// The program has given the content of `range` up.
    pub(super) fn forget(&mut self, range: Extent) {
        let last = range.end / BLOCK;
        let whole = range.start.div_ceil(BLOCK)..last;
        if whole.is_empty() {
            return;
        }
        let known: Vec<usize> = self.known.range(whole.clone()).map(|(&block, _)| block).collect();
        for block in known {
            self.known.remove(&block);
            self.evict.remove(Unit::block(block));
        }
        // The smaller of the two is gone through: programs free ranges far larger than what they touched.
        if whole.len() < self.gone.len() {
            for block in whole {
                self.gone.remove(&block);
            }
        } else {
            self.gone.retain(|block| !whole.contains(block));
        }
    }

    /// The content of block `from` is that of block `to` from now on.
    pub(super) fn moved(&mut self, from: usize, to: usize) {
        for block in [from, to] {
            if self.known.remove(&block).is_some() {
                self.evict.remove(Unit::block(block));
            }
        }
        if self.gone.remove(&from) {
            self.gone.insert(to);
        }
    }
}
