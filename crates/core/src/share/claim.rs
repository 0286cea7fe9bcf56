//! What a rank asks for of its node's near memory (`--share`). Parses and prints; divides nothing.

use crate::units::{Bytes, Percent};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A percentage in units of which claims are whole numbers.
const PER_PERCENT: f64 = 1e6;

/// A share as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// An even part of what is not asked for by number.
    #[default]
    Fair,
    /// `parts` of `of` equal parts: `1/4`, `40%`, `all`.
    Part {
        /// Parts asked for, 1 to `of`.
        parts: u64,
        /// Parts that the whole has.
        of: u64,
    },
    /// So many bytes.
    Bytes(u64),
    /// Near is not shared: this rank uses all of it, as if it were alone.
    Off,
}

impl Claim {
    /// Bytes of `whole` that are asked for by number.
    pub fn asked(self, whole: u64) -> Option<u64> {
        match self {
            Claim::Part { parts, of } => Some((u128::from(whole) * u128::from(parts) / u128::from(of.max(1))) as u64),
            Claim::Bytes(bytes) => Some(bytes.min(whole)),
            Claim::Fair | Claim::Off => None,
        }
    }
}

impl FromStr for Claim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text {
            "fair" => return Ok(Claim::Fair),
            "all" => return Ok(Claim::Part { parts: 1, of: 1 }),
            "off" => return Ok(Claim::Off),
            _ => {}
        }
        let how = "write fair, a share (40% or 1/4), a size (2G), all, or off";
        if let Some((parts, of)) = text.split_once('/') {
            let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("\"{text}\" is not a number; {how}"));
            let (parts, of) = (number(parts)?, number(of)?);
            if parts == 0 || parts > of {
                return Err(format!("{text} is not between nothing and all; {how}"));
            }
            return Ok(Claim::Part { parts, of });
        }
        if text.ends_with('%') {
            let percent = text.parse::<Percent>().map_err(|error| format!("{error}; {how}"))?.get();
            return Ok(Claim::Part { parts: ((percent * PER_PERCENT) as u64).max(1), of: (100.0 * PER_PERCENT) as u64 });
        }
        text.parse::<Bytes>().map(|bytes| Claim::Bytes(bytes.0)).map_err(|error| format!("{error}; {how}"))
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Fair => f.write_str("fair"),
            Claim::Part { parts: 1, of: 1 } => f.write_str("all"),
            Claim::Part { parts, of } if *of == (100.0 * PER_PERCENT) as u64 => write!(f, "{}%", *parts as f64 / PER_PERCENT),
            Claim::Part { parts, of } => write!(f, "{parts}/{of}"),
            Claim::Bytes(bytes) => f.write_str(&Bytes(*bytes).exact()),
            Claim::Off => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn claims() {
        for (text, asked) in [
            ("fair", None),
            ("off", None),
            ("all", Some(1000)),
            ("40%", Some(400)),
            ("1/4", Some(250)),
            ("1/3", Some(333)),
            ("4/4", Some(1000)),
            ("500", Some(500)),
            ("2G", Some(1000)),
        ] {
            let claim: Claim = text.parse().expect(text);
            assert_eq!((claim.asked(1000), claim.to_string().parse()), (asked, Ok(claim)), "{text}");
        }
        for text in ["", "0", "0%", "101%", "5/4", "0/4", "1/0", "/", "half", "-1", "1/x"] {
            assert!(text.parse::<Claim>().expect_err(text).contains("write fair"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(text in "[0-9./%GMx]{0,12}") {
            if let Ok(claim) = text.parse::<Claim>() {
                let again: Claim = claim.to_string().parse().expect("parses back");
                prop_assert!(again.asked(1 << 40).unwrap_or(0).abs_diff(claim.asked(1 << 40).unwrap_or(0)) < 1 << 20);
            }
        }
    }
}
