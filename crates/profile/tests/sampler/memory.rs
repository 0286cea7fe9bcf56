//! Memory with known content.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_sys::map;

/// A private anonymous mapping.
pub struct Memory {
    pub range: Extent,
}

impl Memory {
    pub fn new(pages: usize) -> Self {
        // SAFETY: not fixed.
        let start = unsafe { map::mmap(0, pages * PAGE, map::RW, map::ANON, -1, 0) }.expect("memory");
        Self { range: Extent::new(start, pages * PAGE) }
    }

    /// Aligned to 2 MiB.
    pub fn aligned(pages: usize) -> Self {
        let range = map::reserve(pages * PAGE).expect("memory");
        // SAFETY: just mapped.
        unsafe { map::mprotect(range, map::RW) }.expect("writable");
        Self { range }
    }

    pub fn pages(&self) -> usize {
        self.range.len() / PAGE
    }

    pub fn word(&self, index: usize) -> *mut u64 {
        assert!(index * 8 < self.range.len());
        (self.range.start + index * 8) as *mut u64
    }

    pub fn words(&self) -> usize {
        self.range.len() / 8
    }

    pub fn fill(&self, salt: u64) {
        self.fill_part(0, self.words(), salt);
    }

    pub fn fill_part(&self, from: usize, to: usize, salt: u64) {
        // SAFETY: our own mapping.
        (from..to).for_each(|index| unsafe { self.word(index).write_volatile(value(index, salt)) });
    }

    pub fn check(&self, salt: u64) {
        self.check_part(0, self.words(), |index| value(index, salt));
    }

    pub fn check_part(&self, from: usize, to: usize, want: impl Fn(usize) -> u64) {
        for index in from..to {
            // SAFETY: our own mapping.
            let got = unsafe { self.word(index).read_volatile() };
            assert!(got == want(index), "word {index} of {:x?} is {got:x}, not {:x}", self.range, want(index));
        }
    }

    pub fn protect(&self, prot: i32) {
        // SAFETY: our own mapping.
        unsafe { map::mprotect(self.range, prot) }.expect("mprotect");
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.range.is_empty() {
            // SAFETY: our own mapping.
            unsafe { map::munmap(self.range) }.expect("munmap");
        }
    }
}

/// What word `index` holds.
pub fn value(index: usize, salt: u64) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD134_2543_DE82_EF95)
}

/// CPU seconds of this process.
pub fn process_cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
