//! The filter that catches system calls whose memory may be absent, for users whose userfaultfd misses the kernel's own
//! accesses (`FaultScope::UserOnly`): such a call raises SIGSYS in the thread that makes it, before anything has happened.
//!
//! It looks at raw arguments only, so pointers that lie in structures are not seen. Calls that take such structures are
//! caught wherever they are made from code of the ranges given: those of this process, which other programs do not share.
//! The filter stays for ever and is inherited by all children, also after exec. Programs that have no handler are never
//! caught: they have no pointers in the watched range (`gate`).
//!
//! io_uring_setup is refused with EPERM, as `kernel.io_uring_disabled` does, since its calls cannot be seen. Calls through the
//! gate pass.

use crate::call_table::{Entry, entries};
use crate::errno::{Errno, call};
use crate::gate::{GATE, WATCHED_PREFIX, WATCHED_SHIFT};
use nearfar_core::addr::{Extent, PAGE};

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Insn {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

#[repr(C)]
struct Program {
    len: u16,
    insns: *const Insn,
}

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_EQ: u16 = 0x15;
const JUMP_GE: u16 = 0x35;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const TRAP: u32 = 0x0003_0000;
const FAIL: u32 = 0x0005_0000;

const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const CODE_LOW: u32 = 8;
const CODE_HIGH: u32 = 12;
const fn arg_low(index: usize) -> u32 {
    16 + 8 * index as u32
}
const fn arg_high(index: usize) -> u32 {
    arg_low(index) + 4
}

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(not(target_arch = "x86_64"))]
const NATIVE: u32 = 0xc000_00b7;

const SET_MODE_FILTER: usize = 1;
const GET_ACTION_AVAIL: usize = 2;
const TSYNC: usize = 1;
const SPEC_ALLOW: usize = 4;

fn insn(code: u16, k: u32) -> Insn {
    Insn { code, jt: 0, jf: 0, k }
}

fn branch(code: u16, k: u32, jt: usize, jf: usize) -> Insn {
    Insn { code, jt: jt as u8, jf: jf as u8, k }
}

/// What to do with a call, by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Allow,
    /// Catch when an argument of the mask is watched; also, when `everywhere` is set, from code of the process.
    Watch {
        mask: u8,
        everywhere: bool,
    },
    Refuse,
    /// futex(2): its operation says which arguments are pointers.
    Futex,
}

/// What of futex(2) is a pointer beside the first argument, and with which operations. The C library leaves in the registers what was
/// there, and makes these calls with all signals blocked: to be caught for nothing would end the program.
const FUTEX: [(usize, &[i32]); 2] = [
    (3, &[libc::FUTEX_WAIT, libc::FUTEX_LOCK_PI, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAIT_REQUEUE_PI, libc::FUTEX_LOCK_PI2]),
    (
        4,
        &[
            libc::FUTEX_REQUEUE,
            libc::FUTEX_CMP_REQUEUE,
            libc::FUTEX_WAKE_OP,
            libc::FUTEX_WAIT_REQUEUE_PI,
            libc::FUTEX_CMP_REQUEUE_PI,
        ],
    ),
];

fn rule(entry: &Entry) -> Rule {
    if entry.0 == libc::SYS_futex {
        return Rule::Futex;
    }
    let mask = entry.1.iter().fold(0, |mask, (arg, _)| mask | 1 << arg);
    Rule::Watch { mask, everywhere: entry.1.iter().any(|(_, kind)| kind.points_on()) }
}

/// Ends in `action` unless the call comes through the gate. With `number` in the accumulator or not.
fn unless_gate(action: u32) -> [Insn; 7] {
    [
        insn(LOAD, CODE_HIGH),
        branch(JUMP_EQ, (GATE >> 32) as u32, 0, 4),
        insn(LOAD, CODE_LOW),
        insn(AND, !(PAGE as u32 - 1)),
        branch(JUMP_EQ, GATE as u32, 0, 1),
        insn(RETURN, ALLOW),
        insn(RETURN, action),
    ]
}

/// Ends in a catch if the argument is watched and the call does not come through the gate.
fn catch_watched(arg: usize) -> Vec<Insn> {
    let mut out = vec![
        insn(LOAD, arg_high(arg)),
        insn(AND, u32::MAX << (WATCHED_SHIFT - 32)),
        branch(JUMP_EQ, (WATCHED_PREFIX as u32) << (WATCHED_SHIFT - 32), 0, 7),
    ];
    out.extend(unless_gate(TRAP));
    out
}

fn futex_body() -> Vec<Insn> {
    let mut out = catch_watched(0);
    for (arg, operations) in FUTEX {
        let check = catch_watched(arg);
        // Without the flags.
        out.extend([insn(LOAD, arg_low(1)), insn(AND, 0x7f)]);
        for (index, &operation) in operations.iter().enumerate() {
            out.push(branch(JUMP_EQ, operation as u32, operations.len() - index, 0));
        }
        out.push(insn(JUMP, check.len() as u32));
        out.extend(check);
    }
    out.push(insn(RETURN, ALLOW));
    out
}

fn body(rule: Rule, code: &[Extent]) -> Vec<Insn> {
    let (mask, everywhere) = match rule {
        Rule::Watch { mask, everywhere } => (mask, everywhere),
        Rule::Allow => return vec![insn(RETURN, ALLOW)],
        Rule::Refuse => return unless_gate(FAIL | libc::EPERM as u32).into(),
        Rule::Futex => return futex_body(),
    };
    let mut out: Vec<Insn> = (0..6).filter(|arg| mask >> arg & 1 == 1).flat_map(catch_watched).collect();
    for range in code.iter().filter(|_| everywhere) {
        let (high, low, end) = ((range.start >> 32) as u32, range.start as u32, (range.end - 1) as u32);
        out.push(insn(LOAD, CODE_HIGH));
        out.push(branch(JUMP_EQ, high, 0, 4));
        out.push(insn(LOAD, CODE_LOW));
        out.push(branch(JUMP_GE, low, 0, 2));
        // The address is that of the next instruction.
        out.push(branch(JUMP_GE, end.saturating_add(1), 1, 0));
        out.push(insn(RETURN, TRAP));
    }
    out.push(insn(RETURN, ALLOW));
    out
}

/// Jumps from the number in the accumulator to the rule of its interval; `starts` are sorted and begin with 0.
fn search(starts: &[(u32, usize)], at: usize, places: &[usize]) -> Vec<Insn> {
    if let [(_, place)] = starts {
        return vec![insn(JUMP, (places[*place] - at - 1) as u32)];
    }
    let (low, high) = starts.split_at(starts.len() / 2);
    let left = search(low, at + 2, places);
    let mut out = vec![branch(JUMP_GE, high[0].0, 0, 1), insn(JUMP, left.len() as u32)];
    let right = search(high, at + 2 + left.len(), places);
    out.extend(left);
    out.extend(right);
    out
}

fn program(code: &[Extent]) -> Vec<Insn> {
    let mut rules: Vec<(u32, Rule)> = entries().map(|entry| (entry.0 as u32, rule(entry))).collect();
    rules.push((libc::SYS_io_uring_setup as u32, Rule::Refuse));
    rules.sort_by_key(|(number, _)| *number);
    let mut kinds = vec![Rule::Allow];
    let mut starts: Vec<(u32, usize)> = vec![(0, 0)];
    for (number, rule) in rules {
        let kind = kinds.iter().position(|known| *known == rule).unwrap_or_else(|| {
            kinds.push(rule);
            kinds.len() - 1
        });
        // From this number on, and from the next one on nothing again, until somebody says otherwise.
        starts.retain(|(start, _)| *start != number);
        starts.extend([(number, kind), (number + 1, 0)]);
    }
    starts.dedup_by(|next, before| next.1 == before.1);
    // Calls by the 32-bit and x32 tables have other numbers and are not for us.
    let head = vec![insn(LOAD, ARCH), branch(JUMP_EQ, NATIVE, 1, 0), insn(RETURN, ALLOW), insn(LOAD, NUMBER)];
    let tree = 3 * starts.len() - 2;
    let bodies: Vec<Vec<Insn>> = kinds.iter().map(|&kind| body(kind, code)).collect();
    let mut places = Vec::new();
    let mut next = head.len() + tree;
    for body in &bodies {
        places.push(next);
        next += body.len();
    }
    let tree = search(&starts, head.len(), &places);
    [head, tree, bodies.concat()].concat()
}

/// Ranges of code that the comparison can tell: each within 4 GiB.
fn pieces(code: &[Extent]) -> Vec<Extent> {
    const STEP: usize = 1 << 32;
    let mut out = Vec::new();
    for range in code {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / STEP + 1) * STEP);
            out.push(Extent { start, end });
            start = end;
        }
    }
    out
}

/// Puts the filter on every thread of this process, and on all that come after. `code` is where calls with structures are
/// caught; nothing in it may be shared with programs that have no handler.
///
/// # Safety
/// A handler for SIGSYS must be in place that makes the calls that are caught, and no thread may block SIGSYS.
pub unsafe fn install(code: &[Extent]) -> Result<(), Errno> {
    let insns = program(&pieces(code));
    let program = Program { len: u16::try_from(insns.len()).map_err(|_| Errno::EINVAL)?, insns: insns.as_ptr() };
    // Without the second flag kernels before 5.16 slow the whole process down.
    let args = [SET_MODE_FILTER, TSYNC | SPEC_ALLOW, &raw const program as usize, 0, 0, 0];
    // SAFETY: the structures are locals that outlive the call; the caller answers for what the filter does.
    let mut result = unsafe { call(libc::SYS_seccomp, args) };
    if result == Err(Errno(libc::EACCES)) {
        // Who is not root must first give up what setuid programs would grant.
        // SAFETY: integers only.
        unsafe { call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0])? };
        // SAFETY: as for the first try, which installed nothing.
        result = unsafe { call(libc::SYS_seccomp, args) };
    }
    match result? {
        0 => Ok(()),
        // A thread has a filter of its own that the others do not have.
        _ => Err(Errno::EBUSY),
    }
}

/// True when this kernel and user have filters that raise signals, and this processor is supported.
pub fn is_available() -> bool {
    let action = TRAP;
    // SAFETY: reads the local.
    let known = unsafe { call(libc::SYS_seccomp, [GET_ACTION_AVAIL, 0, &raw const action as usize, 0, 0, 0]) };
    cfg!(target_arch = "x86_64") && known.is_ok()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// What the kernel would do.
    fn run(program: &[Insn], number: u32, ip: usize, args: [usize; 6]) -> u32 {
        let mut data = vec![number, NATIVE, ip as u32, (ip >> 32) as u32];
        args.iter().for_each(|&arg| data.extend([arg as u32, (arg >> 32) as u32]));
        let (mut at, mut acc) = (0, 0);
        loop {
            let insn = program[at];
            at += 1;
            match insn.code {
                LOAD => acc = data[insn.k as usize / 4],
                AND => acc &= insn.k,
                JUMP => at += insn.k as usize,
                JUMP_EQ => at += if acc == insn.k { insn.jt } else { insn.jf } as usize,
                JUMP_GE => at += if acc >= insn.k { insn.jt } else { insn.jf } as usize,
                RETURN => return insn.k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const HEAP: usize = 0x3000_1234_5000;
    const STACK: usize = 0x7ffd_0000_0000;
    const CODE: Extent = Extent { start: 0x7f12_ffff_0000, end: 0x7f13_0001_0000 };

    #[test]
    fn what_is_caught() {
        let program = program(&pieces(&[CODE]));
        assert!(program.len() < 4096, "{}", program.len());
        let at = |number: libc::c_long, ip, args| run(&program, number as u32, ip, args);
        assert_eq!(at(libc::SYS_read, STACK, [3, HEAP, 10, 0, 0, 0]), TRAP);
        assert_eq!(at(libc::SYS_read, GATE + 2, [3, HEAP, 10, 0, 0, 0]), ALLOW);
        assert_eq!(at(libc::SYS_read, STACK, [3, STACK, HEAP, HEAP, HEAP, HEAP]), ALLOW);
        assert_eq!(at(libc::SYS_read, STACK, [3, 0x4000_0000_0000, 10, 0, 0, 0]), ALLOW);
        assert_eq!(at(libc::SYS_madvise, STACK, [HEAP, 4096, 4, 0, 0, 0]), ALLOW);
        let futex = |operation: i32, args: [usize; 3]| {
            at(libc::SYS_futex, STACK, [args[0], operation as usize, 0, args[1], args[2], HEAP])
        };
        assert_eq!(futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, [HEAP, 0, 0]), TRAP);
        assert_eq!(futex(libc::FUTEX_WAKE, [STACK, HEAP, HEAP]), ALLOW);
        assert_eq!(futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, [STACK, 0, HEAP]), ALLOW);
        assert_eq!(futex(libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME, [STACK, HEAP, 0]), TRAP);
        assert_eq!(futex(libc::FUTEX_LOCK_PI2, [STACK, HEAP, 0]), TRAP);
        assert_eq!(futex(libc::FUTEX_REQUEUE, [STACK, HEAP, STACK]), ALLOW);
        for operation in [libc::FUTEX_REQUEUE, libc::FUTEX_CMP_REQUEUE_PI, libc::FUTEX_WAKE_OP] {
            assert_eq!(futex(operation, [STACK, 0, HEAP]), TRAP);
        }
        // Structures: wherever the pointer is, from the code named, on both sides of the border that the program has to split.
        for ip in [CODE.start + 2, CODE.end - 2, 0x7f13_0000_0000] {
            assert_eq!(at(libc::SYS_writev, ip, [1, STACK, 2, 0, 0, 0]), TRAP, "{ip:#x}");
        }
        for ip in [CODE.start - 1, CODE.end + 1, STACK, CODE.start + (1 << 32)] {
            assert_eq!(at(libc::SYS_writev, ip, [1, STACK, 2, 0, 0, 0]), ALLOW, "{ip:#x}");
        }
        assert_eq!(at(libc::SYS_writev, STACK, [1, HEAP, 2, 0, 0, 0]), TRAP);
        assert_eq!(at(libc::SYS_io_uring_setup, STACK, [8, STACK, 0, 0, 0, 0]), FAIL | libc::EPERM as u32);
        assert_eq!(at(libc::SYS_io_uring_setup, GATE + 63, [8, STACK, 0, 0, 0, 0]), ALLOW);
        // Every call of the table, every argument, and nothing else.
        for number in 0..600 {
            let entry = entries().find(|entry| entry.0 == number);
            for arg in 0..6 {
                let mut args = [0; 6];
                args[arg] = HEAP;
                let watched = entry.is_some_and(|entry| entry.1.iter().any(|(index, _)| *index == arg));
                // The operation here is to wait, which has no second word.
                let unused = number == libc::SYS_futex && arg == 4;
                let expected = if watched && !unused { TRAP } else { ALLOW };
                if number != libc::SYS_io_uring_setup {
                    assert_eq!(at(number, STACK, args), expected, "call {number} argument {arg}");
                }
            }
        }
    }
}
