//! Signal stacks for threads that have none, so that the handler of SIGSYS never needs the stack that a thread runs on. The
//! program does not see them: to it such a thread has no signal stack (`signals`).
//!
//! A thread gets one at its first signal, from the list of those whose threads are gone if there is one.

use libc::{stack_t, ucontext_t};
use nearfar_sys::errno::call;
use nearfar_sys::map::OwnedMap;
use nearfar_sys::{process, task};
use nearfar_tiers::guard::{self, HeldAcrossFork, Lock};

/// Room for handlers of the program that ask for a signal stack and have not set one.
const BYTES: usize = 128 << 10;

struct Stacks(Vec<(u32, OwnedMap)>);

static STACKS: Lock<Stacks> = Lock::new(Stacks(Vec::new()));
static FORKING: HeldAcrossFork<Stacks> = HeldAcrossFork::new();

/// True when the stack that starts at `addr` is one of ours.
pub fn is_own(addr: usize) -> bool {
    guard::enter(&STACKS).0.iter().any(|(_, map)| map.range().start == addr)
}

fn take() -> Option<stack_t> {
    let own = process::tid();
    let mut stacks = guard::enter(&STACKS);
    let index = match stacks.0.iter().position(|(tid, _)| *tid == own || !task::lives(*tid)) {
        Some(index) => index,
        None => {
            let map = OwnedMap::new(BYTES).ok()?;
            stacks.0.push((own, map));
            stacks.0.len() - 1
        }
    };
    stacks.0[index].0 = own;
    let range = stacks.0[index].1.range();
    Some(stack_t { ss_sp: range.start as *mut _, ss_flags: 0, ss_size: range.len() })
}

/// Gives the interrupted thread a signal stack, unless it has one: the end of the handler puts it in force.
pub fn give(context: &mut ucontext_t) {
    if context.uc_stack.ss_flags & libc::SS_DISABLE != 0
        && let Some(stack) = take()
    {
        context.uc_stack = stack;
    }
}

/// Gives the calling thread a signal stack, unless it has one.
pub fn give_own() {
    // SAFETY: all zeros is a valid value.
    let mut now: stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: fills the local; raw, since the function of this name is ours.
    let known = unsafe { call(libc::SYS_sigaltstack, [0, (&raw mut now).addr(), 0, 0, 0, 0]) };
    if known.is_ok()
        && now.ss_flags & libc::SS_DISABLE != 0
        && let Some(stack) = take()
    {
        // SAFETY: memory that only this thread's handlers use for as long as the thread lives.
        let _ = unsafe { call(libc::SYS_sigaltstack, [(&raw const stack).addr(), 0, 0, 0, 0, 0]) };
    }
}

/// Before a fork.
pub fn fork_prepare() {
    FORKING.keep(guard::enter(&STACKS));
}

/// After it, in the parent.
pub fn fork_parent() {
    // SAFETY: the thread that forked.
    drop(unsafe { FORKING.give_back() });
}

/// In the child of a fork: the forking thread, `before` in the parent, still has its stack.
pub fn fork_child(before: u32) {
    // SAFETY: the thread that forked.
    let Some(mut stacks) = (unsafe { FORKING.give_back() }) else { return };
    let own = process::tid();
    stacks.0.iter_mut().filter(|(tid, _)| *tid == before).for_each(|(tid, _)| *tid = own);
}
