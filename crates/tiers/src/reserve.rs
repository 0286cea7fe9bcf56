//! Space of the own store that is secured: in steps ahead of need, on a thread of its own, since a file system may take its
//! time over it and faults must not wait.
//!
//! That thread is started with the pager's, by a thread of the program: starting one takes locks of the C library, which a
//! thread of the program may hold while it waits for the pager. Without it, steps are taken by whoever asks.
//!
//! Invariant: bytes `0..secured()` of the store have space. At most one step is under way.

use crate::backend::Backend;
use crate::far_account::FarAccount;
use nearfar_core::addr::{BLOCK, round_down};
use nearfar_sys::credentials;
use nearfar_sys::errno::Errno;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// So much is kept ahead of need: from the first to the second, a quarter of what is secured in between.
const AHEAD: (u64, u64) = (64 << 20, 1 << 30);
/// A step takes at most this part of what is free, since others (processes of the job, too) need space there.
const SHARE: u64 = 8;
/// After a refusal nobody asks again for so long.
const RETRY_NS: u64 = 200_000_000;
/// What is secured at once when a step ahead came too late.
const LATE: u64 = 16 << 20;

/// The result of a step that another thread takes.
#[derive(Default)]
struct Ticket {
    result: Mutex<Option<Result<(), Errno>>>,
    done: Condvar,
}

impl Ticket {
    fn set(&self, result: Result<(), Errno>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.done.notify_all();
    }

    fn get(&self, wait: bool) -> Option<Result<(), Errno>> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        while wait && result.is_none() {
            result = self.done.wait(result).unwrap_or_else(PoisonError::into_inner);
        }
        *result
    }
}

/// Where steps wait for the thread that takes them.
#[derive(Default)]
struct Desk {
    step: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    more: Condvar,
}

impl Desk {
    fn give(&self, step: Box<dyn FnOnce() + Send>) {
        *self.step.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
        self.more.notify_one();
    }

    fn work(&self) -> ! {
        loop {
            let mut waiting = self.step.lock().unwrap_or_else(PoisonError::into_inner);
            let step = loop {
                match waiting.take() {
                    Some(step) => break step,
                    None => waiting = credentials::wait_on(&self.more, waiting),
                }
            };
            drop(waiting);
            step();
        }
    }
}

/// What is secured.
#[derive(Default)]
pub struct Reserve {
    desk: Option<Arc<Desk>>,
    secured: u64,
    pending: Option<(u64, Arc<Ticket>)>,
    // The last step that was refused, over four.
    smaller: Option<u64>,
    short: Option<Errno>,
    retry_ns: u64,
    account: FarAccount,
}

impl Reserve {
    /// With `secured` bytes there already, which `account` has.
    pub fn new(secured: u64, account: FarAccount) -> Self {
        Self { secured: round_down(secured as usize, BLOCK) as u64, account, ..Self::default() }
    }

    /// Where it is counted.
    pub fn account(&self) -> FarAccount {
        self.account
    }

    /// Bytes beyond those secured that could be had now, as far as one can know.
    pub fn free_bytes(&self, backend: &dyn Backend) -> u64 {
        backend.free_bytes().min(self.account.left())
    }

    /// Bytes of the store that have space.
    pub fn secured(&self) -> u64 {
        self.secured
    }

    /// Why no more can be had; `None` while it can.
    pub fn short(&self) -> Option<Errno> {
        self.short
    }

    fn ahead(&self) -> u64 {
        (self.secured / 4).clamp(AHEAD.0, AHEAD.1)
    }

    /// Starts the next step when less than a step is `spare` (secured and unused). Takes in the one that has ended.
    pub fn keep_ahead(&mut self, backend: &mut dyn Backend, spare: u64, now: u64) {
        self.collect(false, now);
        let ahead = self.ahead();
        if spare >= ahead {
            (self.short, self.smaller) = (None, None);
            return;
        }
        if self.pending.is_some() || now < self.retry_ns {
            return;
        }
        let step = self.smaller.unwrap_or(ahead).min(ahead).min(self.free_bytes(backend) / SHARE);
        let (from, to) = (self.secured, self.secured + round_down(step as usize, BLOCK).max(BLOCK) as u64);
        let ticket = Arc::new(Ticket::default());
        if let Err(errno) = self.account.take(to - from) {
            self.refused(to - from, errno, now);
            return;
        }
        self.pending = Some((to, Arc::clone(&ticket)));
        match (&self.desk, backend.securer()) {
            (Some(desk), Some(secure)) => desk.give(Box::new(move || ticket.set(secure(from, to)))),
            _ => {
                ticket.set(backend.secure(from, to));
                self.collect(false, now);
            }
        }
    }

    /// What a thread is to do from now on that takes the steps.
    pub fn helper(&mut self) -> impl FnOnce() + Send + 'static {
        let desk = Arc::new(Desk::default());
        self.desk = Some(Arc::clone(&desk));
        move || desk.work()
    }

    /// There is no such thread after all.
    pub fn without_helper(&mut self) {
        self.desk = None;
    }

    /// Takes in the step under way, which has ended or is waited for.
    fn collect(&mut self, wait: bool, now: u64) {
        let Some((to, ticket)) = &self.pending else { return };
        let Some(result) = ticket.get(wait) else { return };
        let (step, to) = (to - self.secured, *to);
        self.pending = None;
        match result {
            Ok(()) => {
                self.secured = to;
                self.smaller = self.smaller.map(|step| 2 * step);
            }
            Err(errno) => {
                self.account.give(step);
                self.refused(step, errno, now);
            }
        }
    }

    fn refused(&mut self, step: u64, errno: Errno, now: u64) {
        self.smaller = Some((step / 4).max(BLOCK as u64));
        if step <= BLOCK as u64 {
            self.short = Some(errno);
            self.retry_ns = now + RETRY_NS;
        }
    }

    /// Waits until nothing is under way.
    pub fn rest(&mut self, now: u64) {
        self.collect(true, now);
    }

    /// Secures at least the first `least` bytes, and some more if that can be had, waiting for it.
    pub fn secure_at_once(&mut self, backend: &mut dyn Backend, least: u64, now: u64) -> Result<(), Errno> {
        self.collect(true, now);
        let least = least.next_multiple_of(BLOCK as u64);
        if self.secured >= least {
            return Ok(());
        }
        match self.short {
            Some(errno) if now < self.retry_ns => return Err(errno),
            _ => {}
        }
        for to in [least.max(self.secured + LATE), least] {
            match self.secure(backend, to) {
                Ok(()) => {
                    self.secured = to;
                    return Ok(());
                }
                Err(errno) if to == least => {
                    self.refused(BLOCK as u64, errno, now);
                    return Err(errno);
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
    fn secure(&self, backend: &mut dyn Backend, to: u64) -> Result<(), Errno> {
        let bytes = to - self.secured;
        self.account.take(bytes)?;
        backend.secure(self.secured, to).inspect_err(|_| self.account.give(bytes))
    }
}
