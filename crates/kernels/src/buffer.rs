//! The memory of a workload: a slice of numbers, on the heap or in a mapped file.
//!
//! Invariant: a new buffer is all zeros, whatever its placement, and the heap one comes from the program's normal allocator, so that
//! a preloaded pager manages it. Does not choose tiers.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use crate::mapped_file::{MappedFile, Pattern};

/// Where a workload's data lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The normal heap.
    Heap,
    /// A shared mapping of an unlinked file created at this path; several buffers use the path one after another.
    MappedFile(PathBuf),
    /// The same by a programmer who tells the kernel how the data will be accessed (madvise).
    AdvisedFile(PathBuf),
}

impl Placement {
    /// The word used in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Placement::Heap => "heap",
            Placement::MappedFile(_) => "mapped-file",
            Placement::AdvisedFile(_) => "advised-file",
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
    impl Sealed for u64 {}
    impl Sealed for u32 {}
    impl Sealed for u8 {}
}

/// Numbers for which every bit pattern, zeros included, is a value; sealed, because [`Buffer`] relies on it.
pub trait Number: sealed::Sealed + Copy + Default + Send + Sync + 'static {}
impl Number for f64 {}
impl Number for f32 {}
impl Number for u64 {}
impl Number for u32 {}
impl Number for u8 {}

/// A fixed number of `T`, all zero at first.
#[derive(Debug)]
pub struct Buffer<T: Number> {
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Heap(Vec<T>),
    Mapped { file: MappedFile, len: usize, advised: bool },
}

impl<T: Number> Buffer<T> {
    /// `len` zeros at `placement`. Errors: the file could not be created, sized or mapped; a heap without memory aborts.
    pub fn zeroed(placement: &Placement, len: usize) -> io::Result<Self> {
        let memory = match placement {
            Placement::Heap => Memory::Heap(vec![T::default(); len]),
            Placement::MappedFile(path) | Placement::AdvisedFile(path) => {
                let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
                let advised = matches!(placement, Placement::AdvisedFile(_));
                Memory::Mapped { file: MappedFile::create(path, bytes)?, len, advised }
            }
        };
        Ok(Self { memory })
    }

    /// Says how the data will be accessed from now on; heard only where the placement is advised.
    pub fn announce(&self, pattern: Pattern) {
        if let Memory::Mapped { file, advised: true, .. } = &self.memory {
            file.advise(pattern);
        }
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Heap(numbers) => numbers,
            // SAFETY: the mapping is page-aligned, holds at least `len` numbers (made so in `zeroed`), lives as long as `self`, and
            // every bit pattern is a `T` (`Number` is sealed). Nobody else maps the unlinked file, so no write races with `&self`.
            Memory::Mapped { file, len, .. } => unsafe { std::slice::from_raw_parts(file.as_ptr().cast(), *len) },
        }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Heap(numbers) => numbers,
            // SAFETY: as in `deref`, and `&mut self` makes this the only access.
            Memory::Mapped { file, len, .. } => unsafe { std::slice::from_raw_parts_mut(file.as_mut_ptr().cast(), *len) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_placements_start_as_zeros_and_keep_writes() {
        let path = std::env::temp_dir().join(format!("nearfar-buffer-{}", std::process::id()));
        for placement in [Placement::Heap, Placement::MappedFile(path.clone()), Placement::AdvisedFile(path)] {
            let mut buffer = Buffer::<u64>::zeroed(&placement, 1000).expect("a small buffer");
            assert!(buffer.iter().all(|&n| n == 0));
            buffer.announce(Pattern::Random);
            buffer[999] = 7;
            assert_eq!((buffer.len(), buffer[999]), (1000, 7));
        }
    }
}
