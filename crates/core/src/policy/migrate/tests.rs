//! Replays: a machine of groups whose true rates are known stands in for programs, and an oracle for what the best placement would be.

use super::*;
use proptest::prelude::*;

const GROUP: u64 = 2 << 20;
const LOOKS: u32 = 10;
const TERMS: Terms = Terms { gain_ns: 600.0, bytes_per_s: 256e6, move_ns_per_byte: 0.3 };

/// Groups with the rates of their visits per page and second.
struct World {
    rates: Vec<f64>,
    near: Vec<bool>,
    /// Groups that near holds.
    capacity: usize,
    pinned: Vec<bool>,
    random: u64,
    now_s: f64,
    promoted: u64,
    demoted: u64,
    paused_s: f64,
    last_why: Option<Why>,
    moves_of: Vec<u32>,
    cost_factor: f64,
}

fn id(index: usize) -> GroupId {
    GroupId { process: 1, index: index as u64 }
}

impl World {
    fn new(rates: Vec<f64>, near: impl Fn(usize) -> bool, capacity: usize) -> Self {
        let count = rates.len();
        let near: Vec<bool> = (0..count).map(near).collect();
        assert!(near.iter().filter(|near| **near).count() <= capacity);
        Self {
            rates,
            near,
            capacity,
            pinned: vec![false; count],
            random: 88_172_645_463_325_252,
            now_s: 0.0,
            promoted: 0,
            demoted: 0,
            paused_s: 0.0,
            last_why: None,
            moves_of: vec![0; count],
            cost_factor: 1.0,
        }
    }

    fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        crate::random_numbers::unit(self.random)
    }

    fn used(&self) -> usize {
        self.near.iter().filter(|near| **near).count()
    }

    fn share(&self) -> f64 {
        let near: f64 = self.rates.iter().zip(&self.near).filter(|(_, near)| **near).map(|(rate, _)| rate).sum();
        near / self.rates.iter().sum::<f64>()
    }

    /// The share of the visits that go to near when the hottest groups are there.
    fn oracle(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(|a, b| b.total_cmp(a));
        rates[..self.capacity.min(rates.len())].iter().sum::<f64>() / rates.iter().sum::<f64>()
    }

    /// One round; returns the verdict.
    fn round(&mut self, policy: &mut Migrate, picked: usize) -> Verdict {
        let ids = policy.pick(self.now_s, picked);
        assert!(ids.len() <= picked);
        let interval = policy.interval_s;
        let mut seen = Vec::new();
        for group in ids {
            let at = group.index as usize;
            let p = 1.0 - (-self.rates[at] * interval).exp();
            let visits = (0..LOOKS).filter(|_| self.chance() < p).count() as u32;
            let tier = if self.near[at] { Tier::Near } else { Tier::Far };
            seen.push(Seen { group, bytes: GROUP, tier, visits, looks: LOOKS });
        }
        policy.observe(self.now_s, interval, &seen);
        let room = Room { near: (self.capacity - self.used()) as i64 * GROUP as i64, far: i64::MAX / 2 };
        for one in policy.decide(self.now_s, room) {
            let at = one.group.index as usize;
            assert_ne!(self.near[at], one.to == Tier::Near, "a move to where it is");
            if self.pinned[at] {
                policy.moved(self.now_s, &one, 0, 1e5);
                continue;
            }
            self.near[at] = one.to == Tier::Near;
            assert!(self.used() <= self.capacity, "near is too full");
            self.moves_of[at] += 1;
            *(if one.to == Tier::Near { &mut self.promoted } else { &mut self.demoted }) += one.bytes;
            policy.moved(self.now_s, &one, one.bytes, one.bytes as f64 * 0.3 * self.cost_factor);
        }
        let next = policy.better_interval(&seen);
        policy.observe(self.now_s, next, &[]);
        let verdict = policy.verdict();
        if let Verdict::Rest(pause, why) = verdict {
            self.paused_s += pause;
            self.now_s += pause;
            self.last_why = Some(why);
        } else {
            self.now_s += 1.0;
        }
        verdict
    }

    fn run(&mut self, policy: &mut Migrate, seconds: f64) {
        (0..self.rates.len()).for_each(|index| assert!(policy.found(id(index))));
        let end = self.now_s + seconds;
        while self.now_s < end {
            self.round(policy, 256);
        }
    }
}

/// `hot` of `count` groups have `rate`, spread over all of them.
fn some_hot(count: usize, hot: usize, rate: f64) -> Vec<f64> {
    (0..count).map(|index| if index * hot / count != (index + 1) * hot / count { rate } else { 0.05 }).collect()
}

#[test]
fn a_hot_quarter_comes_to_near_and_stays() {
    let mut world = World::new(some_hot(200, 50, 100.0), |_| false, 60);
    let mut policy = Migrate::new(TERMS);
    world.run(&mut policy, 30.0);
    assert!(world.share() > 0.99 * world.oracle(), "{} of {}", world.share(), world.oracle());
    let before = world.promoted;
    world.run(&mut policy, 600.0);
    assert!(world.promoted - before <= 10 * GROUP && world.demoted == 0, "{} {}", world.promoted, world.demoted);
    assert!(world.paused_s > 400.0 && world.last_why == Some(Why::Settled), "{} {:?}", world.paused_s, world.last_why);
}

#[test]
fn cold_groups_make_room_for_hot_ones() {
    // First touch has filled near with what is cold.
    let mut world = World::new(some_hot(256, 32, 100.0), |index| index < 64, 64);
    let mut policy = Migrate::new(TERMS);
    world.run(&mut policy, 60.0);
    assert!(world.share() > 0.98 * world.oracle(), "{} of {}", world.share(), world.oracle());
    assert!(world.demoted > 0);
}

#[test]
fn many_groups_are_looked_at_in_turn() {
    let mut world = World::new(some_hot(4000, 400, 100.0), |index| index < 500, 500);
    let mut policy = Migrate::new(Terms { bytes_per_s: 1e9, ..TERMS });
    world.run(&mut policy, 240.0);
    assert!(world.share() > 0.9 * world.oracle(), "{} of {}", world.share(), world.oracle());
}

#[test]
fn groups_that_are_all_alike_stay_where_they_are() {
    for rate in [0.5, 20.0, 60.0, 2000.0] {
        let mut world = World::new(vec![rate; 200], |index| index < 100, 100);
        let mut policy = Migrate::new(TERMS);
        world.run(&mut policy, 600.0);
        assert!(world.promoted <= 4 * GROUP, "rate {rate}: {} groups", world.promoted / GROUP);
        assert!(world.paused_s > 400.0 && world.last_why == Some(Why::Alike), "rate {rate}: {} s", world.paused_s);
    }
}

#[test]
fn nearly_alike_is_no_reason_to_exchange() {
    let mut world = World::new((0..200).map(|index| if index < 100 { 30.0 } else { 36.0 }).collect(), |index| index < 100, 100);
    let mut policy = Migrate::new(TERMS);
    world.run(&mut policy, 600.0);
    assert!(world.promoted <= 4 * GROUP, "{} groups", world.promoted / GROUP);
}

#[test]
fn what_is_hardly_visited_is_not_worth_moving() {
    let mut world = World::new(vec![0.01; 100], |_| false, 100);
    world.run(&mut Migrate::new(Terms { gain_ns: 50.0, ..TERMS }), 300.0);
    assert_eq!(world.promoted, 0);
}

#[test]
fn a_hot_set_that_wanders_is_given_up() {
    // Each time that pages have been moved, others are hot; moves are dear.
    let mut world = World::new(vec![0.0; 200], |index| index < 50, 50);
    world.cost_factor = 200.0;
    let mut policy = Migrate::new(Terms { move_ns_per_byte: 20.0, ..TERMS });
    (0..200).for_each(|index| assert!(policy.found(id(index))));
    let (mut given_up, mut early) = (0.0, 0);
    let mut phase = 0;
    while world.now_s < 1000.0 {
        phase += 7;
        (0..200).for_each(|index| world.rates[index] = if (index + phase) % 200 < 40 { 150.0 } else { 0.0 });
        if let Verdict::Rest(pause, Why::NotPaying) = world.round(&mut policy, 256) {
            given_up += pause;
        }
        if world.now_s < 100.0 {
            early = world.promoted;
        }
    }
    assert!(given_up > 400.0, "{given_up} s of pauses, {} promoted, {early} early", world.promoted / GROUP);
}

#[test]
fn what_cannot_move_is_left_alone() {
    let mut world = World::new(some_hot(64, 16, 100.0), |_| false, 32);
    world.pinned.fill(true);
    let mut policy = Migrate::new(TERMS);
    world.run(&mut policy, 300.0);
    assert_eq!(world.promoted, 0);
    assert!(world.paused_s > 150.0, "{}", world.paused_s);
}

#[test]
fn near_is_emptied_of_what_is_idle_when_it_must_be() {
    let mut policy = Migrate::new(TERMS);
    let seen: Vec<Seen> = (0..10)
        .map(|index| Seen { group: id(index), bytes: GROUP, tier: Tier::Near, visits: if index < 5 { 20 } else { 0 }, looks: 20 })
        .collect();
    seen.iter().for_each(|one| assert!(policy.found(one.group)));
    policy.observe(1.0, 0.02, &seen);
    let moves = policy.decide(1.0, Room { near: -(3 * GROUP as i64) + 1, far: 1 << 30 });
    assert_eq!(moves.len(), 3);
    assert!(moves.iter().all(|one| one.to == Tier::Far && one.group.index >= 5));
    let none_left = policy.decide(2.0, Room { near: -(1 << 30), far: GROUP as i64 - 1 });
    assert!(none_left.is_empty(), "far is full");
}

#[test]
fn tables_are_bounded_and_forget() {
    let mut policy = Migrate::new(TERMS);
    let fits = (0..MAX_GROUPS + 100).filter(|&index| policy.found(id(index))).count();
    assert_eq!((fits, policy.len()), (MAX_GROUPS, MAX_GROUPS));
    assert_eq!(policy.pick(0.0, 100).len(), 100);
    policy.observe(1.0, 0.02, &[Seen { group: id(0), bytes: 0, tier: Tier::Far, visits: 0, looks: 0 }]);
    assert_eq!(policy.len(), MAX_GROUPS - 1);
    policy.forget(1);
    assert!(policy.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the rates: near never overflows (checked in every round), the rate limit holds, nothing goes to and fro, and near ends with
    /// nearly as many visits as it began with or more.
    #[test]
    fn any_rates(
        classes in prop::collection::vec(0u8..4, 8..120),
        capacity_share in 0.1f64..1.2,
        filled in 0.0f64..1.0,
        bytes_per_s in 8e6f64..1e9,
    ) {
        let rates: Vec<f64> = classes.iter().map(|&class| [0.0, 0.5, 10.0, 150.0][class as usize]).collect();
        let capacity = ((rates.len() as f64 * capacity_share) as usize).max(1);
        let in_near = (capacity.min(rates.len()) as f64 * filled) as usize;
        let mut world = World::new(rates, |index| index < in_near, capacity);
        let before = world.share();
        let mut policy = Migrate::new(Terms { bytes_per_s, ..TERMS });
        world.run(&mut policy, 120.0);
        let most = bytes_per_s * (world.now_s + 2.0 * BURST_S) + GROUP as f64;
        prop_assert!((world.promoted + world.demoted) as f64 <= most);
        prop_assert!(world.moves_of.iter().all(|&moves| moves <= 4), "{:?}", world.moves_of);
        if world.rates.iter().any(|&rate| rate > 0.0) {
            prop_assert!(world.share() >= before - 0.05, "{} {before}", world.share());
        }
    }
}
