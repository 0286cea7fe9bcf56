//! CPU numbers as the kernel writes them: `0-3,8,10-11`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Ascending CPU (or node) numbers without repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuList(Vec<u32>);

/// Numbers beyond this are a broken file, not a machine.
const MOST: u32 = 1 << 20;

impl CpuList {
    /// The numbers, ascending.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True for no number at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True when `number` is among them.
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    /// The numbers that are in both.
    pub fn and(&self, other: &Self) -> Self {
        self.0.iter().copied().filter(|&number| other.contains(number)).collect()
    }

    /// True when they share a number.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|&number| other.contains(number))
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let bad = || format!("\"{part}\" is not a range of numbers");
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
            if last < first || last > MOST {
                return Err(bad());
            }
            numbers.extend(first..=last);
        }
        Ok(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &self.0[..];
        let mut comma = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|&(&a, b)| a == b).count();
            write!(f, "{comma}{first}")?;
            if run > 1 {
                write!(f, "-{}", rest[run - 1])?;
            }
            (rest, comma) = (&rest[run..], ",");
        }
        Ok(())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        let list: CpuList = "0-3,8,10-11\n".parse().unwrap();
        assert_eq!(list.as_slice(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list.to_string(), "0-3,8,10-11");
        assert!("\n".parse::<CpuList>().unwrap().is_empty());
        for bad in ["3-1", "a", "1-", "0-99999999"] {
            assert!(bad.parse::<CpuList>().is_err(), "{bad}");
        }
    }
}
