//! What the person before the screen has chosen: a job, an order, a pause, the help.

use crate::top::columns::{Column, SORTABLE};
use crate::top::watched::Watched;
use crate::ui::screen::Key;

/// The choices.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The list stands still.
    pub paused: bool,
    /// The help is shown.
    pub help: bool,
    selected: Option<u64>,
    sort: usize,
    reversed: bool,
}

/// What a key asks of the command beside what it changes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    Stay,
    /// To end.
    End,
}

impl Choice {
    /// The column that jobs are sorted by.
    pub fn sorted_by(&self) -> Column {
        SORTABLE[self.sort % SORTABLE.len()]
    }

    /// The jobs in the order of the list.
    pub fn ordered<'a>(&self, jobs: &'a [Watched]) -> Vec<&'a Watched> {
        let mut ordered: Vec<&Watched> = jobs.iter().collect();
        ordered.sort_by(|a, b| self.sorted_by().order(a, b));
        if self.reversed {
            ordered.reverse();
        }
        ordered
    }

    /// The place of the selected job in that order; the first when it is gone.
    pub fn place(&self, ordered: &[&Watched]) -> usize {
        ordered.iter().position(|job| Some(job.id) == self.selected).unwrap_or(0)
    }

    /// The number of that job.
    pub fn selected(&self, jobs: &[Watched]) -> Option<u64> {
        let ordered = self.ordered(jobs);
        ordered.get(self.place(&ordered)).map(|job| job.id)
    }

    /// Somebody pressed `key` before these jobs.
    pub fn press(&mut self, key: Key, jobs: &[Watched]) -> Wish {
        let ordered = self.ordered(jobs);
        let place = self.place(&ordered);
        let select = |place: usize| ordered.get(place).map(|job| job.id);
        match key {
            Key::Interrupt => return Wish::End,
            Key::Char('q' | 'Q') | Key::Escape if self.help => self.help = false,
            Key::Char('q' | 'Q') => return Wish::End,
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Up | Key::Char('k') => self.selected = select(place.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.selected = select((place + 1).min(ordered.len().saturating_sub(1))),
            Key::Char('s' | 'r') => {
                // The list moves, and the choice stays.
                self.selected = select(place);
                if key == Key::Char('s') {
                    (self.sort, self.reversed) = ((self.sort + 1) % SORTABLE.len(), false);
                } else {
                    self.reversed = !self.reversed;
                }
            }
            Key::Char('p' | ' ') => self.paused = !self.paused,
            Key::Char(_) | Key::Escape => {}
        }
        Wish::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::busy;

    #[test]
    fn the_selected_job_stays_selected() {
        let mut jobs = vec![busy(2, "b"), busy(1, "a"), busy(3, "c")];
        let mut choice = Choice::default();
        let selected = |choice: &Choice, jobs: &[Watched]| {
            let ordered = choice.ordered(jobs);
            ordered[choice.place(&ordered)].id
        };
        assert_eq!(selected(&choice, &jobs), 1);
        for (key, wanted) in [(Key::Down, 2), (Key::Char('r'), 2), (Key::Up, 3), (Key::Up, 3), (Key::Char('s'), 3), (Key::Up, 2)]
        {
            assert_eq!(choice.press(key, &jobs), Wish::Stay);
            assert_eq!(selected(&choice, &jobs), wanted, "{key:?}");
        }
        assert_eq!(choice.sorted_by(), Column::Program);
        jobs.retain(|job| job.id != 2);
        assert_eq!(selected(&choice, &jobs), 1, "the first, where it is gone");
        assert_eq!(choice.press(Key::Down, &[]), Wish::Stay);
    }

    #[test]
    fn keys() {
        let mut choice = Choice::default();
        assert_eq!(choice.press(Key::Char('?'), &[]), Wish::Stay);
        assert!(choice.help);
        assert_eq!(choice.press(Key::Char('q'), &[]), Wish::Stay, "ends the help");
        assert_eq!((choice.help, choice.press(Key::Char('p'), &[]), choice.paused), (false, Wish::Stay, true));
        assert_eq!([Key::Char('q'), Key::Interrupt].map(|key| choice.press(key, &[])), [Wish::End; 2]);
        assert_eq!((choice.press(Key::Escape, &[]), choice.press(Key::Char('x'), &[])), (Wish::Stay, Wish::Stay));
    }
}
