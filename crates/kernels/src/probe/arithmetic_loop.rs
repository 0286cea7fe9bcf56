//! A loop of arithmetic as the instruction sets have it, and how its result is checked.

use nearfar_core::node::{Arithmetic, Precision};

/// Where the chains end, 64 bytes for each.
#[repr(align(64))]
pub struct Sums(pub [u8; 64 * 32]);

/// Runs a loop of so many rounds; the ones are 64 bytes of the number 1.
///
/// # Safety
/// The processor has the instructions.
pub type Run = unsafe fn(rounds: usize, one: &[u8; 64], sums: &mut Sums);

/// The loops of one kind of vector.
#[derive(Clone, Copy)]
pub struct Runs {
    /// Additions.
    pub add: Run,
    /// Multiplications, and additions that need them.
    pub multiply_add: Run,
    /// Both in one instruction, where there is such.
    pub fma: Option<Run>,
}

impl Runs {
    /// The loop of an arithmetic; none when there is no such.
    pub const fn of(self, arithmetic: Arithmetic) -> Option<Run> {
        match arithmetic {
            Arithmetic::Add => Some(self.add),
            Arithmetic::MultiplyAdd => Some(self.multiply_add),
            Arithmetic::Fma => self.fma,
            Arithmetic::Gemm => None,
        }
    }
}

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
        // SAFETY: `flops::find` gives loops that the processor has.
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
