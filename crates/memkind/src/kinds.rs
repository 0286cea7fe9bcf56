//! ONE table of the kinds: a pointer in data and a table of operations each.
//!
//! Programs that are not position-independent copy the pointers into their own data when they are loaded; nothing here reads them back.

use nearfar_kinds::internal::{dynamic_ops, static_ops};
use nearfar_kinds::kind::{self, KindPointer, Ops};
use nearfar_kinds::static_kind::StaticKind;

macro_rules! kinds {
    ($($pointer:ident, $ops:ident = $kind:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($pointer), "` for the program.")]
            #[unsafe(no_mangle)]
            pub static $pointer: KindPointer = KindPointer::to(StaticKind::$kind);

            #[doc = concat!("`", stringify!($ops), "` for the program.")]
            #[unsafe(no_mangle)]
            pub static $ops: Ops = static_ops(StaticKind::$kind);
        )*

        /// Each kind leads to its table.
        extern "C" fn link() {
            $(kind::record(StaticKind::$kind).set_ops(&$ops);)*
        }
    };
}

/// Run by the loader, before the program can look.
#[used]
#[unsafe(link_section = ".init_array")]
static LINK: extern "C" fn() = link;

/// `MEMKIND_PMEM_OPS` for the program.
#[unsafe(no_mangle)]
pub static MEMKIND_PMEM_OPS: Ops = dynamic_ops();

/// `MEMKIND_FIXED_OPS` for the program.
#[unsafe(no_mangle)]
pub static MEMKIND_FIXED_OPS: Ops = dynamic_ops();

kinds! {
    MEMKIND_DEFAULT, MEMKIND_DEFAULT_OPS = Default;
    MEMKIND_HUGETLB, MEMKIND_HUGETLB_OPS = Hugetlb;
    MEMKIND_INTERLEAVE, MEMKIND_INTERLEAVE_OPS = Interleave;
    MEMKIND_HBW, MEMKIND_HBW_OPS = Hbw;
    MEMKIND_HBW_ALL, MEMKIND_HBW_ALL_OPS = HbwAll;
    MEMKIND_HBW_PREFERRED, MEMKIND_HBW_PREFERRED_OPS = HbwPreferred;
    MEMKIND_HBW_HUGETLB, MEMKIND_HBW_HUGETLB_OPS = HbwHugetlb;
    MEMKIND_HBW_ALL_HUGETLB, MEMKIND_HBW_ALL_HUGETLB_OPS = HbwAllHugetlb;
    MEMKIND_HBW_PREFERRED_HUGETLB, MEMKIND_HBW_PREFERRED_HUGETLB_OPS = HbwPreferredHugetlb;
    MEMKIND_HBW_INTERLEAVE, MEMKIND_HBW_INTERLEAVE_OPS = HbwInterleave;
    MEMKIND_REGULAR, MEMKIND_REGULAR_OPS = Regular;
    MEMKIND_DAX_KMEM, MEMKIND_DAX_KMEM_OPS = DaxKmem;
    MEMKIND_DAX_KMEM_ALL, MEMKIND_DAX_KMEM_ALL_OPS = DaxKmemAll;
    MEMKIND_DAX_KMEM_PREFERRED, MEMKIND_DAX_KMEM_PREFERRED_OPS = DaxKmemPreferred;
    MEMKIND_DAX_KMEM_INTERLEAVE, MEMKIND_DAX_KMEM_INTERLEAVE_OPS = DaxKmemInterleave;
    MEMKIND_HIGHEST_CAPACITY, MEMKIND_HIGHEST_CAPACITY_OPS = HighestCapacity;
    MEMKIND_HIGHEST_CAPACITY_PREFERRED, MEMKIND_HIGHEST_CAPACITY_PREFERRED_OPS = HighestCapacityPreferred;
    MEMKIND_HIGHEST_CAPACITY_LOCAL, MEMKIND_HIGHEST_CAPACITY_LOCAL_OPS = HighestCapacityLocal;
    MEMKIND_HIGHEST_CAPACITY_LOCAL_PREFERRED, MEMKIND_HIGHEST_CAPACITY_LOCAL_PREFERRED_OPS = HighestCapacityLocalPreferred;
    MEMKIND_LOWEST_LATENCY_LOCAL, MEMKIND_LOWEST_LATENCY_LOCAL_OPS = LowestLatencyLocal;
    MEMKIND_LOWEST_LATENCY_LOCAL_PREFERRED, MEMKIND_LOWEST_LATENCY_LOCAL_PREFERRED_OPS = LowestLatencyLocalPreferred;
    MEMKIND_HIGHEST_BANDWIDTH_LOCAL, MEMKIND_HIGHEST_BANDWIDTH_LOCAL_OPS = HighestBandwidthLocal;
    MEMKIND_HIGHEST_BANDWIDTH_LOCAL_PREFERRED, MEMKIND_HIGHEST_BANDWIDTH_LOCAL_PREFERRED_OPS = HighestBandwidthLocalPreferred;
    MEMKIND_GBTLB, MEMKIND_GBTLB_OPS = Gbtlb;
    MEMKIND_HBW_GBTLB, MEMKIND_HBW_GBTLB_OPS = HbwGbtlb;
    MEMKIND_HBW_PREFERRED_GBTLB, MEMKIND_HBW_PREFERRED_GBTLB_OPS = HbwPreferredGbtlb;
}
