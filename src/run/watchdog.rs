//! Programs that are stuck: a pager that takes no turn while threads wait for it (`tiers::health`). Says so, and ends them if asked to.

use crate::cli::run::OnStall;
use crate::ui::message;
use nearfar_sys::event::now_ns;
use nearfar_sys::process;
use nearfar_tiers::health::Stalled;
use nearfar_tiers::job::Job;
use std::collections::HashMap;
use std::time::Duration;

/// Looks at the processes of a job.
pub struct Watchdog {
    what: OnStall,
    limit_ns: u64,
    /// When each is told of next, by how long it has been stuck, ns.
    next_ns: HashMap<u32, u64>,
    stopped: bool,
}

impl Watchdog {
    /// A pager without a turn for `limit_ns` is stuck.
    pub fn new(what: OnStall, limit_ns: u64) -> Self {
        Self { what, limit_ns, next_ns: HashMap::new(), stopped: false }
    }

    /// Looks once. A program that was asked to end so long ago (`asked`), while it was stuck, cannot: it is ended.
    pub fn look(&mut self, job: &Job, asked: Option<Duration>) {
        let stalled = job.stalled(now_ns(), self.limit_ns);
        self.next_ns.retain(|pid, _| {
            let still = stalled.iter().any(|one| one.pid == *pid);
            if !still {
                message::line(format_args!("process {pid} is not stuck any more"));
            }
            still
        });
        let to_end = asked.is_some_and(|asked| stalled.iter().any(|one| asked < Duration::from_nanos(one.for_ns)));
        let ends = !stalled.is_empty() && (to_end || self.what == OnStall::Stop) && !self.stopped;
        for one in &stalled {
            let next = self.next_ns.entry(one.pid).or_insert(0);
            if one.for_ns >= *next || ends {
                message::line(format_args!(
                    "{}{}",
                    text(one),
                    if ends { "; it is ended" } else { "; --on-stall=stop would end it" }
                ));
                *next = 2 * one.for_ns;
            }
        }
        if ends {
            self.stopped = true;
            job.members().for_each(|(pid, _)| process::kill(pid));
        }
    }

    /// True when it has ended the program.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }
}

fn text(one: &Stalled) -> String {
    let Stalled { pid, for_ns, pager, thread, addr } = *one;
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{pager}/{name}")).unwrap_or_default();
    let state = read("stat").rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()).unwrap_or('?');
    let place = read("wchan");
    let place = if ["", "0"].contains(&place.trim()) { "user space" } else { place.trim() };
    format!(
        "process {pid} is stuck: thread {thread} waits for the page at {addr:#x}, and the pager (thread {pager}, state {state}, in {place}) \
         has taken no turn for {:.1} s",
        for_ns as f64 / 1e9
    )
}
