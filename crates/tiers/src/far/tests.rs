//! Tests of far space, on a device that has so many bytes and does nothing.

use super::*;
use nearfar_sys::io::{Done, Piece};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device that has so many bytes, and does nothing.
struct Device {
    space: Arc<AtomicU64>,
    own: StoreId,
    child: u64,
}

impl Backend for Device {
    fn submit(&mut self, _: u64, _: bool, _: StoreId, _: u64, _: Vec<Piece>) {}
    fn flush(&mut self) {}
    fn completions(&mut self, _: &mut Vec<Done>) {}
    fn wait_fd(&self) -> RawFd {
        -1
    }
    fn secure(&mut self, _: u64, to: u64) -> Result<(), Errno> {
        secure_of(&self.space, to)
    }
    fn securer(&self) -> Option<crate::backend::Securer> {
        let space = Arc::clone(&self.space);
        Some(Box::new(move |_, to| secure_of(&space, to)))
    }
    fn discard(&mut self, _: u64, _: u64) {}
    fn move_now(&mut self, _: bool, _: StoreId, _: u64, _: Piece) -> Result<(), Errno> {
        Ok(())
    }
    fn own(&self) -> StoreId {
        self.own
    }
    fn free_bytes(&self) -> u64 {
        self.space.load(Ordering::Relaxed)
    }
    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno> {
        secure_of(&self.space, bytes)?;
        self.child = bytes;
        Ok(())
    }
    fn forget_child(&mut self) {
        self.child = 0;
    }
    fn after_fork(&mut self) -> Result<u64, Errno> {
        self.own += 1;
        Ok(self.child)
    }
    fn describe(&self) -> String {
        "test".to_owned()
    }
    fn fds(&self) -> Vec<RawFd> {
        Vec::new()
    }
}

fn secure_of(space: &AtomicU64, to: u64) -> Result<(), Errno> {
    if to <= space.load(Ordering::Relaxed) { Ok(()) } else { Err(Errno(libc::ENOSPC)) }
}

fn far_in(space: &Arc<AtomicU64>) -> Far {
    Far::new(Box::new(Device { space: Arc::clone(space), own: 0, child: 0 }), FarAccount::default())
}

pub(crate) fn far(blocks: u64) -> Far {
    far_in(&Arc::new(AtomicU64::new((blocks + KEPT) * BLOCK as u64)))
}

/// Keeps ahead until all that was begun has ended.
fn settle(far: &mut Far) {
    for _ in 0..64 {
        far.keep_ahead();
        far.rest();
    }
}

#[test]
fn the_last_block_of_a_small_device_can_be_had() {
    let mut far = far(3);
    let places: Vec<_> = (0..3).map(|_| far.allocate().expect("space")).collect();
    assert_eq!(far.allocate(), Err(Errno(libc::ENOSPC)));
    far.free(places[1]);
    assert_eq!(far.allocate(), Ok(places[1]));
}

#[test]
fn a_place_with_operations_under_way_is_not_handed_out() {
    let mut far = far(2);
    let place = far.allocate().expect("space");
    far.submit(1, true, place, 0, Vec::new());
    far.free(place);
    assert_ne!(far.allocate(), Ok(place));
    far.ended(place);
    assert_eq!(far.allocate(), Ok(place));
}

#[test]
fn a_spoilt_place_is_neither_written_nor_handed_out() {
    let mut far = far(2);
    let place = far.allocate().expect("space");
    far.spoil(place);
    assert!(far.is_frozen(place));
    far.free(place);
    assert_eq!(far.check([].into_iter(), &HashMap::<Place, u32>::new()), Ok(()));
    assert_ne!(far.allocate(), Ok(place));
    assert_eq!(far.allocate(), Err(Errno(libc::ENOSPC)));
}

#[test]
fn what_a_living_fork_reads_is_frozen_until_it_is_gone() {
    let mut far = far(8);
    let (old, freed) = (far.allocate().expect("space"), far.allocate().expect("space"));
    let (reader, writer) = Far::fork_pipe().expect("pipe");
    far.froze(reader);
    let young = far.allocate().expect("space");
    assert!(far.is_frozen(old) && !far.is_frozen(young));
    far.free(freed);
    assert_ne!(far.allocate(), Ok(freed), "a fork may still read it");
    far.reap_forks();
    assert!(far.is_frozen(old));
    drop(writer);
    far.reap_forks();
    assert!(!far.is_frozen(old));
    assert_eq!(far.allocate(), Ok(freed));
}

#[test]
fn a_child_never_writes_places_of_its_ancestors() {
    let mut far = far(8);
    let old = far.allocate().expect("space");
    far.after_fork(None, None).expect("store");
    assert!(far.is_frozen(old));
    far.free(old);
    let own = far.allocate().expect("space");
    assert_eq!((own.store, far.is_frozen(own)), (1, false));
    assert_eq!(far.used_bytes(), BLOCK as u64);
}

const MIB: u64 = 1 << 20;

#[test]
fn space_is_secured_before_it_is_asked_for() {
    let mut far = far(4096);
    settle(&mut far);
    assert!(far.secured_bytes() >= 64 * MIB && far.secured_bytes() < 200 * MIB, "{}", far.secured_bytes());
    (0..32).for_each(|_| _ = far.allocate().expect("space"));
    settle(&mut far);
    assert!(far.spare_places() * BLOCK as u64 >= 64 * MIB && far.short().is_none());
}

#[test]
fn another_thread_secures_space_where_there_is_one() {
    let mut far = far(4096);
    drop(std::thread::spawn(far.reserve().helper()));
    settle(&mut far);
    assert!(far.secured_bytes() >= 64 * MIB);
    (0..200).for_each(|_| _ = far.allocate().expect("space"));
    assert!(far.secured_bytes() >= 200 * BLOCK as u64);
}

#[test]
fn shortage_begins_and_ends() {
    let space = Arc::new(AtomicU64::new(40 * MIB));
    let mut far = far_in(&space);
    settle(&mut far);
    // All of it was had, in ever smaller steps, and that there is no more is known before it is used up.
    assert_eq!((far.secured_bytes(), far.short()), (40 * MIB, Some(Errno(libc::ENOSPC))));
    assert!(far.hold(36 * MIB).is_err());
    assert_eq!(far.secured_bytes(), 40 * MIB, "nothing changes by asking");
    space.store(1 << 30, Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(250));
    settle(&mut far);
    assert_eq!(far.short(), None);
    far.hold(512 * MIB).expect("space is there again");
    assert!(far.usable_bytes() >= 512 * MIB);
}

#[test]
fn what_is_held_can_be_used() {
    for mib in [0, 1, 2, 13, 14, 15, 100, 1000, 12345] {
        let mut far = far(100_000);
        far.hold(mib * MIB).expect("space");
        assert!(far.usable_bytes() >= mib * MIB, "{mib} MiB");
    }
}

#[test]
fn a_fork_is_promised_room_for_both_sides() {
    let mut far = far(100);
    far.hold(80 * MIB).expect("space");
    (0..40).for_each(|_| _ = far.allocate().expect("space"));
    far.hold_for_fork(80 * MIB).expect("space for parent and child");
    let (reader, _writer) = Far::fork_pipe().expect("pipe");
    far.froze(reader);
    assert!(far.usable_bytes() >= 80 * MIB, "all can be written anew while the child lives");
    far.after_fork(None, None).expect("a store");
    assert!(far.usable_bytes() >= 80 * MIB && far.used_bytes() == 0);

    let mut far = self::far(60);
    far.hold(80 * MIB).expect("space");
    (0..40).for_each(|_| _ = far.allocate().expect("space"));
    assert_eq!(far.hold_for_fork(80 * MIB), Err(Errno(libc::ENOSPC)));
}

#[test]
fn the_cleaner_has_places_that_others_have_not() {
    let mut far = far(3);
    (0..3).for_each(|_| _ = far.allocate().expect("space"));
    assert!(far.allocate().is_err());
    (0..KEPT).for_each(|_| _ = far.allocate_kept().expect("kept for the cleaner"));
    assert!(far.allocate_kept().is_err());
}
