//! Far space of all processes of a job, which `--far-max` bounds: what each has is a number in its slot, and no sum is kept anywhere.

use super::{Job, Slot};
use std::sync::atomic::Ordering;

impl Job {
    /// Counts `bytes` of far space for `slot`, if all processes together then have no more than they may. It adds before it looks,
    /// so that there is no sum that a process could leave half changed: two that ask at once may both be refused, never both
    /// served.
    pub fn take_far(&self, slot: &Slot, bytes: u64) -> bool {
        let most = self.settings().far_max;
        // What can never be had must not be added even for a moment: others would be refused meanwhile.
        let hopeless = || most > 0 && self.far_bytes().checked_add(bytes).is_none_or(|sum| sum > most);
        for again in [true, true, false] {
            if hopeless() {
                self.bury_dead();
                if hopeless() {
                    return false;
                }
            }
            slot.far.fetch_add(bytes, Ordering::SeqCst);
            if most == 0 || self.far_bytes() <= most {
                return true;
            }
            slot.far.fetch_sub(bytes, Ordering::SeqCst);
            if again {
                self.bury_dead();
            }
        }
        false
    }

    /// Counts `bytes` of far space less for `slot`.
    pub fn give_far(&self, slot: &Slot, bytes: u64) {
        slot.far.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Far space that all processes have, in bytes.
    pub fn far_bytes(&self) -> u64 {
        self.slots().iter().map(|slot| slot.far.load(Ordering::SeqCst)).sum()
    }

    /// Far space that may still be had, in bytes.
    pub fn far_left(&self) -> u64 {
        match self.settings().far_max {
            0 => u64::MAX,
            most => most.saturating_sub(self.far_bytes()),
        }
    }

    /// In the child of a fork: it has the files of `parent` open, and `bytes` that were secured for it.
    pub fn inherit_far(&self, slot: &Slot, parent: &Slot, bytes: u64) {
        let index = self.slots().iter().position(|other| std::ptr::eq(other, parent)).map_or(0, |index| index as u64 + 1);
        slot.far_parent.store(index, Ordering::SeqCst);
        slot.far.fetch_add(bytes, Ordering::SeqCst);
    }

    /// The process of slot `index` is gone. What it had goes to a child that still has the file open, otherwise to nobody. Whoever is
    /// killed over this leaves it counted twice, for a while.
    pub(super) fn bequeath_far(&self, index: usize) {
        let (dead, mark) = (&self.slots()[index], index as u64 + 1);
        let grandparent = dead.far_parent.swap(0, Ordering::SeqCst);
        let mut children = self.slots().iter().enumerate().filter(|(_, slot)| slot.far_parent.load(Ordering::SeqCst) == mark);
        if let Some((heir, slot)) = children.next() {
            slot.far.fetch_add(dead.far.load(Ordering::SeqCst), Ordering::SeqCst);
            slot.far_parent.store(grandparent, Ordering::SeqCst);
            children.for_each(|(_, other)| other.far_parent.store(heir as u64 + 1, Ordering::SeqCst));
        }
        dead.far.store(0, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::Settings;

    fn joined(job: &Job, pid: u32) -> &'static Slot {
        let index = job.header().ledger.join(job.slots(), pid, 1).expect("a slot");
        &job.slots()[index]
    }

    #[test]
    fn far_is_bounded_and_outlives_who_took_it() {
        // No process has such numbers: a refusal, which looks for dead ones, would bury them.
        let [parent, child, grandchild] = [1, 2, 3].map(|n| (1 << 22) + n);
        let mut settings = Settings::new(1 << 20, "/var/tmp").expect("short path");
        settings.far_max = 100;
        let (job, _fd) = Job::create(settings).expect("memfd");
        let bury = |whom: u32| job.bury(|pid, _| pid == whom);
        let first = joined(&job, parent);
        assert!(job.take_far(first, 60));
        job.give_far(first, 10);
        assert_eq!(job.far_left(), 50);
        let (second, third) = (joined(&job, child), joined(&job, grandchild));
        job.inherit_far(second, first, 20);
        job.inherit_far(third, first, 1);
        bury(parent);
        assert_eq!(job.far_bytes(), 71, "children have its file open");
        bury(child);
        assert_eq!(job.far_bytes(), 71, "and one of them still has");
        bury(grandchild);
        assert_eq!((job.far_bytes(), job.far_left()), (0, 100));
        let slot = job.join().expect("a slot");
        assert!(!job.take_far(slot, 101) && job.far_left() == 100, "nothing stays of what was refused");
        assert!(job.take_far(slot, 100) && job.far_left() == 0);
    }
}
