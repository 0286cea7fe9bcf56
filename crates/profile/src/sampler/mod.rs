//! Looks at pages: takes a page out of the program's view at a random moment and tells when it is touched next, by what and how.
//!
//! One thread does it (`watcher`), with userfaultfd. Threads of the program wait for it, whatever locks they hold, so it allocates
//! nothing, takes no lock and touches no memory of the program once it runs. It gets pages through one ring and gives results through
//! another; both ends may be any thread, one at a time.

use crate::ring::Ring;
use nearfar_core::profile::record::Watch;
use nearfar_sys::errno::Errno;
use std::time::Duration;

/// How a sampler works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Share of the program's time that looking may cost, 0..=1.
    pub budget: f64,
    /// Of the random numbers.
    pub seed: u64,
    /// A page that nobody touches is given up after so long.
    pub longest: Duration,
}

/// A page to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Comes back in [`Watch::object`].
    pub object: u64,
    /// Address of the page.
    pub page: usize,
    /// The 2 MiB around the page belong to the object too: where they are one huge page, it is looked at as a whole. A page of a
    /// huge page that must not be taken as a whole is looked at only now and then, since the huge page is split.
    pub huge: bool,
}

/// What looking has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time of the sampler's thread.
    pub cpu_ns: u64,
    /// Time that threads of the program waited for it.
    pub stall_ns: u64,
    /// Looks that have ended.
    pub watches: u64,
    /// Those that ended with a touch.
    pub touched: u64,
}

/// The sampler of this process.
pub struct Sampler {
    looks: Ring<Look, 1024>,
    watches: Ring<Watch, 4096>,
}

impl Sampler {
    /// Starts the thread. Fails where userfaultfd is denied or serves only accesses in user mode (system calls on a page that is
    /// looked at would fail), and where the kernel cannot move pages (before Linux 6.8).
    pub fn start(_options: Options) -> Result<&'static Self, Errno> {
        Err(Errno(libc::ENOSYS))
    }

    /// How many looks it would take now.
    pub fn wanted(&self) -> usize {
        0
    }

    /// Gives it a page to look at; false when it has enough. It is looked at a little later (up to some 50 ms), whatever is there
    /// then: the caller drops a watch whose `at` is after the object's end.
    pub fn offer(&self, look: Look) -> bool {
        self.looks.push(look)
    }

    /// The next result.
    pub fn take(&self) -> Option<Watch> {
        self.watches.pop()
    }

    /// What it has cost so far.
    pub fn cost(&self) -> Spent {
        Spent::default()
    }

    /// Puts all pages back into view, waits until that is so, and looks at none until [`resume`](Self::resume), as often called.
    pub fn pause(&self) {}

    /// Ends `pause`.
    pub fn resume(&self) {}

    /// As `pause`, for the pages of a range: before mremap(2), which refuses ranges with a page that is looked at. False: there
    /// are too many such ranges now, and the caller pauses instead.
    pub fn hold(&self, _start: usize, _len: usize) -> bool {
        false
    }

    /// Ends `hold` for the same range.
    pub fn release(&self, _start: usize, _len: usize) {}

    /// Before fork.
    pub fn fork_prepare(&self) {
        self.pause();
    }

    /// After fork, in the parent.
    pub fn fork_parent(&self) {
        self.resume();
    }

    /// After fork, in the child: starts anew, for the child's own memory. An error: nothing is looked at in the child.
    pub fn fork_child(&self) -> Result<(), Errno> {
        Err(Errno(libc::ENOSYS))
    }
}
