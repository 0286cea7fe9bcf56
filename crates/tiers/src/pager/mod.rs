//! The pager: serves faults, keeps free frames ahead of demand, writes evicted pages back. State behind the lock of `Memory`.
//!
//! One thread (`Memory`'s pager thread) reads faults and completions; other threads change the state only through `discard`,
//! `relocate`, `protect_changed` and `fork_*`, under the same lock. Nothing here blocks on far, except copies that a fork makes necessary.
//!
//! `fault` looks at a page and decides; `read` brings data; `rescue` takes it from limbo; `evict` takes units out and writes
//! them; `transfer` is what is under way to and from far; `retry` is what happens when that fails; `reclaim` finds frames;
//! `window` keeps most of near out of view while visits are recorded; `far_space` weighs far against what the program holds, `clean`
//! makes room there; `yielding` gives near up to objects that are
//! never paged; `discard` follows the program's own unmapping; `fork` splits the world in two; `watch` tells who waits for
//! what.

mod check;
mod clean;
mod discard;
mod evict;
mod fault;
mod fork;
mod mover;
mod read;
mod release;
mod rescue;
mod retry;
mod reclaim;
mod far_space;
mod start;
mod stats;
mod transfer;
mod watch;
mod window;
mod yielding;

use crate::bits::Bits;
use crate::block::{Block, Frames, Hold, HoldId, Phase};
use crate::far::Far;
use crate::frame::FramePool;
use crate::guard;
use crate::hash_map::Map;
use crate::job::{Job, Slot};
use crate::loans::Loans;
use crate::log::Log;
use crate::recorder::Recorder;
use crate::region::Regions;
use nearfar_core::addr::{BLOCK, Extent, PAGE, block_start};
use nearfar_core::policy::headroom::Headroom;
use nearfar_core::policy::merging::Merging;
use nearfar_core::policy::{Evict, Prefetch, Run};
use nearfar_core::stats::Counter;
use nearfar_sys::event::now_ns;
use nearfar_sys::high_descriptors::Spare;
use nearfar_sys::line::Line;
use nearfar_sys::process;
use nearfar_sys::uffd::Uffd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

pub use far_space::NoSpace;
pub use start::Start;
pub use watch::Stuck;
pub use yielding::LEAST_FRAMES;

/// Exit status of a program that was stopped because its data could not be kept right.
pub const EXIT_STOPPED: i32 = 86;

static CORE_ON_STOP: AtomicBool = AtomicBool::new(false);

/// A thread that waits for a page.
struct Wait {
    addr: usize,
    thread: u32,
    since_ns: u64,
    far: bool,
}

/// A fault that could not be served for want of a frame.
#[derive(Clone, Copy)]
struct Starved {
    fault: nearfar_sys::uffd::PageFault,
    since_ns: u64,
}

/// The pager of this process.
pub struct Pager {
    job: Job,
    slot: &'static Slot,
    /// The managed ranges; `Memory` keeps them up to date.
    pub regions: Regions,
    /// What system calls of the program use now.
    pub loans: Loans,
    uffd: Uffd,
    far: Far,
    log: Log,
    transfers: transfer::Transfers,
    frames: FramePool,
    blocks: Map<usize, Box<Block>>,
    holds: Vec<Option<Hold>>,
    free_holds: Vec<HoldId>,
    serial: u64,
    evict: Box<dyn Evict>,
    fetch: Box<dyn Prefetch>,
    merging: Merging,
    capacity: u64,
    aside: Headroom,
    // Pages that the eviction policy was told it may fill.
    kept: u64,
    // Pages of the charge that hold objects which are never paged.
    placed: u64,
    yielding: yielding::Yielding,
    // Clean holds, oldest first; entries go stale when a hold ends, which the serial tells.
    limbo_huge: VecDeque<(HoldId, u64)>,
    limbo_small: VecDeque<(HoldId, u64)>,
    staged: VecDeque<(HoldId, u64)>,
    limbo_pages: usize,
    writing_pages: usize,
    staged_pages: usize,
    staged_holds: usize,
    reading_ahead: usize,
    /// Pages of those of them that have come and were not looked at yet.
    arriving: usize,
    /// Pages that were ever asked of far, ahead or on demand; a small read counts as several.
    asked_for: u64,
    wishes: VecDeque<Run>,
    waits: Vec<Wait>,
    starved: VecDeque<Starved>,
    starved_since_ns: u64,
    told_starving: bool,
    // Far has refused space, and others may make room (`far_full`).
    waits_for_far: bool,
    told_trouble: bool,
    ops: u32,
    write_ops: u32,
    evicting: bool,
    postponed: bool,
    /// Pages that are charged and that the kernel has.
    hollow: usize,
    /// Pages that were to be copied since that was last seen to.
    copied_lately: usize,
    awake: stats::WakeupControl,
    meter: stats::Meter,
    watch: check::Watch,
    resting: bool,
    /// Visits are recorded (`window`).
    recorder: Option<Recorder>,
    clean_after_ns: u64,
    metadata_pages: usize,
    // Pages that the tables took when gauges were last written.
    tables_pages: usize,
    /// Bytes of the blocks' tables of far copies.
    table_bytes: usize,
    over_since_ns: u64,
    pipe: Option<(std::os::fd::OwnedFd, std::os::fd::OwnedFd)>,
    /// For forks.
    spare: Spare,
}

fn page_index(addr: usize) -> usize {
    addr % BLOCK / PAGE
}

fn page_addr(number: usize, page: usize) -> usize {
    block_start(number) + page * PAGE
}

impl Pager {
    /// Descriptors to wait on: faults, far, then one for each living fork (at most six are watched at a time).
    pub fn wait_fds(&mut self) -> Vec<i32> {
        use std::os::fd::AsRawFd;
        let mut fds = vec![self.uffd.as_raw_fd(), self.far.backend().wait_fd()];
        fds.extend(self.far.fork_fds().take(5));
        fds
    }

    /// Descriptors that the program must not close.
    pub fn own_fds(&self) -> Vec<i32> {
        use std::os::fd::AsRawFd;
        // The userfaultfd first: without it absent pages would read as zeros.
        let mut fds = vec![self.uffd.as_raw_fd()];
        fds.extend(nearfar_sys::pagemap::kept_fd());
        fds.extend(self.awake.fd());
        fds.extend(self.far.fds());
        fds.extend(self.recorder.iter().flat_map(Recorder::fds));
        fds.extend(self.spare.fds());
        fds
    }

    /// How long the pager thread may sleep without any event, in ms.
    pub fn patience_ms(&self) -> i32 {
        if !self.starved.is_empty() || self.transfers.are_postponed() {
            5
        } else if self.job.processes() > 1 {
            20
        } else {
            // Another process may join at any time, and nobody tells.
            200
        }
    }

    /// One round of the pager thread: serves what waits, as long as something does.
    pub fn round(&mut self) {
        self.awake.look(now_ns());
        // Threads that were just given pages ask for more very soon, or run: evicting would interrupt their CPUs.
        let mut woke = false;
        loop {
            guard::note_turn();
            let faults = self.serve_faults();
            // What threads wait for is on its way before anything else is done.
            self.far.backend().flush();
            let completions = self.take_completions();
            woke = !faults && (woke || completions);
            self.postponed = woke;
            let more = self.pump();
            if !faults && !completions && !more {
                self.check_now_and_then();
                return;
            }
        }
    }

    /// True when eviction waits for a better moment, which comes within microseconds or not at all.
    pub fn has_postponed(&self) -> bool {
        self.postponed
    }

    /// True while a thread waits for something that far is bringing.
    pub fn is_awaited(&self) -> bool {
        self.ops > 0 && self.waits.iter().any(|wait| wait.far)
    }

    /// Thaws far space of forks that are gone.
    pub fn reap_forks(&mut self) {
        self.far.reap_forks();
    }

    /// Forgets the far copy of a page.
    fn forget_far(&mut self, number: usize, page: usize) {
        let slot = self.with_tables(number, |block| {
            block.far_valid.clear(page);
            block.set_log_slot(page, None)
        });
        if let Some(slot) = slot {
            self.log.drop_slot(&mut self.far, slot);
        }
    }

    fn count(&self, counter: Counter, n: u64) {
        self.slot.add(counter, n);
    }

    fn block(&mut self, number: usize) -> &mut Block {
        self.blocks.entry(number).or_default()
    }

    /// Changes a block's tables of far copies, and keeps count of their size.
    fn with_tables<R>(&mut self, number: usize, change: impl FnOnce(&mut Block) -> R) -> R {
        let block = self.block(number);
        let before = block.table_bytes();
        let result = change(block);
        let after = block.table_bytes();
        self.table_bytes = self.table_bytes + after - before;
        result
    }

    fn new_hold(&mut self, number: usize, mask: Bits, frames: Frames, phase: Phase) -> HoldId {
        self.serial += 1;
        let hold = Hold {
            block: number,
            mask,
            populated: mask,
            zeros: Bits::default(),
            frames,
            phase,
            wanted: false,
            prefetch: false,
            begun: 0,
            begun_ns: 0,
            again: 0,
            ops: 0,
            writing: Bits::default(),
            place: None,
            serial: self.serial,
        };
        let id = match self.free_holds.pop() {
            Some(id) => {
                self.holds[id] = Some(hold);
                id
            }
            None => {
                self.holds.push(Some(hold));
                self.holds.len() - 1
            }
        };
        self.block(number).holds.push(id);
        id
    }

    fn hold(&mut self, id: HoldId) -> &mut Hold {
        match self.holds.get_mut(id) {
            Some(Some(hold)) => hold,
            _ => stop("internal error: a hold is gone that was in use; please report this"),
        }
    }

    /// The hold that has page `page` of block `number`.
    fn holder(&self, number: usize, page: usize) -> Option<HoldId> {
        let has = |id: &HoldId| matches!(&self.holds[*id], Some(hold) if hold.mask.get(page));
        self.blocks.get(&number)?.holds.iter().copied().find(has)
    }

    fn end_hold(&mut self, id: HoldId) -> Hold {
        let Some(hold) = self.holds.get_mut(id).and_then(Option::take) else {
            stop("internal error: a hold ended twice; please report this")
        };
        self.free_holds.push(id);
        self.block(hold.block).holds.retain(|&other| other != id);
        hold
    }

    fn is_current(&self, id: HoldId, serial: u64) -> bool {
        matches!(self.holds.get(id), Some(Some(hold)) if hold.serial == serial)
    }

    /// Sets the phase of a hold and keeps the page counts of the phases.
    fn set_phase(&mut self, id: HoldId, phase: Phase) {
        let hold = self.hold(id);
        let (before, pages) = (hold.phase, hold.populated.count());
        hold.phase = phase;
        self.count_phase(before, pages, false);
        self.count_phase(phase, pages, true);
    }

    fn count_phase(&mut self, phase: Phase, pages: usize, more: bool) {
        let step = |count: &mut usize| *count = if more { *count + pages } else { *count - pages };
        match phase {
            Phase::Reading => {}
            Phase::Staged => {
                step(&mut self.staged_pages);
                self.staged_holds = if more { self.staged_holds + 1 } else { self.staged_holds - 1 };
            }
            Phase::Writing => {
                step(&mut self.limbo_pages);
                step(&mut self.writing_pages);
            }
            Phase::Clean => step(&mut self.limbo_pages),
        }
    }

    /// Puts the frames of an ended hold back on the free lists.
    fn recycle(&mut self, hold: &Hold) {
        if let Frames::Span { addr, huge: true, .. } = hold.frames {
            // A huge frame with holes cannot serve again as one: what it has goes to the single pages.
            if hold.populated.count() == nearfar_core::addr::BLOCK_PAGES {
                self.frames.give_huge(addr);
            } else {
                self.frames.break_partial(addr, &hold.populated);
            }
            return;
        }
        // The list is a stack: pages given in descending order come out ascending, and neighbours then move in one call.
        for page in (0..nearfar_core::addr::BLOCK_PAGES).rev().filter(|&page| hold.populated.get(page)) {
            self.frames.give_page(hold.frames.addr(page));
        }
    }
}

/// As that of `sys::pagemap`, but stops the program when one cannot tell: a page that is taken for absent is given up.
fn absent_pages(range: Extent, each: impl FnMut(usize)) {
    if let Err(errno) = nearfar_sys::pagemap::absent_pages(range, each) {
        stop(&format!(
            "the kernel no longer says which pages are in memory ({errno}): mincore(2) is refused, or there is swap space \
             and /proc/self/pagemap cannot be read"
        ));
    }
}

/// Ends the process with a message: its data cannot be kept right. Never returns to the program.
pub fn stop(why: &str) -> ! {
    // The heap may be what is wrong.
    let text = Line::of(format_args!("nearfar: stopped process {}: {why:.4000}\n", process::pid()));
    process::write_stderr(text.as_str().as_bytes());
    if CORE_ON_STOP.load(Ordering::Relaxed) {
        process::abort_now()
    }
    process::exit_now(EXIT_STOPPED)
}

fn pages_extent(number: usize, pages: std::ops::Range<usize>) -> Extent {
    Extent { start: page_addr(number, pages.start), end: page_addr(number, pages.end) }
}
