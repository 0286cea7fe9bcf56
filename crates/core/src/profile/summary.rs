//! What a whole profile says: the input of tables, pages, the advisor and comparisons. All of it is serialisable (JSON), so that
//! other tools can read it.

use super::record::{Kind, Method};
use super::timeline::MOST_BINS;
use serde::{Deserialize, Serialize};

/// Version of the summary as JSON. Readers refuse another.
pub const FORMAT: u32 = 1;
/// The C library maps every block of more bytes by itself: each comes with new pages, however many were freed before.
pub const ALWAYS_MAPPED: u64 = 32 << 20;

/// A number with the interval that holds the truth in 9 of 10 cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// The truth is below in one case of twenty.
    pub low: f64,
    /// The truth is above in one case of twenty.
    pub high: f64,
}

impl Estimate {
    /// A number that is known.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

/// The sum, its interval as for independent errors.
impl std::ops::Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let value = self.value + other.value;
        let below = (self.value - self.low).hypot(other.value - other.low);
        let above = (self.high - self.value).hypot(other.high - other.value);
        Self { value, low: value - below, high: value + above }
    }
}

/// Shares of a curve: what fraction of accesses misses if so much memory is near. Points in order of bytes, the first at 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// (bytes near, share that misses 0..=1).
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// The share at `bytes`, between points in a straight line, beyond the last as there. 1 without points.
    pub fn at(&self, bytes: f64) -> f64 {
        let after = self.points.partition_point(|&(x, _)| x <= bytes);
        match (after.checked_sub(1).and_then(|before| self.points.get(before)), self.points.get(after)) {
            (Some(&(x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (bytes - x0) / (x1 - x0),
            (Some(&(_, y)), None) | (None, Some(&(_, y))) => y,
            (None, None) => 1.0,
        }
    }
}

/// How a program goes through an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Not seen often enough to tell.
    #[default]
    Unknown,
    /// Line after line.
    Stream,
    /// With a step that leaves lines out.
    Strided,
    /// No order: gather, scatter, hash, pointers.
    Random,
}

/// A place in the code, as people read it and plans match it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedFrame {
    /// File name of the program or library, without directories.
    pub module: String,
    /// Hexadecimal digits; empty: none.
    pub build_id: String,
    /// Address in the module's file.
    pub offset: u64,
    /// Mangled symbol; empty: not known.
    pub symbol: String,
    /// For people, demangled; inlined functions are frames of their own without a symbol.
    pub function: String,
    /// `file:line`; empty: not known.
    pub line: String,
}

/// All objects that are allocated at one place, or one static array, or the stacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectGroup {
    /// For people, unique in a profile: "psi (wave.f90:120)", "a.py:12 (main)", "bss_array".
    pub name: String,
    /// What sort of memory.
    pub kind: Kind,
    /// The symbol of a static array; else empty.
    pub symbol: String,
    /// Allocation functions further in than `frames`, innermost first: they pass on what those ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed_on: Vec<NamedFrame>,
    /// Where it is allocated, innermost first, allocation functions left out.
    pub frames: Vec<NamedFrame>,
    /// How many objects there were.
    pub count: u64,
    /// Size of the smallest.
    pub least: u64,
    /// Size of the largest.
    pub most: u64,
    /// Most bytes at a time.
    pub peak_bytes: u64,
    /// Bytes over time, one number per bin of [`Summary::bin_s`]: the most at a time in the bin, so that capacity can be told.
    pub live_bytes: Vec<f64>,
    /// Mean seconds from allocation to the end.
    pub lifetime_s: f64,
    /// Bytes of memory that were ever touched, at most `peak_bytes`.
    pub footprint: Estimate,
    /// Bytes read from memory (lines that the caches did not hold), in all.
    pub read: Estimate,
    /// Bytes written back to memory, in all.
    pub written: Estimate,
    /// Of the lines that visits of its pages read, the share that they change, whether or not a cache holds the lines: so many of its
    /// pages differ from far when they leave near. `None` where no look tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<f64>,
    /// `read + written` over time, per bin.
    pub traffic: Vec<f64>,
    /// Lines of a page that a visit touches, 1..=64.
    pub lines_per_visit: Estimate,
    /// How it is gone through.
    pub pattern: Pattern,
    /// Share of its page visits that miss, if so many bytes of *this object* are near as a mean over the time that it lives, and
    /// the rest of it is paged (LRU): near memory is that of the whole program, which an object that is not in use leaves to
    /// others.
    pub misses: Curve,
    /// Visits of pages in all: what [`misses`](Self::misses) is a share of.
    pub page_visits: Estimate,
    /// Functions that touch it, with their share of visits, largest first.
    pub routines: Vec<(String, f64)>,
    /// Seconds of the program's CPU time spent at instructions that touch it; 0 when not known.
    pub busy_s: f64,
    /// Looks at it: few mean a wide interval.
    pub looks: u64,
    /// Looks that saw a touch.
    pub touches: u64,
    /// Memory samples of the processor that lie in it; 0 where there are none.
    #[serde(default)]
    pub samples: u64,
    /// Mean cycles of its sampled loads that the first cache did not hold; 0: not measured.
    #[serde(default)]
    pub load_cycles: f64,
}

impl ObjectGroup {
    /// Bytes read and written, in all.
    pub fn total(&self) -> Estimate {
        self.read + self.written
    }
}

/// A function of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Routine {
    /// For people.
    pub function: String,
    /// File name of the program or library.
    pub module: String,
    /// CPU seconds in it.
    pub self_s: f64,
    /// The same over time, per bin of [`Summary::bin_s`]; empty: not known.
    #[serde(default)]
    pub time: Vec<f64>,
    /// Bytes from and to memory.
    pub traffic: Estimate,
    /// Floating-point operations per byte of loads and stores in its inner loops, from the machine code; `None`: not known.
    pub flops_per_access_byte: Option<f64>,
}

/// What a profile says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`FORMAT`].
    #[serde(default)]
    pub format: u32,
    /// Program of the first process.
    pub program: String,
    /// Arguments of the first process.
    pub args: Vec<String>,
    /// Processes that were observed.
    pub processes: u32,
    /// Machine of the first process.
    pub host: String,
    /// How accesses were observed.
    pub method: Method,
    /// Seconds from the first record to the last.
    pub wall_s: f64,
    /// CPU seconds of the program, our own threads left out.
    pub cpu_s: f64,
    /// Seconds that each number of a timeline stands for.
    pub bin_s: f64,
    /// Cache that was taken for the last level, in bytes.
    pub cache_bytes: u64,
    /// Blocks from so many bytes on were objects of their own; 0: not known.
    #[serde(default)]
    pub least: u64,
    /// Most bytes of all objects at a time.
    pub peak_bytes: u64,
    /// In order of traffic, most first.
    pub objects: Vec<ObjectGroup>,
    /// In order of time, most first.
    pub routines: Vec<Routine>,
    /// Share of page visits that miss, by bytes near for the whole program.
    pub misses: Curve,
    /// Share of the program's CPU time that observing took (our threads, stalls, hooks).
    pub overhead: f64,
    /// Memory samples of the processor that were evaluated; 0 where there are none.
    #[serde(default)]
    pub samples: u64,
    /// Samples that the kernel had no room for.
    #[serde(default)]
    pub samples_lost: u64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// Why a summary cannot be one of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// Another version wrote it.
    #[error("this summary has format {0}, and this nearfar reads format {FORMAT}: make it again from the .nfprof file")]
    Format(u32),
    /// A number that no profile has.
    #[error("{0}")]
    Wrong(String),
}

fn wrong(what: impl std::fmt::Display) -> SummaryError {
    SummaryError::Wrong(what.to_string())
}

fn amounts(what: &str, values: &[f64]) -> Result<(), SummaryError> {
    match values.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
        Some(value) => Err(wrong(format_args!("{what} is {value}"))),
        None => Ok(()),
    }
}

/// A timeline.
fn line(what: &str, values: &[f64]) -> Result<(), SummaryError> {
    amounts(what, values)?;
    if values.len() > MOST_BINS {
        return Err(wrong(format_args!("{what} has {} numbers; at most {MOST_BINS} are allowed", values.len())));
    }
    Ok(())
}

impl Estimate {
    fn check(&self, what: &str) -> Result<(), SummaryError> {
        amounts(what, &[self.value, self.low, self.high])?;
        let slack = 1e-9 * self.value + 1e-9;
        if self.low <= self.value + slack && self.value <= self.high + slack {
            return Ok(());
        }
        Err(wrong(format_args!("{what}: {} is not between {} and {}", self.value, self.low, self.high)))
    }
}

impl Curve {
    fn check(&self, what: &str) -> Result<(), SummaryError> {
        for &(bytes, share) in &self.points {
            amounts(what, &[bytes, share])?;
            if share > 1.0 + 1e-9 {
                return Err(wrong(format_args!("{what}: a share of {share} is more than 1")));
            }
        }
        match self.points.is_sorted_by(|one, next| one.0 <= next.0) {
            true => Ok(()),
            false => Err(wrong(format_args!("{what} is not sorted by bytes"))),
        }
    }
}

impl ObjectGroup {
    fn check(&self) -> Result<(), SummaryError> {
        let of = |what: &str| format!("object \"{}\": {what}", self.name);
        let estimates = [
            ("footprint", self.footprint),
            ("read", self.read),
            ("written", self.written),
            ("lines_per_visit", self.lines_per_visit),
            ("page_visits", self.page_visits),
        ];
        estimates.iter().try_for_each(|(what, estimate)| estimate.check(&of(what)))?;
        amounts(&of("lifetime_s, busy_s or load_cycles"), &[self.lifetime_s, self.busy_s, self.load_cycles])?;
        self.routines.iter().try_for_each(|(name, share)| amounts(&of(name), &[*share]))?;
        line(&of("live_bytes"), &self.live_bytes)?;
        line(&of("traffic"), &self.traffic)?;
        amounts(&of("changed"), self.changed.as_slice())?;
        self.misses.check(&of("misses"))
    }
}

impl Summary {
    /// True when anything was looked at or sampled: traffic without it is a guess about nothing.
    pub fn saw_anything(&self) -> bool {
        self.samples > 0 || self.objects.iter().any(|object| object.looks > 0)
    }

    /// How well shares of the traffic are known: half of the interval of the object whose share is known worst, as a share of all
    /// traffic; `None` where there is none.
    pub fn confidence(&self) -> Option<f64> {
        let all: f64 = self.objects.iter().map(|object| object.total().value).sum();
        let halves = self.objects.iter().map(|object| (object.total().high - object.total().low) / 2.0);
        (all > 0.0 && self.method != Method::None).then(|| halves.fold(0.0, f64::max) / all)
    }

    /// Checks what readers take for granted: numbers that are none, negative or too many, and curves without order.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SummaryError> {
        if self.format != FORMAT {
            return Err(SummaryError::Format(self.format));
        }
        let times = [("wall_s", self.wall_s), ("cpu_s", self.cpu_s), ("bin_s", self.bin_s), ("overhead", self.overhead)];
        times.iter().try_for_each(|&(what, value)| amounts(what, &[value]))?;
        if self.bin_s > 0.0 && self.wall_s / self.bin_s > MOST_BINS as f64 + 1e-6 {
            let (bin, wall) = (self.bin_s, self.wall_s);
            return Err(wrong(format_args!("bin_s: {wall} s are more than {MOST_BINS} bins of {bin} s")));
        }
        self.objects.iter().try_for_each(ObjectGroup::check)?;
        for routine in &self.routines {
            amounts(&routine.function, &[routine.self_s, routine.flops_per_access_byte.unwrap_or(0.0)])?;
            line(&routine.function, &routine.time)?;
            routine.traffic.check(&routine.function)?;
        }
        self.misses.check("misses")
    }
}
