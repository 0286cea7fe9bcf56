//! The quantum Fourier transform on a simulated quantum computer: from the highest qubit to the lowest, a Hadamard gate and the
//! controlled phases between that qubit and all lower ones, as in phase estimation and Shor's algorithm.
//!
//! The phases of one qubit are diagonal and are done together with its Hadamard gate in one pass, as simulators do: n passes over 2^n
//! amplitudes in place, with two streams whose distance halves from pass to pass. The result stands in bit-reversed order, and is not
//! swapped. Intensity: 9 flop for the 32 bytes of an amplitude that is read and written, whatever n is.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::report::{Report, Traffic, Verified};
use crate::state_vector::{Amplitude, State, first_amplitude, frequency, qubits_of, times, turned};
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;

/// Neighbours whose phases come from one table, times a factor for all of them.
const TABLE: usize = 1 << 10;

/// Flop of one pair, as the gate does them: the phase 6, its product with a number 6, the Hadamard gate 4 and scaling the sum 2.
const FLOP_PER_PAIR: f64 = 18.0;

/// Which way to transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The inverse transform: from the state of a frequency to the number that phase estimation reads.
    Inverse,
    /// The transform, which undoes it.
    Forward,
}

/// Transforms `setting.repetitions` times, inverse and forward by turns, a state of at most `setting.data_bytes`, rounded down to a
/// power of two. An operation is one floating-point operation; the traffic counted is 32 bytes for each amplitude and qubit, 16 read
/// and 16 written. Every amplitude is verified against the closed formula; not where the time limit cut a transform off.
pub fn qft(setting: &Setting) -> Result<Report, Error> {
    let setup = Setup::begin(setting);
    let mut state = State::first(setting)?;
    let (ran, _) = setup.run(vec![&mut state], AfterLimit::End, |state, number, watch| transform(setting, state, number, watch));

    let (qubits, forward) = (state.qubits, ran.last() % 2 == 1);
    let expected = |index: usize| if forward { first_amplitude(qubits, index) } else { estimated(qubits, index) };
    let verify_values = setting.verify && ran.finished();
    let checked = if setting.verify { state.check(setting, verify_values.then_some(&expected)) } else { (0, 0) };
    let verified = Verified::of(verify_values, checked.0);
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("qft", "flop", state.bytes(), checked) })
}

/// What one transform moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let qubits = qubits_of(setting.data_bytes);
    let passed = f64::from(qubits) * (1u64 << qubits) as f64;
    Traffic { bytes: 2.0 * size_of::<Amplitude>() as f64 * passed, flop: FLOP_PER_PAIR / 2.0 * passed }
}

fn transform(setting: &Setting, state: &mut State, number: usize, watch: &Watch) -> thread_team::Done {
    let (mut bytes, mut pairs) = (0, 0);
    let direction = if number.is_multiple_of(2) { Direction::Inverse } else { Direction::Forward };
    for step in 0..state.qubits {
        let target = if direction == Direction::Inverse { state.qubits - 1 - step } else { step };
        let phases = Phases::new(target);
        let (passed, done) =
            state.pairs(setting, target, || watch.is_over(), |first, low, high| phases.apply(direction, first, low, high));
        (bytes, pairs) = (bytes + passed, pairs + done);
        if watch.is_over() {
            break;
        }
    }
    (bytes, pairs * FLOP_PER_PAIR as u64)
}

/// The phases `exp(-i TAU index / 2^(target + 1))` of the amplitudes in which qubit `target` is set.
struct Phases {
    target: u32,
    /// Those of the first indices, times the Hadamard gate's root of a half.
    table: Vec<Amplitude>,
}

impl Phases {
    fn new(target: u32) -> Self {
        let mut phases = Self { target, table: Vec::new() };
        let len = TABLE.min(1 << target);
        phases.table = (0..len).map(|index| phases.at(index).map(|part| part * FRAC_1_SQRT_2)).collect();
        phases
    }

    fn at(&self, index: usize) -> Amplitude {
        turned(-(index as f64) / (2u64 << self.target) as f64)
    }

    /// The gates on pairs of which the first is number `first` in its half.
    fn apply(&self, direction: Direction, first: usize, low: &mut [f64], high: &mut [f64]) {
        let len = 2 * self.table.len();
        for ((low, high), index) in low.chunks_mut(len).zip(high.chunks_mut(len)).zip((first..).step_by(self.table.len())) {
            // Most groups of low qubits begin at 0, where the sine and cosine are not worth their time.
            let factor = if index == 0 { [1.0, 0.0] } else { self.at(index) };
            let pairs = low.as_chunks_mut::<2>().0.iter_mut().zip(high.as_chunks_mut::<2>().0).zip(&self.table);
            match direction {
                Direction::Inverse => pairs.for_each(|((low, high), phase)| {
                    let (sum, difference) = ([low[0] + high[0], low[1] + high[1]], [low[0] - high[0], low[1] - high[1]]);
                    *low = sum.map(|part| part * FRAC_1_SQRT_2);
                    *high = times(difference, times(*phase, factor));
                }),
                Direction::Forward => pairs.for_each(|((low, high), phase)| {
                    let phase = times(*phase, factor);
                    let (a, b) = (low.map(|part| part * FRAC_1_SQRT_2), times(*high, [phase[0], -phase[1]]));
                    *low = [a[0] + b[0], a[1] + b[1]];
                    *high = [a[0] - b[0], a[1] - b[1]];
                }),
            }
        }
    }
}

/// Amplitude at place `index` of the inverse transform of the first state: a geometric series, whose sum for distance d between the
/// frequency and the number is `sin(PI d) / (2^n sin(PI d / 2^n)) exp(i PI d (1 - 2^-n))`.
fn estimated(qubits: u32, index: usize) -> Amplitude {
    let size = (1u64 << qubits) as f64;
    let number = index.reverse_bits() >> (usize::BITS - qubits);
    // Exact: both are sixteenths, of at most 36 bits.
    let distance = frequency(qubits) as f64 / 16.0 - number as f64;
    // Reduced exactly to two turns: the sine of many turns would be inexact.
    let ratio = (PI * (distance % 2.0)).sin() / (size * (PI * distance / size).sin());
    turned((distance % 2.0) / 2.0 - distance / size / 2.0).map(|part| part * ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transformed(setting: &Setting) -> State {
        let mut state = State::first(setting).expect("a small state");
        thread_team::run(setting, vec![&mut state], AfterLimit::End, |state, number, watch| {
            transform(setting, state, number, watch)
        });
        state
    }

    #[test]
    fn the_transform_is_the_sum_that_defines_it() {
        let setting = Setting::new(16 << 6, 2, 1);
        let mut state = transformed(&setting);
        for number in 0..64usize {
            let terms = (0..64).map(|index| times(first_amplitude(6, index), turned(-((index * number % 64) as f64) / 64.0)));
            let sum = terms.fold([0.0; 2], |sum, term| [sum[0] + term[0] / 8.0, sum[1] + term[1] / 8.0]);
            let index = number.reverse_bits() >> 58;
            let (amplitude, formula) = (&state.numbers()[2 * index..2 * index + 2], estimated(6, index));
            for part in 0..2 {
                assert!((amplitude[part] - sum[part]).abs() < 1e-14 && (formula[part] - sum[part]).abs() < 1e-14, "{number}");
            }
        }
    }

    #[test]
    fn a_wrong_bit_is_told() {
        let setting = Setting::new(1 << 20, 2, 1);
        let mut state = transformed(&setting);
        let expected = |index: usize| estimated(16, index);
        assert_eq!(state.check(&setting, Some(&expected)).0, 0);
        for (place, bit) in [(0, 52), (77_777, 45), (131_071, 40)] {
            let value = &mut state.numbers()[place];
            *value = f64::from_bits(value.to_bits() ^ 1 << bit);
        }
        state.numbers()[500] = f64::NAN;
        assert_eq!(state.check(&setting, Some(&expected)).0, 4);
    }
}
