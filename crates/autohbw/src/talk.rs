//! What is printed: on standard error, a line at a time, each with one call past the program's streams.

use nearfar_kinds::autohbw::Level;
use nearfar_sys::process;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI8, Ordering};

static LEVEL: AtomicI8 = AtomicI8::new(Level::Warnings as i8);

/// Frames that are shown of a call stack.
const FRAMES: usize = 12;

/// Sets how much is printed.
pub fn set_level(level: Level) {
    LEVEL.store(level as i8, Ordering::Relaxed);
    if level >= Level::Callers {
        // The first walk of the stack loads a library, which allocates.
        callers(|_| ());
    }
}

/// True when messages of `level` are printed.
#[inline(always)]
pub fn talks(level: Level) -> bool {
    LEVEL.load(Ordering::Relaxed) >= level as i8
}

/// Prints one line of `level`.
pub fn say(level: Level, text: &dyn fmt::Display) {
    if talks(level) {
        process::write_stderr(format!("AutoHBW: {text}\n").as_bytes());
    }
}

/// Prints what led to the calling function, from the program's innermost frame on.
pub fn say_callers() {
    if !talks(Level::Callers) {
        return;
    }
    let mut lines = String::new();
    callers(|address| {
        use fmt::Write;
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "AutoHBW:     from {}", Place(address));
    });
    process::write_stderr(lines.as_bytes());
}

/// Calls `tell` with the return addresses of the stack that are not ours.
fn callers(mut tell: impl FnMut(usize)) {
    let mut frames = [null_mut::<c_void>(); FRAMES + 8];
    // SAFETY: writes as many addresses as the array has places.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as i32) };
    let ours = object_of(set_level as *const () as usize).map(|info| info.dli_fbase);
    let all = frames.iter().take(usize::try_from(count).unwrap_or(0)).map(|frame| frame.addr());
    let outside = all.skip_while(|&frame| object_of(frame).map(|info| info.dli_fbase) == ours);
    outside.take(FRAMES).for_each(&mut tell);
}

fn object_of(address: usize) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is only looked up; the structure is written when the answer is not 0.
    unsafe { (libc::dladdr(address as *const c_void, info.as_mut_ptr()) != 0).then(|| info.assume_init()) }
}

/// An address of code, as addr2line wants it.
struct Place(usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(info) = object_of(self.0) else { return write!(f, "{:#x}", self.0) };
        // SAFETY: C strings of the loader, which stay as long as the object does; it is on the stack.
        let name = |text: *const std::ffi::c_char| unsafe { (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy()) };
        write!(f, "{}+{:#x}", name(info.dli_fname).unwrap_or_default(), self.0 - info.dli_fbase.addr())?;
        match name(info.dli_sname) {
            Some(symbol) => write!(f, " ({symbol}+{:#x})", self.0 - info.dli_saddr.addr()),
            None => Ok(()),
        }
    }
}
