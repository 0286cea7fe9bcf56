//! The pager thread: waits for faults and completions; while passive, only looks whether others starve.

use super::commit::Paging;
use super::{Common, Memory, inner::Inner};
use nearfar_core::addr::PAGE;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::{now_ns, wait_readable};
use nearfar_sys::thread::give_way;
use nearfar_sys::{credentials, process};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

/// A passive process above this part of the budget is asked to page when others starve, so it needs a thread; also while it is alone:
/// of a child by vfork it learns nothing, and it may wait for that child when it starves. Smaller ones are not worth a thread each.
const WATCHED_SHARE: u64 = 16;
const PASSIVE_LOOK_MS: i32 = 50;
/// Longest wait of one call for memory to become free, where the kernel pages.
const HOLD_BACK_MS: u32 = 50;
/// While a thread of the program waits for far, its CPU has nothing to do: looking again and again for the completion costs
/// nobody anything and saves two wake-ups of an idle CPU, tens of microseconds each where the machine is a virtual one.
const LOOK_NS: u64 = 200_000;
/// Threads that were given a page ask for the next one soon, when they lately did within this time on average; so long it is
/// looked for although nobody waits.
const SOON_NS: u64 = 40_000;
/// The CPU was given to others for so long: somebody does need it.
const TAKEN_NS: u64 = 150_000;
/// For so long nothing is looked for after that.
const HOLD_OFF_NS: u64 = 1_000_000;

impl Memory {
    /// Starts the thread where paging is on, or where this process is large enough for others to want memory of it.
    pub(super) fn start_thread_if_needed(&self, inner: &mut Inner) {
        if process::pid() != inner.owner {
            return;
        }
        if let Some(pager) = &mut inner.pager
            && !std::mem::replace(&mut inner.has_helper, true)
        {
            pager.start_helper(|body| nearfar_sys::thread::spawn("nearfar-space", body).is_ok());
        }
        if inner.has_thread {
            return;
        }
        let large = inner.slot.charged_pages() * PAGE as u64 > inner.job.settings().near_bytes / WATCHED_SHARE;
        if !inner.is_active() && !large {
            return;
        }
        match inner.have_thread() {
            // Where the kernel pages; a pager has its thread before it begins.
            Err(error) if inner.is_active() => crate::pager::stop(&format!("no thread could be started for the pager: {error}")),
            _ => {}
        }
    }
}

impl Inner {
    /// Starts the pager thread if there is none. It waits for the lock that the caller holds.
    pub(super) fn have_thread(&mut self) -> Result<(), Errno> {
        let Some(memory) = self.memory.filter(|_| !self.has_thread) else { return Ok(()) };
        let common = memory.common;
        nearfar_sys::thread::spawn("nearfar-pager", move || run(common))?;
        self.has_thread = true;
        // Who watches is there before there is anything to watch.
        memory.start_watchdog();
        Ok(())
    }
}

impl Memory {
    /// One round where the kernel pages; how long to rest then. `None` in all other cases.
    fn keep_round(&self) -> Option<i32> {
        let chores = {
            let mut inner = self.enter();
            let chores = inner.keep_round()?;
            self.common.crowded.store(chores.crowded, Ordering::Relaxed);
            chores
        };
        if let Err(errno) = chores.carry_out() {
            crate::pager::stop(&format!("writing far memory in {} failed: {errno}", self.enter().job.settings().far_dir()));
        }
        Some(chores.patience_ms)
    }

    /// Where the kernel pages, nothing stops a program from touching memory faster than the device takes what must go; here it
    /// at least asks for more. So it waits a little while more is in memory than it may have.
    pub(super) fn hold_back(&self) {
        for _ in 0..HOLD_BACK_MS {
            if !self.common.crowded.load(Ordering::Relaxed) {
                return;
            }
            wait_readable(&[], 1, &mut []);
        }
    }
}

fn run(common: &'static Common) {
    // Threads that compute on all CPUs would else keep the pager, and those who wait for it, waiting for milliseconds.
    nearfar_sys::thread::be_prompt();
    let memory = Memory { common };
    let (event, own_tid) = (common.event.as_raw_fd(), process::tid());
    let mut fds = vec![event];
    let mut ready = [false; 8];
    let mut looking = Looking::default();
    let (faults, mut turns) = (common.job.settings().faults, 0);
    loop {
        credentials::follow();
        turns += 1;
        while faults.deaf.hits(turns) {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        if let Some(patience) = memory.keep_round() {
            wait_readable(&fds[..1], patience, &mut ready);
            continue;
        }
        let mut patience = PASSIVE_LOOK_MS;
        let (mut awaited, mut postponed) = (false, false);
        {
            let mut inner = memory.enter();
            fds.truncate(1);
            if let Some(pager) = &mut inner.pager {
                common.slot().health().turn(now_ns(), own_tid);
                pager.round();
                fds.extend(pager.wait_fds());
                patience = pager.patience_ms();
                awaited = pager.is_awaited();
                postponed = pager.has_postponed();
            } else if inner.job.is_starving()
                && inner.slot.charged_pages() > inner.job.fair_share_pages()
                && matches!(inner.activate(0), Paging::On)
            {
                memory.guard_fds(&inner);
                continue;
            }
        }
        let start = now_ns();
        if !looking.sees(&fds, &mut ready, awaited || postponed, start) {
            wait_readable(&fds, if postponed { 0 } else { patience }, &mut ready);
        }
        looking.note(now_ns() - start);
        if ready[0] {
            common.event.clear();
        }
        if ready[3..].contains(&true) {
            let mut inner = memory.enter();
            if let Some(pager) = &mut inner.pager {
                pager.reap_forks();
            }
            memory.guard_fds(&inner);
        }
    }
}

/// Looks for events without sleeping, as long as nobody else needs the CPU.
#[derive(Default)]
struct Looking {
    off_until_ns: u64,
    /// How long events were waited for lately.
    mean_ns: u64,
}

impl Looking {
    fn note(&mut self, waited_ns: u64) {
        self.mean_ns = (self.mean_ns * 7 + waited_ns.min(10 * SOON_NS)) / 8;
    }

    fn sees(&mut self, fds: &[RawFd], ready: &mut [bool], awaited: bool, start: u64) -> bool {
        let limit = match awaited {
            true => LOOK_NS,
            false if self.mean_ns < SOON_NS => SOON_NS,
            false => 0,
        };
        let mut now = start;
        if now < self.off_until_ns {
            return false;
        }
        while now - start < limit {
            wait_readable(fds, 0, ready);
            if ready.contains(&true) {
                return true;
            }
            let before = now_ns();
            give_way();
            now = now_ns();
            if now - before > TAKEN_NS {
                self.off_until_ns = now + HOLD_OFF_NS;
                return false;
            }
        }
        false
    }
}
