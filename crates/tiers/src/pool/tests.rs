//! Pools on this machine's node 0, or without a policy where NUMA calls are not allowed.

use super::*;
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa::PolicyMode;
use std::time::Instant;

fn pool() -> &'static Pool {
    static POOL: std::sync::OnceLock<&'static Pool> = std::sync::OnceLock::new();
    POOL.get_or_init(|| {
        let policy = MemoryPolicy::new(PolicyMode::Bind, NodeSet::from_iter([0]));
        let bound = Pool::create(&PoolSpec { policy: Some(policy), ..PoolSpec::default() });
        bound.or_else(|_| Pool::create(&PoolSpec::default())).expect("address space")
    })
}

fn fill(block: *mut c_void, len: usize, byte: u8) {
    // SAFETY: tests pass live blocks of that size.
    unsafe { block.cast::<u8>().write_bytes(byte, len) };
}

fn byte(block: *mut c_void, at: usize) -> u8 {
    // SAFETY: as above.
    unsafe { block.cast::<u8>().add(at).read() }
}

/// Frees.
fn free(block: *mut c_void) {
    // SAFETY: tests pass live blocks, once.
    unsafe { Pool::free(block) }
}

#[test]
fn blocks_of_all_sizes_lie_in_the_pool() {
    let pool = pool();
    let sizes = [0, 1, 8, 16, 24, 100, 4096, 65536, 65537, 1 << 20, 3 << 20, 17 << 20, 100 << 20];
    let blocks: Vec<_> = sizes
        .iter()
        .map(|&size| {
            let block = pool.malloc(size);
            assert!(!block.is_null() && block.addr().is_multiple_of(16) && pool.range().contains(block.addr()), "{size}");
            assert!(Pool::of(block.addr()).is_some_and(|found| found.id() == pool.id()));
            // SAFETY: a live block.
            assert!(unsafe { Pool::usable_size(block) } >= size);
            fill(block, size, size as u8);
            block
        })
        .collect();
    for (&size, &block) in sizes.iter().zip(&blocks) {
        assert!(size == 0 || (byte(block, 0) == size as u8 && byte(block, size - 1) == size as u8));
        free(block);
    }
    assert!(pool.memalign(2 * MOST_ALIGN, 1).is_null());
    assert!(Pool::of(&raw const sizes as usize).is_none());
    assert!(pool.malloc(usize::MAX).is_null() && pool.zalloc(1 << 50).is_null());
}

#[test]
fn zeros_and_alignments() {
    let pool = pool();
    for size in [1, 4096, 1 << 20, 40 << 20] {
        for _ in 0..3 {
            let block = pool.zalloc(size);
            assert!((0..size).step_by(97).all(|at| byte(block, at) == 0), "{size}");
            fill(block, size, 7);
            free(block);
        }
    }
    for align in [32, 4096, 2 << 20, MOST_ALIGN] {
        for size in [1, 100_000, 5 << 20] {
            let block = pool.memalign(align, size);
            assert!(!block.is_null() && block.addr().is_multiple_of(align), "{align} {size}");
            fill(block, size, 1);
            free(block);
        }
    }
}

#[test]
fn blocks_move_with_their_contents() {
    let pool = pool();
    let mut block = pool.malloc(10);
    fill(block, 10, 5);
    for size in [100, 70_000, 5 << 20, 200_000, 20] {
        // SAFETY: a live block.
        block = unsafe { pool.realloc(block, size) };
        assert!((0..10).all(|at| byte(block, at) == 5), "{size}");
    }
    free(block);
}

#[test]
fn threads_share_blocks_and_leave_none_behind() {
    let pool = pool();
    for _ in 0..50 {
        let blocks: Vec<usize> = std::thread::spawn(|| (1..200).map(|i| pool_block(i * 1000)).collect()).join().expect("ends");
        blocks.iter().enumerate().for_each(|(i, &block)| {
            assert_eq!(byte(block as *mut c_void, 0), (i + 1) as u8);
            free(block as *mut c_void);
        });
    }
    fn pool_block(size: usize) -> usize {
        let block = super::tests::pool().malloc(size);
        fill(block, size, (size / 1000) as u8);
        block.addr()
    }
    assert!(pool.live_bytes() < 200 << 20);
}

fn resident(range: Extent) -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("readable");
    let mut inside = false;
    let mut kib = 0;
    for line in text.lines() {
        if let Some((from, to)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-'))
            && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
        {
            inside = from >= range.start && to <= range.end;
        } else if inside && line.starts_with("Rss:") {
            kib += line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        }
    }
    kib << 10
}

#[test]
fn freed_memory_goes_back() {
    let pool = Pool::create(&PoolSpec::default()).expect("address space");
    for size in [4 << 10, 64 << 10, 1 << 20, 64 << 20] {
        let blocks: Vec<_> = (0..(512 << 20) / size)
            .map(|_| {
                let block = pool.malloc(size);
                fill(block, size, 1);
                block
            })
            .collect();
        assert!(resident(pool.range()) >= 512 << 20);
        blocks.into_iter().for_each(free);
        let left = resident(pool.range());
        println!("blocks of {size}: {} MiB left", left >> 20);
        assert!(left < 96 << 20, "{size}: {left} bytes are kept");
    }
}

#[test]
fn i19_a_block_that_shrinks_by_half_gives_half_back() {
    let pool = pool();
    // SAFETY: live blocks, each given up once.
    unsafe {
        for size in [1024, 4096, 128 << 10] {
            let block = pool.realloc(pool.malloc(size), size / 2);
            assert_eq!(Pool::usable_size(block), size / 2);
            assert_eq!(pool.realloc(block, size / 4 + 1), block, "more than half is used");
            free(block);
        }
        let smallest = pool.malloc(16);
        assert_eq!(pool.realloc(smallest, 1), smallest, "there is no smaller one");
        free(smallest);
    }
}

/// Not a test of speed: prints what a pair costs.
#[test]
fn cost_of_a_pair() {
    let pool = pool();
    for size in [64, 4 << 10, 64 << 10, 1 << 20] {
        let mut best = f64::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..10_000 {
                let block = pool.malloc(size);
                std::hint::black_box(block);
                free(block);
            }
            best = best.min(start.elapsed().as_nanos() as f64 / 10_000.0);
        }
        println!("{size}: {best:.1} ns");
    }
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let block = pool.malloc(64 << 20);
        (0..64 << 20).step_by(4096).for_each(|at| fill(block.cast::<u8>().wrapping_add(at).cast(), 1, 1));
        free(block);
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("64 MiB touched: {best:.1} ms");
}
