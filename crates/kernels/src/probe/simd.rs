//! Which bandwidth kernels this processor has, and the fastest of them.

use super::arrays::Kernels;
use super::simd_portable::PORTABLE;
use nearfar_core::node::Isa;

/// All that this processor can run, the widest first.
pub fn all() -> Vec<Kernels> {
    let mut sets = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use super::simd_x86::{AVX2, AVX512, SSE2};
        if is_x86_feature_detected!("avx512f") {
            sets.push(AVX512);
        }
        if is_x86_feature_detected!("avx2") {
            sets.push(AVX2);
        }
        sets.push(SSE2);
    }
    #[cfg(target_arch = "aarch64")]
    sets.push(super::simd_neon::NEON);
    sets.push(PORTABLE);
    sets
}

/// The widest.
pub fn fastest() -> Kernels {
    all()[0]
}

/// The instruction set that the bandwidth kernels use on this processor.
pub fn best_isa() -> Isa {
    fastest().isa
}

#[cfg(test)]
mod tests {
    use super::super::arrays::{Arrays, UNIT, region_bytes, scalar};
    use super::super::region::Region;
    use super::*;
    use nearfar_core::node::{Operation, Pages, Stores};

    #[test]
    fn every_kernel_of_every_set_leaves_exactly_what_it_should() {
        let len = 37 * UNIT;
        let region = Region::new(region_bytes(len, 1), None, Pages::Small, u64::MAX).expect("memory");
        let part = Arrays::new(&region, len, None).part(0, 1);
        // SAFETY: this thread alone, and `all` lists what the processor has.
        unsafe {
            part.fill();
            for set in all() {
                for operation in Operation::ALL {
                    for stores in [Stores::Ordinary, Stores::NonTemporal, Stores::None] {
                        let Some(kernel) = set.of(operation, stores) else { continue };
                        part.prepare(operation, 5, true);
                        let sum = kernel(&part, scalar(5));
                        assert_eq!(part.wrong(operation, 5, true), 0, "{:?} {operation:?} {stores:?}", set.isa);
                        assert!(operation != Operation::Read || sum == part.sum(), "{:?}", set.isa);
                        assert_eq!(part.wrong_inputs(), 0, "{:?} {operation:?} {stores:?}", set.isa);
                    }
                }
            }
        }
    }

    #[test]
    fn every_set_has_every_operation() {
        for set in all() {
            assert!(set.of(Operation::Read, Stores::None).is_some());
            assert!(set.of(Operation::Read, Stores::Ordinary).is_none());
            for operation in &Operation::ALL[1..] {
                assert!(set.of(*operation, Stores::Ordinary).is_some(), "{:?} {operation:?}", set.isa);
                assert!(set.of(*operation, Stores::None).is_none());
            }
        }
    }
}
