//! Which routines of verified predictions are worth a name of their own, and their seconds: for text and for charts alike.

use crate::files::advice::Routine;
use std::collections::BTreeMap;

/// Routines with a name of their own in what is shown.
pub const ROWS: usize = 8;
/// Routines below this share of the longest run have none.
const LEAST: f64 = 2e-3;

/// Function and module.
type Name = (String, String);

/// One of the columns of a routine's row.
pub type Column = fn(&Routine) -> Option<f64>;

/// The routines that matter in any of the cases, each known by its place; the rest is "other".
pub struct Key(Vec<Name>);

impl Key {
    /// Of the rows of each case.
    pub fn of<'a>(cases: impl Iterator<Item = &'a [Routine]>) -> Self {
        let mut most: BTreeMap<Name, f64> = BTreeMap::new();
        let mut longest = 0.0f64;
        for rows in cases {
            let sum = |of: Column| rows.iter().filter_map(of).sum::<f64>();
            longest = longest.max(sum(|row| row.predicted)).max(sum(|row| row.measured));
            for row in rows.iter().filter(|row| !row.is_other()) {
                let known = most.entry((row.function.clone(), row.module.clone())).or_default();
                *known = known.max(row.most());
            }
        }
        let mut all: Vec<_> = most.into_iter().filter(|(_, seconds)| *seconds >= LEAST * longest && *seconds > 0.0).collect();
        all.sort_by(|one, next| next.1.total_cmp(&one.1));
        Self(all.into_iter().take(ROWS).map(|(name, _)| name).collect())
    }

    /// Their functions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(function, _)| function.as_str())
    }

    /// Seconds of each of them, then of all others; `None`: not known.
    pub fn parts(&self, rows: &[Routine], of: Column) -> Option<Vec<f64>> {
        rows.first().and_then(of)?;
        let mut parts = vec![0.0; self.0.len() + 1];
        for row in rows {
            let at = self.0.iter().position(|(function, module)| (function, module) == (&row.function, &row.module));
            parts[at.filter(|_| !row.is_other()).unwrap_or(self.0.len())] += of(row).unwrap_or(0.0);
        }
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_everywhere_is_other() {
        let row = |function: &str, predicted, measured| Routine {
            function: function.into(),
            module: "app".into(),
            predicted: Some(predicted),
            measured,
            error: None,
        };
        let far = [row("a", 9.0, Some(1.0)), row("b", 1.0, Some(2.0)), row("tiny", 0.001, Some(0.001))];
        let near = [row("b", 1.0, None), row("c", 3.0, None)];
        let key = Key::of([&far[..], &near[..]].into_iter());
        assert_eq!(key.names().collect::<Vec<_>>(), ["a", "c", "b"]);
        assert_eq!(key.parts(&far, |row| row.predicted), Some(vec![9.0, 0.0, 1.0, 0.001]));
        assert_eq!((key.parts(&near, |row| row.measured), key.parts(&[], |row| row.predicted)), (None, None));
    }
}
