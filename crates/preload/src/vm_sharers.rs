//! Processes that share our memory (clone with CLONE_VM, not as a thread, nor until exec as vfork) may outlive us. The pager ends with
//! us, and they would wait for their pages for ever: so each has a thread that looks whether we live, and else ends it, and says so.

use crate::managed::Managed;
use nearfar_core::addr::Extent;
use nearfar_sys::call_memory::Lender;
use nearfar_sys::{process, thread};
use nearfar_tiers::{guard, pager};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(300);
/// What `begin` needs of the stack that the program gives, and more.
const STACK: usize = 32 << 10;

/// What a cloned process runs first.
pub type Entry = Option<extern "C" fn(*mut c_void) -> c_int>;

struct Sharer {
    entry: Entry,
    arg: *mut c_void,
    // Whose pager serves it: number and start.
    server: (u32, u64),
    // Keeps in near what of its stack `begin` needs, until it is zero: by then the server may have ended already.
    loan: &'static AtomicU32,
}

/// What a child that is yet to be made is to begin with, and with which argument, so that it runs `entry` with `arg`. Given back by
/// `undo` if there is no child.
pub fn prepare(managed: &Managed, entry: Entry, arg: *mut c_void, stack: usize) -> (Entry, *mut c_void) {
    let pid = process::pid();
    guard::share();
    let loan = managed.with(|memory| {
        let (mut loan, _) = memory.begin_loan();
        loan.lend(&[Extent { start: stack.saturating_sub(STACK), end: stack }]);
        loan.word()
    });
    let sharer = Box::new(Sharer { entry, arg, server: (pid, process::start_of(pid)), loan });
    (Some(begin), Box::into_raw(sharer).cast())
}

/// There is no child.
///
/// # Safety
/// `prepared` is what `prepare` gave, and nobody has begun with it.
pub unsafe fn undo(prepared: *mut c_void) {
    // SAFETY: as the caller says.
    let sharer = unsafe { Box::from_raw(prepared.cast::<Sharer>()) };
    sharer.loan.store(0, Ordering::Release);
}

extern "C" fn begin(sharer: *mut c_void) -> c_int {
    // SAFETY: `prepare` made it, for this child alone.
    let Sharer { entry, arg, server, loan } = *unsafe { Box::from_raw(sharer.cast::<Sharer>()) };
    // Without the thread it may wait for ever, later.
    let _ = thread::spawn("nearfar-sharer", move || watch(server));
    loan.store(0, Ordering::Release);
    let status = entry.map_or(0, |entry| entry(arg));
    // As returning does where there are no other threads.
    process::exit_now(status)
}

/// Allocates nothing: when the program's part ends so does this, wherever it is, and the heap and its lock are others' too.
fn watch((server, start): (u32, u64)) {
    while !process::has_lost_first_thread() {
        if !process::is_alive(server, start) {
            pager::stop(&format!(
                "it shares the memory of process {server} (clone with CLONE_VM), which has ended, so nothing brings its pages any more"
            ));
        }
        std::thread::sleep(PAUSE);
    }
}
