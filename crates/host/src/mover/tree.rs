//! The processes of the job: the program and what descends from it. One whose parent had ended before it was first looked at is missed.

use super::process::Process;
use nearfar_sys::proc_tasks;
use nearfar_sys::root::Root;
use std::collections::BTreeMap;

/// Processes that are looked at.
const MOST: usize = 256;

/// Living processes.
pub struct Tree {
    root: Root,
    /// By process id.
    pub live: BTreeMap<u32, Process>,
    numbers: u32,
}

impl Tree {
    /// The tree below `leader`.
    pub fn new(root: Root, leader: u32) -> Self {
        let mut tree = Self { root, live: BTreeMap::new(), numbers: 0 };
        tree.add(leader);
        tree
    }

    fn add(&mut self, pid: u32) {
        if self.live.contains_key(&pid) || self.live.len() >= MOST {
            return;
        }
        if let Some(stat) = proc_tasks::stat(&self.root, pid, pid).filter(|stat| !matches!(stat.state, 'Z' | 'X')) {
            self.numbers += 1;
            self.live.insert(pid, Process::new(self.numbers, pid, stat.start_ticks));
        }
    }

    /// Finds new processes, and calls `gone` with the numbers of those that have ended.
    pub fn look(&mut self, gone: &mut dyn FnMut(u32)) {
        let root = &self.root;
        let lives = |process: &Process| {
            let stat = proc_tasks::stat(root, process.pid, process.pid);
            stat.is_some_and(|stat| stat.start_ticks == process.start_ticks && !matches!(stat.state, 'Z' | 'X'))
        };
        self.live.retain(|_, process| {
            let lives = lives(process);
            if !lives {
                gone(process.number);
            }
            lives
        });
        for pid in proc_tasks::descendants(&self.root, self.live.keys().copied(), usize::MAX, || true) {
            self.add(pid);
        }
    }

    /// The process of this number in the policy.
    pub fn of(&self, number: u32) -> Option<&Process> {
        self.live.values().find(|process| process.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_come_and_go() {
        let mut child = Command::new("sh").args(["-c", "sleep 20; true"]).stdin(Stdio::null()).spawn().expect("sh");
        let mut tree = Tree::new(Root::this(), child.id());
        let begin = std::time::Instant::now();
        while tree.live.len() < 2 && begin.elapsed().as_secs() < 10 {
            tree.look(&mut |_| {});
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let pids: Vec<u32> = tree.live.keys().copied().collect();
        assert_eq!(pids.len(), 2);
        child.kill().expect("kill");
        child.wait().expect("wait");
        let mut gone = Vec::new();
        tree.look(&mut |number| gone.push(number));
        assert_eq!(gone, [1]);
        assert!(tree.of(2).is_some() && tree.of(1).is_none());
        for pid in pids.iter().filter(|pid| **pid != child.id()) {
            nearfar_sys::process::kill(*pid);
        }
    }
}
