//! The guardian: sees that the pager takes no turns while threads wait for it, whatever the cause, and tells the command. Where the
//! command is gone, it ends the process: nobody else would.
//!
//! Runs in the watchdog's thread. Takes no lock, since what it is for is a lock that is never given up.

use super::Common;
use nearfar_sys::event::now_ns;
use nearfar_sys::{process, uffd};
use std::sync::atomic::Ordering;

/// Without a command, a process is ended when it was stuck for so many times the watchdog's limit.
const PATIENCE: u64 = 3;

/// Looks once; `limit_ns` without a turn is long.
pub(super) fn look(common: &Common, limit_ns: u64) {
    let health = common.slot().health();
    let still_ns = health.still_ns(now_ns());
    if still_ns < limit_ns {
        return;
    }
    // A message that is read is gone, so the thread is woken to ask again: the pager may come back.
    if let Some(fault) = uffd::waiting(common.uffd.load(Ordering::Relaxed)) {
        health.waits(fault.thread, fault.addr);
    }
    let Some(stalled) = health.stalled(process::pid(), now_ns(), PATIENCE * limit_ns) else { return };
    if !process::exists(common.command) {
        process::write_stderr(
            format!(
                "nearfar: process {}: the pager has taken no turn for {:.0} s while thread {} waits for the page at {:#x}, and nearfar run \
                 is gone: this process is ended\n",
                stalled.pid,
                stalled.for_ns as f64 / 1e9,
                stalled.thread,
                stalled.addr
            )
            .as_bytes(),
        );
        process::kill_now();
    }
}
