//! What a program may do to its memory by itself.

use crate::feed::Feed;
use crate::memory::{Memory, value};
use nearfar_core::addr::{BLOCK_PAGES, Extent, PAGE};
use nearfar_core::random_numbers::Random;
use nearfar_sys::map;
use std::io::{Read, Write};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE_WORDS: usize = PAGE / 8;

/// Each thread goes through its own part of one array, checks every word and writes the next value.
pub fn writers(feed: &Feed) {
    let memory = Memory::new(4096);
    memory.fill(0);
    feed.add(memory.range);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let memory = &memory;
            scope.spawn(move || {
                let part = memory.words() / 4;
                feed.repeat(|round| {
                    for index in thread * part..(thread + 1) * part {
                        // SAFETY: within the mapping, and this thread's.
                        unsafe {
                            let got = memory.word(index).read_volatile();
                            assert!(got == value(index, round), "word {index} in round {round}: {got:x}");
                            memory.word(index).write_volatile(value(index, round + 1));
                        }
                    }
                });
            });
        }
    });
}

/// Threads map, fill, check and unmap, also over what is mapped, and get the same addresses again and again.
pub fn churn(feed: &Feed) {
    let home = Memory::new(2048);
    feed.add(home.range);
    // The C library must not get a hole that is about to be mapped over.
    let holes = RwLock::new(());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (home, holes) = (&home, &holes);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                feed.repeat(|round| {
                    let first = thread as usize * 512 + random.below(256) as usize;
                    let pages = 1 + random.below(200) as usize;
                    let range = Extent::new(home.range.start + first * PAGE, pages * PAGE);
                    let hole = holes.write().expect("as planned");
                    if round % 2 == 0 {
                        // SAFETY: our own mapping, and this thread's part of it.
                        unsafe { map::munmap(range) }.expect("munmap");
                    }
                    // SAFETY: as before.
                    unsafe { map::mmap(range.start, range.len(), map::RW, map::ANON | libc::MAP_FIXED, -1, 0) }.expect("mmap");
                    drop(hole);
                    let (from, to) = (first * PAGE_WORDS, (first + pages) * PAGE_WORDS);
                    home.check_part(from, to, |_| 0);
                    home.fill_part(from, to, round);
                    home.check_part(from, to, |index| value(index, round));
                    // The C library's own: the top of its heap moves, large blocks come and go.
                    let block = {
                        let _no_hole = holes.read().expect("as planned");
                        vec![round; 1 + random.below(60_000) as usize]
                    };
                    assert!(block.iter().all(|&word| word == round));
                });
            });
        }
    });
}

fn remap(feed: &Feed, held: bool) {
    let mut random = Random::new(5);
    let mut refused = 0;
    let mut total = 0;
    feed.repeat(|round| {
        let pages = 1 + random.below(300) as usize * u64::from(round % 3 > 0) as usize;
        let mut memory = Memory::new(pages);
        memory.fill(round);
        feed.add(memory.range);
        for _ in 0..4 {
            let old = memory.range;
            let len = (memory.pages() + random.below(50) as usize) * PAGE;
            let hold = held.then(|| feed.sampler.hold(old.start, old.len()));
            // SAFETY: our own mapping.
            let moved = unsafe { map::mremap(old, len, libc::MREMAP_MAYMOVE, 0) };
            drop(hold);
            total += 1;
            match moved {
                Ok(start) => {
                    memory.range = Extent::new(start, len);
                    let all = old.len() / 8;
                    memory.check_part(0, all, |index| value(index, round));
                    memory.check_part(all, memory.words(), |_| 0);
                    memory.fill_part(all, memory.words(), round);
                }
                // A range with a page that is looked at.
                Err(errno) if errno.0 == libc::EFAULT && !held => refused += 1,
                Err(errno) => panic!("mremap: {errno}"),
            }
            feed.add(memory.range);
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        memory.check(round);
        if round % 16 == 0 {
            feed.clear();
        }
    });
    println!("  {refused} of {total} refused");
}

/// Arrays grow and move; the sampler leaves them alone meanwhile.
pub fn mremap_held(feed: &Feed) {
    remap(feed, true);
}

/// As before, but nobody tells the sampler: the kernel may refuse, and does.
pub fn mremap_free(feed: &Feed) {
    remap(feed, false);
}

/// What was discarded reads as zeros, the rest as it was.
pub fn discard(feed: &Feed) {
    let memory = Memory::new(1024);
    feed.add(memory.range);
    let mut random = Random::new(6);
    feed.repeat(|round| {
        memory.fill(round);
        std::thread::sleep(std::time::Duration::from_millis(3));
        let first = random.below(1000) as usize;
        let last = first + 1 + random.below(24) as usize;
        let range = Extent::new(memory.range.start + first * PAGE, (last - first) * PAGE);
        let advice = if round % 4 == 3 { libc::MADV_FREE } else { libc::MADV_DONTNEED };
        // SAFETY: our own mapping.
        unsafe { map::madvise(range, advice) }.expect("madvise");
        let (from, to) = (first * PAGE_WORDS, last * PAGE_WORDS);
        memory.check_part(0, from, |index| value(index, round));
        memory.check_part(to, memory.words(), |index| value(index, round));
        if advice == libc::MADV_DONTNEED {
            memory.check_part(from, to, |_| 0);
        } else {
            memory.fill_part(from, to, round + 1);
            memory.check_part(from, to, |index| value(index, round + 1));
        }
    });
}

/// Read-only and inaccessible for a while, and written again.
pub fn protections(feed: &Feed) {
    let memory = Memory::new(512);
    feed.add(memory.range);
    feed.repeat(|round| {
        memory.fill(round);
        std::thread::sleep(std::time::Duration::from_millis(2));
        memory.protect(libc::PROT_READ);
        memory.check(round);
        memory.protect(libc::PROT_NONE);
        std::thread::sleep(std::time::Duration::from_millis(2));
        if round % 4 == 0 {
            feed.sampler.pause();
            feed.sampler.resume();
        }
        memory.protect(libc::PROT_READ);
        memory.check(round);
        memory.protect(map::RW);
    });
}

/// mlock and munlock while pages are looked at.
pub fn locks(feed: &Feed) {
    let memory = Memory::new(256);
    feed.add(memory.range);
    feed.repeat(|round| {
        memory.fill(round);
        std::thread::sleep(std::time::Duration::from_millis(2));
        // SAFETY: our own mapping.
        assert_eq!(unsafe { libc::mlock(memory.range.start as *const _, memory.range.len()) }, 0);
        memory.check(round);
        std::thread::sleep(std::time::Duration::from_millis(1));
        // SAFETY: our own mapping.
        assert_eq!(unsafe { libc::munlock(memory.range.start as *const _, memory.range.len()) }, 0);
        memory.check(round);
    });
}

/// One thread writes from pages that are looked at into a pipe, another reads into such pages.
pub fn pipes(feed: &Feed) {
    let (source, target) = (Memory::new(256), Memory::new(256));
    source.fill(1);
    feed.add(source.range);
    feed.add(target.range);
    let (mut reader, mut writer) = std::io::pipe().expect("pipe");
    // SAFETY: mappings that live through the scope; the reader's is its own.
    let (from, to) = unsafe {
        let from = std::slice::from_raw_parts(source.range.start as *const u8, source.range.len());
        (from, std::slice::from_raw_parts_mut(target.range.start as *mut u8, target.range.len()))
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            feed.repeat(|_| writer.write_all(from).expect("written"));
        });
        while reader.read_exact(to).is_ok() {
            target.check(1);
        }
    });
}

/// Huge pages, whole; parts of them are discarded and unmapped.
pub fn huge(feed: &Feed) {
    let memory = Memory::aligned(16 * BLOCK_PAGES);
    // SAFETY: our own mapping.
    let _ = unsafe { map::madvise(memory.range, libc::MADV_HUGEPAGE) };
    feed.add(memory.range);
    let mut random = Random::new(8);
    feed.repeat(|round| {
        memory.fill(round);
        for _ in 0..20 {
            let page = random.below(memory.pages() as u64) as usize;
            let range = Extent::new(memory.range.start + page * PAGE, PAGE);
            match random.below(12) {
                // SAFETY: our own mapping.
                0 => unsafe { map::madvise(range, libc::MADV_DONTNEED) }.expect("madvise"),
                1 => {
                    // SAFETY: our own mapping.
                    unsafe { map::mmap(range.start, PAGE, map::RW, map::ANON | libc::MAP_FIXED, -1, 0) }.expect("mmap");
                }
                _ => {
                    let (from, to) = (page * PAGE_WORDS, (page + 1) * PAGE_WORDS);
                    memory.check_part(from, to, |index| value(index, round));
                    continue;
                }
            }
            let (from, to) = (page * PAGE_WORDS, (page + 1) * PAGE_WORDS);
            memory.check_part(from, to, |_| 0);
            memory.fill_part(from, to, round);
        }
        memory.check(round);
        if round % 4 == 3 {
            // Whole again.
            // SAFETY: our own mapping.
            unsafe { map::madvise(memory.range, libc::MADV_DONTNEED) }.expect("madvise");
        }
    });
}

/// Huge pages that are updated in place: of the visits that begin with a read, it is seen that they write.
pub fn huge_updated(feed: &Feed) {
    let memory = Memory::aligned(16 * BLOCK_PAGES);
    // SAFETY: our own mapping.
    let _ = unsafe { map::madvise(memory.range, libc::MADV_HUGEPAGE) };
    memory.fill(0);
    let before = feed.counts();
    feed.add(memory.range);
    feed.repeat(|round| {
        for index in 0..memory.words() {
            let word = memory.word(index);
            // SAFETY: our own mapping.
            let old = std::hint::black_box(unsafe { word.read_volatile() });
            // SAFETY: our own mapping.
            unsafe { word.write_volatile(old ^ value(index, round) ^ value(index, round + 1)) };
        }
        memory.check(round + 1);
    });
    let seen = feed.counts().since(before);
    // Checking reads as well. Where there are no huge pages, nothing is seen of them.
    assert!(seen.huge < 500 || seen.huge_followed > 0, "{seen:?}");
    // Every other look is at a small page of the one that may be split.
    assert!(seen.huge < 500 || seen.read + seen.write > seen.huge + seen.huge / 5, "{seen:?}");
    assert!(seen.huge_followed < 60 || seen.huge_wrote * 5 > seen.huge_followed, "{seen:?}");
}

/// All of the process is looked at: heaps, stacks, descriptors of threads that come and go.
pub fn everything(feed: &Feed) {
    feed.add_everything();
    feed.repeat(|round| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                std::thread::spawn(move || {
                    let text: Vec<String> = (0..500).map(|number| format!("{thread} {number} {round}")).collect();
                    std::thread::sleep(std::time::Duration::from_millis(3));
                    let mut on_stack = [round; 4096];
                    on_stack[round as usize % 4096] += 1;
                    assert_eq!(on_stack.iter().sum::<u64>(), round * 4096 + 1);
                    text.concat().len()
                })
            })
            .collect();
        let ended: usize = threads.into_iter().map(|thread| thread.join().expect("ended")).sum();
        assert!(ended > 0);
    });
    feed.clear();
}

/// A word that threads sleep on.
pub fn futexes(feed: &Feed) {
    let memory = Memory::new(2);
    feed.add(memory.range);
    // SAFETY: a word of our own mapping.
    let word = unsafe { &*(memory.range.start as *const AtomicU32) };
    let futex = |op: i32, value: u32| {
        let op = op | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: a word that lives; no time limit.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, value, std::ptr::null::<libc::timespec>()) };
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut seen = 0;
            while seen != u32::MAX {
                futex(libc::FUTEX_WAIT, seen);
                seen = word.load(Ordering::Acquire);
            }
        });
        feed.repeat(|round| {
            word.store(round as u32, Ordering::Release);
            futex(libc::FUTEX_WAKE, 1);
        });
        word.store(u32::MAX, Ordering::Release);
        while !waiter.is_finished() {
            futex(libc::FUTEX_WAKE, 1);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
}

/// mlockall: also the memory in which pages are while nobody sees them.
pub fn lock_all(feed: &Feed) {
    let memory = Memory::new(256);
    memory.fill(0);
    feed.add(memory.range);
    for round in 0..3 {
        // SAFETY: flags only.
        if unsafe { libc::mlockall(libc::MCL_CURRENT) } != 0 {
            return println!("  skipped: memory cannot be locked");
        }
        let more = Memory::new(64);
        feed.add(more.range);
        feed.repeat(|inner| {
            if inner < 200 {
                memory.check(round);
                more.fill(inner);
                more.check(inner);
            } else {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        memory.fill(round + 1);
        // SAFETY: no arguments.
        unsafe { libc::munlockall() };
        memory.check(round + 1);
        feed.clear();
        feed.add(memory.range);
    }
}
