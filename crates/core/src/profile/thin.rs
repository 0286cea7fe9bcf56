//! Memory samples of the processor thinned out, so that a file holds them: what stays stands for what goes.

use super::record::{Access, Source};
use crate::random_numbers::Random;

/// What samples are worth: those that came from memory tell the most, so that a flood of the others must not drown them.
fn sort(access: &Access) -> usize {
    match (access.writes, access.source) {
        (false, Source::Memory) => 0,
        (false, _) => 1,
        (true, _) => 2,
    }
}

/// Leaves at most `most` samples, in order of time. Loads from memory, other loads and stores share the room: each sort has a third, and
/// what another does not use. Within a sort each stays as likely as the others, and those that stay stand for as many events
/// together as all did.
pub fn thin(samples: &mut Vec<Access>, most: usize, random: &mut Random) {
    if samples.len() > most {
        let mut sorts: [Vec<Access>; 3] = Default::default();
        samples.drain(..).for_each(|access| sorts[sort(&access)].push(access));
        let rooms = rooms([0, 1, 2].map(|sort: usize| sorts[sort].len()), most);
        for (of, room) in sorts.iter_mut().zip(rooms) {
            choose(of, room, random);
            samples.append(of);
        }
    }
    samples.sort_by_key(|access| access.at);
}

/// How many of each sort stay: the smallest get what they want of an even share, the others what that leaves.
fn rooms(wanted: [usize; 3], most: usize) -> [usize; 3] {
    let mut order = [0, 1, 2];
    order.sort_by_key(|&sort| wanted[sort]);
    let (mut rooms, mut left) = ([0; 3], most);
    for (at, sort) in order.into_iter().enumerate() {
        rooms[sort] = wanted[sort].min(left / (3 - at));
        left -= rooms[sort];
    }
    rooms
}

/// Leaves `room` of them, chosen at random (Fisher and Yates).
fn choose(samples: &mut Vec<Access>, room: usize, random: &mut Random) {
    if samples.len() <= room {
        return;
    }
    let sum = |samples: &[Access]| samples.iter().map(|access| u128::from(access.stands_for)).sum::<u128>();
    let all = sum(samples);
    for at in 0..room {
        let other = at + random.below((samples.len() - at) as u64) as usize;
        samples.swap(at, other);
    }
    samples.truncate(room);
    let (kept, mut given, mut seen) = (sum(samples).max(1), 0, 0);
    for access in samples {
        // What rounding leaves goes to the next, so that the sum stays exact.
        seen += u128::from(access.stands_for);
        let until = all.saturating_mul(seen) / kept;
        access.stands_for = u64::try_from(until.saturating_sub(given)).unwrap_or(u64::MAX);
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(at: u64, source: Source, writes: bool) -> Access {
        Access { at, ip: 1, tid: 1, addr: at, stands_for: 1000 + at % 7, cycles: 0, source, writes }
    }

    #[test]
    fn what_stays_stands_for_all_and_the_rare_stay() {
        let mut random = Random::new(3);
        let mut samples: Vec<Access> = (0..9_000).map(|at| access(at, Source::L2, false)).collect();
        samples.extend((0..60).map(|at| access(at * 100, Source::Memory, false)));
        samples.extend((0..900).map(|at| access(at * 10, Source::L1, true)));
        let of = |samples: &[Access], which: usize| {
            let all = samples.iter().filter(|access| sort(access) == which);
            all.fold((0, 0), |(number, sum), access| (number + 1, sum + access.stands_for))
        };
        let before = [0, 1, 2].map(|which| of(&samples, which));
        thin(&mut samples, 600, &mut random);
        let after = [0, 1, 2].map(|which| of(&samples, which));
        assert_eq!(after.map(|sort| sort.0), [60, 270, 270]);
        assert_eq!(after.map(|sort| sort.1), before.map(|sort| sort.1), "weights of each sort");
        assert!(samples.is_sorted_by_key(|access| access.at));
        let same = samples.clone();
        thin(&mut samples, 600, &mut random);
        assert_eq!(samples, same, "what fits stays as it is");
        thin(&mut samples, 0, &mut random);
        assert_eq!(samples, []);
    }

    #[test]
    fn each_is_as_likely_to_stay() {
        let mut random = Random::new(1);
        let mut first = 0;
        for _ in 0..1000 {
            let mut samples: Vec<Access> = (0..1000).map(|at| access(at, Source::Memory, false)).collect();
            thin(&mut samples, 10, &mut random);
            first += samples.iter().filter(|access| access.at < 500).count();
        }
        assert!((4_800..5_200).contains(&first), "{first} of 10000 are of the first half");
    }
}
