//! A random quantum circuit on a simulated quantum computer (random circuit sampling, the benchmark of simulators): layers of random
//! rotations of random qubits, and a controlled sign between two others.
//!
//! Gates act in place on 2^n amplitudes in the order in which they come: each is a pass over all memory, in two streams that are 2^t
//! apart for qubit t, and a controlled sign visits the quarter of the amplitudes with both qubits set. Nothing is done for locality:
//! no reordering of qubits, no gates together. Intensity: 14 flop for the 32 bytes of an amplitude that is rotated, 2 where its sign
//! is turned, which is 0.40 for the whole circuit. Repetitions apply the same gates; taking all of them back must give the first state.

use crate::report::{Report, Traffic, Verified};
use crate::state_vector::{Amplitude, State, first_amplitude, qubits_of, times, turned};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::Random;

/// Layers, and rotations in each of them.
const LAYERS: usize = 8;
const ROTATIONS: usize = 2;

/// Flop of a rotation for one pair of amplitudes: four products of 6 and two sums of 2; and of a turned sign.
const ROTATION_FLOP: u64 = 28;
const SIGN_FLOP: u64 = 2;

/// A unitary matrix, row by row.
type Matrix = [[Amplitude; 2]; 2];

#[derive(Clone, Copy, Debug)]
enum Gate {
    Rotation(u32, Matrix),
    Sign(u32, u32),
}

/// Applies one circuit `setting.repetitions` times to a state of at most `setting.data_bytes`, rounded down to a power of two. An
/// operation is one floating-point operation; the traffic counted is 32 bytes for each amplitude that a gate changes, 16 read and 16
/// written. Verified by the inverse of all gates; not where the time limit cut a repetition off.
pub fn circuit(setting: &Setting) -> Result<Report, Error> {
    let setup = Setup::begin(setting);
    let mut state = State::first(setting)?;
    let (qubits, gates) = (state.qubits, gates(state.qubits));
    let (ran, _) = setup.run(vec![&mut state], AfterLimit::End, |state, _, watch| {
        let mut done = (0, 0);
        for gate in &gates {
            let (bytes, flop) = gate.apply(setting, state, || watch.is_over());
            done = (done.0 + bytes, done.1 + flop);
            if watch.is_over() {
                break;
            }
        }
        done
    });

    let verify_values = setting.verify && ran.finished();
    let mut wrong = 0;
    let checksum = if setting.verify { state.check(setting, None).1 } else { 0 };
    if verify_values {
        (0..=ran.last()).for_each(|_| take_back(setting, &mut state, &gates));
        (wrong, _) = state.check(setting, Some(&|index| first_amplitude(qubits, index)));
    }
    let verified = Verified::of(verify_values, wrong);
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("circuit", "flop", state.bytes(), (wrong, checksum)) })
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let amplitudes = (1u64 << qubits_of(setting.data_bytes)) as f64;
    let (rotated, turned) = ((LAYERS * ROTATIONS) as f64 * amplitudes, LAYERS as f64 * amplitudes / 4.0);
    let bytes = 2.0 * size_of::<Amplitude>() as f64 * (rotated + turned);
    Traffic { bytes, flop: ROTATION_FLOP as f64 / 2.0 * rotated + SIGN_FLOP as f64 * turned }
}

fn gates(qubits: u32) -> Vec<Gate> {
    let mut random = Random::new(0x51);
    let mut gates = Vec::new();
    for _ in 0..LAYERS {
        for _ in 0..ROTATIONS {
            let target = random.below(u64::from(qubits)) as u32;
            let (half_angle, first, second) = (turned(random.unit() / 4.0), random.unit(), random.unit());
            let [cos, sin] = half_angle;
            let matrix = [
                [[cos, 0.0], turned(second).map(|part| -part * sin)],
                [turned(first).map(|part| part * sin), turned(first + second).map(|part| part * cos)],
            ];
            gates.push(Gate::Rotation(target, matrix));
        }
        let one = random.below(u64::from(qubits)) as u32;
        let other = (one + 1 + random.below(u64::from(qubits - 1)) as u32) % qubits;
        gates.push(Gate::Sign(one, other));
    }
    gates
}

fn take_back(setting: &Setting, state: &mut State, gates: &[Gate]) {
    gates.iter().rev().for_each(|gate| {
        gate.inverse().apply(setting, state, || false);
    });
}

impl Gate {
    /// Returns the bytes and flop.
    fn apply(&self, setting: &Setting, state: &mut State, is_over: impl Fn() -> bool + Sync) -> thread_team::Done {
        match *self {
            Gate::Rotation(target, matrix) => {
                let (bytes, pairs) = state.pairs(setting, target, is_over, |_, low, high| rotate(&matrix, low, high));
                (bytes, pairs * ROTATION_FLOP)
            }
            Gate::Sign(one, other) => {
                let (bytes, turned) = state.controlled_sign(setting, one, other, is_over);
                (bytes, turned * SIGN_FLOP)
            }
        }
    }

    fn inverse(self) -> Self {
        let conjugate = |[re, im]: Amplitude| [re, -im];
        match self {
            Gate::Rotation(target, [[a, b], [c, d]]) => {
                Gate::Rotation(target, [[conjugate(a), conjugate(c)], [conjugate(b), conjugate(d)]])
            }
            Gate::Sign(..) => self,
        }
    }
}

fn rotate(matrix: &Matrix, low: &mut [f64], high: &mut [f64]) {
    let [[a, b], [c, d]] = *matrix;
    let sum = |x: Amplitude, y: Amplitude| [x[0] + y[0], x[1] + y[1]];
    for (low, high) in low.as_chunks_mut::<2>().0.iter_mut().zip(high.as_chunks_mut::<2>().0) {
        let (x, y) = (*low, *high);
        *low = sum(times(a, x), times(b, y));
        *high = sum(times(c, x), times(d, y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_keeps_the_norm_and_a_wrong_bit_is_told_after_its_inverse() {
        let setting = Setting::new(1 << 18, 2, 1);
        for spoiled in [None, Some((12_345, 44)), Some((0, 62))] {
            let mut state = State::first(&setting).expect("a small state");
            let gates = gates(state.qubits);
            for gate in &gates {
                gate.apply(&setting, &mut state, || false);
            }
            let norm: f64 = state.numbers().iter().map(|number| number * number).sum();
            assert!((norm - 1.0).abs() < 1e-12, "{norm}");
            assert!(state.check(&setting, Some(&|index| first_amplitude(14, index))).0 > 1 << 13);
            if let Some((place, bit)) = spoiled {
                let value = &mut state.numbers()[place];
                *value = f64::from_bits(value.to_bits() ^ 1 << bit);
            }
            take_back(&setting, &mut state, &gates);
            let (wrong, _) = state.check(&setting, Some(&|index| first_amplitude(14, index)));
            assert_eq!(wrong > 0, spoiled.is_some());
        }
    }
}
