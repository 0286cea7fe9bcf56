//! An axis: which value is where, and which values get a tick.

use nearfar_core::node::words;

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By powers of ten.
    Log10,
    /// By powers of two, for sizes and threads.
    Log2,
}

/// One axis of a chart. `low < high`, and both are positive on logarithmic scales.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    scale: Scale,
    low: f64,
    high: f64,
    words: fn(f64) -> String,
}

/// A value that gets a line of the grid, and a number unless it is a fine one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Its number; `None` for a fine line between two.
    pub text: Option<String>,
}

impl Axis {
    /// An axis from `low` to `high`, which are widened where they would leave no room. `words` writes a value.
    pub fn new(label: impl Into<String>, scale: Scale, low: f64, high: f64, words: fn(f64) -> String) -> Self {
        let label = label.into();
        let (low, high) = match scale {
            Scale::Linear => (low, if high > low { high } else { low + 1.0 }),
            _ => {
                let low = if low.is_finite() && low > 0.0 { low } else { 1.0 };
                (low, if high.is_finite() && high > low * 1.5 { high } else { low * 4.0 })
            }
        };
        Self { label, scale, low, high, words }
    }

    /// An axis with room for all of `values`; `None` when there is none that can be drawn.
    pub fn spanning(
        label: impl Into<String>,
        scale: Scale,
        values: impl IntoIterator<Item = f64>,
        words: fn(f64) -> String,
    ) -> Option<Self> {
        let drawn = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = drawn.fold((f64::INFINITY, 0f64), |(low, high), value| (low.min(value), high.max(value)));
        if !low.is_finite() {
            return None;
        }
        Some(match scale {
            Scale::Linear => Self::new(label, scale, 0.0, high * 1.1, words),
            Scale::Log10 => Self::new(label, scale, low / 1.6, high * 1.6, words),
            Scale::Log2 => Self::new(label, scale, low / 1.2, high * 1.2, words),
        })
    }

    /// An axis with room for all of `values`: by powers of ten where the largest is more than `wide` times the least, otherwise even.
    pub fn fitting(
        label: impl Into<String>,
        wide: f64,
        values: impl Iterator<Item = f64> + Clone,
        words: fn(f64) -> String,
    ) -> Option<Self> {
        let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.clone().fold(0.0, f64::max));
        Self::spanning(label, if high > wide * low { Scale::Log10 } else { Scale::Linear }, values, words)
    }

    /// What is written beside it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The smallest value.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The largest.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Where `value` is, 0 at the low end and 1 at the high one; beyond them outside of the axis.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            _ => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// The ticks, ascending.
    pub fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.even_ticks(),
            Scale::Log10 => self.decades(),
            Scale::Log2 => self.doublings(),
        }
    }

    fn even_ticks(&self) -> Vec<Tick> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last.min(first + 20)).map(|n| self.tick(n as f64 * step)).collect()
    }

    fn decades(&self) -> Vec<Tick> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let few = last - first <= 3;
        let mut ticks = Vec::new();
        for exponent in first..=last.min(first + 40) {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                if value >= self.low * 0.999 && value <= self.high * 1.001 {
                    let numbered = digit == 1 || (few && matches!(digit, 2 | 5));
                    ticks.push(if numbered { self.tick(value) } else { Tick { value, text: None } });
                }
            }
        }
        ticks
    }

    fn doublings(&self) -> Vec<Tick> {
        let (first, last) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
        let every = ((last - first) / 10 + 1).max(1);
        let powers = (first..=last.min(first + 80)).map(|exponent| (exponent, 2f64.powi(exponent)));
        powers
            .map(|(exponent, value)| if exponent % every == 0 { self.tick(value) } else { Tick { value, text: None } })
            .collect()
    }

    fn tick(&self, value: f64) -> Tick {
        Tick { value, text: Some((self.words)(value)) }
    }
}

/// A value without needless zeros: "0.05", "2", "100".
pub fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn trimmed(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

/// Bytes per second at a tick.
pub fn rate(value: f64) -> String {
    trimmed(&words::rate(value))
}

/// FLOP/s at a tick.
pub fn flops(value: f64) -> String {
    trimmed(&words::flops(value))
}

/// Nanoseconds at a tick.
pub fn time(value: f64) -> String {
    trimmed(&words::time(value))
}

/// Bytes at a tick.
pub fn size(value: f64) -> String {
    words::size(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().filter_map(|tick| tick.text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let axis = Axis::new("", Scale::Linear, 0.0, 230e9, rate);
        assert_eq!(numbered(&axis), ["0 B/s", "50 GB/s", "100 GB/s", "150 GB/s", "200 GB/s"]);
        let axis = Axis::new("", Scale::Log10, 0.02, 2000.0, short);
        assert_eq!(numbered(&axis), ["0.1", "1", "10", "100", "1000"]);
        let axis = Axis::new("", Scale::Log2, 1.0, 16.0, short);
        assert_eq!(numbered(&axis), ["1", "2", "4", "8", "16"]);
    }

    #[test]
    fn nothing_and_nonsense_make_no_axis() {
        assert!(Axis::spanning("", Scale::Log10, [0.0, f64::NAN, -1.0], short).is_none());
        let axis = Axis::spanning("", Scale::Log10, [5.0], short).expect("an axis");
        assert!(axis.low() < 5.0 && axis.high() > 5.0 && !axis.ticks().is_empty());
        assert_eq!(Axis::new("", Scale::Linear, 0.0, 10.0, short).place(5.0), 0.5);
        let broken = Axis::new("", Scale::Log10, f64::NAN, f64::INFINITY, short);
        assert!(broken.low() > 0.0 && broken.high() > broken.low());
    }
}
