//! The state of a quantum computer's qubits: one complex amplitude for each of the 2^n basis states, on which gates work in place, as
//! state-vector simulators hold it (Qiskit Aer, QuEST, qsim).
//!
//! A gate on qubit t joins amplitudes that are 2^t apart: a pass over all memory in two streams, near each other for low qubits and
//! half of memory apart for the highest. Threads share out fixed pieces of a pass, so that every amplitude comes from the same
//! arithmetic: results are the same to the last bit. Qubits are not reordered for locality, and gates not fused. Does not choose gates.

use std::f64::consts::TAU;

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::thread_team::{self, Done, Error, Setting};
use crate::timed_run::{Checked, digest};

/// Real and imaginary part.
pub type Amplitude = [f64; 2];

/// Numbers per amplitude.
const PARTS: usize = 2;

/// Amplitudes of a piece, between two looks at the clock: 128 KiB, or as much in each of two streams.
const PIECE: usize = 1 << 13;

/// Bits of the fraction that the frequency of the first state has.
const FRACTION_BITS: u32 = 4;

/// How far an amplitude may be off, relative to the size of all when they are equal: rounding, with room.
const TOLERANCE: f64 = 1e-10;
/// And relative to its own size: the factors of gates are rounded, which adds up along all qubits.
const OWN_TOLERANCE: f64 = 1e-12;

/// The product of two complex numbers: 6 flop.
#[inline(always)]
pub fn times(a: Amplitude, b: Amplitude) -> Amplitude {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// `exp(i turns TAU)`.
pub fn turned(turns: f64) -> Amplitude {
    let (sin, cos) = (TAU * turns).sin_cos();
    [cos, sin]
}

/// A state of `qubits`, at least 3.
#[derive(Debug)]
pub struct State {
    /// Qubits: the state has 2 to this power of amplitudes.
    pub qubits: u32,
    amplitudes: Buffer<f64>,
}

/// Part of a pass over pairs of amplitudes: adjacent groups of a low and a high half, or pieces of both halves of one group.
enum Piece<'a> {
    Groups(&'a mut [f64]),
    Halves(usize, &'a mut [f64], &'a mut [f64]),
}

/// Qubits of the largest state of at most `bytes`.
pub fn qubits_of(bytes: usize) -> u32 {
    (bytes / size_of::<Amplitude>()).max(8).ilog2()
}

/// The frequency of the first state of `qubits`, in parts of 2^-`FRACTION_BITS`: neither whole nor simple.
pub fn frequency(qubits: u32) -> u64 {
    let whole = (1u64 << qubits) / 3;
    (whole << FRACTION_BITS) | 5
}

/// Amplitude `index` of the first state: `exp(i TAU frequency index / 2^qubits)`, all equally large. It is a product of one state per
/// qubit, which the gates of phase estimation make, and none of its amplitudes is zero.
pub fn first_amplitude(qubits: u32, index: usize) -> Amplitude {
    // The turns are a fraction whose whole part is dropped exactly.
    let bits = qubits + FRACTION_BITS;
    let turns = (index as u64).wrapping_mul(frequency(qubits)) & ((1 << bits) - 1);
    let size = level(qubits);
    turned(turns as f64 / (1u64 << bits) as f64).map(|part| part * size)
}

/// The size of an amplitude of a state in which all are equally large.
pub fn level(qubits: u32) -> f64 {
    0.5f64.powi(qubits as i32).sqrt()
}

impl State {
    /// The first state of the largest number of qubits that takes at most `setting.data_bytes`.
    pub fn first(setting: &Setting) -> Result<Self, Error> {
        let qubits = qubits_of(setting.data_bytes);
        let mut state = Self { qubits, amplitudes: Buffer::zeroed(&setting.placement, PARTS << qubits)? };
        state.amplitudes.announce(Pattern::Sequential);
        thread_team::map(setting.split(&mut state.amplitudes, PARTS), |(first, part)| {
            for (amplitude, index) in part.chunks_exact_mut(PARTS).zip(first / PARTS..) {
                amplitude.copy_from_slice(&first_amplitude(qubits, index));
            }
        });
        Ok(state)
    }

    /// Bytes of all amplitudes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.amplitudes)
    }

    /// A pass of a gate over all pairs of amplitudes that differ in qubit `target`: `gate(index of the first in its half, low, high)`
    /// for adjacent pairs, which are never more than `PIECE`. Traffic: both are read and written. Returns the bytes and the pairs.
    pub fn pairs(
        &mut self,
        setting: &Setting,
        target: u32,
        is_over: impl Fn() -> bool + Sync,
        gate: impl Fn(usize, &mut [f64], &mut [f64]) + Sync,
    ) -> Done {
        let half = PARTS << target;
        let pieces: Vec<Piece> = if half < PARTS * PIECE {
            self.amplitudes.chunks_mut(PARTS * PIECE).map(Piece::Groups).collect()
        } else {
            let halves = self.amplitudes.chunks_exact_mut(2 * half).flat_map(|group| {
                let (low, high) = group.split_at_mut(half);
                low.chunks_mut(PARTS * PIECE).zip(high.chunks_mut(PARTS * PIECE)).enumerate()
            });
            halves.map(|(number, (low, high))| Piece::Halves(number * PIECE, low, high)).collect()
        };
        let pairs = shared(setting, pieces, is_over, |piece| match piece {
            Piece::Groups(groups) => {
                for group in groups.chunks_exact_mut(2 * half) {
                    let (low, high) = group.split_at_mut(half);
                    gate(0, low, high);
                }
                groups.len() / PARTS / 2
            }
            Piece::Halves(first, low, high) => {
                gate(*first, low, high);
                low.len() / PARTS
            }
        });
        (pairs * 4 * size_of::<Amplitude>() as u64, pairs)
    }

    /// Turns the sign of all amplitudes with both qubits set, a quarter of all (CZ). Returns the bytes and the amplitudes: each of them
    /// is read and written, the others are not.
    pub fn controlled_sign(&mut self, setting: &Setting, one: u32, other: u32, is_over: impl Fn() -> bool + Sync) -> Done {
        let run = (1usize << one.min(other)).min(PIECE);
        let both = 1usize << one | 1usize << other;
        let pieces: Vec<_> = self.amplitudes.chunks_mut(PARTS * PIECE).enumerate().collect();
        let turned = shared(setting, pieces, is_over, |(number, piece)| {
            let mut turned = 0;
            for (amplitudes, index) in piece.chunks_mut(PARTS * run).zip((*number * PIECE..).step_by(run)) {
                if index & both == both {
                    amplitudes.iter_mut().for_each(|part| *part = -*part);
                    turned += amplitudes.len() / PARTS;
                }
            }
            turned
        });
        (turned * 2 * size_of::<Amplitude>() as u64, turned)
    }

    /// The digest, and how many amplitudes are not as `expected(index)` says, where that is to be told. Written so that NaN is wrong.
    pub fn check(&mut self, setting: &Setting, expected: Option<&(dyn Fn(usize) -> Amplitude + Sync)>) -> Checked {
        let floor = TOLERANCE * level(self.qubits);
        let parts = thread_team::map(setting.split(&mut self.amplitudes, PARTS), |(first, part)| {
            let is_right = |(amplitude, index): &(&[f64], usize)| {
                let Some(expected) = expected else { return true };
                amplitude
                    .iter()
                    .zip(expected(*index))
                    .all(|(part, expected)| (part - expected).abs() <= floor + OWN_TOLERANCE * expected.abs())
            };
            let right = part.chunks_exact(PARTS).zip(first / PARTS..).filter(is_right).count();
            ((part.len() / PARTS - right) as u64, digest(first, part.iter().map(|value| value.to_bits())))
        });
        parts.into_iter().fold((0, 0), |(wrong, sum), (bad, digest)| (wrong + bad, sum.wrapping_add(digest)))
    }

    /// The numbers, for tests that spoil one.
    #[cfg(test)]
    pub fn numbers(&mut self) -> &mut [f64] {
        &mut self.amplitudes
    }
}

/// The sum of what `work` says of all pieces, which are shared out in order; those that follow once `is_over` are left out.
fn shared<P: Send>(
    setting: &Setting,
    mut pieces: Vec<P>,
    is_over: impl Fn() -> bool + Sync,
    work: impl Fn(&mut P) -> usize + Sync,
) -> u64 {
    let counts = thread_team::map(setting.split(&mut pieces, 1), |(_, own)| {
        own.iter_mut().take_while(|_| !is_over()).map(&work).sum::<usize>() as u64
    });
    counts.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_visit_each_pair_and_each_signed_amplitude_once() {
        let setting = Setting::new(1 << 19, 3, 1);
        let mut state = State::first(&setting).expect("a small state");
        for target in 0..state.qubits {
            state.numbers().iter_mut().zip(0..).for_each(|(number, place)| *number = f64::from(place));
            let (bytes, pairs) = state.pairs(
                &setting,
                target,
                || false,
                |first, low, high| {
                    let mask = (1usize << target) - 1;
                    for ((low, high), index) in low.chunks_exact_mut(2).zip(high.chunks_exact_mut(2)).zip(first..) {
                        assert_eq!(((low[0] as usize / 2) & mask, high[0] - low[0]), (index & mask, (2 << target) as f64));
                        (low[0], high[0]) = (-1.0, -2.0);
                    }
                },
            );
            assert_eq!((bytes, pairs), (2 << 19, 1 << 14));
            assert!(
                state
                    .numbers()
                    .chunks_exact(2)
                    .enumerate()
                    .all(|(index, a)| a[0] == if index >> target & 1 == 0 { -1.0 } else { -2.0 })
            );
        }
        for (one, other) in [(0, 1), (14, 0), (3, 14), (13, 14)] {
            state.numbers().fill(1.0);
            assert_eq!(state.controlled_sign(&setting, one, other, || false), (1 << 18, 1 << 13));
            let sign = |index: usize| if index >> one & index >> other & 1 == 1 { -1.0 } else { 1.0 };
            assert!(state.numbers().chunks_exact(2).enumerate().all(|(index, a)| a[0] == sign(index) && a[1] == sign(index)));
        }
    }
}
