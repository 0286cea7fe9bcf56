//! The environment of AutoHBW: AUTO_HBW_SIZE, AUTO_HBW_LOG and AUTO_HBW_MEM_TYPE, parsed. Pure: reads no environment and places nothing.
//!
//! What cannot be understood is refused with a message; it is never read as something else.

use nearfar_core::units::Bytes;
use std::fmt;

/// Sizes of the allocations that are placed, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// Smallest size that is placed.
    pub least: usize,
    /// Largest size that is placed.
    pub most: usize,
}

impl Default for SizeRange {
    /// 1 MiB and more.
    fn default() -> Self {
        Self { least: 1 << 20, most: usize::MAX }
    }
}

impl SizeRange {
    /// True when an allocation of `size` bytes is placed.
    #[inline(always)]
    pub const fn holds(&self, size: usize) -> bool {
        size >= self.least && size <= self.most
    }
}

/// "at least 1M", "1M to 5M".
impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |size: usize| Bytes(size as u64).exact();
        match self.most {
            usize::MAX => write!(f, "at least {}", exact(self.least)),
            most => write!(f, "{} to {}", exact(self.least), exact(most)),
        }
    }
}

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum Level {
    /// Nothing at all.
    Nothing = -2,
    /// What is wrong. The default.
    Warnings = -1,
    /// What was chosen at the start, and a summary at exit.
    Info = 0,
    /// One line per placed allocation besides.
    Allocations = 1,
    /// Each with the calls that led to it.
    Callers = 2,
}

/// What the three variables say. `M` stands for a kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<M> {
    /// Which allocations are placed; `None` when AUTO_HBW_SIZE or AUTO_HBW_MEM_TYPE was refused: nothing is.
    pub window: Option<SizeRange>,
    /// How much is printed.
    pub level: Level,
    /// The kind of memory; `None` when nobody chose one.
    pub kind: Option<M>,
}

/// Parses the three variables as they are in the environment (`None`: not set). `kinds` are the names that AUTO_HBW_MEM_TYPE may
/// have, in any case. Returns what is to be done, and one message for each variable that was refused.
pub fn parse<M: Copy>(
    size: Option<&str>,
    log: Option<&str>,
    kind: Option<&str>,
    kinds: &[(&str, M)],
) -> (Settings<M>, Vec<String>) {
    let mut refused = Vec::new();
    let mut settings = Settings { window: Some(SizeRange::default()), level: Level::Warnings, kind: None };
    match log.map_or(Ok(Level::Warnings), parse_level) {
        Ok(level) => settings.level = level,
        Err(why) => refused.push(format!("AUTO_HBW_LOG: {why}; only warnings are printed")),
    }
    match size.map_or(Ok(SizeRange::default()), parse_window) {
        Ok(window) => settings.window = Some(window),
        Err(why) => {
            settings.window = None;
            refused.push(format!("AUTO_HBW_SIZE: {why}; nothing is placed"));
        }
    }
    match kind.map(|name| parse_kind(name, kinds)).transpose() {
        Ok(kind) => settings.kind = kind,
        Err(why) => {
            settings.window = None;
            refused.push(format!("AUTO_HBW_MEM_TYPE: {why}; nothing is placed"));
        }
    }
    (settings, refused)
}

/// `LEAST`, `LEAST:` or `LEAST:MOST`.
fn parse_window(text: &str) -> Result<SizeRange, String> {
    let (least, most) = text.split_once(':').unwrap_or((text, ""));
    let window =
        SizeRange { least: parse_size(least)?, most: if most.trim().is_empty() { usize::MAX } else { parse_size(most)? } };
    if window.least > window.most {
        return Err(format!(
            "\"{text}\" contains no size: the first must not be larger than the second; write for example 1M:5M"
        ));
    }
    Ok(window)
}

fn parse_size(text: &str) -> Result<usize, String> {
    // Everything is placed from 0 on; core has no use for that.
    if text.trim() == "0" {
        return Ok(0);
    }
    let bytes = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    usize::try_from(bytes.0).map_err(|_| format!("\"{text}\" is more than this machine can address"))
}

fn parse_level(text: &str) -> Result<Level, String> {
    match text.trim() {
        "-2" => Ok(Level::Nothing),
        "-1" => Ok(Level::Warnings),
        "0" => Ok(Level::Info),
        "1" => Ok(Level::Allocations),
        "2" => Ok(Level::Callers),
        _ => Err(format!(
            "\"{text}\" is not a level; write -2 (nothing), -1 (warnings), 0 (what was chosen, and a summary), 1 (also each \
             allocation) or 2 (with its callers)"
        )),
    }
}

fn parse_kind<M: Copy>(text: &str, kinds: &[(&str, M)]) -> Result<M, String> {
    let wanted = text.trim();
    if let Some((_, kind)) = kinds.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)) {
        return Ok(*kind);
    }
    if wanted.to_ascii_uppercase().ends_with("_GBTLB") {
        return Err(format!("\"{text}\" (pages of 1 GiB) no longer exists, as in memkind itself; use a _HUGETLB kind"));
    }
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    Err(format!("\"{text}\" is not a kind of memory; write one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: &[(&str, u8)] = &[("MEMKIND_DEFAULT", 0), ("MEMKIND_HBW", 1), ("MEMKIND_HBW_PREFERRED", 2)];

    fn window(text: &str) -> Option<(usize, usize)> {
        let (settings, refused) = parse(Some(text), None, None, KINDS);
        assert_eq!(settings.window.is_none(), !refused.is_empty(), "{text}: nothing is refused without a word");
        settings.window.map(|window| (window.least, window.most))
    }

    #[test]
    fn sizes_as_documented_and_what_the_original_misread() {
        for (text, expected) in [
            ("4K", (4096, usize::MAX)),
            ("1M:5M", (1 << 20, 5 << 20)),
            ("1M:", (1 << 20, usize::MAX)),
            ("100", (100, usize::MAX)),
            ("0", (0, usize::MAX)),
            ("1m:2g", (1 << 20, 2 << 30)),
            ("4KB:8KB", (4096, 8192)),
            ("4KiB:8KiB", (4096, 8192)),
            ("1.5M", (3 << 19, usize::MAX)),
            ("2T", (2 << 40, usize::MAX)),
            ("4096:4096", (4096, 4096)),
        ] {
            assert_eq!(window(text), Some(expected), "{text}");
        }
        for text in ["abc", "", ":", ":8K", "-1", "5M:1M", "1M:x", "1M:2M:3M", "1X", "1e6", "99999999999999999999", "50%"] {
            assert_eq!(window(text), None, "{text}");
        }
    }

    #[test]
    fn both_ends_are_inside() {
        let window = SizeRange { least: 10, most: 20 };
        assert!(window.holds(10) && window.holds(20) && !window.holds(9) && !window.holds(21));
        assert_eq!(SizeRange { least: 1 << 20, most: 5 << 20 }.to_string(), "1M to 5M");
        assert_eq!(SizeRange::default().to_string(), "at least 1M");
    }

    #[test]
    fn levels_and_kinds() {
        for (text, level) in [("-2", Level::Nothing), ("-1", Level::Warnings), ("0", Level::Info), ("1", Level::Allocations)] {
            assert_eq!(
                parse(None, Some(text), None, KINDS),
                (Settings { window: Some(SizeRange::default()), level, kind: None }, vec![])
            );
        }
        let (settings, refused) = parse(None, Some("3"), Some("Memkind_Hbw"), KINDS);
        assert_eq!((settings.level, settings.kind, refused.len()), (Level::Warnings, Some(1), 1));
        let (settings, refused) = parse(None, None, Some("MEMKIND_HBM"), KINDS);
        assert!(settings.window.is_none() && refused[0].contains("MEMKIND_HBW_PREFERRED"), "{refused:?}");
        let (_, refused) = parse(None, None, Some("memkind_hbw_gbtlb"), KINDS);
        assert!(refused[0].contains("_HUGETLB"), "{refused:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_understood_or_refused(size in ".*", log in ".*", kind in ".*") {
            let (settings, refused) = parse(Some(&size), Some(&log), Some(&kind), KINDS);
            prop_assert!(settings.window.is_some() || !refused.is_empty());
            prop_assert!(settings.window.is_none_or(|window| window.least <= window.most));
        }

        #[test]
        fn what_is_printed_can_be_read(least in 0usize..1 << 50, more in 0usize..1 << 50) {
            let (window, exact) = (SizeRange { least, most: least + more }, |size: usize| Bytes(size as u64).exact());
            prop_assert_eq!(parse_window(&format!("{}:{}", exact(window.least), exact(window.most))), Ok(window));
        }
    }
}
