//! What a library of memory kinds costs per allocation: pairs of malloc and free of one size, batches, threads, the first call, and
//! what stays behind after free. A library is loaded by name, so that each is measured in a process of its own.
//!
//! Times are the least of many repetitions, of the calling thread's processor time where one thread works (these machines are shared)
//! and of the wall where several do.

use std::ffi::{CString, c_int, c_void};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Which functions of the library are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// malloc and free of the C library; no library is loaded.
    Libc,
    /// `hbw_malloc` and `hbw_free`.
    Hbw,
}

/// Nanoseconds of a malloc and its free.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Pair {
    /// Of the block.
    pub bytes: u64,
    /// Whether every page of it was written.
    pub touched: bool,
    /// Per pair.
    pub ns: f64,
}

/// Nanoseconds of a malloc and its free where many blocks are alive before they are freed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Batch {
    /// Of a block.
    pub bytes: u64,
    /// Blocks.
    pub alive: usize,
    /// Per pair.
    pub ns: f64,
}

/// Nanoseconds of a malloc and its free where several threads do nothing else.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Together {
    /// Of a block.
    pub bytes: u64,
    /// Threads.
    pub threads: usize,
    /// Per pair, of one CPU.
    pub ns: f64,
}

/// What stays behind after free.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Left {
    /// Of a block.
    pub bytes: u64,
    /// Bytes that were alive, and all freed.
    pub live: u64,
    /// Bytes that the process still has.
    pub left: u64,
}

/// One measurement of a library.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Measured {
    /// Microseconds to load it.
    pub load_us: f64,
    /// Microseconds of the first malloc and free.
    pub first_call_us: f64,
    /// One block at a time.
    pub pairs: Vec<Pair>,
    /// Many blocks at a time.
    pub batches: Vec<Batch>,
    /// Many threads.
    pub threads: Vec<Together>,
}

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

#[derive(Clone, Copy)]
struct Functions {
    malloc: Malloc,
    free: Free,
}

/// Bytes of the blocks of pairs; the last is measured untouched and touched.
const SIZES: [usize; 5] = [64, 4 << 10, 64 << 10, 1 << 20, 64 << 20];
/// Blocks of batches, and how many are alive at once.
const BATCHES: [(usize, usize); 4] = [(64, 1000), (4 << 10, 1000), (64 << 10, 200), (1 << 20, 100)];
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Bytes alive before all is freed.
const LIVE: usize = 512 << 20;
const PAGE: usize = 4096;

/// Measures all, in about `seconds`.
///
/// # Errors
/// A library that cannot be loaded, or lacks the functions.
pub fn measure(api: Api, library: &str, seconds: f64) -> Result<Measured, String> {
    let begin = Instant::now();
    let functions = load(api, library)?;
    let loaded = begin.elapsed();
    // SAFETY: a block that is freed at once.
    unsafe { (functions.free)((functions.malloc)(64)) };
    let first = begin.elapsed() - loaded;
    let slice = Duration::from_secs_f64(seconds / (SIZES.len() + 1 + BATCHES.len() + 2 * THREADS.len()) as f64);

    let pairs = SIZES.map(|bytes| (bytes, false)).into_iter().chain([(SIZES[SIZES.len() - 1], true)]);
    let pairs =
        pairs.map(|(bytes, touched)| Pair { bytes: bytes as u64, touched, ns: pair(functions, bytes, touched, slice) }).collect();
    let batches =
        BATCHES.map(|(bytes, alive)| Batch { bytes: bytes as u64, alive, ns: batch(functions, bytes, alive, slice) }).into();
    let rows = [64, 1 << 20].into_iter().flat_map(|bytes| THREADS.map(|threads| (bytes, threads)));
    let threads = rows
        .map(|(bytes, threads)| Together { bytes: bytes as u64, threads, ns: together(functions, bytes, threads, slice) })
        .collect();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Measured { load_us: us(loaded), first_call_us: us(first), pairs, batches, threads })
}

/// Bytes that stay when 512 MiB in blocks of `bytes` were alive and all of them are freed.
///
/// # Errors
/// As for [`measure`].
pub fn left(api: Api, library: &str, bytes: usize) -> Result<Left, String> {
    let functions = load(api, library)?;
    // SAFETY: a block that is freed at once. What a library takes for itself at its first call is not counted.
    unsafe { (functions.free)((functions.malloc)(bytes)) };
    Ok(Left { bytes: bytes as u64, live: LIVE as u64, left: left_behind(functions, bytes) })
}

/// Loads, calls once and leaves: what a program pays that hardly uses the library.
///
/// # Errors
/// As for [`measure`].
pub fn start(api: Api, library: &str) -> Result<(), String> {
    let functions = load(api, library)?;
    // SAFETY: a block that is freed at once.
    unsafe { (functions.free)((functions.malloc)(64)) };
    Ok(())
}

fn load(api: Api, library: &str) -> Result<Functions, String> {
    if api == Api::Libc {
        return Ok(Functions { malloc: libc::malloc, free: libc::free });
    }
    let name = CString::new(library).map_err(|_| "a library name cannot contain a NUL character".to_owned())?;
    // SAFETY: a C string; the library's constructors run, which is what is wanted.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(format!("{library} cannot be loaded; is it installed, with all that it needs?"));
    }
    let find = |name: &std::ffi::CStr| {
        // SAFETY: a handle from above and a C string.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if found.is_null() { Err(format!("{library} has no {}", name.to_string_lossy())) } else { Ok(found) }
    };
    let (malloc, free) = (find(c"hbw_malloc")?, find(c"hbw_free")?);
    // SAFETY: functions of that type, by the library's documentation.
    Ok(unsafe {
        Functions {
            malloc: std::mem::transmute::<*mut c_void, Malloc>(malloc),
            free: std::mem::transmute::<*mut c_void, Free>(free),
        }
    })
}

fn touch(block: *mut c_void, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: callers pass a block of so many bytes.
        unsafe { block.cast::<u8>().add(at).write_volatile(1) };
    }
}

fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a local.
    let _: c_int = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Least nanoseconds of one of `each` in rounds of `act`, which does `each` of them.
fn least(slice: Duration, each: usize, clock: fn() -> Duration, mut act: impl FnMut()) -> f64 {
    act();
    let end = Instant::now() + slice;
    let mut best = f64::MAX;
    let mut rounds = 0;
    while rounds < 3 || Instant::now() < end {
        let start = clock();
        act();
        best = best.min((clock() - start).as_secs_f64());
        rounds += 1;
    }
    best * 1e9 / each as f64
}

fn pair(functions: Functions, bytes: usize, touched: bool, slice: Duration) -> f64 {
    let each = if bytes >= 16 << 20 { 1 } else { 2000 };
    least(slice, each, thread_time, || {
        for _ in 0..each {
            // SAFETY: a block that is freed at once.
            unsafe {
                let block = std::hint::black_box((functions.malloc)(bytes));
                if touched && !block.is_null() {
                    touch(block, bytes);
                }
                (functions.free)(block);
            }
        }
    })
}

fn batch(functions: Functions, bytes: usize, alive: usize, slice: Duration) -> f64 {
    let mut blocks = Vec::with_capacity(alive);
    least(slice, alive, thread_time, || {
        for _ in 0..alive {
            // SAFETY: blocks of at least a byte, freed below.
            unsafe {
                let block = (functions.malloc)(bytes);
                if !block.is_null() {
                    block.cast::<u8>().write_volatile(1);
                }
                blocks.push(block);
            }
        }
        // SAFETY: from above, once.
        blocks.drain(..).for_each(|block| unsafe { (functions.free)(block) });
    })
}

/// Wall nanoseconds per pair of one CPU: all threads together, by the CPUs that they can have. Long enough for every thread to be
/// interrupted by others, where there are more threads than CPUs.
fn together(functions: Functions, bytes: usize, threads: usize, slice: Duration) -> f64 {
    let each = if bytes > 1 << 16 { 20_000 } else { 100_000 };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(threads);
    let mut best = f64::MAX;
    let end = Instant::now() + slice;
    let mut rounds = 0;
    while rounds < 3 || Instant::now() < end {
        let barrier = std::sync::Barrier::new(threads);
        // From the first start to the last end: a thread may be done before another has begun.
        let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
            let work = || {
                barrier.wait();
                let start = Instant::now();
                for _ in 0..each {
                    // SAFETY: a block that is freed at once.
                    unsafe { (functions.free)(std::hint::black_box((functions.malloc)(bytes))) };
                }
                (start, Instant::now())
            };
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            all.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let (first, last) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
        let elapsed = first.zip(last).map_or(Duration::MAX, |(first, last)| last - first);
        best = best.min(elapsed.as_secs_f64() * cpus as f64 / (each * threads) as f64);
        rounds += 1;
    }
    best * 1e9
}

/// Bytes that the process has more than before, once [`LIVE`] bytes were alive and all of them are freed.
fn left_behind(functions: Functions, bytes: usize) -> u64 {
    let mut blocks: Vec<*mut c_void> = Vec::with_capacity(LIVE / bytes);
    // Pages of the list itself.
    blocks.resize(LIVE / bytes, std::ptr::null_mut());
    let before = resident();
    for slot in &mut blocks {
        // SAFETY: takes any size.
        *slot = unsafe { (functions.malloc)(bytes) };
        if !slot.is_null() {
            touch(*slot, bytes);
        }
    }
    // SAFETY: from above, once.
    blocks.iter().for_each(|&block| unsafe { (functions.free)(block) });
    resident().saturating_sub(before)
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).map_or(0, |pages| pages * PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_measured() {
        let measured = measure(Api::Libc, "", 0.01).expect("malloc is there");
        assert_eq!((measured.pairs.len(), measured.batches.len(), measured.threads.len()), (6, 4, 8));
        assert!(measured.pairs[5].touched && measured.pairs.iter().all(|pair| pair.ns > 0.0), "{measured:?}");
        assert!(measure(Api::Hbw, "/nowhere/libmemkind.so.0", 0.01).is_err_and(|why| why.contains("cannot be loaded")));
    }
}
