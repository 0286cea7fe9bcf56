//! The memory that one system call uses, found by its arguments and by the structures that they point to.

use crate::call_table::{Entry, Use, entries};
use crate::gate;
use crate::process;
use nearfar_core::addr::{Extent, PAGE};

/// Longest text that the kernel takes as one: a path, or an argument of exec.
const TEXT: usize = 128 << 10;
/// Most items that the kernel takes in one call of the kinds that have a list.
const ITEMS: usize = 1024;
/// Most items of any other list that are looked at: more descriptors than a process may have.
const MOST_ITEMS: usize = 1 << 20;
/// Most strings of an environment that are looked at.
const STRINGS: usize = 1 << 17;
const WORD: usize = size_of::<usize>();
/// Least size of what an ioctl points to: old ones do not say.
const PACKED: usize = 256;

/// Whoever makes memory present.
pub trait Lender {
    /// The kernel is about to use these ranges; they need not be watched, mapped or sensible.
    fn lend(&mut self, ranges: &[Extent]);
}

/// True when the filter watches `addr`.
pub fn is_watched(addr: usize) -> bool {
    addr >> gate::WATCHED_SHIFT == gate::WATCHED_PREFIX
}

/// What the table says of a call.
pub fn entry(number: usize) -> Option<&'static Entry> {
    entries().find(|entry| entry.0 as usize == number)
}

/// True when a pointer of the call is watched, or may be further on.
pub fn concerns(entry: &Entry, args: &[usize; 6]) -> bool {
    entry.1.iter().any(|&(arg, kind)| is_watched(args[arg]) || kind.points_on())
}

/// Reads memory of this process as the kernel would: nonsense is refused instead of raising a signal, except where a container forbids
/// process_vm_readv. Absent pages of watched memory are refused as well, so they must be lent first.
pub fn peek(addr: usize, out: &mut [u8]) -> bool {
    let here = [out.as_mut_ptr() as usize, out.len()];
    let there = [addr, out.len()];
    // The thread, since the process has no memory any more once its first thread has ended.
    let args = [process::tid() as usize, here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    // SAFETY: writes at most `out.len()` bytes to `out`; the source is checked by the kernel.
    let got = unsafe { gate::call(libc::SYS_process_vm_readv as usize, args) };
    if got == -libc::ENOSYS as isize || got == -libc::EPERM as isize {
        // Containers may forbid it. What the program hands to the kernel is memory, unless the program is wrong.
        // SAFETY: the program says that the kernel may read there.
        unsafe { std::ptr::copy_nonoverlapping(addr as *const u8, out.as_mut_ptr(), out.len()) };
        return true;
    }
    got == out.len() as isize
}

/// Reads memory of this process that may be gone: as `peek`, but nothing where a container forbids process_vm_readv.
pub fn word_if_there(addr: u64) -> Option<u64> {
    let mut word = 0u64;
    let here = [(&raw mut word).addr(), size_of::<u64>()];
    let there = [addr as usize, size_of::<u64>()];
    let args = [process::tid() as usize, here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    // SAFETY: writes at most a word to the local; the source is checked by the kernel.
    let got = unsafe { gate::call(libc::SYS_process_vm_readv as usize, args) };
    (got == size_of::<u64>() as isize).then_some(word)
}

/// Writes memory of this process as the kernel would; as for `peek`.
pub fn poke(addr: usize, bytes: &[u8]) -> bool {
    let here = [bytes.as_ptr() as usize, bytes.len()];
    let there = [addr, bytes.len()];
    let args = [process::tid() as usize, here.as_ptr() as usize, 1, there.as_ptr() as usize, 1, 0];
    // SAFETY: the kernel checks the target, which the program has named as one to be written by the kernel.
    let got = unsafe { gate::call(libc::SYS_process_vm_writev as usize, args) };
    if got == -libc::ENOSYS as isize || got == -libc::EPERM as isize {
        // SAFETY: the program says that the kernel may write there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), addr as *mut u8, bytes.len()) };
        return true;
    }
    got == bytes.len() as isize
}

/// Reads `N` words as `peek` does.
pub fn words<const N: usize>(addr: usize) -> Option<[usize; N]> {
    let mut out = [0; N];
    // SAFETY: the bytes of an array of integers.
    let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), N * WORD) };
    peek(addr, bytes).then_some(out)
}

/// The items `of N` words of a list of `count`; fewer when it ends in nonsense.
fn list<const N: usize>(addr: usize, count: usize) -> Vec<[usize; N]> {
    (0..count.min(ITEMS)).map_while(|index| words(addr.wrapping_add(index * N * WORD))).collect()
}

fn range(addr: usize, len: usize) -> Extent {
    Extent { start: addr, end: addr.saturating_add(len) }
}

fn to_page_end(addr: usize) -> Extent {
    range(addr, PAGE - addr % PAGE)
}

/// The buffers of a list of `iovec`s.
pub fn buffers(addr: usize, count: usize) -> Vec<Extent> {
    list::<2>(addr, count).into_iter().map(|[base, len]| range(base, len)).collect()
}

/// What can be told without reading any memory.
fn direct(kind: Use, addr: usize, args: &[usize; 6]) -> Extent {
    let times = |count: usize, size: usize| count.min(1 << 32).saturating_mul(size);
    let len = match kind {
        Use::Bytes(len) => len,
        Use::Len(arg) => args[arg],
        Use::Typed(arg) => args[arg].saturating_add(WORD),
        Use::Pages(arg) => args[arg].div_ceil(PAGE),
        // Negative counts, which the kernel refuses, and such as stand for "all".
        Use::Count(arg, size) => usize::try_from(args[arg] as i32).unwrap_or(0).min(MOST_ITEMS) * size,
        Use::Bits(arg) => (args[arg] / 8 + WORD).min(PAGE),
        Use::Fds => (args[0] as u32 as usize).div_ceil(64) * WORD,
        Use::Packed(arg) => (args[arg] >> 16 & 0x3fff).max(PACKED),
        Use::Iov(arg) | Use::IovOfProcess(arg) => times(args[arg].min(ITEMS), 2 * WORD),
        Use::Message => 7 * WORD,
        Use::Messages(arg) => times((args[arg] as u32 as usize).min(ITEMS), 8 * WORD),
        Use::Blocks(arg) => times(args[arg].min(ITEMS), WORD),
        Use::Sigmask => 2 * WORD,
        Use::Text | Use::Strings => return to_page_end(addr),
        Use::LenAt(_) => 0,
    };
    range(addr, len)
}

/// Lends a text of which the first page has been lent.
fn text(addr: usize, lender: &mut dyn Lender) {
    let mut part = to_page_end(addr);
    let mut bytes = [0; PAGE];
    while peek(part.start, &mut bytes[..part.len()]) && !bytes[..part.len()].contains(&0) && part.end - addr < TEXT {
        part = range(part.end, PAGE);
        if is_watched(part.start) {
            lender.lend(&[part]);
        }
    }
}

fn strings(addr: usize, lender: &mut dyn Lender) {
    let mut lent = addr / PAGE;
    for index in 0..STRINGS {
        let place = addr.wrapping_add(index * WORD);
        if place / PAGE != lent && is_watched(place) {
            lent = place / PAGE;
            lender.lend(&[to_page_end(place)]);
        }
        match words::<1>(place) {
            Some([string]) if string != 0 => {
                if is_watched(string) {
                    lender.lend(&[to_page_end(string)]);
                    text(string, lender);
                }
            }
            _ => return,
        }
    }
}

fn message(addr: usize, lender: &mut dyn Lender) {
    let Some([name, name_len, iov, count, control, control_len, _]) = words::<7>(addr) else { return };
    let lists = [range(name, name_len as u32 as usize), range(iov, count.min(ITEMS) * 2 * WORD), range(control, control_len)];
    lender.lend(&lists);
    lender.lend(&buffers(iov, count));
}

fn blocks(addr: usize, count: usize, lender: &mut dyn Lender) {
    const VECTORS: [usize; 2] = [7, 8];
    let places: Vec<usize> = list::<1>(addr, count).into_iter().map(|[place]| place).collect();
    let heads: Vec<Extent> = places.iter().map(|&place| range(place, 8 * WORD)).collect();
    lender.lend(&heads);
    for place in places {
        let Some([_, _, kind, buffer, len]) = words::<5>(place) else { continue };
        if VECTORS.contains(&(kind & 0xffff)) {
            lender.lend(&[range(buffer, len.min(ITEMS) * 2 * WORD)]);
            lender.lend(&buffers(buffer, len));
        } else {
            lender.lend(&[range(buffer, len)]);
        }
    }
}

/// Has all memory lent that the call `args` of `entry` uses.
pub fn lend_all(entry: &Entry, args: &[usize; 6], lender: &mut dyn Lender) {
    let first: Vec<Extent> = entry.1.iter().map(|&(arg, kind)| direct(kind, args[arg], args)).collect();
    lender.lend(&first);
    for &(arg, kind) in entry.1 {
        let addr = args[arg];
        match kind {
            _ if addr == 0 => {}
            Use::Text if is_watched(addr) => text(addr, lender),
            Use::LenAt(other) if is_watched(addr) => {
                if let Some([len]) = words::<1>(args[other] & !7) {
                    // The word may be the upper half of the eight bytes read.
                    let len = if args[other] & 4 == 0 { len as u32 as usize } else { len >> 32 };
                    lender.lend(&[range(addr, len)]);
                }
            }
            Use::Strings => strings(addr, lender),
            Use::Iov(count) => lender.lend(&buffers(addr, args[count])),
            Use::IovOfProcess(count) if [process::pid(), process::tid()].contains(&(args[0] as u32)) => {
                lender.lend(&buffers(addr, args[count]));
            }
            Use::Message => message(addr, lender),
            Use::Messages(count) => {
                (0..(args[count] as u32 as usize).min(ITEMS)).for_each(|index| message(addr + index * 8 * WORD, lender));
            }
            Use::Blocks(count) => blocks(addr, args[count], lender),
            Use::Sigmask => {
                if let Some([mask, len]) = words::<2>(addr) {
                    lender.lend(&[range(mask, len.min(WORD))]);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Noted(Vec<Extent>);
    impl Lender for Noted {
        fn lend(&mut self, ranges: &[Extent]) {
            self.0.extend(ranges.iter().filter(|range| !range.is_empty()));
        }
    }

    fn lent(number: libc::c_long, args: [usize; 6]) -> Vec<(usize, usize)> {
        let mut noted = Noted::default();
        lend_all(entry(number as usize).expect("in the table"), &args, &mut noted);
        noted.0.iter().map(|range| (range.start, range.len())).collect()
    }

    #[test]
    fn plain_buffers() {
        assert_eq!(lent(libc::SYS_read, [3, 0x1000, 77, 0, 0, 0]), [(0x1000, 77)]);
        assert_eq!(lent(libc::SYS_ppoll, [0x1000, 3, 0, 0, 0, 0]), [(0x1000, 24), (0, 16), (0, 8)]);
        assert_eq!(lent(libc::SYS_msgsnd, [1, 0x1000, 10, 0, 0, 0]), [(0x1000, 18)]);
        assert_eq!(lent(libc::SYS_write, [1, usize::MAX - 1, 10, 0, 0, 0]), [(usize::MAX - 1, 1)]);
    }

    #[test]
    fn structures_are_followed() {
        let iov = [[0x1000usize, 10], [0x2000, 20]];
        let at = iov.as_ptr() as usize;
        assert_eq!(lent(libc::SYS_writev, [1, at, 2, 0, 0, 0]), [(at, 32), (0x1000, 10), (0x2000, 20)]);
        let message = [0x5000usize, 16, at, 2, 0x6000, 24, 0];
        let place = message.as_ptr() as usize;
        let all = [(place, 56), (0x5000, 16), (at, 32), (0x6000, 24), (0x1000, 10), (0x2000, 20)];
        assert_eq!(lent(libc::SYS_sendmsg, [1, place, 0, 0, 0, 0]), all);
        let block = [0usize, 0, 1, 0x7000, 512, 0, 0, 0];
        let blocks = [block.as_ptr() as usize];
        let expected = [(blocks.as_ptr() as usize, 8), (blocks[0], 64), (0x7000, 512)];
        assert_eq!(lent(libc::SYS_io_submit, [1, 1, blocks.as_ptr() as usize, 0, 0, 0]), expected);
    }

    #[test]
    fn memory_of_another_process_is_left_alone() {
        let iov = [[0x1000usize, 10]];
        let at = iov.as_ptr() as usize;
        let (own, other) = (process::pid() as usize, 1);
        let here = (at, 16);
        assert_eq!(lent(libc::SYS_process_vm_readv, [own, at, 1, at, 1, 0]), [here, here, (0x1000, 10), (0x1000, 10)]);
        assert_eq!(lent(libc::SYS_process_vm_readv, [other, at, 1, at, 1, 0]), [here, here, (0x1000, 10)]);
    }

    #[test]
    fn nonsense_is_refused_and_texts_end() {
        assert!(!peek(8, &mut [0; 8]) && buffers(8, 3).is_empty());
        assert_eq!(lent(libc::SYS_writev, [1, 8, usize::MAX, 0, 0, 0]), [(8, ITEMS * 16)]);
        let strings = [c"one".as_ptr() as usize, 0];
        assert!(lent(libc::SYS_execve, [0, strings.as_ptr() as usize, 0, 0, 0, 0]).len() >= 3);
    }
}
