//! Memory that is never taken out of view: what the sampler's own thread uses, since it would wait for itself, and what the kernel
//! writes when a thread ends, since it does not wait then.

use nearfar_core::addr::Extent;
use nearfar_sys::proc_maps;
use std::ffi::c_void;

/// The modules that the sampler's thread runs code of (this one, the C library, the loader), with their data, and its stack. Called on
/// that thread, before it looks at anything.
pub fn ranges() -> Vec<Extent> {
    let maps = proc_maps::own();
    let name_at = |addr: usize| maps.iter().find(|map| map.range.contains(addr)).map(|map| map.name.as_str());
    let within = [ranges as fn() -> Vec<Extent> as usize, libc::poll as usize, libc::clock_gettime as usize, loader()];
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
    found.extend(own_stack());
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

fn own_stack() -> Option<Extent> {
    // SAFETY: plain pthread calls on locals about the calling thread.
    unsafe {
        let mut attr: libc::pthread_attr_t = std::mem::zeroed();
        let (mut start, mut len): (*mut c_void, usize) = (std::ptr::null_mut(), 0);
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attr) != 0 {
            return None;
        }
        libc::pthread_attr_getstack(&attr, &mut start, &mut len);
        libc::pthread_attr_destroy(&mut attr);
        // The thread's descriptor and its thread-local variables lie at the upper end, and count as the stack's.
        Some(Extent::new(start.addr(), len))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_stack_and_code_are_forbidden() {
        std::thread::spawn(|| {
            let local = 0u8;
            static DATA: u8 = 0;
            let ranges = ranges();
            for addr in [(&raw const local).addr(), (&raw const DATA).addr(), libc::poll as usize] {
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
        assert!(!has_thread(&[0; 512]) && !has_thread(&[-32isize as usize; 512]));
        assert!(!has_thread(&(0..512).collect::<Vec<_>>()));
    }
}
