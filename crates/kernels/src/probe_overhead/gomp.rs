//! An OpenMP runtime, loaded at run time and called as compiled programs call it: by the entry points that GCC's code uses, which
//! the runtimes of LLVM and Intel have as well.
//!
//! For a process of its own: the runtime's threads stay, and its settings come from the environment when it is loaded.

use super::CONSTRUCTS;
use super::epcc::{self, Effort, Samples};
use crate::spin_barrier::Padded;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Body = extern "C" fn(*mut c_void);

/// A runtime that was loaded.
pub struct Loaded {
    parallel: unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint),
    barrier: unsafe extern "C" fn(),
    thread_num: unsafe extern "C" fn() -> c_int,
    path: String,
}

/// What was measured of a runtime.
#[derive(Debug, Deserialize, Serialize)]
pub struct RuntimeOverheads {
    /// The file that it was loaded from.
    pub library: String,
    /// By number of threads, then by construct.
    pub rows: Vec<ConstructOverhead>,
}

/// The overhead of one construct with one number of threads.
#[derive(Debug, Deserialize, Serialize)]
pub struct ConstructOverhead {
    /// One of [`CONSTRUCTS`], or `all` where there is a problem.
    pub construct: String,
    /// Threads.
    pub threads: usize,
    /// Why the runtime does not work with so many threads; there are no samples then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Nanoseconds per construct; see [`figure`](super::figure).
    pub samples: Samples,
}

/// Loads the runtime `name`, a file name that the loader finds, or a path.
///
/// # Errors
/// What the loader says, or the entry point that is missing.
pub fn load(name: &str) -> Result<Loaded, String> {
    let file = CString::new(name).map_err(|_| "a library name cannot contain a NUL character".to_owned())?;
    // SAFETY: a C string. Initialisers of the library run: it is an OpenMP runtime that the user or the distribution installed.
    let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if library.is_null() {
        return Err(loader_error());
    }
    let symbol = |name: &'static CStr| {
        // SAFETY: a library that stays loaded, and a C string.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        if address.is_null() { Err(format!("the library has no {name:?}")) } else { Ok(address) }
    };
    let parallel = symbol(c"GOMP_parallel")?;
    let set_dynamic = symbol(c"omp_set_dynamic")?;
    // SAFETY: GOMP_parallel(void (*fn)(void *), void *data, unsigned num_threads, unsigned flags) since GCC 4.9; the others have the
    // types of the OpenMP standard and of libgomp's ABI. The library is never unloaded.
    let loaded = unsafe {
        Loaded {
            parallel: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint)>(parallel),
            barrier: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(symbol(c"GOMP_barrier")?),
            thread_num: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(symbol(c"omp_get_thread_num")?),
            path: path_of(parallel).unwrap_or_else(|| name.to_owned()),
        }
    };
    // SAFETY: as above. As many threads as asked for, or the figures are of something else.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(set_dynamic)(0) };
    Ok(loaded)
}

fn loader_error() -> String {
    // SAFETY: a C string of the loader, or null, valid until the next call of it in this thread.
    let said = unsafe {
        let error: *mut c_char = libc::dlerror();
        (!error.is_null()).then(|| CStr::from_ptr(error).to_string_lossy().into_owned())
    };
    said.unwrap_or_else(|| "the loader does not say why".to_owned())
}

/// The file that a function was loaded from.
fn path_of(address: *mut c_void) -> Option<String> {
    // SAFETY: all zeros is a valid value of this structure of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: writes into the local; the name belongs to the loader and lives as long as the library.
    let found = unsafe { libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null() };
    // SAFETY: a C string, as just said.
    let name = found.then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())?;
    Some(std::fs::canonicalize(&name).map_or(name, |path| path.display().to_string()))
}

/// What the threads of a region share.
struct Region<'a> {
    runtime: &'a Loaded,
    work: Work,
    repetitions: u64,
    spins: u64,
    threads: u64,
    // On lines of their own: what all threads read must not be where all write.
    arrived: Padded<AtomicU64>,
    sum: Padded<AtomicU64>,
    broken: AtomicBool,
}

#[derive(Clone, Copy)]
enum Work {
    Delay,
    Barriers,
    Reduce,
    CheckBarriers,
}

extern "C" fn body(region: *mut c_void) {
    // SAFETY: `run` passes a region that it borrows until all threads of the runtime have left it; it is shared, and its mutable parts
    // are atomic.
    let region = unsafe { &*region.cast::<Region>() };
    match region.work {
        Work::Delay => epcc::delay(region.spins),
        Work::Barriers => {
            for _ in 0..region.repetitions {
                epcc::delay(region.spins);
                // SAFETY: called by every thread of the region equally often.
                unsafe { (region.runtime.barrier)() };
            }
        }
        // As GCC compiles a reduction of an integer: a sum per thread, then one atomic addition each at the end of the region.
        Work::Reduce => {
            epcc::delay(region.spins);
            region.sum.0.fetch_add(1, Ordering::Relaxed);
        }
        Work::CheckBarriers => {
            for round in 0..region.repetitions {
                region.arrived.0.fetch_add(1, Ordering::Relaxed);
                // SAFETY: as above.
                unsafe { (region.runtime.barrier)() };
                let seen = region.arrived.0.load(Ordering::Relaxed);
                if seen < (round + 1) * region.threads || seen >= (round + 2) * region.threads {
                    region.broken.store(true, Ordering::Relaxed);
                }
            }
            // SAFETY: no arguments.
            let number = unsafe { (region.runtime.thread_num)() };
            region.sum.0.fetch_add(number as u64, Ordering::Relaxed);
        }
    }
}

impl Loaded {
    /// Overheads of all constructs for each number of threads.
    pub fn measure(&self, counts: &[usize], effort: Effort) -> RuntimeOverheads {
        let rows = counts.iter().flat_map(|&threads| match self.problem(threads) {
            Some(why) => vec![ConstructOverhead { construct: "all".into(), threads, problem: Some(why), samples: Vec::new() }],
            None => self.overheads(threads, effort),
        });
        RuntimeOverheads { library: self.path.clone(), rows: rows.collect() }
    }

    fn region(&self, work: Work, threads: usize, repetitions: u64, spins: u64) -> Region<'_> {
        let (arrived, sum, broken) = (Padded::default(), Padded::default(), AtomicBool::new(false));
        Region { runtime: self, work, repetitions, spins, threads: threads as u64, arrived, sum, broken }
    }

    fn run(&self, region: &Region) {
        // SAFETY: `body` gets a pointer to a live region; GOMP_parallel returns when all threads have left `body`.
        unsafe { (self.parallel)(body, std::ptr::from_ref(region).cast_mut().cast(), region.threads as c_uint, 0) };
    }

    /// Why figures of `threads` threads would be of something else; `None` when barriers hold and sums are right.
    fn problem(&self, threads: usize) -> Option<String> {
        const ROUNDS: u64 = 200;
        let check = self.region(Work::CheckBarriers, threads, ROUNDS, 0);
        self.run(&check);
        let came = check.arrived.0.load(Ordering::Relaxed) / ROUNDS;
        if came != threads as u64 {
            return Some(format!("the runtime gave {came} of {threads} threads (OMP_THREAD_LIMIT, or a limit on processes?)"));
        }
        let numbers = threads as u64 * (threads as u64 - 1) / 2;
        if check.broken.load(Ordering::Relaxed) || check.sum.0.load(Ordering::Relaxed) != numbers {
            return Some("a thread left a barrier before the others had come".into());
        }
        let reduce = self.region(Work::Reduce, threads, 0, 0);
        (0..ROUNDS).for_each(|_| self.run(&reduce));
        (reduce.sum.0.load(Ordering::Relaxed) != ROUNDS * threads as u64).then(|| "a reduction gave a wrong sum".into())
    }

    /// Overheads of each of [`CONSTRUCTS`] with `threads` threads.
    fn overheads(&self, threads: usize, effort: Effort) -> Vec<ConstructOverhead> {
        let spins = epcc::spins_of_delay();
        let measure = |construct: &str| {
            let samples = epcc::overheads(effort, spins, |repetitions| self.timed(construct, threads, repetitions, spins));
            ConstructOverhead { construct: construct.to_owned(), threads, problem: None, samples }
        };
        CONSTRUCTS.map(measure).into()
    }

    fn timed(&self, construct: &str, threads: usize, repetitions: u64, spins: u64) -> Duration {
        let (work, regions) = match construct {
            "fork-join" => (Work::Delay, repetitions),
            "barrier" => (Work::Barriers, 1),
            _ => (Work::Reduce, repetitions),
        };
        let region = self.region(work, threads, repetitions, spins);
        let start = Instant::now();
        (0..regions).for_each(|_| self.run(&region));
        start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_runtime_is_refused_with_the_reason() {
        let why = load("libnearfar-no-such-runtime.so").err().expect("refused");
        assert!(why.contains("cannot open"), "{why}");
        let why = load("libm.so.6").err().unwrap_or_default();
        assert!(why.contains("GOMP_parallel") || why.contains("cannot open"), "{why}");
    }
}
