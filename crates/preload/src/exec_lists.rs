//! execl(3), execlp(3) and execle(3): the arguments, in registers and on the stack, become the array that `exec` takes.
//!
//! In assembly since Rust cannot define variadic functions. The five registers are put right below what lies on the stack, in
//! the place of the return address, which is kept below them.

use crate::exec;
use std::ffi::{c_char, c_int};

type Path = *const c_char;
type Strings = *const *const c_char;

macro_rules! exec_lists {
    ($($name:ident = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` for the program.")]
        ///
        /// # Safety
        /// As for the C function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() -> c_int {
            extern "C" fn forward(path: Path, argv: Strings) -> c_int {
                // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
                unsafe { $forward(path, argv) }
            }
            std::arch::naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {}",
                "pop rcx",
                "add rsp, 40",
                "jmp rcx",
                sym forward,
            );
        }
    )*};
}

exec_lists! {
    execl = |path, argv| exec::execv(path, argv);
    execlp = |file, argv| exec::execvp(file, argv);
    execle = |path, argv| exec::execve(path, argv, behind(argv));
}

/// The environment that follows the arguments of execle(3).
///
/// # Safety
/// `argv` ends with null, and an array of strings follows.
unsafe fn behind(argv: Strings) -> Strings {
    let mut at = argv;
    // SAFETY: the caller's promise.
    unsafe {
        while !(*at).is_null() {
            at = at.add(1);
        }
        at.add(1).cast::<Strings>().read()
    }
}
