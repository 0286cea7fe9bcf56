//! The ledger of memory that may be written, and its limits: what an allocation needs before it may succeed.
//!
//! While passive, it must fit in near, or paging begins. While paging, the pager says whether it could be held. When it could
//! not, the allocation fails with ENOMEM, so that the program hears of it before it touches what nobody can back.

use super::{Memory, inner::Inner};
use crate::pager::{NoSpace, Start};
use nearfar_core::addr::PAGE;
use nearfar_core::stats::Counter;
use nearfar_core::units::Bytes;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::rlimit::{Limit, limit};
use nearfar_sys::{own_limits, process};

/// After far had no space for the beginning, nobody tries again for so long.
const RETRY_NS: u64 = 100_000_000;

/// What an allocation asks for.
#[derive(Clone, Copy)]
pub(super) struct Claim {
    bytes: usize,
    // What the program gives back right after, since its content moves.
    returned: usize,
    reserved: bool,
    // It is mapped already, and becomes writable.
    mapped: bool,
}

impl Claim {
    /// `bytes` more.
    pub(super) fn of(bytes: usize) -> Self {
        Self { bytes, returned: 0, reserved: false, mapped: false }
    }

    /// Of what is mapped already.
    pub(super) fn of_mapped(self) -> Self {
        Self { mapped: true, ..self }
    }

    /// Bytes asked for.
    pub(super) fn len(self) -> usize {
        self.bytes
    }

    /// With `bytes` of it there already.
    pub(super) fn less(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), ..self }
    }

    /// The content of `bytes` moves here, which are free then.
    pub(super) fn in_place_of(self, bytes: usize) -> Self {
        Self { returned: bytes, ..self }
    }

    /// With the flags of mmap: MAP_NORESERVE says that most of it will not be used.
    pub(super) fn with_flags(self, flags: i32) -> Self {
        Self { reserved: flags & libc::MAP_NORESERVE != 0, ..self }
    }
}

/// What came of the wish to page.
pub(super) enum Paging {
    /// It is on.
    On,
    /// It cannot be: memory stays ordinary.
    Never,
    /// Far has no space to begin with.
    NoSpace(NoSpace),
}

impl Memory {
    /// Whether the program's own limit of address space lets it map `bytes` more.
    pub fn may_map(&self, bytes: usize) -> Result<(), Errno> {
        if own_limits::has(own_limits::Kind::Space) { self.enter().within_limits(bytes, 0) } else { Ok(()) }
    }

    /// Makes memory writable in the ledger; may begin to page. Fails when it cannot be had; nothing has changed then.
    pub(super) fn commit(&self, inner: &mut Inner, claim: Claim) -> Result<(), Errno> {
        // As the kernel would: nothing is said, since the program has asked for it. What is kept for later counts too.
        let data = claim.bytes.saturating_sub(claim.returned);
        let space = if claim.mapped { 0 } else { data };
        inner.within_limits(space, data)?;
        let mut result = self.try_commit(inner, claim);
        if result.is_err() && inner.drain_cache() {
            result = self.try_commit(inner, claim);
        }
        if let Err(why) = result {
            inner.refuse(claim, why);
            return Err(Errno::ENOMEM);
        }
        inner.add_committed(claim.bytes.div_ceil(PAGE) * PAGE);
        self.start_thread_if_needed(inner);
        inner.publish_passive();
        Ok(())
    }

    fn try_commit(&self, inner: &mut Inner, claim: Claim) -> Result<(), NoSpace> {
        let pages = claim.bytes.div_ceil(PAGE);
        if !inner.is_active() {
            // Visits are recorded from the first page on: nobody would see them while memory is ordinary.
            let traced = inner.job.settings().trace_window > 0 && !inner.refused;
            if !traced && inner.charge_passive(pages) {
                return Ok(());
            }
            match inner.activate(pages * PAGE) {
                Paging::On => self.guard_fds(inner),
                Paging::Never if traced && inner.charge_passive(pages) => return Ok(()),
                Paging::NoSpace(why) => {
                    // What a process had that has just ended may not have been given back yet.
                    inner.job.bury_dead();
                    return if inner.charge_passive(pages) { Ok(()) } else { Err(why) };
                }
                Paging::Never if inner.is_strict() => return Err(NoSpace { errno: Errno(libc::ENOSYS), free: 0 }),
                Paging::Never => {
                    inner.force_charge_passive(pages);
                    return Ok(());
                }
            }
        }
        inner.promise(claim)
    }

    /// Begins to page, if that is possible.
    pub fn page_now(&self) {
        let mut inner = self.enter();
        if matches!(inner.activate(0), Paging::On) {
            self.guard_fds(&inner);
            self.start_thread_if_needed(&mut inner);
        }
    }

    /// Before fork(2): fails when parent and child could not both be held, with `--commit=strict`.
    pub fn may_fork(&self) -> Result<(), Errno> {
        let mut inner = self.enter();
        if let Some(pager) = &mut inner.pager
            && !pager.may_fork()
        {
            return Err(Errno(libc::EAGAIN));
        }
        if !inner.is_strict() {
            return Ok(());
        }
        let result = inner.promise_fork();
        self.guard_fds(&inner);
        self.start_thread_if_needed(&mut inner);
        result.map_err(|why| {
            let claim = Claim::of(inner.committed());
            inner.refuse(claim, why);
            Errno::ENOMEM
        })
    }
}

impl Inner {
    fn within_limits(&mut self, space: usize, data: usize) -> Result<(), Errno> {
        let kept = own_limits::any() && !self.arena.is_reserved();
        if !kept || own_limits::allow(space, data) || self.drain_cache() && own_limits::allow(space, data) {
            return Ok(());
        }
        Err(Errno::ENOMEM)
    }

    pub(super) fn is_strict(&self) -> bool {
        self.job.settings().strict
    }

    fn promise(&mut self, claim: Claim) -> Result<(), NoSpace> {
        let len = claim.bytes.div_ceil(PAGE) * PAGE;
        // Where content moves without being copied it needs no space twice; strictly, one cannot know that it will.
        let returned = if self.is_strict() { 0 } else { claim.returned };
        let committed = (self.committed() + len).saturating_sub(returned) as u64;
        match &mut self.pager {
            Some(pager) => pager.promise(committed, len.saturating_sub(returned) as u64, claim.reserved),
            None => Ok(()),
        }
    }

    fn promise_fork(&mut self) -> Result<(), NoSpace> {
        if !self.is_active() {
            let charged = self.slot.charged_pages();
            if self.job.charged_pages() + charged <= self.job.near_pages() {
                return Ok(());
            }
            match self.activate(0) {
                Paging::On => {}
                Paging::NoSpace(why) => return Err(why),
                Paging::Never => return Err(NoSpace { errno: Errno(libc::ENOSYS), free: 0 }),
            }
        }
        let committed = self.committed() as u64;
        match &mut self.pager {
            Some(pager) => pager.promise_fork(committed),
            None => Ok(()),
        }
    }

    /// In the fork handler, where a fork cannot be refused any more: the same for who came past `may_fork`.
    pub(super) fn promise_fork_late(&mut self) {
        if self.is_strict()
            && self.pager.is_some()
            && let Err(why) = self.promise_fork()
        {
            self.refuse(Claim::of(self.committed()), why);
        }
    }

    /// Begins to page, for `more` bytes on top of what there is. Says why not, once, when that is impossible: the process goes
    /// on with ordinary memory.
    pub(super) fn activate(&mut self, more: usize) -> Paging {
        if self.is_active() {
            return Paging::On;
        }
        // In a process that only shares this memory it would begin for that one alone.
        if self.refused || process::pid() != self.owner {
            return Paging::Never;
        }
        if self.mapped.is_some() {
            // Where the kernel pages, space is found when it writes: nothing can be promised beyond near.
            self.drain_cache();
            return if !self.is_strict() && self.keep() { Paging::On } else { Paging::Never };
        }
        let need = if self.is_strict() { (self.committed() + more) as u64 } else { 0 };
        if let Some((until_ns, least, why)) = self.no_space
            && need >= least
            && now_ns() < until_ns
        {
            return Paging::NoSpace(why);
        }
        match self.start_pager(need) {
            Ok(()) => Paging::On,
            Err(Start::Full(why)) => {
                self.no_space = Some((now_ns() + RETRY_NS, need, why));
                Paging::NoSpace(why)
            }
            Err(why) => {
                self.refused = true;
                self.notice(&format!("this process needs more than near memory, and {why}; it goes on with ordinary memory"));
                Paging::Never
            }
        }
    }

    /// Gives the blocks back that were kept for the next allocation of their size. False when there were none.
    pub(super) fn drain_cache(&mut self) -> bool {
        let ranges = self.arena.drain_cache();
        for range in &ranges {
            self.close_block(*range);
        }
        !ranges.is_empty()
    }

    /// An allocation fails: counts it, and says so once.
    fn refuse(&mut self, claim: Claim, why: NoSpace) {
        self.slot.add(Counter::AllocationsRefused, 1);
        if std::mem::replace(&mut self.has_refused, true) {
            return;
        }
        let settings = self.job.settings();
        let far = if settings.emulated { "emulated far memory" } else { settings.far_dir() };
        let (asked, held) = (Bytes(claim.bytes as u64), Bytes(self.committed() as u64));
        let strictly = if settings.strict { " (--commit=strict)" } else { "" };
        let what = if why.errno == Errno(libc::ENOSYS) {
            "paging is not possible here".to_owned()
        } else {
            // The smaller one decides; a directory full of space is no help then.
            let wanted = claim.bytes.saturating_add(self.committed()) as u64;
            let file = limit(Limit::FileSize).filter(|&most| !settings.emulated && most < wanted);
            let bound = match (settings.far_max, file) {
                (0, None) => String::new(),
                (most, Some(file)) if most == 0 || file < most => {
                    format!(" of files of {}: raise \"ulimit -f\"", Bytes(file))
                }
                (most, _) => format!(" of {} that --far-max allows", Bytes(most)),
            };
            format!("far {far} has no space for it ({}, {} free{bound})", why.errno, Bytes(why.free))
        };
        self.notice(&format!(
            "out of memory{strictly}: {asked} were asked for on top of {held}, and {what}; the allocation fails with ENOMEM. Free \
             some space, name another --far, or give more --near. Later ones are not reported"
        ));
    }
}
