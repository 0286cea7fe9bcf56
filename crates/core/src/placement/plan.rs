//! The plan: which objects go to which tier, by where they are allocated. Written by people and by the advisor (plan.toml), compiled
//! for the programs (`table`). Types and checks; the text format is read elsewhere (any serde format does).

use super::{ObjectKind, SizeRange, Tier};
use crate::units::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Version of the format. Readers refuse a higher one; additions that old readers may ignore do not raise it.
pub const PLAN_FORMAT: u32 = 1;

/// Names that are not fields of the format, as they were found. They are kept so that they can be told: a misspelt field must not
/// pass as none.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Unknown(BTreeMap<String, IgnoredAny>);

impl Unknown {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What is not understood does not count.
impl PartialEq for Unknown {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_FORMAT`].
    pub nearfar_plan: u32,
    /// The first rule that fits an object decides; objects that none fits go to far.
    #[serde(default)]
    pub place: Vec<Place>,
    /// What else there is; never written.
    #[serde(flatten, skip_serializing)]
    pub unknown: Unknown,
}

/// A rule: objects that fit all of it go to `tier`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where.
    pub tier: TierName,
    /// What sort of object.
    #[serde(default)]
    pub kind: KindName,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Smallest size, such as "1M".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<String>,
    /// Largest size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
    /// The symbol of a static array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// File name of the program or library that holds the static array; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The innermost frames of the allocation, without malloc and the run-time libraries. None: wherever it is allocated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame: Vec<Frame>,
    /// What else there is; never written.
    #[serde(flatten, skip_serializing)]
    pub unknown: Unknown,
}

/// A place in the code: a return address, or a function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// File name of the program or library, without directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The file's build id, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Return address relative to the module's load address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Name of the function as the symbol table has it (mangled): what counts when the file was built anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// For people: "wave.f90:120".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// This function only hands on what the frames behind it ask for: a rule that has nothing else left is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hands_on: bool,
    /// The compiler had put this function into its caller, the next frame: it counts only in a build where it is one of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
    /// What else there is; never written.
    #[serde(flatten, skip_serializing)]
    pub unknown: Unknown,
}

/// A tier by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierName {
    /// The fast and small one.
    #[default]
    Near,
    /// The large and slower one.
    Far,
}

impl From<TierName> for Tier {
    fn from(name: TierName) -> Self {
        match name {
            TierName::Near => Tier::Near,
            TierName::Far => Tier::Far,
        }
    }
}

/// Kinds of objects by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindName {
    /// Blocks of malloc and its like.
    #[default]
    Heap,
    /// Private anonymous mappings.
    Map,
    /// Static arrays.
    Static,
    /// Stacks of all threads.
    Stack,
}

impl KindName {
    /// The kinds that are meant.
    pub const fn kinds(self) -> &'static [ObjectKind] {
        match self {
            Self::Heap => &[ObjectKind::Heap],
            Self::Map => &[ObjectKind::Map],
            Self::Static => &[ObjectKind::Static],
            Self::Stack => &[ObjectKind::ThreadStack, ObjectKind::MainStack],
        }
    }
}

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Written by a newer nearfar, or no plan.
    #[error("it is a plan of format {0}; this nearfar knows up to {PLAN_FORMAT}: use the nearfar that wrote it")]
    Newer(u32),
    /// No version.
    #[error("it does not begin with \"nearfar_plan = 1\"")]
    NoVersion,
    /// No rule at all.
    #[error("it places nothing: there is no [[place]]")]
    Empty,
    /// More than anyone could mean.
    #[error("it has {0} rules or frames, and at most {MOST_RULES} are possible")]
    TooLong(usize),
    /// A rule that cannot be carried out.
    #[error("[[place]] number {number}{name}: {why}")]
    Rule {
        /// Counted from 1.
        number: usize,
        /// Its name in brackets, or nothing.
        name: String,
        /// What is wrong, and what to write.
        why: String,
    },
}

/// Rules, and frames of all rules together, in a plan.
pub const MOST_RULES: usize = 1 << 16;
/// Frames of one rule: deeper stacks tell nothing more.
pub const MOST_FRAMES: usize = 64;
/// Bytes of a build id (SHA-1 has 20, the largest that linkers write is 32).
pub const MAX_BUILD_ID: usize = 32;

impl Plan {
    /// A plan of these rules.
    pub fn new(place: Vec<Place>) -> Self {
        Self { nearfar_plan: PLAN_FORMAT, place, unknown: Unknown::default() }
    }

    /// Checks everything that a compiler of plans takes for granted.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        match self.nearfar_plan {
            0 => return Err(PlanError::NoVersion),
            format if format > PLAN_FORMAT => return Err(PlanError::Newer(format)),
            _ if self.place.is_empty() => return Err(PlanError::Empty),
            _ => {}
        }
        let count = self.place.len().max(self.place.iter().map(|place| place.frame.len()).sum());
        if count > MOST_RULES {
            return Err(PlanError::TooLong(count));
        }
        for (number, place) in (1..).zip(&self.place) {
            let name = if place.name.is_empty() { String::new() } else { format!(" ({})", place.name) };
            place.check().map_err(|why| PlanError::Rule { number, name, why })?;
        }
        Ok(())
    }

    /// Fields that are not of the format, each with its place, for people.
    pub fn unknown(&self) -> Vec<String> {
        let mut all: Vec<String> = self.unknown.names().map(str::to_owned).collect();
        for (number, place) in (1..).zip(&self.place) {
            let names = place.unknown.names().chain(place.frame.iter().flat_map(|frame| frame.unknown.names()));
            all.extend(names.map(|name| format!("{name} in [[place]] number {number}")));
        }
        all
    }
}

impl Place {
    /// The sizes that are meant.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn sizes(&self) -> Result<SizeRange, String> {
        let bytes = |name: &str, text: &Option<String>, none: u64| match text {
            Some(text) => text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| format!("{name}: {error}")),
            None => Ok(none),
        };
        let range = SizeRange { least: bytes("least", &self.least, 0)?, most: bytes("most", &self.most, u64::MAX)? };
        if range.least > range.most {
            return Err(format!("no size is at least {} and at most {}", Bytes(range.least).exact(), Bytes(range.most).exact()));
        }
        Ok(range)
    }

    fn check(&self) -> Result<(), String> {
        self.sizes()?;
        let is_static = self.kind == KindName::Static;
        if !is_static && (self.symbol.is_some() || self.module.is_some()) {
            return Err("symbol and module are for static arrays only; write kind = \"static\"".to_owned());
        }
        if is_static && self.module.is_some() && self.symbol.is_none() {
            return Err("a module without a symbol; name the array with symbol".to_owned());
        }
        if matches!(self.kind, KindName::Static | KindName::Stack) && !self.frame.is_empty() {
            return Err("only what is allocated (kind heap or map) has frames".to_owned());
        }
        if self.symbol.as_ref().is_some_and(String::is_empty) {
            return Err("the symbol is empty".to_owned());
        }
        if self.frame.len() > MOST_FRAMES {
            return Err(format!("{} frames; the innermost {MOST_FRAMES} are enough", self.frame.len()));
        }
        self.frame.iter().try_for_each(Frame::check)
    }
}

impl Frame {
    /// The bytes of the build id; none when there is none.
    ///
    /// # Errors
    /// What is wrong with its digits.
    pub fn build_id(&self) -> Result<Vec<u8>, String> {
        let Some(text) = &self.build_id else { return Ok(Vec::new()) };
        let digits = text.as_bytes();
        let bad = || format!("build_id \"{text}\" is not an even number of hexadecimal digits, 2 to {}", 2 * MAX_BUILD_ID);
        if digits.is_empty() || digits.len() % 2 != 0 || digits.len() > 2 * MAX_BUILD_ID {
            return Err(bad());
        }
        let digit = |byte: u8| (byte as char).to_digit(16).ok_or_else(bad);
        digits.chunks(2).map(|pair| Ok((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
    }

    fn check(&self) -> Result<(), String> {
        let build_id = self.build_id()?;
        let is_empty = |text: &Option<String>| text.as_ref().is_some_and(String::is_empty);
        if is_empty(&self.module) || is_empty(&self.function) {
            return Err("a frame with an empty name; leave the field out".to_owned());
        }
        if self.module.as_ref().is_some_and(|name| name.contains('/')) {
            return Err("a module is a file name without directories".to_owned());
        }
        if self.offset.is_some() && build_id.is_empty() && self.module.is_none() {
            return Err("an offset needs a build_id or a module".to_owned());
        }
        if self.offset.is_none() && self.function.is_none() {
            return Err("a frame needs an offset (with build_id or module) or a function".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON stands for TOML here: both come through serde.
    fn plan(places: &str) -> Plan {
        serde_json::from_str(&format!("{{\"nearfar_plan\": 1, \"place\": [{places}]}}")).unwrap()
    }

    #[test]
    fn a_plan_is_read_and_written() {
        let text = r#"{"tier": "near", "name": "psi", "least": "1M", "most": "64M", "frame": [
            {"module": "vasp", "build_id": "ab12", "offset": 4660, "function": "allocate_wave_", "line": "wave.f90:120"}]},
            {"tier": "far", "kind": "static", "symbol": "psi_"}, {"tier": "near", "kind": "stack"}"#;
        let plan = plan(text);
        plan.check().unwrap();
        assert_eq!(plan.place[0].sizes(), Ok(SizeRange { least: 1 << 20, most: 64 << 20 }));
        assert_eq!(plan.place[0].frame[0].build_id(), Ok(vec![0xab, 0x12]));
        assert_eq!((plan.place[1].kind, plan.place[2].kind.kinds().len()), (KindName::Static, 2));
        let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
        assert!(plan.unknown().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, hint) in [
            ("", "no [[place]]"),
            (r#"{"tier": "near", "least": "1Q"}"#, "number 1: least"),
            (r#"{"tier": "near"}, {"tier": "near", "name": "b", "least": "2M", "most": "1M"}"#, "number 2 (b): no size"),
            (r#"{"tier": "near", "symbol": "x_"}"#, "kind = \"static\""),
            (r#"{"tier": "near", "kind": "static", "module": "a"}"#, "without a symbol"),
            (r#"{"tier": "near", "kind": "stack", "frame": [{"function": "f"}]}"#, "has frames"),
            (r#"{"tier": "near", "frame": [{"build_id": "abc", "offset": 1}]}"#, "hexadecimal"),
            (r#"{"tier": "near", "frame": [{"build_id": "zz", "offset": 1}]}"#, "hexadecimal"),
            (r#"{"tier": "near", "frame": [{"offset": 1}]}"#, "needs a build_id"),
            (r#"{"tier": "near", "frame": [{"module": "a"}]}"#, "needs an offset"),
            (r#"{"tier": "near", "frame": [{"module": "/bin/a", "function": "f"}]}"#, "without directories"),
        ] {
            let error = plan(text).check().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let version = |version: u32| Plan { nearfar_plan: version, ..Plan::new(vec![Place::default()]) }.check();
        assert_eq!(version(0), Err(PlanError::NoVersion));
        assert_eq!(version(2), Err(PlanError::Newer(2)));
        assert_eq!(version(1), Ok(()));
        for bad in [r#"{"tier": "middle"}"#, r#"{"kind": "heap"}"#, r#"{"tier": "near", "kind": "text"}"#] {
            assert!(serde_json::from_str::<Place>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn misspelt_fields_are_told() {
        let plan = plan(r#"{"tier": "near"}, {"tier": "near", "lest": "1M", "frame": [{"function": "f", "fnuction": "g"}]}"#);
        assert_eq!(plan.unknown(), ["lest in [[place]] number 2", "fnuction in [[place]] number 2"]);
    }
}
