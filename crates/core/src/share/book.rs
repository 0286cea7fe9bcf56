//! The book of one job on one node: who came, what each got, who left. A list of events that are only ever added; whoever reads
//! them all knows as much as whoever wrote them.
//!
//! Invariant: what living ranks hold and what is kept for those who have not come is never more than the whole, apart from
//! ranks that said [`Claim::Off`].
//! A rank that dies without a word is found dead by the others (`alive`), and what it held is free again.

use super::claim::Claim;
use super::divide::divide;
use crate::addr::PAGE;
use serde::{Deserialize, Serialize};

/// A process: its number, and when it started, so that a number used again is another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Ticks since the machine started; 0 when unknown.
    pub start: u64,
}

/// A rank that comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRank {
    /// Who.
    pub process: Process,
    /// Number in the job.
    pub rank: u32,
    /// Number on the node.
    pub place: u32,
    /// The place is taken by another living process: takes no part in the division.
    pub extra: bool,
    /// Near of the node, as this rank was told, in bytes.
    pub near: u64,
    /// What it asks for.
    pub claim: Claim,
    /// Where its statistics go, together with those of others that name the same.
    pub stats: Option<String>,
}

/// What is written in the book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A rank came.
    #[serde(rename = "come")]
    NewRank(NewRank),
    /// Near was divided: bytes of each place, those that nobody has come for included.
    Divided {
        /// Bytes that were divided.
        whole: u64,
        /// Bytes by place.
        shares: Vec<u64>,
    },
    /// A rank that came after the division got so much.
    Got {
        /// Who.
        process: Process,
        /// Bytes.
        bytes: u64,
    },
    /// A rank left.
    Left {
        /// Who.
        process: Process,
    },
}

/// A rank that came, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// What it said when it came.
    pub come: NewRank,
    /// Bytes of near that it holds.
    pub got: Option<u64>,
    /// It has left.
    pub left: bool,
}

/// The state that the events lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    places: u32,
    /// `places` is known, not the most that there may be.
    exact: bool,
    /// Everybody, in the order of coming.
    guests: Vec<Guest>,
    divided: Option<(u64, Vec<u64>)>,
}

impl Book {
    /// An empty book for a node with so many ranks; at most so many, when that is not `exact`.
    pub fn new(places: u32, exact: bool) -> Self {
        Self { places, exact, ..Self::default() }
    }

    /// Takes an event in. What cannot be (of strangers, a second division) is ignored.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::NewRank(come) => self.guests.push(Guest { come, got: None, left: false }),
            Event::Divided { whole, shares } if self.divided.is_none() => {
                for guest in self.guests.iter_mut().filter(|guest| !guest.come.extra) {
                    guest.got = shares.get(guest.come.place as usize).copied();
                }
                self.divided = Some((whole, shares));
            }
            Event::Divided { .. } => {}
            Event::Got { process, bytes } => {
                if let Some(guest) = self.find(process) {
                    guest.got = Some(bytes);
                }
            }
            Event::Left { process } => {
                if let Some(guest) = self.find(process) {
                    guest.left = true;
                }
            }
        }
    }

    fn find(&mut self, process: Process) -> Option<&mut Guest> {
        self.guests.iter_mut().rev().find(|guest| guest.come.process == process)
    }

    /// Everybody who ever came.
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    /// Those who have not left and live.
    pub fn living(&self, alive: impl Fn(Process) -> bool) -> impl Iterator<Item = &Guest> {
        self.guests.iter().filter(move |guest| !guest.left && alive(guest.come.process))
    }

    /// The place of one who comes with this number on the node, or with none, and whether another lives there already.
    pub fn place_for(&self, local: Option<u32>, alive: impl Fn(Process) -> bool) -> (u32, bool) {
        let used = |place: &u32| self.guests.iter().any(|guest| guest.come.place == *place);
        let place = local.unwrap_or_else(|| {
            let free = (0..self.places).find(|place| !used(place));
            free.or_else(|| (0..self.places).find(|place| !self.living(&alive).any(|guest| guest.come.place == *place)))
                .unwrap_or(self.places)
        });
        let taken = place >= self.places || self.living(&alive).any(|guest| guest.come.place == place);
        (place, taken)
    }

    /// True when every place has been come for.
    pub fn all_came(&self) -> bool {
        (0..self.places).all(|place| self.guests.iter().any(|guest| guest.come.place == place))
    }

    /// True when nobody is in the book any more, and nobody is expected. Where nobody knows how many will come, those who came
    /// are all.
    pub fn is_over(&self, alive: impl Fn(Process) -> bool) -> bool {
        let came = if self.exact { self.all_came() } else { !self.guests.is_empty() };
        came && self.living(alive).next().is_none()
    }

    /// Bytes that are divided, and by place; once they are.
    pub fn divided(&self) -> Option<&(u64, Vec<u64>)> {
        self.divided.as_ref()
    }

    /// The division among those who are here, with even parts for those who are not. Where they were told different nears the
    /// smallest is divided.
    pub fn division(&self) -> Event {
        let here = || self.guests.iter().filter(|guest| !guest.come.extra);
        let whole = here().filter(|guest| guest.come.claim != Claim::Off).map(|guest| guest.come.near).min();
        let whole = whole.or_else(|| self.guests.iter().map(|guest| guest.come.near).min()).unwrap_or(0);
        let claim = |place| here().rfind(|guest| guest.come.place == place).map(|guest| guest.come.claim);
        let claims: Vec<Claim> = (0..self.places).map(|place| claim(place).unwrap_or_default()).collect();
        Event::Divided { whole, shares: divide(whole, &claims) }
    }

    /// What is due to `process`, which came after the division: what it asks for, or what was kept for its place; at most what the
    /// dead and those who left have given back besides.
    pub fn due_to_late(&self, process: Process, alive: impl Fn(Process) -> bool) -> Option<u64> {
        let (whole, shares) = self.divided.as_ref()?;
        let late = &self.guests.iter().rev().find(|guest| guest.come.process == process)?.come;
        let held: u64 = self.living(alive).filter(|guest| guest.come.process != process).filter_map(|guest| guest.got).sum();
        let is_kept = |place: u32| place != late.place && !self.guests.iter().any(|guest| guest.come.place == place);
        let kept: u64 = (0..self.places).zip(shares).filter(|(place, _)| is_kept(*place)).map(|(_, share)| share).sum();
        let free = whole.saturating_sub(held).saturating_sub(kept);
        let even = whole / u64::from(self.places.max(1));
        let wish = late.claim.asked(*whole).unwrap_or_else(|| even.max(shares.get(late.place as usize).copied().unwrap_or(0)));
        Some(wish.min(free) / PAGE as u64 * PAGE as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: u64 = PAGE as u64;

    fn process(pid: u32) -> Process {
        Process { pid, start: 1 }
    }

    fn come(book: &mut Book, pid: u32, local: Option<u32>, claim: Claim, alive: impl Fn(Process) -> bool) {
        let (place, extra) = book.place_for(local, alive);
        let come = NewRank { process: process(pid), rank: pid, place, extra, near: 1000 * P, claim, stats: None };
        book.apply(Event::NewRank(come));
    }

    fn got(book: &Book, pid: u32) -> Option<u64> {
        book.guests().iter().rev().find(|guest| guest.come.process.pid == pid)?.got.map(|bytes| bytes / P)
    }

    #[test]
    fn all_come_in_time() {
        let mut book = Book::new(4, true);
        for pid in [3, 1, 0, 2] {
            assert!(!book.all_came());
            let claim = if pid == 1 { Claim::Part { parts: 4, of: 10 } } else { Claim::Fair };
            come(&mut book, pid, Some(pid), claim, |_| true);
        }
        assert!(book.all_came() && book.divided().is_none());
        book.apply(book.division());
        assert_eq!((0..4).map(|pid| got(&book, pid)).collect::<Vec<_>>(), [Some(200), Some(400), Some(200), Some(200)]);
        for pid in 0..4 {
            assert!(!book.is_over(|_| true));
            book.apply(Event::Left { process: process(pid) });
        }
        assert!(book.is_over(|_| true));
    }

    #[test]
    fn an_unknown_number_of_ranks_is_over_when_nobody_lives() {
        let mut book = Book::new(64, false);
        assert!(!book.is_over(|_| true), "just begun");
        (0..2).for_each(|pid| come(&mut book, pid, None, Claim::Fair, |_| true));
        book.apply(Event::Left { process: process(0) });
        assert!(!book.is_over(|_| true));
        assert!(book.is_over(|who| who.pid != 1), "the other one is dead");
        book.apply(Event::Left { process: process(1) });
        assert!(book.is_over(|_| true));
        let mut known = Book::new(64, true);
        come(&mut known, 0, None, Claim::Fair, |_| true);
        known.apply(Event::Left { process: process(0) });
        assert!(!known.is_over(|_| true), "63 are expected");
    }

    #[test]
    fn who_comes_late_gets_what_was_kept_and_what_came_back() {
        let mut book = Book::new(4, true);
        (0..2).for_each(|pid| come(&mut book, pid, Some(pid), Claim::Fair, |_| true));
        book.apply(book.division());
        come(&mut book, 3, Some(3), Claim::Part { parts: 1, of: 1 }, |_| true);
        // Nobody has given anything back: its own quarter.
        assert_eq!(book.due_to_late(process(3), |_| true).map(|bytes| bytes / P), Some(250));
        // Rank 1 is dead.
        assert_eq!(book.due_to_late(process(3), |who| who.pid != 1).map(|bytes| bytes / P), Some(500));
        book.apply(Event::Got { process: process(3), bytes: 250 * P });
        // Rank 1 is started again in its own place, and once more while that one lives.
        come(&mut book, 11, Some(1), Claim::Fair, |who| who.pid != 1);
        assert_eq!(book.due_to_late(process(11), |who| who.pid != 1).map(|bytes| bytes / P), Some(250));
        book.apply(Event::Got { process: process(11), bytes: 250 * P });
        come(&mut book, 12, Some(1), Claim::Fair, |who| who.pid != 1);
        assert!(book.guests().last().expect("came").come.extra);
        assert_eq!(book.due_to_late(process(12), |who| who.pid != 1), Some(0));
    }

    #[test]
    fn ranks_without_a_number_take_free_places() {
        let mut book = Book::new(2, true);
        (5..8).for_each(|pid| come(&mut book, pid, None, Claim::Fair, |_| true));
        let places: Vec<_> = book.guests().iter().map(|guest| (guest.come.place, guest.come.extra)).collect();
        assert_eq!(places, [(0, false), (1, false), (2, true)]);
    }

    #[test]
    fn events_round_trip_as_text() {
        let mut book = Book::new(1, true);
        come(&mut book, 7, None, Claim::Bytes(5), |_| true);
        for event in [Event::NewRank(book.guests()[0].come.clone()), book.division(), Event::Left { process: process(7) }] {
            let text = serde_json::to_string(&event).expect("JSON");
            assert_eq!(serde_json::from_str::<Event>(&text).expect("read"), event, "{text}");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        NewRank(u32, Claim),
        Leave(usize),
        Die(usize),
        Divide,
    }

    fn step() -> impl Strategy<Value = Step> {
        let claim = prop_oneof![
            Just(Claim::Fair),
            (1u64..=10).prop_map(|parts| Claim::Part { parts, of: 10 }),
            (0u64..2000 * P).prop_map(Claim::Bytes)
        ];
        prop_oneof![
            4 => (0u32..6, claim).prop_map(|(local, claim)| Step::NewRank(local, claim)),
            1 => (0usize..20).prop_map(Step::Leave),
            1 => (0usize..20).prop_map(Step::Die),
            1 => Just(Step::Divide),
        ]
    }

    proptest! {
        /// Whatever order they come, leave and die in: never more than the whole, and a first comer finds its part.
        #[test]
        fn never_more_than_the_whole(steps in prop::collection::vec(step(), 0..60)) {
            let mut book = Book::new(5, true);
            let mut dead = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let pid = number as u32 + 1;
                match step {
                    Step::NewRank(local, claim) => {
                        let first = local < 5 && !book.guests().iter().any(|guest| guest.come.place == local);
                        come(&mut book, pid, Some(local), claim, |who| !dead.contains(&who));
                        if let Some(bytes) = book.due_to_late(process(pid), |who| !dead.contains(&who)) {
                            if first {
                                let kept = 1000 / 5 / 4 * P;
                                prop_assert!(bytes >= claim.asked(1000 * P).unwrap_or(u64::MAX).min(kept) / P * P);
                            }
                            book.apply(Event::Got { process: process(pid), bytes });
                        }
                    }
                    Step::Leave(index) => {
                        if let Some(guest) = book.guests().get(index) {
                            book.apply(Event::Left { process: guest.come.process });
                        }
                    }
                    Step::Die(index) => dead.extend(book.guests().get(index).map(|guest| guest.come.process)),
                    Step::Divide if book.guests().is_empty() => {}
                    Step::Divide => book.apply(book.division()),
                }
                let held: u64 = book.living(|who| !dead.contains(&who)).filter_map(|guest| guest.got).sum();
                prop_assert!(held <= 1000 * P, "{held}");
            }
        }
    }
}
