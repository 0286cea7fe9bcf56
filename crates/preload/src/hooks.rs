//! ONE table of the exported symbols. A body is a one-line forward; what it forwards to is documented there.
//!
//! A symbol is added here and nowhere else. Under test nothing is exported: the test runner keeps the C library's functions.

use crate::{async_io, descriptors, exec, fork, heap, ids, last_thread, lifecycle, limits, maps, own_uffd, signals, zero_copy};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr::{null, null_mut};

macro_rules! hooks {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` for the program.")]
        ///
        /// # Safety
        /// As for the C function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(clippy::too_many_arguments, non_snake_case)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $forward }
        }
    )*};
}

/// Symbols whose forward also takes the caller's return address, in the register of the argument after the last. Only there,
/// at the first instruction, is it known where that address is.
macro_rules! hooks_with_caller {
    ($($name:ident($($arg:ident: $kind:ty),* ; caller in $x86:literal, $arm:literal) -> $result:ty = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` for the program.")]
        ///
        /// # Safety
        /// As for the C function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            extern "C" fn forward($($arg: $kind,)* caller: usize) -> $result {
                // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
                #[allow(unused_unsafe)]
                unsafe { $forward(caller) }
            }
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {}", sym forward);
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym forward);
        }
    )*};
}

type Void = *mut c_void;
type Limits = *const libc::rlimit64;
type Action = *mut libc::sigaction;
type Mask = *const libc::sigset_t;
type Path = *const c_char;
type Strings = *const *const c_char;

hooks_with_caller! {
    malloc(size: usize; caller in "rsi", "x1") -> Void = |caller| heap::malloc(size, caller);
    calloc(count: usize, size: usize; caller in "rdx", "x2") -> Void = |caller| heap::calloc(count, size, caller);
    realloc(block: Void, size: usize; caller in "rdx", "x2") -> Void = |caller| heap::realloc(block, size, caller);
    reallocarray(block: Void, count: usize, size: usize; caller in "rcx", "x3") -> Void
        = |caller| heap::reallocarray(block, count, size, caller);
    posix_memalign(out: *mut Void, align: usize, size: usize; caller in "rcx", "x3") -> c_int
        = |caller| heap::posix_memalign(out, align, size, caller);
    aligned_alloc(align: usize, size: usize; caller in "rdx", "x2") -> Void = |caller| heap::memalign(align, size, caller);
    memalign(align: usize, size: usize; caller in "rdx", "x2") -> Void = |caller| heap::memalign(align, size, caller);
    valloc(size: usize; caller in "rsi", "x1") -> Void = |caller| heap::valloc(size, caller);
    pvalloc(size: usize; caller in "rsi", "x1") -> Void = |caller| heap::pvalloc(size, caller);
}

hooks! {
    free(block: Void) -> () = heap::free(block);
    cfree(block: Void) -> () = heap::free(block);
    malloc_usable_size(block: Void) -> usize = heap::usable_size(block);
    strdup(text: Path) -> *mut c_char = heap::string_copy(text, usize::MAX);
    __strdup(text: Path) -> *mut c_char = heap::string_copy(text, usize::MAX);
    strndup(text: Path, most: usize) -> *mut c_char = heap::string_copy(text, most);
    __strndup(text: Path, most: usize) -> *mut c_char = heap::string_copy(text, most);

    mmap(addr: Void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> Void
        = maps::mmap(addr, len, prot, flags, fd, offset);
    mmap64(addr: Void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> Void
        = maps::mmap(addr, len, prot, flags, fd, offset);
    munmap(addr: Void, len: usize) -> c_int = maps::munmap(addr, len);
    mremap(addr: Void, old: usize, new: usize, flags: c_int, to: Void) -> Void = maps::mremap(addr, old, new, flags, to);
    mprotect(addr: Void, len: usize, prot: c_int) -> c_int = maps::mprotect(addr, len, prot);
    pkey_mprotect(addr: Void, len: usize, prot: c_int, key: c_int) -> c_int = maps::pkey_mprotect(addr, len, prot, key);
    madvise(addr: Void, len: usize, advice: c_int) -> c_int = maps::madvise(addr, len, advice);
    process_madvise(fd: c_int, vectors: *const libc::iovec, count: usize, advice: c_int, flags: c_uint) -> isize
        = maps::process_madvise(fd, vectors, count, advice, flags);
    mincore(addr: Void, len: usize, out: *mut u8) -> c_int = maps::mincore(addr, len, out);
    msync(addr: Void, len: usize, flags: c_int) -> c_int = maps::msync(addr, len, flags);
    posix_madvise(addr: Void, len: usize, advice: c_int) -> c_int = maps::posix_madvise(addr, len, advice);
    mlock(addr: Void, len: usize) -> c_int = maps::mlock(addr, len);
    mlock2(addr: Void, len: usize, flags: c_uint) -> c_int = maps::mlock2(addr, len, flags);
    munlock(addr: Void, len: usize) -> c_int = maps::munlock(addr, len);
    mlockall(flags: c_int) -> c_int = maps::mlockall(flags);
    munlockall() -> c_int = maps::munlockall();

    close(fd: c_int) -> c_int = descriptors::close(fd);
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int = descriptors::close_range(first, last, flags);
    closefrom(first: c_int) -> () = descriptors::closefrom(first);
    dup2(old: c_int, new: c_int) -> c_int = descriptors::dup2(old, new);
    dup3(old: c_int, new: c_int, flags: c_int) -> c_int = descriptors::dup3(old, new, flags);

    sigaction(signal: c_int, new: Action, old: Action) -> c_int = signals::sigaction(signal, new, old);
    signal(signal: c_int, handler: usize) -> usize = signals::signal(signal, handler);
    bsd_signal(signal: c_int, handler: usize) -> usize = signals::signal(signal, handler);
    ssignal(signal: c_int, handler: usize) -> usize = signals::signal(signal, handler);
    sysv_signal(signal: c_int, handler: usize) -> usize = signals::sysv_signal(signal, handler);
    __sysv_signal(signal: c_int, handler: usize) -> usize = signals::sysv_signal(signal, handler);
    sigprocmask(how: c_int, new: Mask, old: *mut libc::sigset_t) -> c_int = signals::sigprocmask(how, new, old);
    pthread_sigmask(how: c_int, new: Mask, old: *mut libc::sigset_t) -> c_int = signals::pthread_sigmask(how, new, old);
    sigsuspend(mask: Mask) -> c_int = signals::sigsuspend(mask);
    ppoll(fds: Void, count: usize, time: Void, mask: Mask) -> c_int = signals::ppoll(fds, count, time, mask);
    pselect(count: c_int, read: Void, write: Void, except: Void, time: Void, mask: Mask) -> c_int
        = signals::pselect(count, [read, write, except], time, mask);
    epoll_pwait(fd: c_int, events: Void, count: c_int, time: c_int, mask: Mask) -> c_int
        = signals::epoll_pwait(fd, events, count, time, mask);
    sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int = signals::sigaltstack(new, old);
    pthread_create(thread: Void, attr: *const libc::pthread_attr_t, entry: Void, arg: Void) -> c_int
        = signals::pthread_create(thread, attr, entry, arg);
    aio_read(block: Void) -> c_int = async_io::read(block);
    aio_read64(block: Void) -> c_int = async_io::read(block);
    aio_write(block: Void) -> c_int = async_io::write(block);
    aio_write64(block: Void) -> c_int = async_io::write(block);
    lio_listio(mode: c_int, list: *const Void, count: c_int, event: Void) -> c_int
        = async_io::list(mode, list, count, event);
    lio_listio64(mode: c_int, list: *const Void, count: c_int, event: Void) -> c_int
        = async_io::list(mode, list, count, event);

    setrlimit(resource: c_uint, new: Limits) -> c_int = limits::prlimit(0, resource, new, null_mut());
    setrlimit64(resource: c_uint, new: Limits) -> c_int = limits::prlimit(0, resource, new, null_mut());
    getrlimit(resource: c_uint, old: *mut libc::rlimit64) -> c_int = limits::prlimit(0, resource, null(), old);
    getrlimit64(resource: c_uint, old: *mut libc::rlimit64) -> c_int = limits::prlimit(0, resource, null(), old);
    prlimit(pid: libc::pid_t, resource: c_uint, new: Limits, old: *mut libc::rlimit64) -> c_int
        = limits::prlimit(pid, resource, new, old);
    prlimit64(pid: libc::pid_t, resource: c_uint, new: Limits, old: *mut libc::rlimit64) -> c_int
        = limits::prlimit(pid, resource, new, old);

    setuid(user: c_uint) -> c_int = ids::change(&ids::SETUID, |next| next(user));
    setgid(group: c_uint) -> c_int = ids::change(&ids::SETGID, |next| next(group));
    seteuid(user: c_uint) -> c_int = ids::change(&ids::SETEUID, |next| next(user));
    setegid(group: c_uint) -> c_int = ids::change(&ids::SETEGID, |next| next(group));
    setreuid(real: c_uint, effective: c_uint) -> c_int = ids::change(&ids::SETREUID, |next| next(real, effective));
    setregid(real: c_uint, effective: c_uint) -> c_int = ids::change(&ids::SETREGID, |next| next(real, effective));
    setresuid(real: c_uint, effective: c_uint, saved: c_uint) -> c_int
        = ids::change(&ids::SETRESUID, |next| next(real, effective, saved));
    setresgid(real: c_uint, effective: c_uint, saved: c_uint) -> c_int
        = ids::change(&ids::SETRESGID, |next| next(real, effective, saved));
    setgroups(count: usize, groups: *const c_uint) -> c_int = ids::change(&ids::SETGROUPS, |next| next(count, groups));
    initgroups(user: Path, group: c_uint) -> c_int = ids::change(&ids::INITGROUPS, |next| next(user, group));

    ioctl(fd: c_int, request: c_ulong, arg: Void) -> c_int = own_uffd::ioctl(fd, request, arg);

    vmsplice(fd: c_int, vectors: *const libc::iovec, count: usize, flags: c_uint) -> isize
        = zero_copy::vmsplice(fd, vectors, count, flags);
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: libc::socklen_t) -> c_int
        = zero_copy::setsockopt(fd, level, name, value, len);

    pthread_exit(value: Void) -> ! = last_thread::pthread_exit(value);
    _exit(status: c_int) -> ! = lifecycle::exit_at_once(status);
    _Exit(status: c_int) -> ! = lifecycle::exit_at_once(status);

    __register_atfork(prepare: Void, parent: Void, child: Void, object: Void) -> c_int
        = lifecycle::register_atfork([prepare, parent, child, object]);
    // Programs have this one linked in, and it calls the one above; but those that only ask whether it is there find the C library's.
    pthread_atfork(prepare: Void, parent: Void, child: Void) -> c_int
        = lifecycle::register_atfork([prepare, parent, child, std::ptr::null_mut()]);
    fork() -> libc::pid_t = fork::fork();
    _Fork() -> libc::pid_t = fork::raw_fork();
    clone(entry: fork::Entry, stack: Void, flags: c_int, arg: Void, parent: *mut c_int, tls: Void, child: *mut c_int) -> c_int
        = fork::clone(entry, stack, flags, arg, (parent, tls, child));

    execve(path: Path, argv: Strings, envp: Strings) -> c_int = exec::execve(path, argv, envp);
    execv(path: Path, argv: Strings) -> c_int = exec::execv(path, argv);
    execvp(file: Path, argv: Strings) -> c_int = exec::execvp(file, argv);
    execvpe(file: Path, argv: Strings, envp: Strings) -> c_int = exec::execvpe(file, argv, envp);
    fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int = exec::fexecve(fd, argv, envp);
    execveat(dir: c_int, path: Path, argv: Strings, envp: Strings, flags: c_int) -> c_int
        = exec::execveat(dir, path, argv, envp, flags);
    system(command: Path) -> c_int = exec::system(command);
    popen(command: Path, kind: Path) -> *mut libc::FILE = exec::popen(command, kind);
    posix_spawn(pid: *mut libc::pid_t, path: Path, actions: Void, attributes: Void, argv: Strings, envp: Strings) -> c_int
        = exec::posix_spawn(exec::Child { pid, file: path, actions, attributes, argv }, envp, false);
    posix_spawnp(pid: *mut libc::pid_t, file: Path, actions: Void, attributes: Void, argv: Strings, envp: Strings) -> c_int
        = exec::posix_spawn(exec::Child { pid, file, actions, attributes, argv }, envp, true);
}
