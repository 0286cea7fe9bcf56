//! What `--place` says, as text: `all`, `size:1M..5M,10M..`, `plan:FILE`, `calls`. Opens nothing; printing gives text that parses back.

use super::{MAX_SIZE_RANGES, Placement, Policy, SizeRange};
use crate::error::{Error, PLACE};
use crate::units::Bytes;
use std::fmt;
use std::str::FromStr;

/// Which objects go near.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Every object.
    #[default]
    All,
    /// Objects whose size lies in one of these ranges, at least one and at most [`MAX_SIZE_RANGES`].
    Sizes(Vec<SizeRange>),
    /// Objects that the plan in this file names.
    Plan(String),
    /// Only what the program places itself.
    Calls,
}

impl Choice {
    /// As it stands in a placement.
    pub const fn policy(&self) -> Policy {
        match self {
            Self::All => Policy::All,
            Self::Sizes(_) => Policy::Sizes,
            Self::Plan(_) => Policy::Plan,
            Self::Calls => Policy::Calls,
        }
    }

    /// Writes policy and sizes into `placement`.
    pub fn put(&self, placement: &mut Placement) {
        placement.policy = self.policy();
        let ranges = if let Self::Sizes(ranges) = self { ranges.as_slice() } else { &[] };
        placement.size_count = 0;
        for (place, range) in placement.sizes.iter_mut().zip(ranges) {
            *place = *range;
            placement.size_count += 1;
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(list) = text.strip_prefix("size:") {
            let ranges = list.split(',').map(range).collect::<Result<Vec<_>, _>>().map_err(|why| PLACE.refuse(text, why))?;
            if ranges.len() > MAX_SIZE_RANGES {
                return Err(
                    PLACE.refuse(text, format!("there are {} ranges, and at most {MAX_SIZE_RANGES} are possible", ranges.len()))
                );
            }
            return Ok(Self::Sizes(ranges));
        }
        if let Some(file) = text.strip_prefix("plan:") {
            return match file {
                "" => Err(PLACE.refuse(text, "the file of the plan is missing")),
                _ if file.contains('\0') => Err(PLACE.refuse(text, "a path cannot contain a NUL character")),
                _ => Ok(Self::Plan(file.to_owned())),
            };
        }
        match text.trim() {
            "all" => Ok(Self::All),
            "calls" => Ok(Self::Calls),
            "" => Err(PLACE.refuse(text, "it is empty")),
            "size" => Err(PLACE.refuse(text, "the sizes are missing")),
            "plan" => Err(PLACE.refuse(text, "the file of the plan is missing")),
            _ => Err(PLACE.refuse(text, "there is no such policy")),
        }
    }
}

/// Parses `1M..5M`, `10M..` or `..64K`.
fn range(text: &str) -> Result<SizeRange, String> {
    let text = text.trim();
    let Some((least, most)) = text.split_once("..") else {
        // AutoHBW and libmemtier write 1M:5M.
        let (least, most) = text.split_once([':', '-']).unwrap_or((text, ""));
        let both = least.parse::<Bytes>().is_ok() && (most.is_empty() || most.parse::<Bytes>().is_ok());
        let hint = if both { format!("; did you mean {}..{}", least.trim(), most.trim()) } else { String::new() };
        return Err(format!("\"{text}\" is not a range{hint}"));
    };
    let bytes = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| error.to_string());
    let range = match (least.trim(), most.trim()) {
        ("", "") => return Err("\"..\" is every size; write all".to_owned()),
        ("", most) => SizeRange { least: 0, most: bytes(most)? },
        (least, "") => SizeRange { least: bytes(least)?, most: u64::MAX },
        (least, most) => SizeRange { least: bytes(least)?, most: bytes(most)? },
    };
    if range.least > range.most {
        return Err(format!("\"{text}\" contains no size: a range goes from small to large"));
    }
    Ok(range)
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: u64| Bytes(bytes).exact();
        match (self.least, self.most) {
            (0, u64::MAX) => f.write_str(".."),
            (0, most) => write!(f, "..{}", text(most)),
            (least, u64::MAX) => write!(f, "{}..", text(least)),
            (least, most) => write!(f, "{}..{}", text(least), text(most)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Calls => f.write_str("calls"),
            Self::Plan(file) => write!(f, "plan:{file}"),
            Self::Sizes(ranges) => {
                f.write_str("size:")?;
                for (index, range) in ranges.iter().enumerate() {
                    write!(f, "{}{range}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(ranges: &[(u64, u64)]) -> Choice {
        Choice::Sizes(ranges.iter().map(|&(least, most)| SizeRange { least, most }).collect())
    }

    #[test]
    fn choices_round_trip() {
        for (text, choice) in [
            ("all", Choice::All),
            ("calls", Choice::Calls),
            ("plan:my plan.toml", Choice::Plan("my plan.toml".into())),
            ("size:1M..5M", sizes(&[(1 << 20, 5 << 20)])),
            ("size:..64K, 1.5M.. 2MiB,1G..", sizes(&[(0, 64 << 10), (3 << 19, 2 << 20), (1 << 30, u64::MAX)])),
            ("size:4096..4096", sizes(&[(4096, 4096)])),
        ] {
            assert_eq!(text.parse::<Choice>().as_ref(), Ok(&choice), "{text}");
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        let many = format!("size:{}", ["1M..2M"; 17].join(","));
        for (text, hint) in [
            ("", "empty"),
            ("some", "no such policy"),
            ("size", "missing"),
            ("size:", "not a range"),
            ("size:1M", "did you mean 1M.."),
            ("size:1M:5M", "did you mean 1M..5M"),
            ("size:1M..5M,", "not a range"),
            ("size:5M..1M", "from small to large"),
            ("size:..", "write all"),
            ("size:..0", "less than one byte"),
            ("size:1Q..", "unit"),
            ("size:-1..5", "negative"),
            ("plan:", "missing"),
            (many.as_str(), "17 ranges"),
        ] {
            let error = text.parse::<Choice>().unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains("size:1M..5M"), "{text}: {error}");
        }
    }

    #[test]
    fn an_order_holds_what_was_chosen() {
        let mut placement = Placement::default();
        sizes(&[(1, 2), (3, 4)]).put(&mut placement);
        assert_eq!((placement.policy, placement.sizes().len(), placement.sizes()[1].most), (Policy::Sizes, 2, 4));
        Choice::All.put(&mut placement);
        assert_eq!((placement.policy, placement.sizes().len()), (Policy::All, 0));
    }

    proptest! {
        #[test]
        fn ranges_print_as_they_parse(ranges in prop::collection::vec((0u64.., 0u64..), 1..=MAX_SIZE_RANGES)) {
            let ranges = ranges.into_iter().map(|(a, b)| (a.min(b), a.max(b).max(1))).filter(|range| *range != (0, u64::MAX));
            let choice = sizes(&ranges.collect::<Vec<_>>());
            prop_assume!(choice != sizes(&[]));
            prop_assert_eq!(choice.to_string().parse(), Ok(choice));
        }

        #[test]
        fn never_panics(head in prop::sample::select(vec!["", "size:", "size:1M..", "plan:"]), tail in "\\PC{0,16}") {
            let text = format!("{head}{tail}");
            if let Ok(choice) = text.parse::<Choice>() {
                prop_assert_eq!(choice.to_string().parse(), Ok(choice));
            }
        }
    }
}
