//! The kinds that memkind has from the start: names, numbers and what each asks for. A table, nothing else.

/// What sort of memory a kind is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Wherever the thread's policy says.
    Default,
    /// Nodes with CPUs.
    Regular,
    /// Every node.
    Every,
    /// High bandwidth.
    HighBandwidth,
    /// Memory that a driver added as nodes of its own: persistent memory, CXL.
    DaxKmem,
    /// The largest nodes.
    HighestCapacity,
    /// The largest node near the CPU.
    HighestCapacityLocal,
    /// The quickest node near the CPU.
    LowestLatencyLocal,
    /// The widest node near the CPU.
    HighestBandwidthLocal,
    /// Chunks of 1 GiB, which memkind gave up.
    Gone,
}

/// Which nodes of the family serve one CPU, and what happens when they are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// The nearest, and no other.
    Nearest,
    /// The nearest, of which there must be one only, and then any other.
    Preferred,
    /// All, and no other.
    All,
    /// All in turn, page by page.
    Interleaved,
}

macro_rules! kinds {
    ($($kind:ident = $partition:literal, $name:literal: $family:ident, $choice:ident, huge $huge:literal, capacity $capacity:literal;)*) => {
        /// A kind, numbered as memkind numbers its partitions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum StaticKind {
            $(#[doc = concat!("`MEMKIND_` ", $name)] $kind = $partition,)*
        }

        impl StaticKind {
            /// All of them, by partition.
            pub const ALL: [Self; COUNT] = [$(Self::$kind),*];

            /// As `struct memkind` names it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),* }
            }

            /// What it is made of.
            pub const fn family(self) -> Family {
                match self { $(Self::$kind => Family::$family),* }
            }

            /// Which nodes serve a CPU.
            pub const fn node_choice(self) -> NodeChoice {
                match self { $(Self::$kind => NodeChoice::$choice),* }
            }

            /// From the kernel's reserve of huge pages.
            pub const fn is_huge(self) -> bool {
                match self { $(Self::$kind => $huge),* }
            }

            /// `memkind_get_capacity` has an answer for it.
            pub const fn has_capacity(self) -> bool {
                match self { $(Self::$kind => $capacity),* }
            }
        }
    };
}

/// How many there are.
pub const COUNT: usize = 26;

kinds! {
    Default = 0, "memkind_default": Default, All, huge false, capacity true;
    Hbw = 1, "memkind_hbw": HighBandwidth, Nearest, huge false, capacity true;
    HbwHugetlb = 2, "memkind_hbw_hugetlb": HighBandwidth, Nearest, huge true, capacity false;
    HbwPreferred = 3, "memkind_hbw_preferred": HighBandwidth, Preferred, huge false, capacity false;
    HbwPreferredHugetlb = 4, "memkind_hbw_preferred_hugetlb": HighBandwidth, Preferred, huge true, capacity false;
    Hugetlb = 5, "memkind_hugetlb": Default, All, huge true, capacity true;
    HbwGbtlb = 6, "memkind_hbw_gbtlb": Gone, All, huge true, capacity false;
    HbwPreferredGbtlb = 7, "memkind_hbw_preferred_gbtlb": Gone, All, huge true, capacity false;
    Gbtlb = 8, "memkind_gbtlb": Gone, All, huge true, capacity false;
    HbwInterleave = 9, "memkind_hbw_interleave": HighBandwidth, Interleaved, huge false, capacity true;
    Interleave = 10, "memkind_interleave": Every, Interleaved, huge false, capacity true;
    Regular = 11, "memkind_regular": Regular, All, huge false, capacity true;
    HbwAll = 12, "memkind_hbw_all": HighBandwidth, All, huge false, capacity true;
    HbwAllHugetlb = 13, "memkind_hbw_all_hugetlb": HighBandwidth, All, huge true, capacity false;
    DaxKmem = 14, "memkind_dax_kmem": DaxKmem, Nearest, huge false, capacity true;
    DaxKmemAll = 15, "memkind_dax_kmem_all": DaxKmem, All, huge false, capacity true;
    DaxKmemPreferred = 16, "memkind_dax_kmem_preferred": DaxKmem, Preferred, huge false, capacity false;
    DaxKmemInterleave = 17, "memkind_dax_kmem_interleave": DaxKmem, Interleaved, huge false, capacity true;
    HighestCapacity = 18, "memkind_highest_capacity": HighestCapacity, All, huge false, capacity true;
    HighestCapacityPreferred = 19, "memkind_highest_capacity_preferred": HighestCapacity, Preferred, huge false, capacity false;
    HighestCapacityLocal = 20, "memkind_highest_capacity_local": HighestCapacityLocal, Nearest, huge false, capacity true;
    HighestCapacityLocalPreferred = 21, "memkind_highest_capacity_local_preferred": HighestCapacityLocal, Preferred,
        huge false, capacity false;
    LowestLatencyLocal = 22, "memkind_lowest_latency_local": LowestLatencyLocal, Nearest, huge false, capacity true;
    LowestLatencyLocalPreferred = 23, "memkind_lowest_latency_local_preferred": LowestLatencyLocal, Preferred,
        huge false, capacity false;
    HighestBandwidthLocal = 24, "memkind_highest_bandwidth_local": HighestBandwidthLocal, Nearest, huge false, capacity true;
    HighestBandwidthLocalPreferred = 25, "memkind_highest_bandwidth_local_preferred": HighestBandwidthLocal, Preferred,
        huge false, capacity false;
}

impl StaticKind {
    /// The kind of this partition.
    pub fn of_partition(partition: usize) -> Option<Self> {
        Self::ALL.get(partition).copied()
    }

    /// Served from near in a job of ours that pages.
    pub const fn is_near(self) -> bool {
        matches!(self.family(), Family::HighBandwidth | Family::LowestLatencyLocal | Family::HighestBandwidthLocal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_places_in_the_table() {
        for (partition, kind) in StaticKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, partition);
            assert!(kind.name().starts_with("memkind_") && kind.name().len() < 64);
            assert_eq!(kind.is_huge() && kind.family() != Family::Gone, kind.name().ends_with("hugetlb"));
            assert_eq!(
                kind.node_choice() == NodeChoice::Preferred,
                kind.name().contains("preferred") && kind.family() != Family::Gone
            );
        }
        assert_eq!(StaticKind::of_partition(26), None);
    }
}
