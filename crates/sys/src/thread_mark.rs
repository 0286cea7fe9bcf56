//! The mark by which nearfar's code tells itself from the program's, and what else a thread of ours keeps for itself.
//!
//! Not a `thread_local!`: in a library those are reached through a table of the C library (the dynamic thread vector), which it
//! takes from the program's malloc, and which may so lie in memory that is paged. The mark is looked at where nobody serves such
//! memory. It is in the static part of the thread's block instead ("initial exec"), at a fixed distance from the thread pointer.

use std::arch::{asm, global_asm};

// One word: how deep the thread is inside.
global_asm!(
    ".pushsection .tbss.nearfar_inside,\"awT\",%nobits",
    ".p2align 2",
    ".globl nearfar_inside",
    ".hidden nearfar_inside",
    ".type nearfar_inside, %tls_object",
    ".size nearfar_inside, 4",
    "nearfar_inside:",
    ".zero 4",
    ".popsection",
);

/// Where the word of the calling thread is.
#[inline]
fn word() -> *mut u32 {
    let word: *mut u32;
    // SAFETY: computes an address from the thread pointer and the linker's offset; reads nothing of the program's.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {word}, qword ptr [rip + nearfar_inside@gottpoff]",
            "add {word}, qword ptr fs:[0]",
            word = out(reg) word,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mrs {word}, tpidr_el0",
            "adrp {offset}, :gottprel:nearfar_inside",
            "ldr {offset}, [{offset}, :gottprel_lo12:nearfar_inside]",
            "add {word}, {word}, {offset}",
            word = out(reg) word,
            offset = out(reg) _,
            options(pure, readonly, nostack),
        );
    }
    word
}

/// True when this thread is inside nearfar: it holds the lock, or is one of our own.
pub fn is_inside() -> bool {
    // SAFETY: a word of this thread alone, which lives as long as it does.
    unsafe { word().read() > 0 }
}

/// One level further inside.
pub fn go_inside() {
    // SAFETY: as above.
    unsafe { *word() += 1 };
}

/// Back by one level.
pub fn come_out() {
    // SAFETY: as above.
    unsafe { *word() -= 1 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_mark_of_its_own() {
        go_inside();
        go_inside();
        come_out();
        assert!(is_inside());
        assert!(!std::thread::spawn(is_inside).join().expect("ends"));
        come_out();
        assert!(!is_inside());
    }
}
