//! Words to the user on standard error, which may be closed or gone: that must neither panic nor change an exit status.

/// Writes `text` as it is.
pub fn raw(text: &str) {
    nearfar_sys::process::write_stderr(text.as_bytes());
}

/// Writes one line that begins with the name of the command.
pub fn line(words: impl std::fmt::Display) {
    raw(&format!("nearfar: {words}\n"));
}
