//! One child process and the signals that its parent passes on: what a command that runs another program needs.
//!
//! Signals of interest are blocked and read from a descriptor (signalfd), so that none can be lost between spawn and wait
//! and nothing runs in a handler. The child gets the mask that the parent had before.

use crate::errno::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Signals that are passed on to the child when somebody sends them to the parent. Stop signals are not among them: parent
/// and child stop and go on together with their process group.
const FORWARDED: [i32; 6] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// A signal that reached the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// The kernel sent it (a key at the terminal, a hangup): the whole foreground group has it already, the child included.
    pub from_kernel: bool,
}

/// Signals caught for as long as this lives.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: all zeros is a valid set on Linux, and sigemptyset writes into the local.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        set
    }
}

impl Signals {
    /// From now on the signals that can be forwarded, and SIGCHLD, are read with `next`. For a process with one thread.
    pub fn catch() -> Result<Self, Errno> {
        let mut set = empty_set();
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            // SAFETY: a local set and a valid signal number.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        let mut before = empty_set();
        // SAFETY: two local sets.
        if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before) } != 0 {
            return Err(Errno::last());
        }
        // SAFETY: a local set; the descriptor is new.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(Errno::last());
        }
        // SAFETY: a fresh descriptor, ours alone.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// Starts `command` with the signal mask from before `catch`.
    pub fn spawn(&self, command: &mut Command) -> std::io::Result<Child> {
        let before = self.before;
        // SAFETY: the closure runs between fork and exec and only calls sigprocmask, which is async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                Ok(())
            });
        }
        command.spawn()
    }

    /// The next signal that can be forwarded; `None` when none waits. SIGCHLD only ends a wait on the descriptor.
    pub fn next(&self) -> Option<Arrived> {
        loop {
            // SAFETY: all zeros is a valid value of this structure of integers.
            let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
            let len = size_of_val(&info);
            // SAFETY: writes at most `len` bytes into the local.
            let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), len) };
            if got != len as isize {
                return None;
            }
            let signal = info.ssi_signo as i32;
            if signal != libc::SIGCHLD {
                return Some(Arrived { signal, from_kernel: info.ssi_code > 0 });
            }
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

/// Makes the child that `command` starts be asked to end (SIGTERM, so that a launcher can end what it has started) when the thread
/// that starts it ends, by whatever means: for a thread that waits for its child, and a child that is in a process group of its own
/// or otherwise out of reach of the keys of the terminal.
pub fn end_with_parent(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec and only calls prctl and getppid, which are async-signal-safe; making an error
    // of a number allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong, 0, 0, 0) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // The parent may have ended before the request; then nobody would send anything.
            if libc::getppid() as u32 != parent {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        })
    }
}

/// Sends `signal` to `child`, which has not been waited for yet (so its number cannot belong to somebody else).
pub fn send(child: &Child, signal: i32) {
    // SAFETY: integers only; a child that ended meanwhile is a zombie and ignores it.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

/// True of signals that ask a program to end.
pub fn asks_to_end(signal: i32) -> bool {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal)
}

/// Asks a program to end.
pub const TERMINATE: i32 = libc::SIGTERM;
/// Ends a program.
pub const KILL: i32 = libc::SIGKILL;

/// Sends `signal` to the process group that `child` was started as the leader of (`CommandExt::process_group(0)`). A child that was
/// waited for has left its number to the group as long as that has members, so that it belongs to nobody else; in an empty group
/// there is nobody to get it.
pub fn send_group(child: &Child, signal: i32) {
    // SAFETY: integers only.
    unsafe { libc::kill(-(child.id() as libc::pid_t), signal) };
}

/// Ends the calling process by `signal`, so that whoever waits for it sees what its child died of; leaves no core of its own.
pub fn die_by(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let mut set = empty_set();
    // SAFETY: locals and integers; restoring the default action and raising is what this process is meant to die of.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        // A core_pattern with a pipe ignores the limit.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::raise(signal);
    }
    // Signals whose default is not to end a process: what a shell would report.
    crate::process::exit_now(128 + signal)
}

/// The name of a signal, such as `SIGSEGV`; its number for the rare ones.
pub fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 16] = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
    ];
    NAMES.iter().find(|(number, _)| *number == signal).map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}
