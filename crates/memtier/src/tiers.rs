//! The tiers of this process: which memory each is, what is in it, and which one an allocation goes to.

use nearfar_kinds::family::Void;
use nearfar_kinds::memory::Owner;
use nearfar_kinds::memtier::{Builder, Counters, Ctl, Memory, Value};
use nearfar_kinds::memtier_env::{Tier, TierKind, Tiers};
use nearfar_kinds::placed::Placed;
use nearfar_kinds::static_kind::StaticKind;
use std::fmt;
use std::sync::OnceLock;

/// Tiers of a process; tier 0 is always the C library's heap, whether allocations go there or not.
pub const MOST_TIERS: usize = 64;
/// The C library's heap.
pub const DRAM: usize = 0;

/// Bytes given out, by tier.
static ALLOCATED: Counters<MOST_TIERS> = Counters::new();
static OPEN: OnceLock<Open> = OnceLock::new();

/// Tiers in use.
pub struct Open {
    memory: Memory<usize>,
    /// Of tiers 1 and up.
    placed: Vec<Placed>,
    /// What is in the tiers decides where allocations go: there are several.
    counts: bool,
}

/// The tiers in use, once there are.
#[inline(always)]
pub fn open() -> Option<&'static Open> {
    OPEN.get()
}

/// Opens `tiers`; from now on allocations are spread over them.
///
/// # Errors
/// What is not to be had, and why.
pub fn start(tiers: &Tiers) -> Result<&'static Open, String> {
    let mut builder = Builder::new(tiers.policy);
    let mut placed = Vec::new();
    for Tier { kind, ratio } in &tiers.tiers {
        let number = match opened(kind)? {
            None => DRAM,
            Some(_) if placed.len() + 1 == MOST_TIERS => return Err(format!("more than {} tiers", MOST_TIERS - 1)),
            Some(kind) => {
                placed.push(kind);
                placed.len()
            }
        };
        builder.add(number, *ratio).map_err(|why| why.to_string())?;
    }
    for (index, threshold) in tiers.thresholds.iter().enumerate() {
        for (what, size) in [(Ctl::Val(index), threshold.val), (Ctl::Min(index), threshold.min), (Ctl::Max(index), threshold.max)]
        {
            builder.set(what, Value::Size(size)).map_err(|why| why.to_string())?;
        }
    }
    let memory = builder.build().map_err(|why| why.to_string())?;
    Ok(OPEN.get_or_init(|| Open { counts: memory.kinds().len() > 1, memory, placed }))
}

/// The memory of a tier; `None` for DRAM.
fn opened(kind: &TierKind) -> Result<Option<Placed>, String> {
    let of_kind = |kind: StaticKind, name: &str| Placed::of_kind(kind).map(Some).map_err(|why| format!("{name}: {why}"));
    match kind {
        TierKind::Dram => Ok(None),
        TierKind::KmemDax => of_kind(StaticKind::DaxKmem, "KIND:KMEM_DAX"),
        TierKind::Hbw => of_kind(StaticKind::Hbw, "KIND:HBW"),
        TierKind::Nodes(nodes) => Placed::of_nodes(*nodes).map(Some).map_err(|why| format!("KIND:NODE:{nodes}: {why}")),
        TierKind::FsDax { path, limit } => Placed::of_file(path, *limit).map(Some).map_err(|why| format!("PATH:{path}: {why}")),
    }
}

impl Open {
    /// The tier for an allocation of `size` bytes.
    #[inline]
    pub fn choose(&self, size: usize) -> usize {
        let allocated = ALLOCATED.mine();
        self.memory.choose(size, |tier| allocated.about(tier))
    }

    /// The memory of a tier; `None` for DRAM.
    #[inline]
    pub fn placed(&self, tier: usize) -> Option<&Placed> {
        self.placed.get(tier.wrapping_sub(1))
    }

    /// The tier of a block.
    #[inline]
    pub fn of(&self, block: Void) -> usize {
        match Placed::owner(block) {
            Owner::Other => DRAM,
            owner => self.placed.iter().position(|placed| placed.has(&owner)).map_or(DRAM, |index| index + 1),
        }
    }

    /// The tier's name, for people.
    pub fn name(&self, tier: usize) -> Name<'_> {
        Name(self.placed(tier))
    }

    /// The tiers that allocations go to, nearest first.
    pub fn kinds(&self) -> &[usize] {
        self.memory.kinds()
    }
}

/// False when nobody asks what is in the tiers.
#[inline(always)]
pub fn counts() -> bool {
    open().is_none_or(|open| open.counts)
}

/// Counts a block of `bytes` that a tier gives out.
#[inline(always)]
pub fn given(tier: usize, bytes: usize) {
    ALLOCATED.add(tier, bytes as i64);
}

/// Counts a block of `bytes` that a tier gets back.
#[inline(always)]
pub fn returned(tier: usize, bytes: usize) {
    ALLOCATED.add(tier, -(bytes as i64));
}

/// Bytes given out in a tier.
pub fn allocated(tier: usize) -> i64 {
    ALLOCATED.exact(tier)
}

/// See `Open::name`.
pub struct Name<'a>(Option<&'a Placed>);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(placed) => placed.fmt(f),
            None => f.write_str("DRAM"),
        }
    }
}
