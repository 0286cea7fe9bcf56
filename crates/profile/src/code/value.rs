//! Values as sums: what a register holds, in terms of what registers and stack slots held at the top of the loop.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Something that holds a value from one pass to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Var {
    /// A register, by number.
    Register(u32),
    /// A slot of the stack: register that points there, and distance.
    Slot(u32, i64),
}

/// A sum, plus parts that are functions of something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// Factors; none is 0.
    terms: BTreeMap<Var, i64>,
    /// What is added.
    pub constant: i64,
    /// Numbers of the parts that are no sums, with factors, so that equal values are seen to be equal.
    parts: BTreeMap<u32, i64>,
    /// On what those parts depend.
    depends: BTreeSet<Var>,
    /// An inner loop changed it, nobody knows how often.
    vague: bool,
}

impl Value {
    pub fn constant(constant: i64) -> Self {
        Self { constant, ..Self::default() }
    }

    pub fn var(var: Var) -> Self {
        Self { terms: BTreeMap::from([(var, 1)]), ..Self::default() }
    }

    /// Function number `part` of some values.
    pub fn part<'a>(part: u32, of: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut value = Self { parts: BTreeMap::from([(part, 1)]), ..Self::default() };
        for from in of {
            value.depends.extend(from.terms.keys());
            value.depends.extend(&from.depends);
            value.vague |= from.vague;
        }
        value
    }

    pub fn vague() -> Self {
        Self { vague: true, ..Self::default() }
    }

    /// `self + factor * other`.
    pub fn plus(mut self, other: &Self, factor: i64) -> Self {
        for (&var, &times) in &other.terms {
            add(&mut self.terms, var, times.wrapping_mul(factor));
        }
        for (&part, &times) in &other.parts {
            add(&mut self.parts, part, times.wrapping_mul(factor));
        }
        self.depends.extend(&other.depends);
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        self.vague |= other.vague;
        self
    }

    /// The number, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.parts.is_empty() && !self.vague).then_some(self.constant)
    }

    /// Equal but for what is added.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.terms == other.terms && self.parts == other.parts && self.vague == other.vague
    }
}

fn add<K: Ord>(sum: &mut BTreeMap<K, i64>, key: K, times: i64) {
    let entry = sum.entry(key).or_insert(0);
    *entry = entry.wrapping_add(times);
    sum.retain(|_, times| *times != 0);
}

/// How a value changes from one pass to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By this.
    By(i64),
    /// By the same each time, but only the registers say by what.
    Steady,
    /// In no simple way.
    Varies,
    /// Cannot be said.
    Unknown,
}

/// What a pass of the loop leaves in each thing it changes.
pub type State = HashMap<Var, Value>;

/// How deep one register is followed to another.
const DEEPEST: u32 = 8;

/// How `value` changes when passes end with `ends`.
pub fn change(value: &Value, ends: &State) -> Change {
    change_within(value, ends, DEEPEST)
}

fn change_within(value: &Value, ends: &State, deep: u32) -> Change {
    if value.vague {
        return Change::Unknown;
    }
    let mut result = Change::By(0);
    for &var in &value.depends {
        match change_of(var, ends, deep) {
            Change::By(0) => {}
            Change::Unknown => return Change::Unknown,
            _ => result = Change::Varies,
        }
    }
    for (&var, &times) in &value.terms {
        result = match (result, change_of(var, ends, deep)) {
            (Change::Unknown, _) | (_, Change::Unknown) => return Change::Unknown,
            (Change::Varies, _) | (_, Change::Varies) => Change::Varies,
            (Change::Steady, _) | (_, Change::Steady) => Change::Steady,
            (Change::By(sum), Change::By(step)) => Change::By(sum.wrapping_add(step.wrapping_mul(times))),
        };
    }
    result
}

fn change_of(var: Var, ends: &State, deep: u32) -> Change {
    let Some(end) = ends.get(&var) else { return Change::By(0) };
    if end.vague {
        return Change::Unknown;
    }
    // What comes back to itself through something that is no sum: a pointer that is followed, a generator of random numbers.
    let Some(deep) = deep.checked_sub(1).filter(|_| !end.depends.contains(&var)) else { return Change::Varies };
    match end.terms.get(&var) {
        // Set anew in each pass: in the long run it changes as that does from which it is set.
        None => change_within(end, ends, deep),
        Some(1) => {
            let added = end.clone().plus(&Value::var(var), -1);
            match (added.as_constant(), change_within(&added, ends, deep)) {
                (Some(step), _) => Change::By(step),
                (None, Change::By(0)) => Change::Steady,
                (None, Change::Unknown) => Change::Unknown,
                _ => Change::Varies,
            }
        }
        Some(_) => Change::Varies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_follow_from_what_a_pass_leaves() {
        let [a, b, c, d] = [0, 1, 2, 3].map(Var::Register);
        let by = |var, step| Value::var(var).plus(&Value::constant(step), 1);
        let ends = State::from([
            (a, by(a, 8)),
            (b, Value::var(a)),
            (c, Value::part(1, [&Value::var(c)])),
            (d, Value::var(d).plus(&Value::var(Var::Register(9)), 1)),
        ]);
        assert_eq!(change(&Value::var(a).plus(&Value::var(a), 2), &ends), Change::By(24));
        assert_eq!(change(&Value::var(b), &ends), Change::By(8), "b follows a");
        assert_eq!(change(&Value::var(c), &ends), Change::Varies, "c is followed");
        assert_eq!(change(&Value::var(d), &ends), Change::Steady, "a stride in a register");
        assert_eq!(change(&Value::part(2, [&Value::var(Var::Register(9))]), &ends), Change::By(0), "a function of what stays");
        assert_eq!(change(&Value::part(2, [&Value::var(a)]), &ends), Change::Varies);
        assert_eq!(change(&Value::vague(), &ends), Change::Unknown);
    }
}
