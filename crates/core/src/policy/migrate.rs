//! Cache mode among NUMA nodes: which groups of pages go to near and which go to far, from sampled visits. State in, decision out.
//!
//! A *group* is an aligned stretch of one process's addresses, as long as a huge page or a few of them. A *round* is: [`Migrate::pick`] names
//! groups to look at, [`Migrate::observe`] is told what was seen, [`Migrate::decide`] names moves, [`Migrate::moved`] is told what became of
//! them, [`Migrate::verdict`] says whether to go on.
//!
//! Pages are only moved when what is known of their visits pays for it: a far group is promoted into free room when its visits, at the
//! least that they may be, are worth the move, and in exchange for a near group only when it is certainly hotter than that one by half.
//! A group that was moved stays for a while, longer each time. Moves are watched, and when they turn out not to pay, there is a pause
//! that grows each time.

mod gain;
mod heat;
mod ledger;

pub use gain::{Gain, Origin, Speed};
pub use heat::Heat;

use crate::placement::Tier;
use ledger::{HORIZON_S, Ledger, Watched};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a page.
const PAGE: f64 = 4096.0;
/// An exchange takes a group that is hotter than the other by at least this factor.
const HOTTER: f64 = 1.5;
/// A group that was moved stays at least that long, twice as long after each further move, up to [`LONGEST_STAY_S`].
const STAY_S: f64 = 16.0;
const LONGEST_STAY_S: f64 = 960.0;
/// What could not be moved is not tried again for that long.
const REFUSED_S: f64 = 60.0;
/// Groups that are kept in mind, of all processes together: about 2 MB of tables.
pub const MAX_GROUPS: usize = 16384;
/// What is visited less often than that per interval, and was never seen visited, makes room for new memory: some 15 looks tell.
const IDLE_RATE: f64 = 0.35;
/// Rounds without moves before there is nothing to do.
const IDLE_ROUNDS: u32 = 3;
/// Pauses when nothing is worth moving, and when moves did not pay.
const REST_S: (f64, f64) = (2.0, 60.0);
const PENALTY_S: (f64, f64) = (10.0, 600.0);
/// With that share of the visits in near there is not much to win.
const SETTLED_SHARE: f64 = 0.9;
/// Moves are given a rate, and may save up for that long.
const BURST_S: f64 = 2.0;

/// A group of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    /// A number that the caller gave the process; not used for another one later.
    pub process: u32,
    /// Address divided by the length of groups in this process.
    pub index: u64,
}

/// What was seen of a group in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Which.
    pub group: GroupId,
    /// Its bytes in memory; 0: it is gone.
    pub bytes: u64,
    /// Where most of them are.
    pub tier: Tier,
    /// Looks that found a visit since the look before.
    pub visits: u32,
    /// Looks, each at a random page of it.
    pub looks: u32,
}

/// Bytes that may still be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// In near; negative when near should be emptied by that much.
    pub near: i64,
    /// In far.
    pub far: i64,
}

/// A move to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// What.
    pub group: GroupId,
    /// Where to.
    pub to: Tier,
    /// Its bytes, as last seen.
    pub bytes: u64,
}

/// How moves are bounded and what they are worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// What a visit saves in near, ns.
    pub gain_ns: f64,
    /// Bytes that may be moved per second.
    pub bytes_per_s: f64,
    /// What moving a byte costs until it has been measured, ns.
    pub move_ns_per_byte: f64,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// With another round.
    Work,
    /// Not before that many seconds have passed.
    Rest(f64, Why),
}

/// Why there is a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nearly all visits go to near already.
    Settled,
    /// No far group is hotter than what is in near by enough to pay for an exchange.
    Alike,
    /// Moves were made and cost more than they saved.
    NotPaying,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Settled => "what is visited is in near",
            Self::Alike => "nothing in far is visited enough more than what is in near",
            Self::NotPaying => "moves cost more than they saved",
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Group {
    bytes: u64,
    near: bool,
    heat: Heat,
    moves: u32,
    stays_until_s: f64,
    watched: Option<Watched>,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Migrate {
    terms: Terms,
    groups: BTreeMap<GroupId, Group>,
    /// Seconds between looks.
    interval_s: f64,
    ledger: Ledger,
    tokens: f64,
    decided_s: Option<f64>,
    idle_rounds: u32,
    rest_s: f64,
    penalty_s: f64,
}

impl Migrate {
    /// Begins with nothing known.
    pub fn new(terms: Terms) -> Self {
        Self {
            terms,
            groups: BTreeMap::new(),
            interval_s: 0.02,
            ledger: Ledger::default(),
            tokens: 0.0,
            decided_s: None,
            idle_rounds: 0,
            rest_s: REST_S.0,
            penalty_s: PENALTY_S.0,
        }
    }

    /// There is such a group. False when there are too many: the caller makes groups of this process longer.
    pub fn found(&mut self, group: GroupId) -> bool {
        let has_room = self.groups.len() < MAX_GROUPS;
        if has_room {
            self.groups.entry(group).or_default();
        }
        has_room || self.groups.contains_key(&group)
    }

    /// Forgets a process that has ended, or whose groups have another length now.
    pub fn forget(&mut self, process: u32) {
        self.groups.retain(|id, _| id.process != process);
    }

    /// Groups that are kept in mind.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// True when nothing is kept in mind.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// At most `most` groups to look at now, ascending: all if they are so few; otherwise what was moved, what may be moved next, and for one
    /// half what was not looked at for longest.
    pub fn pick(&self, now_s: f64, most: usize) -> Vec<GroupId> {
        if self.groups.len() <= most {
            return self.groups.keys().copied().collect();
        }
        let mut picked: Vec<GroupId> = Vec::with_capacity(most);
        let watched = self.groups.iter().filter(|(_, group)| group.watched.is_some()).map(|(id, _)| *id);
        picked.extend(watched.take(most / 4));
        let (far, near) = self.ranked(now_s);
        picked.extend(far.iter().take(most / 8).chain(near.iter().take(most / 8)).map(|ranked| ranked.id));
        // Of those that were looked at equally long ago, neighbours are not taken together: they tend to be alike.
        let mut oldest: Vec<(u64, u64, GroupId)> = Vec::with_capacity(self.groups.len());
        oldest.extend(self.groups.iter().map(|(id, group)| {
            let at = if group.heat.is_known() { 1 + (group.heat.at_s() * 1e3) as u64 } else { 0 };
            (at, scattered(*id), *id)
        }));
        oldest.sort_unstable();
        picked.extend(oldest.iter().map(|(_, _, id)| *id).take(most));
        // The first ones count: a group may have been named twice.
        let mut seen = std::collections::BTreeSet::new();
        picked.retain(|id| seen.len() < most && seen.insert(*id));
        picked.sort_unstable();
        picked
    }

    /// Takes in what a round saw at `now_s`, with looks `interval_s` apart.
    pub fn observe(&mut self, now_s: f64, interval_s: f64, seen: &[Seen]) {
        if (interval_s - self.interval_s).abs() > 1e-9 && interval_s > 0.0 {
            let factor = interval_s / self.interval_s;
            self.groups.values_mut().for_each(|group| group.heat.stretch(factor));
            self.interval_s = interval_s;
        }
        for one in seen {
            if one.bytes == 0 {
                self.groups.remove(&one.group);
                continue;
            }
            let Some(group) = self.groups.get_mut(&one.group) else { continue };
            group.bytes = one.bytes;
            group.near = one.tier == Tier::Near;
            group.heat.add(now_s, one.visits, one.looks);
            let per_s = heat::rate(f64::from(one.visits), f64::from(one.looks)) / interval_s.max(1e-6);
            if let Some(watched) = &mut group.watched {
                watched.see(now_s, per_s * one.bytes as f64 / PAGE * self.terms.gain_ns);
                // What the kernel or the program moved back says nothing of this move.
                if group.near != (watched.to == Tier::Near) || self.ledger.settle(*watched) {
                    group.watched = None;
                }
            }
        }
        self.ledger.age();
    }

    /// Moves worth making at `now_s`, those out of near first.
    pub fn decide(&mut self, now_s: f64, room: Room) -> Vec<Move> {
        let rate = self.terms.bytes_per_s;
        let since = self.decided_s.map_or(BURST_S, |before| (now_s - before).max(0.0));
        self.decided_s = Some(now_s);
        self.tokens = (self.tokens + since * rate).min(BURST_S * rate);
        let (far, near) = self.ranked(now_s);
        let mut near = near.into_iter().peekable();
        let (mut out, mut into) = (Vec::new(), Vec::new());
        let mut free = room;
        // New memory is to find room in near: what is not visited makes it, as far as there is such.
        while free.near < 0
            && let Some(cold) = near.next_if(|cold| cold.is_idle)
        {
            if !self.take(&mut out, &mut free, cold, Tier::Far) {
                break;
            }
        }
        for hot in far {
            let worth = |rate: f64| rate / self.interval_s * hot.bytes as f64 / PAGE * self.terms.gain_ns * HORIZON_S;
            let cost = hot.bytes as f64 * self.terms.move_ns_per_byte;
            if worth(hot.rate) <= cost {
                break;
            }
            // Enough cold groups to make room for it, all of them colder by enough.
            let mut leaving: Vec<Ranked> = Vec::new();
            let mut room_after = free.near;
            while room_after < hot.bytes as i64 {
                let gained = |cold: &Ranked| hot.rate > cold.rate * HOTTER && worth(hot.rate - cold.rate) > 2.0 * cost;
                let Some(cold) = near.next_if(gained) else { break };
                room_after += cold.bytes as i64;
                leaving.push(cold);
            }
            if room_after < hot.bytes as i64 {
                break;
            }
            if !leaving.into_iter().all(|cold| self.take(&mut out, &mut free, cold, Tier::Far))
                || !self.take(&mut into, &mut free, hot, Tier::Near)
            {
                break;
            }
        }
        // Moves out may have been taken for one that is not made.
        self.idle_rounds = if out.is_empty() && into.is_empty() { self.idle_rounds + 1 } else { 0 };
        out.append(&mut into);
        out
    }

    /// `bytes` of a move were made in `cost_ns`; less than 1 in 8 of them count as refused.
    pub fn moved(&mut self, now_s: f64, done: &Move, bytes: u64, cost_ns: f64) {
        let Some(group) = self.groups.get_mut(&done.group) else { return };
        if bytes < done.bytes / 8 || bytes == 0 {
            group.stays_until_s = now_s + REFUSED_S;
            return;
        }
        let per_byte = cost_ns / bytes as f64;
        self.terms.move_ns_per_byte += (per_byte - self.terms.move_ns_per_byte) / 8.0;
        group.stays_until_s = now_s + (STAY_S * f64::from(group.moves.min(16)).exp2()).min(LONGEST_STAY_S);
        group.moves += 1;
        group.near = done.to == Tier::Near;
        group.watched = Some(Watched::new(done.to, now_s, cost_ns));
    }

    /// After a round: whether to go on.
    pub fn verdict(&mut self) -> Verdict {
        if self.ledger.pays() == Some(false) {
            self.ledger = Ledger::default();
            self.groups.values_mut().for_each(|group| group.watched = None);
            let pause = self.penalty_s;
            self.penalty_s = (pause * 2.0).min(PENALTY_S.1);
            return Verdict::Rest(pause, Why::NotPaying);
        }
        if self.idle_rounds == 0 {
            self.rest_s = REST_S.0;
            return Verdict::Work;
        }
        // Moves under watch and groups never looked at are reasons to go on.
        let unknown = self.groups.values().filter(|group| !group.heat.is_known()).count();
        let watched = self.groups.values().any(|group| group.watched.is_some());
        if self.idle_rounds < IDLE_ROUNDS || unknown * 8 > self.groups.len() || watched {
            return Verdict::Work;
        }
        let pause = self.rest_s;
        self.rest_s = (pause * 2.0).min(REST_S.1);
        // After the pause one round without moves is enough for the next one.
        self.idle_rounds = IDLE_ROUNDS - 1;
        if self.ledger.pays() == Some(true) {
            self.penalty_s = PENALTY_S.0;
        }
        let why = if self.near_share().is_none_or(|share| share >= SETTLED_SHARE) { Why::Settled } else { Why::Alike };
        Verdict::Rest(pause, why)
    }

    /// Share of the visits that go to near, as far as groups were looked at.
    pub fn near_share(&self) -> Option<f64> {
        let (mut near, mut all) = (0.0, 0.0);
        for group in self.groups.values().filter(|group| group.heat.is_known()) {
            let visits = group.heat.rate() * group.bytes as f64;
            all += visits;
            near += if group.near { visits } else { 0.0 };
        }
        (all > 0.0).then(|| near / all)
    }

    /// Bytes in near of the groups that are kept in mind; those never looked at are taken to be like the others.
    pub fn near_bytes(&self) -> u64 {
        let known = self.groups.values().filter(|group| group.bytes > 0).count().max(1);
        let sum: u64 = self.groups.values().filter(|group| group.near).map(|group| group.bytes).sum();
        (sum as f64 * self.groups.len() as f64 / known as f64) as u64
    }

    /// The interval between looks that tells groups apart best, given what was seen: shorter when nearly everything that is visited at all is
    /// visited in every interval, longer when hardly anything is visited.
    pub fn better_interval(&self, seen: &[Seen]) -> f64 {
        let looked = || seen.iter().filter(|one| one.looks > 0 && one.bytes > 0);
        let all = looked().count();
        let visited = looked().filter(|one| one.visits > 0).count();
        let always = looked().filter(|one| one.visits == one.looks).count();
        const SHORTEST_S: f64 = 0.005;
        const LONGEST_S: f64 = 0.1;
        if all >= 8 && always * 2 > all {
            (self.interval_s / 2.0).max(SHORTEST_S)
        } else if all >= 8 && visited * 20 < all {
            (self.interval_s * 2.0).min(LONGEST_S)
        } else {
            self.interval_s
        }
    }

    /// Far groups that may be moved, the hottest first by the least that their rate may be; near ones, the coldest first by the most.
    fn ranked(&self, now_s: f64) -> (Vec<Ranked>, Vec<Ranked>) {
        let (mut far, mut near) = (Vec::new(), Vec::new());
        for (&id, group) in &self.groups {
            if group.bytes == 0 || !group.heat.is_known() || group.stays_until_s > now_s {
                continue;
            }
            let (least, most) = group.heat.bounds(now_s);
            let is_idle = group.heat.rate() == 0.0 && most < IDLE_RATE;
            if group.near {
                near.push(Ranked { id, bytes: group.bytes, rate: most, is_idle });
            } else if least > 0.0 {
                far.push(Ranked { id, bytes: group.bytes, rate: least, is_idle });
            }
        }
        far.sort_by(|a, b| b.rate.total_cmp(&a.rate).then(a.id.cmp(&b.id)));
        near.sort_by(|a, b| a.rate.total_cmp(&b.rate).then(a.id.cmp(&b.id)));
        (far, near)
    }

    /// Notes a move if there is room for it and the rate allows it.
    fn take(&mut self, list: &mut Vec<Move>, free: &mut Room, what: Ranked, to: Tier) -> bool {
        let bytes = what.bytes as i64;
        // At least one group may go, however long it is against the rate.
        let full = BURST_S * self.terms.bytes_per_s;
        let into = if to == Tier::Near { free.near } else { free.far };
        if (self.tokens < bytes as f64 && self.tokens < full) || into < bytes {
            return false;
        }
        self.tokens -= bytes as f64;
        let sign = if to == Tier::Near { -1 } else { 1 };
        free.near += sign * bytes;
        free.far -= sign * bytes;
        list.push(Move { group: what.id, to, bytes: what.bytes });
        true
    }
}

#[derive(Clone, Copy)]
struct Ranked {
    id: GroupId,
    bytes: u64,
    /// A bound of its visits per page and interval.
    rate: f64,
    is_idle: bool,
}

fn scattered(id: GroupId) -> u64 {
    (id.index ^ u64::from(id.process) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
mod tests;
