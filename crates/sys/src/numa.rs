//! NUMA nodes of memory: which nodes pages of a range or of a thread come from, where pages are, and moving them.
//!
//! Kernels without NUMA answer ENOSYS, containers often EPERM (Docker's default profile does without CAP_SYS_NICE); both are meanings
//! here, because the caller then goes on and says that placement was not verified.

use crate::errno::{Errno, call};
use crate::root::Root;
use libc::c_int;
use nearfar_core::addr::Extent;
use nearfar_core::placement::{MAX_NODES, NodeSet};
use std::fmt;

/// Why a node could not be chosen or asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumaError {
    /// The kernel was built without NUMA.
    #[error("the kernel has no NUMA calls")]
    Unsupported,
    /// A sandbox forbids it.
    #[error("the system forbids NUMA calls; a container's seccomp profile does that (CAP_SYS_NICE lifts it)")]
    Denied,
    /// There is no such node, it has no memory, or the cpuset does not allow it.
    #[error("node {0} has no memory that this process may use")]
    NoSuchNode(u32),
    /// Anything else that the kernel said.
    #[error("NUMA call: {0}")]
    Other(Errno),
}

impl NumaError {
    /// True when it is the system, not the request, that does not allow it: the rest can go on without.
    pub fn is_unsupported(self) -> bool {
        matches!(self, Self::Unsupported | Self::Denied)
    }
}

fn meaning(errno: Errno) -> NumaError {
    match errno {
        Errno(libc::ENOSYS) => NumaError::Unsupported,
        Errno(libc::EPERM | libc::EACCES) => NumaError::Denied,
        errno => NumaError::Other(errno),
    }
}

/// How the kernel chooses a node for a page that is touched first (set_mempolicy(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyMode {
    /// As the thread's policy says; for a thread, the node of its CPU.
    #[default]
    Default,
    /// From these nodes only, the nearest first. When they are full the kernel kills rather than takes another node.
    Bind,
    /// From the first of these nodes, then from anywhere.
    Preferred,
    /// From these nodes, the nearest first, then from anywhere (Linux 5.15; before, from the one that is nearest to the CPU
    /// that sets the policy).
    PreferredMany,
    /// From these nodes in turn, page by page.
    Interleave,
    /// In turn, by the system's weights (Linux 6.9; before, all alike).
    WeightedInterleave,
    /// The node of the CPU that touches.
    Local,
}

/// `libc` lacks the two youngest.
const MPOL_PREFERRED_MANY: c_int = 5;
const MPOL_WEIGHTED_INTERLEAVE: c_int = 6;

impl PolicyMode {
    const fn number(self) -> c_int {
        match self {
            Self::Default => libc::MPOL_DEFAULT,
            Self::Bind => libc::MPOL_BIND,
            Self::Preferred => libc::MPOL_PREFERRED,
            Self::PreferredMany => MPOL_PREFERRED_MANY,
            Self::Interleave => libc::MPOL_INTERLEAVE,
            Self::WeightedInterleave => MPOL_WEIGHTED_INTERLEAVE,
            Self::Local => libc::MPOL_LOCAL,
        }
    }

    const fn of(number: c_int) -> Option<Self> {
        // Flags (static nodes, relative nodes, balancing) are above.
        Some(match number & 0xff {
            libc::MPOL_DEFAULT => Self::Default,
            libc::MPOL_BIND => Self::Bind,
            libc::MPOL_PREFERRED => Self::Preferred,
            MPOL_PREFERRED_MANY => Self::PreferredMany,
            libc::MPOL_INTERLEAVE => Self::Interleave,
            MPOL_WEIGHTED_INTERLEAVE => Self::WeightedInterleave,
            libc::MPOL_LOCAL => Self::Local,
            _ => return None,
        })
    }

    /// What comes nearest to this mode on a kernel that does not know it.
    const fn older(self) -> Option<Self> {
        match self {
            Self::PreferredMany => Some(Self::Preferred),
            Self::WeightedInterleave => Some(Self::Interleave),
            _ => None,
        }
    }

    const fn takes_nodes(self) -> bool {
        !matches!(self, Self::Default | Self::Local)
    }
}

/// Where pages come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryPolicy {
    /// How a node is chosen.
    pub mode: PolicyMode,
    /// The nodes that it is chosen from; for [`PolicyMode::Default`] and [`PolicyMode::Local`] they do not count.
    pub nodes: NodeSet,
}

impl MemoryPolicy {
    /// The policy of `mode` over `nodes`.
    pub const fn new(mode: PolicyMode, nodes: NodeSet) -> Self {
        Self { mode, nodes }
    }

    /// The same with a mode that older kernels know.
    fn older(self) -> Option<Self> {
        let mode = self.mode.older()?;
        let nodes = if mode == PolicyMode::Preferred { nearest(&Root::this(), &self.nodes, here().1) } else { self.nodes };
        Some(Self { mode, nodes })
    }

    /// Mask and its bits, as the kernel's calls take them.
    fn mask(&self) -> (usize, usize) {
        if !self.mode.takes_nodes() {
            return (0, 0);
        }
        // The kernel looks at one bit less than it is told.
        (self.nodes.words().as_ptr() as usize, MAX_NODES as usize + 1)
    }

    /// Calls `set` with mode, mask and bits; with an older mode again when the kernel does not know this one.
    fn apply(self, set: impl Fn(usize, usize, usize) -> Result<usize, Errno>) -> Result<(), NumaError> {
        let (mask, bits) = self.mask();
        match set(self.mode.number() as usize, mask, bits) {
            Ok(_) => Ok(()),
            // A mode that the kernel does not know and a node that is not there look alike.
            Err(Errno::EINVAL) => match self.older() {
                Some(older) => older.apply(set),
                None => Err(NumaError::NoSuchNode(self.nodes.first().unwrap_or(0))),
            },
            Err(errno) => Err(meaning(errno)),
        }
    }
}

/// The one of `nodes` that is nearest to node `from` (SLIT), the lowest of several.
fn nearest(root: &Root, nodes: &NodeSet, from: u32) -> NodeSet {
    let row = root.text(&format!("/sys/devices/system/node/node{from}/distance")).unwrap_or_default();
    // The row has a column for each node that is online, ascending.
    let online = root.numbered("/sys/devices/system/node", "node");
    let columns = row.split_ascii_whitespace().map(|word| word.parse::<u32>().unwrap_or(u32::MAX));
    let distance =
        |node: u32| online.iter().copied().zip(columns.clone()).find(|(id, _)| *id == node).map_or(u32::MAX, |(_, d)| d);
    nodes.iter().min_by_key(|&node| distance(node)).into_iter().collect()
}

/// "bind to nodes 1", "default".
impl fmt::Display for MemoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = if self.nodes.len() == 1 { "node" } else { "nodes" };
        match self.mode {
            PolicyMode::Default => f.write_str("default"),
            PolicyMode::Local => f.write_str("local"),
            PolicyMode::Bind => write!(f, "bound to {nodes} {}", self.nodes),
            PolicyMode::Preferred | PolicyMode::PreferredMany => write!(f, "{nodes} {} preferred", self.nodes),
            PolicyMode::Interleave => write!(f, "interleaved over {nodes} {}", self.nodes),
            PolicyMode::WeightedInterleave => write!(f, "interleaved by weight over {nodes} {}", self.nodes),
        }
    }
}

/// Pages of `range` come from `node` alone (see [`set_range`]). Ask for no more than the node has free.
///
/// # Errors
/// See [`NumaError`].
pub fn bind(range: Extent, node: u32) -> Result<(), NumaError> {
    if node >= MAX_NODES {
        return Err(NumaError::NoSuchNode(node));
    }
    set_range(range, &MemoryPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node])), false)
}

/// Pages of `range` that are touched from now on come from where `policy` says (mbind(2)); with `move_present`, those that are there
/// already go there too, as far as the kernel can move them. `range` is whole pages, mapped; its contents do not change.
///
/// # Errors
/// See [`NumaError`].
pub fn set_range(range: Extent, policy: &MemoryPolicy, move_present: bool) -> Result<(), NumaError> {
    const MPOL_MF_MOVE: usize = 2;
    let flags = if move_present { MPOL_MF_MOVE } else { 0 };
    policy.apply(|mode, mask, bits| {
        let args = [range.start, range.len(), mode, mask, bits, flags];
        // SAFETY: the kernel reads `bits - 1` bits of a mask of that many, which outlives the call; the policy changes where pages
        // come from, not what they hold.
        unsafe { call(libc::SYS_mbind, args) }
    })
}

/// Pages that the calling thread touches first come from where `policy` says (set_mempolicy(2)), unless their range has a policy of
/// its own. Threads and processes started by this thread inherit it, over exec as well.
///
/// # Errors
/// See [`NumaError`].
pub fn set_thread(policy: &MemoryPolicy) -> Result<(), NumaError> {
    policy.apply(|mode, mask, bits| {
        // SAFETY: as in `set_range`.
        unsafe { call(libc::SYS_set_mempolicy, [mode, mask, bits, 0, 0, 0]) }
    })
}

/// The policy of the calling thread.
///
/// # Errors
/// See [`NumaError`].
pub fn of_thread() -> Result<MemoryPolicy, NumaError> {
    ask(0, 0)
}

fn ask(addr: usize, flags: usize) -> Result<MemoryPolicy, NumaError> {
    let mut mode: c_int = 0;
    let mut words = [0u64; (MAX_NODES / 64) as usize];
    let args = [(&raw mut mode).addr(), words.as_mut_ptr() as usize, MAX_NODES as usize + 1, addr, flags, 0];
    // SAFETY: the kernel writes a number and `MAX_NODES` bits, to locals of that size.
    unsafe { call(libc::SYS_get_mempolicy, args) }.map_err(meaning)?;
    let nodes = (0..MAX_NODES).filter(|node| words[(node / 64) as usize] & (1 << (node % 64)) != 0).collect();
    let mode = PolicyMode::of(mode).ok_or(NumaError::Unsupported)?;
    Ok(MemoryPolicy { mode, nodes })
}

/// The CPU that the calling thread runs on, and its node. Both may have changed when the caller looks.
pub fn here() -> (u32, u32) {
    let (mut cpu, mut node) = (0u32, 0u32);
    // SAFETY: writes two locals; by the C library, which asks the kernel's fast page and takes some ns where that is possible.
    unsafe { getcpu(&raw mut cpu, &raw mut node) };
    (cpu, node)
}

unsafe extern "C" {
    fn getcpu(cpu: *mut u32, node: *mut u32) -> c_int;
}

/// Bytes of `node` that are free; `None` when the kernel does not say. What page cache and slabs hold is not counted, though the kernel
/// gives up clean page cache when memory is short.
pub fn free_bytes(node: u32) -> Option<u64> {
    free_bytes_under(&Root::this(), node)
}

/// Bytes of `node` that a program can have: free ones, and four fifths of the clean page cache, which the kernel gives up when memory
/// is short. Not all of it: some is in use, and a kernel that gives up the last of it is slow. `None` when the kernel does not say.
pub fn available_bytes(node: u32) -> Option<u64> {
    available_bytes_under(&Root::this(), node)
}

fn free_bytes_under(root: &Root, node: u32) -> Option<u64> {
    bytes_of(&facts_of(root, node)?, "MemFree:")
}

fn available_bytes_under(root: &Root, node: u32) -> Option<u64> {
    let facts = facts_of(root, node)?;
    let bytes = |name| bytes_of(&facts, name).unwrap_or(0);
    let cache = bytes("Active(file):").saturating_add(bytes("Inactive(file):"));
    let clean = cache.saturating_sub(bytes("Dirty:")).saturating_sub(bytes("Writeback:"));
    Some(bytes_of(&facts, "MemFree:")?.saturating_add(clean / 5 * 4))
}

/// What the kernel says of the memory of `node`.
fn facts_of(root: &Root, node: u32) -> Option<String> {
    root.text(&format!("/sys/devices/system/node/node{node}/meminfo"))
}

/// The number of a line "Node 0 NAME 1024 kB".
fn bytes_of(facts: &str, name: &str) -> Option<u64> {
    let mut words = facts.lines().find_map(|line| line.split_once(name))?.1.split_whitespace();
    words.next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The node of the page at each address of the calling process; `None` for an address without a page in memory (move_pages(2), as a
/// question only).
///
/// # Errors
/// See [`NumaError`].
pub fn nodes_of(addresses: &[usize]) -> Result<Vec<Option<u32>>, NumaError> {
    nodes_of_process(0, addresses)
}

/// The same for process `pid`; 0 is the caller. Another process needs its owner's rights.
///
/// # Errors
/// See [`NumaError`].
pub fn nodes_of_process(pid: u32, addresses: &[usize]) -> Result<Vec<Option<u32>>, NumaError> {
    let mut status = vec![-libc::ENOENT; addresses.len()];
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let args = [pid as usize, addresses.len(), addresses.as_ptr() as usize, 0, status.as_mut_ptr() as usize, 0];
    // SAFETY: without target nodes nothing moves; the kernel reads one address and writes one status per entry of slices of that
    // length. The addresses are only looked up.
    unsafe { call(libc::SYS_move_pages, args) }.map_err(meaning)?;
    Ok(status.into_iter().map(|status| u32::try_from(status).ok()).collect())
}

/// Moves the page at each address of process `pid` (0: the caller) to the node of the same index (move_pages(2)); what the pages hold
/// stays. `status` says for each where it is now, or a negative errno: EBUSY, ENOENT (no page), EACCES (shared), ENOMEM (node full).
/// Returns how many did not move, as far as the kernel counts them.
///
/// # Errors
/// See [`NumaError`]; the lists must be of one length (EINVAL).
pub fn move_pages(pid: u32, addresses: &[usize], to: &[u32], status: &mut [i32]) -> Result<usize, NumaError> {
    if addresses.len() != to.len() || addresses.len() != status.len() {
        return Err(NumaError::Other(Errno::EINVAL));
    }
    if addresses.is_empty() {
        return Ok(0);
    }
    status.fill(-libc::ENOENT);
    const MPOL_MF_MOVE: usize = 2;
    let args = [
        pid as usize,
        addresses.len(),
        addresses.as_ptr() as usize,
        to.as_ptr() as usize,
        status.as_mut_ptr() as usize,
        MPOL_MF_MOVE,
    ];
    // SAFETY: the kernel reads and writes one entry of slices of that length each; moving changes where pages lie, not what they hold.
    let left = unsafe { call(libc::SYS_move_pages, args) }.map_err(meaning)?;
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::OwnedMap;
    use nearfar_core::addr::PAGE;

    fn nodes(list: &[u32]) -> NodeSet {
        list.iter().copied().collect()
    }

    #[test]
    fn pages_are_where_they_were_bound() {
        let map = OwnedMap::new(4 * PAGE).expect("four pages");
        let range = map.range();
        match bind(range, 0) {
            Err(error) if error.is_unsupported() => return println!("skipped: {error}"),
            Err(NumaError::NoSuchNode(0)) => return println!("skipped: node 0 is not for us"),
            result => result.expect("bound"),
        }
        const MPOL_F_ADDR: usize = 2;
        assert_eq!(ask(range.start, MPOL_F_ADDR), Ok(MemoryPolicy::new(PolicyMode::Bind, nodes(&[0]))));
        // SAFETY: the mapping is ours, and readable and writable.
        unsafe { (range.start as *mut u8).write_volatile(1) };
        match nodes_of(&[range.start, range.start + PAGE]) {
            Ok(nodes) => assert_eq!(nodes, [Some(0), None], "one page was touched, one was not"),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        let mut status = [0; 2];
        if move_pages(0, &[range.start, range.start + PAGE], &[0, 0], &mut status).is_ok() {
            assert_eq!(status, [0, -libc::ENOENT]);
        }
        assert!(move_pages(0, &[range.start], &[], &mut []).is_err());
    }

    #[test]
    fn every_mode_is_taken_by_every_kernel() {
        let map = OwnedMap::new(PAGE).expect("a page");
        for mode in [
            PolicyMode::Default,
            PolicyMode::Bind,
            PolicyMode::Preferred,
            PolicyMode::PreferredMany,
            PolicyMode::Interleave,
            PolicyMode::WeightedInterleave,
            PolicyMode::Local,
        ] {
            match set_range(map.range(), &MemoryPolicy::new(mode, nodes(&[0])), true) {
                Err(error) if error.is_unsupported() => return println!("skipped: {error}"),
                result => result.unwrap_or_else(|error| panic!("{mode:?}: {error}")),
            }
        }
    }

    #[test]
    fn a_policy_of_the_thread_is_taken_and_left() {
        // On a thread of its own: the policy ends with it.
        let seen = std::thread::spawn(|| {
            let policy = MemoryPolicy::new(PolicyMode::Preferred, nodes(&[0]));
            set_thread(&policy).map(|()| (of_thread(), policy))
        });
        match seen.join().expect("no panic") {
            Ok((seen, policy)) => assert_eq!(seen, Ok(policy)),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        assert!(here().0 < 1 << 20);
    }

    #[test]
    fn a_node_that_is_not_there_is_said() {
        let map = OwnedMap::new(PAGE).expect("a page");
        for node in [900, 5000] {
            let error = bind(map.range(), node).expect_err("no machine has that many");
            assert!(error == NumaError::NoSuchNode(node) || error.is_unsupported(), "{error}");
        }
        assert_eq!(nodes_of(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_a_node_has_free() {
        let text = "=== /sys/devices/system/node/node3/meminfo\n Node 3 MemTotal:  16384 kB\n Node 3 MemFree:   1024 kB\n";
        let root = Root::captured(text).expect("a capture");
        assert_eq!((free_bytes_under(&root, 3), free_bytes_under(&root, 0)), (Some(1 << 20), None));
        assert_eq!((available_bytes_under(&root, 3), available_bytes_under(&root, 0)), (Some(1 << 20), None));
    }

    #[test]
    fn clean_page_cache_is_to_be_had() {
        let line = |name: &str, kib: u64| format!(" Node 3 {name}: {kib} kB\n");
        let available = |dirty| {
            let text = "=== /sys/devices/system/node/node3/meminfo\n".to_owned()
                + &line("MemFree", 1000)
                + &line("Active", 9_000_000)
                + &line("Active(anon)", 8_000_000)
                + &line("Active(file)", 3000)
                + &line("Inactive(file)", 4000)
                + &line("Dirty", dirty)
                + &line("Writeback", 500)
                + &line("WritebackTmp", 7_000_000);
            available_bytes_under(&Root::captured(&text).expect("a capture"), 3)
        };
        assert_eq!(available(1500), Some((1000 + 4000) << 10));
        assert_eq!(available(1 << 30), Some(1000 << 10), "more dirty than there is cache");
    }

    #[test]
    fn the_nearest_of_several_nodes() {
        let text = "=== /sys/devices/system/node/node0/distance\n 10 21 31 41\n=== /sys/devices/system/node/node1/distance\n 21 10 41 31\n\
                    === /sys/devices/system/node/node4/distance\n 31 41 10 51\n=== /sys/devices/system/node/node5/distance\n 41 31 51 10\n";
        let root = Root::captured(text).expect("a capture");
        assert_eq!(nearest(&root, &nodes(&[4, 5]), 0), nodes(&[4]));
        assert_eq!(nearest(&root, &nodes(&[4, 5]), 1), nodes(&[5]));
        assert_eq!(nearest(&Root::captured("").expect("nothing"), &nodes(&[4, 5]), 1), nodes(&[4]));
    }

    #[test]
    fn words() {
        for (policy, text) in [
            (MemoryPolicy::default(), "default"),
            (MemoryPolicy::new(PolicyMode::Bind, nodes(&[1])), "bound to node 1"),
            (MemoryPolicy::new(PolicyMode::PreferredMany, nodes(&[2, 3])), "nodes 2,3 preferred"),
        ] {
            assert_eq!(policy.to_string(), text);
        }
    }
}
