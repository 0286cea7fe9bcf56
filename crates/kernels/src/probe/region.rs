//! Memory to be measured: on one node, of one kind of page, and proof of both.
//!
//! The mapping stands between two pages without access, so that it never merges with a neighbour: /proc/self/smaps then tells of it
//! alone, and a kernel that runs over its end is caught. Nothing is touched here: the threads that use the memory write it first,
//! after [`Region::new`] and before [`Region::proof`].

use super::error::Error;
use nearfar_core::addr::{BLOCK, Extent, round_up};
use nearfar_core::node::{CpuList, Figure, Pages};
use nearfar_sys::errno::Errno;
use nearfar_sys::{map, numa, root::Root};

/// Pages that are asked about, evenly spread; all of them in smaller regions.
const SAMPLE: usize = 1024;
/// Share of pages that must be where they should be, and share of huge ones from which all count as huge.
const ENOUGH: f64 = 0.95;

/// Anonymous memory, given back on drop.
#[derive(Debug)]
pub struct Region {
    /// With the pages without access at both ends.
    whole: Extent,
    range: Extent,
    /// Bytes asked for: what must be touched, and what is proved.
    used: usize,
    node: Option<u32>,
    wanted: Pages,
    /// Why the memory is not bound to the node.
    unbound: Option<String>,
}

/// What could be proved of a region that was touched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// Share of the pages asked about that are on the node; null without a node or an answer.
    pub on_node: Option<f64>,
    /// Size of the pages; null when /proc/self/smaps cannot be read.
    pub pages: Option<Pages>,
    /// Bytes in memory, as smaps says.
    pub resident: Option<u64>,
    /// What was not proved, and why; empty when all was.
    pub unproved: String,
    /// What was disproved; empty when nothing was.
    pub wrong: String,
}

impl Region {
    /// `bytes` (rounded up to blocks) of small or huge pages, on `node` alone when one is given. Where the kernel has no NUMA calls or
    /// forbids them, the memory comes from wherever the kernel takes it, and the proof says so. Huge pages are asked for; whether they
    /// came is in the proof. `limit_bytes` is what may be used at most: the least of what the node has free and the cgroup leaves.
    ///
    /// # Errors
    /// More than the limit, memory refused, or no such node.
    pub fn new(bytes: usize, node: Option<u32>, pages: Pages, limit_bytes: u64) -> Result<Self, Error> {
        let too_large = Error::TooLarge { needed: bytes as u64, limit: limit_bytes };
        if bytes as u64 > limit_bytes {
            return Err(too_large);
        }
        let len = round_up(bytes.max(1), BLOCK).ok_or(too_large)?;
        let no_memory = |errno| Error::NoMemory { needed: len as u64, errno };
        let padded = len.checked_add(3 * BLOCK).ok_or(no_memory(Errno::ENOMEM))?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: not fixed: the kernel picks free space.
        let start = unsafe { map::mmap(0, padded, libc::PROT_NONE, flags, -1, 0) }.map_err(no_memory)?;
        // At least one block without access stays on either side.
        let inner = round_up(start + 1, BLOCK).unwrap_or(start);
        let mut region = Self {
            whole: Extent::new(start, padded),
            range: Extent::new(inner, len),
            used: bytes.max(1),
            node,
            wanted: pages,
            unbound: None,
        };
        // SAFETY: inside a mapping made just above that nobody else knows.
        unsafe { map::mprotect(region.range, map::RW) }.map_err(no_memory)?;
        let advice = if pages == Pages::Small { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE };
        // A kernel without huge pages refuses either advice; the proof says what came of it.
        // SAFETY: advice on the size of pages does not change what they hold.
        let _ = unsafe { map::madvise(region.range, advice) };
        if let Some(node) = node {
            match numa::bind(region.range, node) {
                Err(error) if error.is_unsupported() => region.unbound = Some(error.to_string()),
                result => result?,
            }
        }
        Ok(region)
    }

    /// The first byte; aligned to 2 MiB.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.range.start as *mut u8
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// True for no byte, which cannot be.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// What can be proved of the bytes that were asked for, all of which must have been written.
    pub fn proof(&self) -> Proof {
        let mut proof = Proof::default();
        self.prove_node(&mut proof);
        match std::fs::read_to_string("/proc/self/smaps").ok().and_then(|text| sizes(&text, self.range)) {
            Some((resident, huge)) => {
                proof.resident = Some(resident);
                proof.pages = Some(kind_of(resident, huge));
                if (resident as f64) < self.used as f64 * ENOUGH {
                    proof.wrong = "part of the memory is not resident: swapped out or never touched".into();
                }
            }
            None => note(&mut proof.unproved, "size of pages not verified (/proc/self/smaps cannot be read)"),
        }
        if self.wanted == Pages::Small && proof.pages.is_some_and(|pages| pages != Pages::Small) {
            note(&mut proof.wrong, "small pages were asked for, but huge ones were given");
        }
        proof
    }

    fn prove_node(&self, proof: &mut Proof) {
        let Some(node) = self.node else { return };
        let pages = self.used.div_ceil(page_size());
        let asked = pages.min(SAMPLE);
        let addresses: Vec<usize> = (0..asked).map(|index| self.range.start + index * pages / asked * page_size()).collect();
        let why = match numa::nodes_of(&addresses) {
            Ok(nodes) => {
                let here = nodes.iter().filter(|&&found| found == Some(node)).count();
                let share = here as f64 / asked as f64;
                proof.on_node = Some(share);
                if share < ENOUGH {
                    note(&mut proof.wrong, &format!("only {:.0} % of the pages are on node {node}", share * 100.0));
                }
                return;
            }
            // Where there is one node, everything is on it.
            Err(_) if only_node() == Some(node) => {
                proof.on_node = Some(1.0);
                return;
            }
            Err(error) => self.unbound.clone().unwrap_or_else(|| error.to_string()),
        };
        let said = format!("placement not verified ({why})");
        // Memory that is bound is where it should be, if only nobody can tell; unbound among several nodes it can be anywhere.
        note(if self.unbound.is_some() && several_nodes() { &mut proof.wrong } else { &mut proof.unproved }, &said);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone; whoever used it borrowed from `self` or is a scoped thread that has ended.
        let _ = unsafe { map::munmap(self.whole) };
    }
}

impl Proof {
    /// The figure with what this proof says against it.
    pub fn judge(&self, figure: Figure) -> Figure {
        if !self.wrong.is_empty() {
            return figure.condemned(self.wrong.clone());
        }
        if self.unproved.is_empty() { figure } else { super::with_remark(figure, &self.unproved) }
    }
}

fn note(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("; ");
    }
    text.push_str(more);
}

/// Bytes of a small page.
pub fn page_size() -> usize {
    // SAFETY: no memory is involved.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|&size| size > 0).unwrap_or(4096)
}

fn nodes_with_memory() -> Option<CpuList> {
    Root::this().text("/sys/devices/system/node/has_memory")?.parse().ok()
}

/// The only node with memory, when there is only one.
fn only_node() -> Option<u32> {
    if let [node] = nodes_with_memory()?.as_slice() { Some(*node) } else { None }
}

fn several_nodes() -> bool {
    nodes_with_memory().is_some_and(|nodes| nodes.len() > 1)
}

fn kind_of(resident: u64, huge: u64) -> Pages {
    let share = huge as f64 / (resident as f64).max(1.0);
    if share >= ENOUGH {
        Pages::Huge
    } else if share <= 1.0 - ENOUGH {
        Pages::Small
    } else {
        Pages::Mixed
    }
}

/// Bytes in memory and bytes in huge pages of the mappings inside `range`, from the text of smaps.
fn sizes(text: &str, range: Extent) -> Option<(u64, u64)> {
    let mut inside = false;
    let (mut resident, mut huge) = (None, None);
    let kib = |rest: &str| rest.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024);
    for line in text.lines() {
        let first = line.split_ascii_whitespace().next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-') {
            let bounds = (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16));
            inside = matches!(bounds, (Ok(start), Ok(end)) if range.contains_extent(Extent { start, end }));
        } else if inside && let Some(rest) = line.strip_prefix("Rss:") {
            resident = Some(resident.unwrap_or(0) + kib(rest)?);
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            huge = Some(huge.unwrap_or(0) + kib(rest)?);
        }
    }
    Some((resident?, huge?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(region: &Region) {
        for at in (0..region.len()).step_by(page_size()) {
            // SAFETY: inside the region.
            unsafe { region.as_mut_ptr().add(at).write_volatile(1) };
        }
    }

    #[test]
    fn small_pages_are_proved_small_and_on_their_node() {
        let region = Region::new(2 * BLOCK + 5, only_node(), Pages::Small, u64::MAX).expect("6 MiB");
        assert_eq!((region.len(), region.as_mut_ptr() as usize % BLOCK), (3 * BLOCK, 0));
        touch(&region);
        let proof = region.proof();
        assert_eq!(proof.wrong, "");
        assert!(proof.on_node.is_none_or(|share| share == 1.0), "{proof:?}");
        assert!(proof.pages.is_none_or(|pages| pages == Pages::Small), "{proof:?}");
        assert!(proof.judge(Figure::of(&[1.0])).is_valid());
    }

    #[test]
    fn what_was_never_touched_is_not_proved() {
        let region = Region::new(4 * BLOCK, None, Pages::Huge, u64::MAX).expect("8 MiB");
        // SAFETY: inside the region.
        unsafe { region.as_mut_ptr().write_volatile(1) };
        let proof = region.proof();
        assert!(proof.resident.is_none() || proof.wrong.contains("never touched"), "{proof:?}");
        assert!(!proof.judge(Figure::of(&[1.0])).is_valid());
    }

    #[test]
    fn pages_on_another_node_are_found() {
        let mut region = Region::new(BLOCK, None, Pages::Small, u64::MAX).expect("2 MiB");
        touch(&region);
        // As if it had been bound to a node that no machine has.
        region.node = Some(999);
        let proof = region.proof();
        assert!(proof.wrong.contains("only 0 % of the pages are on node 999") || !proof.unproved.is_empty(), "{proof:?}");
    }

    #[test]
    fn too_much_is_refused_before_it_is_touched() {
        let error = Region::new(1 << 30, None, Pages::Small, 1 << 20).expect_err("over the limit");
        assert_eq!(error.to_string(), "1.0 GiB are needed, but only 1.0 MiB may be used");
        let error = Region::new(isize::MAX as usize, None, Pages::Small, u64::MAX).expect_err("no machine has that");
        assert!(matches!(error, Error::NoMemory { .. }), "{error}");
        let error = Region::new(BLOCK, Some(900), Pages::Small, u64::MAX);
        assert!(error.as_ref().is_ok_and(|region| region.unbound.is_some()) || matches!(error, Err(Error::Node(_))), "{error:?}");
    }

    #[test]
    fn smaps_is_read_for_the_range_alone() {
        let text = "1000-3000 rw-p 0 00:00 0\nSize: 8 kB\nRss:  8 kB\nAnonHugePages:  0 kB\n3000-7000 rw-p 0 00:00 0 [heap]\n\
                    Rss: 16 kB\nAnonHugePages: 12 kB\nVmFlags: rd wr\n7000-8000 ---p 0 00:00 0\nRss: 4 kB\nAnonHugePages: 0 kB\n";
        assert_eq!(sizes(text, Extent { start: 0x3000, end: 0x7000 }), Some((16 << 10, 12 << 10)));
        assert_eq!(sizes(text, Extent { start: 0x1000, end: 0x7000 }), Some((24 << 10, 12 << 10)));
        assert_eq!(sizes(text, Extent { start: 0x9000, end: 0xa000 }), None);
        assert_eq!(sizes("1000-2000 rw-p\nRss: 4 kB\n", Extent { start: 0x1000, end: 0x2000 }), None);
        assert_eq!((kind_of(100, 96), kind_of(100, 4), kind_of(100, 50)), (Pages::Huge, Pages::Small, Pages::Mixed));
    }
}
