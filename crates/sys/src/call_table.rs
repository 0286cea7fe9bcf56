//! Which memory of the caller each system call reads or writes: the table from which the filter of `seccomp` is made and by
//! which caught calls are looked after.
//!
//! Only pointers that the kernel follows are listed. Addresses that it only takes as such (mmap, madvise, ...) are not; nor
//! what a new thread or process is given (clone, set_robust_list, rseq, set_tid_address), whose callers block all signals.
//! Sizes are those of the kernel's structures, rounded up where they differ: too much does no harm.

use Use::{
    Bits, Blocks, Bytes, Count, Fds, Iov, IovOfProcess, Len, LenAt, Message, Messages, Packed, Pages, Sigmask, Strings, Text,
    Typed,
};
use libc::c_long;

/// How much memory an argument points to, and what of it points on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// So many bytes.
    Bytes(usize),
    /// As many bytes as that argument says.
    Len(usize),
    /// A number of 8 bytes, then as many bytes as that argument says.
    Typed(usize),
    /// A byte for each page of as many bytes as that argument says.
    Pages(usize),
    /// As many items as that argument says, of that size.
    Count(usize, usize),
    /// A set of as many bits as that argument says.
    Bits(usize),
    /// As many bytes as the 32-bit word says that that argument points to.
    LenAt(usize),
    /// Text with an end.
    Text,
    /// A set of descriptors; argument 0 is their number.
    Fds,
    /// As many bytes as the ioctl number in that argument says, at least some.
    Packed(usize),
    /// An array of strings, ended by null.
    Strings,
    /// As many `iovec`s as that argument says.
    Iov(usize),
    /// As many `iovec`s as that argument says, of memory of the process that argument 0 names.
    IovOfProcess(usize),
    /// A `msghdr`.
    Message,
    /// As many `mmsghdr`s as that argument says.
    Messages(usize),
    /// As many pointers to `iocb`s as that argument says.
    Blocks(usize),
    /// A pointer and a length: the signal mask of pselect.
    Sigmask,
}

impl Use {
    /// True when what it points to holds pointers to memory that is caught only where the call itself is made.
    pub fn points_on(self) -> bool {
        matches!(self, Iov(_) | Message | Messages(_) | Blocks(_) | Sigmask)
    }
}

/// One system call: its number, and its pointers by index of argument.
pub type Entry = (c_long, &'static [(usize, Use)]);

const SIGSET: Use = Bytes(8);
const TIME: Use = Bytes(16);
const STAT: Use = Bytes(256);
const INFO: Use = Bytes(128);

/// Every call that the filter knows, on all processors.
pub const COMMON: &[Entry] = &[
    (libc::SYS_read, &[(1, Len(2))]),
    (libc::SYS_write, &[(1, Len(2))]),
    (libc::SYS_pread64, &[(1, Len(2))]),
    (libc::SYS_pwrite64, &[(1, Len(2))]),
    (libc::SYS_readv, &[(1, Iov(2))]),
    (libc::SYS_writev, &[(1, Iov(2))]),
    (libc::SYS_preadv, &[(1, Iov(2))]),
    (libc::SYS_pwritev, &[(1, Iov(2))]),
    (libc::SYS_preadv2, &[(1, Iov(2))]),
    (libc::SYS_pwritev2, &[(1, Iov(2))]),
    (libc::SYS_vmsplice, &[(1, Iov(2))]),
    (libc::SYS_process_vm_readv, &[(1, Iov(2)), (3, IovOfProcess(4))]),
    (libc::SYS_process_vm_writev, &[(1, Iov(2)), (3, IovOfProcess(4))]),
    (libc::SYS_io_setup, &[(1, Bytes(8))]),
    (libc::SYS_io_submit, &[(2, Blocks(1))]),
    (libc::SYS_io_getevents, &[(3, Count(2, 32)), (4, TIME)]),
    (libc::SYS_io_cancel, &[(1, Bytes(64)), (2, Bytes(32))]),
    (libc::SYS_sendfile, &[(2, Bytes(8))]),
    (libc::SYS_splice, &[(1, Bytes(8)), (3, Bytes(8))]),
    (libc::SYS_copy_file_range, &[(1, Bytes(8)), (3, Bytes(8))]),
    (libc::SYS_ioctl, &[(2, Packed(1))]),
    (libc::SYS_fcntl, &[(2, Bytes(32))]),
    // Sockets.
    (libc::SYS_connect, &[(1, Len(2))]),
    (libc::SYS_bind, &[(1, Len(2))]),
    (libc::SYS_accept, &[(1, LenAt(2)), (2, Bytes(4))]),
    (libc::SYS_accept4, &[(1, LenAt(2)), (2, Bytes(4))]),
    (libc::SYS_getsockname, &[(1, LenAt(2)), (2, Bytes(4))]),
    (libc::SYS_getpeername, &[(1, LenAt(2)), (2, Bytes(4))]),
    (libc::SYS_socketpair, &[(3, Bytes(8))]),
    (libc::SYS_setsockopt, &[(3, Len(4))]),
    (libc::SYS_getsockopt, &[(3, LenAt(4)), (4, Bytes(4))]),
    (libc::SYS_sendto, &[(1, Len(2)), (4, Len(5))]),
    (libc::SYS_recvfrom, &[(1, Len(2)), (4, LenAt(5)), (5, Bytes(4))]),
    (libc::SYS_sendmsg, &[(1, Message)]),
    (libc::SYS_recvmsg, &[(1, Message)]),
    (libc::SYS_sendmmsg, &[(1, Messages(2))]),
    (libc::SYS_recvmmsg, &[(1, Messages(2)), (4, TIME)]),
    // Files by name.
    (libc::SYS_openat, &[(1, Text)]),
    (libc::SYS_openat2, &[(1, Text), (2, Len(3))]),
    (libc::SYS_mkdirat, &[(1, Text)]),
    (libc::SYS_mknodat, &[(1, Text)]),
    (libc::SYS_fchownat, &[(1, Text)]),
    (libc::SYS_fchmodat, &[(1, Text)]),
    (452, &[(1, Text)]), // fchmodat2
    (libc::SYS_faccessat, &[(1, Text)]),
    (libc::SYS_faccessat2, &[(1, Text)]),
    (libc::SYS_unlinkat, &[(1, Text)]),
    (libc::SYS_renameat2, &[(1, Text), (3, Text)]),
    (libc::SYS_linkat, &[(1, Text), (3, Text)]),
    (libc::SYS_symlinkat, &[(0, Text), (2, Text)]),
    (libc::SYS_readlinkat, &[(1, Text), (2, Len(3))]),
    (libc::SYS_newfstatat, &[(1, Text), (2, STAT)]),
    (libc::SYS_fstat, &[(1, STAT)]),
    (libc::SYS_statx, &[(1, Text), (4, STAT)]),
    (libc::SYS_statfs, &[(0, Text), (1, STAT)]),
    (libc::SYS_fstatfs, &[(1, STAT)]),
    (libc::SYS_truncate, &[(0, Text)]),
    (libc::SYS_utimensat, &[(1, Text), (2, Bytes(32))]),
    (libc::SYS_chdir, &[(0, Text)]),
    (libc::SYS_chroot, &[(0, Text)]),
    (libc::SYS_getcwd, &[(0, Len(1))]),
    (libc::SYS_getdents64, &[(1, Len(2))]),
    (libc::SYS_mount, &[(0, Text), (1, Text), (2, Text), (4, Text)]),
    (libc::SYS_umount2, &[(0, Text)]),
    (libc::SYS_pivot_root, &[(0, Text), (1, Text)]),
    (libc::SYS_swapon, &[(0, Text)]),
    (libc::SYS_swapoff, &[(0, Text)]),
    (libc::SYS_acct, &[(0, Text)]),
    (libc::SYS_quotactl, &[(1, Text), (3, STAT)]),
    (libc::SYS_setxattr, &[(0, Text), (1, Text), (2, Len(3))]),
    (libc::SYS_lsetxattr, &[(0, Text), (1, Text), (2, Len(3))]),
    (libc::SYS_fsetxattr, &[(1, Text), (2, Len(3))]),
    (libc::SYS_getxattr, &[(0, Text), (1, Text), (2, Len(3))]),
    (libc::SYS_lgetxattr, &[(0, Text), (1, Text), (2, Len(3))]),
    (libc::SYS_fgetxattr, &[(1, Text), (2, Len(3))]),
    (libc::SYS_listxattr, &[(0, Text), (1, Len(2))]),
    (libc::SYS_llistxattr, &[(0, Text), (1, Len(2))]),
    (libc::SYS_flistxattr, &[(1, Len(2))]),
    (libc::SYS_removexattr, &[(0, Text), (1, Text)]),
    (libc::SYS_lremovexattr, &[(0, Text), (1, Text)]),
    (libc::SYS_fremovexattr, &[(1, Text)]),
    (libc::SYS_name_to_handle_at, &[(1, Text), (2, Bytes(136)), (3, Bytes(8))]),
    (libc::SYS_open_by_handle_at, &[(1, Bytes(136))]),
    (libc::SYS_inotify_add_watch, &[(1, Text)]),
    (libc::SYS_fanotify_mark, &[(4, Text)]),
    (libc::SYS_memfd_create, &[(0, Text)]),
    (libc::SYS_pipe2, &[(0, Bytes(8))]),
    // Waiting.
    (libc::SYS_ppoll, &[(0, Count(1, 8)), (2, TIME), (3, SIGSET)]),
    (libc::SYS_pselect6, &[(1, Fds), (2, Fds), (3, Fds), (4, TIME), (5, Sigmask)]),
    (libc::SYS_epoll_ctl, &[(3, Bytes(16))]),
    (libc::SYS_epoll_pwait, &[(1, Count(2, 16)), (4, SIGSET)]),
    (libc::SYS_epoll_pwait2, &[(1, Count(2, 16)), (3, TIME), (4, SIGSET)]),
    (libc::SYS_futex, &[(0, Bytes(4)), (3, TIME), (4, Bytes(4))]),
    (libc::SYS_futex_waitv, &[(0, Count(1, 24)), (3, TIME)]),
    (454, &[(0, Bytes(4))]),            // futex_wake
    (455, &[(0, Bytes(4)), (4, TIME)]), // futex_wait
    (456, &[(0, Bytes(48))]),           // futex_requeue
    (libc::SYS_nanosleep, &[(0, TIME), (1, TIME)]),
    (libc::SYS_clock_nanosleep, &[(2, TIME), (3, TIME)]),
    (libc::SYS_wait4, &[(1, Bytes(4)), (3, Bytes(144))]),
    (libc::SYS_waitid, &[(2, INFO), (4, Bytes(144))]),
    (libc::SYS_semop, &[(1, Count(2, 6))]),
    (libc::SYS_semtimedop, &[(1, Count(2, 6)), (3, TIME)]),
    (libc::SYS_semctl, &[(3, Bytes(128))]),
    (libc::SYS_msgsnd, &[(1, Typed(2))]),
    (libc::SYS_msgrcv, &[(1, Typed(2))]),
    (libc::SYS_msgctl, &[(2, Bytes(128))]),
    (libc::SYS_shmctl, &[(2, Bytes(128))]),
    (libc::SYS_mq_open, &[(0, Text), (3, Bytes(64))]),
    (libc::SYS_mq_unlink, &[(0, Text)]),
    (libc::SYS_mq_timedsend, &[(1, Len(2)), (4, TIME)]),
    (libc::SYS_mq_timedreceive, &[(1, Len(2)), (3, Bytes(4)), (4, TIME)]),
    (libc::SYS_mq_notify, &[(1, Bytes(64))]),
    (libc::SYS_mq_getsetattr, &[(1, Bytes(64)), (2, Bytes(64))]),
    // Signals.
    (libc::SYS_rt_sigaction, &[(1, Bytes(32)), (2, Bytes(32))]),
    (libc::SYS_rt_sigprocmask, &[(1, SIGSET), (2, SIGSET)]),
    (libc::SYS_rt_sigpending, &[(0, SIGSET)]),
    (libc::SYS_rt_sigsuspend, &[(0, SIGSET)]),
    (libc::SYS_rt_sigtimedwait, &[(0, SIGSET), (1, INFO), (2, TIME)]),
    (libc::SYS_rt_sigqueueinfo, &[(2, INFO)]),
    (libc::SYS_rt_tgsigqueueinfo, &[(3, INFO)]),
    (libc::SYS_pidfd_send_signal, &[(2, INFO)]),
    (libc::SYS_sigaltstack, &[(0, Bytes(24)), (1, Bytes(24))]),
    (libc::SYS_signalfd4, &[(1, SIGSET)]),
    // Time.
    (libc::SYS_gettimeofday, &[(0, TIME), (1, Bytes(8))]),
    (libc::SYS_settimeofday, &[(0, TIME), (1, Bytes(8))]),
    (libc::SYS_clock_gettime, &[(1, TIME)]),
    (libc::SYS_clock_getres, &[(1, TIME)]),
    (libc::SYS_clock_settime, &[(1, TIME)]),
    (libc::SYS_clock_adjtime, &[(1, STAT)]),
    (libc::SYS_adjtimex, &[(0, STAT)]),
    (libc::SYS_times, &[(0, Bytes(32))]),
    (libc::SYS_getitimer, &[(1, Bytes(32))]),
    (libc::SYS_setitimer, &[(1, Bytes(32)), (2, Bytes(32))]),
    (libc::SYS_timer_create, &[(1, Bytes(64)), (2, Bytes(8))]),
    (libc::SYS_timer_settime, &[(2, Bytes(32)), (3, Bytes(32))]),
    (libc::SYS_timer_gettime, &[(1, Bytes(32))]),
    (libc::SYS_timerfd_settime, &[(2, Bytes(32)), (3, Bytes(32))]),
    (libc::SYS_timerfd_gettime, &[(1, Bytes(32))]),
    // The process and the machine.
    (libc::SYS_execve, &[(0, Text), (1, Strings), (2, Strings)]),
    (libc::SYS_execveat, &[(1, Text), (2, Strings), (3, Strings)]),
    (libc::SYS_getrusage, &[(1, Bytes(144))]),
    (libc::SYS_getrlimit, &[(1, TIME)]),
    (libc::SYS_setrlimit, &[(1, TIME)]),
    (libc::SYS_prlimit64, &[(2, TIME), (3, TIME)]),
    (libc::SYS_uname, &[(0, Bytes(390))]),
    (libc::SYS_sysinfo, &[(0, INFO)]),
    (libc::SYS_syslog, &[(1, Len(2))]),
    (libc::SYS_sethostname, &[(0, Len(1))]),
    (libc::SYS_setdomainname, &[(0, Len(1))]),
    (libc::SYS_getrandom, &[(0, Len(1))]),
    (libc::SYS_prctl, &[(1, Bytes(64)), (2, Bytes(64)), (3, Bytes(8)), (4, Bytes(80))]),
    (libc::SYS_getcpu, &[(0, Bytes(4)), (1, Bytes(4))]),
    (libc::SYS_mincore, &[(2, Pages(1))]),
    (libc::SYS_getgroups, &[(1, Count(0, 4))]),
    (libc::SYS_setgroups, &[(1, Count(0, 4))]),
    (libc::SYS_getresuid, &[(0, Bytes(4)), (1, Bytes(4)), (2, Bytes(4))]),
    (libc::SYS_getresgid, &[(0, Bytes(4)), (1, Bytes(4)), (2, Bytes(4))]),
    (libc::SYS_capget, &[(0, Bytes(8)), (1, Bytes(24))]),
    (libc::SYS_capset, &[(0, Bytes(8)), (1, Bytes(24))]),
    (libc::SYS_sched_setparam, &[(1, Bytes(4))]),
    (libc::SYS_sched_getparam, &[(1, Bytes(4))]),
    (libc::SYS_sched_setscheduler, &[(2, Bytes(4))]),
    (libc::SYS_sched_rr_get_interval, &[(1, TIME)]),
    (libc::SYS_sched_setattr, &[(1, INFO)]),
    (libc::SYS_sched_getattr, &[(1, Len(2))]),
    (libc::SYS_sched_setaffinity, &[(2, Len(1))]),
    (libc::SYS_sched_getaffinity, &[(2, Len(1))]),
    (libc::SYS_mbind, &[(3, Bits(4))]),
    (libc::SYS_set_mempolicy, &[(1, Bits(2))]),
    (libc::SYS_get_mempolicy, &[(0, Bytes(4)), (1, Bits(2))]),
    (libc::SYS_migrate_pages, &[(2, Bits(1)), (3, Bits(1))]),
    (libc::SYS_move_pages, &[(2, Count(1, 8)), (3, Count(1, 4)), (4, Count(1, 4))]),
    (libc::SYS_process_madvise, &[(1, Count(2, 16))]),
    (libc::SYS_perf_event_open, &[(0, INFO)]),
    (libc::SYS_bpf, &[(1, Len(2))]),
    (libc::SYS_seccomp, &[(2, TIME)]),
    (libc::SYS_add_key, &[(0, Text), (1, Text), (2, Len(3))]),
    (libc::SYS_request_key, &[(0, Text), (1, Text), (2, Text)]),
    (libc::SYS_ptrace, &[(3, Bytes(512))]),
];

/// Calls that only x86-64 still has.
#[cfg(target_arch = "x86_64")]
pub const OLD: &[Entry] = &[
    (libc::SYS_open, &[(0, Text)]),
    (libc::SYS_creat, &[(0, Text)]),
    (libc::SYS_stat, &[(0, Text), (1, STAT)]),
    (libc::SYS_lstat, &[(0, Text), (1, STAT)]),
    (libc::SYS_access, &[(0, Text)]),
    (libc::SYS_rename, &[(0, Text), (1, Text)]),
    (libc::SYS_renameat, &[(1, Text), (3, Text)]),
    (libc::SYS_mkdir, &[(0, Text)]),
    (libc::SYS_rmdir, &[(0, Text)]),
    (libc::SYS_link, &[(0, Text), (1, Text)]),
    (libc::SYS_unlink, &[(0, Text)]),
    (libc::SYS_symlink, &[(0, Text), (1, Text)]),
    (libc::SYS_readlink, &[(0, Text), (1, Len(2))]),
    (libc::SYS_chmod, &[(0, Text)]),
    (libc::SYS_chown, &[(0, Text)]),
    (libc::SYS_lchown, &[(0, Text)]),
    (libc::SYS_mknod, &[(0, Text)]),
    (libc::SYS_utime, &[(0, Text), (1, TIME)]),
    (libc::SYS_utimes, &[(0, Text), (1, Bytes(32))]),
    (libc::SYS_futimesat, &[(1, Text), (2, Bytes(32))]),
    (libc::SYS_ustat, &[(1, Bytes(32))]),
    (libc::SYS_getdents, &[(1, Len(2))]),
    (libc::SYS_pipe, &[(0, Bytes(8))]),
    (libc::SYS_poll, &[(0, Count(1, 8))]),
    (libc::SYS_select, &[(1, Fds), (2, Fds), (3, Fds), (4, TIME)]),
    (libc::SYS_epoll_wait, &[(1, Count(2, 16))]),
    (libc::SYS_signalfd, &[(1, SIGSET)]),
    (libc::SYS_time, &[(0, Bytes(8))]),
    (libc::SYS_arch_prctl, &[(1, Bytes(8))]),
    (libc::SYS_modify_ldt, &[(1, Len(2))]),
];
/// Calls that only x86-64 still has.
#[cfg(not(target_arch = "x86_64"))]
pub const OLD: &[Entry] = &[];

/// Every call of the table, in no order.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    COMMON.iter().chain(OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_once_and_its_arguments_exist() {
        let mut numbers: Vec<_> = entries().map(|(number, _)| *number).collect();
        numbers.sort();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        for (number, uses) in entries() {
            assert!(!uses.is_empty() && uses.iter().all(|(arg, _)| *arg < 6), "{number}");
        }
    }
}
