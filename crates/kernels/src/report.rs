//! What a workload hands back, and its form as one line of JSON.
//!
//! Invariant: seconds of setup, of measured repetitions and of verification never mix. Does not print.

use std::fmt::Write;

/// One timed repetition (a sweep, a batch of updates).
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Read back in full; every value as expected.
    Right,
    /// Read back in full; this many checks failed.
    Wrong(u64),
    /// Not read back, as asked.
    Skipped,
}

/// The outcome of one workload.
#[derive(Clone, Debug)]
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
    pub repetitions: Vec<Repetition>,
    /// Seconds to read the data back.
    pub verify_seconds: f64,
    /// Whether it was right.
    pub verified: Verified,
    /// A position-dependent digest of the data, the same for every placement and thread count; 0 when not read back. It depends on
    /// the number of operations, and so on timing where a time limit ended a repetition.
    pub checksum: u64,
    /// Times of single operations where those were taken: (nanoseconds, count), ascending.
    pub latencies: Vec<(u64, u64)>,
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
    /// One line of JSON, without the line's end.
    pub fn to_json(&self) -> String {
        let mut line = format!(
            "{{\"workload\":\"{}\",\"operation\":\"{}\",\"placement\":\"{}\",\"data_bytes\":{},\"threads\":{},\"setup_seconds\":{:.6},\
             \"repetitions\":[",
            self.workload, self.operation, self.placement, self.data_bytes, self.threads, self.setup_seconds
        );
        for (index, repetition) in self.repetitions.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let Repetition { seconds, bytes, operations, complete } = repetition;
            // Writing to a String cannot fail.
            let _ = write!(
                line,
                "{comma}{{\"seconds\":{seconds:.9},\"bytes\":{bytes},\"operations\":{operations},\"complete\":{complete},\
                 \"gb_per_s\":{:.6}}}",
                repetition.gb_per_s()
            );
        }
        let verified = match self.verified {
            Verified::Right => "\"right\"".to_owned(),
            Verified::Wrong(count) => format!("\"wrong\",\"wrong_values\":{count}"),
            Verified::Skipped => "\"skipped\"".to_owned(),
        };
        let _ = write!(
            line,
            "],\"verify_seconds\":{:.6},\"verified\":{verified},\"checksum\":\"{:016x}\",\"latencies\":[",
            self.verify_seconds, self.checksum
        );
        for (index, (ns, count)) in self.latencies.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(line, "{comma}[{ns},{count}]");
        }
        line += "]}";
        line
    }
}
