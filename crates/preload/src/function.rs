//! Functions of other objects, each looked up at its first call.

use crate::loader::look_up;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function of type `F`, a function pointer.
pub struct Function<F> {
    name: &'static CStr,
    find: fn(&CStr) -> usize,
    found: AtomicUsize,
    kind: PhantomData<F>,
}

impl<F: Copy> Function<F> {
    /// The one behind ours: the next `name` in the order of loading, which must be of type `F` wherever it exists.
    pub const fn next(name: &'static CStr) -> Self {
        Self::found_by(next, name)
    }

    /// What `find` finds under `name`, which must be of type `F`; 0: nothing.
    pub const fn found_by(find: fn(&CStr) -> usize, name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        Self { name, find, found: AtomicUsize::new(0), kind: PhantomData }
    }

    /// The function, or `None` when there is none.
    #[inline]
    pub fn get(&self) -> Option<F> {
        let mut found = self.found.load(Ordering::Relaxed);
        if found == 0 {
            found = self.look();
        }
        // SAFETY: `F` is a function pointer of the size of a word, and of the type of this name (`found_by`).
        (found != 0).then(|| unsafe { std::mem::transmute_copy::<usize, F>(&found) })
    }

    #[cold]
    fn look(&self) -> usize {
        let found = (self.find)(self.name);
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

fn next(name: &CStr) -> usize {
    // SAFETY: a C string. Looking up a name that exists does not allocate.
    look_up(|| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }) as usize
}
