//! A vector whose elements lie in a tier: `Vec` takes no allocator on stable Rust. Everything a slice can do comes by `Deref`.

use crate::tier::{self, Far, Near, NoMemory, Tiered};
use std::alloc::{Layout, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A vector in tier `S`.
pub struct TierVec<T, S: Tiered> {
    start: NonNull<T>,
    room: usize,
    len: usize,
    owned: PhantomData<(T, S)>,
}

/// A vector in near memory.
pub type NearVec<T> = TierVec<T, Near>;
/// A vector in far memory.
pub type FarVec<T> = TierVec<T, Far>;

// SAFETY: owns its elements as `Vec` does.
unsafe impl<T: Send, S: Tiered> Send for TierVec<T, S> {}
// SAFETY: as above.
unsafe impl<T: Sync, S: Tiered> Sync for TierVec<T, S> {}

/// Types that all-zero bytes are a value of.
///
/// # Safety
/// They are.
pub unsafe trait Zero {}

macro_rules! zeros {
    ($($name:ty)*) => {$(
        // SAFETY: a number, or false.
        unsafe impl Zero for $name {}
    )*};
}

zeros! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool }

// SAFETY: each element is zeros.
unsafe impl<T: Zero, const N: usize> Zero for [T; N] {}

impl<T, S: Tiered> TierVec<T, S> {
    /// Without elements and memory.
    pub const fn new() -> Self {
        let room = if size_of::<T>() == 0 { usize::MAX } else { 0 };
        Self { start: NonNull::dangling(), room, len: 0, owned: PhantomData }
    }

    /// With room for `count` elements.
    pub fn with_capacity(count: usize) -> Self {
        Self::try_with_capacity(count).unwrap_or_else(|_| stop::<T>(count))
    }

    /// With room for `count` elements, if there is memory.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn try_with_capacity(count: usize) -> Result<Self, NoMemory> {
        let mut made = Self::new();
        made.try_reserve(count)?;
        Ok(made)
    }

    /// `count` elements of zero bytes: not touched, so a large vector takes no memory until it is used.
    pub fn zeroed(count: usize) -> Self
    where
        T: Zero,
    {
        let mut made = Self::new();
        if made.room < count {
            let Ok(layout) = Layout::array::<T>(count) else { stop::<T>(count) };
            let Some(start) = NonNull::new(tier::alloc_zeroed(S::TIER, layout).cast()) else { stop::<T>(count) };
            (made.start, made.room) = (start, count);
        }
        made.len = count;
        made
    }

    /// `count` copies of `value`.
    pub fn filled(count: usize, value: T) -> Self
    where
        T: Clone,
    {
        let mut made = Self::with_capacity(count);
        made.extend(std::iter::repeat_n(value, count));
        made
    }

    /// Elements that it has room for.
    pub const fn capacity(&self) -> usize {
        self.room
    }

    /// Room for `more` elements beyond those that are there.
    pub fn reserve(&mut self, more: usize) {
        self.try_reserve(more).unwrap_or_else(|_| stop::<T>(self.len.saturating_add(more)));
    }

    /// Room for `more` elements, if there is memory; nothing has changed when there is not.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn try_reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        let refusal = |bytes| NoMemory { bytes, tier: S::TIER };
        let needed = self.len.checked_add(more).ok_or(refusal(usize::MAX))?;
        if needed <= self.room {
            return Ok(());
        }
        // Exact the first time, doubled later, so that a vector of known size wastes nothing of near memory.
        let room = if self.room == 0 { needed } else { needed.max(self.room.saturating_mul(2)) };
        let layout = Layout::array::<T>(room).or(Layout::array::<T>(needed)).map_err(|_| refusal(usize::MAX))?;
        let block = if self.room == 0 {
            tier::alloc(S::TIER, layout)
        } else {
            // SAFETY: the live block of this vector, whose layout was computed when it was made; the new size is not 0, since
            // elements have a size here.
            unsafe { tier::realloc(S::TIER, self.start.as_ptr().cast(), self.layout(), layout.size()) }
        };
        self.start = NonNull::new(block.cast()).ok_or(refusal(layout.size()))?;
        self.room = layout.size() / size_of::<T>();
        Ok(())
    }

    fn layout(&self) -> Layout {
        // SAFETY: the same computation succeeded when the block was made.
        unsafe { Layout::array::<T>(self.room).unwrap_unchecked() }
    }

    /// Appends an element.
    pub fn push(&mut self, value: T) {
        self.reserve(1);
        // SAFETY: there is room for one more.
        unsafe { self.start.add(self.len).write(value) };
        self.len += 1;
    }

    /// Takes the last element away.
    pub fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: it was the last, and the vector does not count it any more.
        Some(unsafe { self.start.add(self.len).read() })
    }

    /// Drops all elements beyond `len`.
    pub fn truncate(&mut self, len: usize) {
        let old = self.len;
        if len < old {
            self.len = len;
            // SAFETY: live elements that the vector does not count any more.
            unsafe { std::ptr::slice_from_raw_parts_mut(self.start.add(len).as_ptr(), old - len).drop_in_place() };
        }
    }

    /// Drops all elements; the memory stays.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

#[cold]
fn stop<T>(count: usize) -> ! {
    match Layout::array::<T>(count) {
        Ok(layout) => handle_alloc_error(layout),
        Err(_) => panic!("capacity overflow"),
    }
}

impl<T, S: Tiered> Drop for TierVec<T, S> {
    fn drop(&mut self) {
        self.clear();
        if size_of::<T>() != 0 && self.room != 0 {
            // SAFETY: the block of this vector.
            unsafe { tier::dealloc(self.start.as_ptr().cast()) };
        }
    }
}

impl<T, S: Tiered> Deref for TierVec<T, S> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many live elements from there, or a dangling pointer for none.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T, S: Tiered> DerefMut for TierVec<T, S> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T, S: Tiered> Default for TierVec<T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Tiered> Extend<T> for TierVec<T, S> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let values = values.into_iter();
        self.reserve(values.size_hint().0);
        values.for_each(|value| self.push(value));
    }
}

impl<T, S: Tiered> FromIterator<T> for TierVec<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut made = Self::new();
        made.extend(values);
        made
    }
}

impl<T: Clone, S: Tiered> From<&[T]> for TierVec<T, S> {
    fn from(values: &[T]) -> Self {
        values.iter().cloned().collect()
    }
}

impl<T: Clone, S: Tiered> Clone for TierVec<T, S> {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl<T: PartialEq, S: Tiered, R: AsRef<[T]> + ?Sized> PartialEq<R> for TierVec<T, S> {
    fn eq(&self, other: &R) -> bool {
        **self == *other.as_ref()
    }
}

impl<T, S: Tiered> AsRef<[T]> for TierVec<T, S> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: fmt::Debug, S: Tiered> fmt::Debug for TierVec<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<'a, T, S: Tiered> IntoIterator for &'a TierVec<T, S> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T, S: Tiered> IntoIterator for &'a mut TierVec<T, S> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
