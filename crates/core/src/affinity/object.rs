//! What a mapping of a process is for: heap, stacks, static data, files. Told from names and neighbours, since the kernel knows ranges only.
//!
//! Stacks of threads are inferred: an area that a stack pointer lies in, or one directly above a small area without access (the guard
//! that C libraries put there). Since glibc 2.42 guards are no areas of their own, so that the pointers alone tell.

use serde::Serialize;
use std::fmt;

/// What pages are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Object {
    /// malloc: the program break, and the arenas of glibc for threads.
    Heap,
    /// Large allocations and other private mappings without a file.
    #[default]
    Anonymous,
    /// The stack of the first thread.
    MainStack,
    /// Stacks of the other threads.
    ThreadStacks,
    /// Static data of the program (.data and .bss).
    ProgramData,
    /// Static data of libraries.
    LibraryData,
    /// Code, constants and mapped files.
    Files,
    /// Shared memory.
    Shared,
}

impl Object {
    /// Every kind, in the order of reports.
    pub const ALL: [Object; 8] = [
        Object::Heap,
        Object::Anonymous,
        Object::MainStack,
        Object::ThreadStacks,
        Object::ProgramData,
        Object::LibraryData,
        Object::Files,
        Object::Shared,
    ];

    /// Data that the process alone has.
    pub const fn is_own_data(self) -> bool {
        !matches!(self, Object::Files | Object::Shared)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Object::Heap => "heap",
            Object::Anonymous => "anonymous (mmap, large malloc)",
            Object::MainStack => "main stack",
            Object::ThreadStacks => "thread stacks (inferred)",
            Object::ProgramData => "static data, program",
            Object::LibraryData => "static data, libraries",
            Object::Files => "files (code included)",
            Object::Shared => "shared memory",
        })
    }
}

/// A mapping and its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// May be read, written or executed at all.
    pub accessible: bool,
    /// May be written.
    pub writable: bool,
    /// MAP_SHARED.
    pub shared: bool,
    /// Path, name in brackets, or nothing.
    pub name: String,
    /// Bytes in memory.
    pub bytes: u64,
    /// Of those, the process's own copies.
    pub anonymous_bytes: u64,
    /// Of `bytes`, in huge pages of any kind.
    pub huge_bytes: u64,
    /// Bytes in swap.
    pub swap_bytes: u64,
    /// Memory policy, as the kernel writes it; empty when unknown.
    pub policy: String,
    /// Bytes by NUMA node; empty when unknown.
    pub nodes: Vec<(u32, u64)>,
}

/// Guards of stacks are small (a page, 64 KiB on some machines); reservations of allocators are not.
const LARGEST_GUARD: u64 = 1 << 20;
/// Arenas of glibc: reserved in this size and alignment, accessible from the front (HEAP_MAX_SIZE of 64-bit machines).
const ARENA: u64 = 64 << 20;

/// The kind of each of `areas` (ascending by address) of a process whose program is the file `program`; `None` for what the kernel
/// itself maps. `stack_pointers` are those of its threads, as far as known.
pub fn classify(areas: &[Area], program: &str, stack_pointers: &[u64]) -> Vec<Option<Object>> {
    let mut objects: Vec<Option<Object>> = Vec::with_capacity(areas.len());
    for (index, area) in areas.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| (&areas[before], objects[before]));
        let before = before.filter(|(before, _)| before.end == area.start);
        let next = areas.get(index + 1).filter(|next| next.start == area.end);
        objects.push(object(area, before, next, program, stack_pointers));
    }
    objects
}

fn object(
    area: &Area,
    before: Option<(&Area, Option<Object>)>,
    next: Option<&Area>,
    program: &str,
    sps: &[u64],
) -> Option<Object> {
    let name = area.name.as_str();
    match name {
        "[heap]" => return Some(Object::Heap),
        "[stack]" => return Some(Object::MainStack),
        _ => {}
    }
    if let Some(label) = name.strip_prefix("[anon:") {
        // Names that the program gave (prctl PR_SET_VMA_ANON_NAME).
        return Some(match label {
            label if label.contains("stack") => Object::ThreadStacks,
            label if label.contains("malloc") || label.contains("heap") => Object::Heap,
            _ => Object::Anonymous,
        });
    }
    if name.starts_with("[stack:") {
        return Some(Object::ThreadStacks);
    }
    if name.starts_with("[v") || name == "[uprobes]" {
        return None;
    }
    let private_huge = name.starts_with("/anon_hugepage");
    if area.shared && !private_huge {
        let in_memory = ["/dev/shm/", "/SYSV", "/memfd:", "/dev/zero", "[anon_shmem", "/dev/hugepages"];
        let memory = name.is_empty() || in_memory.iter().any(|prefix| name.starts_with(prefix)) || area.huge_bytes > 0;
        return Some(if memory { Object::Shared } else { Object::Files });
    }
    if name.starts_with('/') && !private_huge {
        let data = area.writable || area.anonymous_bytes > 0;
        let file = name.rsplit('/').next().unwrap_or(name);
        return Some(match data {
            true if name == program => Object::ProgramData,
            true if file.contains(".so") => Object::LibraryData,
            _ => Object::Files,
        });
    }
    // .bss begins where .data ends, in a mapping without a name.
    if let Some((data, Some(kind @ (Object::ProgramData | Object::LibraryData)))) = before
        && data.writable
        && area.writable
        && data.name.starts_with('/')
    {
        return Some(kind);
    }
    if sps.iter().any(|sp| (area.start..area.end).contains(sp)) {
        return Some(Object::ThreadStacks);
    }
    let arena = |rest: &Area| !rest.accessible && rest.name.is_empty() && rest.end == area.start + ARENA;
    if area.start.is_multiple_of(ARENA) && (next.is_some_and(arena) || area.end == area.start + ARENA) {
        return Some(Object::Heap);
    }
    let guard = |before: &Area| !before.accessible && before.name.is_empty() && before.end - before.start <= LARGEST_GUARD;
    if area.accessible && before.is_some_and(|(before, _)| guard(before)) {
        return Some(Object::ThreadStacks);
    }
    Some(Object::Anonymous)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: u64, end: u64, perms: &str, name: &str) -> Area {
        let has = |letter| perms.contains(letter);
        Area {
            start,
            end,
            accessible: has('r') || has('w') || has('x'),
            writable: has('w'),
            shared: has('s'),
            name: name.into(),
            ..Area::default()
        }
    }

    #[test]
    fn mappings_of_a_threaded_program() {
        let mib = 1 << 20;
        let arena = 64 * mib * 1000;
        let areas = [
            (area(0x1000, 0x2000, "r-xp", "/bin/prog"), Some(Object::Files)),
            (area(0x2000, 0x3000, "rw-p", "/bin/prog"), Some(Object::ProgramData)),
            (area(0x3000, 0x9000, "rw-p", ""), Some(Object::ProgramData)),
            (area(0xa000, 0xb000, "rw-p", "[heap]"), Some(Object::Heap)),
            (area(arena, arena + mib, "rw-p", ""), Some(Object::Heap)),
            (area(arena + mib, arena + 64 * mib, "---p", ""), Some(Object::Anonymous)),
            (area(arena + 100 * mib, arena + 100 * mib + 4096, "---p", ""), Some(Object::Anonymous)),
            (area(arena + 100 * mib + 4096, arena + 108 * mib, "rw-p", ""), Some(Object::ThreadStacks)),
            (area(arena + 200 * mib, arena + 208 * mib, "rw-p", ""), Some(Object::ThreadStacks)),
            (area(arena + 300 * mib, arena + 500 * mib, "rw-p", ""), Some(Object::Anonymous)),
            (area(arena + 501 * mib, arena + 502 * mib, "rw-p", "/usr/lib/libx.so.6"), Some(Object::LibraryData)),
            (area(arena + 502 * mib, arena + 503 * mib, "rw-p", ""), Some(Object::LibraryData)),
            (area(arena + 504 * mib, arena + 505 * mib, "rw-s", "/dev/shm/ring"), Some(Object::Shared)),
            (area(arena + 506 * mib, arena + 507 * mib, "rw-s", "/data/table"), Some(Object::Files)),
            (area(arena + 508 * mib, arena + 509 * mib, "rw-p", "/anon_hugepage (deleted)"), Some(Object::Anonymous)),
            (area(arena + 510 * mib, arena + 511 * mib, "rw-p", "[anon: glibc: pthread stack: 7]"), Some(Object::ThreadStacks)),
            (area(arena + 520 * mib, arena + 521 * mib, "rw-p", "[stack]"), Some(Object::MainStack)),
            (area(arena + 530 * mib, arena + 531 * mib, "r-xp", "[vdso]"), None),
        ];
        let list: Vec<Area> = areas.iter().map(|(area, _)| area.clone()).collect();
        let found = classify(&list, "/bin/prog", &[arena + 207 * mib]);
        for (index, (area, expected)) in areas.iter().enumerate() {
            assert_eq!(found[index], *expected, "{area:x?}");
        }
    }
}
