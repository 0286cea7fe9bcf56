//! Figures in few letters: a column of a narrow terminal must hold them.

/// Bytes in at most five letters: `800M`, `15.9G`.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["", "K", "M", "G", "T", "P"] {
        // 1023.5 would be printed as 1024.
        if value < 1023.5 || unit == "P" {
            let decimals = usize::from(!unit.is_empty() && value < 99.95);
            return format!("{value:.decimals$}{unit}");
        }
        value /= 1024.0;
    }
    String::new()
}

/// A count per second in at most five letters: `12`, `12.3k`.
pub fn count(count: f64) -> String {
    match count {
        ..0.05 => "0".into(),
        0.05..9.95 => format!("{count:.1}"),
        9.95..999.5 => format!("{count:.0}"),
        999.5..99_950.0 => format!("{:.1}k", count / 1e3),
        99_950.0..999_500.0 => format!("{:.0}k", count / 1e3),
        _ => format!("{:.1}M", count / 1e6),
    }
}

/// Bytes per second in units of a million: `0`, `0.4`, `1834`.
pub fn megabytes(bytes_per_s: f64) -> String {
    let value = bytes_per_s / 1e6;
    match value {
        ..0.05 => "0".into(),
        0.05..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A share in percent, without the sign: `75.0`, `125`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value < 100.05 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// What `text` makes of a figure; a dash without one.
pub fn or_dash<T>(figure: Option<T>, text: impl Fn(T) -> String) -> String {
    figure.map_or_else(|| "-".into(), text)
}

/// `text` in `width` letters, its end cut where it is longer and marked.
pub fn cut(text: &str, width: usize) -> String {
    // What a program is called may hold anything; letters that are two columns wide are rare in names of programs.
    let mut letters: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if letters.len() > width {
        letters.truncate(width.saturating_sub(1));
        letters.extend((width > 0).then_some('…'));
    }
    letters.into_iter().collect()
}

/// A bar of `width` letters of which `share` is full.
pub fn bar(share: f64, width: usize) -> String {
    let full = ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

/// The last `width` values as a line of bars, the latest at the right; the highest is `most`. What is not known is left empty.
pub fn spark(values: impl DoubleEndedIterator<Item = Option<f64>>, most: f64, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: f64| BARS[((value / most.max(f64::MIN_POSITIVE) * 8.0).ceil() as usize).clamp(1, 8) - 1];
    let mut line: Vec<char> = values.rev().take(width).map(|value| value.map_or(' ', bar)).collect();
    line.resize(width, ' ');
    line.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_letters() {
        for (value, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (800 << 20, "800M"),
            (1023 << 20, "1023M"),
            ((1 << 30) - 1, "1.0G"),
            (17_072_000_000, "15.9G"),
            (102_350 << 20, "100G"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert!([u64::MAX, u64::MAX / 1000].map(|value| bytes(value).len() <= 6) == [true; 2]);
        for (value, text) in [(0.01, "0"), (0.4, "0.4"), (12.3, "12"), (999.6, "1.0k"), (12_340.0, "12.3k"), (345_678.0, "346k")]
        {
            assert_eq!(count(value), text);
        }
        assert_eq!([4e5, 12.34e6, 1.8341e9, 0.0].map(megabytes), ["0.4", "12.3", "1834", "0"]);
        assert_eq!([0.75, 1.0, 1.254].map(percent), ["75.0", "100.0", "125"]);
        assert_eq!(or_dash(None::<f64>, percent), "-");
    }

    #[test]
    fn lines() {
        assert_eq!([cut("stream", 6), cut("stream", 5), cut("a\nb", 9), cut("x", 0)], ["stream", "stre…", "a b", ""]);
        assert_eq!([bar(0.5, 4), bar(7.0, 2), bar(f64::NAN, 2)], ["██░░", "██", "░░"]);
        assert_eq!(spark([None, Some(0.0), Some(1.0), Some(2.0)].into_iter(), 2.0, 6), "   ▁▄█");
        assert_eq!(spark([Some(1.0), Some(2.0)].into_iter(), 2.0, 1), "█");
        assert_eq!(spark([Some(0.0)].into_iter(), 0.0, 1), "▁");
    }
}
