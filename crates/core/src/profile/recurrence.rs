//! How long until a page is touched again: the distribution of waits, from looks some of which nobody ended.
//!
//! A page taken at a random moment waits for the *forward recurrence time* of its visits, whose density at t is the rate (per page and
//! second) of visits that follow a gap longer than t. Such a density never rises, so the estimate is the least concave majorant of the
//! Kaplan-Meier distribution (Grenander), with neighbouring slopes joined where they do not differ beyond noise: the bare majorant is
//! off by a factor of two near 0, where caches are.

/// What a look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was touched then.
    Touched,
    /// It was not, up to then.
    Unfinished,
    /// It was not, and never will be: its memory went.
    Never,
}

/// A wait in seconds, and how much it counts.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Seconds.
    pub seconds: f64,
    /// In any unit.
    pub weight: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// Looks of one stretch of the run, 0..[`STRATA`].
    pub stratum: usize,
}

/// Stretches of a run that are told apart. Kaplan and Meier take what ends a look unfinished to have nothing to do with how long it would
/// have lasted: true within a stretch, but where a page is filled in order at first and visited at random afterwards, the looks that last
/// longest are those of the beginning.
pub const STRATA: usize = 12;
/// Looks that a stratum has at least.
const LEAST_LOOKS: usize = 60;

/// The stratum of look number `at` of `all` in order of time.
pub fn stratum(at: usize, all: usize) -> usize {
    let strata = (all / LEAST_LOOKS).clamp(1, STRATA);
    (at * strata / all.max(1)).min(strata - 1)
}

/// What is at risk of a touch in a stratum.
#[derive(Clone, Copy, Debug, Default)]
struct Risk {
    /// Share of all weight that began here.
    share: f64,
    /// Weight that is still untouched and looked at.
    at_risk: f64,
    /// Share of its own that is still untouched, as Kaplan and Meier estimate it.
    survival: f64,
}

/// What is supposed of a stretch between two knots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The density is constant: periodic visits.
    Even,
    /// The hazard is constant: visits at random.
    Memoryless,
}

/// A stretch of the curve.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: f64,
    end: f64,
    /// The distribution (even) or the cumulative hazard (memoryless) at its start and end.
    low: f64,
    high: f64,
    /// Touches within, in the unit of weights.
    number: f64,
    /// Sum of the squares of their weights.
    squares: f64,
    /// What their number would be proportional to if all stretches were alike.
    extent: f64,
}

impl Stretch {
    fn rise(&self) -> f64 {
        self.high - self.low
    }

    fn slope(&self) -> f64 {
        self.rise() / (self.end - self.start).max(LEAST)
    }

    /// Touches within, as many of equal weight as would be as uncertain.
    fn count(&self) -> f64 {
        if self.squares > 0.0 { self.number * self.number / self.squares } else { 0.0 }
    }

    fn join(self, next: Self) -> Self {
        Self {
            end: next.end,
            high: next.high,
            number: self.number + next.number,
            squares: self.squares + next.squares,
            extent: self.extent + next.extent,
            ..self
        }
    }
}

/// Shorter waits cannot be told apart.
const LEAST: f64 = 1e-9;
/// Twice the gain in log-likelihood that two slopes instead of one must bring. The place of the knot was chosen among many, so that it
/// must be more than the 3.8 of a single test.
pub const SIGNIFICANT: f64 = 9.0;
/// What may be there, though it is not sure: for intervals.
pub const POSSIBLE: f64 = 3.0;
/// Fewer touches are no first stretch of their own: the steepest of the first few is steep by chance.
const FEWEST: f64 = 5.0;

/// The distribution of waits.
#[derive(Clone, Debug)]
pub struct Recurrence {
    shape: Shape,
    stretches: Vec<Stretch>,
    /// Looks, as many of equal weight as would be as uncertain.
    looks: f64,
}

impl Recurrence {
    /// From waits in order of their seconds; two stretches must be so much likelier than one.
    pub fn of(waits: &[Wait], shape: Shape, price: f64) -> Self {
        let total: f64 = waits.iter().map(|wait| wait.weight).sum();
        let squares: f64 = waits.iter().map(|wait| wait.weight * wait.weight).sum();
        let looks = if squares > 0.0 { total * total / squares } else { 0.0 };
        let mut curve = Self { shape, stretches: Vec::new(), looks };
        let mut risks = [Risk { survival: 1.0, ..Risk::default() }; STRATA];
        for wait in waits {
            risks[wait.stratum.min(STRATA - 1)].at_risk += wait.weight;
        }
        risks.iter_mut().for_each(|risk| risk.share = if total > 0.0 { risk.at_risk / total } else { 0.0 });
        let (mut untouched, mut exposed, mut even) = (1.0_f64, total, total);
        let (mut height, mut extent, mut begun, mut before) = (0.0_f64, 0.0, 0.0, 0.0);
        for wait in waits {
            let time = wait.seconds.max(LEAST);
            // In an even stretch, touches are as many as what is at risk would have been had nothing been touched before.
            extent += (time - before) * if shape == Shape::Even { even } else { exposed };
            before = time;
            let risk = &mut risks[wait.stratum.min(STRATA - 1)];
            let of_all = |risk: &Risk| risk.at_risk / risk.survival.max(1e-6);
            let even_before = of_all(risk);
            if wait.outcome == Outcome::Touched && risk.at_risk > 0.0 && wait.weight > 0.0 {
                let hazard = (wait.weight / risk.at_risk).min(1.0);
                let touched = risk.share * risk.survival * hazard;
                let jump = if shape == Shape::Even { touched } else { (touched / untouched.max(1e-9)).min(1.0) };
                risk.survival -= risk.survival * hazard;
                untouched -= touched;
                let (low, number) = (height, wait.weight);
                height += jump;
                curve.push(Stretch { start: begun, end: time, low, high: height, number, squares: number * number, extent });
                (begun, extent) = (time, 0.0);
            }
            if wait.outcome != Outcome::Never || shape == Shape::Memoryless {
                risk.at_risk -= wait.weight;
                exposed -= wait.weight;
            }
            even += of_all(risk) - even_before;
        }
        if before > begun {
            curve.stretches.push(Stretch {
                start: begun,
                end: before,
                low: height,
                high: height,
                number: 0.0,
                squares: 0.0,
                extent,
            });
        }
        curve.prune(price);
        if shape == Shape::Memoryless {
            curve.level();
        }
        curve
    }

    /// Gives stretches of constant hazard the slope of touches per exposure: the last few touches leap high by chance.
    fn level(&mut self) {
        let mut height = 0.0;
        for stretch in &mut self.stretches {
            let slope = if stretch.extent > 0.0 { stretch.number / stretch.extent } else { stretch.slope() };
            stretch.low = height;
            height += slope * (stretch.end - stretch.start);
            stretch.high = height;
        }
    }

    /// Adds a stretch and keeps the curve concave.
    fn push(&mut self, mut next: Stretch) {
        while let Some(&before) = self.stretches.last() {
            if next.start < next.end && before.slope() > next.slope() {
                break;
            }
            self.stretches.pop();
            next = before.join(next);
        }
        self.stretches.push(next);
    }

    /// Joins neighbours such that log-likelihood less a price per stretch is highest, of all ways to do so.
    fn prune(&mut self, price: f64) {
        let bare = std::mem::take(&mut self.stretches);
        // Weight of a touch in the likelihood.
        let all = bare.iter().copied().reduce(Stretch::join).map_or((0.0, 0.0), |all| (all.number, all.squares));
        let unit = if all.0 > 0.0 { all.1 / all.0 } else { 1.0 };
        // Best value of what ends before each stretch, and where its last part begins.
        let mut best = vec![(0.0, 0)];
        for end in 1..=bare.len() {
            let mut most = (f64::NEG_INFINITY, 0);
            let mut part = bare[end - 1];
            for begin in (0..end).rev() {
                if begin + 1 < end {
                    part = bare[begin].join(part);
                }
                let count = part.count();
                if begin == 0 && end < bare.len() && count > 0.0 && count < FEWEST {
                    continue;
                }
                let value = if count > 0.0 { part.number / unit * (part.number / part.extent.max(LEAST)).ln() } else { 0.0 };
                let value = best[begin].0 + value - 0.5 * price;
                if value > most.0 {
                    most = (value, begin);
                }
            }
            best.push(most);
        }
        let mut end = bare.len();
        while end > 0 {
            let begin = best[end].1.min(end - 1);
            self.stretches.extend(bare[begin..end].iter().copied().reduce(Stretch::join));
            end = begin;
        }
        self.stretches.reverse();
    }

    /// The stretch that holds `seconds`, the end belonging to the next.
    fn holding(&self, seconds: f64) -> Option<&Stretch> {
        self.stretches.get(self.stretches.partition_point(|stretch| stretch.end <= seconds))
    }

    /// The curve's height.
    fn height(&self, seconds: f64) -> f64 {
        let Some(stretch) = self.holding(seconds) else {
            return self.stretches.last().map_or(0.0, |stretch| stretch.high);
        };
        if stretch.start == 0.0
            && let Some((begin, decay)) = self.fall()
        {
            return begin * -(-decay * seconds.max(0.0)).exp_m1() / decay;
        }
        stretch.low + stretch.slope() * (seconds - stretch.start).max(0.0)
    }

    /// Share of pages that are touched within `seconds`.
    pub fn cdf(&self, seconds: f64) -> f64 {
        match self.shape {
            Shape::Even => self.height(seconds).clamp(0.0, 1.0),
            Shape::Memoryless => -(-self.height(seconds)).exp_m1(),
        }
    }

    /// Rate per page and second of visits that follow a gap longer than `seconds`.
    pub fn density(&self, seconds: f64) -> f64 {
        match self.shape {
            Shape::Even => self.holding(seconds).map_or(0.0, Stretch::slope),
            Shape::Memoryless => self.hazard(seconds) * (-self.height(seconds)).exp(),
        }
    }

    /// How the hazard of a memoryless curve falls within its first stretch: what it begins with, and its rate of decay. Where visits
    /// at random are those of a phase, the hazard of all pages falls as those of that phase are touched, and what caches see, the
    /// beginning, is above the mean of the stretch (a fifth, measured): it is taken to fall as it does between the middles of
    /// the first two, with the same mean.
    fn fall(&self) -> Option<(f64, f64)> {
        let (first, second) = (self.stretches.first()?, self.stretches.get(1)?);
        let middle = |stretch: &Stretch| 0.5 * (stretch.start + stretch.end);
        let decay = (first.slope() / second.slope()).ln() / (middle(second) - middle(first));
        if self.shape != Shape::Memoryless || !decay.is_finite() || decay <= 0.0 {
            return None;
        }
        // At most to a fifth within the stretch: more would have been seen as another stretch.
        let steep = (decay * first.end).min(5.0_f64.ln());
        let decay = steep / first.end;
        Some((first.slope() * steep / -(-steep).exp_m1(), decay))
    }

    /// The hazard of a memoryless curve.
    fn hazard(&self, seconds: f64) -> f64 {
        let Some(here) = self.holding(seconds) else { return 0.0 };
        match self.fall() {
            Some((begin, decay)) if here.start == 0.0 => begin * (-decay * seconds).exp(),
            _ => here.slope(),
        }
    }

    /// Highest rate that would have been seen as rarely as one in twenty: what is true when nothing was seen at all.
    pub fn most_density(&self, seconds: f64) -> f64 {
        let (count, extent, scale) = match self.holding(seconds) {
            Some(stretch) => {
                let width = (stretch.end.max(seconds) - stretch.start).max(LEAST);
                (stretch.count(), width, (stretch.rise() / stretch.count().max(LEAST), self.looks))
            }
            None => {
                let start = self.stretches.last().map_or(0.0, |stretch| stretch.end);
                (0.0, (seconds - start).max(seconds / 8.0).max(LEAST), (0.0, self.looks))
            }
        };
        let per_touch = if count > 0.0 { scale.0 } else { 1.0 / scale.1.max(0.5) };
        let factor = if self.shape == Shape::Memoryless { (-self.height(seconds)).exp() } else { 1.0 };
        most(count) * per_touch / extent * factor
    }

    /// Touches that the density at `seconds` rests on.
    pub fn touches(&self, seconds: f64) -> f64 {
        self.holding(seconds).map_or(0.0, Stretch::count)
    }

    /// The stretch around `seconds`: density is constant in it, or nearly so.
    pub fn around(&self, seconds: f64) -> (f64, f64) {
        self.holding(seconds).map_or((seconds, f64::INFINITY), |stretch| (stretch.start, stretch.end))
    }

    /// Where the density changes, in order.
    pub fn knots(&self) -> impl Iterator<Item = f64> + '_ {
        self.stretches.iter().map(|stretch| stretch.end)
    }
}

/// The largest mean of a Poisson number that is at most `count` in one of twenty cases (Wilson and Hilferty).
pub fn most(count: f64) -> f64 {
    let k = count.max(0.0) + 1.0;
    if count <= 0.0 { 3.0 } else { k * (1.0 - 1.0 / (9.0 * k) + 1.645 / (3.0 * k.sqrt())).powi(3) }
}

/// The smallest mean of a Poisson number that is at least `count` in one of twenty cases.
pub fn least(count: f64) -> f64 {
    let k = count.max(0.0);
    if k <= 0.0 { 0.0 } else { k * (1.0 - 1.0 / (9.0 * k) - 1.645 / (3.0 * k.sqrt())).max(0.0).powi(3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_numbers::Random;

    fn waits(seconds: impl IntoIterator<Item = f64>, limit: f64) -> Vec<Wait> {
        let mut waits: Vec<_> = seconds
            .into_iter()
            .map(|wait| {
                let outcome = if wait < limit { Outcome::Touched } else { Outcome::Unfinished };
                Wait { seconds: wait.min(limit), weight: 1.0, outcome, stratum: 0 }
            })
            .collect();
        waits.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        waits
    }

    fn close(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by * wanted.abs(), "{found} is not {wanted}");
    }

    #[test]
    fn periodic_visits_are_one_straight_line() {
        let all = waits((0..60).map(|at| 0.5 * (f64::from(at) + 0.5) / 60.0), 9.0);
        let curve = Recurrence::of(&all, Shape::Even, SIGNIFICANT);
        assert_eq!(curve.stretches.len(), 1);
        close(curve.density(0.001), 2.0, 0.02);
        close(curve.cdf(0.25), 0.5, 0.02);
        assert_eq!((curve.density(0.6), curve.cdf(0.6)), (0.0, 1.0));
        let half = Recurrence::of(&waits((0..60).map(|at| f64::from(at) / 60.0), 0.3), Shape::Even, SIGNIFICANT);
        close(half.density(0.01), 1.0, 0.1);
    }

    #[test]
    fn visits_at_random_and_the_gaps_they_follow() {
        let all = waits((0..200).map(|at| -0.1 * (1.0 - (f64::from(at) + 0.5) / 200.0).ln()), 9.0);
        let curve = Recurrence::of(&all, Shape::Memoryless, SIGNIFICANT);
        close(curve.density(1e-6), 10.0, 0.05);
        close(curve.density(0.1), 10.0 * (-1.0_f64).exp(), 0.1);
        close(Recurrence::of(&all, Shape::Even, SIGNIFICANT).density(1e-6), 10.0, 0.35);
    }

    #[test]
    fn visits_at_random_in_one_phase() {
        // A round takes 0.1 s. In 30 % of it each page is visited at random every millisecond, else not at all.
        let (share, gap, round) = (0.3, 1e-3, 0.1);
        for looks in [1000, 4000] {
            let within = (0..looks).map(|at| {
                let part = (f64::from(at) + 0.5) / f64::from(looks);
                if part < share { -gap * (1.0 - part / share).ln() } else { (part - share) * round }
            });
            let curve = Recurrence::of(&waits(within, 9.0), Shape::Memoryless, SIGNIFICANT);
            for seconds in [1e-5, 1e-4, 2e-4] {
                close(curve.density(seconds), share / gap * (-seconds / gap).exp() + 1.0 / round, 0.06);
            }
        }
    }

    #[test]
    fn few_looks_at_random_are_right_in_the_mean() {
        let mut random = Random::new(5);
        let mut mean = |looks: usize, phase: bool| {
            let ratio = |random: &mut Random| {
                let one = |random: &mut Random| {
                    let at_random = -1e-3 * (1.0 - random.unit()).ln();
                    if !phase || random.unit() < 0.3 { at_random } else { 0.07 * random.unit() }
                };
                let all: Vec<f64> = (0..looks).map(|_| one(random)).collect();
                let truth = if phase { 0.3 * 1e3 * (-0.1_f64).exp() + 10.0 } else { 1e3 * (-0.1_f64).exp() };
                Recurrence::of(&waits(all, 9.0), Shape::Memoryless, SIGNIFICANT).density(1e-4) / truth
            };
            (0..60).map(|_| ratio(&mut random)).sum::<f64>() / 60.0
        };
        // With few looks there is often no second stretch to be seen.
        for (looks, least) in [(100, 0.75), (400, 0.95), (2000, 0.95)] {
            let (even, phase) = (mean(looks, false), mean(looks, true));
            println!("{looks} looks: {even:.3} of random visits, {phase:.3} of those of a phase");
            assert!((0.93..1.12).contains(&even) && (least..1.12).contains(&phase), "{looks}: {even} {phase}");
        }
    }

    #[test]
    fn hot_pages_among_others_do_not_count() {
        let hot = (0..6).map(|at| 1e-6 * f64::from(at + 1));
        let curve =
            Recurrence::of(&waits(hot.chain((0..54).map(|at| (f64::from(at) + 0.5) / 54.0)), 9.0), Shape::Even, SIGNIFICANT);
        close(curve.density(1e-3), 0.9, 0.1);
        close(curve.cdf(1e-3), 0.1, 0.2);
    }

    #[test]
    fn memory_that_goes_is_not_touched_later() {
        // Pages live 10 s and are read once, 5 s after they were written: 0.1 visits per second however long the look.
        let all: Vec<_> = (0..1000)
            .map(|at| {
                let begun = f64::from(at) / 100.0;
                match begun < 5.0 {
                    true => Wait { seconds: 5.0 - begun, weight: 1.0, outcome: Outcome::Touched, stratum: 0 },
                    false => Wait { seconds: 10.0 - begun, weight: 1.0, outcome: Outcome::Never, stratum: 0 },
                }
            })
            .collect();
        let mut all = all;
        all.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        close(Recurrence::of(&all, Shape::Even, SIGNIFICANT).density(3.0), 0.1, 0.02);
    }

    #[test]
    fn nothing_seen_is_not_nothing() {
        let curve = Recurrence::of(&waits([9.0; 30], 2.0), Shape::Even, SIGNIFICANT);
        assert_eq!(curve.density(0.1), 0.0);
        close(curve.most_density(0.1), 3.0 / (30.0 * 2.0), 0.01);
        let never_looked = Recurrence::of(&[], Shape::Even, SIGNIFICANT);
        assert!(never_looked.density(1.0) == 0.0 && never_looked.most_density(1.0).is_finite() && never_looked.cdf(1.0) == 0.0);
    }

    #[test]
    fn poisson_bounds() {
        close(most(1.0), 4.74, 0.02);
        close(most(10.0), 16.96, 0.01);
        close(least(3.0), 0.818, 0.03);
        close(least(10.0), 5.43, 0.01);
    }
}
