//! The arrays `a`, `b` and `c` of the bandwidth kernels: where they lie, what they hold, and the check of every element.
//!
//! All values are integers below 2^53 in every step, so each result is exactly known whatever the order of additions, and a check is
//! equality, which no NaN passes. Before a repetition some elements of `a` are made NaN and looked at afterwards; before the last one
//! all of them, and then every element is checked.

use super::region::Region;
use nearfar_core::node::{Isa, Operation, Stores};
use nearfar_core::random_numbers::mix;

/// Elements that every part is a multiple of: eight 512-bit vectors, what one round of the widest kernel does.
pub const UNIT: usize = 64;
/// Bytes between the arrays beside their length: arrays of a power of two would share their address modulo a page, and loads then wait
/// for unrelated stores (4 KiB aliasing).
const STAGGER: usize = 21 * 64;
/// Elements of a part that are looked at after each repetition.
const SAMPLES: usize = 512;

/// Three arrays in a region.
#[derive(Debug)]
pub struct Arrays<'a> {
    region: &'a Region,
    /// Elements of one array, of all threads or of each.
    len: usize,
    /// Every thread has arrays of its own.
    private: bool,
}

/// What one thread works on. All three pointers are aligned to a line and valid for `len` elements, which is a multiple of [`UNIT`].
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Written.
    pub a: *mut f64,
    /// Read.
    pub b: *mut f64,
    /// Read.
    pub c: *mut f64,
    /// Number of the first element, which its values depend on.
    pub first: usize,
    /// Elements of each.
    pub len: usize,
}

/// Does an operation with the number s on all of a part; gives the sum of `b` for [`Operation::Read`].
///
/// # Safety
/// The processor has the instructions, and no other thread uses the part meanwhile.
pub type Kernel = unsafe fn(&Part, f64) -> f64;

/// The kernels that write, with one kind of store.
#[derive(Clone, Copy, Debug)]
pub struct Writers {
    /// a = s.
    pub write: Kernel,
    /// a = b.
    pub copy: Kernel,
    /// a = s b.
    pub scale: Kernel,
    /// a = b + c.
    pub add: Kernel,
    /// a = b + s c.
    pub triad: Kernel,
}

/// The kernels of one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// The instruction set.
    pub isa: Isa,
    /// Stores nothing.
    pub read: Kernel,
    /// With ordinary stores.
    pub ordinary: Writers,
    /// With non-temporal stores, where there are such.
    pub streaming: Option<Writers>,
}

impl Kernels {
    /// The kernel of an operation and a kind of store; none when there is no such.
    pub fn of(&self, operation: Operation, stores: Stores) -> Option<Kernel> {
        let writers = match stores {
            Stores::None => return (operation == Operation::Read).then_some(self.read),
            Stores::Ordinary => self.ordinary,
            Stores::NonTemporal => self.streaming?,
        };
        match operation {
            Operation::Read => None,
            Operation::Write => Some(writers.write),
            Operation::Copy => Some(writers.copy),
            Operation::Scale => Some(writers.scale),
            Operation::Add => Some(writers.add),
            Operation::Triad => Some(writers.triad),
        }
    }
}

/// Elements of an array of about `bytes`: rounded down to whole units, at least one.
pub const fn elements(bytes: u64) -> usize {
    let units = bytes as usize / (UNIT * size_of::<f64>());
    if units == 0 { UNIT } else { units * UNIT }
}

const fn stride(len: usize) -> usize {
    len * size_of::<f64>() + STAGGER
}

/// Bytes of a region for `sets` times three arrays of `len` elements.
pub const fn region_bytes(len: usize, sets: usize) -> usize {
    3 * stride(len) * sets
}

impl<'a> Arrays<'a> {
    /// Arrays of `len` elements that all threads share, or that each of the threads has for itself. The region must have
    /// [`region_bytes`].
    pub fn new(region: &'a Region, len: usize, private_for: Option<usize>) -> Self {
        let sets = private_for.unwrap_or(1);
        assert!(len.is_multiple_of(UNIT) && region.len() >= region_bytes(len, sets), "the region holds the arrays");
        Self { region, len, private: private_for.is_some() }
    }

    /// What thread `index` of `threads` works on; parts of different indices share no element.
    pub fn part(&self, index: usize, threads: usize) -> Part {
        let (set, first, len) = if self.private {
            (index, 0, self.len)
        } else {
            let units = self.len / UNIT;
            let at = |index: usize| units * index / threads * UNIT;
            (0, at(index), at(index + 1) - at(index))
        };
        let array = |number: usize| {
            let offset = (set * 3 + number) * stride(self.len) + first * size_of::<f64>();
            // SAFETY: `new` checked that the region holds all arrays of all sets; a part ends where its array does at the latest.
            unsafe { self.region.as_mut_ptr().add(offset).cast::<f64>() }
        };
        Part { a: array(0), b: array(1), c: array(2), first: set * self.len + first, len }
    }
}

fn b_at(index: usize) -> f64 {
    (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_shr(48) as u32 as f64
}

fn c_at(index: usize) -> f64 {
    (index as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_shr(52) as u32 as f64
}

/// The number `s` of repetition `number`: neighbours differ.
pub fn scalar(number: usize) -> f64 {
    (3 + number % 61) as f64
}

fn expected(operation: Operation, index: usize, s: f64) -> f64 {
    match operation {
        // Nothing is written: what `prepare` left.
        Operation::Read => -1.0,
        Operation::Write => s,
        Operation::Copy => b_at(index),
        Operation::Scale => s * b_at(index),
        Operation::Add => b_at(index) + c_at(index),
        Operation::Triad => b_at(index) + s * c_at(index),
    }
}

impl Part {
    /// Writes all three arrays: the first touch of the memory, by the thread that will use it.
    ///
    /// # Safety
    /// No other thread uses the part meanwhile.
    pub unsafe fn fill(&self) {
        for offset in 0..self.len {
            // SAFETY: `offset` is below `len`, for which the pointers are valid; the caller keeps others out.
            unsafe {
                self.a.add(offset).write(-1.0);
                self.b.add(offset).write(b_at(self.first + offset));
                self.c.add(offset).write(c_at(self.first + offset));
            }
        }
    }

    /// The sum of `b`, exactly.
    pub fn sum(&self) -> f64 {
        (self.first..self.first + self.len).map(|index| b_at(index) as u64).sum::<u64>() as f64
    }

    fn samples(&self, number: usize) -> impl Iterator<Item = usize> + use<> {
        let (len, count) = (self.len, SAMPLES.min(self.len));
        let gap = len.checked_div(count).unwrap_or(1);
        let inside = (0..count).map(move |index| index * len / count + mix((number * SAMPLES + index) as u64) as usize % gap);
        inside.chain(len.checked_sub(1))
    }

    /// Spoils what the next repetition of `operation` must write: everything, or a sample that depends on its number.
    ///
    /// # Safety
    /// No other thread uses the part meanwhile.
    pub unsafe fn prepare(&self, operation: Operation, number: usize, all: bool) {
        let spoilt = if operation == Operation::Read { -1.0 } else { f64::NAN };
        let spoil = |offset: usize| {
            // SAFETY: `offset` is below `len`; the caller keeps others out.
            unsafe { self.a.add(offset).write(spoilt) }
        };
        if all { (0..self.len).for_each(spoil) } else { self.samples(number).for_each(spoil) }
    }

    /// Elements of `a` that are not what `operation` must have left in repetition `number`, of the sample or of all.
    ///
    /// # Safety
    /// No other thread writes to the part meanwhile.
    pub unsafe fn wrong(&self, operation: Operation, number: usize, all: bool) -> u64 {
        let s = scalar(number);
        let is_wrong = |offset: usize| {
            // SAFETY: `offset` is below `len`; the caller keeps writers out. Volatile: what the kernel's assembly left is read.
            let value = unsafe { self.a.add(offset).read_volatile() };
            u64::from(!equal(value, expected(operation, self.first + offset, s)))
        };
        if all { (0..self.len).map(is_wrong).sum() } else { self.samples(number).map(is_wrong).sum() }
    }

    /// Elements of `b` and `c` that are not what [`Part::fill`] wrote.
    ///
    /// # Safety
    /// No other thread writes to the part meanwhile.
    pub unsafe fn wrong_inputs(&self) -> u64 {
        let is_wrong = |offset: usize| {
            // SAFETY: as in `wrong`.
            let (b, c) = unsafe { (self.b.add(offset).read_volatile(), self.c.add(offset).read_volatile()) };
            u64::from(!equal(b, b_at(self.first + offset))) + u64::from(!equal(c, c_at(self.first + offset)))
        };
        (0..self.len).map(is_wrong).sum()
    }
}

/// Equality, which a NaN never has.
pub fn equal(value: f64, expected: f64) -> bool {
    value == expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::Pages;

    #[test]
    fn parts_cover_the_arrays_and_share_nothing() {
        let len = 10 * UNIT;
        let region = Region::new(region_bytes(len, 1), None, Pages::Small, u64::MAX).expect("memory");
        let arrays = Arrays::new(&region, len, None);
        let parts: Vec<Part> = (0..3).map(|index| arrays.part(index, 3)).collect();
        let mut next = 0;
        for part in &parts {
            assert_eq!((part.first, part.len % UNIT, part.a as usize % 64, part.c as usize % 64), (next, 0, 0, 0));
            next += part.len;
            // SAFETY: this thread alone.
            unsafe { part.fill() };
        }
        assert_eq!(next, len);
        let whole = arrays.part(0, 1);
        // SAFETY: this thread alone.
        unsafe {
            assert_eq!((whole.wrong_inputs(), whole.wrong(Operation::Copy, 0, true)), (0, len as u64));
            assert_eq!(whole.sum(), (0..len).map(|offset| *whole.b.add(offset)).sum::<f64>());
            whole.b.add(3).write(0.5);
            assert_eq!(whole.wrong_inputs(), 1);
        }
    }

    #[test]
    fn what_was_not_written_is_found() {
        let region = Region::new(region_bytes(UNIT, 2), None, Pages::Small, u64::MAX).expect("memory");
        let arrays = Arrays::new(&region, UNIT, Some(2));
        let part = arrays.part(1, 2);
        // SAFETY: this thread alone; offsets are below UNIT.
        unsafe {
            part.fill();
            part.prepare(Operation::Write, 7, true);
            (0..UNIT - 1).for_each(|offset| part.a.add(offset).write(scalar(7)));
            assert_eq!(part.wrong(Operation::Write, 7, true), 1, "the last is still NaN");
            assert!(part.wrong(Operation::Write, 8, false) > 60, "another repetition's number");
            part.prepare(Operation::Read, 8, true);
            assert_eq!(part.wrong(Operation::Read, 8, true), 0);
        }
        assert!(!equal(f64::NAN, f64::NAN));
        assert_eq!((elements(0), elements(1023), elements(1024)), (UNIT, UNIT, 2 * UNIT));
    }
}
