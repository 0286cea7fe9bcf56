//! Far memory made of DRAM behind a throttle: every mode can be tried without a slow device.
//!
//! One channel of a given bandwidth serves reads and writes in order of arrival; each operation completes a fixed latency
//! after its last byte has passed. The copy itself is done by worker threads and must be faster than the throttle: where the
//! asked bandwidth is above what the copies reach, the emulation is as fast as those, and the counters show it.

use super::{Backend, StoreId};
use nearfar_core::addr::Extent;
use nearfar_sys::credentials;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::now_ns;
use nearfar_sys::io::{Done, Piece};
use nearfar_sys::map::{self, OwnedMap};
use nearfar_sys::thread;
use nearfar_sys::timer::Timer;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Address space of one store; memory is used only where data lies.
/// Address space of the store of a process.
pub const STORE_BYTES: usize = 1 << 42;
const WORKERS: usize = 2;

struct Copy {
    token: u64,
    write: bool,
    store: usize,
    pieces: Vec<Piece>,
    due_ns: u64,
}

#[derive(Default)]
struct Queue {
    todo: VecDeque<Copy>,
    // Copied, and to be announced when their time has come: when, token, bytes.
    done: BinaryHeap<Reverse<(u64, u64, usize)>>,
    armed_ns: u64,
}

struct Common {
    queue: Mutex<Queue>,
    more: Condvar,
    timer: Timer,
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Emulated far memory.
pub struct Emulated {
    stores: Vec<OwnedMap>,
    common: Arc<Common>,
    bytes_per_s: u64,
    latency_ns: u64,
    channel_free_ns: u64,
    child_bytes: u64,
}

impl Emulated {
    /// A far memory of `bytes_per_s` (reads and writes together) and `latency_ns` for each operation.
    pub fn new(bytes_per_s: u64, latency_ns: u64) -> Result<Self, Errno> {
        let stores = vec![Self::store()?];
        Ok(Self {
            stores,
            common: Self::start()?,
            bytes_per_s: bytes_per_s.max(1),
            latency_ns,
            channel_free_ns: 0,
            child_bytes: 0,
        })
    }

    fn store() -> Result<OwnedMap, Errno> {
        let store = OwnedMap::new(STORE_BYTES)?;
        // SAFETY: our own fresh mapping. Huge pages make the copies fast; core files have no use for it.
        let _ = unsafe { map::madvise(store.range(), libc::MADV_HUGEPAGE) };
        // SAFETY: as above.
        let _ = unsafe { map::madvise(store.range(), libc::MADV_DONTDUMP) };
        Ok(store)
    }

    fn start() -> Result<Arc<Common>, Errno> {
        let common = Arc::new(Common { queue: Mutex::default(), more: Condvar::new(), timer: Timer::new()? });
        for index in 0..WORKERS {
            let common = Arc::clone(&common);
            thread::spawn(&format!("nearfar-emu{index}"), move || work(&common))?;
        }
        Ok(common)
    }
}

fn work(common: &Common) -> ! {
    // A device would not need a CPU.
    thread::be_prompt();
    let mut queue = common.lock();
    loop {
        if let Some(copy) = queue.todo.pop_front() {
            drop(queue);
            let bytes = carry_out(&copy);
            queue = common.lock();
            queue.done.push(Reverse((copy.due_ns, copy.token, bytes)));
            if copy.due_ns < queue.armed_ns || queue.armed_ns == 0 {
                queue.armed_ns = copy.due_ns;
                common.timer.set(copy.due_ns);
            }
        } else {
            queue = credentials::wait_on(&common.more, queue);
        }
    }
}

fn carry_out(copy: &Copy) -> usize {
    let mut at = copy.store;
    for piece in &copy.pieces {
        let (from, to) = if copy.write { (piece.addr, at) } else { (at, piece.addr) };
        // SAFETY: `at` lies in a store that is mapped for the life of the process; the pieces are memory that whoever
        // submitted the operation leaves alone until its completion. The two never overlap.
        unsafe { copy_past_caches(from as *const u8, to as *mut u8, piece.len) };
        at += piece.len;
    }
    at - copy.store
}

/// Copies without writing into the caches, as a device would: more of the program's data stays there, and a copy takes less time.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const WORD: usize = size_of::<__m128i>();
    let whole = if to.addr().is_multiple_of(WORD) { len - len % (4 * WORD) } else { 0 };
    for at in (0..whole).step_by(4 * WORD) {
        // SAFETY: inside of both; the target is aligned.
        unsafe {
            let words: [__m128i; 4] = std::array::from_fn(|word| _mm_loadu_si128(from.add(at + word * WORD).cast()));
            for (word, value) in words.into_iter().enumerate() {
                _mm_stream_si128(to.add(at + word * WORD).cast(), value);
            }
        }
    }
    // SAFETY: what is left, inside of both.
    unsafe {
        std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), len - whole);
        _mm_sfence();
    }
}

/// The same, where no such copy is known.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

impl Backend for Emulated {
    fn submit(&mut self, token: u64, write: bool, store: StoreId, offset: u64, pieces: Vec<Piece>) {
        let bytes: usize = pieces.iter().map(|piece| piece.len).sum();
        let start = self.channel_free_ns.max(now_ns());
        self.channel_free_ns = start + (bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_s)) as u64;
        let due_ns = self.channel_free_ns + self.latency_ns;
        let store = self.stores[store as usize].range().start + offset as usize;
        self.common.lock().todo.push_back(Copy { token, write, store, pieces, due_ns });
        self.common.more.notify_one();
    }

    fn flush(&mut self) {}

    fn completions(&mut self, out: &mut Vec<Done>) {
        let mut queue = self.common.lock();
        self.common.timer.clear();
        let now = now_ns();
        while let Some(&Reverse((due, token, bytes))) = queue.done.peek() {
            if due > now {
                break;
            }
            queue.done.pop();
            out.push(Done { token, result: Ok(bytes) });
        }
        queue.armed_ns = queue.done.peek().map_or(0, |&Reverse((due, ..))| due);
        if queue.armed_ns != 0 {
            self.common.timer.set(queue.armed_ns);
        }
    }

    fn wait_fd(&self) -> RawFd {
        self.common.timer.as_raw_fd()
    }

    fn secure(&mut self, from: u64, to: u64) -> Result<(), Errno> {
        // Memory is taken when it is written; all that can be seen to is that there is as much now.
        match to {
            _ if to as usize > STORE_BYTES => Err(Errno(libc::ENOSPC)),
            _ if to - from > self.free_bytes() => Err(Errno::ENOMEM),
            _ => Ok(()),
        }
    }

    fn free_bytes(&self) -> u64 {
        nearfar_sys::process::memory_available()
    }

    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno> {
        self.child_bytes = 0;
        self.secure(0, bytes)?;
        self.child_bytes = bytes;
        Ok(())
    }

    fn forget_child(&mut self) {
        self.child_bytes = 0;
    }

    fn discard(&mut self, offset: u64, len: u64) {
        let own = self.stores[self.own() as usize].range();
        let range = Extent::new(own.start + offset as usize, len as usize);
        // SAFETY: the bytes of a freed extent of our own store: nobody reads them again before writing them.
        let _ = unsafe { map::madvise(range, libc::MADV_DONTNEED) };
    }

    fn move_now(&mut self, write: bool, store: StoreId, offset: u64, piece: Piece) -> Result<(), Errno> {
        let store = self.stores[store as usize].range().start + offset as usize;
        carry_out(&Copy { token: 0, write, store, pieces: vec![piece], due_ns: 0 });
        Ok(())
    }

    fn own(&self) -> StoreId {
        (self.stores.len() - 1) as StoreId
    }

    fn after_fork(&mut self) -> Result<u64, Errno> {
        // The stores of before are private mappings: the child has them as they were at the fork.
        self.stores.push(Self::store()?);
        std::mem::forget(std::mem::replace(&mut self.common, Self::start()?));
        Ok(std::mem::take(&mut self.child_bytes))
    }

    fn describe(&self) -> String {
        format!("emulated ({} MB/s, {} us)", self.bytes_per_s / 1_000_000, self.latency_ns / 1000)
    }

    fn fds(&self) -> Vec<RawFd> {
        vec![self.wait_fd()]
    }
}
