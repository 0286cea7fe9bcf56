//! On which CPUs a thread may run: asked, set for the calling thread, and put back.
//!
//! Masks have no fixed size: the kernel says EINVAL to a buffer shorter than its own mask, so the buffer grows until it does not.
//! The kernel silently leaves out CPUs that are offline or outside the cpuset; here that is an error, because a figure of "CPU 5"
//! that was measured elsewhere is wrong.

use crate::errno::{Errno, call};
use nearfar_core::node::CpuList;
use std::marker::PhantomData;

/// Why a thread could not be put where it was wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    /// These CPUs do not exist, are offline, or are outside the cpuset of this process.
    #[error("CPU {0} is offline or outside what this process may use")]
    NotAllowed(CpuList),
    /// A sandbox forbids the call.
    #[error("the system forbids choosing CPUs ({0}); a container's seccomp profile does that")]
    Denied(Errno),
    /// No CPU was named.
    #[error("no CPU was named")]
    Empty,
    /// Anything else that the kernel said.
    #[error("choosing CPUs: {0}")]
    Other(Errno),
}

/// Words of a mask at first: 1024 CPUs.
const FIRST_WORDS: usize = 16;
/// Words of the largest mask tried: a million CPUs.
const MOST_WORDS: usize = 1 << 14;

fn meaning(errno: Errno) -> AffinityError {
    match errno {
        Errno(libc::EPERM | libc::EACCES | libc::ENOSYS) => AffinityError::Denied(errno),
        _ => AffinityError::Other(errno),
    }
}

/// CPUs that thread `tid` may use; 0 is the calling thread.
///
/// # Errors
/// The kernel does not say: no such thread, or a sandbox.
pub fn of(tid: u32) -> Result<CpuList, AffinityError> {
    let mut words = FIRST_WORDS;
    loop {
        let mut mask = vec![0u64; words];
        let args = [tid as usize, words * size_of::<u64>(), mask.as_mut_ptr() as usize, 0, 0, 0];
        // SAFETY: the kernel writes at most the given number of bytes into a local vector of that size.
        match unsafe { call(libc::SYS_sched_getaffinity, args) } {
            Ok(_) => return Ok(numbers(&mask)),
            Err(Errno::EINVAL) if words < MOST_WORDS => words *= 2,
            Err(errno) => return Err(meaning(errno)),
        }
    }
}

fn numbers(mask: &[u64]) -> CpuList {
    let bits = mask.iter().enumerate().flat_map(|(index, word)| {
        (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index as u32 * u64::BITS + bit)
    });
    bits.collect()
}

fn set(cpus: &CpuList) -> Result<(), AffinityError> {
    let last = *cpus.as_slice().last().ok_or(AffinityError::Empty)? as usize;
    let mut mask = vec![0u64; last / 64 + 1];
    for &cpu in cpus.as_slice() {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    let args = [0, size_of_val(&mask[..]), mask.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads the given number of bytes from a local vector of that size; only scheduling changes.
    match unsafe { call(libc::SYS_sched_setaffinity, args) } {
        Ok(_) => Ok(()),
        Err(Errno::EINVAL) => Err(AffinityError::NotAllowed(cpus.clone())),
        Err(errno) => Err(meaning(errno)),
    }
}

/// Confines the calling thread to those of `cpus` that it may use; what it starts afterwards inherits that.
///
/// # Errors
/// None of them is usable, or a sandbox forbids the call.
pub fn confine(cpus: &CpuList) -> Result<(), AffinityError> {
    set(cpus)
}

/// Runs `work` confined to `cpus`: what it starts stays confined.
///
/// # Errors
/// As of [`confine`]; `work` has not run then.
pub fn confined<R>(cpus: &CpuList, work: impl FnOnce() -> R) -> Result<R, AffinityError> {
    let before = of(0)?;
    set(cpus)?;
    let result = work();
    // Should a cpuset have changed meanwhile, the kernel keeps what is left.
    let _ = set(&before);
    Ok(result)
}

/// The calling thread is pinned while this lives; then it may run where it could before.
#[derive(Debug)]
pub struct Pinned {
    before: CpuList,
    /// Must be dropped by the thread that it pinned.
    not_send: PhantomData<*mut ()>,
}

/// Pins the calling thread to `cpus`, all of which must be usable.
///
/// # Errors
/// Some of them are not usable (the thread is then where it was), or a sandbox forbids the call.
pub fn pin(cpus: &CpuList) -> Result<Pinned, AffinityError> {
    let pinned = Pinned { before: of(0)?, not_send: PhantomData };
    set(cpus)?;
    let got = of(0)?;
    // The error drops `pinned`, which puts the thread back.
    let absent: CpuList = cpus.as_slice().iter().copied().filter(|&cpu| !got.contains(cpu)).collect();
    if absent.is_empty() { Ok(pinned) } else { Err(AffinityError::NotAllowed(absent)) }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // CPUs that went offline meanwhile are no reason to stop.
        let _ = set(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_and_puts_back() {
        let before = of(0).expect("own CPUs");
        let last = *before.as_slice().last().expect("a CPU");
        let pinned = pin(&[last].into_iter().collect()).expect("may use it");
        assert_eq!(of(0).expect("own CPUs").as_slice(), [last]);
        // SAFETY: asks the kernel for a number.
        assert_eq!(unsafe { libc::sched_getcpu() }, last as i32);
        drop(pinned);
        assert_eq!(of(0).expect("own CPUs"), before);
    }

    #[test]
    fn says_which_cpu_is_not_to_be_had() {
        let before = of(0).expect("own CPUs");
        let first = before.as_slice()[0];
        for far in [3000, 60_000] {
            let alone: CpuList = [far].into_iter().collect();
            assert_eq!(pin(&alone).map(|_| ()), Err(AffinityError::NotAllowed(alone.clone())));
            let both = [first, far].into_iter().collect();
            assert_eq!(pin(&both).map(|_| ()), Err(AffinityError::NotAllowed(alone)));
            assert_eq!(of(0).expect("own CPUs"), before, "put back after the error");
        }
        assert_eq!(pin(&CpuList::default()).map(|_| ()), Err(AffinityError::Empty));
        assert!(of(u32::MAX >> 1).is_err(), "no such thread");
    }

    #[test]
    fn what_is_started_confined_stays_so() {
        let all = of(0).expect("own CPUs");
        let first: CpuList = all.as_slice().iter().copied().take(1).collect();
        let inside = confined(&first, || (of(0), std::thread::spawn(|| of(0)).join().expect("joined")));
        assert_eq!(inside, Ok((Ok(first.clone()), Ok(first))));
        assert_eq!(of(0), Ok(all));
        assert_eq!(confine(&CpuList::default()), Err(AffinityError::Empty));
    }

    #[test]
    fn masks_become_numbers() {
        assert_eq!(numbers(&[0b101, 0, 1 << 63]).as_slice(), [0, 2, 191]);
    }
}
