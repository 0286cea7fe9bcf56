//! Faults made on purpose, for tests: what NEARFAR_FAULTS says. Parses and prints; a wrapper in `tiers` carries it out.
//!
//! Operations are counted from 0 in each process, and a retry counts as an operation of its own.

use crate::error::{Error, FAULTS};
use crate::units::{Bytes, Nanos};
use std::fmt;
use std::str::FromStr;

/// At which operations a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct When {
    from: u64,
    until: u64,
    step: u64,
}

impl When {
    /// At no operation.
    pub const NEVER: When = When { from: 0, until: 0, step: 1 };
    /// At every operation.
    pub const ALWAYS: When = When { from: 0, until: u64::MAX, step: 1 };

    /// True when operation `number` is to fail.
    pub fn hits(self, number: u64) -> bool {
        (self.from..self.until).contains(&number) && (number - self.from).is_multiple_of(self.step.max(1))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let value = plain.then(|| text.parse::<u64>().ok()).flatten().filter(|&value| value < u64::MAX);
            value.ok_or_else(|| format!("\"{text}\" is not the number of an operation"))
        };
        if let Some(at) = text.strip_prefix("once@") {
            let from = number(at)?;
            return Ok(When { from, until: from + 1, step: 1 });
        }
        if let Some(from) = text.strip_prefix("after:") {
            return Ok(When { from: number(from)?, ..Self::ALWAYS });
        }
        if let Some(step) = text.strip_prefix("every:") {
            let step = number(step)?;
            let from = step.checked_sub(1).ok_or("every:N needs N of at least 1")?;
            return Ok(When { from, until: u64::MAX, step });
        }
        match text {
            "always" => Ok(Self::ALWAYS),
            "once" => Ok(When { from: 0, until: 1, step: 1 }),
            _ => Err(format!("\"{text}\" is none of always, once, once@N, after:N, every:N")),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALWAYS => f.write_str("always"),
            When { from, until, .. } if until.checked_sub(1) == Some(from) => write!(f, "once@{from}"),
            When { from, step: 1, .. } => write!(f, "after:{from}"),
            When { step, .. } => write!(f, "every:{step}"),
        }
    }
}

/// What goes wrong in far, and when the watchdog speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Faults {
    /// Reads that fail with EIO.
    pub read_eio: When,
    /// Writes that fail with EIO.
    pub write_eio: When,
    /// Reads of several pages that bring only a part.
    pub short_read: When,
    /// Writes of several pages that move only a part.
    pub short_write: When,
    /// Reads in which one byte comes back changed.
    pub corrupt: When,
    /// Operations (reads and writes together) that never end.
    pub stall: When,
    /// Turns of the pager thread at which it falls asleep for ever.
    pub deaf: When,
    /// Every operation takes at least so long, in ns.
    pub slow_ns: u64,
    /// Writes that touch one of these bytes of a store fail with EIO: from the first, up to before the second.
    pub bad: (u64, u64),
    /// The store has no space beyond this byte.
    pub full_after: u64,
    /// A thread that waits longer than this for a page is told of, in ns.
    pub watch_ns: u64,
}

/// How long a thread waits for a page before the watchdog speaks. Devices that are only slow answer within a few seconds;
/// the kernel itself gives an NVMe operation 30 s.
const WATCH_NS: u64 = 10_000_000_000;

impl Default for Faults {
    fn default() -> Self {
        Self {
            read_eio: When::NEVER,
            write_eio: When::NEVER,
            short_read: When::NEVER,
            short_write: When::NEVER,
            corrupt: When::NEVER,
            stall: When::NEVER,
            deaf: When::NEVER,
            slow_ns: 0,
            bad: (0, 0),
            full_after: u64::MAX,
            watch_ns: WATCH_NS,
        }
    }
}

impl Faults {
    /// True when far is to fail in some way.
    pub fn any(&self) -> bool {
        *self != Self { watch_ns: self.watch_ns, ..Self::default() }
    }

    fn whens(&mut self) -> [(&'static str, &mut When); 7] {
        [
            ("read-eio", &mut self.read_eio),
            ("write-eio", &mut self.write_eio),
            ("short-read", &mut self.short_read),
            ("short-write", &mut self.short_write),
            ("corrupt", &mut self.corrupt),
            ("stall", &mut self.stall),
            ("deaf", &mut self.deaf),
        ]
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        if let Some((_, when)) = self.whens().into_iter().find(|(name, _)| *name == key) {
            *when = value.map_or(Ok(When::ALWAYS), When::parse)?;
            return Ok(());
        }
        let size = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| error.to_string());
        let duration = || value.unwrap_or_default().parse::<Nanos>().map(|nanos| nanos.0).map_err(|error| error.to_string());
        match key {
            "slow" => self.slow_ns = duration()?,
            "watch" => self.watch_ns = duration()?,
            "full-after" => self.full_after = size(value.unwrap_or_default())?,
            "bad" => {
                let (from, to) =
                    value.and_then(|value| value.split_once("..")).ok_or("bad is a range of bytes such as 4M..6M")?;
                self.bad = (size(from)?, size(to)?);
                if self.bad.0 >= self.bad.1 {
                    return Err(format!("{from}..{to} is empty"));
                }
            }
            "full" if value.is_none() => self.full_after = 0,
            "full" => return Err("full takes no value; full-after=64M does".to_owned()),
            _ => return Err(format!("there is no fault \"{key}\"")),
        }
        Ok(())
    }
}

impl FromStr for Faults {
    type Err = Error;

    /// Parses `read-eio=once@100,slow=5ms`; an empty text means that nothing goes wrong.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut faults = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
            faults.set(key, value).map_err(|why| FAULTS.refuse(text, why))?;
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut copy, none) = (*self, Self::default());
        let whens = copy.whens();
        let mut words: Vec<String> =
            whens.iter().filter(|(_, when)| **when != When::NEVER).map(|(name, when)| format!("{name}={when}")).collect();
        if self.slow_ns != 0 {
            words.push(format!("slow={}ns", self.slow_ns));
        }
        if self.bad != none.bad {
            words.push(format!("bad={}..{}", Bytes(self.bad.0).exact(), Bytes(self.bad.1).exact()));
        }
        match self.full_after {
            u64::MAX => {}
            0 => words.push("full".to_owned()),
            bytes => words.push(format!("full-after={}", Bytes(bytes).exact())),
        }
        if self.watch_ns != none.watch_ns {
            words.push(format!("watch={}ns", self.watch_ns));
        }
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hits(text: &str) -> Vec<u64> {
        let when = When::parse(text).expect(text);
        (0..10).filter(|&number| when.hits(number)).collect()
    }

    #[test]
    fn moments() {
        assert_eq!(hits("once"), [0]);
        assert_eq!(hits("once@3"), [3]);
        assert_eq!(hits("after:7"), [7, 8, 9]);
        assert_eq!(hits("every:4"), [3, 7]);
        assert_eq!(hits("always").len(), 10);
        assert!((0..10).all(|number| !When::NEVER.hits(number)));
    }

    #[test]
    fn lists_of_faults() {
        let faults: Faults = "read-eio=once@100, corrupt,slow=5ms,full-after=64M,watch=2s".parse().expect("known faults");
        assert!(faults.any() && faults.read_eio.hits(100) && faults.corrupt == When::ALWAYS);
        assert_eq!((faults.slow_ns, faults.full_after, faults.watch_ns), (5_000_000, 64 << 20, 2_000_000_000));
        assert!(!"".parse::<Faults>().expect("none").any());
        assert!(!"watch=1s".parse::<Faults>().expect("none in far").any());
        assert_eq!("bad=4M..6M".parse::<Faults>().expect("a range").bad, (4 << 20, 6 << 20));
        assert_eq!("full".parse::<Faults>().expect("full").full_after, 0);
    }

    #[test]
    fn refusals_say_what_would_do() {
        for text in [
            "read",
            "read-eio=",
            "read-eio=once@",
            "stall=after:-1",
            "corrupt=every:0",
            "slow",
            "slow=fast",
            "full=1",
            "bad=4M",
            "bad=4M..2M",
        ] {
            let error = text.parse::<Faults>().expect_err(text).to_string();
            assert!(error.contains(&format!("\"{text}\"")) && error.contains("once@100"), "{error}");
        }
        assert!(format!("stall=once@{}", u64::MAX).parse::<Faults>().is_err());
    }

    proptest! {
        #[test]
        fn never_panics_and_prints_what_parses_back(
            key in prop::sample::select(vec!["read-eio", "write-eio", "short-read", "corrupt", "stall", "slow", "full-after", "full", "bad", "x"]),
            middle in prop::sample::select(vec!["", "=", "=once@", "=after:", "=every:", "=once", "=always", ",", "=,"]),
            tail in "[0-9msKMu@:,=.]{0,6}",
        ) {
            let text = format!("{key}{middle}{tail}");
            if let Ok(faults) = text.parse::<Faults>() {
                prop_assert_eq!(faults.to_string().parse(), Ok(faults));
            }
        }
    }
}
