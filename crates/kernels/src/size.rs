//! Sizes as people type and read them: `2400M` is 2400 * 1024 * 1024 bytes; every suffix is binary.
//!
//! Owns nothing. Does not know percentages or node sizes: those are tier specifications.

/// Parses `4096`, `64K`, `800M`, `1.5G`, `2T`, each with an optional `B` or `iB`; bytes. `None` for anything else, zero included.
pub fn parse_size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit: u64 = match suffix.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * unit as f64;
    (bytes >= 1.0 && bytes < (1u64 << 52) as f64).then_some(bytes as usize)
}

/// `bytes` with three or four digits and a binary unit: `2400 MiB`, `1.5 GiB`.
pub fn show_size(bytes: usize) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 9999 and not 1023: sizes that people chose as 2400M should be shown back as 2400 MiB.
    while value > 9999.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() < 0.05 { format!("{value:.0} {}", UNITS[unit]) } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_nonsense_is_refused() {
        assert_eq!(parse_size("2400M"), Some(2400 << 20));
        assert_eq!(parse_size("1.5GiB"), Some(3 << 29));
        assert_eq!(parse_size("64KB"), Some(64 << 10));
        assert_eq!(parse_size("4096"), Some(4096));
        for nonsense in ["", "0", "M", "-1", "1X", "1..5M", "1e400", "99999999T"] {
            assert_eq!(parse_size(nonsense), None, "{nonsense}");
        }
        assert_eq!(show_size(2400 << 20), "2400 MiB");
    }
}
