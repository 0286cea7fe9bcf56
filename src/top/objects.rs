//! The large objects of a job that is watched: how often threads waited for each of them since the last look. Pure.
//!
//! That is the heat that a pager can see: what is always near is never waited for, however much it is used.

use nearfar_tiers::job::objects::Object;
use nearfar_tiers::job::view::{Member, Seen};
use serde::Serialize;

/// So many are told of: those that were waited for most.
const MOST: usize = 16;

/// An object and what happened to it since the last look.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hot {
    /// The process whose it is.
    pub pid: u32,
    /// Where it lies.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Share of its pages that the program has in view; `None`: not known.
    pub near_share: Option<f64>,
    /// Page faults in it that waited for far.
    pub misses_per_s: f64,
    /// Seconds that threads waited there for far, per second.
    pub wait_share: f64,
    /// Who allocated it; of a static array where it belongs.
    pub name: String,
    /// The address that tells it.
    #[serde(skip)]
    pub site: u64,
    /// When its process started, in ticks since the machine did.
    #[serde(skip)]
    pub process_start: u64,
}

/// Those of `now`, with what was counted since `before`, `seconds` ago; names and shares of near are still to be found.
pub fn between(before: &Seen, now: &Seen, seconds: f64) -> Vec<Hot> {
    let mut all: Vec<Hot> = now.members.iter().flat_map(|member| of_process(before, member, seconds.max(1e-3))).collect();
    let waited = |a: &Hot, b: &Hot| b.wait_share.total_cmp(&a.wait_share).then(b.misses_per_s.total_cmp(&a.misses_per_s));
    all.sort_by(|a, b| waited(a, b).then(b.bytes.cmp(&a.bytes)).then((a.pid, a.address).cmp(&(b.pid, b.address))));
    all.truncate(MOST);
    all
}

fn of_process<'a>(before: &'a Seen, member: &'a Member, seconds: f64) -> impl Iterator<Item = Hot> + 'a {
    let past = before.members.iter().find(|past| (past.pid, past.start) == (member.pid, member.start));
    member.objects.iter().map(move |object| {
        // Another may have been in its place, or this one elsewhere.
        let is_same = |past: &&Object| past.site == object.site && past.start == object.start && past.misses <= object.misses;
        let past = past.and_then(|past| past.objects.iter().find(is_same)).cloned().unwrap_or_default();
        Hot {
            pid: member.pid,
            address: object.start,
            bytes: object.bytes,
            misses_per_s: (object.misses - past.misses) as f64 / seconds,
            wait_share: object.wait_ns.saturating_sub(past.wait_ns) as f64 / 1e9 / seconds,
            site: object.site,
            process_start: member.start,
            ..Hot::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::{member, seen};

    #[test]
    fn those_that_were_waited_for_come_first() {
        let object = |start: u64, misses: u64, wait_ns: u64| Object { start, bytes: 1 << 20, site: 7, misses, wait_ns };
        let at = |objects: Vec<Object>| seen(vec![Member { objects, ..member(5, &[]) }]);
        let before = at(vec![object(1, 10, 1_000_000_000), object(2, 500, 9_000_000_000)]);
        let now = at(vec![object(2, 500, 9_000_000_000), object(1, 30, 2_000_000_000), object(3, 4, 0)]);
        let found = between(&before, &now, 2.0);
        let brief: Vec<_> = found.iter().map(|hot| (hot.address, hot.misses_per_s, hot.wait_share)).collect();
        assert_eq!(brief, [(1, 10.0, 0.5), (3, 2.0, 0.0), (2, 0.0, 0.0)]);
        // In the place of the second is another by now.
        let found = between(&now, &at(vec![object(2, 20, 500)]), 1.0);
        assert_eq!((found.len(), found[0].misses_per_s), (1, 20.0));
        let many = at((0..100).map(|start| object(start, start, start)).collect());
        assert_eq!((between(&before, &many, 1.0).len(), between(&before, &many, 1.0)[0].address), (MOST, 99));
    }
}
