//! The function behind ours: the next one of a name in the order of loading.

use crate::loader::look_up;
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One name, looked up at most once. `F` is the function pointer type of that name.
pub struct Next<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// For `name`, which must be a function of type `F` wherever it exists.
    pub const fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        Self { name, found: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    /// The function, or `None` when nobody else has it.
    pub fn get(&self) -> Option<F> {
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: a C string constant. Looking up a name that exists does not allocate.
            found = look_up(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) });
            self.found.store(found, Ordering::Relaxed);
        }
        // SAFETY: `F` is a function pointer of the size of `found`, and of the type of this name (`new`).
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }
}
