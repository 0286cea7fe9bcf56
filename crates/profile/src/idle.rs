//! Whether our threads take CPU time from the program: not where a CPU that they may use would be idle otherwise.

use nearfar_core::node::CpuList;
use nearfar_sys::aside::Kept;
use nearfar_sys::errno::call;
use nearfar_sys::root::Root;
use nearfar_sys::{affinity, cgroup};
use std::fs::File;
use std::os::fd::AsRawFd;

/// /proc/stat of the largest machines, up to the line of interrupts.
const MOST_BYTES: usize = 1 << 18;
/// A CPU that is idle still shares caches and power with its neighbours.
const LEAST: f64 = 0.15;
/// Ticks of /proc/stat a second, in all builds of the kernel.
const TICKS: f64 = 100.0;

/// The CPUs that the program may use.
pub struct Idle {
    file: Kept,
    cpus: CpuList,
    text: Vec<u8>,
    /// Idle ticks, time and own CPU time at the last asking.
    last: Option<(u64, u64, u64)>,
}

impl Idle {
    /// `None` where it cannot be known: then all our time counts.
    pub fn new() -> Option<Self> {
        // With a quota, what we use is taken from the program even if CPUs are idle.
        let root = Root::this();
        let own = root.text("/proc/self/cgroup").unwrap_or_default();
        let has_quota = |dir: &String| cgroup::cpu_quota(dir, |path| root.text(path)).is_some();
        if cgroup::directories(&own, "cpu").iter().any(has_quota) {
            return None;
        }
        let cpus = affinity::of(0).ok()?;
        let file = Kept::new(File::open("/proc/stat").ok()?.into());
        Some(Self { file, cpus, text: vec![0; 1 << 14], last: None })
    }

    /// The share of our CPU time since the last call that the program would have had, 0..=1; `own`: our CPU time so far, ns.
    pub fn contended(&mut self, now: u64, own: u64) -> f64 {
        let Some(idle) = self.read() else { return 1.0 };
        let before = self.last.replace((idle, now, own));
        before.map_or(1.0, |(idle_before, then, own_before)| {
            let wall = now.saturating_sub(then) as f64 * 1e-9;
            // What we use ourselves would be idle without us.
            let free = idle.saturating_sub(idle_before) as f64 / TICKS + own.saturating_sub(own_before) as f64 * 1e-9;
            if wall > 0.0 { (1.0 - free / wall).clamp(LEAST, 1.0) } else { 1.0 }
        })
    }

    fn read(&mut self) -> Option<u64> {
        loop {
            let args = [self.file.as_raw_fd() as usize, self.text.as_mut_ptr().addr(), self.text.len(), 0, 0, 0];
            // SAFETY: writes at most its length into a buffer of our own.
            let len = unsafe { call(libc::SYS_pread64, args) }.ok()?;
            if len < self.text.len() || self.text.len() >= MOST_BYTES {
                return idle_ticks(std::str::from_utf8(self.text.get(..len)?).ok()?, |cpu| self.cpus.as_slice().contains(&cpu));
            }
            self.text.resize(2 * self.text.len(), 0);
        }
    }
}

/// Ticks that the CPUs were idle or waited for disks, of the text of /proc/stat.
fn idle_ticks(text: &str, counts: impl Fn(u32) -> bool) -> Option<u64> {
    let mut sum = None;
    for line in text.lines().skip(1) {
        let Some(rest) = line.strip_prefix("cpu") else { break };
        let mut words = rest.split_ascii_whitespace();
        let cpu: u32 = words.next()?.parse().ok()?;
        if counts(cpu) {
            let idle: u64 = words.nth(3)?.parse().ok()?;
            let waiting: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
            sum = Some(sum.unwrap_or(0) + idle + waiting);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_ticks_of_the_own_cpus() {
        let text = "cpu  9 9 9 900 9 0 0\ncpu0 5 0 5 100 7 0 0\ncpu1 5 0 5 200 1 0 0\ncpu12 1 1 1 1000 0 0\nintr 3 4\n";
        assert_eq!(idle_ticks(text, |cpu| cpu < 2), Some(308));
        assert_eq!(idle_ticks(text, |cpu| cpu == 12), Some(1000));
        assert_eq!(idle_ticks(text, |cpu| cpu == 3), None, "none of them");
        assert_eq!(idle_ticks("cpu 1\ncpu0 x y", |_| true), None);
    }

    /// Low numbers are the program's, and in the child of a fork a number may be its own by now.
    #[test]
    fn the_file_is_out_of_the_programs_way() {
        let Some(idle) = Idle::new() else { return println!("skipped: no /proc/stat, or a quota") };
        let number = idle.file.as_raw_fd();
        assert!(number >= 200 && nearfar_sys::aside::is_kept(number), "{number}");
        let theirs = File::open("/proc/self/statm").expect("open");
        // SAFETY: the number under test.
        assert_eq!(unsafe { libc::dup2(theirs.as_raw_fd(), number) }, number);
        drop(idle);
        // SAFETY: the duplicate of above: still open.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }

    #[test]
    fn time_of_an_idle_machine_is_not_taken() {
        let Some(mut idle) = Idle::new() else { return println!("skipped: no /proc/stat, or a quota") };
        idle.last = Some((0, 0, 0));
        let (ticks, wall) = (idle.read().expect("of the own CPUs"), 1_000_000_000);
        // As if it had all been idle within a second, and as if nothing had been for ever.
        assert_eq!(idle.contended(wall, 0), if ticks >= 85 { LEAST } else { 1.0 - ticks as f64 / TICKS });
        assert!(idle.contended(wall + 1_000_000_000_000_000, 0) > 0.99);
    }
}
