//! Every visit of a page by a program of `tests/truth`, in order, as the program writes it down (`trace.h` has the format): what
//! memories of each size would miss, of the program and of each of its objects by itself.
//!
//! Pure but for the reader. First visits count as nothing: pages that hold nothing yet come from nowhere.

use anyhow::{Context, Result, bail, ensure};
use nearfar_core::trace::Stack;
use std::io::Read;

/// What the upper eight bits of a word say.
const OBJECT: u64 = 1;
const GONE: u64 = 2;
const ROUND: u64 = 3;
const END: u64 = 4;
const NAME_WORDS: usize = 4;
/// Visits after so few others are part of what a loop does at a time: whether rounds are alike is told by those beyond.
const NEAR_BY: usize = 16;

/// How often it is looked at where pages lie in the order of their last visits: as many times while as many visits are made as
/// there are pages.
const LOOKS: usize = 8;

/// Visits of one object, or of all.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    pub name: String,
    /// Visits by the number of other pages that were visited since the page's last visit, up to the end of the first round and
    /// afterwards.
    first: Vec<u64>,
    later: Vec<u64>,
    /// Visits beyond [`NEAR_BY`] in each round.
    far: Vec<u64>,
    /// Its pages now, and at most.
    now: usize,
    pub pages: usize,
    /// Its pages by how many others were visited later, summed over some moments, and how many moments that are.
    lie: Vec<u64>,
    moments: u64,
}

impl Visits {
    fn visit(&mut self, distance: Option<usize>) {
        let Some(distance) = distance else {
            self.now += 1;
            self.pages = self.pages.max(self.now);
            return;
        };
        let counts = if self.far.len() > 1 { &mut self.later } else { &mut self.first };
        if counts.len() <= distance {
            counts.resize(distance + 1, 0);
        }
        counts[distance] += 1;
        if let Some(far) = self.far.last_mut() {
            *far += u64::from(distance >= NEAR_BY);
        }
    }

    /// Of its pages, how many are in a memory of `pages` pages of the program, as a mean over the time that there are any of it.
    pub fn held(&self, pages: usize) -> f64 {
        self.lie.iter().take(pages).sum::<u64>() as f64 / self.moments.max(1) as f64
    }

    /// Visits that a memory of `pages` pages of the program misses in a run of so many rounds, those that were not written down
    /// being as the mean of those after the first, which does not begin as they do.
    pub fn misses(&self, pages: usize, rounds: u64) -> f64 {
        let beyond = |counts: &[u64]| counts.iter().skip(pages).sum::<u64>() as f64;
        let seen = self.far.len().saturating_sub(1);
        let each = if seen > 0 { beyond(&self.later) / seen as f64 } else { 0.0 };
        beyond(&self.first) + each * rounds.saturating_sub(1) as f64
    }

    /// By how much rounds after the first differ, as a share of their mean.
    fn unlike(&self) -> f64 {
        let rounds = self.far.get(1..).unwrap_or_default();
        let (least, most) = (rounds.iter().min().copied().unwrap_or(0), rounds.iter().max().copied().unwrap_or(0));
        if most > 0 { (most - least) as f64 / most as f64 } else { 0.0 }
    }
}

/// A range of pages that is one object.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    pages: u64,
    object: usize,
}

impl Range {
    fn holds(&self, page: u64) -> bool {
        page.wrapping_sub(self.first) < self.pages
    }
}

/// All that a program wrote down.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The program as a whole.
    pub all: Visits,
    /// Objects by name.
    pub objects: Vec<Visits>,
    ranges: Vec<Range>,
    stack: Stack,
    /// Visits beyond [`NEAR_BY`] since it was looked at where pages lie.
    unseen: usize,
}

impl Trace {
    /// Reads all of it.
    ///
    /// # Errors
    /// When it ends too early or holds what is no trace.
    pub fn read(mut from: impl Read) -> Result<Self> {
        let mut trace = Self { all: Visits { name: "all".into(), ..Visits::default() }, ..Self::default() };
        let mut words = Words { from: &mut from, bytes: vec![0; 1 << 16], at: 0, filled: 0 };
        let mut last = None;
        loop {
            let word = words.next().context("the trace has no end")?;
            let (what, number) = (word >> 56, word & ((1 << 56) - 1));
            match what {
                0 => {
                    let range = match last.filter(|range: &Range| range.holds(number)) {
                        Some(range) => range,
                        None => *trace
                            .ranges
                            .iter()
                            .find(|range| range.holds(number))
                            .context("it has a page that belongs to no object")?,
                    };
                    last = Some(range);
                    let distance = trace.stack.visit(number);
                    trace.all.visit(distance);
                    trace.objects[range.object].visit(distance);
                    trace.unseen += usize::from(distance.is_none_or(|distance| distance >= NEAR_BY));
                    if trace.unseen * LOOKS > trace.stack.len() {
                        trace.look();
                    }
                }
                OBJECT => {
                    let first = words.next()?;
                    let mut name = Vec::new();
                    for _ in 0..NAME_WORDS {
                        name.extend(words.next()?.to_le_bytes());
                    }
                    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
                    trace.begin(first, number, name);
                    last = None;
                }
                GONE => {
                    let first = words.next()?;
                    let range =
                        *trace.ranges.iter().find(|range| range.holds(first)).context("it ends an object that never began")?;
                    for page in first..first + number {
                        let gone = usize::from(trace.stack.remove(page));
                        trace.all.now -= gone;
                        let now = &mut trace.objects[range.object].now;
                        // An object that another one took the place of has lost its pages already.
                        *now = now.saturating_sub(gone);
                    }
                    trace.ranges.retain(|other| other.first != range.first);
                    last = None;
                }
                ROUND => trace.round(),
                END => return Ok(trace),
                _ => bail!("the trace has a record of the unknown kind {what}"),
            }
        }
    }

    /// A round begins; where pages lay in the first is forgotten, as it does not begin as the others do.
    fn round(&mut self) {
        if self.rounds() == 1 {
            for object in &mut self.objects {
                object.lie.clear();
                object.moments = 0;
            }
        }
        self.of_all().for_each(|visits| visits.far.push(0));
    }

    /// Looks at where the pages of each object lie.
    fn look(&mut self) {
        self.unseen = 0;
        let mut ranges = self.ranges.clone();
        for (at, page) in self.stack.iter().enumerate() {
            let Some(which) = ranges.iter().position(|range| range.holds(page)) else { continue };
            // Neighbours in this order are neighbours in memory, mostly.
            ranges.swap(0, which);
            let lie = &mut self.objects[ranges[0].object].lie;
            if lie.len() <= at {
                lie.resize(at + 1, 0);
            }
            lie[at] += 1;
        }
        self.objects.iter_mut().filter(|object| object.now > 0).for_each(|object| object.moments += 1);
    }

    fn of_all(&mut self) -> impl Iterator<Item = &mut Visits> {
        std::iter::once(&mut self.all).chain(&mut self.objects)
    }

    /// An object begins, perhaps where others were.
    fn begin(&mut self, first: u64, pages: u64, name: String) {
        let object = self.objects.iter().position(|object| object.name == name).unwrap_or(self.objects.len());
        if object == self.objects.len() {
            let far = vec![0; self.all.far.len()];
            self.objects.push(Visits { name, far, ..Visits::default() });
        }
        self.ranges.retain(|range| range.first >= first + pages || first >= range.first + range.pages);
        self.ranges.push(Range { first, pages, object });
    }

    /// Rounds that were written down.
    pub fn rounds(&self) -> u64 {
        self.all.far.len() as u64
    }

    /// By how much its rounds after the first differ, as a share.
    pub fn unlike(&self) -> f64 {
        self.all.unlike()
    }
}

/// Words of 64 bits.
struct Words<R> {
    from: R,
    bytes: Vec<u8>,
    at: usize,
    filled: usize,
}

impl<R: Read> Words<R> {
    fn next(&mut self) -> Result<u64> {
        if self.at == self.filled {
            (self.at, self.filled) = (0, 0);
            while self.filled == 0 || !self.filled.is_multiple_of(8) {
                let some = self.from.read(&mut self.bytes[self.filled..])?;
                ensure!(some > 0, "it ends too early");
                self.filled += some;
            }
        }
        let word = self.bytes[self.at..self.at + 8].try_into()?;
        self.at += 8;
        Ok(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(first: u64, pages: u64, name: u8) -> Vec<u64> {
        vec![OBJECT << 56 | pages, first, u64::from(name), 0, 0, 0]
    }

    fn read(words: Vec<Vec<u64>>) -> Result<Trace> {
        let bytes: Vec<u8> = words.concat().into_iter().flat_map(u64::to_le_bytes).collect();
        Trace::read(bytes.as_slice())
    }

    const NEXT: u64 = ROUND << 56;

    /// 50 pages once a round, 10 others four times, in three rounds after both were filled.
    fn sweeps() -> Vec<Vec<u64>> {
        let mut words = vec![object(100, 50, b'a'), object(200, 10, b'b'), (100..150).chain(200..210).collect()];
        for _ in 0..3 {
            words.extend([vec![NEXT], (100..150).collect()]);
            words.extend((0..4).map(|_| (200..210).collect()));
        }
        words
    }

    #[test]
    fn misses_of_sweeps_are_as_counted_by_hand() {
        let trace = read([sweeps(), vec![vec![END << 56]]].concat()).expect("a trace");
        let [a, b] = trace.objects.as_slice() else { panic!("{:?}", trace.objects) };
        assert_eq!((trace.rounds(), a.name.as_str(), a.pages, b.pages, trace.all.pages), (3, "a", 50, 10, 60));
        assert_eq!(trace.unlike(), 0.0);
        // Each page of a comes back after all others; those of b after all of b, or after all.
        assert_eq!([10, 59, 60].map(|pages| a.misses(pages, 7)), [350.0, 350.0, 0.0], "seven rounds go on as three began");
        assert_eq!([9, 10, 59, 60].map(|pages| b.misses(pages, 3)), [120.0, 30.0, 30.0, 0.0]);
        assert_eq!((a.held(60), b.held(60)), (50.0, 10.0));
        assert!((a.held(30) + b.held(30) - 30.0).abs() < 1e-9, "{} and {}", a.held(30), b.held(30));
        // Together: from 10 pages on b comes back at once three times of four, the rest is one sweep of 60.
        assert_eq!([9, 10, 59, 60].map(|pages| trace.all.misses(pages, 7)), [7.0 * 90.0, 7.0 * 60.0, 7.0 * 60.0, 0.0]);
    }

    #[test]
    fn what_is_gone_comes_back_as_new() {
        let round = || vec![vec![NEXT], object(5, 20, b'w'), (5..25).chain(5..25).collect(), vec![GONE << 56 | 20, 5]];
        let trace = read([round(), round(), vec![vec![END << 56]]].concat()).expect("a trace");
        assert_eq!((trace.all.misses(0, 2), trace.all.misses(20, 2), trace.objects[0].pages), (40.0, 0.0, 20));
    }

    #[test]
    fn rounds_that_differ_are_told() {
        let mut words = sweeps();
        words.extend([vec![NEXT], (100..150).collect(), vec![END << 56]]);
        let trace = read(words).expect("a trace");
        // Of 60 visits that are not near by, ten are missing in the last.
        assert!((trace.unlike() - 1.0 / 6.0).abs() < 1e-9, "{}", trace.unlike());
    }

    #[test]
    fn what_is_cut_off_is_no_trace() {
        assert!(read(sweeps()).is_err());
        assert!(read(vec![vec![7]]).is_err(), "a page of nothing");
    }
}
