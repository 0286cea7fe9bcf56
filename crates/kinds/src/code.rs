//! Codes of memkind.h and what `memkind_error_message` says of them.

use std::ffi::{c_char, c_int};

/// Success.
pub const SUCCESS: c_int = 0;
/// The kind is not available.
pub const UNAVAILABLE: c_int = -1;
/// mbind(2) failed.
pub const MBIND: c_int = -2;
/// mmap(2) failed.
pub const MMAP: c_int = -3;
/// No memory for tables.
pub const MALLOC: c_int = -6;
/// A MEMKIND_* variable is wrong.
pub const ENVIRON: c_int = -12;
/// An argument is wrong.
pub const INVALID: c_int = -13;
/// Too many kinds.
pub const TOO_MANY: c_int = -15;
/// Bad table of operations.
pub const BAD_OPS: c_int = -17;
/// No huge pages.
pub const HUGETLB: c_int = -18;
/// The machine has no such memory.
pub const MEMTYPE_NOT_AVAILABLE: c_int = -20;
/// An operation failed.
pub const OPERATION_FAILED: c_int = -21;
/// jemalloc's arenas; never ours.
pub const ARENAS_CREATE: c_int = -22;
/// Anything else.
pub const RUNTIME: c_int = -255;

/// Kinds at a time, static ones included (`MEMKIND_MAX_KIND`).
pub const MAX_KINDS: usize = 512;

/// The message of `code`. The texts are part of what programs log and compare, so they are those of memkind.
pub fn message(code: c_int) -> String {
    let text = match code {
        UNAVAILABLE => "Requested memory kind is not available",
        MBIND => "Call to mbind() failed",
        MMAP => "Call to mmap() failed",
        MALLOC => "Call to malloc() failed",
        ENVIRON => "Error parsing environment variable (MEMKIND_*)",
        INVALID => "Invalid input arguments to memkind routine",
        TOO_MANY => return format!("<memkind> Attempted to initialize more than maximum ({MAX_KINDS}) number of kinds"),
        BAD_OPS => "memkind_ops structure is poorly formed (missing or incorrect functions)",
        HUGETLB => "unable to allocate huge pages",
        MEMTYPE_NOT_AVAILABLE => "Requested memory type is not available",
        OPERATION_FAILED => "Operation failed",
        ARENAS_CREATE => "Call to jemalloc's arenas.create () failed",
        RUNTIME => "Unspecified run-time error",
        libc::EINVAL => "Alignment must be a power of two and larger than sizeof(void *)",
        libc::ENOMEM => "Call to jemk_mallocx() failed",
        other => return format!("<memkind> Undefined error number: {other}"),
    };
    format!("<memkind> {text}")
}

/// `memkind_error_message`: the message, cut to `bytes` with the final 0.
///
/// # Safety
/// `out` is null or has `bytes` bytes that can be written.
pub unsafe fn write_message(code: c_int, out: *mut c_char, bytes: usize) {
    let Some(most) = bytes.checked_sub(1).filter(|_| !out.is_null()) else { return };
    let text = message(code);
    let len = text.len().min(most);
    // SAFETY: at most `bytes` bytes, the last of them 0.
    unsafe {
        out.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
        out.add(len).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_that_programs_know() {
        assert_eq!(message(UNAVAILABLE), "<memkind> Requested memory kind is not available");
        assert_eq!(message(TOO_MANY), "<memkind> Attempted to initialize more than maximum (512) number of kinds");
        assert_eq!(message(-14), "<memkind> Undefined error number: -14");
        assert!((-255..200).all(|code| message(code).len() < 128), "MEMKIND_ERROR_MESSAGE_SIZE");
    }
}
