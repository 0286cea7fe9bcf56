//! Where blocks of the kinds that are there from the start come from in this process: one pool per kind and set of nodes, made at its
//! first use. The machine is read then, once.

use crate::choice::{self, Choice, Unavailable};
use crate::code;
use crate::environment::Environment;
use crate::kind;
use crate::lock;
use crate::paged::{self, Tier};
use crate::range_heap::{Backing, RangeHeap};
use crate::static_kind::{COUNT, Family, StaticKind};
use crate::{registry, report};
use nearfar_core::addr::{BLOCK, Extent};
use nearfar_core::node::Topology;
use nearfar_core::placement::NodeSet;
use nearfar_sys::errno::Errno;
use nearfar_sys::numa::{self, MemoryPolicy, PolicyMode};
use nearfar_sys::root::Root;
use nearfar_sys::{machine, map};
use nearfar_tiers::pool::{MOST_POOLS, Pool, PoolPages, PoolSpec};
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// What a block comes from.
#[derive(Clone, Copy)]
pub enum Home {
    /// A pool on nodes.
    Pool(&'static Pool),
    /// Huge pages, a file or an area.
    Range(&'static RangeHeap),
    /// A tier of a job of ours.
    Paged(&'static paged::Paged, Tier),
}

struct Plan {
    choice: Choice,
    /// By CPU node, the place in `homes`.
    which: Vec<usize>,
    sets: Vec<NodeSet>,
    homes: Vec<OnceLock<Option<Home>>>,
}

static PLANS: [OnceLock<Result<Plan, Unavailable>>; COUNT] = [const { OnceLock::new() }; COUNT];
/// Pools of kinds that have one only: what nearly every allocation needs.
static ONLY: [AtomicPtr<Pool>; COUNT] = [const { AtomicPtr::new(null_mut()) }; COUNT];
/// By number of a pool: partition of its kind + 1.
static OWNERS: [AtomicU8; MOST_POOLS] = [const { AtomicU8::new(0) }; MOST_POOLS];
/// By number of a pool: bytes that its nodes have, where it may take no others.
static LIMITS: [AtomicU64; MOST_POOLS] = [const { AtomicU64::new(u64::MAX) }; MOST_POOLS];

/// The nodes of this machine, read at the first call.
pub fn topology() -> &'static Topology {
    static TOPOLOGY: OnceLock<Topology> = OnceLock::new();
    lock::once(&TOPOLOGY, || machine::nodes(&Root::this()))
}

/// The nodes as far as `kind` needs them: where the user says which they are, their kinds do not count, and are not looked up.
fn topology_for(kind: StaticKind, environment: &Environment) -> &'static Topology {
    static OUTLINE: OnceLock<Topology> = OnceLock::new();
    let is_told = match kind.family() {
        Family::HighBandwidth => environment.hbw_nodes != Ok(None),
        Family::DaxKmem => environment.dax_nodes != Ok(None),
        _ => false,
    };
    if is_told { lock::once(&OUTLINE, || machine::outline(&Root::this())) } else { topology() }
}

/// `errno` stays what it is while `work` asks the system.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the address of this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = work();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

fn plan(kind: StaticKind) -> Result<&'static Plan, &'static Unavailable> {
    let plan = &PLANS[kind as usize];
    lock::once(plan, || quietly(|| make_plan(kind))).as_ref()
}

fn make_plan(kind: StaticKind) -> Result<Plan, Unavailable> {
    let environment = Environment::this();
    // What lies wherever the thread says needs no look at the machine.
    let choice = if kind.family() == Family::Default {
        Ok(Choice::anywhere())
    } else {
        choice::choose(topology_for(kind, environment), environment, kind)
    };
    let choice = choice.and_then(|choice| if kind.is_huge() { has_huge_pages().map(|()| choice) } else { Ok(choice) });
    let is_named = |problem: &Unavailable| {
        problem.code == code::ENVIRON && !environment.problems().iter().any(|bad| problem.why == bad.to_string())
    };
    match &choice {
        // What cannot be parsed was said when the variables were read.
        Err(problem) if is_named(problem) => say_once(&problem.why),
        Err(problem) => info(&format!("{} is not available: {}", kind.name(), problem.why)),
        Ok(choice) => info(&format!("{} is made of nodes {} ({:?})", kind.name(), choice.nodes, choice.mode)),
    }
    let choice = choice?;
    let mut sets: Vec<NodeSet> = Vec::new();
    let which = choice.by_cpu_node.iter().map(|set| {
        sets.iter().position(|known| known == set).unwrap_or_else(|| {
            sets.push(*set);
            sets.len() - 1
        })
    });
    let which = which.collect();
    let homes = sets.iter().map(|_| OnceLock::new()).collect();
    Ok(Plan { choice, which, sets, homes })
}

/// MEMKIND_HOG_MEMORY=1.
pub fn hogs() -> bool {
    Environment::this().hogs
}

/// A line of the log, with MEMKIND_DEBUG=1.
pub fn info(text: &str) {
    if Environment::this().debug == Ok(Some(true)) {
        report::log("INFO", text);
    }
}

/// Several kinds fail for the same reason; users need to read it once.
fn say_once(text: &str) {
    static SAID: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !said.iter().any(|one| one == text) {
        report::say(text);
        said.push(text.to_owned());
    }
}

/// Huge pages of 2 MiB that the kernel holds ready, and those that it may make on demand.
fn huge_pages(name: &str) -> u64 {
    Root::this().number(&format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}")).unwrap_or(0)
}

fn has_huge_pages() -> Result<(), Unavailable> {
    if paged::get().is_some() {
        let why = "in a paged job the pager chooses page sizes".to_owned();
        return Err(Unavailable { code: code::HUGETLB, why });
    }
    let count = huge_pages("nr_hugepages") + huge_pages("nr_overcommit_hugepages");
    let why = || "the kernel has no huge pages of 2 MiB (vm.nr_hugepages)".to_owned();
    if count > 0 { Ok(()) } else { Err(Unavailable { code: code::HUGETLB, why: why() }) }
}

/// `memkind_check_available`.
pub fn check(kind: StaticKind) -> c_int {
    if paged::get().is_some() && !kind.is_huge() && kind.family() != Family::Gone {
        return code::SUCCESS;
    }
    plan(kind).map_or_else(|problem| problem.code, |_| code::SUCCESS)
}

/// The nodes that may serve `kind` on any CPU.
pub fn nodes(kind: StaticKind) -> Option<NodeSet> {
    plan(kind).ok().map(|plan| plan.choice.nodes)
}

/// How the kernel chooses among them.
pub fn mode(kind: StaticKind) -> Option<PolicyMode> {
    plan(kind).ok().map(|plan| plan.choice.mode)
}

/// `memkind_get_capacity` of a kind that has one.
pub fn capacity(kind: StaticKind) -> Option<u64> {
    let plan = plan(kind).ok().filter(|_| kind.has_capacity())?;
    quietly(|| match (kind.is_huge(), kind.family()) {
        (true, _) => Some(huge_pages("nr_hugepages") * BLOCK as u64),
        (false, Family::Default) => Some(topology().memory_bytes()),
        (false, _) => Some(plan.choice.bytes),
    })
}

/// The pool of `kind` where it has one only and has been used.
pub fn only(kind: StaticKind) -> Option<&'static Pool> {
    // SAFETY: pools live as long as the process.
    unsafe { ONLY[kind as usize].load(Ordering::Acquire).as_ref() }
}

/// Where a block of `kind` is to come from, on the CPU that asks; `None` when it is not available.
#[inline]
pub fn home(kind: StaticKind) -> Option<Home> {
    match only(kind) {
        Some(pool) => Some(Home::Pool(pool)),
        None => home_here(kind),
    }
}

#[inline(never)]
fn home_here(kind: StaticKind) -> Option<Home> {
    if let Some(paged) = paged::get() {
        let tier = if kind.is_near() { Tier::Near } else { Tier::Far };
        return (check(kind) == code::SUCCESS).then_some(Home::Paged(paged, tier));
    }
    let plan = plan(kind).ok()?;
    let which = match plan.sets.len() {
        1 => 0,
        // CPUs that came later than the description was read are served as those of the first node.
        _ => plan.which.get(numa::here().1 as usize).or(plan.which.first()).copied()?,
    };
    *lock::once(&plan.homes[which], || quietly(|| make_home(kind, plan, &plan.sets[which])))
}

fn make_home(kind: StaticKind, plan: &Plan, set: &NodeSet) -> Option<Home> {
    let mode = plan.choice.mode;
    if set.is_empty() && mode != PolicyMode::Default {
        return None;
    }
    let policy = (mode != PolicyMode::Default).then(|| MemoryPolicy::new(mode, *set));
    if kind.is_huge() {
        return make_huge(kind, policy).ok().map(Home::Range);
    }
    let pages = if mode == PolicyMode::Interleave { PoolPages::NoHuge } else { PoolPages::Default };
    let create = |policy| Pool::create(&PoolSpec { policy, pages, most: None });
    // Containers often forbid NUMA calls; where there are no other nodes, nothing need be asked for.
    let nodes = || topology_for(kind, Environment::this()).nodes.iter();
    let is_all = || nodes().filter(|node| node.bytes > 0 && node.allowed).all(|node| set.contains(node.id));
    let pool = create(policy).or_else(|errno| match errno {
        Errno(libc::EPERM | libc::ENOSYS) if is_all() => create(None),
        errno => Err(errno),
    });
    let pool = match pool {
        Ok(pool) => pool,
        Err(errno) => {
            say_once(&format!("no memory on nodes {set} for {}: {errno}", kind.name()));
            return None;
        }
    };
    OWNERS[pool.id()].store(kind as u8 + 1, Ordering::Release);
    if mode == PolicyMode::Bind && kind.family() != Family::Regular {
        let has = |node: &&nearfar_core::node::MemoryNode| set.contains(node.id);
        LIMITS[pool.id()].store(nodes().filter(has).map(|node| node.bytes).sum(), Ordering::Release);
    }
    if plan.sets.len() == 1 {
        ONLY[kind as usize].store(std::ptr::from_ref(pool).cast_mut(), Ordering::Release);
    }
    Some(Home::Pool(pool))
}

/// Addresses for the huge pages of one kind and set of nodes; pages come as they are needed.
fn make_huge(kind: StaticKind, policy: Option<MemoryPolicy>) -> Result<&'static RangeHeap, c_int> {
    let bytes = (huge_pages("nr_hugepages") + huge_pages("nr_overcommit_hugepages")) as usize * BLOCK;
    // Room for pieces as well as for what is used; addresses are plenty.
    let range: Extent = map::reserve(bytes.saturating_mul(4).max(1 << 30)).map_err(|_| code::MMAP)?;
    // SAFETY: addresses of ours, reserved just now.
    let heap = unsafe { RangeHeap::new(range, Backing::Huge(policy)) };
    registry::add_static(heap, kind::pointer(kind))
}

/// The kind whose pool this is.
#[inline]
pub fn owner(pool: &Pool) -> Option<StaticKind> {
    let number = OWNERS[pool.id()].load(Ordering::Acquire);
    StaticKind::of_partition(usize::from(number).wrapping_sub(1))
}

/// True when `size` more bytes can never lie on the nodes of `pool`, which may take no others: what memkind documents as ENOMEM, and
/// what the kernel would answer with the death of the process at first touch.
#[cold]
pub fn exceeds(pool: &Pool, size: usize) -> bool {
    let limit = LIMITS[pool.id()].load(Ordering::Acquire);
    limit != u64::MAX && (size as u64).saturating_add(pool.live_bytes()) > limit
}

/// All pools that serve `kind` now.
pub fn pools(kind: StaticKind) -> impl Iterator<Item = &'static Pool> {
    Pool::all().filter(move |pool| owner(pool) == Some(kind))
}
