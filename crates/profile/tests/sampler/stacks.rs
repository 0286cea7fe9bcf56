//! Stacks that are looked at while they are run on.

use crate::feed::Feed;
use crate::memory::{Memory, value};
use nearfar_core::addr::{Extent, PAGE};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const STACK: usize = 1 << 20;
const WORDS: usize = 700;
static HANDLED: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

fn fill(words: &mut [u64; WORDS], salt: u64) {
    words.iter_mut().enumerate().for_each(|(index, word)| *word = value(index, salt));
}

fn is_whole(words: &[u64; WORDS], salt: u64) -> bool {
    black_box(words).iter().enumerate().all(|(index, &word)| word == value(index, salt))
}

/// Fills a frame of a page and a half, calls itself, and finds the frame as it was.
#[inline(never)]
fn recurse(depth: u64, salt: u64) -> u64 {
    let mut words = [0; WORDS];
    fill(&mut words, salt ^ depth);
    let below = if depth > 0 { recurse(depth - 1, salt) } else { 0 };
    assert!(is_whole(&words, salt ^ depth), "depth {depth} of {salt}");
    below + 1
}

/// A handler that uses the stack it is on, and must not allocate.
extern "C" fn handler(signal: libc::c_int) {
    let salt = HANDLED.fetch_add(1, Ordering::Relaxed) ^ signal as u64;
    let mut words = [0; WORDS];
    fill(&mut words, salt);
    WRONG.fetch_add(u64::from(!is_whole(&words, salt)), Ordering::Relaxed);
}

fn handle(signal: libc::c_int, flags: libc::c_int) {
    // SAFETY: all zeros is a valid value; a handler that does nothing but compute.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler as *const () as usize, flags | libc::SA_RESTART);
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// The upper part of the calling thread's stack, with its descriptor.
fn own_stack() -> Extent {
    let here = (&raw const *black_box(&0u8)).addr();
    // SAFETY: no arguments.
    let descriptor = unsafe { libc::pthread_self() } as usize;
    Extent { start: (here - STACK * 3 / 4) & !(PAGE - 1), end: descriptor.next_multiple_of(PAGE) }
}

/// Threads recurse, take signals on their stacks and on others, and end; all of these stacks are looked at.
pub fn stacks(feed: &Feed) {
    handle(libc::SIGUSR1, 0);
    handle(libc::SIGUSR2, libc::SA_ONSTACK);
    let others: Vec<Memory> = (0..4).map(|_| Memory::new(16)).collect();
    let running: Mutex<Vec<i32>> = Mutex::default();
    feed.repeat(|round| {
        others.iter().for_each(|other| feed.add(other.range));
        std::thread::scope(|scope| {
            let threads: Vec<_> = others
                .iter()
                .enumerate()
                .map(|(number, other)| {
                    let running = &running;
                    let body = move || {
                        feed.add(own_stack());
                        let stack = libc::stack_t { ss_sp: other.range.start as *mut _, ss_flags: 0, ss_size: other.range.len() };
                        // SAFETY: memory that lives longer than the thread; integers.
                        let tid = unsafe {
                            assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
                            libc::gettid()
                        };
                        running.lock().expect("as planned").push(tid);
                        let end = Instant::now() + Duration::from_millis(150);
                        for turn in 0.. {
                            let depth = 100 + turn % 20;
                            assert_eq!(recurse(depth, round ^ number as u64), depth + 1);
                            if turn % 10 == 9 {
                                std::thread::sleep(Duration::from_micros(500));
                            }
                            if Instant::now() > end {
                                break;
                            }
                        }
                        running.lock().expect("as planned").retain(|&other| other != tid);
                    };
                    std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body).expect("a thread")
                })
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                for (index, &tid) in running.lock().expect("as planned").iter().enumerate() {
                    let signal = if index % 2 == 0 { libc::SIGUSR1 } else { libc::SIGUSR2 };
                    // SAFETY: integers only; the thread is there while the list is locked.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) };
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        if round % 4 == 3 {
            feed.clear();
        }
    });
    let (handled, wrong) = (HANDLED.load(Ordering::Relaxed), WRONG.load(Ordering::Relaxed));
    println!("  {handled} signals");
    assert!(handled > 100 && wrong == 0, "{wrong} of {handled}");
}
