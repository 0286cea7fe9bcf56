//! Tests of the heap over a range.

use super::*;

fn area(len: usize) -> (Vec<u128>, RangeHeap) {
    let mut memory = vec![u128::MAX; len / 16];
    let range = Extent::new(memory.as_mut_ptr().addr(), len);
    // SAFETY: the vector is kept beside the heap, and not used.
    let heap = unsafe { RangeHeap::new(range, Backing::Area) };
    (memory, heap)
}

#[test]
fn blocks_of_an_area_are_inside_distinct_and_come_back() {
    let (_memory, heap) = area(4 << 20);
    for _ in 0..3 {
        let mut blocks = Vec::new();
        let mut bytes = 0;
        for at in 0.. {
            let (align, size) = (1 << (at % 13), (at * 37) % 5000);
            let block = heap.memalign(align, size);
            if block.is_null() {
                break;
            }
            assert!(block.addr().is_multiple_of(align.max(16)));
            // SAFETY: a live block.
            let usable = unsafe { RangeHeap::usable_size(block) };
            assert!(usable >= size && heap.range().contains_extent(Extent::new(block.addr(), usable)));
            // SAFETY: as above.
            unsafe { block.cast::<u8>().write_bytes(at as u8, usable) };
            blocks.push((block, usable, at as u8));
            bytes += usable as u64;
        }
        assert!(bytes > 2 << 20 && heap.live_bytes() == bytes, "{bytes}");
        for (block, usable, byte) in blocks {
            // SAFETY: live blocks, freed once.
            unsafe {
                assert!((0..usable).all(|at| block.cast::<u8>().add(at).read() == byte));
                heap.free(block);
            }
        }
        assert_eq!(heap.live_bytes(), 0);
    }
    let most = heap.zalloc(4 << 20 >> 1);
    // SAFETY: a live block.
    assert!(!most.is_null() && (0..2 << 20).all(|at| unsafe { most.cast::<u8>().add(at).read() } == 0));
    for (align, size) in [(16, usize::MAX), (1 << 40, 8), (16, 5 << 20)] {
        assert!(heap.memalign(align, size).is_null());
    }
}

#[test]
fn blocks_keep_their_content_when_they_move() {
    let (_memory, heap) = area(8 << 20);
    let mut block = heap.memalign(16, 10);
    // SAFETY: live blocks.
    unsafe {
        block.cast::<u8>().write_bytes(7, 10);
        for size in [1000, 100_000, 3 << 20, 50] {
            block = heap.realloc(block, size);
            assert!(!block.is_null() && (0..10).all(|at| block.cast::<u8>().add(at).read() == 7), "{size}");
        }
        assert!(heap.realloc(block, 9 << 20).is_null());
        heap.free(block);
    }
}

#[test]
fn small_areas_work() {
    for len in [0, 16, 64, 256, 1024, 4096, 20_000] {
        let (_memory, heap) = area(len);
        let mut bytes = 0;
        loop {
            let block = heap.memalign(16, 24);
            if block.is_null() {
                break;
            }
            assert!(heap.range().contains_extent(Extent::new(block.addr(), 32)));
            bytes += 32;
        }
        assert!(len < 1024 || bytes >= len / 3, "{len}: {bytes}");
    }
}

#[test]
fn i19_a_block_that_shrinks_by_half_gives_half_back() {
    let (_memory, heap) = area(1 << 20);
    // SAFETY: live blocks, each given up once.
    unsafe {
        let block = heap.realloc(heap.memalign(16, 1024), 512);
        assert_eq!(RangeHeap::usable_size(block), 512);
        assert_eq!(heap.realloc(block, 257), block, "more than half is used");
        heap.free(block);
        let smallest = heap.memalign(16, 16);
        assert_eq!(heap.realloc(smallest, 1), smallest, "there is no smaller one");
    }
}

#[test]
fn i19_areas_of_a_few_bytes_are_heaps_without_blocks() {
    let memory = [0u128; 2];
    let start = memory.as_ptr().addr();
    for (start, len) in [(start, 0), (start + 1, 5), (start + 15, 2), (start, 25), (usize::MAX, 0)] {
        // SAFETY: the array is kept, and not used.
        let heap = unsafe { RangeHeap::new(Extent::new(start, len), Backing::Area) };
        assert_eq!(heap.given_bytes(), len as u64);
        assert!(heap.memalign(16, 1).is_null(), "{start:x} {len}");
    }
}

#[test]
fn files_grow_to_their_limit_and_shrink() {
    let file = HeapFile::create(c"/tmp").unwrap();
    let range = map::reserve(16 << 20).expect("addresses");
    // SAFETY: reserved just now.
    let heap = unsafe { RangeHeap::new(range, Backing::File(file)) };
    for _ in 0..3 {
        let blocks: Vec<_> = std::iter::from_fn(|| {
            let block = heap.memalign(16, 1 << 20);
            // SAFETY: a live block.
            (!block.is_null()).then(|| unsafe { block.cast::<u8>().write_bytes(1, 1 << 20) })?;
            Some(block)
        })
        .collect();
        assert_eq!(blocks.len(), 15, "16 MiB less the books");
        assert!(heap.file_bytes() >= Some(15 << 20));
        // SAFETY: live blocks, once.
        blocks.into_iter().for_each(|block| unsafe { heap.free(block) });
        assert!(heap.file_bytes() < Some(5 << 20), "{:?}", heap.file_bytes());
    }
    // Nearly all, whatever lay there before.
    for size in [1_900_000, 15 << 20, 100, 15 << 20] {
        let block = heap.memalign(16, size);
        assert!(!block.is_null(), "{size}");
        // SAFETY: a live block, once.
        unsafe { heap.free(block) };
    }
    let zeros = heap.zalloc(3 << 20);
    // SAFETY: a live block.
    assert!((0..3 << 20).all(|at| unsafe { zeros.cast::<u8>().add(at).read() } == 0));
}

#[test]
fn a_child_has_a_file_of_its_own() {
    let file = HeapFile::create(c"/tmp").unwrap();
    let range = map::reserve(16 << 20).expect("addresses");
    // SAFETY: reserved just now.
    let heap = unsafe { RangeHeap::new(range, Backing::File(file)) };
    let (large, small) = (heap.memalign(16, 1 << 20), heap.memalign(16, 100));
    // SAFETY: live blocks.
    unsafe {
        large.cast::<u8>().write_bytes(7, 1 << 20);
        small.cast::<u8>().write_bytes(8, 100);
    }
    heap.lock().take();
    // SAFETY: the child does not allocate elsewhere, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        heap.part_from_parent();
        // SAFETY: the lock was taken before the fork; live blocks of the heap.
        unsafe {
            heap.lock().release();
            let same = large.cast::<u8>().add(5000).read() == 7 && small.cast::<u8>().read() == 8;
            heap.free(large);
            let blocks = [heap.memalign(16, 1 << 20), heap.memalign(16, 100), heap.memalign(16, 3 << 20)];
            let good = blocks.iter().all(|block| !block.is_null());
            blocks.iter().for_each(|block| block.cast::<u8>().write_bytes(9, 100));
            small.cast::<u8>().write_bytes(9, 100);
            libc::_exit(i32::from(!(same && good)));
        }
    }
    let mut status = -1;
    // SAFETY: our child, and a local; the lock was taken above.
    unsafe {
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        heap.lock().release();
        assert_eq!(status, 0);
        assert!((0..1 << 20).all(|at| large.cast::<u8>().add(at).read() == 7), "the parent's data are as they were");
        assert_eq!(small.cast::<u8>().read(), 8);
        heap.free(large);
        heap.free(small);
    }
    assert!(!heap.memalign(16, 1 << 20).is_null());
}
