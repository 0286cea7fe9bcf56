//! How recording starts in a process of `nearfar profile`: memory stays the C library's, hooks only tell `nearfar_profile::recorder`.

use crate::{exec, objects, recorded_threads};
use nearfar_core::addr::Extent;
use nearfar_profile::recorder;
use nearfar_profile::settings::{ENV_PROFILE, Settings};
use nearfar_sys::process;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

/// Lies in our own data.
static OWN: u8 = 0;

/// Starts recording if the environment asks for it; false when it does not, or it cannot be.
pub fn start() -> bool {
    let Ok(name) = CString::new(ENV_PROFILE) else { return false };
    // SAFETY: a C string; the environment exists and is read before the program could change it.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return false;
    }
    // SAFETY: getenv returns a C string that stays until the environment is changed; it is copied at once.
    let value = unsafe { CStr::from_ptr(value) }.to_owned();
    let settings = match Settings::parse(OsStr::from_bytes(value.to_bytes())) {
        Ok(settings) => settings,
        Err(why) => return unobserved(&format!("{ENV_PROFILE}: {why}")),
    };
    let file = settings.file.clone();
    if let Err(errno) = recorder::start(settings, own_code()) {
        return unobserved(&format!("{} cannot be written ({errno})", file.display()));
    }
    recorded_threads::start();
    exec::remember(ENV_PROFILE, &value);
    true
}

fn unobserved(why: &str) -> bool {
    process::write_stderr(format!("nearfar: {why}: this process is not observed\n").as_bytes());
    false
}

/// From the first to the last address of this library.
fn own_code() -> Extent {
    let own = objects::loaded().into_iter().find(|object| object.contains((&raw const OWN).addr()));
    let segments = own.map(|object| object.segments).unwrap_or_default();
    let start = segments.iter().map(|(segment, _)| segment.start).min().unwrap_or(0);
    let end = segments.iter().map(|(segment, _)| segment.end).max().unwrap_or(0);
    Extent { start, end }
}
