//! Changes of user and groups: threads that the C library does not know follow (`sys::credentials`).

use crate::errno;
use crate::function::Function;
use crate::lifecycle::{is_this_process, managed_even_inside};
use nearfar_sys::credentials;
use std::ffi::{c_char, c_int, c_uint};

type One = unsafe extern "C" fn(c_uint) -> c_int;
type Two = unsafe extern "C" fn(c_uint, c_uint) -> c_int;
type Three = unsafe extern "C" fn(c_uint, c_uint, c_uint) -> c_int;

pub static SETUID: Function<One> = Function::next(c"setuid");
pub static SETGID: Function<One> = Function::next(c"setgid");
pub static SETEUID: Function<One> = Function::next(c"seteuid");
pub static SETEGID: Function<One> = Function::next(c"setegid");
pub static SETREUID: Function<Two> = Function::next(c"setreuid");
pub static SETREGID: Function<Two> = Function::next(c"setregid");
pub static SETRESUID: Function<Three> = Function::next(c"setresuid");
pub static SETRESGID: Function<Three> = Function::next(c"setresgid");
pub static SETGROUPS: Function<unsafe extern "C" fn(usize, *const c_uint) -> c_int> = Function::next(c"setgroups");
pub static INITGROUPS: Function<unsafe extern "C" fn(*const c_char, c_uint) -> c_int> = Function::next(c"initgroups");

/// Makes the change by the C library's function `next`, then tells our threads.
pub fn change<F: Copy>(next: &Function<F>, make: impl FnOnce(F) -> c_int) -> c_int {
    let Some(function) = next.get() else { return errno::failed(libc::ENOSYS) };
    let result = make(function);
    if result == 0 && managed_even_inside().is_some() && is_this_process() {
        let _kept = errno::Kept::now();
        credentials::changed();
    }
    result
}
