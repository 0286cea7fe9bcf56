//! One process of the job as the mover sees it: what it has mapped, in groups, and which groups have pages.
//!
//! Groups are found by a hand that goes round the address space, a bounded number of steps at a time.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::{NodeSet, Tier};
use nearfar_core::policy::migrate::GroupId;
use nearfar_sys::numa::{self, NumaError};
use nearfar_sys::pagemap::Pagemap;
use nearfar_sys::proc_maps;
use nearfar_sys::process;
use nearfar_sys::root::Root;

/// The shortest group: what a huge page holds.
pub const GROUP: usize = 2 << 20;
/// Mappings shorter than that are not worth a look.
const SHORTEST: usize = 256 << 10;
/// Pages of a group whose node is asked for: they stand for all.
const ASKED: usize = 8;
/// Text of /proc/PID/maps that is read.
const MOST_MAPS: u64 = 16 << 20;
const READ_WRITE: i32 = 3;

/// Where pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Bytes in memory.
    pub bytes: u64,
    /// Where most of them are.
    pub tier: Tier,
    /// A node of that tier that has some.
    pub node: Option<u32>,
}

/// A process.
pub struct Process {
    /// Its number in the policy.
    pub number: u32,
    /// Its process id.
    pub pid: u32,
    /// When it was started: tells it from a later one with its number.
    pub start_ticks: u64,
    /// Length of its groups.
    pub group: usize,
    /// What may be moved, ascending.
    mappings: Vec<Extent>,
    hand: usize,
    pagemap: Option<Pagemap>,
}

impl Process {
    /// A process just found.
    pub fn new(number: u32, pid: u32, start_ticks: u64) -> Self {
        let pagemap = Pagemap::of_process(pid).ok();
        Self { number, pid, start_ticks, group: GROUP, mappings: Vec::new(), hand: 0, pagemap }
    }

    /// Makes groups twice as long.
    pub fn coarsen(&mut self) {
        self.group *= 2;
        self.hand = 0;
    }

    /// Goes on round the address space and tells `found` of groups with pages, until `steps` are used up or all was seen once.
    pub fn sweep(&mut self, root: &Root, steps: &mut usize, found: &mut dyn FnMut(GroupId)) {
        if self.hand == 0 {
            let text = root.read(&format!("/proc/{}/maps", self.pid), MOST_MAPS).unwrap_or_default();
            self.mappings = movable(&String::from_utf8_lossy(&text));
        }
        let mut at = self.mappings.partition_point(|mapping| mapping.end <= self.hand);
        while *steps > 0 {
            let Some(mapping) = self.mappings.get(at) else {
                self.hand = 0;
                return;
            };
            let from = self.hand.max(mapping.start);
            *steps -= 1;
            let range = Extent { start: from, end: mapping.end };
            let next = match &mut self.pagemap {
                Some(pagemap) => pagemap.next_present(range).unwrap_or(None),
                None => Some(from).filter(|_| from < mapping.end),
            };
            let Some(next) = next else {
                self.hand = mapping.end;
                at += 1;
                continue;
            };
            let index = next / self.group;
            found(GroupId { process: self.number, index: index as u64 });
            self.hand = (index + 1) * self.group;
            if self.hand >= mapping.end {
                at += 1;
            }
        }
    }

    /// The addresses of a group.
    fn range(&self, group: GroupId) -> Extent {
        let start = group.index as usize * self.group;
        Extent { start, end: start + self.group }
    }

    /// The parts of a group that may be moved, ascending, as far as is known: the rest may be other mappings, of files.
    pub fn parts(&self, group: GroupId) -> Vec<Extent> {
        let range = self.range(group);
        let first = self.mappings.partition_point(|mapping| mapping.end <= range.start);
        let parts = self.mappings[first..].iter().take_while(|mapping| mapping.start < range.end);
        parts.map(|mapping| Extent { start: mapping.start.max(range.start), end: mapping.end.min(range.end) }).collect()
    }

    /// The longest part of a group that is mapped; `None` when nothing of it is, as far as is known.
    pub fn mapped(&self, group: GroupId) -> Option<Extent> {
        self.parts(group).into_iter().max_by_key(Extent::len)
    }

    /// True while it is the process that was found, and not another with its number.
    pub fn lives(&self) -> bool {
        process::is_alive(self.pid, self.start_ticks)
    }

    /// Addresses whose nodes stand for those of all pages of `part`, added to `pages`.
    pub fn ask(part: Extent, pages: &mut Vec<usize>) {
        let step = (part.end - part.start) / ASKED / PAGE * PAGE;
        pages.extend((0..ASKED).map(|number| part.start + number * step));
    }

    /// Where the pages of each of `parts` are.
    ///
    /// # Errors
    /// When the process is gone, or the kernel forbids it.
    pub fn placement(&self, parts: &[Extent], near_set: &NodeSet, far_set: &NodeSet) -> Result<Vec<Placed>, NumaError> {
        let mut pages = Vec::with_capacity(parts.len() * ASKED);
        parts.iter().for_each(|&part| Self::ask(part, &mut pages));
        let nodes = numa::nodes_of_process(self.pid, &pages)?;
        let of = |(part, nodes): (&Extent, &[Option<u32>])| {
            let count = |set: &NodeSet| nodes.iter().flatten().filter(|&&node| set.contains(node)).count();
            let (near, far) = (count(near_set), count(far_set));
            let bytes = ((part.end - part.start) * (near + far) / ASKED) as u64;
            let tier = if near > far { Tier::Near } else { Tier::Far };
            let node = nodes
                .iter()
                .flatten()
                .copied()
                .find(|&node| if near > far { near_set.contains(node) } else { far_set.contains(node) });
            Placed { bytes, tier, node }
        };
        Ok(parts.iter().zip(nodes.chunks(ASKED)).map(of).collect())
    }
}

/// Anonymous private writable memory, neighbours joined. Pages of files are the page cache's, shared ones may be others'.
fn movable(maps: &str) -> Vec<Extent> {
    let mut mappings: Vec<Extent> = Vec::new();
    for mapping in maps.lines().filter_map(proc_maps::parse_line) {
        if mapping.shared || mapping.inode != 0 || mapping.prot & READ_WRITE != READ_WRITE {
            continue;
        }
        match mappings.last_mut() {
            Some(last) if last.end == mapping.range.start => last.end = mapping.range.end,
            _ => mappings.push(mapping.range),
        }
    }
    mappings.retain(|mapping| mapping.end - mapping.start >= SHORTEST);
    mappings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn anonymous_private_writable_memory_may_be_moved() {
        let maps = "\
00400000-00a00000 r-xp 00000000 08:01 42 /bin/x
00a00000-00b00000 rw-p 00600000 08:01 42 /bin/x
00b00000-00c00000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000400000 rw-s 00000000 00:01 9 /dev/shm/x
7f0001000000-7f0001001000 rw-p 00000000 00:00 0 
7f0002000000-7f0004000000 rw-p 00000000 00:00 0 
7f0005000000-7f0005200000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)
";
        let found: Vec<(usize, usize)> = movable(maps).iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, [(0xb0_0000, 0xc0_0000), (0x7f00_0200_0000, 0x7f00_0400_0000)]);
    }

    #[test]
    fn a_group_is_moved_where_it_is_anonymous() {
        let extent = |start: usize, end: usize| Extent { start, end };
        let mut process = Process::new(1, std::process::id(), 0);
        process.mappings = vec![extent(0x1f_0000, 0x21_0000), extent(0x23_0000, 0x24_0000), extent(0x39_0000, 0x80_0000)];
        let parts = |index| process.parts(GroupId { process: 1, index });
        assert_eq!(parts(1), [extent(0x20_0000, 0x21_0000), extent(0x23_0000, 0x24_0000), extent(0x39_0000, 0x40_0000)]);
        assert_eq!((parts(0), parts(4)), (vec![extent(0x1f_0000, 0x20_0000)], Vec::new()));
        assert_eq!(process.mapped(GroupId { process: 1, index: 1 }), Some(extent(0x39_0000, 0x40_0000)));
    }

    #[test]
    fn a_number_that_was_given_again_is_not_that_process() {
        let own = std::process::id();
        assert!(Process::new(1, own, process::start_of(own)).lives());
        assert!(!Process::new(1, own, process::start_of(own) + 1).lives());
    }

    #[test]
    fn the_hand_finds_what_has_pages() {
        let mut data = vec![0u8; 64 << 20];
        let at = data.as_ptr() as usize;
        // Touched in two places only.
        data[20 << 20] = 1;
        data[40 << 20] = 1;
        let mut process = Process::new(3, std::process::id(), 0);
        let mut groups = BTreeSet::new();
        for _ in 0..10_000 {
            let mut steps = 7;
            process.sweep(&Root::this(), &mut steps, &mut |group| {
                groups.insert(group);
            });
            if process.hand == 0 {
                break;
            }
        }
        assert_eq!(process.hand, 0, "it came round");
        for offset in [20 << 20, 40 << 20] {
            let group = GroupId { process: 3, index: ((at + offset) / GROUP) as u64 };
            assert!(groups.contains(&group));
            let range = process.mapped(group).expect("mapped");
            assert!(range.start <= at + offset && at + offset < range.end);
        }
        let empty = GroupId { process: 3, index: ((at + (30 << 20)) / GROUP) as u64 };
        // Kernels that cannot search name every group.
        let can_search = !groups.contains(&empty);
        println!("the kernel can search: {can_search}");
        assert_eq!(process.mapped(GroupId { process: 3, index: 1 << 40 }), None);
        std::hint::black_box(&data);
    }
}
