//! The table of the symbols that programmers call (`include/nearfar.h`). A body is a one-line forward.
//!
//! Apart from `hooks`, because these are nobody else's names: nothing is interposed here. A symbol is added here and in the header,
//! and never changed; what a later version adds to a structure goes into its reserved words.

use crate::api;
use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! exports {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of nearfar.h.")]
        ///
        /// # Safety
        /// As the header says.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the header, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $forward }
        }
    )*};
}

type Void = *mut c_void;

exports! {
    nearfar_malloc(size: usize, tier: c_int) -> Void = api::malloc(size, tier);
    nearfar_calloc(count: usize, size: usize, tier: c_int) -> Void = api::calloc(count, size, tier);
    nearfar_realloc(block: Void, size: usize, tier: c_int) -> Void = api::realloc(block, size, tier);
    nearfar_posix_memalign(out: *mut Void, align: usize, size: usize, tier: c_int) -> c_int
        = api::posix_memalign(out, align, size, tier);
    nearfar_free(block: Void) -> () = api::free(block);
    nearfar_usable_size(block: Void) -> usize = api::usable_size(block);
    nearfar_where(start: *const c_void, len: usize, out: *mut api::Where) -> c_int = api::where_is(start, len, out);
    nearfar_capacity(tier: c_int, out: *mut api::Capacity) -> c_int = api::capacity(tier, out);
    nearfar_tiers() -> c_int = api::count();
    nearfar_paged_tiers() -> c_int = api::is_paged();
    nearfar_describe() -> *const c_char = api::describe();
    nearfar_version() -> c_uint = api::version();
}
