//! Threads of nearfar's own.
//!
//! `std::thread` is not used: it allocates and registers destructors in the new thread before our code runs, through the
//! program's malloc, which is ours, which may wait for the very thread that is starting. Where memory is paged, the C library is not
//! asked either (`own_thread`).

use crate::errno::Errno;
use crate::own_thread;
use nearfar_core::addr::Extent;
use std::ffi::{CString, c_void};

pub use crate::thread_mark::{come_out, go_inside, is_inside};

type Body = Box<dyn FnOnce() + Send>;

extern "C" fn begin(body: *mut c_void) -> *mut c_void {
    go_inside();
    // The C library would wait for this thread for ever.
    crate::signal::unblock(crate::signal::SETXID);
    // SAFETY: `spawn` made this pointer from a box and gave it to this thread alone.
    let body = unsafe { Box::from_raw(body.cast::<Body>()) };
    body();
    std::ptr::null_mut()
}

/// Starts a detached thread named `name` (at most 15 bytes) that is inside for all its life, with every signal blocked but
/// that of setuid(2). Of the kind of `own_thread` once that is prepared.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Errno> {
    if own_thread::is_prepared() {
        return own_thread::spawn(name, Box::new(body));
    }
    const STACK: usize = 512 << 10;
    const LARGEST: usize = 8 << 30;
    let _signals = crate::signal::Blocked::all();
    go_inside();
    let body: Body = Box::new(body);
    let body = Box::into_raw(Box::new(body));
    // SAFETY: plain pthread calls on locals; the body belongs to the new thread when it starts, and to us when it does not.
    let result = unsafe {
        let mut attr: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attr);
        libc::pthread_attr_setdetachstate(&mut attr, libc::PTHREAD_CREATE_DETACHED);
        let mut size = STACK;
        let result = loop {
            libc::pthread_attr_setstacksize(&mut attr, size);
            let result = libc::pthread_create(&mut thread, &attr, begin, body.cast());
            // A stack also holds the program's thread-local arrays, and is refused when they do not fit.
            if result != libc::EINVAL || size >= LARGEST {
                break result;
            }
            size *= 4;
        };
        libc::pthread_attr_destroy(&mut attr);
        if result == 0 {
            if let Ok(name) = CString::new(name) {
                libc::pthread_setname_np(thread, name.as_ptr());
            }
        } else {
            drop(Box::from_raw(body));
        }
        result
    };
    come_out();
    if result == 0 { Ok(()) } else { Err(Errno(result)) }
}

/// The stack of the calling thread, as the C library knows it; its upper end holds what belongs to the thread itself. May allocate,
/// and reads /proc for the first thread.
pub fn stack() -> Option<Extent> {
    // SAFETY: plain pthread calls on locals about the calling thread.
    unsafe {
        let mut attr: libc::pthread_attr_t = std::mem::zeroed();
        let (mut start, mut len): (*mut c_void, usize) = (std::ptr::null_mut(), 0);
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attr) != 0 {
            return None;
        }
        libc::pthread_attr_getstack(&attr, &mut start, &mut len);
        libc::pthread_attr_destroy(&mut attr);
        Some(Extent::new(start.addr(), len))
    }
}

/// Where the C library keeps what it knows of the calling thread.
pub fn descriptor() -> usize {
    // SAFETY: no arguments.
    (unsafe { libc::pthread_self() }) as usize
}

/// Lets other threads that want this CPU run first.
pub fn give_way() {
    // SAFETY: no arguments, no effect but on scheduling.
    unsafe { libc::sched_yield() };
}

/// Asks the scheduler to let this thread run soon whenever it wakes up, in short turns: others wait for it, and it for
/// little. Its share of the CPUs stays what it is. Kernels before 6.12 do not know this, and nothing changes.
pub fn be_prompt() {
    /// The shortest turn that the kernel grants, ns.
    const TURN_NS: u64 = 100_000;
    const SIZE: usize = size_of::<libc::sched_attr>();
    // SAFETY: plain integers.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in at most `SIZE` bytes of a local structure of that size.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    if got != 0 || attr.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attr.size = SIZE as u32;
    attr.sched_runtime = TURN_NS;
    // SAFETY: reads a local structure; affects the scheduling of this thread only.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
}
