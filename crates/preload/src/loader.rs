//! The loader's locks. A fork copies them as they are: held by a thread that the child does not have, they stay held there for ever, and the
//! child hangs at its first look-up (seen with glibc 2.36 in dl_iterate_phdr). So none of our own look-ups is under way while this process
//! forks, unless one takes longer than a fork waits for it.
//!
//! Look-ups take microseconds, and none is on the way of an ordinary allocation. What the program does with the loader by itself (dlopen in one thread, fork in
//! another) is as it is without nearfar.

use nearfar_core::addr::Extent;
use nearfar_sys::process;
use std::ffi::{CStr, c_int, c_void};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The thread that looks something up, or forks; 0: none.
static HOLDER: AtomicU32 = AtomicU32::new(0);
/// The holder forks.
static FORKS: AtomicBool = AtomicBool::new(false);
/// So often a fork gives its CPU away for a look-up to end: far longer than one takes, and no longer, since whoever looks something up may
/// wait for what the forking thread holds.
const PATIENCE: u32 = 200_000;
/// So often a look-up does for a fork to end, which takes longer. No longer: the holder may be a thread that this process does not have, as
/// after a fork by a raw system call.
const LONG_PATIENCE: u32 = 1_000_000;

/// Runs `look`, a call of the loader, not during a fork.
pub fn look_up<R>(look: impl FnOnce() -> R) -> R {
    let own = process::tid();
    // In a signal handler, or one around a fork.
    if HOLDER.load(Ordering::Relaxed) == own {
        return look();
    }
    let holds = hold(own, LONG_PATIENCE);
    let found = look();
    if holds {
        HOLDER.store(0, Ordering::Release);
    }
    found
}

/// A loaded object while the loader describes it.
pub struct Described<'a>(&'a libc::dl_phdr_info);

impl Described<'_> {
    /// What is added to addresses of the file.
    pub fn base(&self) -> usize {
        self.0.dlpi_addr as usize
    }

    /// Its path as the loader knows it; empty for the program.
    pub fn name(&self) -> &[u8] {
        // SAFETY: null or a C string of the loader's.
        if self.0.dlpi_name.is_null() { b"" } else { unsafe { CStr::from_ptr(self.0.dlpi_name) }.to_bytes() }
    }

    /// A number that changes whenever objects are loaded or unloaded.
    pub fn generation(&self) -> u64 {
        self.0.dlpi_adds << 20 | self.0.dlpi_subs & 0xf_ffff
    }

    /// Its program headers of this type, and where each lies.
    pub fn headers(&self, kind: u32) -> impl Iterator<Item = (Extent, &libc::Elf64_Phdr)> + Clone {
        // SAFETY: the loader keeps `dlpi_phnum` headers at `dlpi_phdr`, which is not null (`visit`).
        let headers = unsafe { std::slice::from_raw_parts(self.0.dlpi_phdr, self.0.dlpi_phnum as usize) };
        headers.iter().filter(move |header| header.p_type == kind).map(|header| {
            let start = self.base().wrapping_add(header.p_vaddr as usize);
            (Extent { start, end: start.wrapping_add(header.p_memsz as usize) }, header)
        })
    }
}

type Visitor<'a> = &'a mut dyn FnMut(&Described<'_>) -> ControlFlow<()>;

/// Calls `each` for the loaded objects, the program first, until it breaks off. Takes no memory, and no locks but the loader's own for
/// walking its list.
pub fn each_object(mut each: Visitor<'_>) {
    // SAFETY: `visit` gets back the pointer to `each`, which outlives the call.
    look_up(|| unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut each).cast()) });
}

/// # Safety
/// Called by dl_iterate_phdr with a description of a loaded object and the visitor of `each_object`.
unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _size: usize, each: *mut c_void) -> c_int {
    // SAFETY: valid for the call, as documented for dl_iterate_phdr; the pointer that `each_object` passed.
    let (object, each) = unsafe { (&*object, &mut *each.cast::<Visitor<'_>>()) };
    let goes_on = object.dlpi_phdr.is_null() || each(&Described(object)).is_continue();
    c_int::from(!goes_on)
}

/// Makes this thread the holder; false when another one was it all the time.
fn hold(own: u32, patience: u32) -> bool {
    (0..patience).any(|_| {
        let got = HOLDER.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !got {
            std::thread::yield_now();
        }
        got
    })
}

/// Before a fork (`at_fork`).
pub fn fork_prepare() {
    if hold(process::tid(), PATIENCE) {
        FORKS.store(true, Ordering::Relaxed);
    }
}

/// After it in the child: whoever was the holder is not here.
pub fn fork_child() {
    FORKS.store(false, Ordering::Relaxed);
    HOLDER.store(0, Ordering::Release);
}

/// After it in the parent.
pub fn fork_done() {
    if FORKS.swap(false, Ordering::Relaxed) {
        HOLDER.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: the holder is one for the process.
    #[test]
    fn look_ups_and_forks_take_turns() {
        assert_eq!(look_up(|| look_up(|| 7)), 7);
        assert_eq!(HOLDER.load(Ordering::Relaxed), 0);
        fork_prepare();
        assert_eq!(look_up(|| 8), 8, "by the thread that forks");
        let other = std::thread::spawn(|| look_up(|| 9));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!other.is_finished(), "another one waits");
        fork_done();
        assert_eq!(other.join().ok(), Some(9));
        // A look-up that does not end keeps no fork waiting for ever, and stays the holder.
        HOLDER.store(u32::MAX, Ordering::Relaxed);
        fork_prepare();
        fork_done();
        assert_eq!(look_up(|| 10), 10, "nor another look-up");
        assert_eq!(HOLDER.swap(0, Ordering::Relaxed), u32::MAX);
    }
}
