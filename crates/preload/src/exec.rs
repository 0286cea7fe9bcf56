//! The exec family: a program that starts another with an environment of its own making still starts it under the job.
//!
//! Only adds: our library to LD_PRELOAD, and NEARFAR_JOB, where they are missing. Nothing is built on a heap, since the caller
//! may be the child of vfork, which shares the parent's memory and never comes back to free it.
//! execl, execle and execlp, which are variadic, come here by way of `exec_lists` on x86-64; elsewhere the C library's reach the
//! kernel without passing here, and mostly keep the environment.

use crate::function::Function;
use crate::{errno, user_mode};
use nearfar_profile::recorder;
use nearfar_sys::errno::Errno;
use nearfar_sys::map::OwnedMap;
use nearfar_sys::own_limits;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Variables, and bytes of LD_PRELOAD, for which there is room on the stack.
const FEW: usize = 128;
const FEW_BYTES: usize = 512;
const PRELOAD: &[u8] = b"LD_PRELOAD=";

/// What children must have; C strings that live as long as the process.
struct Wanted {
    /// "NEARFAR_JOB=path", or "NEARFAR_PROFILE=settings".
    job: CString,
    /// Path of this library, as the loader knows it.
    library: CString,
}

static WANTED: AtomicPtr<Wanted> = AtomicPtr::new(null_mut());

/// Remembers the variable that leads children to the job (or the profile), and its value; at start.
pub fn remember(name: &str, value: &CStr) {
    let mut variable = name.as_bytes().to_vec();
    variable.push(b'=');
    variable.extend_from_slice(value.to_bytes());
    let (Ok(job), Some(library)) = (CString::new(variable), own_path()) else { return };
    WANTED.store(Box::leak(Box::new(Wanted { job, library })), Ordering::Release);
    // Now, since the child of vfork must not enter the loader.
    let _ = (EXECVE.get(), EXECVPE.get(), FEXECVE.get(), EXECVEAT.get());
}

fn own_path() -> Option<CString> {
    // SAFETY: all zeros is a valid value; dladdr fills it.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of ours, and a local.
    let known = unsafe { libc::dladdr((&raw const WANTED).cast(), &mut info) } != 0;
    // SAFETY: on success the loader's own copy of the path.
    (known && !info.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_owned())
}

/// Calls `go` with `environment`, completed where needed.
///
/// # Safety
/// `environment` is null or a null-terminated array of C strings.
unsafe fn with_job<R>(environment: Strings, go: impl FnOnce(Strings) -> R) -> R {
    let wanted = WANTED.load(Ordering::Acquire);
    if wanted.is_null() {
        return go(environment);
    }
    // SAFETY: published by `remember` after it was built, never freed.
    let wanted = unsafe { &*wanted };
    let (mut count, mut has_job, mut preload) = (0, false, None::<(usize, &[u8])>);
    // SAFETY: the caller guarantees a null-terminated array.
    while !environment.is_null() && !unsafe { *environment.add(count) }.is_null() {
        // SAFETY: an element of that array, a C string.
        let variable = unsafe { CStr::from_ptr(*environment.add(count)) }.to_bytes();
        has_job |= same_name(variable, wanted.job.to_bytes());
        if variable.starts_with(PRELOAD) && preload.is_none() {
            preload = Some((count, &variable[PRELOAD.len()..]));
        }
        count += 1;
    }
    let has_library = preload.is_some_and(|(_, list)| names(list, wanted.library.to_bytes()));
    if has_job && has_library {
        return go(environment);
    }
    // SAFETY: the array counted above.
    let given = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(environment, count) } };
    let preload = if has_library { None } else { Some(preload.unwrap_or((count, b""))) };
    let job = if has_job { None } else { Some(wanted.job.as_c_str()) };
    let missing = Missing { environment, given, library: wanted.library.to_bytes(), preload, job };
    if missing.slots() <= FEW { with_few(&missing, go) } else { with_many(&missing, go) }
}

/// What is to be added to which environment.
struct Missing<'a> {
    environment: Strings,
    given: &'a [*const c_char],
    library: &'a [u8],
    // Place and present list of LD_PRELOAD, if it must be set.
    preload: Option<(usize, &'a [u8])>,
    job: Option<&'a CStr>,
}

impl Missing<'_> {
    /// Length of the array that `write` needs.
    fn slots(&self) -> usize {
        self.given.len() + 3
    }

    /// Length of the text that `write` needs.
    fn text_bytes(&self) -> usize {
        self.preload.map_or(0, |(_, list)| PRELOAD.len() + self.library.len() + 1 + list.len() + 1)
    }

    /// Writes the completed environment; false when the room given is too small.
    fn write(&self, slots: &mut [MaybeUninit<*const c_char>], text: &mut [MaybeUninit<u8>]) -> bool {
        if slots.len() < self.slots() || text.len() < self.text_bytes() {
            return false;
        }
        let added = self.job.map(CStr::as_ptr).into_iter().chain([null()]);
        let variables = self.given.iter().copied();
        let Some((index, list)) = self.preload else {
            fill(slots, variables.chain(added));
            return true;
        };
        let colon: &[u8] = if list.is_empty() { b"" } else { b":" };
        let bytes = [PRELOAD, self.library, colon, list, b"\0"].into_iter().flatten();
        fill(text, bytes.copied());
        let preload = text.as_ptr().cast::<c_char>();
        let before = self.given[..index].iter().copied();
        let after = self.given.iter().copied().skip(index + 1);
        fill(slots, before.chain([preload]).chain(after).chain(added));
        true
    }
}

fn fill<T>(places: &mut [MaybeUninit<T>], values: impl Iterator<Item = T>) {
    for (place, value) in places.iter_mut().zip(values) {
        place.write(value);
    }
}

/// The usual case, on the stack: threads may have as little as 16 KiB.
#[inline(never)]
fn with_few<R>(missing: &Missing, go: impl FnOnce(Strings) -> R) -> R {
    let mut slots = [const { MaybeUninit::uninit() }; FEW];
    let mut text = [MaybeUninit::uninit(); FEW_BYTES];
    if !missing.write(&mut slots, &mut text) {
        return with_many(missing, go);
    }
    go(slots.as_ptr().cast())
}

/// Any environment, in a mapping. When the child of vfork executes another program the parent keeps the mapping: a few pages.
#[inline(never)]
fn with_many<R>(missing: &Missing, go: impl FnOnce(Strings) -> R) -> R {
    let bytes = missing.slots() * size_of::<*const c_char>();
    let Ok(map) = OwnedMap::new(bytes + missing.text_bytes()) else { return go(missing.environment) };
    let start = map.range().start;
    // SAFETY: a fresh mapping of that length, page aligned, of which these are two parts.
    let (slots, text) = unsafe {
        (
            std::slice::from_raw_parts_mut(start as *mut MaybeUninit<*const c_char>, missing.slots()),
            std::slice::from_raw_parts_mut((start + bytes) as *mut MaybeUninit<u8>, missing.text_bytes()),
        )
    };
    missing.write(slots, text);
    go(slots.as_ptr().cast())
}

/// True when two "NAME=value" have the same name.
fn same_name(one: &[u8], other: &[u8]) -> bool {
    let name = |text: &[u8]| text.iter().position(|&byte| byte == b'=');
    matches!((name(one), name(other)), (Some(a), Some(b)) if one[..a] == other[..b])
}

/// True when the LD_PRELOAD `list` names `library`, by its path or by a path with the same last part.
fn names(list: &[u8], library: &[u8]) -> bool {
    let last = |path: &[u8]| path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let own = &library[last(library)..];
    list.split(|&byte| byte == b':' || byte == b' ').any(|entry| !own.is_empty() && &entry[last(entry)..] == own)
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

type Strings = *const *const c_char;

static EXECVE: Function<unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int> = Function::next(c"execve");
static EXECVPE: Function<unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int> = Function::next(c"execvpe");
static FEXECVE: Function<unsafe extern "C" fn(c_int, Strings, Strings) -> c_int> = Function::next(c"fexecve");
static EXECVEAT: Function<unsafe extern "C" fn(c_int, *const c_char, Strings, Strings, c_int) -> c_int> =
    Function::next(c"execveat");
static POSIX_SPAWN: Function<Spawn> = Function::next(c"posix_spawn");
static POSIX_SPAWNP: Function<Spawn> = Function::next(c"posix_spawnp");

type Spawn = unsafe extern "C" fn(*mut libc::pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;

fn missing() -> c_int {
    errno::set(Errno(libc::ENOSYS));
    -1
}

/// execve(2).
///
/// # Safety
/// As for the system call; likewise below.
pub unsafe fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        with_job(envp, |envp| executing(path, argv, envp, || EXECVE.get().map_or_else(missing, |next| next(path, argv, envp))))
    }
}

/// execv(3).
///
/// # Safety
/// As for the function.
pub unsafe fn execv(path: *const c_char, argv: Strings) -> c_int {
    // SAFETY: passed on to the caller, who also may not change the environment meanwhile.
    unsafe { execve(path, argv, environ) }
}

/// execvpe(3).
///
/// # Safety
/// As for the function.
pub unsafe fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        with_job(envp, |envp| executing(file, argv, envp, || EXECVPE.get().map_or_else(missing, |next| next(file, argv, envp))))
    }
}

/// execvp(3).
///
/// # Safety
/// As for the function.
pub unsafe fn execvp(file: *const c_char, argv: Strings) -> c_int {
    // SAFETY: passed on to the caller, who also may not change the environment meanwhile.
    unsafe { execvpe(file, argv, environ) }
}

/// fexecve(3).
///
/// # Safety
/// As for the function.
pub unsafe fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        with_job(envp, |envp| executing(null(), argv, envp, || FEXECVE.get().map_or_else(missing, |next| next(fd, argv, envp))))
    }
}

/// execveat(2).
///
/// # Safety
/// As for the system call.
pub unsafe fn execveat(dir: c_int, path: *const c_char, argv: Strings, envp: Strings, flags: c_int) -> c_int {
    // SAFETY: passed on to the caller.
    unsafe {
        with_job(envp, |envp| {
            executing(path, argv, envp, || EXECVEAT.get().map_or_else(missing, |next| next(dir, path, argv, envp, flags)))
        })
    }
}

/// What posix_spawn(3) takes besides the environment.
pub struct Child {
    /// Where the process id goes.
    pub pid: *mut libc::pid_t,
    /// Path, or for posix_spawnp a name to search.
    pub file: *const c_char,
    /// `posix_spawn_file_actions_t`.
    pub actions: *const c_void,
    /// `posix_spawnattr_t`.
    pub attributes: *const c_void,
    /// Arguments.
    pub argv: Strings,
}

/// posix_spawn(3), or posix_spawnp(3) when `search` is set; returns the error.
///
/// # Safety
/// As for the function.
pub unsafe fn posix_spawn(child: Child, envp: Strings, search: bool) -> c_int {
    let next = if search { POSIX_SPAWNP.get() } else { POSIX_SPAWN.get() };
    let Some(next) = next else { return libc::ENOSYS };
    // SAFETY: passed on to the caller.
    unsafe {
        with_job(envp, |envp| {
            let spawn = |child: &Child, envp| next(child.pid, child.file, child.actions, child.attributes, child.argv, envp);
            if user_mode::is_active() { with_copies(child, envp, spawn) } else { spawn(&child, envp) }
        })
    }
}

/// An exec of this process, or of a child of vfork.
fn executing<R>(path: *const c_char, argv: Strings, envp: Strings, go: impl FnOnce() -> R) -> R {
    recorder::before_exec();
    own_limits::with_real(|| lending(path, argv, envp, go))
}

/// Lends the texts of an exec that are in paged memory: the kernel reads them.
fn lending<R>(path: *const c_char, argv: Strings, envp: Strings, go: impl FnOnce() -> R) -> R {
    if user_mode::is_active() {
        user_mode::lending(libc::SYS_execve, [path.addr(), argv.addr(), envp.addr(), 0, 0, 0], go)
    } else {
        go()
    }
}

/// Calls `go` with everything in memory that is not paged, on a stack that is not: where the C library makes the child, it has
/// taken all signal handlers away, and system calls on paged memory would end it.
///
/// # Safety
/// As for posix_spawn(3).
unsafe fn with_copies(child: Child, envp: Strings, go: impl FnOnce(&Child, Strings) -> c_int) -> c_int {
    // SAFETY: null or null-terminated arrays of C strings, and a C string.
    let (argv, envp, file) =
        unsafe { (copied(child.argv), copied(envp), (!child.file.is_null()).then(|| CStr::from_ptr(child.file).to_owned())) };
    let array =
        |strings: &[CString]| -> Vec<*const c_char> { strings.iter().map(|string| string.as_ptr()).chain([null()]).collect() };
    let (argv_array, envp_array) = (array(&argv), array(&envp));
    let attributes = child.attributes.cast::<libc::posix_spawnattr_t>();
    // SAFETY: null or attributes of the program, plain data.
    let attributes = (!attributes.is_null()).then(|| Box::new(unsafe { attributes.read() }));
    let mut pid = 0;
    let copy = Child {
        pid: &mut pid,
        file: file.as_ref().map_or(null(), |file| file.as_ptr()),
        actions: child.actions,
        attributes: attributes.as_ref().map_or(null(), |attributes| std::ptr::from_ref(&**attributes).cast()),
        argv: argv_array.as_ptr(),
    };
    let result = user_mode::off_paged_stack(|| go(&copy, envp_array.as_ptr()));
    if !child.pid.is_null() && result == 0 {
        // SAFETY: where the caller wants the process id.
        unsafe { child.pid.write(pid) };
    }
    result
}

/// # Safety
/// `strings` is null or a null-terminated array of C strings.
unsafe fn copied(strings: Strings) -> Vec<CString> {
    let mut out = Vec::new();
    let mut at = strings;
    // SAFETY: the caller's promise.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            out.push(CStr::from_ptr(*at).to_owned());
            at = at.add(1);
        }
    }
    out
}

static SYSTEM: Function<unsafe extern "C" fn(*const c_char) -> c_int> = Function::next(c"system");
static POPEN: Function<unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE> = Function::next(c"popen");

/// system(3): the C library hands the text to the kernel past our other functions.
///
/// # Safety
/// As for the function.
pub unsafe fn system(command: *const c_char) -> c_int {
    let Some(next) = SYSTEM.get() else { return missing() };
    // SAFETY: passed on to the caller.
    unsafe { lending(command, null(), environ, || user_mode::off_paged_stack(|| next(command))) }
}

/// popen(3); likewise.
///
/// # Safety
/// As for the function.
pub unsafe fn popen(command: *const c_char, kind: *const c_char) -> *mut libc::FILE {
    let Some(next) = POPEN.get() else { return null_mut() };
    // SAFETY: passed on to the caller.
    unsafe { lending(command, null(), environ, || user_mode::off_paged_stack(|| next(command, kind))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(environment: &[&CStr]) -> Vec<String> {
        let mut array: Vec<_> = environment.iter().map(|variable| variable.as_ptr()).collect();
        array.push(null());
        let read = |mut at: Strings| {
            let mut out = Vec::new();
            // SAFETY: a null-terminated array of C strings.
            unsafe {
                while !(*at).is_null() {
                    out.push(CStr::from_ptr(*at).to_string_lossy().into_owned());
                    at = at.add(1);
                }
            }
            out
        };
        // SAFETY: the array built above.
        unsafe { with_job(array.as_ptr(), read) }
    }

    #[test]
    fn environments_are_completed() {
        let wanted = Wanted { job: c"NEARFAR_JOB=/j".to_owned(), library: c"/lib/libnearfar.so".to_owned() };
        WANTED.store(Box::leak(Box::new(wanted)), Ordering::Release);
        assert_eq!(completed(&[]), ["LD_PRELOAD=/lib/libnearfar.so", "NEARFAR_JOB=/j"]);
        assert_eq!(completed(&[c"LD_PRELOAD=/x.so", c"A=b"]), ["LD_PRELOAD=/lib/libnearfar.so:/x.so", "A=b", "NEARFAR_JOB=/j"]);
        let many = [c"X=y"; 1000];
        let found = completed(&many);
        assert_eq!((found.len(), found[999].as_str()), (1002, "X=y"));
        assert_eq!(found[1000..], ["LD_PRELOAD=/lib/libnearfar.so", "NEARFAR_JOB=/j"]);
        let full = [c"NEARFAR_JOB=/other", c"LD_PRELOAD=/x.so:/y/libnearfar.so", c"A=b"];
        assert_eq!(completed(&full), full.map(|variable| variable.to_string_lossy().into_owned()));
        assert_eq!(
            completed(&[c"NEARFAR_JOBS=1", c"LD_PRELOAD="]),
            ["NEARFAR_JOBS=1", "LD_PRELOAD=/lib/libnearfar.so", "NEARFAR_JOB=/j"]
        );
    }
}
