//! What the user asked for, as plain data of fixed size: `nearfar run` writes it into the job segment, every process reads it.

use super::NodeSet;

/// One of the two memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Tier {
    /// Fast and small.
    Near = 0,
    /// Large and slower.
    Far = 1,
}

/// What sort of memory an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// From malloc and its like.
    Heap = 0,
    /// A private anonymous mapping that the program made itself.
    Map = 1,
    /// A static array: .data, .bss, Fortran COMMON.
    Static = 2,
    /// The stack of a thread.
    ThreadStack = 3,
    /// The stack of the main thread.
    MainStack = 4,
}

/// Which objects go near (`--place`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// None: cache mode, where nothing is chosen.
    #[default]
    None = 0,
    /// Every object.
    All = 1,
    /// Objects whose size lies in one of the ranges.
    Sizes = 2,
    /// Objects that a plan names.
    Plan = 3,
    /// Only what the program places itself, through the API.
    Calls = 4,
}

/// What happens when near is full (`--full`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Full {
    /// Further objects go to far.
    #[default]
    Spill = 0,
    /// The allocation fails with ENOMEM.
    Fail = 1,
    /// The allocation waits until there is room.
    Wait = 2,
}

/// How the pages of a tier of several nodes are spread over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Spread {
    /// On the nodes nearest to the CPU that allocates.
    #[default]
    Nearest = 0,
    /// Page by page in turn.
    Interleave = 1,
    /// In turn, in proportion to the weights.
    Weighted = 2,
}

/// Sizes in bytes, both ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SizeRange {
    /// Smallest.
    pub least: u64,
    /// Largest; `u64::MAX` when there is no end.
    pub most: u64,
}

impl SizeRange {
    /// True when an object of `bytes` is meant.
    pub const fn contains(&self, bytes: u64) -> bool {
        self.least <= bytes && bytes <= self.most
    }
}

/// Ranges in one `--place size:...`.
pub const MAX_SIZE_RANGES: usize = 16;

/// What was asked for; see the fields. Plain data: all-zero bits are "nothing".
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Placement {
    /// Which objects go near.
    pub policy: Policy,
    /// What happens when near is full.
    pub full: Full,
    /// How pages are spread over the near nodes.
    pub near_spread: Spread,
    /// How pages are spread over the far nodes.
    pub far_spread: Spread,
    /// Nodes of near; empty when near is a budget of ordinary memory (`Settings::near_bytes`).
    pub near: NodeSet,
    /// Nodes of far; empty when far is a file or emulated.
    pub far: NodeSet,
    /// At most this many bytes of near for this job, after sharing with other ranks; `u64::MAX`: all that the nodes have.
    pub near_limit: u64,
    /// Share of near that is cache, in millionths: 0 is flat, 1,000,000 is cache.
    pub cache_ppm: u32,
    /// How many of `sizes` hold.
    pub size_count: u32,
    /// Ranges of [`Policy::Sizes`].
    pub sizes: [SizeRange; MAX_SIZE_RANGES],
}

impl Default for Placement {
    fn default() -> Self {
        Self {
            policy: Policy::None,
            full: Full::Spill,
            near_spread: Spread::Nearest,
            far_spread: Spread::Nearest,
            near: NodeSet::EMPTY,
            far: NodeSet::EMPTY,
            near_limit: u64::MAX,
            cache_ppm: 1_000_000,
            size_count: 0,
            sizes: [SizeRange::default(); MAX_SIZE_RANGES],
        }
    }
}

impl Placement {
    /// The ranges of sizes that go near.
    pub fn sizes(&self) -> &[SizeRange] {
        &self.sizes[..(self.size_count as usize).min(MAX_SIZE_RANGES)]
    }

    /// True when near is NUMA nodes: nothing is paged, objects lie on the nodes they are told to.
    pub fn is_numa(&self) -> bool {
        !self.near.is_empty()
    }

    /// Where an object of `bytes` goes by size alone; `None` when this policy does not decide by size ([`Policy::Plan`]).
    pub fn by_size(&self, bytes: u64) -> Option<Tier> {
        match self.policy {
            Policy::None | Policy::Calls => Some(Tier::Far),
            Policy::All => Some(Tier::Near),
            Policy::Sizes if self.sizes().iter().any(|range| range.contains(bytes)) => Some(Tier::Near),
            Policy::Sizes => Some(Tier::Far),
            Policy::Plan => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_decide() {
        let mut placement = Placement { policy: Policy::Sizes, size_count: 2, ..Placement::default() };
        placement.sizes[0] = SizeRange { least: 1 << 20, most: 5 << 20 };
        placement.sizes[1] = SizeRange { least: 1 << 30, most: u64::MAX };
        for (bytes, tier) in [
            ((1 << 20) - 1, Tier::Far),
            (1 << 20, Tier::Near),
            (5 << 20, Tier::Near),
            ((5 << 20) + 1, Tier::Far),
            (1 << 30, Tier::Near),
            (u64::MAX, Tier::Near),
        ] {
            assert_eq!(placement.by_size(bytes), Some(tier), "{bytes}");
        }
        placement.policy = Policy::Plan;
        assert_eq!(placement.by_size(1), None);
    }
}
