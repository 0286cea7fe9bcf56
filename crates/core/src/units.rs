//! Amounts that people write: bytes, shares, bytes per second, durations. Parses and prints them; knows nothing of tiers.
//!
//! K, M, G and T always mean powers of 1024, with or without `iB` or `B` behind them: `1K`, `1KiB` and `1KB` are all 1024 bytes.
//! Memory comes in powers of two, and two meanings of one letter would be a trap. Letters may be in either case.
//! Arithmetic is exact: fractions are decimal and rounded down to whole units.

use crate::error::{DURATION, Error, PERCENT, RATE, SIZE};
use std::fmt;
use std::str::FromStr;

/// An amount of memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A share of something, more than 0 and at most 100 percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(f64);

/// A bandwidth in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BytesPerSec(pub u64);

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Bytes {
    /// Parses an amount (`800M`) or a share of `base` bytes (`50%`), rounded down.
    ///
    /// # Errors
    /// `text` is neither, or the result is less than one byte.
    pub fn parse_of(text: &str, base: Bytes) -> Result<Bytes, Error> {
        if !text.trim().ends_with('%') {
            return text.parse();
        }
        let share = text.parse::<Percent>()?.of(base);
        if share.0 == 0 { Err(PERCENT.refuse(text, "it comes to less than one byte")) } else { Ok(share) }
    }
}

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| SIZE.refuse(text, why);
        if text.trim().ends_with('%') {
            return Err(refuse("a percentage is not accepted here"));
        }
        match scaled(text, size_scale).map_err(refuse)? {
            0 => Err(refuse("it is less than one byte")),
            bytes => Ok(Bytes(bytes)),
        }
    }
}

impl Percent {
    /// A share from a number of percent; `None` unless it is more than 0 and at most 100.
    pub fn new(percent: f64) -> Option<Self> {
        (percent > 0.0 && percent <= 100.0).then_some(Self(percent))
    }

    /// The number of percent.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// This share of `base`, rounded down to whole bytes.
    pub fn of(self, base: Bytes) -> Bytes {
        Bytes((base.0 as f64 * self.0 / 100.0) as u64)
    }
}

impl FromStr for Percent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| PERCENT.refuse(text, why);
        let digits = text.trim().strip_suffix('%').ok_or_else(|| refuse("the % is missing"))?;
        // Parsed in millionths of a percent, so that only plain decimals pass and not all that f64 would take (inf, 1e3).
        let millionths = scaled(digits, |suffix| suffix.is_empty().then_some(1_000_000)).map_err(refuse)?;
        Percent::new(millionths as f64 / 1e6).ok_or_else(|| refuse("it must be more than 0 and at most 100"))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for BytesPerSec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| RATE.refuse(text, why);
        let trimmed = text.trim();
        let amount = trimmed.strip_suffix("/s").unwrap_or(trimmed);
        match scaled(amount, size_scale).map_err(refuse)? {
            0 => Err(refuse("it is less than one byte per second")),
            rate => Ok(BytesPerSec(rate)),
        }
    }
}

impl FromStr for Nanos {
    type Err = Error;

    /// `0` needs no unit; everything else does.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| DURATION.refuse(text, why);
        if text.trim() == "0" {
            return Ok(Nanos(0));
        }
        scaled(text, time_scale).map(Nanos).map_err(refuse)
    }
}

fn size_scale(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    let stem = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
    match stem {
        "" if suffix == "ib" => None,
        "" => Some(1),
        "k" => Some(1 << 10),
        "m" => Some(1 << 20),
        "g" => Some(1 << 30),
        "t" => Some(1 << 40),
        _ => None,
    }
}

fn time_scale(suffix: &str) -> Option<u64> {
    match suffix {
        "ns" => Some(1),
        "us" | "µs" | "μs" => Some(1_000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// Reads `digits[.digits][spaces]suffix` and multiplies by what `scale` says the suffix is worth.
fn scaled(text: &str, scale: impl Fn(&str) -> Option<u64>) -> Result<u64, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.starts_with('-') {
        return Err("it must not be negative");
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
        return Err("it must start with a plain number");
    }
    let factor = scale(suffix.trim_start()).ok_or("its unit is missing or unknown")?;
    let whole: u64 = whole.parse().map_err(|_| "it is too large")?;
    // 18 decimal places are finer than any unit here needs and keep the product within 128 bits.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = match fraction {
        "" => 0,
        digits => digits.parse::<u128>().map_err(|_| "it must start with a plain number")? * u128::from(factor),
    } / 10u128.pow(fraction.len() as u32);
    let total = u128::from(whole) * u128::from(factor) + part;
    u64::try_from(total).map_err(|_| "it is too large")
}

const SIZE_UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

impl fmt::Display for Bytes {
    /// One decimal and the largest unit that leaves at least 1: `800.0 MiB`; whole bytes below 1 KiB: `512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64;
        let mut unit = 0;
        // 1023.95 would print as 1024.0.
        while value >= 1023.95 && unit + 1 < SIZE_UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", SIZE_UNITS[unit])
    }
}

impl Bytes {
    /// The shortest text that parses back to exactly this amount: `800M`, `4097`.
    pub fn exact(self) -> String {
        for (shift, letter) in [(40, "T"), (30, "G"), (20, "M"), (10, "K")] {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return format!("{}{letter}", self.0 >> shift);
            }
        }
        self.0.to_string()
    }
}

impl fmt::Display for BytesPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", Bytes(self.0))
    }
}

impl fmt::Display for Nanos {
    /// The largest unit that leaves at least 1, with at most three decimals: `10 us`, `1.5 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "us"),
            1_000_000..1_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = (self.0 as f64 / divisor * 1e3).round() / 1e3;
        write!(f, "{value} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> Option<u64> {
        text.parse::<Bytes>().ok().map(|b| b.0)
    }

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4096", 4096),
            ("800M", 800 << 20),
            ("16GiB", 16 << 30),
            ("16 GiB", 16 << 30),
            ("1.5G", 3 << 29),
            ("1kb", 1024),
            ("2t", 2 << 40),
            ("7B", 7),
            ("0.5K", 512),
            (" 1M ", 1 << 20),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "0",
            "0M",
            "-1",
            "-1M",
            "+1",
            "1e3",
            "inf",
            "nan",
            "M",
            ".5G",
            "1.",
            "1..2",
            "1.2.3",
            "1X",
            "1ib",
            "1MM",
            "50%",
            "0.1",
            "99999999999T",
            "18446744073709551616",
            "1 2",
            "1G/s",
            "０",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn errors_echo_and_advise() {
        let message = "12Q".parse::<Bytes>().unwrap_err().to_string();
        assert!(message.contains("12Q") && message.contains("800M"), "{message}");
        let message = "-3".parse::<Bytes>().unwrap_err().to_string();
        assert!(message.contains("negative"), "{message}");
    }

    #[test]
    fn shares() {
        assert_eq!(Bytes::parse_of("50%", Bytes(1000)), Ok(Bytes(500)));
        assert_eq!(Bytes::parse_of("12.5%", Bytes(1000)), Ok(Bytes(125)));
        assert_eq!(Bytes::parse_of("1K", Bytes(1000)), Ok(Bytes(1024)));
        for text in ["0%", "101%", "-5%", "%", "5%%", "1K%"] {
            assert!(Bytes::parse_of(text, Bytes(1000)).is_err(), "{text}");
        }
        assert!(Bytes::parse_of("1%", Bytes(10)).is_err());
    }

    #[test]
    fn rates_and_durations() {
        assert_eq!("4G".parse(), Ok(BytesPerSec(4 << 30)));
        assert_eq!("800MiB/s".parse(), Ok(BytesPerSec(800 << 20)));
        assert!("0".parse::<BytesPerSec>().is_err());
        assert_eq!("10us".parse(), Ok(Nanos(10_000)));
        assert_eq!("200ns".parse(), Ok(Nanos(200)));
        assert_eq!("1.5 ms".parse(), Ok(Nanos(1_500_000)));
        assert_eq!("0".parse(), Ok(Nanos(0)));
        assert!("10".parse::<Nanos>().is_err());
        assert!("10min".parse::<Nanos>().is_err());
    }

    #[test]
    fn display() {
        assert_eq!(Bytes(800 << 20).to_string(), "800.0 MiB");
        assert_eq!(Bytes(1023).to_string(), "1023 B");
        assert_eq!(Bytes((1 << 20) - 1).to_string(), "1.0 MiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16777216.0 TiB");
        assert_eq!(BytesPerSec(3 << 29).to_string(), "1.5 GiB/s");
        assert_eq!(Nanos(1_500_000).to_string(), "1.5 ms");
        assert_eq!(Bytes(800 << 20).exact(), "800M");
        assert_eq!(Bytes(4097).exact(), "4097");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,24}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Nanos>(), text.parse::<BytesPerSec>(), text.parse::<Percent>());
        }

        #[test]
        fn exact_round_trips(n in 1u64..) {
            prop_assert_eq!(Bytes(n).exact().parse::<Bytes>(), Ok(Bytes(n)));
        }
    }
}
