//! Changes of user and groups: threads that the C library does not know follow (`sys::credentials`).

use crate::errno;
use crate::lifecycle::{is_this_process, managed_even_inside};
use crate::next_symbol::Next;
use nearfar_sys::credentials;
use std::ffi::{c_char, c_int, c_uint};

type One = unsafe extern "C" fn(c_uint) -> c_int;
type Two = unsafe extern "C" fn(c_uint, c_uint) -> c_int;
type Three = unsafe extern "C" fn(c_uint, c_uint, c_uint) -> c_int;

pub static SETUID: Next<One> = Next::new(c"setuid");
pub static SETGID: Next<One> = Next::new(c"setgid");
pub static SETEUID: Next<One> = Next::new(c"seteuid");
pub static SETEGID: Next<One> = Next::new(c"setegid");
pub static SETREUID: Next<Two> = Next::new(c"setreuid");
pub static SETREGID: Next<Two> = Next::new(c"setregid");
pub static SETRESUID: Next<Three> = Next::new(c"setresuid");
pub static SETRESGID: Next<Three> = Next::new(c"setresgid");
pub static SETGROUPS: Next<unsafe extern "C" fn(usize, *const c_uint) -> c_int> = Next::new(c"setgroups");
pub static INITGROUPS: Next<unsafe extern "C" fn(*const c_char, c_uint) -> c_int> = Next::new(c"initgroups");

/// Makes the change by the C library's function `next`, then tells our threads.
pub fn change<F: Copy>(next: &Next<F>, make: impl FnOnce(F) -> c_int) -> c_int {
    let Some(function) = next.get() else { return errno::failed(libc::ENOSYS) };
    let result = make(function);
    if result == 0 && managed_even_inside().is_some() && is_this_process() {
        let _kept = errno::Kept::now();
        credentials::changed();
    }
    result
}
