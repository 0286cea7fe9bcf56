//! Two profiles beside each other: which object of one is which of the other, and what changed. Programs are built anew between
//! profiles, so places are compared by function and line, not by address.

use super::record::Kind;
use super::summary::{Estimate, NamedFrame, ObjectGroup, Summary};
use serde::Serialize;

/// Lines by which a place moves in an edit; farther ones are equally unlikely.
const NEAR_LINES: u32 = 40;
/// Least likeness of two places that are taken for the same.
const LEAST: f64 = 0.5;

/// An object of one or both profiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// As the later profile calls it, or the earlier one if it is gone.
    pub name: String,
    /// How sure it is that both are the same, 0..=1; `None`: it is in one only.
    pub likeness: Option<f64>,
    /// Earlier and later; `None`: not there.
    pub before: Option<Side>,
    /// The later profile.
    pub after: Option<Side>,
}

/// What one profile says of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Most bytes at a time.
    pub peak_bytes: u64,
    /// How many objects there were.
    pub count: u64,
    /// Bytes read and written.
    pub traffic: Estimate,
}

impl Side {
    fn of(group: &ObjectGroup) -> Self {
        Self { peak_bytes: group.peak_bytes, count: group.count, traffic: group.total() }
    }
}

impl Change {
    /// Bytes of traffic that the later profile has more.
    pub fn traffic(&self) -> f64 {
        let of = |side: Option<Side>| side.map_or(0.0, |side| side.traffic.value);
        of(self.after) - of(self.before)
    }

    /// Bytes of memory that the later profile has more.
    pub fn bytes(&self) -> i64 {
        let of = |side: Option<Side>| side.map_or(0, |side| i64::try_from(side.peak_bytes).unwrap_or(i64::MAX));
        of(self.after).saturating_sub(of(self.before))
    }

    /// Whether the difference of traffic may be chance: the intervals of the two overlap.
    pub fn is_within_intervals(&self) -> bool {
        let none = Estimate::default();
        let of = |side: Option<Side>| side.map_or(none, |side| side.traffic);
        let (before, after) = (of(self.before), of(self.after));
        before.low <= after.high && after.low <= before.high
    }
}

/// All objects of both, those first whose traffic changed most, then those whose size did.
pub fn compare(before: &Summary, after: &Summary) -> Vec<Change> {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (from, old) in before.objects.iter().enumerate() {
        for (to, new) in after.objects.iter().enumerate() {
            let likeness = likeness(old, new);
            if likeness >= LEAST {
                pairs.push((likeness, from, to));
            }
        }
    }
    // The surest first; of equal ones those whose sizes are closest.
    let apart = |from: usize, to: usize| before.objects[from].most.abs_diff(after.objects[to].most);
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(apart(a.1, a.2).cmp(&apart(b.1, b.2))));
    let mut used = (vec![false; before.objects.len()], vec![false; after.objects.len()]);
    let mut changes = Vec::new();
    for (likeness, from, to) in pairs {
        if used.0[from] || used.1[to] {
            continue;
        }
        (used.0[from], used.1[to]) = (true, true);
        let (old, new) = (&before.objects[from], &after.objects[to]);
        let (before, after) = (Some(Side::of(old)), Some(Side::of(new)));
        changes.push(Change { name: new.name.clone(), likeness: Some(likeness), before, after });
    }
    let alone = |objects: &[ObjectGroup], used: &[bool], is_new: bool| -> Vec<Change> {
        let rest = objects.iter().zip(used).filter(|(_, used)| !**used).map(|(group, _)| group);
        rest.map(|group| {
            let side = Some(Side::of(group));
            let (before, after) = if is_new { (None, side) } else { (side, None) };
            Change { name: group.name.clone(), likeness: None, before, after }
        })
        .collect()
    };
    changes.extend(alone(&before.objects, &used.0, false));
    changes.extend(alone(&after.objects, &used.1, true));
    changes.sort_by(|a, b| {
        let traffic = b.traffic().abs().total_cmp(&a.traffic().abs());
        traffic.then(b.bytes().abs().cmp(&a.bytes().abs())).then(a.name.cmp(&b.name))
    });
    changes
}

/// How alike the places are where two groups are allocated, 0..=1.
fn likeness(a: &ObjectGroup, b: &ObjectGroup) -> f64 {
    // Whether a block is a mapping of its own is the C library's choice.
    let sort = |kind: Kind| if kind == Kind::Map { Kind::Heap } else { kind };
    if sort(a.kind) != sort(b.kind) {
        return 0.0;
    }
    if a.kind == Kind::Static {
        let library = |group: &ObjectGroup| group.frames.first().map(|frame| frame.module.clone());
        let same = if library(a) == library(b) { 1.0 } else { 0.8 };
        return f64::from(u8::from(a.symbol == b.symbol)) * same;
    }
    let frames = if a.frames.is_empty() || b.frames.is_empty() { 0.0 } else { stacks(&a.frames, &b.frames) };
    // Names hold the lines of scripts; where those moved, the rest still tells.
    let names =
        if a.name == b.name { 1.0 } else { 0.8 * f64::from(u8::from(without_numbers(&a.name) == without_numbers(&b.name))) };
    if a.frames.is_empty() && b.frames.is_empty() { names } else { 0.9 * frames + 0.1 * names }
}

fn without_numbers(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// The best way to lay two stacks beside each other in order; inner frames count more.
fn stacks(a: &[NamedFrame], b: &[NamedFrame]) -> f64 {
    let weight = |at: usize| 1.0 / (1.0 + at as f64);
    let mut best = vec![vec![0.0f64; b.len() + 1]; a.len() + 1];
    for (i, one) in a.iter().enumerate() {
        for (j, other) in b.iter().enumerate() {
            let both = best[i][j] + frame(one, other) * (weight(i) + weight(j));
            best[i + 1][j + 1] = both.max(best[i][j + 1]).max(best[i + 1][j]);
        }
    }
    let all: f64 = (0..a.len()).map(weight).sum::<f64>() + (0..b.len()).map(weight).sum::<f64>();
    best[a.len()][b.len()] / all
}

fn frame(a: &NamedFrame, b: &NamedFrame) -> f64 {
    if !a.build_id.is_empty() && a.build_id == b.build_id && a.offset == b.offset && a.function == b.function {
        return 1.0;
    }
    if a.function.is_empty() || a.function != b.function {
        return 0.0;
    }
    match (line(&a.line), line(&b.line)) {
        (Some((file, one)), Some((other_file, other))) if file == other_file => match one.abs_diff(other) {
            0 => 1.0,
            // Of two calls in one function the nearer is the likelier.
            apart => 0.95 - 0.3 * f64::from(apart.min(NEAR_LINES)) / f64::from(NEAR_LINES),
        },
        (None, None) => 0.9,
        _ => 0.6,
    }
}

fn line(text: &str) -> Option<(&str, u32)> {
    let (file, line) = text.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::record::Method;
    use crate::profile::summary::{FORMAT, Pattern};

    fn group(name: &str, kind: Kind, stack: &[(&str, u32)], bytes: f64) -> ObjectGroup {
        let frames = stack.iter().map(|(function, line)| NamedFrame {
            function: (*function).into(),
            line: format!("a.c:{line}"),
            offset: u64::from(*line) * 16,
            ..NamedFrame::default()
        });
        ObjectGroup {
            name: name.into(),
            kind,
            symbol: if kind == Kind::Static { name.into() } else { String::new() },
            frames: frames.collect(),
            count: 1,
            most: 4096,
            peak_bytes: 4096,
            read: Estimate { value: bytes, low: 0.9 * bytes, high: 1.1 * bytes },
            pattern: Pattern::Stream,
            ..ObjectGroup::default()
        }
    }

    fn summary(objects: Vec<ObjectGroup>) -> Summary {
        Summary {
            format: FORMAT,
            least: 4096,
            program: "a".into(),
            processes: 1,
            method: Method::PageFaults,
            wall_s: 1.0,
            cpu_s: 1.0,
            bin_s: 1.0,
            objects,
            ..Summary::default()
        }
    }

    #[test]
    fn objects_are_found_again_after_an_edit() {
        let before = summary(vec![
            group("a (a.c:10)", Kind::Heap, &[("make", 10), ("setup", 50), ("main", 90)], 100.0),
            group("a (a.c:20)", Kind::Heap, &[("make", 20), ("setup", 51), ("main", 90)], 200.0),
            group("field", Kind::Static, &[], 50.0),
            group("old", Kind::Heap, &[("old", 5), ("main", 95)], 30.0),
            group("a.py:9 (run)", Kind::Heap, &[], 7.0),
        ]);
        let after = summary(vec![
            group("a (a.c:22)", Kind::Map, &[("make", 22), ("setup", 53), ("main", 93)], 205.0),
            group("a (a.c:12)", Kind::Heap, &[("make", 12), ("setup", 52), ("prepare", 70), ("main", 93)], 300.0),
            group("field", Kind::Static, &[], 50.0),
            group("fresh", Kind::Heap, &[("fresh", 6), ("main", 96)], 10.0),
            group("a.py:12 (run)", Kind::Heap, &[], 7.0),
        ]);
        let changes = compare(&before, &after);
        let shown: Vec<_> =
            changes.iter().map(|change| (change.name.as_str(), change.traffic().round(), change.is_within_intervals())).collect();
        assert_eq!(shown[0], ("a (a.c:12)", 200.0, false), "{changes:#?}");
        assert_eq!((shown[1], changes[1].after), (("old", -30.0, false), None));
        assert_eq!((shown[2], changes[2].before), (("fresh", 10.0, false), None));
        assert_eq!(shown[3], ("a (a.c:22)", 5.0, true));
        assert_eq!(shown.len(), 6);
        assert!(changes[4..].iter().all(|change| change.likeness.is_some() && change.traffic() == 0.0));
    }

    #[test]
    fn a_profile_beside_itself_and_beside_nothing() {
        let one = summary((0..40).map(|at| group("x", Kind::Heap, &[("f", at), ("main", 1)], 10.0)).collect());
        assert!(compare(&one, &one).iter().all(|change| change.traffic() == 0.0 && change.likeness.is_some()));
        let gone = compare(&one, &summary(vec![]));
        assert!(gone.len() == 40 && gone.iter().all(|change| change.after.is_none()));
        assert!(compare(&summary(vec![]), &summary(vec![])).is_empty());
    }
}
