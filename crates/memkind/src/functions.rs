//! ONE table of the functions of hbwmalloc.h and memkind.h. A body is a one-line forward; what it forwards to is documented there.

use nearfar_kinds::create::{self, Config};
use nearfar_kinds::kind::Kind;
use nearfar_kinds::{code, hbw, internal, memory, stats, tiered};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Exported functions, with a one-line forward each.
macro_rules! exports {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` for the program.")]
        ///
        /// # Safety
        /// As for the function of this name in memkind's headers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $forward }
        }
    )*};
}
pub(crate) use exports;

type Void = *mut c_void;
type KindRef = *mut Kind;
type Text = *const c_char;

/// memkind's number of version 1.14.0, whose interface this is.
const VERSION: c_int = 1_014_000;

exports! {
    hbw_get_policy() -> c_uint = hbw::policy();
    hbw_set_policy(policy: c_uint) -> c_int = hbw::set_policy(policy);
    hbw_check_available() -> c_int = hbw::check_available();
    hbw_verify_memory_region(start: Void, size: usize, flags: c_int) -> c_int = hbw::verify(start, size, flags);
    hbw_malloc(size: usize) -> Void = hbw::malloc(size);
    hbw_calloc(count: usize, size: usize) -> Void = hbw::calloc(count, size);
    hbw_realloc(block: Void, size: usize) -> Void = hbw::realloc(block, size);
    hbw_free(block: Void) -> () = memory::free(block);
    hbw_malloc_usable_size(block: Void) -> usize = memory::usable_size(block);
    hbw_posix_memalign(out: *mut Void, align: usize, size: usize) -> c_int = hbw::posix_memalign(out, align, size);
    hbw_posix_memalign_psize(out: *mut Void, align: usize, size: usize, pages: c_uint) -> c_int
        = hbw::posix_memalign_psize(out, align, size, pages);

    memkind_malloc(kind: KindRef, size: usize) -> Void = memory::malloc(kind, size);
    memkind_calloc(kind: KindRef, count: usize, size: usize) -> Void = memory::calloc(kind, count, size);
    memkind_realloc(kind: KindRef, block: Void, size: usize) -> Void = memory::realloc(kind, block, size);
    memkind_posix_memalign(kind: KindRef, out: *mut Void, align: usize, size: usize) -> c_int
        = memory::posix_memalign(kind, out, align, size);
    memkind_free(_kind: KindRef, block: Void) -> () = memory::free(block);
    memkind_malloc_usable_size(_kind: KindRef, block: Void) -> usize = memory::usable_size(block);
    memkind_defrag_reallocate(_kind: KindRef, _block: Void) -> Void = std::ptr::null_mut();
    memkind_detect_kind(block: Void) -> KindRef = memory::detect(block);
    memkind_set_allow_zero_allocs(kind: KindRef, allow: bool) -> c_int = memory::allow_zero(kind, allow);

    memkind_config_new() -> *mut Config = Config::make();
    memkind_config_delete(config: *mut Config) -> () = Config::delete(config);
    memkind_config_set_path(config: *mut Config, dir: Text) -> () = Config::set(config, |config| config.set_dir(dir));
    memkind_config_set_size(config: *mut Config, bytes: usize) -> () = Config::set(config, |config| config.set_bytes(bytes));
    memkind_config_set_memory_usage_policy(config: *mut Config, policy: c_uint) -> ()
        = Config::set(config, |config| config.set_policy(policy));
    memkind_create_kind(memory: c_uint, policy: c_uint, pages: c_uint, out: *mut KindRef) -> c_int
        = create::by_traits(memory, policy, pages, out);
    memkind_create_pmem(dir: Text, bytes: usize, out: *mut KindRef) -> c_int = create::pmem(dir, bytes, 0, out);
    memkind_create_pmem_with_config(config: *mut Config, out: *mut KindRef) -> c_int = create::pmem_with(config, out);
    memkind_create_fixed(area: Void, bytes: usize, out: *mut KindRef) -> c_int = create::fixed(area, bytes, out);
    memkind_destroy_kind(kind: KindRef) -> c_int = tiered::destroy(kind);
    memkind_check_dax_path(dir: Text) -> c_int = create::check_dax_path(dir);
    memkind_get_kind_by_partition(partition: c_int, out: *mut KindRef) -> c_int = create::by_partition(partition, out);

    memkind_check_available(kind: KindRef) -> c_int = internal::check_available(kind);
    memkind_get_capacity(kind: KindRef) -> isize = stats::capacity(kind);
    memkind_get_stat(kind: KindRef, stat: c_uint, out: *mut usize) -> c_int = stats::get(kind, stat, out);
    memkind_update_cached_stats() -> c_int = code::SUCCESS;
    memkind_stats_print(writer: stats::Writer, opaque: Void, options: c_uint) -> c_int = stats::print(writer, opaque, options);
    memkind_get_version() -> c_int = VERSION;
    memkind_error_message(error: c_int, out: *mut c_char, bytes: usize) -> () = code::write_message(error, out, bytes);
    memkind_set_bg_threads(_wanted: bool) -> c_int = code::SUCCESS;
}
