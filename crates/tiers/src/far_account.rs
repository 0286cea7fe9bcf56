//! What a process has of the job's far space, which `--far-max` bounds for all processes together.
//!
//! The kernel keeps a spill file as long as any process has it open, and a child of a fork reads its parent's: what a parent had is its
//! child's when the parent is gone (`Job::bury_dead`).

use crate::job::{Job, Slot};
use nearfar_sys::errno::Errno;

/// Where a process's far space is counted. The default counts nothing.
#[derive(Clone, Copy, Default)]
pub struct FarAccount(Option<(Job, &'static Slot)>);

impl FarAccount {
    /// That of the process that has `slot`.
    pub fn new(job: Job, slot: &'static Slot) -> Self {
        Self(Some((job, slot)))
    }

    /// In the child of a fork, which has `slot` and of whose parent this is: its own. `bytes` were secured for it.
    pub fn of_child(self, slot: &'static Slot, bytes: u64) -> Self {
        let Some((job, parent)) = self.0 else { return self };
        job.inherit_far(slot, parent, bytes);
        Self::new(job, slot)
    }

    /// Counts `bytes` more. As a full disk would, it fails where the job may not have them.
    pub fn take(self, bytes: u64) -> Result<(), Errno> {
        match self.0 {
            Some((job, slot)) if !job.take_far(slot, bytes) => Err(Errno(libc::ENOSPC)),
            _ => Ok(()),
        }
    }

    /// Counts `bytes` less.
    pub fn give(self, bytes: u64) {
        if let Some((job, slot)) = self.0 {
            job.give_far(slot, bytes);
        }
    }

    /// Bytes that the job may have beyond those that are counted.
    pub fn left(self) -> u64 {
        self.0.map_or(u64::MAX, |(job, _)| job.far_left())
    }
}
