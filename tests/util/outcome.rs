//! What came of a run of a program: its output, its end, and the counters of its run file.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What came of a run.
pub struct Outcome {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
    /// The run file, where one was written.
    pub(super) stats: Option<serde_json::Value>,
    /// Highest sum of the resident memory of all processes at one moment, where it was watched.
    pub peak_resident: u64,
}

impl Outcome {
    /// A counter of the run file.
    pub fn counter(&self, name: &str) -> u64 {
        self.counter_if_written(name).expect("a run file was written")
    }

    /// The same; `None` where there is no run file.
    pub fn counter_if_written(&self, name: &str) -> Option<u64> {
        let stats = self.stats.as_ref()?;
        Some(stats["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}")))
    }

    /// The run file.
    pub fn run_file(&self) -> &serde_json::Value {
        self.stats.as_ref().expect("a run file was written")
    }

    /// The program ended well.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{:?}\n{}{}", self.status, shorten(&self.stdout), shorten(&self.stderr));
        self
    }

    /// Data went to far and came back.
    #[track_caller]
    pub fn paged(self) -> Self {
        let (bytes_in, bytes_out) = (self.counter("bytes_in"), self.counter("bytes_out"));
        assert!(bytes_in > 0 && bytes_out > 0, "nothing was paged: {bytes_in} bytes in, {bytes_out} bytes out");
        assert_eq!(self.counter("over_budget_bytes"), 0, "near was exceeded");
        self
    }

    /// Exit code or signal; whether a core was dumped does not count.
    pub fn end(&self) -> (Option<i32>, Option<i32>) {
        (self.status.code(), self.status.signal())
    }
}

/// At most 4000 letters of it.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(4000) {
        Some((at, _)) => format!("{}... ({} bytes)\n", &text[..at], text.len()),
        None => text.to_owned(),
    }
}
