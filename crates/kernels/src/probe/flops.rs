//! Which arithmetic loops this processor has, and its clock.

use super::arithmetic_loop::Loop;
use nearfar_core::node::{Arithmetic, Isa, Precision};
use std::time::Instant;

#[cfg(target_arch = "aarch64")]
use super::flops_neon as machine;
#[cfg(target_arch = "x86_64")]
use super::flops_x86 as machine;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    //! Other processors: nothing is known of their vectors, so there are no loops and there is no clock.
    use super::{Arithmetic, Isa, Loop, Precision};
    pub fn find(_: Precision, _: Isa, _: Arithmetic) -> Option<Loop> {
        None
    }
    pub const ADDITIONS: usize = 0;
    pub fn additions(_: usize) -> usize {
        0
    }
}

/// The loop; none when this processor has no such instructions.
pub fn find(precision: Precision, isa: Isa, arithmetic: Arithmetic) -> Option<Loop> {
    machine::find(precision, isa, arithmetic)
}

/// The clock in Hz over about `additions` clocks; none on processors for which there is no such loop.
pub fn clock_hz(additions: usize) -> Option<f64> {
    let rounds = additions.checked_div(machine::ADDITIONS)?;
    let start = Instant::now();
    let done = machine::additions(rounds);
    let seconds = start.elapsed().as_secs_f64();
    (done == rounds * machine::ADDITIONS && seconds > 0.0).then(|| done as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::arithmetic_loop::Sums;
    use super::*;

    const ISAS: [Isa; 5] = [Isa::Scalar, Isa::Sse2, Isa::Avx2, Isa::Avx512, Isa::Neon];

    #[test]
    fn every_loop_ends_at_the_number_of_rounds() {
        let mut sums = Sums([0; 64 * 32]);
        let mut found = 0;
        for precision in [Precision::F32, Precision::F64] {
            for isa in ISAS {
                for arithmetic in [Arithmetic::Add, Arithmetic::MultiplyAdd, Arithmetic::Fma] {
                    let Some(one) = find(precision, isa, arithmetic) else { continue };
                    found += 1;
                    for rounds in [1, 2, 1001, 100_000] {
                        assert!(one.run_checked(precision, rounds, &mut sums), "{precision:?} {isa:?} {arithmetic:?} {rounds}");
                    }
                    // A loop that does less than it is told is found.
                    fn idle(_: usize, _: &[u8; 64], _: &mut Sums) {}
                    assert!(!Loop { run: idle, ..one }.run_checked(precision, 5, &mut sums));
                }
            }
        }
        assert!(found >= 8 || cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))), "{found}");
        assert!(find(Precision::F64, Isa::Scalar, Arithmetic::Gemm).is_none());
    }

    #[test]
    fn the_clock_is_a_clock() {
        let hz = clock_hz(1_000_000);
        assert!(hz.is_none_or(|hz| (1e8..2e10).contains(&hz)), "{hz:?}");
    }
}
