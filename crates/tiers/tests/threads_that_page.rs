//! Managed memory without the preloaded library: threads of one process allocate, write, discard, move and free at once, in four
//! times as much memory as near. Small enough to run under ThreadSanitizer (`make tsan`).

#![cfg(not(loom))]

use nearfar_core::stats::Counter;
use nearfar_sys::kernel;
use nearfar_sys::uffd::FaultScope;
use nearfar_tiers::job::{Job, Settings};
use nearfar_tiers::memory::Memory;

const NEAR: u64 = 16 << 20;
const EACH: usize = 16 << 20;
const THREADS: usize = 4;
const ROUNDS: usize = 3;
const PAGE: usize = 4096;

fn value(thread: usize, round: usize, word: usize) -> u64 {
    ((thread * 31 + round) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word as u64
}

fn word(addr: usize, index: usize) -> *mut u64 {
    (addr as *mut u64).wrapping_add(index)
}

/// A word in every 512 bytes: enough to tell pages apart, little enough for a sanitizer.
fn words(len: usize) -> impl Iterator<Item = usize> {
    (0..len / 8).step_by(64)
}

fn fill(addr: usize, len: usize, thread: usize, round: usize) {
    // SAFETY: the caller owns `len` bytes at `addr`.
    words(len).for_each(|index| unsafe { word(addr, index).write(value(thread, round, index)) });
}

#[track_caller]
fn verify(addr: usize, len: usize, thread: usize, round: usize) {
    for index in words(len) {
        // SAFETY: the caller owns `len` bytes at `addr`.
        let found = unsafe { word(addr, index).read() };
        assert_eq!(found, value(thread, round, index), "thread {thread}, round {round}, word {index}");
    }
}

fn churn(memory: Memory, thread: usize) {
    let (mut block, zeroed) = memory.alloc(EACH, PAGE, 0).expect("address space");
    // SAFETY: a block of our own.
    assert!(!zeroed || words(EACH).all(|index| unsafe { word(block, index).read() } == 0), "fresh memory is not zero");
    for round in 0..ROUNDS {
        fill(block, EACH, thread, round);
        verify(block, EACH, thread, round);
        // A mapping that comes and goes beside it, partly discarded and partly unmapped.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping, used by this thread alone, and only where it is mapped.
        unsafe {
            let map = memory.mmap(0, 4 << 20, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0).expect("mmap");
            fill(map, 4 << 20, thread + 100, round);
            memory.madvise(map + (1 << 20), 1 << 20, libc::MADV_DONTNEED).expect("madvise");
            verify(map, 1 << 20, thread + 100, round);
            assert!(words(1 << 20).all(|index| word(map + (1 << 20), index).read() == 0), "discarded memory is not zero");
            memory.munmap(map + (2 << 20), 1 << 20).expect("munmap");
            memory.munmap(map, 2 << 20).expect("munmap");
            memory.munmap(map + (3 << 20), 1 << 20).expect("munmap");
        }
        verify(block, EACH, thread, round);
        // Longer and back again: the content follows.
        block = memory.resize(block, EACH + (2 << 20), 0).expect("address space");
        verify(block, EACH, thread, round);
        block = memory.resize(block, EACH, 0).expect("shrinks in place");
    }
    verify(block, EACH, thread, ROUNDS - 1);
    assert!(memory.free(block));
}

#[test]
fn threads_allocate_write_discard_and_free() {
    match kernel::paging(kernel::Denied(0)).scope {
        Ok(FaultScope::UserAndKernel) => {}
        other => {
            println!("skipped: needs a userfaultfd that serves the kernel: {other:?}");
            return;
        }
    }
    let mut settings = Settings::new(NEAR, "/var/tmp").expect("short path");
    settings.check_rounds = 200;
    let (job, _segment) = Job::create(settings).expect("memfd");
    let memory = Memory::start(job, std::process::id()).expect("memory");
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|thread| drop(scope.spawn(move || churn(memory, thread))));
    });
    memory.finish();
    let (snapshot, _) = job.snapshot();
    assert!(snapshot.get(Counter::BytesOut) > 0 && snapshot.get(Counter::BytesIn) > 0, "nothing was paged");
    assert!(snapshot.get(Counter::Checks) > 0, "the page table was not checked");
}
