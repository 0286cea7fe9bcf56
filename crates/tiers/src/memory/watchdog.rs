//! The watchdog: says what a thread waits for that has waited too long, so that a device that stalls is not a silent hang.
//!
//! A thread of its own, since the pager thread itself may be waiting for the device. It only looks, and says; the program
//! goes on waiting, as it would for its own file on such a device, and goes on when the device answers.

use super::{Common, Memory, guardian};
use crate::guard;
use nearfar_sys::credentials;
use nearfar_sys::event::now_ns;
use nearfar_sys::line::Line;
use nearfar_sys::process;
use std::time::Duration;

/// After so many times the wait that is worth a line, without any, the first wait is worth one again.
const CALM: u64 = 10;
/// The lock is tried so often when it is busy with short pieces of work.
const TRIES: u32 = 50;

impl Memory {
    /// Starts the watchdog. Without it all works the same.
    pub(super) fn start_watchdog(&self) {
        let common = self.common;
        let limit_ns = common.job.settings().faults.watch_ns;
        let _ = nearfar_sys::thread::spawn("nearfar-watch", move || watch(common, limit_ns.max(1)));
    }
}

/// What is wrong, if anything.
enum Seen {
    Nothing,
    /// The lock is busy with short pieces of work.
    Busy,
    /// Somebody waits.
    Waits {
        since_ns: u64,
        text: String,
    },
    /// The lock is held in one piece of work, so nobody can tell more.
    Blocked,
}

fn watch(common: &'static Common, limit_ns: u64) {
    let pause = Duration::from_nanos((limit_ns / 8).clamp(20_000_000, 1_000_000_000));
    // When to speak next, in ns of waiting.
    let mut next_ns = limit_ns;
    let mut blocked_since_ns = None;
    // Who waited at the last look. A process that was stopped, or a machine that was, may only need a moment.
    let mut before_ns = None;
    // A device that is always slow is not worth two lines for each page: only longer waits are, until long after all is well.
    let mut calm_since_ns = now_ns();
    let mut told = false;
    loop {
        let turns = guard::turns();
        std::thread::sleep(pause);
        credentials::follow();
        guardian::look(common, limit_ns);
        let (for_ns, text) = match look(common, limit_ns, next_ns, turns) {
            Seen::Nothing => {
                let now = now_ns();
                if told {
                    say("no thread waits that long any more; the program goes on");
                    (told, calm_since_ns) = (false, now);
                }
                if now - calm_since_ns > CALM * next_ns {
                    next_ns = limit_ns;
                }
                (blocked_since_ns, before_ns) = (None, None);
                continue;
            }
            Seen::Busy => continue,
            Seen::Waits { since_ns, text } => {
                (blocked_since_ns, calm_since_ns) = (None, now_ns());
                if before_ns.replace(since_ns) != Some(since_ns) {
                    continue;
                }
                (now_ns() - since_ns, text)
            }
            Seen::Blocked => {
                if let Some(thread) = common.inner.gone_holder() {
                    let why = Line::of(format_args!(
                        "process {thread}, which shared its memory (clone with CLONE_VM), was ended while it changed nearfar's tables"
                    ));
                    crate::pager::stop(why.as_str());
                }
                let now = now_ns();
                let since = *blocked_since_ns.get_or_insert(now - pause.as_nanos() as u64);
                (now - since, blocked_text(common.slot().health().pager()))
            }
        };
        if for_ns >= next_ns && !text.is_empty() {
            let seconds = for_ns as f64 / 1e9;
            say(&format!(
                "{text} - for {seconds:.1} s now. The program goes on when that ends; end it with a signal if you must (SIGKILL always works)"
            ));
            (next_ns, told) = (2 * for_ns, true);
        }
    }
}

fn look(common: &'static Common, limit_ns: u64, next_ns: u64, turns: u64) -> Seen {
    for _ in 0..TRIES {
        if let Some(mut inner) = guard::try_enter(&common.inner) {
            let now = now_ns();
            let Some(pager) = &mut inner.pager else { return Seen::Nothing };
            let Some(stuck) = pager.stuck(now.saturating_sub(limit_ns)) else { return Seen::Nothing };
            // Where the pager takes no turn, this is one that it has heard of before.
            common.slot().health().waits(stuck.thread, stuck.addr);
            let text = if now - stuck.since_ns >= next_ns {
                format!("a thread waits for the page at {:#x}: {}", stuck.addr, pager.explain(stuck.addr))
            } else {
                String::new()
            };
            return Seen::Waits { since_ns: stuck.since_ns, text };
        }
        if guard::turns() == turns {
            return Seen::Blocked;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Seen::Busy
}

/// Where the kernel has the pager thread.
fn blocked_text(pager_tid: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/task/{pager_tid}/{name}")).unwrap_or_default();
    let state = read("stat").rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()).unwrap_or('?');
    // "0" when it waits for nothing in the kernel, or when that is not told.
    let place = read("wchan");
    let place = if matches!(place.trim(), "" | "0") { "user space, or unknown" } else { place.trim() };
    format!(
        "a thread holds nearfar's lock, and may wait for far itself, as a fork does for what is under way (the pager's thread: state \
         {state}, in {place})"
    )
}

fn say(what: &str) {
    process::write_stderr(format!("nearfar: process {}: {what}\n", process::pid()).as_bytes());
}
