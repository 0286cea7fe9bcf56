//! What a workload hands back, and its form as one line of JSON.
//!
//! Invariant: seconds of setup, of measured repetitions and of verification never mix. Does not print.

use serde::{Deserialize, Serialize, Serializer};

/// One timed repetition (a sweep, a batch of updates).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Repetition {
    /// Wall seconds.
    pub seconds: f64,
    /// Bytes that the program read and wrote in it, by its own count (no write-allocate, no cache lines).
    pub bytes: u64,
    /// Operations in it: elements, updates, hops or floating-point operations, by workload.
    pub operations: u64,
    /// False when the time limit ended it early; its rates still hold for the part that was done.
    pub complete: bool,
}

/// Whether the data was read back and found right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verified", content = "wrong_values", rename_all = "snake_case")]
pub enum Verified {
    /// Read back, all of it unless the workload says otherwise; every value as expected.
    Right,
    /// Read back in the same way; this many checks failed.
    Wrong(u64),
    /// Not read back, as asked.
    Skipped,
}

/// The outcome of one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the workload.
    pub workload: &'static str,
    /// What an operation is, in the plural.
    pub operation: &'static str,
    /// Name of the placement.
    pub placement: &'static str,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// Seconds to allocate and initialise the data.
    pub setup_seconds: f64,
    /// The timed repetitions, in order.
    #[serde(serialize_with = "with_rates")]
    pub repetitions: Vec<Repetition>,
    /// Seconds to read the data back.
    pub verify_seconds: f64,
    /// Whether it was right.
    #[serde(flatten)]
    pub verified: Verified,
    /// A position-dependent digest of the data, the same for every placement and thread count; 0 when not read back. It depends on
    /// the number of operations, and so on timing where a time limit ended a repetition.
    #[serde(serialize_with = "hex")]
    pub checksum: u64,
    /// Times of single operations where those were taken: (nanoseconds, count), ascending.
    pub latencies: Vec<(u64, u64)>,
    /// The most memory that the process had so far, bytes; 0 where the kernel does not tell.
    #[serde(skip_serializing_if = "is_none")]
    pub resident_peak_bytes: u64,
    /// Floating-point operations of one operation; 0 where the work is not arithmetic.
    #[serde(skip_serializing_if = "is_zero")]
    pub flop_per_operation: f64,
    /// Wall seconds of the parts of the last repetition, by name in order; empty where a repetition has no parts.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<(&'static str, f64)>,
}

/// What one whole repetition moves and computes, by the formula of its workload: tests hold it against what the run counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Bytes that pass between the data and the work, read and written, by the workload's own count.
    pub bytes: f64,
    /// Floating-point operations; 0 where the work is not arithmetic.
    pub flop: f64,
}

impl Traffic {
    /// Arithmetic intensity, in floating-point operations per byte.
    pub fn intensity(&self) -> f64 {
        self.flop / self.bytes
    }
}

impl Verified {
    /// The outcome of checks of which `wrong` failed; `checked`: whether any were made.
    pub const fn of(checked: bool, wrong: u64) -> Self {
        match (checked, wrong) {
            (false, _) => Verified::Skipped,
            (true, 0) => Verified::Right,
            (true, wrong) => Verified::Wrong(wrong),
        }
    }
}

impl Repetition {
    /// Program traffic in 10^9 bytes per second.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds / 1e9
    }

    /// Operations per second.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

impl Report {
    /// What its last repetition moved and computed, as it counted.
    pub fn traffic(&self) -> Traffic {
        self.repetitions.last().map_or(Traffic { bytes: 0.0, flop: 0.0 }, |last| Traffic {
            bytes: last.bytes as f64,
            flop: last.operations as f64 * self.flop_per_operation,
        })
    }

    /// One line of JSON, without the line's end.
    pub fn to_json(&self) -> String {
        // Only maps with other keys than strings, and types that refuse, cannot be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn with_rates<S: Serializer>(repetitions: &[Repetition], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Rated<'a> {
        #[serde(flatten)]
        repetition: &'a Repetition,
        gb_per_s: f64,
    }
    to.collect_seq(repetitions.iter().map(|repetition| Rated { repetition, gb_per_s: repetition.gb_per_s() }))
}

fn as_map<S: Serializer>(parts: &Vec<(&'static str, f64)>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(parts.iter().copied())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}

fn hex<S: Serializer>(checksum: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{checksum:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_json_are_what_others_read() {
        let repetition = Repetition { seconds: 2.0, bytes: 3_000_000_000, operations: 7, complete: true };
        let mut report = Report {
            workload: "triad",
            operation: "elements",
            placement: "heap",
            data_bytes: 24,
            threads: 2,
            setup_seconds: 0.5,
            repetitions: vec![repetition],
            verify_seconds: 0.25,
            verified: Verified::Right,
            checksum: 0xab,
            latencies: vec![(80, 3)],
            resident_peak_bytes: 0,
            flop_per_operation: 0.0,
            parts: Vec::new(),
        };
        let right = r#"{"workload":"triad","operation":"elements","placement":"heap","data_bytes":24,"threads":2,"setup_seconds":0.5,"repetitions":[{"seconds":2.0,"bytes":3000000000,"operations":7,"complete":true,"gb_per_s":1.5}],"verify_seconds":0.25,"verified":"right","checksum":"00000000000000ab","latencies":[[80,3]]}"#;
        assert_eq!(report.to_json(), right);
        for (verified, text) in [(Verified::Wrong(3), r#""wrong","wrong_values":3"#), (Verified::Skipped, r#""skipped""#)] {
            report.verified = verified;
            assert_eq!(report.to_json(), right.replace(r#""right""#, text));
        }
        report.parts = vec![("fft", 0.5)];
        assert!(report.to_json().ends_with(r#","parts":{"fft":0.5}}"#));
    }
}
