//! The pager thread: waits for faults and completions; while passive, only looks whether others starve.

use super::{Common, Memory, inner::Inner};
use nearfar_core::addr::PAGE;
use nearfar_sys::event::wait_readable;
use std::os::fd::AsRawFd;

/// A passive process above this part of the budget is asked to page when others starve, so it needs a thread.
const WATCHED_SHARE: u64 = 16;
const PASSIVE_LOOK_MS: i32 = 50;

impl Memory {
    /// Starts the thread where paging is on, or where this process is large enough for others to want memory of it.
    pub(super) fn start_thread_if_needed(&self, inner: &mut Inner) {
        if inner.has_thread {
            return;
        }
        let large = inner.slot.charged_pages() * PAGE as u64 > inner.job.settings().near_bytes / WATCHED_SHARE;
        let shared_job = inner.job.processes() > 1;
        if inner.pager.is_none() && !(large && shared_job) {
            return;
        }
        let common = self.common;
        match nearfar_sys::thread::spawn("nearfar-pager", move || run(common)) {
            Ok(()) => inner.has_thread = true,
            Err(error) if inner.pager.is_some() => crate::pager::stop(&format!("no thread for the pager: {error}")),
            Err(_) => {}
        }
    }
}

fn run(common: &'static Common) {
    let memory = Memory { common };
    let event = common.event.as_raw_fd();
    let mut fds = vec![event];
    let mut ready = [false; 8];
    loop {
        let mut patience = PASSIVE_LOOK_MS;
        {
            let mut inner = memory.enter();
            fds.truncate(1);
            if let Some(pager) = &mut inner.pager {
                pager.round();
                fds.extend(pager.wait_fds());
                patience = pager.patience_ms();
            } else if inner.job.is_starving() && inner.slot.charged_pages() > inner.job.fair_share_pages() && inner.activate() {
                memory.guard_fds(&inner);
                continue;
            }
        }
        wait_readable(&fds, patience, &mut ready);
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
