//! Arithmetic in registers alone: the opposite of triad. What slows this down is the clock or a shared core, never the memory.
//!
//! Eight chains of multiplication and addition per thread, in integers, so that every result is known and verified.

use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;
use nearfar_core::random_numbers::mix;

const CHAINS: usize = 8;
/// Steps between two looks at the clock.
const BATCH: u64 = 4096;
/// Multiplier and increment of Knuth's linear congruential generator.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

struct Share {
    chains: [u64; CHAINS],
    seed: u64,
    steps: u64,
}

fn start(seed: u64) -> [u64; CHAINS] {
    std::array::from_fn(|chain| mix(seed * CHAINS as u64 + chain as u64))
}

/// Advances all chains by `steps` steps.
#[inline(never)]
pub(crate) fn advance(chains: &mut [u64; CHAINS], steps: u64) {
    let mut now = *chains;
    for _ in 0..steps {
        for value in &mut now {
            *value = value.wrapping_mul(FACTOR).wrapping_add(INCREMENT);
        }
    }
    *chains = std::hint::black_box(now);
}

/// `value` after `steps` steps, by repeated squaring of the step.
fn jump(value: u64, mut steps: u64) -> u64 {
    let (mut factor, mut increment) = (1u64, 0u64);
    let (mut step_factor, mut step_increment) = (FACTOR, INCREMENT);
    while steps > 0 {
        if steps & 1 == 1 {
            (factor, increment) =
                (factor.wrapping_mul(step_factor), increment.wrapping_mul(step_factor).wrapping_add(step_increment));
        }
        step_increment = step_increment.wrapping_mul(step_factor.wrapping_add(1));
        step_factor = step_factor.wrapping_mul(step_factor);
        steps >>= 1;
    }
    value.wrapping_mul(factor).wrapping_add(increment)
}

/// Runs `setting.repetitions` times `steps` steps on all threads together. An operation is one step of all chains; there is no traffic.
pub fn compute(setting: &Setting, steps: u64) -> Result<Report, Error> {
    let threads = setting.threads.max(1);
    let per_thread = steps.div_ceil(threads as u64);
    let setup = Setup::begin(setting);
    let shares = (0..threads as u64).map(|seed| Share { chains: start(seed), seed, steps: 0 }).collect();
    let (ran, shares) = setup.run(shares, AfterLimit::End, |share: &mut Share, _, watch| work(share, per_thread, watch));
    let is_wrong = |share: &&Share| start(share.seed).map(|value| jump(value, share.steps)) != share.chains;
    let wrong = shares.iter().filter(is_wrong).count() as u64;
    let checksum = shares.iter().flat_map(|share| share.chains).fold(0u64, |sum, value| mix(sum).wrapping_add(value));
    Ok(ran.report("compute", "steps", 0, if setting.verify { (wrong, checksum) } else { (0, 0) }))
}

fn work(share: &mut Share, steps: u64, watch: &Watch) -> thread_team::Done {
    let mut done = 0;
    while done < steps {
        let batch = BATCH.min(steps - done);
        advance(&mut share.chains, batch);
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    share.steps += done;
    (0, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_known_without_computing_them() {
        let mut chains = start(3);
        advance(&mut chains, 1000);
        assert_eq!(start(3).map(|value| jump(value, 1000)), chains);
        assert_ne!(start(3).map(|value| jump(value, 999)), chains);
    }
}
