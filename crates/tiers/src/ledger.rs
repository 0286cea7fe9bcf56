//! The ledger of the near budget: who takes part, what each has charged, who starves. Shared by all processes of a job.
//!
//! Any process may be killed between any two instructions, so every step can be seen half done by those who live on:
//! - Who is alive and who starves are bits, set and cleared by one atomic operation: there is no count that could leak.
//! - A charge changes two numbers, the total and the account. While they differ the account is marked `unsettled`. When its
//!   owner dies in between, whoever buries it sets the total to the sum of the other accounts, which is what it must be;
//!   the version in the total tells that nobody changed it meanwhile.
//! - Whoever takes or clears an account signs for it, so that the next one can finish the work of one who died over it.
//!
//! Invariant: `total` is the sum of all accounts, apart from unsettled ones. Checked by loom (`make loom`).

use crate::sync::{AtomicU32, AtomicU64, Ordering, lives, pause};
use std::mem::offset_of;

/// Accounts of one ledger.
#[cfg(not(loom))]
pub const ACCOUNTS: usize = 1024;
/// Few: loom tries every order of every access.
#[cfg(loom)]
pub const ACCOUNTS: usize = 3;
const WORDS: usize = ACCOUNTS.div_ceil(64);

/// The total in pages is the low part; the rest counts changes.
const PAGE_BITS: u32 = 40;
const PAGES: u64 = (1 << PAGE_BITS) - 1;

/// How often the accounts are added up again when others change them meanwhile.
const SETTLE_TRIES: u32 = if cfg!(loom) { 3 } else { 10_000 };

/// What an account is, in the low byte of its state; above it the process that owns it or signed for it.
const FREE: u64 = 0;
const TAKEN: u64 = 1;
const ALIVE: u64 = 2;

fn signed(kind: u64, pid: u32) -> u64 {
    kind | u64::from(pid) << 8
}

fn kind_of(state: u64) -> u64 {
    state & 0xff
}

fn pid_of(state: u64) -> u32 {
    (state >> 8) as u32
}

/// What all processes share. Zeros are an empty ledger.
#[repr(C)]
#[derive(Default)]
pub struct Ledger {
    total: AtomicU64,
    alive: [AtomicU64; WORDS],
    starving: [AtomicU64; WORDS],
}

/// What one process has. Zeros are a free account.
#[repr(C)]
#[derive(Default)]
pub struct Account {
    state: AtomicU64,
    start: AtomicU64,
    charged: AtomicU64,
    unsettled: AtomicU32,
}

impl Account {
    /// Pages that the process has charged.
    pub fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// The process that has the account, and when it started.
    pub fn owner(&self) -> Option<(u32, u64)> {
        let state = self.state.load(Ordering::Acquire);
        (kind_of(state) == ALIVE).then(|| (pid_of(state), self.start.load(Ordering::Relaxed)))
    }

    /// The owner, when it started, and its charge in pages, in a copy of an account's bytes that may hold anything.
    pub fn owner_in(bytes: &[u8]) -> Option<(u32, u64, u64)> {
        let state = word(bytes, offset_of!(Self, state))?;
        let (start, charged) = (word(bytes, offset_of!(Self, start))?, word(bytes, offset_of!(Self, charged))?);
        (kind_of(state) == ALIVE).then(|| (pid_of(state), start, charged & PAGES))
    }

    fn claim(&self, from: u64, by: u32) -> bool {
        self.state.compare_exchange(from, signed(TAKEN, by), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The accounts of a ledger, wherever they lie.
pub trait Accounts {
    /// Account `index` of `ACCOUNTS`.
    fn account(&self, index: usize) -> &Account;
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn bit(index: usize) -> (usize, u64) {
    (index / 64, 1 << (index % 64))
}

fn next_version(total: u64, pages: u64) -> u64 {
    (total & !PAGES).wrapping_add(1 << PAGE_BITS) | pages & PAGES
}

impl Ledger {
    /// Opens a free account for process `pid`, which started at `start`.
    pub fn join(&self, accounts: &(impl Accounts + ?Sized), pid: u32, start: u64) -> Option<usize> {
        let index = (0..ACCOUNTS).find(|&index| accounts.account(index).claim(FREE, pid))?;
        let account = accounts.account(index);
        account.start.store(start, Ordering::Relaxed);
        if !lives() {
            return None;
        }
        account.state.store(signed(ALIVE, pid), Ordering::Release);
        if !lives() {
            return None;
        }
        let (word, mask) = bit(index);
        self.alive[word].fetch_or(mask, Ordering::AcqRel);
        Some(index)
    }

    /// Pages charged by all together, in a copy of a ledger's bytes.
    pub fn total_in(bytes: &[u8]) -> u64 {
        word(bytes, offset_of!(Self, total)).unwrap_or(0) & PAGES
    }

    /// Accounts of processes that live, in a copy of a ledger's bytes.
    pub fn alive_in(bytes: &[u8]) -> impl Iterator<Item = usize> {
        let words = (0..WORDS).map(|index| word(bytes, offset_of!(Self, alive) + index * 8).unwrap_or(0));
        let bits: Vec<u64> = words.collect();
        (0..ACCOUNTS).filter(move |&index| bits[index / 64] & bit(index).1 != 0)
    }

    /// Pages charged by all together.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Acquire) & PAGES
    }

    /// Changes the total; what it was, or `None` when `change` refuses.
    fn change(&self, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        let next = |now: u64| Some(next_version(now, change(now & PAGES)?));
        self.total.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok().map(|before| before & PAGES)
    }

    /// Charges `pages` if the total stays within `limit`; the total then. Only the owner changes its account.
    pub fn charge(&self, account: &Account, pages: u64, limit: u64) -> Option<u64> {
        account.unsettled.store(1, Ordering::Release);
        if !lives() {
            return None;
        }
        let total = self.change(|now| now.checked_add(pages).filter(|&sum| sum <= limit)).map(|before| before + pages);
        if !lives() {
            return None;
        }
        if total.is_some() {
            account.charged.store(account.charged() + pages, Ordering::Release);
        }
        if !lives() {
            return None;
        }
        account.unsettled.store(0, Ordering::Release);
        total
    }

    /// Gives `pages` back, at most what is charged.
    pub fn uncharge(&self, account: &Account, pages: u64) {
        let pages = pages.min(account.charged());
        if pages == 0 {
            return;
        }
        account.unsettled.store(1, Ordering::Release);
        if !lives() {
            return;
        }
        self.change(|now| Some(now.saturating_sub(pages)));
        if !lives() {
            return;
        }
        account.charged.store(account.charged() - pages, Ordering::Release);
        if !lives() {
            return;
        }
        account.unsettled.store(0, Ordering::Release);
    }

    /// Ends the accounts of which `is_dead(pid, start)` says that their process is gone; `start` is `None` where only the
    /// number is known. `buried` is told of each while it is still signed for. `by` is the caller.
    pub fn bury(
        &self,
        accounts: &(impl Accounts + ?Sized),
        by: u32,
        is_dead: impl Fn(u32, Option<u64>) -> bool,
        mut buried: impl FnMut(usize),
    ) {
        let mut claimed = [0u64; WORDS];
        for index in 0..ACCOUNTS {
            let account = accounts.account(index);
            let state = account.state.load(Ordering::Acquire);
            let dead = match kind_of(state) {
                ALIVE => is_dead(pid_of(state), Some(account.start.load(Ordering::Relaxed))),
                // Taken by one who died before it was done.
                TAKEN => is_dead(pid_of(state), None),
                _ => false,
            };
            if dead && account.claim(state, by) {
                let (word, mask) = bit(index);
                claimed[word] |= mask;
            }
        }
        if claimed == [0; WORDS] {
            return;
        }
        let is_claimed = |index: usize| claimed[bit(index).0] & bit(index).1 != 0;
        let settled = self.settle(accounts, &is_claimed);
        if !lives() {
            return;
        }
        for index in (0..ACCOUNTS).filter(|&index| is_claimed(index)) {
            let account = accounts.account(index);
            if account.unsettled.load(Ordering::Acquire) != 0 && !settled {
                // Somebody else is stopped amid a charge: another time. No process has number 0.
                account.state.store(signed(TAKEN, 0), Ordering::Release);
                continue;
            }
            self.uncharge(account, account.charged());
            if !lives() {
                return;
            }
            buried(index);
            let (word, mask) = bit(index);
            self.starving[word].fetch_and(!mask, Ordering::AcqRel);
            self.alive[word].fetch_and(!mask, Ordering::AcqRel);
            if !lives() {
                return;
            }
            account.state.store(FREE, Ordering::Release);
        }
    }

    /// Where owners died amid a charge: sets the total to the sum of the others and empties theirs. False when that cannot
    /// be done now.
    fn settle(&self, accounts: &(impl Accounts + ?Sized), is_claimed: &impl Fn(usize) -> bool) -> bool {
        let unsettled = |index: usize| accounts.account(index).unsettled.load(Ordering::Acquire) != 0;
        let lost = |index: usize| is_claimed(index) && unsettled(index);
        if !(0..ACCOUNTS).any(lost) {
            return true;
        }
        for _ in 0..SETTLE_TRIES {
            let before = self.total.load(Ordering::Acquire);
            // The mark first: once it is off, the account holds what the total of that version has of it.
            let sum = (0..ACCOUNTS).filter(|&index| !lost(index)).try_fold(0, |sum, index| {
                if unsettled(index) { None } else { Some(sum + accounts.account(index).charged.load(Ordering::Acquire)) }
            });
            if let Some(sum) = sum
                && self.total.compare_exchange(before, next_version(before, sum), Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                for index in (0..ACCOUNTS).filter(|&index| lost(index)) {
                    let account = accounts.account(index);
                    if !lives() {
                        return false;
                    }
                    account.charged.store(0, Ordering::Release);
                    account.unsettled.store(0, Ordering::Release);
                }
                return true;
            }
            pause();
        }
        false
    }

    /// Says that process `index` cannot get its share, or no longer starves.
    pub fn set_starving(&self, index: usize, starving: bool) {
        let (word, mask) = bit(index);
        if starving {
            self.starving[word].fetch_or(mask, Ordering::AcqRel);
        } else {
            self.starving[word].fetch_and(!mask, Ordering::AcqRel);
        }
    }

    /// True when process `index` starves.
    pub fn starves(&self, index: usize) -> bool {
        let (word, mask) = bit(index);
        self.starving[word].load(Ordering::Relaxed) & mask != 0
    }

    /// True when somebody starves.
    pub fn is_starving(&self) -> bool {
        self.starving.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Processes that have an account.
    pub fn alive(&self) -> u32 {
        self.alive.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }
}

#[cfg(all(test, loom))]
mod models;
