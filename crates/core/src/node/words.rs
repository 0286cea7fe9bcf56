//! Numbers of a machine description as people read them: three digits and a unit. Tables, charts and reports use the same words.

/// `value` with three significant digits and the largest unit that leaves at least one before the point; units are 1000 apart.
fn scaled(value: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let (mut value, mut unit) = (value, 0);
    // 999.5 is written as 1000 with three digits: it belongs to the next unit.
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

/// Three significant digits, no more than two of them behind the point.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Bytes per second, powers of 1000: "12.3 GB/s".
pub fn rate(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"])
}

/// Floating-point operations per second: "1.20 TFLOP/s".
pub fn flops(per_s: f64) -> String {
    scaled(per_s, &["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"])
}

/// Nanoseconds in the unit that suits: "85.0 ns", "8.90 µs".
pub fn time(ns: f64) -> String {
    scaled(ns, &["ns", "µs", "ms", "s"])
}

/// Joules: "602 pJ".
pub fn joules(value: f64) -> String {
    scaled(value * 1e12, &["pJ", "nJ", "µJ", "mJ", "J", "kJ"])
}

/// Hertz: "2.25 GHz".
pub fn hertz(value: f64) -> String {
    scaled(value, &["Hz", "kHz", "MHz", "GHz"])
}

/// Bytes of memory, powers of 1024, whole numbers without a point: "16 GiB", "31.4 GiB".
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let number = if value.fract() == 0.0 { format!("{value:.0}") } else { digits(value) };
    format!("{number} {}", UNITS[unit])
}

/// A share, 0 to 1, as per cent: "78 %", "0.4 %".
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() {
        "? %".to_owned()
    } else if value != 0.0 && value.abs() < 9.95 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(rate(559.6e9), "560 GB/s");
        assert_eq!(rate(999.7e6), "1.00 GB/s");
        assert_eq!(rate(6.04e12), "6.04 TB/s");
        assert_eq!(rate(0.0), "0.00 B/s");
        assert_eq!(flops(2252.8e9), "2.25 TFLOP/s");
        assert_eq!(time(3.1), "3.10 ns");
        assert_eq!(time(8_900.0), "8.90 µs");
        assert_eq!(joules(6.02e-10), "602 pJ");
        assert_eq!(hertz(1.1e9), "1.10 GHz");
        assert_eq!(rate(f64::NAN), "?");
    }

    #[test]
    fn sizes_and_shares() {
        assert_eq!(size(16 << 30), "16 GiB");
        assert_eq!(size(1_500_000_000), "1.40 GiB");
        assert_eq!(size(0), "0 B");
        assert_eq!(size(u64::MAX), "16384 PiB");
        assert_eq!(percent(0.784), "78 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(-0.25), "-25 %");
    }
}
