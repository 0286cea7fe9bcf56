//! The end of a process whose main thread left by pthread_exit: it ends with its last thread, and the threads of a profile, which
//! the C library counts like any other, must not keep it alive. (It does not know those that page.)
//!
//! From that moment on, a thread of ours looks at the list of threads now and then. There is no event to wait for.

use crate::function::Function;
use nearfar_profile::recorder;
use nearfar_sys::{process, thread};
use std::ffi::c_void;
use std::time::Duration;

static PTHREAD_EXIT: Function<unsafe extern "C" fn(*mut c_void) -> !> = Function::next(c"pthread_exit");

/// What the names of threads begin with that do not keep a process alive: nearfar's, and the kernel's own that work for an
/// io_uring (it lists them like the program's).
const OUR_NAMES: [&str; 3] = ["nearfar", "iou-wrk-", "iou-sqp-"];

/// pthread_exit(3).
///
/// # Safety
/// As for the function.
pub unsafe fn pthread_exit(value: *mut c_void) -> ! {
    if process::tid() == process::pid() && recorder::is_started() {
        // Without this thread the process would only end later than it should.
        let _ = thread::spawn("nearfar-last", watch);
    }
    match PTHREAD_EXIT.get() {
        // SAFETY: passed on to the caller.
        Some(next) => unsafe { next(value) },
        None => process::exit_now(0),
    }
}

fn watch() {
    let mut pause = Duration::from_millis(2);
    while !only_ours_are_left() {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    // The program's exit functions run here: from now on this is a thread of the program.
    thread::come_out();
    // SAFETY: no other thread of the program exists; this is what the C library does when the last one ends.
    unsafe { libc::exit(0) }
}

fn only_ours_are_left() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    for entry in threads.flatten() {
        let path = entry.path();
        // The main thread stays in the list as a zombie.
        let is_main = path.file_name().is_some_and(|name| name.to_string_lossy().parse() == Ok(process::pid()));
        let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        let name = text("comm");
        let ours = OUR_NAMES.iter().any(|start| name.starts_with(start));
        let ended = text("stat").rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']));
        if !(ours || is_main && ended) {
            return false;
        }
    }
    true
}
