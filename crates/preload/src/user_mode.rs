//! Paging for users whose userfaultfd misses the kernel's own accesses: the handler of SIGSYS, which the filter of
//! `nearfar_sys::seccomp` raises in a thread that is about to make a system call on paged memory.
//!
//! The handler lends the memory of the call to the kernel (`Memory::begin_loan`) and sends the thread to the gate, which makes
//! the call outside of any handler and ends the loan. Calls that use more than a share of near are made here, in pieces.
//! docs/explanation/user-mode.md lists what is covered and how.
//!
//! The handler runs on a signal stack of ours where the program has set none: the thread may run on a stack that is paged,
//! and the kernel could not write its frame there.

use crate::function::Function;
use crate::loaded;
use crate::managed::Managed;
use crate::{errno, large_transfers, signal_stacks, stack};
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::call_memory::{self, Lender, entry};
use nearfar_sys::errno::{Errno, call};
use nearfar_sys::{gate, map, process, task};
use nearfar_tiers::guard::{self, HeldAcrossFork, Lock, LockGuard};
use nearfar_tiers::memory::Memory;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// What the program has set for SIGSYS: shown to it, and called for signals that are not ours.
static PROGRAM: Lock<Option<libc::sigaction>> = Lock::new(None);
static FORKING: HeldAcrossFork<Option<libc::sigaction>> = HeldAcrossFork::new();
/// A word that a raw fork wipes: not zero in the process that manages its memory and in children of vfork.
static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// What the handler asks of `lifecycle`, which is made on top of this.
#[derive(Clone, Copy)]
pub struct Process {
    /// What the hooks work with.
    pub managed: fn() -> Option<&'static Managed>,
    /// False in the child of vfork.
    pub is_this: fn() -> bool,
}
static PROCESS: OnceLock<Process> = OnceLock::new();

fn managed_even_inside() -> Option<&'static Managed> {
    PROCESS.get().and_then(|process| (process.managed)())
}

fn is_this_process() -> bool {
    PROCESS.get().is_some_and(|process| (process.is_this)())
}

/// For calls that lend nothing.
static NO_LOAN: AtomicU32 = AtomicU32::new(0);

static SIGACTION: Function<unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int> =
    Function::next(c"sigaction");

/// Bit of SIGSYS in a kernel's signal mask.
pub const SIGSYS_BIT: u64 = 1 << (libc::SIGSYS - 1);

/// True when system calls are caught in this process, or will be when it pages.
#[inline]
pub fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Puts gate and handler in place; at start, before there are threads.
pub fn start(memory: &Memory, process: Process) -> Result<(), Errno> {
    gate::open()?;
    let _ = PROCESS.set(process);
    let mark = map::OwnedMap::new(PAGE)?;
    // SAFETY: our own fresh page; the advice concerns children only.
    unsafe { map::madvise(mark.range(), libc::MADV_WIPEONFORK)? };
    MARK.store(mark.range().start as *mut AtomicU32, Ordering::Relaxed);
    std::mem::forget(mark);
    set_mark();
    // SAFETY: all zeros is a valid value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = caught as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: a local, of which all bits may be set. No handler of the program may run while loans are being made, and the thread may
    // not be cancelled, which it would be with our locks held: sigfillset leaves the signals of that out.
    unsafe { (&raw mut action.sa_mask).cast::<u8>().write_bytes(0xff, size_of_val(&action.sa_mask)) };
    let next = SIGACTION.get().ok_or(Errno(libc::ENOSYS))?;
    // SAFETY: all zeros is a valid value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the C library's function, with structures of its kind.
    if unsafe { next(libc::SIGSYS, &action, &mut before) } != 0 {
        return Err(Errno::last());
    }
    *program() = Some(before);
    let open = SIGSYS_BIT;
    let args = [libc::SIG_UNBLOCK as usize, (&raw const open).addr(), 0, 8, 0, 0];
    // SAFETY: reads a local of 8 bytes.
    unsafe { call(libc::SYS_rt_sigprocmask, args)? };
    signal_stacks::give_own();
    memory.catch_calls_of(caught_code());
    ACTIVE.store(true, Ordering::Release);
    Ok(())
}

fn set_mark() {
    let mark = MARK.load(Ordering::Relaxed);
    if !mark.is_null() {
        // SAFETY: a page of ours that is never unmapped, used as this word only.
        unsafe { (*mark).store(1, Ordering::Relaxed) };
    }
}

/// False in a child of a raw fork, which has no managed memory, and a copy of locks that nobody will open.
fn has_memory() -> bool {
    let mark = MARK.load(Ordering::Relaxed);
    // SAFETY: as in `set_mark`.
    !mark.is_null() && unsafe { (*mark).load(Ordering::Relaxed) } != 0
}

/// Before a fork, behind the lock of `Memory` and before that of our own heap, which who holds one of these asks for.
pub fn fork_prepare() {
    if is_active() {
        signal_stacks::fork_prepare();
        FORKING.keep(program());
    }
}

/// After it, in the parent.
pub fn fork_parent() {
    // SAFETY: the thread that forked.
    drop(unsafe { FORKING.give_back() });
    signal_stacks::fork_parent();
}

/// In the child of a fork, whose parent's forking thread was `before`.
pub fn fork_child(before: u32) {
    if is_active() {
        set_mark();
        // SAFETY: the thread that forked.
        drop(unsafe { FORKING.give_back() });
        signal_stacks::fork_child(before);
    }
}

/// Where calls with structures are made: the C library, our own `syscall`, and the program itself if it lies where only it
/// does. (Programs that are not position independent all lie at the same low addresses, also those without a handler.)
fn caught_code() -> Vec<Extent> {
    const LOW: usize = 4 << 30;
    let mut code = Vec::from_iter(loaded::code_of(libc::getpid as *const () as usize));
    // SAFETY: reads a number from the auxiliary vector: where the kernel starts the program.
    let program = unsafe { libc::getauxval(libc::AT_ENTRY) } as usize;
    if program > LOW {
        code.extend(loaded::code_of(program));
    }
    // The function of that name is ours (`raw_syscall`).
    code.push(Extent::new(libc::syscall as *const () as usize, 256));
    code
}

/// What the program believes to have set for SIGSYS.
pub fn program() -> LockGuard<Option<libc::sigaction>> {
    guard::enter(&PROGRAM)
}

/// The handler of SIGSYS.
///
/// # Safety
/// Called by the kernel.
unsafe extern "C" fn caught(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let _kept = errno::Kept::now();
    // SAFETY: valid for the time of the handler, as the kernel promises for SA_SIGINFO.
    let (info, context) = unsafe { (&mut *info, &mut *context.cast::<ucontext_t>()) };
    if is_this_process() {
        signal_stacks::give(context);
    }
    const BY_FILTER: c_int = 1;
    // SAFETY: the words of siginfo_t after its head are always there.
    let word = |index: usize| unsafe { (&raw const *info).cast::<usize>().add(index).read() };
    if info.si_code == libc::SI_QUEUE && word(3) == task::ASKED && word(2) as u32 == process::pid() {
        task::answer();
        return;
    }
    let number = word(3) as u32 as usize;
    let ours = info.si_code == BY_FILTER && !Extent::new(gate::GATE, PAGE).contains(Thread::of(context).code());
    if !ours || !serve(number, context) {
        // SAFETY: the arguments of the kernel, passed on.
        unsafe { pass_on(signal, info, context) };
    }
}

/// The registers of a thread that was caught.
struct Thread<'a>(&'a mut ucontext_t);

#[cfg(target_arch = "x86_64")]
impl<'a> Thread<'a> {
    fn of(context: &'a mut ucontext_t) -> Self {
        Self(context)
    }

    fn reg(&mut self, index: c_int) -> &mut i64 {
        &mut self.0.uc_mcontext.gregs[index as usize]
    }

    fn code(&mut self) -> usize {
        *self.reg(libc::REG_RIP) as usize
    }

    fn args(&mut self) -> [usize; 6] {
        [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
            .map(|reg| *self.reg(reg) as usize)
    }

    /// The call is over, with this result.
    fn returns(&mut self, result: isize) {
        *self.reg(libc::REG_RAX) = result as i64;
    }

    /// The thread is to make its call in the gate, which then clears `word`.
    fn goes_through_gate(&mut self, word: &'static AtomicU32) {
        let sp = *self.reg(libc::REG_RSP) as usize - gate::PASS_STACK;
        let back = self.code();
        // SAFETY: behind the part of the thread's stack that its functions use, where the kernel would put a frame.
        unsafe { (sp as *mut [usize; 2]).write_unaligned([std::ptr::from_ref(word).addr(), back]) };
        *self.reg(libc::REG_RSP) = sp as i64;
        *self.reg(libc::REG_RIP) = gate::GATE as i64;
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl<'a> Thread<'a> {
    // `gate::open` refuses before anything is caught.
    fn of(context: &'a mut ucontext_t) -> Self {
        Self(context)
    }
    fn code(&mut self) -> usize {
        gate::GATE
    }
    fn args(&mut self) -> [usize; 6] {
        [0; 6]
    }
    fn returns(&mut self, _result: isize) {}
    fn goes_through_gate(&mut self, _word: &'static AtomicU32) {}
}

fn mask_of(context: &mut ucontext_t) -> &mut u64 {
    // SAFETY: the kernel's mask is the first 8 bytes.
    unsafe { &mut *(&raw mut context.uc_sigmask).cast::<u64>() }
}

/// Has the call made. False when nothing of it is ours.
fn serve(number: usize, context: &mut ucontext_t) -> bool {
    let args = Thread::of(context).args();
    let Some(entry) = entry(number).filter(|entry| call_memory::concerns(entry, &args)) else { return false };
    let managed = managed_even_inside().filter(|_| !Memory::inside() && has_memory());
    if number == libc::SYS_rt_sigprocmask as usize {
        let result = change_mask(managed, &args, mask_of(context));
        Thread::of(context).returns(result);
        return true;
    }
    let Some(managed) = managed else {
        Thread::of(context).goes_through_gate(&NO_LOAN);
        return true;
    };
    let mask = *mask_of(context);
    let done = managed.with(|memory| {
        let (mut loan, most) = memory.begin_loan();
        if let Some(transfer) = large_transfers::Transfer::of(entry, &args, most, &mut loan) {
            loan.end();
            return Err(transfer.run(memory, mask));
        }
        call_memory::lend_all(entry, &args, &mut loan);
        Ok(loan.word())
    });
    match done {
        Ok(word) => Thread::of(context).goes_through_gate(word),
        Err(result) => Thread::of(context).returns(result),
    }
    true
}

/// rt_sigprocmask: the mask that counts is the one that the end of the handler puts back. SIGSYS stays open.
fn change_mask(managed: Option<&Managed>, args: &[usize; 6], mask: &mut u64) -> isize {
    let [how, set, old, size, ..] = *args;
    if size != 8 {
        return -libc::EINVAL as isize;
    }
    let before = *mask;
    let mut new = None;
    let good = with_lent(managed, &[Extent::new(set, 8), Extent::new(old, 8)], || {
        if set != 0 {
            new = call_memory::words::<1>(set).map(|[word]| word as u64);
        }
        (set == 0 || new.is_some()) && (old == 0 || call_memory::poke(old, &before.to_ne_bytes()))
    });
    if !good {
        return -libc::EFAULT as isize;
    }
    let Some(new) = new else { return 0 };
    *mask = match how as c_int {
        libc::SIG_BLOCK => before | new,
        libc::SIG_UNBLOCK => before & !new,
        libc::SIG_SETMASK => new,
        _ => return -libc::EINVAL as isize,
    } & !SIGSYS_BIT;
    0
}

/// Calls `act` with `ranges` lent to the kernel, as far as they are managed.
pub fn with_lent<R>(managed: Option<&Managed>, ranges: &[Extent], act: impl FnOnce() -> R) -> R {
    let Some(managed) = managed else { return act() };
    managed.with(|memory| {
        let (mut loan, _) = memory.begin_loan();
        loan.lend(ranges);
        let result = act();
        loan.end();
        result
    })
}

/// Lends what a call by this number would use, and calls `act`, which makes it. For calls of ours on behalf of the program
/// that are not caught: their pointers are elsewhere, or SIGSYS has no handler where they are made.
pub fn lending<R>(number: libc::c_long, args: [usize; 6], act: impl FnOnce() -> R) -> R {
    let managed = managed_even_inside().filter(|_| is_active() && !Memory::inside() && has_memory());
    let (Some(managed), Some(entry)) = (managed, entry(number as usize)) else { return act() };
    let loan = managed.with(|memory| {
        let (mut loan, _) = memory.begin_loan();
        call_memory::lend_all(entry, &args, &mut loan);
        loan
    });
    let result = act();
    loan.end();
    result
}

/// Calls `act` on a stack that is not paged: the C library blocks all signals for a while, and hands the kernel what is on the
/// stack.
pub fn off_paged_stack<R>(act: impl FnOnce() -> R) -> R {
    match managed_even_inside().filter(|_| is_active()) {
        Some(managed) if managed.is_paged(stack::here()) => stack::call_on_own(act),
        _ => act(),
    }
}

/// Keeps words in near that the kernel writes without being asked again, such as thread ids.
pub fn keep_words(words: &[usize]) {
    let Some(managed) = managed_even_inside().filter(|_| is_active() && !Memory::inside()) else { return };
    for &word in words.iter().filter(|&&word| managed.is_paged(word)) {
        managed.with(|memory| memory.lend_for_good(Extent::new(word, 8)));
    }
}

/// SIGSYS that is not ours: what the program wants done with it.
///
/// # Safety
/// The arguments are those of the kernel.
unsafe fn pass_on(signal: c_int, info: &mut siginfo_t, context: &mut ucontext_t) {
    let Some(action) = *program() else { return };
    match action.sa_sigaction {
        libc::SIG_IGN if info.si_code <= 0 => {}
        libc::SIG_IGN | libc::SIG_DFL => {
            // SAFETY: all zeros is the default action; the signal then ends the process at the end of this handler.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                if let Some(next) = SIGACTION.get() {
                    next(signal, &default, std::ptr::null_mut());
                }
                let args = [process::pid() as usize, process::tid() as usize, signal as usize, 0, 0, 0];
                let _ = call(libc::SYS_tgkill, args);
            }
        }
        handler => {
            // SAFETY: a handler of the program, called as the kernel would.
            unsafe {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(handler);
                handler(signal, info, (&raw mut *context).cast());
            }
        }
    }
}
