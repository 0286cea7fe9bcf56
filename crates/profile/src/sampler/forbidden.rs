//! Memory that is never taken out of view: what the sampler's own thread uses, since it would wait for itself, and what the kernel
//! writes when a thread ends, since it does not wait then.

use nearfar_core::addr::Extent;
use nearfar_sys::errno::call;
use nearfar_sys::{proc_maps, thread};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The modules that the sampler's thread runs code of (this one, the C library, the loader), with their data, and its stack. Called on
/// that thread, before it looks at anything.
pub fn ranges() -> Vec<Extent> {
    let maps = proc_maps::own();
    let name_at = |addr: usize| maps.iter().find(|map| map.range.contains(addr)).map(|map| map.name.as_str());
    let within =
        [(ranges as *const ()).addr(), (libc::poll as *const ()).addr(), (libc::clock_gettime as *const ()).addr(), loader()];
    let names: Vec<&str> = within.iter().filter_map(|&addr| name_at(addr)).filter(|name| !name.is_empty()).collect();
    let mut found: Vec<Extent> = Vec::new();
    for map in &maps {
        // What follows a module without a name is the rest of its data.
        let follows = map.name.is_empty() && found.last().is_some_and(|last| last.end == map.range.start);
        if names.contains(&map.name.as_str()) || map.name.starts_with("[v") {
            found.push(map.range);
        } else if follows {
            found.extend(data_end(map.range));
        }
    }
    // The thread's descriptor and its thread-local variables lie at the upper end, and count as the stack's.
    found.extend(thread::stack());
    found
}

/// Of the anonymous memory behind a module only a part may be the module's: the loader's segments are not told apart from what was
/// mapped next to them. 16 MiB of data is more than any of the three has.
fn data_end(range: Extent) -> Option<Extent> {
    Some(Extent::new(range.start, range.len().min(16 << 20)))
}

fn loader() -> usize {
    // SAFETY: no arguments but a number.
    unsafe { libc::getauxval(libc::AT_BASE) as usize }
}

/// True when the descriptor of a thread is within `words`, which are the content of a page or several. When the thread ends the kernel
/// clears a word of it, without waiting for us, and pthread_join would wait for that for ever. Told by the head of the robust list as
/// the kernel knows it: two pointers (the last entry, the first), the offset from an entry to its lock, -32 with every 64-bit glibc,
/// and before them the thread's number, in one line of the cache.
pub fn has_thread(words: &[usize]) -> bool {
    const OFFSET: usize = -32isize as usize;
    let is_pointer = |word: usize| (1 << 16..1 << 56).contains(&word);
    words.windows(4).any(|part| {
        let tid = part[0] & 0xFFFF_FFFF;
        part[3] == OFFSET && is_pointer(part[1]) && is_pointer(part[2]) && (1..1 << 22).contains(&tid)
    })
}

/// As `has_thread`, for ranges that are long to search: asks the kernel for the list of every thread. When it is not known, true.
pub fn has_live_thread(range: Extent) -> bool {
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let path = c"/proc/self/task".as_ptr().addr();
    // SAFETY: a C string constant.
    let Ok(fd) = (unsafe { call(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0]) }) else { return true };
    // SAFETY: a fresh descriptor, ours alone.
    let tasks = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    let mut entries = [0u8; 4096];
    loop {
        let args = [tasks.as_raw_fd() as usize, entries.as_mut_ptr().addr(), entries.len(), 0, 0, 0];
        // SAFETY: writes at most its length into a local buffer.
        let got = match unsafe { call(libc::SYS_getdents64, args) } {
            Ok(0) => return false,
            Ok(got) => got,
            Err(_) => return true,
        };
        let mut rest = &entries[..got];
        // linux_dirent64: inode, offset, length of the entry, type, name.
        while let [.., _] = rest.get(..19).unwrap_or_default() {
            let len = usize::from(u16::from_ne_bytes([rest[16], rest[17]])).clamp(19, rest.len());
            let digits = rest[19..len].iter().take_while(|byte| byte.is_ascii_digit());
            let tid = digits.fold(0usize, |tid, byte| tid * 10 + usize::from(byte - b'0'));
            if tid > 0 && robust_head(tid).is_some_and(|head| range.contains(head)) {
                return true;
            }
            rest = &rest[len..];
        }
    }
}

fn robust_head(tid: usize) -> Option<usize> {
    let (mut head, mut len) = (0usize, 0usize);
    let args = [tid, (&raw mut head).addr(), (&raw mut len).addr(), 0, 0, 0];
    // SAFETY: writes two locals.
    unsafe { call(libc::SYS_get_robust_list, args) }.ok().map(|_| head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_stack_and_code_are_forbidden() {
        std::thread::spawn(|| {
            let local = 0u8;
            static DATA: u8 = 0;
            let ranges = ranges();
            for addr in [(&raw const local).addr(), (&raw const DATA).addr(), libc::poll as *const () as usize] {
                assert!(ranges.iter().any(|range| range.contains(addr)), "{addr:x} in {ranges:x?}");
            }
            // SAFETY: the calling thread's own descriptor.
            let own = unsafe { libc::pthread_self() } as usize;
            assert!(ranges.iter().any(|range| range.contains(own)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_are_known_by_their_descriptors() {
        std::thread::spawn(|| {
            // SAFETY: the calling thread's own descriptor, which is longer than that.
            let words = unsafe { std::slice::from_raw_parts(libc::pthread_self() as *const usize, 128) };
            if cfg!(target_env = "gnu") {
                assert!(has_thread(words));
            }
        })
        .join()
        .unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: no arguments.
            tell.send(unsafe { libc::pthread_self() } as usize).unwrap();
            ended.recv().unwrap_err()
        });
        let descriptor = Extent::new(told.recv().unwrap(), 4096);
        assert!(has_live_thread(descriptor));
        drop(end);
        thread.join().unwrap();
        let free = Extent::new(4096, 4096);
        assert!(!has_live_thread(free));
        assert!(!has_thread(&[0; 512]) && !has_thread(&[-32isize as usize; 512]));
        assert!(!has_thread(&(0..512).collect::<Vec<_>>()));
    }
}
