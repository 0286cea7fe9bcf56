//! The C library's streams before a fork: it touches them in the child before any handler runs, when nobody serves far memory there.
//!
//! What it allocates for itself is kept out of paged memory (`heap`), but not where the program brings a malloc of its own, linked
//! into it: then streams lie wherever that puts them. So those that may be far are lent to the kernel across the fork.

use crate::managed::Managed;
use nearfar_core::addr::Extent;
use nearfar_tiers::memory::CallLoan;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

unsafe extern "C" {
    fn _IO_iter_begin() -> *mut c_void;
    fn _IO_iter_end() -> *mut c_void;
    fn _IO_iter_next(stream: *mut c_void) -> *mut c_void;
    fn _IO_iter_file(stream: *mut c_void) -> *mut c_void;
    fn _IO_list_lock();
    fn _IO_list_unlock();
}

/// sizeof(FILE) of glibc on 64-bit machines, and where it has the pointer to its lock, of 16 bytes.
const FILE: usize = 216;
const LOCK_POINTER: usize = 0x88;
const LOCK: usize = 16;

/// The word of the loan for the fork under way, whose thread holds the lock of `Memory`.
static LENT: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// Lends what may be far. To be called before memory comes to rest, then `keep`.
pub fn lend(managed: &Managed) -> Option<CallLoan> {
    let mut found = Vec::new();
    let mut note = |addr: usize, len: usize| {
        if managed.is_paged(addr) {
            found.push(Extent::new(addr, len));
        }
    };
    // SAFETY: the C library's own walk of its list, under its lock; the list holds whole FILE structures.
    unsafe {
        _IO_list_lock();
        let (mut stream, end) = (_IO_iter_begin(), _IO_iter_end());
        while stream != end {
            let file = _IO_iter_file(stream).addr();
            note(file, FILE);
            note(((file + LOCK_POINTER) as *const usize).read(), LOCK);
            stream = _IO_iter_next(stream);
        }
        _IO_list_unlock();
    }
    if found.is_empty() {
        return None;
    }
    let (mut loan, _) = managed.with(|memory| memory.begin_loan());
    nearfar_sys::call_memory::Lender::lend(&mut loan, &found);
    Some(loan)
}

/// Notes the loan until `end`. By the thread that forks, once it holds the lock of `Memory`.
pub fn keep(loan: Option<CallLoan>) {
    LENT.store(loan.map_or(null_mut(), |loan| std::ptr::from_ref(loan.word()).cast_mut()), Ordering::Relaxed);
}

/// Before that lock is given up, in parent and child.
pub fn end() {
    let word = LENT.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: null, or a word that lives for ever (`keep`).
    if let Some(word) = unsafe { word.as_ref() } {
        word.store(0, Ordering::Release);
    }
}
