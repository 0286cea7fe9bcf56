//! Vectors and allocators against a libnearfar.so, without a job.
#![allow(clippy::unwrap_used)]

use nearfar_alloc::{FarVec, Near, NearVec, Tier, capacity, describe, tiers, version, where_is};
use std::alloc::{GlobalAlloc, Layout};
use std::rc::Rc;

#[test]
fn a_vector_holds_what_was_put_in() {
    let mut data: NearVec<u64> = (0..100_000).collect();
    data.extend(100_000..200_000);
    assert!(data.iter().copied().eq(0..200_000));
    assert_eq!((data.pop(), data.len()), (Some(199_999), 199_999));
    data.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
    assert_eq!(data[..2], [199_998, 199_997]);
    assert_eq!(data.clone(), data);
    let found = where_is(&data);
    assert_eq!(found.near + found.far + found.absent + found.unknown, size_of_val(&*data) as u64);
    assert_eq!(found.absent, 0, "{found:?}");
}

#[test]
fn elements_are_dropped_once() {
    let one = Rc::new(());
    let mut data = FarVec::filled(10, Rc::clone(&one));
    assert_eq!(Rc::strong_count(&one), 11);
    data.truncate(4);
    drop(data.pop());
    assert_eq!(Rc::strong_count(&one), 4);
    drop(data);
    assert_eq!(Rc::strong_count(&one), 1);
}

#[test]
fn zeros_are_not_touched() {
    let data = NearVec::<f64>::zeroed(1 << 24);
    let found = where_is(&data);
    assert!(found.unknown > 0 || found.absent > found.near, "{found:?}");
    assert!(data.iter().all(|&value| value == 0.0));
}

#[test]
fn types_without_size_and_with_large_alignment() {
    assert_eq!(NearVec::filled(7, ()).len(), 7);
    #[repr(align(4096))]
    #[derive(Clone, Debug, PartialEq)]
    struct Page(u8);
    let pages: NearVec<Page> = (0..20).map(Page).collect();
    assert_eq!(pages.as_ptr().addr() % 4096, 0);
    assert_eq!(pages[19], Page(19));
}

#[test]
fn impossible_sizes_are_refused() {
    let refusal = NearVec::<u64>::try_with_capacity(usize::MAX / 4).unwrap_err();
    assert_eq!(refusal.tier, Tier::Near);
    assert!(refusal.to_string().contains("near memory cannot be had"), "{refusal}");
}

#[test]
fn memory_comes_back() {
    // Other tests run in the same process, with less than this.
    let used = || capacity(Tier::Far).used;
    let data = FarVec::<u8>::zeroed(1 << 30);
    assert!(used() >= 1 << 30);
    drop(data);
    assert!(used() < 1 << 29);
}

#[test]
fn a_global_allocator() {
    let layout = Layout::from_size_align(100_000, 64).unwrap();
    // SAFETY: blocks of the layout that they are given back with.
    unsafe {
        let block = Near.alloc_zeroed(layout);
        assert_eq!((block.addr() % 64, *block.add(99_999)), (0, 0));
        block.write(7);
        let block = Near.realloc(block, layout, 300_000);
        assert_eq!((block.addr() % 64, *block), (0, 7));
        Near.dealloc(block, Layout::from_size_align(300_000, 64).unwrap());
    }
}

#[test]
fn questions() {
    assert!(describe().contains("near"), "{}", describe());
    assert!(matches!(tiers(), Some(1 | 2)));
    assert!(version() >= 100);
    assert!(capacity(Tier::Near).total.is_some_and(|bytes| bytes > 1 << 20));
}
