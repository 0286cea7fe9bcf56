//! Near and far of a process without a job, for programs that place data themselves (`api`): NUMA nodes that NEARFAR_NEAR and
//! NEARFAR_FAR name, or those that the machine tells apart, a pool for each tier; ordinary memory where there is one kind.
//!
//! Made at the first call that needs it, once; a process that never asks pays nothing but two handlers at each fork. The hooks do not come here, apart from the
//! question whose a block is (`Pool::of`).

use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::node::detect;
use nearfar_core::node::{Memory, Node, Topology, words};
use nearfar_core::placement::{NodeSet, Tier};
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_sys::errno::Errno;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_sys::root::Root;
use nearfar_sys::{machine, map, process};
use nearfar_tiers::pool::{Pool, PoolSpec};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The two tiers.
pub struct Standalone {
    near: Side,
    far: Side,
    /// They are different memories.
    pub is_two: bool,
    /// For people.
    pub text: CString,
}

/// One tier.
struct Side {
    pool: &'static Pool,
    /// Empty for ordinary memory.
    nodes: NodeSet,
    /// Bytes of its nodes, or of the machine.
    total: u64,
    /// At most this many bytes are given out.
    limit: u64,
}

/// What tiers are made of, before anything is made.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    near: NodeSet,
    far: NodeSet,
    limit: Option<u64>,
}

/// Why there are no tiers, for people.
struct Refusal(CString);

static MADE: AtomicPtr<Result<Standalone, Refusal>> = AtomicPtr::new(null_mut());
/// The process one of whose threads makes the tiers: the child of a fork in that moment starts again.
static MAKER: AtomicU32 = AtomicU32::new(0);

/// The tiers; EINVAL when the environment names what cannot be, which is said once on standard error.
pub fn get() -> Result<&'static Standalone, Errno> {
    made().as_ref().map_err(|_| Errno::EINVAL)
}

/// What the tiers are, or why there are none.
pub fn describe() -> &'static CStr {
    match made() {
        Ok(alone) => &alone.text,
        Err(refusal) => &refusal.0,
    }
}

#[inline]
fn made() -> &'static Result<Standalone, Refusal> {
    let made = MADE.load(Ordering::Acquire);
    // SAFETY: published by `make_once` after it was built, never changed or freed.
    if made.is_null() { make_once() } else { unsafe { &*made } }
}

#[cold]
#[inline(never)]
fn make_once() -> &'static Result<Standalone, Refusal> {
    let own = process::pid();
    loop {
        let maker = MAKER.load(Ordering::Relaxed);
        if maker != own && MAKER.compare_exchange(maker, own, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            break;
        }
        let made = MADE.load(Ordering::Acquire);
        if !made.is_null() {
            // SAFETY: as in `made`.
            return unsafe { &*made };
        }
        std::thread::yield_now();
    }
    let made = MADE.load(Ordering::Acquire);
    if !made.is_null() {
        // SAFETY: as in `made`.
        return unsafe { &*made };
    }
    let made = make();
    if let Err(refusal) = &made {
        process::write_stderr(format!("nearfar: {}\n", refusal.0.to_string_lossy()).as_bytes());
    }
    let made = Box::leak(Box::new(made));
    MADE.store(made, Ordering::Release);
    made
}

fn variable(name: &CStr) -> Option<String> {
    unsafe extern "C" {
        fn secure_getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: a C string; null in programs that run with more rights than who started them.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a C string that stays until the environment is changed; copied at once.
    let value = unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.trim().is_empty())
}

fn text(text: String) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

fn make() -> Result<Standalone, Refusal> {
    let (near, far) = (variable(c"NEARFAR_NEAR"), variable(c"NEARFAR_FAR"));
    let root = Root::this();
    // Most machines have one node: no need to read what a machine of several is made of.
    if near.is_none() && far.is_none() && root.numbered("/sys/devices/system/node", "node").len() < 2 {
        return ordinary("this machine has one kind of memory");
    }
    let topology = machine::topology(&root);
    let choice = choose(near.as_deref(), far.as_deref(), &topology).map_err(|why| Refusal(text(why)))?;
    if choice.near.is_empty() {
        return ordinary("nothing says which of this machine's memories is faster; set NEARFAR_NEAR=node:N");
    }
    let sides = Side::on(choice.near, &topology).and_then(|side| Ok((side, Side::on(choice.far, &topology)?)));
    match sides {
        Ok((mut near, far)) => {
            near.limit = choice.limit.unwrap_or(u64::MAX);
            let text = text(name_of(&choice, topology));
            Ok(Standalone { near, far, is_two: !choice.far.is_empty(), text })
        }
        Err(Errno(libc::EPERM | libc::ENOSYS)) => ordinary("this system forbids NUMA calls, as containers often do"),
        Err(errno) => Err(Refusal(text(format!("no memory on {}: {errno}", name_of(&choice, topology))))),
    }
}

/// Both tiers in one memory.
fn ordinary(why: &str) -> Result<Standalone, Refusal> {
    let side = || Side::on(NodeSet::EMPTY, &Topology::default()).map_err(|errno| Refusal(text(format!("no heap: {errno}"))));
    let text = text(format!("near and far: ordinary memory ({why})"));
    Ok(Standalone { near: side()?, far: side()?, is_two: false, text })
}

/// "near: HBM, node 1 (16 GiB); far: DRAM, node 0 (96 GiB)".
fn name_of(choice: &Choice, topology: Topology) -> String {
    let node = Node { topology, ..Node::default() };
    let names = |nodes: &NodeSet| {
        let names: Vec<String> = nodes.iter().map(|id| node.memory_name_with_size(Memory::Node(id))).collect();
        if names.is_empty() { "the same memory".to_owned() } else { names.join(" + ") }
    };
    let limit = choice.limit.map(|bytes| format!(", at most {}", words::size(bytes))).unwrap_or_default();
    format!("near: {}{limit}; far: {}", names(&choice.near), names(&choice.far))
}

/// The nodes of both tiers from what the user and the machine say; no near nodes when the machine tells no two tiers apart.
///
/// # Errors
/// What is wrong with what the user said, and what to do.
fn choose(near: Option<&str>, far: Option<&str>, topology: &Topology) -> Result<Choice, String> {
    let has_memory = |node: &&nearfar_core::node::MemoryNode| node.bytes > 0 && node.allowed;
    let all: NodeSet = topology.nodes.iter().filter(has_memory).map(|node| node.id).collect();
    let without = |set: NodeSet| all.iter().filter(|&node| !set.contains(node)).collect::<NodeSet>();
    let check = |name: &str, set: NodeSet| match set.iter().find(|&node| !all.contains(node)) {
        Some(node) => Err(format!("{name}: node {node} has no memory that this process may use; nodes with memory: {all}")),
        None => Ok(set),
    };
    let set = |nodes: &[u32]| nodes.iter().copied().collect::<NodeSet>();
    let mut limit = None;
    let near = match near.map(|value| (value, value.parse::<NearSpec>())) {
        None => None,
        Some((_, Ok(NearSpec::Node { nodes, limit: most }))) => {
            limit = most;
            Some(check("NEARFAR_NEAR", set(&nodes))?)
        }
        Some((value, Ok(_))) => {
            return Err(format!(
                "NEARFAR_NEAR={value}: a budget needs `nearfar run --near {value} -- PROGRAM`; without it, name nodes: node:1"
            ));
        }
        Some((value, Err(error))) => return Err(format!("NEARFAR_NEAR={value}: {error}")),
    };
    let far = match far.map(|value| (value, value.parse::<FarSpec>())) {
        None => None,
        Some((_, Ok(FarSpec::Node { nodes }))) => Some(check("NEARFAR_FAR", set(&nodes))?),
        Some((value, Ok(_))) => {
            return Err(format!(
                "NEARFAR_FAR={value}: a file or emulated memory needs `nearfar run --far {value} -- PROGRAM`; without it, name nodes: node:0"
            ));
        }
        Some((value, Err(error))) => return Err(format!("NEARFAR_FAR={value}: {error}")),
    };
    let (near, far) = match (near, far) {
        (Some(near), Some(far)) => (near, far),
        (Some(near), None) => (near, without(near)),
        (None, Some(far)) => (without(far), far),
        (None, None) => match detect::tiers(topology) {
            Some(tiers) => (set(&tiers.near).and(&all), set(&tiers.far).and(&all)),
            None => return Ok(Choice::default()),
        },
    };
    match near.iter().find(|&node| far.contains(node)) {
        Some(node) => Err(format!("NEARFAR_NEAR and NEARFAR_FAR both name node {node}")),
        None => Ok(Choice { near, far, limit }),
    }
}

impl Side {
    fn on(nodes: NodeSet, topology: &Topology) -> Result<Self, Errno> {
        // The nearest of its nodes, then anywhere: a program must not be killed because its near memory is full.
        let policy = (!nodes.is_empty()).then(|| MemoryPolicy::new(PolicyMode::PreferredMany, nodes));
        let pool = Pool::create(&PoolSpec { policy, ..PoolSpec::default() })?;
        let of_nodes = topology.nodes.iter().filter(|node| nodes.contains(node.id)).map(|node| node.bytes).sum();
        let total = if nodes.is_empty() { process::memory_total() } else { of_nodes };
        Ok(Self { pool, nodes, total, limit: u64::MAX })
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.limit == u64::MAX || self.pool.live_bytes().saturating_add(bytes as u64) <= self.limit
    }

    fn free_bytes(&self) -> u64 {
        let free = match self.nodes.is_empty() {
            true => process::memory_available(),
            false => self.nodes.iter().filter_map(numa::free_bytes).sum(),
        };
        free.min(self.limit.saturating_sub(self.pool.live_bytes()))
    }
}

impl Standalone {
    const fn side(&self, tier: Tier) -> &Side {
        match tier {
            Tier::Near => &self.near,
            Tier::Far => &self.far,
        }
    }

    /// The pool for `bytes` more in `tier`: far when near has been given out up to its limit.
    #[inline]
    fn pool(&self, tier: Tier, bytes: usize) -> &'static Pool {
        let side = self.side(tier);
        if side.has_room(bytes) { side.pool } else { self.far.pool }
    }

    /// `size` bytes in `tier`; null when there is no memory.
    #[inline]
    pub fn malloc(&self, tier: Tier, size: usize) -> *mut c_void {
        self.pool(tier, size).malloc(size)
    }

    /// The same, zeros.
    pub fn zalloc(&self, tier: Tier, size: usize) -> *mut c_void {
        let pool = self.pool(tier, size);
        if size < DISCARDED {
            return pool.zalloc(size);
        }
        let block = pool.malloc(size);
        if !block.is_null() {
            // SAFETY: a fresh block of that size.
            unsafe { clear(block.cast(), size) };
        }
        block
    }

    /// The same, aligned to a power of two.
    pub fn memalign(&self, tier: Tier, align: usize, size: usize) -> *mut c_void {
        self.pool(tier, size).memalign(align, size)
    }

    /// A block of a pool with another size, in `tier`; null when there is no memory, and the block is then as it was.
    ///
    /// # Safety
    /// `block` is a live block of a pool; unless the result is null it is not used afterwards.
    pub unsafe fn realloc(&self, tier: Tier, block: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: passed on to the caller.
        let old = unsafe { Pool::usable_size(block) };
        let is_there = Pool::of(block.addr()).is_some_and(|pool| std::ptr::eq(pool, self.side(tier).pool));
        // What stays in place, or grows, asks for the difference only.
        let pool = self.pool(tier, if is_there { size.saturating_sub(old) } else { size });
        // SAFETY: passed on to the caller. In place while at least half of the block is used.
        unsafe { if is_there && size <= old && size >= old / 2 { block } else { pool.realloc(block, size) } }
    }

    /// The tier that pages on `node` are in.
    pub fn tier_of_node(&self, node: u32) -> Tier {
        if !self.is_two || self.near.nodes.contains(node) { Tier::Near } else { Tier::Far }
    }

    /// Bytes of a tier: in all, free, given out.
    pub fn capacity(&self, tier: Tier) -> (u64, u64, u64) {
        let side = self.side(tier);
        (side.total.min(side.limit), side.free_bytes(), side.pool.live_bytes())
    }
}

/// Blocks from this size on are cleared by giving their pages back: mimalloc would write zeros wherever a block has ever been, and so
/// take near memory that the program may never touch.
const DISCARDED: usize = 8 << 20;

/// Makes a block read as zeros.
///
/// # Safety
/// `block` has `size` bytes, at least a page, which are the caller's.
unsafe fn clear(block: *mut u8, size: usize) {
    let (start, end) = (block.addr(), block.addr() + size);
    let pages = Extent { start: start.next_multiple_of(PAGE), end: end & !(PAGE - 1) };
    // SAFETY: private anonymous memory of a pool, whose pages come back as zeros; it is the caller's.
    unsafe {
        match map::madvise(pages, libc::MADV_DONTNEED) {
            Ok(_) => {
                block.write_bytes(0, pages.start - start);
                block.add(pages.end - start).write_bytes(0, end - pages.end);
            }
            // Locked memory (mlockall) is not given back.
            Err(_) => block.write_bytes(0, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{MemoryKind, MemoryNode};

    fn machine(kinds: &[MemoryKind]) -> Topology {
        let node = |(id, &kind)| MemoryNode { id, kind, bytes: 16 << 30, allowed: true, ..MemoryNode::default() };
        Topology { nodes: (0..).zip(kinds).map(node).collect(), ..Topology::default() }
    }

    fn nodes(numbers: &[u32]) -> NodeSet {
        numbers.iter().copied().collect()
    }

    #[test]
    fn the_machine_decides_where_the_user_does_not() {
        let flat = machine(&[MemoryKind::Dram, MemoryKind::Hbm]);
        assert_eq!(choose(None, None, &flat), Ok(Choice { near: nodes(&[1]), far: nodes(&[0]), limit: None }));
        let sockets = machine(&[MemoryKind::Dram, MemoryKind::Dram]);
        assert_eq!(choose(None, None, &sockets), Ok(Choice::default()), "nothing tells them apart");
    }

    #[test]
    fn the_user_decides() {
        let sockets = machine(&[MemoryKind::Dram, MemoryKind::Dram, MemoryKind::Dram]);
        let near = choose(Some("node:0:4G"), None, &sockets);
        assert_eq!(near, Ok(Choice { near: nodes(&[0]), far: nodes(&[1, 2]), limit: Some(4 << 30) }));
        let far = choose(None, Some("node:2"), &sockets);
        assert_eq!(far, Ok(Choice { near: nodes(&[0, 1]), far: nodes(&[2]), limit: None }));
        let both = choose(Some("node:1"), Some("node:0"), &sockets);
        assert_eq!(both, Ok(Choice { near: nodes(&[1]), far: nodes(&[0]), limit: None }));
        let one = machine(&[MemoryKind::Dram]);
        assert_eq!(choose(Some("node:0"), None, &one), Ok(Choice { near: nodes(&[0]), far: nodes(&[]), limit: None }));
    }

    #[test]
    fn what_cannot_be_is_refused_with_advice() {
        let mut sockets = machine(&[MemoryKind::Dram, MemoryKind::Dram]);
        let refused = |near, far, word: &str, topology: &Topology| {
            let why = choose(near, far, topology).expect_err("refused");
            assert!(why.contains(word), "{why}");
        };
        refused(Some("node:7"), None, "nodes with memory: 0,1", &sockets);
        refused(Some("nodes 1"), None, "NEARFAR_NEAR=nodes 1", &sockets);
        refused(Some("800M"), None, "nearfar run --near 800M", &sockets);
        refused(None, Some("/tmp"), "nearfar run --far /tmp", &sockets);
        refused(Some("node:0,1"), Some("node:1"), "both name node 1", &sockets);
        sockets.nodes[1].allowed = false;
        refused(Some("node:1"), None, "nodes with memory: 0", &sockets);
    }
}
