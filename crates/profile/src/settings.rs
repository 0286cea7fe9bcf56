//! What the command asks of the library, as it travels in the environment: postcard in hexadecimal digits. Both are of one build.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The variable of the environment.
pub const ENV_PROFILE: &str = "NEARFAR_PROFILE";

/// Means of observing that can be left out, to try what happens without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Pages are not taken out of view.
    pub faults: bool,
    /// Time is not sampled.
    pub clock: bool,
    /// The interpreter's frames are not looked at.
    pub script: bool,
    /// The processor takes no memory samples.
    pub samples: bool,
    /// CPUs may sleep while pages are looked at.
    pub awake: bool,
}

/// How a process is to be observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Where records go: an absolute path of a file that exists.
    #[serde(with = "any_path")]
    pub file: PathBuf,
    /// Least size of a block that is an object of its own.
    pub least: u64,
    /// Share of the program's time that observing may take.
    pub budget: f64,
    /// Bytes that the file may have.
    pub limit: u64,
    /// The processor samples more often.
    pub precise: bool,
    /// What random choices start from; 0: the clock.
    pub seed: u64,
    /// What is left out.
    pub denied: Denied,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            file: PathBuf::new(),
            least: 4096,
            budget: 0.02,
            limit: 64 << 20,
            precise: false,
            seed: 0,
            denied: Denied::default(),
        }
    }
}

/// Paths that need not be UTF-8.
mod any_path {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

impl Settings {
    /// The value of the variable.
    pub fn to_value(&self) -> String {
        let bytes = postcard::to_allocvec(self).expect("numbers and a path can be written");
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the variable; the error says what is wrong.
    ///
    /// # Errors
    /// A value that `to_value` does not write, or that makes no sense.
    pub fn parse(value: &OsStr) -> Result<Self, String> {
        let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = value.as_bytes().chunks(2).map(digits).collect();
        let settings: Option<Self> = bytes.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let makes_sense = |settings: &Self| settings.file.is_absolute() && (0.0..=1.0).contains(&settings.budget);
        let settings = settings.filter(makes_sense).ok_or("not a value that \"nearfar profile\" of this version sets")?;
        Ok(Self { least: settings.least.max(1), ..settings })
    }
}

/// A name, and what it denies.
type Deniable = (&'static str, fn(&mut Denied) -> &mut bool);

impl Denied {
    const NAMES: [Deniable; 5] = [
        ("faults", |denied| &mut denied.faults),
        ("clock", |denied| &mut denied.clock),
        ("script", |denied| &mut denied.script),
        ("samples", |denied| &mut denied.samples),
        ("awake", |denied| &mut denied.awake),
    ];

    /// Reads "faults,clock,script,samples,awake"; `None` with another word.
    pub fn parse(list: &str) -> Option<Self> {
        let mut denied = Self::default();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (_, means) = Self::NAMES.iter().find(|(name, _)| *name == word)?;
            *means(&mut denied) = true;
        }
        Some(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn what_is_written_is_read() {
        let denied = Denied::parse("faults, clock,samples,awake").unwrap();
        assert_eq!(denied, Denied { faults: true, clock: true, script: false, samples: true, awake: true });
        let file = PathBuf::from(OsString::from_vec(b"/tmp/a;b=c%d\xff\n.nfprof".to_vec()));
        let settings = Settings { file, least: 8192, budget: 0.015, limit: 1 << 30, precise: true, seed: 7, denied };
        assert_eq!(Settings::parse(settings.to_value().as_ref()), Ok(settings));
    }

    #[test]
    fn nonsense_is_refused() {
        let plain = Settings { file: "/x".into(), ..Settings::default() };
        let value = plain.to_value();
        let relative = Settings { file: "x".into(), ..plain.clone() }.to_value();
        let all_the_time = Settings { budget: 2.0, ..plain }.to_value();
        for bad in ["", "file=/x", "0g", &value[2..], &value[..value.len() - 2], &relative, &all_the_time] {
            assert!(Settings::parse(bad.as_ref()).is_err(), "{bad}");
        }
        assert_eq!(Denied::parse("faults,all"), None);
    }
}
