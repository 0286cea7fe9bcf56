//! Other processes that share the memory, or get a copy.

use crate::feed::Feed;
use crate::memory::Memory;
use nearfar_core::addr::PAGE;
use nearfar_core::random_numbers::Random;
use nearfar_profile::sampler::Look;
use std::time::Duration;

fn wait_for(child: i32) {
    let mut status = 0;
    // SAFETY: a child of ours; fills a local.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's status");
}

fn exit(good: bool) -> ! {
    // SAFETY: ends the child.
    unsafe { libc::_exit(i32::from(!good)) }
}

fn holds(memory: &Memory, salt: u64) -> bool {
    // SAFETY: our own mapping.
    (0..memory.words()).all(|index| unsafe { memory.word(index).read_volatile() } == crate::memory::value(index, salt))
}

/// As the library does it; the child checks everything and is looked at too.
pub fn forks(feed: &Feed) {
    let memory = Memory::new(512);
    feed.add(memory.range);
    let mut seen = 0u32;
    feed.repeat(|round| {
        memory.fill(round);
        std::thread::sleep(Duration::from_millis(25));
        feed.sampler.fork_prepare();
        // SAFETY: the child calls nothing that another thread may hold a lock of but malloc, which the C library takes care of.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let started = feed.sampler.fork_child().is_ok();
            let good = holds(&memory, round) && sampled(feed, &memory, round);
            exit(started && good);
        }
        feed.sampler.fork_parent();
        memory.fill(round + 1);
        wait_for(child);
        memory.check(round + 1);
        seen += 1;
    });
    assert!(seen > 5, "{seen} forks");
}

/// In the child: pages are looked at, and their content stays.
fn sampled(feed: &Feed, memory: &Memory, salt: u64) -> bool {
    // What is shared with the parent cannot be moved: the child's own is.
    memory.fill(salt + 9);
    let mut random = Random::new(salt);
    for _ in 0..40 {
        for _ in 0..(feed.sampler.rate() * 0.001).ceil().min(100.0) as usize {
            let page = memory.range.start + random.below(memory.pages() as u64) as usize * PAGE;
            feed.sampler.offer(Look { object: 1, page, huge: false, fine: 0 });
        }
        feed.sampler.begin_looks();
        std::thread::sleep(Duration::from_millis(1));
        if !holds(memory, salt + 9) {
            return false;
        }
    }
    feed.sampler.pause();
    feed.sampler.resume();
    let touched = std::iter::from_fn(|| feed.sampler.take()).filter(|watch| watch.touched != 0).count();
    if touched == 0 {
        println!("  nothing was touched in a child");
    }
    touched > 0
}

fn may_trace() -> bool {
    const CAP_SYS_PTRACE: u64 = 19;
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    u64::from_str_radix(line.trim(), 16).expect("a number") >> CAP_SYS_PTRACE & 1 == 1
}

/// By the bare system call: the child's pages come with the event, where the sampler may have it. Elsewhere
/// (`setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace`) a touch of a page that is out of view stops the child.
pub fn raw_forks(feed: &Feed) {
    let sees_forks = may_trace();
    let (mut good, mut stopped) = (0, 0);
    let memory = Memory::new(512);
    feed.add(memory.range);
    feed.repeat(|round| {
        memory.fill(round);
        std::thread::sleep(Duration::from_millis(25));
        // SAFETY: the child only reads memory and ends.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
        if child == 0 {
            let first = holds(&memory, round);
            memory.fill(round + 5);
            exit(first && holds(&memory, round + 5));
        }
        memory.check(round);
        memory.fill(round + 1);
        let mut status = 0;
        // SAFETY: a child of ours; fills a local.
        assert_eq!(i64::from(unsafe { libc::waitpid(child as i32, &mut status, 0) }), child);
        if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV && !sees_forks {
            stopped += 1;
        } else {
            assert_eq!(status, 0, "the child's status");
            good += 1;
        }
        memory.check(round + 1);
    });
    println!("  {good} children with all pages, {stopped} stopped");
}

/// posix_spawn, with arguments that lie in pages that are looked at.
pub fn spawns(feed: &Feed) {
    let memory = Memory::new(64);
    memory.fill(3);
    feed.add(memory.range);
    feed.repeat(|_| {
        let text = memory.range.start as *mut u8;
        // SAFETY: our own mapping, longer than that.
        unsafe { text.copy_from(c"test 1 = 1".as_ptr().cast(), 11) };
        std::thread::sleep(Duration::from_millis(5));
        let argv = [c"sh".as_ptr(), c"-c".as_ptr(), text.cast_const().cast(), std::ptr::null()];
        let environment = [std::ptr::null_mut()];
        let mut child = 0;
        // SAFETY: strings and arrays that live through the call.
        let result = unsafe {
            let (path, argv) = (c"/bin/sh".as_ptr(), argv.as_ptr().cast());
            libc::posix_spawn(&mut child, path, std::ptr::null(), std::ptr::null(), argv, environment.as_ptr())
        };
        assert_eq!(result, 0);
        wait_for(child);
        memory.check_part(2, memory.words(), |index| crate::memory::value(index, 3));
    });
}
