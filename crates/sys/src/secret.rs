//! Memory for keys: in no core file, locked against swapping where the user may lock memory; and random bytes for keys.

use crate::errno::{Errno, call};
use crate::map::{self, OwnedMap};
use std::ops::Deref;

/// A value that holds a key, in a mapping of its own. A forked child has a copy.
pub struct Secret<T> {
    map: OwnedMap,
    value: *mut T,
}

// SAFETY: the value is owned, and reached only as `T` allows.
unsafe impl<T: Send> Send for Secret<T> {}

impl<T> Secret<T> {
    /// Makes a value of random bytes. What that leaves on the stack is wiped.
    pub fn from_random<const N: usize>(make: fn(&[u8; N]) -> T) -> Result<Self, Errno> {
        const { assert!(align_of::<T>() <= nearfar_core::addr::PAGE) };
        let map = OwnedMap::new(size_of::<T>().max(1))?;
        // SAFETY: our own fresh mapping.
        let _ = unsafe { map::madvise(map.range(), libc::MADV_DONTDUMP) };
        let value = map.range().start as *mut T;
        lock(&map);
        write_random(value, make)?;
        wipe_stack();
        Ok(Self { map, value })
    }

    /// Locks it against swapping; to be called again in a forked child, which does not inherit that. The limit for locked
    /// memory may be 0: then the kernel may swap it out (docs/reference/promises-and-limits.md).
    pub fn lock(&self) {
        lock(&self.map);
    }

    /// Bytes of memory that it takes.
    pub fn len(&self) -> usize {
        self.map.range().len()
    }

    /// False: a mapping is never empty.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl<T> Deref for Secret<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: written in `from_random`, and mapped as long as `self` lives.
        unsafe { &*self.value }
    }
}

impl<T> Drop for Secret<T> {
    fn drop(&mut self) {
        // SAFETY: written in `from_random` and dropped only here. The mapping goes after it.
        unsafe { self.value.drop_in_place() };
    }
}

fn lock(map: &OwnedMap) {
    // SAFETY: a mapping of our own; locking changes no content.
    let _ = unsafe { call(libc::SYS_mlock, [map.range().start, map.range().len(), 0, 0, 0, 0]) };
}

#[inline(never)]
fn write_random<T, const N: usize>(value: *mut T, make: fn(&[u8; N]) -> T) -> Result<(), Errno> {
    let mut key = [0u8; N];
    let mut done = 0;
    while done < N {
        // SAFETY: writes at most the rest of a local array.
        match unsafe { call(libc::SYS_getrandom, [key.as_mut_ptr() as usize + done, N - done, 0, 0, 0, 0]) } {
            Ok(more) => done += more,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: a fresh page-aligned mapping that is large enough for the value.
    unsafe { value.write(make(&key)) };
    Ok(())
}

/// Overwrites what calls that have returned left on the stack.
#[inline(never)]
fn wipe_stack() {
    let mut room = [0u8; 16 << 10];
    for byte in &mut room {
        // SAFETY: a local; volatile, so that the compiler does not leave it out.
        unsafe { std::ptr::write_volatile(byte, 0) };
    }
    std::hint::black_box(&room);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ() {
        let one = Secret::from_random::<64>(|key| *key).expect("a key");
        let other = Secret::from_random::<64>(|key| *key).expect("a key");
        assert_ne!(*one, *other);
        assert_ne!(*one, [0; 64]);
    }
}
