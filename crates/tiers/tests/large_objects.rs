//! The large objects of a process, as `nearfar top` sees them: what becomes of them in the life of blocks, and in the child of a fork.

#![cfg(not(loom))]

use nearfar_sys::process;
use nearfar_tiers::job::objects::Object;
use nearfar_tiers::job::{Job, Settings};
use nearfar_tiers::memory::Memory;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;

/// What this process has, as (address, MiB, site).
fn brief(job: Job) -> Vec<(usize, usize, u64)> {
    list(job).iter().map(|object| (object.start as usize, object.bytes as usize / MIB, object.site)).collect()
}

fn list(job: Job) -> Vec<Object> {
    let own = job.members().find(|(pid, _)| *pid == process::pid());
    own.map_or(Vec::new(), |(_, slot)| slot.objects().list())
}

#[test]
fn blocks_are_objects_while_they_live() {
    let (job, _segment) = Job::create(Settings::new(256 << 20, "/var/tmp").expect("short path")).expect("memfd");
    let memory = Memory::start(job, process::pid()).expect("memory");
    let alloc = |bytes: usize, site: usize| memory.alloc(bytes, PAGE, site).expect("address space").0;
    let (first, _small) = (alloc(2 * MIB, 7), alloc(MIB / 2, 8));
    assert_eq!(brief(job), [(first, 2, 7)]);
    assert!(memory.free(first));
    assert_eq!(brief(job), []);
    // The address is the same again, kept for this; the object is another.
    let again = alloc(2 * MIB, 9);
    assert_eq!((brief(job), list(job)[0].number), (vec![(again, 2, 9)], 2));
    let _behind = alloc(4 * MIB, 10);
    let moved = memory.resize(again, 8 * MIB, 11).expect("address space");
    assert!(brief(job).contains(&(moved, 8, 9)), "{:?}", list(job));
    let grown = memory.resize(alloc(MIB / 2, 12), 3 * MIB, 13).expect("address space");
    assert!(brief(job).contains(&(grown, 3, 13)), "{:?}", list(job));
    assert_eq!(memory.resize(grown, MIB / 2, 14), Some(grown));
    assert!(brief(job).iter().all(|object| object.0 != grown), "{:?}", list(job));

    // SAFETY: the block is ours, and the advice changes only what a fork inherits.
    unsafe { memory.madvise(moved, 8 * MIB, libc::MADV_DONTFORK) }.expect("madvise");
    let before = brief(job);
    memory.fork_prepare();
    // SAFETY: the child calls nothing that another thread of this process could hold.
    let child = unsafe { libc::fork() };
    if child == 0 {
        memory.fork_child();
        let kept: Vec<_> = before.into_iter().filter(|object| object.0 != moved).collect();
        let right = brief(job) == kept && kept.len() == 1;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if right { 0 } else { 1 }) }
    }
    memory.fork_parent();
    let mut status = 0;
    // SAFETY: waits for our child, and fills a local.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's objects are those it has");
    assert_eq!(brief(job), before);
}
