//! Synthetic traces of unit accesses: what eviction policies are judged by. Deterministic; sizes are counted in units.

use crate::policy::Unit;
use crate::policy::replay::{Access, Action};
use crate::random_numbers::{unit, xorshift};

/// Builds traces from simple parts, each appended to what is there.
#[derive(Clone, Debug)]
pub struct Trace {
    accesses: Vec<Access>,
    pages: u32,
    state: u64,
    written: u64,
}

impl Trace {
    /// An empty trace of units of `pages` pages: 512 makes whole blocks, 16 or less chunks.
    pub fn new(pages: u32) -> Self {
        Self { accesses: Vec::new(), pages, state: 0x2545_f491_4f6c_dd1d, written: 0 }
    }

    /// From now on visits to one unit in `every` change it: always the same units, as with arrays of which some are results.
    pub fn writing(mut self, every: u64) -> Self {
        self.written = every;
        self
    }

    /// Visits unit number `number`.
    pub fn visit(&mut self, number: u64) {
        let act = if self.written > 0 && number.is_multiple_of(self.written) { Action::Write } else { Action::Read };
        let number = number as usize;
        let unit = if self.pages > 16 { Unit::block(number) } else { Unit::chunk(number / 32, number % 32) };
        self.accesses.push(Access { unit, pages: self.pages, act });
    }

    /// `laps` sweeps over units `first..first + count`.
    pub fn sweep(mut self, first: u64, count: u64, laps: u64) -> Self {
        (0..laps * count).for_each(|i| self.visit(first + i % count));
        self
    }

    /// `laps` sweeps over three arrays of `count` units side by side, two of which are read and the third changed.
    pub fn triad(mut self, first: u64, count: u64, laps: u64) -> Self {
        for i in 0..laps * count {
            for (array, written) in [(1, 0), (2, 0), (0, 1)] {
                self.written = written;
                self.visit(first + array * count + i % count);
            }
        }
        self
    }

    /// `laps` sweeps that go up and down by turns.
    pub fn zigzag(mut self, first: u64, count: u64, laps: u64) -> Self {
        for lap in 0..laps {
            (0..count).for_each(|i| self.visit(first + if lap % 2 == 0 { i } else { count - 1 - i }));
        }
        self
    }

    /// `visits` to units of `first..first + count`, all equally likely.
    pub fn uniform(mut self, first: u64, count: u64, visits: u64) -> Self {
        for _ in 0..visits {
            let number = first + self.random() % count;
            self.visit(number);
        }
        self
    }

    /// `visits` to units of `first..first + count`, the k-th most likely with weight k^-`skew`; which is which is scattered.
    pub fn zipf(mut self, first: u64, count: u64, skew: f64, visits: u64) -> Self {
        let sampler = Zipf::new(count, skew);
        for _ in 0..visits {
            let number = first + sampler.scattered(self.random());
            self.visit(number);
        }
        self
    }

    /// A window of `width` units of which random ones are visited moves through `first..first + count` in `visits` visits.
    pub fn drift(mut self, first: u64, count: u64, width: u64, visits: u64) -> Self {
        for i in 0..visits {
            let number = first + (i * (count - width) / visits) + self.random() % width;
            self.visit(number);
        }
        self
    }

    /// Sweeps in which each unit is visited again `plane` and `2 * plane` units later, as in a stencil.
    pub fn stencil(mut self, first: u64, count: u64, plane: u64, laps: u64) -> Self {
        for i in 0..laps * count {
            let at = i % count;
            for back in [0, plane, 2 * plane] {
                if at >= back {
                    self.visit(first + at - back);
                }
            }
        }
        self
    }

    /// Tiles of `tile` units, each swept `inner` times before the next; all of it `laps` times.
    pub fn tiles(mut self, first: u64, count: u64, tile: u64, inner: u64, laps: u64) -> Self {
        for _ in 0..laps {
            for start in (0..count).step_by(tile as usize) {
                for _ in 0..inner {
                    (start..(start + tile).min(count)).for_each(|i| self.visit(first + i));
                }
            }
        }
        self
    }

    /// LU decomposition of a matrix of `panels` panels of `width` units, right-looking: each panel is read again for every one
    /// behind it, which is changed; what is left shrinks.
    pub fn lu(mut self, first: u64, panels: u64, width: u64) -> Self {
        for done in 0..panels {
            for panel in done + 1..panels {
                (0..width).for_each(|i| self.visit(first + done * width + i));
                (0..width).for_each(|i| self.visit(first + panel * width + i));
            }
        }
        self
    }

    /// A sweep over `count` units, repeated, with one zipf-distributed visit to `hot` other units after every `every` of it.
    pub fn sweep_and_zipf(mut self, count: u64, hot: u64, skew: f64, every: u64, visits: u64) -> Self {
        let sampler = Zipf::new(hot, skew);
        for i in 0..visits {
            self.visit(i % count);
            if i % every == 0 {
                let number = count + sampler.scattered(self.random());
                self.visit(number);
            }
        }
        self
    }

    /// The trace.
    pub fn done(self) -> Vec<Access> {
        self.accesses
    }

    fn random(&mut self) -> u64 {
        xorshift(&mut self.state)
    }
}

/// The traces by which policies are judged, for a near of `c` units of `pages` pages; each third unit is changed when visited.
/// The first part of a name says what it is like, a number how much data there is in nears.
pub fn all(c: u64, pages: u32) -> Vec<(&'static str, Vec<Access>)> {
    let t = || Trace::new(pages).writing(3);
    let list = [
        ("sweep 1.05", t().sweep(0, c * 21 / 20, 20)),
        ("sweep 1.25", t().sweep(0, c * 5 / 4, 20)),
        ("sweep 2", t().sweep(0, c * 2, 20)),
        ("sweep 4", t().sweep(0, c * 4, 20)),
        ("sweep 8", t().sweep(0, c * 8, 20)),
        ("triad 1.2", t().triad(0, c * 2 / 5, 20)),
        ("triad 3", t().triad(0, c, 20)),
        ("up and down 2", t().zigzag(0, c * 2, 20)),
        ("random 2", t().uniform(0, c * 2, c * 40)),
        ("random 4", t().uniform(0, c * 4, c * 40)),
        ("zipf 0.7, 4", t().zipf(0, c * 4, 0.7, c * 40)),
        ("zipf 1.0, 8", t().zipf(0, c * 8, 1.0, c * 40)),
        ("zipf 1.2, 8", t().zipf(0, c * 8, 1.2, c * 40)),
        ("scan 4 + zipf", t().sweep_and_zipf(c * 4, c, 0.9, 2, c * 40)),
        ("scan 2 + hot", t().sweep_and_zipf(c * 2, c / 4, 0.5, 1, c * 40)),
        ("phases of loops 0.9", t().sweep(0, c * 9 / 10, 10).sweep(c * 10, c * 9 / 10, 10).sweep(0, c * 9 / 10, 10)),
        (
            "phases, random 0.9",
            t().uniform(0, c * 9 / 10, c * 10).uniform(c * 10, c * 9 / 10, c * 10).uniform(c * 20, c * 9 / 10, c * 10),
        ),
        ("phases of loops 2", t().sweep(0, c * 2, 10).sweep(c * 10, c * 2, 10)),
        ("drift 0.5", t().drift(0, c * 10, c / 2, c * 60)),
        ("drift 0.95", t().drift(0, c * 10, c * 95 / 100, c * 60)),
        ("stencil 2, thin", t().stencil(0, c * 2, c / 50, 10)),
        ("stencil 2", t().stencil(0, c * 2, c / 10, 10)),
        ("stencil 2, wide", t().stencil(0, c * 2, c / 4, 10)),
        ("tiles 0.5 of 4", t().tiles(0, c * 4, c / 2, 5, 4)),
        ("tiles 0.9 of 4", t().tiles(0, c * 4, c * 9 / 10, 5, 4)),
        ("tiles 1.5 of 6", t().tiles(0, c * 6, c * 3 / 2, 5, 4)),
        ("lu 2", t().lu(0, 20, c / 10)),
        ("lu 1.2", t().lu(0, 12, c / 10)),
    ];
    list.map(|(name, trace)| (name, trace.done())).into()
}

/// Zipf by inversion of the cumulative weights.
struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    fn new(count: u64, skew: f64) -> Self {
        let mut sum = 0.0;
        let add = |k: u64| {
            sum += (k as f64).powf(-skew);
            sum
        };
        Self { cumulative: (1..=count).map(add).collect() }
    }

    fn scattered(&self, random: u64) -> u64 {
        let count = self.cumulative.len() as u64;
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let point = unit(random) * total;
        let rank = (self.cumulative.partition_point(|&c| c < point) as u64).min(count - 1);
        // A multiplier without common factors permutes the ranks.
        let factor = (count / 2..).find(|&f| gcd(f, count) == 1).unwrap_or(1);
        (u128::from(rank) * u128::from(factor) % u128::from(count)) as u64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
