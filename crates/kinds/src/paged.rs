//! The other source of memory: a job of ours that pages, where high bandwidth is the near tier and everything else far.
//!
//! libnearfar.so is then in the process already (`nearfar run` preloads it); its C interface is looked up by name, so that nothing
//! of it is needed elsewhere. `NEARFAR_HBW=off` keeps memkind's own meaning.

use crate::environment::Environment;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

type Void = *mut c_void;

/// Tiers of nearfar.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Tier {
    /// Never paged.
    Near = 0,
    /// Paged.
    Far = 1,
}

/// Functions of libnearfar.so.
pub struct Paged {
    /// `nearfar_malloc`.
    pub malloc: unsafe extern "C" fn(usize, Tier) -> Void,
    /// `nearfar_calloc`.
    pub calloc: unsafe extern "C" fn(usize, usize, Tier) -> Void,
    /// `nearfar_realloc`.
    pub realloc: unsafe extern "C" fn(Void, usize, Tier) -> Void,
    /// `nearfar_posix_memalign`.
    pub posix_memalign: unsafe extern "C" fn(*mut Void, usize, usize, Tier) -> c_int,
    /// `nearfar_free`, for any block.
    pub free: unsafe extern "C" fn(Void),
    /// `nearfar_usable_size`.
    pub usable_size: unsafe extern "C" fn(Void) -> usize,
}

fn symbol(name: &CStr) -> Option<Void> {
    // SAFETY: looks a name up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The functions, in a job of ours that pages.
#[inline]
pub fn get() -> Option<&'static Paged> {
    static FOUND: OnceLock<Option<Paged>> = OnceLock::new();
    crate::lock::once(&FOUND, find).as_ref()
}

#[cold]
fn find() -> Option<Paged> {
    let is_paged = symbol(c"nearfar_paged_tiers")?;
    // SAFETY: the declaration in nearfar.h: int nearfar_paged_tiers(void).
    let is_paged = unsafe { std::mem::transmute::<Void, unsafe extern "C" fn() -> c_int>(is_paged)() };
    if is_paged == 0 || Environment::this().ours == Ok(Some(false)) {
        return None;
    }
    // SAFETY: these are the declarations of nearfar.h.
    unsafe {
        Some(Paged {
            malloc: std::mem::transmute::<Void, unsafe extern "C" fn(usize, Tier) -> Void>(symbol(c"nearfar_malloc")?),
            calloc: std::mem::transmute::<Void, unsafe extern "C" fn(usize, usize, Tier) -> Void>(symbol(c"nearfar_calloc")?),
            realloc: std::mem::transmute::<Void, unsafe extern "C" fn(Void, usize, Tier) -> Void>(symbol(c"nearfar_realloc")?),
            posix_memalign: std::mem::transmute::<Void, unsafe extern "C" fn(*mut Void, usize, usize, Tier) -> c_int>(symbol(
                c"nearfar_posix_memalign",
            )?),
            free: std::mem::transmute::<Void, unsafe extern "C" fn(Void)>(symbol(c"nearfar_free")?),
            usable_size: std::mem::transmute::<Void, unsafe extern "C" fn(Void) -> usize>(symbol(c"nearfar_usable_size")?),
        })
    }
}
