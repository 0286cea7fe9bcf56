//! What the command asks of the library, as it travels in the environment: `NEARFAR_PROFILE="file=/abs/x.nfprof;least=4096;..."`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The variable of the environment.
pub const ENV_PROFILE: &str = "NEARFAR_PROFILE";

/// Means of observing that can be left out, to try what happens without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where records go: an absolute path of a file that exists.
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

/// `bytes` with what separates values written as %XX.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if matches!(byte, b';' | b'=' | b'%' | b'\n') {
            out.extend(format!("%{byte:02X}").bytes());
        } else {
            out.push(byte);
        }
    }
    out
}

fn unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            out.push(*first);
        }
    }
    Some(out)
}

impl Settings {
    /// The value of the variable.
    pub fn to_value(&self) -> OsString {
        let mut out = b"file=".to_vec();
        out.extend(escaped(self.file.as_os_str().as_bytes()));
        out.extend(format!(";least={};budget={};limit={};seed={}", self.least, self.budget, self.limit, self.seed).bytes());
        if self.precise {
            out.extend(b";precise=1");
        }
        let Denied { faults, clock, script, samples, awake } = self.denied;
        let denied = [("faults", faults), ("clock", clock), ("script", script), ("samples", samples), ("awake", awake)];
        let names: Vec<&str> = denied.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        if !names.is_empty() {
            out.extend(format!(";deny={}", names.join(",")).bytes());
        }
        OsString::from_vec(out)
    }

    /// Reads the variable; the error names what is wrong.
    ///
    /// # Errors
    /// A value that makes no sense, or no file. Names that are not known are passed over: another version may have set them.
    pub fn parse(value: &OsStr) -> Result<Self, String> {
        let mut settings = Self::default();
        for field in value.as_bytes().split(|&byte| byte == b';').filter(|field| !field.is_empty()) {
            let at = field.iter().position(|&byte| byte == b'=').unwrap_or(field.len());
            let name = &field[..at];
            let bad = || format!("{}: this value is not accepted", String::from_utf8_lossy(field));
            let value = unescaped(field.get(at + 1..).unwrap_or_default()).ok_or_else(bad)?;
            let text = String::from_utf8_lossy(&value).into_owned();
            match name {
                b"file" => settings.file = PathBuf::from(OsString::from_vec(value)),
                b"least" => settings.least = text.parse().map_err(|_| bad())?,
                b"budget" => settings.budget = text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(bad)?,
                b"limit" => settings.limit = text.parse().map_err(|_| bad())?,
                b"precise" => settings.precise = text == "1",
                b"seed" => settings.seed = text.parse().map_err(|_| bad())?,
                b"deny" => settings.denied = Denied::parse(&text).ok_or_else(bad)?,
                _ => {}
            }
        }
        if !settings.file.is_absolute() {
            return Err("file= with an absolute path is missing".into());
        }
        settings.least = settings.least.max(1);
        Ok(settings)
    }
}

impl Denied {
    /// Reads "faults,clock,script,samples,awake"; `None` with another word.
    pub fn parse(list: &str) -> Option<Self> {
        let mut denied = Self::default();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "faults" => denied.faults = true,
                "clock" => denied.clock = true,
                "script" => denied.script = true,
                "samples" => denied.samples = true,
                "awake" => denied.awake = true,
                _ => return None,
            }
        }
        Some(denied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let denied = Denied { faults: true, clock: true, script: false, samples: true, awake: true };
        let file = PathBuf::from(OsString::from_vec(b"/tmp/a;b=c%d\xff\n.nfprof".to_vec()));
        let settings = Settings { file, least: 8192, budget: 0.015, limit: 1 << 30, precise: true, seed: 7, denied };
        assert_eq!(Settings::parse(&settings.to_value()), Ok(settings));
        let plain = Settings { file: "/x".into(), ..Settings::default() };
        assert_eq!(plain.to_value(), "file=/x;least=4096;budget=0.02;limit=67108864;seed=0");
        assert_eq!(Settings::parse("file=/x;news=1".as_ref()), Ok(plain));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", "file=x", "file=/x;least=many", "file=/x;budget=2", "file=/%", "file=/%zz", "file=/x;deny=all", "least=1"]
        {
            assert!(Settings::parse(bad.as_ref()).is_err(), "{bad}");
        }
    }
}
