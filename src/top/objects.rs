//! The large objects of a job that is watched: how often threads waited for each of them since the last look. Pure.
//!
//! That is the heat that a pager can see: what is always near is never waited for, however much it is used.

use crate::top::rates::Paging;
use nearfar_tiers::job::view::{Member, Seen};
use serde::Serialize;

/// So many are told of: those that were waited for most, then the largest.
const MOST: usize = 16;

/// An object and what happened to it since the last look. `None`: not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectRates {
    /// The process whose it is.
    pub pid: u32,
    /// Where it lies.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Share of its pages that the program has in view.
    pub near_share: Option<f64>,
    /// Page faults in it that waited for far.
    pub misses_per_s: Option<f64>,
    /// Seconds that threads waited there for far, per second.
    pub wait_share: Option<f64>,
    /// Who allocated it; of static arrays what they are called. `None` until somebody has asked.
    pub name: Option<String>,
    /// The address that tells it.
    #[serde(skip)]
    pub site: u64,
    /// When its process started, in ticks since the machine did.
    #[serde(skip)]
    pub process_start: u64,
}

/// Those of `now`, with what was counted since `before`, `seconds` ago; names and shares of near are still to be found.
pub fn between(before: &Seen, now: &Seen, seconds: f64, paging: Paging) -> Vec<ObjectRates> {
    let mut all: Vec<ObjectRates> =
        now.members.iter().flat_map(|member| of_process(before, member, seconds.max(1e-3), paging)).collect();
    let figure = |figure: Option<f64>| figure.unwrap_or(0.0);
    all.sort_by(|a, b| {
        let waited = figure(b.wait_share).total_cmp(&figure(a.wait_share));
        let missed = figure(b.misses_per_s).total_cmp(&figure(a.misses_per_s));
        waited.then(missed).then(b.bytes.cmp(&a.bytes)).then((a.pid, a.address).cmp(&(b.pid, b.address)))
    });
    all.truncate(MOST);
    all
}

fn of_process<'a>(before: &'a Seen, member: &'a Member, seconds: f64, paging: Paging) -> impl Iterator<Item = ObjectRates> + 'a {
    let past = before.members.iter().find(|past| (past.pid, past.start) == (member.pid, member.start));
    member.objects.iter().map(move |object| {
        // A process that has replaced itself (exec) begins to number anew.
        let is_same = |past: &&_| {
            let past: &nearfar_tiers::job::objects::Object = past;
            (past.number, past.site) == (object.number, object.site) && past.misses <= object.misses
        };
        let past = past.and_then(|past| past.objects.iter().find(is_same)).cloned().unwrap_or_default();
        let by_pager = |value: f64| (paging == Paging::Pager).then_some(value / seconds);
        ObjectRates {
            pid: member.pid,
            address: object.start,
            bytes: object.bytes,
            misses_per_s: by_pager((object.misses - past.misses) as f64),
            wait_share: by_pager(object.wait_ns.saturating_sub(past.wait_ns) as f64 / 1e9),
            site: object.site,
            process_start: member.start,
            ..ObjectRates::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::{member, seen};
    use nearfar_tiers::job::objects::Object;

    fn at(objects: Vec<Object>) -> Seen {
        seen(vec![Member { objects, ..member(5, &[]) }])
    }

    fn object(number: u64, start: u64, misses: u64, wait_ns: u64) -> Object {
        Object { start, bytes: 1 << 20, site: 7, number, misses, wait_ns }
    }

    #[test]
    fn those_that_were_waited_for_come_first() {
        let before = at(vec![object(1, 1, 10, 1_000_000_000), object(2, 2, 500, 9_000_000_000)]);
        // The first has moved.
        let now = at(vec![object(2, 2, 500, 9_000_000_000), object(1, 9, 30, 2_000_000_000), object(3, 3, 4, 0)]);
        let found = between(&before, &now, 2.0, Paging::Pager);
        let brief: Vec<_> = found.iter().map(|one| (one.address, one.misses_per_s, one.wait_share)).collect();
        assert_eq!(brief, [(9, Some(10.0), Some(0.5)), (3, Some(2.0), Some(0.0)), (2, Some(0.0), Some(0.0))]);
        // In the place of the second is another by now.
        let found = between(&now, &at(vec![object(4, 2, 520, 500)]), 1.0, Paging::Pager);
        assert_eq!((found.len(), found[0].misses_per_s), (1, Some(520.0)));
        let found = between(&before, &now, 2.0, Paging::Kernel);
        assert!(found.len() == 3 && found.iter().all(|one| one.misses_per_s.is_none() && one.wait_share.is_none()));
    }

    #[test]
    fn no_more_than_can_be_read() {
        let many = at((1..100).map(|number| object(number, number, number, number)).collect());
        let found = between(&Seen::default(), &many, 1.0, Paging::Pager);
        assert_eq!((found.len(), found[0].address), (MOST, 99));
    }
}
