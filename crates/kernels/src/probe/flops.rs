//! Which arithmetic loops this processor has, how their results are checked, and its clock.

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

/// Where the chains end, 64 bytes for each.
#[repr(align(64))]
pub struct Sums(pub [u8; 64 * 32]);

/// Runs a loop of so many rounds; the ones are 64 bytes of the number 1.
///
/// # Safety
/// The processor has the instructions.
pub type Run = unsafe fn(rounds: usize, one: &[u8; 64], sums: &mut Sums);

/// A loop of arithmetic.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The loop.
    pub run: Run,
    /// Numbers in a vector.
    pub lanes: usize,
    /// Chains.
    pub chains: usize,
}

/// Rounds that are still counted exactly in f32.
pub const MOST_ROUNDS: usize = 1 << 23;

impl Loop {
    /// Floating-point operations of `rounds`.
    pub fn operations(&self, arithmetic: Arithmetic, rounds: usize) -> f64 {
        let each = if arithmetic == Arithmetic::Add { 1 } else { 2 };
        (rounds * self.lanes * self.chains * each) as f64
    }

    /// Runs it; false when any number of any chain is not exactly the number of rounds.
    pub fn run_checked(&self, precision: Precision, rounds: usize, sums: &mut Sums) -> bool {
        let mut one = [0; 64];
        match precision {
            Precision::F64 => one.as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = 1f64.to_ne_bytes()),
            Precision::F32 => one.as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = 1f32.to_ne_bytes()),
        }
        // What an earlier run left must not pass for a result.
        sums.0.fill(0xff);
        // SAFETY: `find` gives loops that the processor has.
        unsafe { (self.run)(rounds, &one, sums) };
        let right = |chain: &[u8]| match precision {
            Precision::F64 => {
                chain.as_chunks().0.iter().take(self.lanes).all(|&bytes| f64::from_ne_bytes(bytes) == rounds as f64)
            }
            Precision::F32 => {
                chain.as_chunks().0.iter().take(self.lanes).all(|&bytes| f32::from_ne_bytes(bytes) == rounds as f32)
            }
        };
        sums.0.chunks_exact(64).take(self.chains).all(right)
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
