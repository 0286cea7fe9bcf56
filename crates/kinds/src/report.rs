//! Lines on standard error: what users must know, and the log of MEMKIND_DEBUG. Written with one call, without buffers of the program.

/// Writes one line.
pub fn say(text: &str) {
    write(&format!("nearfar (memkind): {text}\n"));
}

/// Writes one line of the log, as memkind's looks: `MEMKIND_INFO: ...`.
pub fn log(level: &str, text: &str) {
    write(&format!("MEMKIND_{level}: {text}\n"));
}

/// Writes as it is.
pub fn write(line: &str) {
    // SAFETY: writes the bytes of a string to a descriptor; nothing is done about failure, there is nobody else to tell.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
