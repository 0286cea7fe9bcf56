//! The three modes, as the user names them. What a mode does is decided by one `match` in `tiers`, not here.

use crate::error::{Error, MODE};
use crate::units::Percent;
use std::fmt;
use std::str::FromStr;

/// How near is used: `cache`, `flat`, `hybrid=0.25`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// Everything lives in far, near is a cache that the program does not see.
    #[default]
    Cache,
    /// Both tiers are addressable; the placement policy decides per allocation.
    Flat,
    /// This share of near (more than 0, less than 1) is cache, the rest is flat.
    Hybrid(f64),
}

impl FromStr for Mode {
    type Err = Error;

    /// The share of hybrid may also be written in percent: `hybrid=25%`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| MODE.refuse(text, why);
        match text.trim() {
            "cache" => return Ok(Mode::Cache),
            "flat" => return Ok(Mode::Flat),
            "hybrid" => return Err(refuse("hybrid needs a share")),
            _ => {}
        }
        let share = text.trim().strip_prefix("hybrid=").ok_or_else(|| refuse("there is no such mode"))?;
        let plain = share.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let value = match share.ends_with('%') {
            true => share.parse::<Percent>().ok().map(|p| p.get() / 100.0),
            false => plain.then(|| share.parse::<f64>().ok()).flatten(),
        };
        value
            .filter(|&v| v > 0.0 && v < 1.0)
            .map(Mode::Hybrid)
            .ok_or_else(|| refuse("the share must be more than 0 and less than 1"))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Cache => f.write_str("cache"),
            Mode::Flat => f.write_str("flat"),
            Mode::Hybrid(share) => write!(f, "hybrid={share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip() {
        for (text, mode) in [
            ("cache", Mode::Cache),
            ("flat", Mode::Flat),
            ("hybrid=0.25", Mode::Hybrid(0.25)),
            ("hybrid=.5", Mode::Hybrid(0.5)),
            ("hybrid=25%", Mode::Hybrid(0.25)),
        ] {
            assert_eq!(text.parse::<Mode>(), Ok(mode), "{text}");
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for text in
            ["", "hybrid", "hybrid=", "hybrid=0", "hybrid=1", "hybrid=-1", "hybrid=nan", "hybrid=1e-1", "hybrid=.", "Cache "]
        {
            let error = text.parse::<Mode>().unwrap_err().to_string();
            assert!(error.contains("hybrid=0.25"), "{error}");
        }
    }
}
