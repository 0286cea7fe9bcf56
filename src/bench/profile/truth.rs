//! What a program says of its traffic, beside what its profile says.

use nearfar_core::profile::record::Kind;
use nearfar_core::profile::summary::{Estimate, ObjectGroup, Pattern, Summary};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Points that an object may be off that is gone through line by line, at best, and another.
const DENSE_POINTS: f64 = 5.0;
const BEST_POINTS: f64 = 3.0;
const SPARSE_POINTS: f64 = 10.0;
/// An object with less of the traffic than this, in per cent, has none: the cache holds it.
const NOTHING: f64 = 1.0;
/// Objects that differ by less, in points, have no order.
const SAME: f64 = 3.0;

pub const HEADING: &str = "program      object                truth  measured  90% interval     error  pattern";

/// One object, as the program says it.
#[derive(Deserialize, Clone, Debug, PartialEq)]
pub struct Truth {
    object: String,
    sparse: bool,
    bytes: f64,
}

/// One object, both said; shares in per cent of all.
#[derive(Serialize, Clone, Debug)]
pub struct Row {
    pub object: String,
    pub sparse: bool,
    pub truth: f64,
    pub measured: f64,
    pub low: f64,
    pub high: f64,
    pub pattern: Pattern,
    /// Not in the profile at all.
    pub missing: bool,
}

impl Row {
    /// Points that it is off.
    pub fn error(&self) -> f64 {
        self.measured - self.truth
    }

    pub fn is_close(&self) -> bool {
        self.error().abs() <= if self.sparse { SPARSE_POINTS } else { DENSE_POINTS }
    }

    fn holds(&self) -> bool {
        (self.low..=self.high).contains(&self.truth)
    }

    fn is_hot(&self) -> bool {
        self.truth < NOTHING
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = format!("{:?}", self.pattern).to_lowercase();
        let remark = match (self.missing, self.is_close()) {
            (true, _) => "  not in the profile",
            (_, false) => "  OFF",
            _ => "",
        };
        write!(
            f,
            "{:20} {:5.1} %   {:5.1} %  {:5.1} .. {:5.1}  {:+6.1}   {pattern}{remark}",
            self.object,
            self.truth,
            self.measured,
            self.low,
            self.high,
            self.error()
        )
    }
}

/// What the program printed.
pub fn parse(text: &str) -> Vec<Truth> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The rows, and whether the objects with the most traffic are in the right order.
pub fn compare(truths: &[Truth], summary: &Summary) -> (Vec<Row>, bool) {
    let all_true: f64 = truths.iter().map(|truth| truth.bytes).sum();
    let all: f64 = summary.objects.iter().map(|group| group.total().value).sum();
    let share = |bytes: f64, of: f64| if of > 0.0 { 100.0 * bytes / of } else { 0.0 };
    let mut rows: Vec<Row> = truths
        .iter()
        .map(|truth| {
            let groups: Vec<&ObjectGroup> = summary.objects.iter().filter(|group| is_of(group, &truth.object)).collect();
            let sum = groups.iter().fold(Estimate::default(), |sum, group| sum + group.total());
            let most = groups.iter().max_by(|a, b| a.total().value.total_cmp(&b.total().value));
            Row {
                object: truth.object.clone(),
                sparse: truth.sparse,
                truth: share(truth.bytes, all_true),
                measured: share(sum.value, all),
                low: share(sum.low, all),
                high: share(sum.high, all),
                pattern: most.map_or(Pattern::Unknown, |group| group.pattern),
                missing: groups.is_empty(),
            }
        })
        .collect();
    rows.sort_by(|a, b| b.truth.total_cmp(&a.truth));
    let top = rows.get(..rows.len().min(5)).unwrap_or_default();
    let order_right = top.iter().enumerate().all(|(at, larger)| {
        top[at + 1..]
            .iter()
            .filter(|smaller| larger.truth - smaller.truth > SAME)
            .all(|smaller| larger.measured > smaller.measured)
    });
    (rows, order_right)
}

/// Whether a group is the object that the program names: by the function that allocates it, its symbol, or "stack".
pub fn is_of(group: &ObjectGroup, object: &str) -> bool {
    if object == "stack" {
        return matches!(group.kind, Kind::MainStack | Kind::ThreadStack);
    }
    let is = |name: &str| name.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == object);
    group.symbol == object || is(&group.name) || group.frames.iter().any(|frame| is(&frame.function))
}

/// How often it was right.
#[derive(Default)]
pub struct Tally {
    best: (usize, usize),
    dense: (usize, usize),
    sparse: (usize, usize),
    hot: (usize, usize),
    intervals: (usize, usize),
    orders: (usize, usize),
}

impl Tally {
    pub fn add(&mut self, rows: &[Row], order_right: bool) {
        let count = |of: &mut (usize, usize), right: bool| {
            of.0 += usize::from(right);
            of.1 += 1;
        };
        if !rows.is_empty() {
            count(&mut self.orders, order_right);
        }
        for row in rows {
            if !row.sparse {
                count(&mut self.best, row.error().abs() <= BEST_POINTS && !row.missing);
            }
            count(if row.sparse { &mut self.sparse } else { &mut self.dense }, row.is_close() && !row.missing);
            count(&mut self.intervals, row.holds());
            if row.is_hot() {
                count(&mut self.hot, row.measured < 2.0 * NOTHING);
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [best, dense, sparse, hot, intervals, orders] =
            [self.best, self.dense, self.sparse, self.hot, self.intervals, self.orders]
                .map(|(right, all)| format!("{right} of {all}"));
        writeln!(f, "dense objects within {BEST_POINTS} points     {best}")?;
        writeln!(f, "dense objects within {DENSE_POINTS} points     {dense}")?;
        writeln!(f, "sparse objects within {SPARSE_POINTS} points   {sparse}")?;
        writeln!(f, "order of the largest five right    {orders}")?;
        writeln!(f, "in the cache and not reported      {hot}")?;
        write!(f, "intervals that hold the truth      {intervals}")
    }
}

#[cfg(test)]
mod tests;
