//! The CPUs that the calling thread may use: asked and set. Threads and programs that it starts afterwards inherit them.

use crate::errno::{Errno, call};
use nearfar_core::node::CpuList;

/// Bits of a word of the kernel's mask.
const BITS: usize = usize::BITS as usize;
/// Words of the first mask tried: 1024 CPUs.
const WORDS: usize = 1024 / BITS;
/// The kernel knows at most 8192 CPUs today.
const MOST_WORDS: usize = 64 * WORDS;

/// CPUs that the calling thread may use. Unlike `sched_getaffinity` of the C library it is not limited to 1024 of them.
///
/// # Errors
/// The kernel's (there is none that a sound system gives).
pub fn allowed() -> Result<CpuList, Errno> {
    let mut mask = vec![0usize; WORDS];
    loop {
        let args = [0, size_of_val(mask.as_slice()), mask.as_mut_ptr() as usize, 0, 0, 0];
        // SAFETY: the kernel writes at most as many bytes as the vector has.
        match unsafe { call(libc::SYS_sched_getaffinity, args) } {
            Ok(_) => break,
            // The mask is smaller than the kernel's.
            Err(Errno::EINVAL) if mask.len() < MOST_WORDS => mask = vec![0; mask.len() * 2],
            Err(errno) => return Err(errno),
        }
    }
    let is_set = |cpu: &u32| mask[*cpu as usize / BITS] >> (*cpu as usize % BITS) & 1 == 1;
    Ok((0..(mask.len() * BITS) as u32).filter(is_set).collect())
}

/// Confines the calling thread to `cpus`.
///
/// # Errors
/// EINVAL when none of them is online and allowed.
pub fn confine(cpus: &CpuList) -> Result<(), Errno> {
    let words = cpus.as_slice().last().map_or(1, |&last| last as usize / BITS + 1);
    let mut mask = vec![0usize; words];
    for &cpu in cpus.as_slice() {
        mask[cpu as usize / BITS] |= 1 << (cpu as usize % BITS);
    }
    let args = [0, size_of_val(mask.as_slice()), mask.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads as many bytes as the vector has.
    unsafe { call(libc::SYS_sched_setaffinity, args) }.map(|_| ())
}

/// Confines the calling thread to `cpus` while `work` runs: what it starts stays confined.
///
/// # Errors
/// As of [`confine`]; `work` has not run then.
pub fn confined<R>(cpus: &CpuList, work: impl FnOnce() -> R) -> Result<R, Errno> {
    let before = allowed()?;
    confine(cpus)?;
    let result = work();
    // What was allowed before may be set again; should a cpuset have changed meanwhile, the kernel keeps what is left.
    let _ = confine(&before);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_confined_for_a_while() {
        let all = allowed().expect("a mask");
        let first: CpuList = all.as_slice().iter().copied().take(1).collect();
        let inside = confined(&first, || (allowed(), std::thread::spawn(allowed).join().expect("joined")));
        assert_eq!(inside.expect("confined"), (Ok(first.clone()), Ok(first)));
        assert_eq!(allowed(), Ok(all));
        assert_eq!(confine(&CpuList::default()), Err(Errno::EINVAL));
    }
}
