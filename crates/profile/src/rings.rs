//! The kernel's rings of samples (perf_event_open), one for each CPU, for all threads of a process: all or none, since samples of some CPUs
//! or threads only would be wrong about the whole.

use nearfar_sys::errno::Errno;
use nearfar_sys::perf::Ring;
use nearfar_sys::{affinity, process, task};

/// CPUs beyond which only those are sampled that the first thread may use: each takes a descriptor and 20 KiB.
const MOST_CPUS: usize = 128;
/// No machine has more.
const LAST_CPU: usize = 8192;
/// Threads that run before sampling begins (libraries start some as they are loaded) and are sampled as well.
const MOST_EARLIER: usize = 256;
/// Share of the descriptors that the process may have.
pub const MOST_DESCRIPTORS: u64 = 8;

/// Threads of this process that run already, but for the first and `ours`.
pub fn earlier(ours: &[u32]) -> Vec<u32> {
    let others = task::others().into_iter().chain([process::tid()]);
    others.filter(|tid| *tid != process::pid() && !ours.contains(tid)).take(MOST_EARLIER).collect()
}

/// A ring for each CPU, made by `ring` of its number, and into which the `earlier` threads are sampled as well. `fits` refuses a number of
/// events that is too large.
///
/// # Errors
/// Those of `fits` and `ring`; a CPU that is off, or has no such unit (of hybrid processors only some may have it), is passed over unless
/// all are.
pub fn open<E: From<Errno>>(
    earlier: &[u32],
    fits: impl Fn(usize) -> Result<(), E>,
    ring: impl Fn(usize) -> Result<Ring, Errno>,
) -> Result<Vec<Ring>, E> {
    let mut rings = Vec::new();
    let mut absent = Errno(libc::ENODEV);
    for cpu in candidates() {
        fits((rings.len() + 1) * (1 + earlier.len()))?;
        let mut ring = match ring(cpu) {
            Ok(ring) => ring,
            Err(errno @ Errno(libc::ENODEV | libc::ENXIO | libc::ENOENT)) => {
                absent = errno;
                continue;
            }
            // No CPU has that number.
            Err(Errno::EINVAL) if !rings.is_empty() => break,
            Err(errno) => return Err(errno.into()),
        };
        for &tid in earlier {
            match ring.also(tid) {
                Ok(()) | Err(Errno(libc::ESRCH)) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        rings.push(ring);
    }
    if rings.is_empty() { Err(absent.into()) } else { Ok(rings) }
}

/// CPUs on which threads of this process may run.
fn candidates() -> Vec<usize> {
    let allowed: Vec<usize> =
        affinity::of(0).map(|list| list.as_slice().iter().map(|&cpu| cpu as usize).collect()).unwrap_or_default();
    // The first thread may be bound to a few while its threads may use all: as long as they are few, all are sampled.
    if allowed.len() > MOST_CPUS || allowed.last().is_some_and(|&last| last >= MOST_CPUS) {
        allowed
    } else {
        (0..LAST_CPU).collect()
    }
}
