//! ONE table of the exported symbols. A body is a one-line forward; what it forwards to is documented there.
//!
//! A symbol is added here and nowhere else. Under test nothing is exported: the test runner keeps the C library's functions.

use crate::{exec, fork, heap, maps};
use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! hooks {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty = $forward:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` for the program.")]
        ///
        /// # Safety
        /// As for the C function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result {
            // SAFETY: the program keeps the contract of the C function, which is that of the function forwarded to.
            #[allow(unused_unsafe)]
            unsafe { $forward }
        }
    )*};
}

type Void = *mut c_void;
type Path = *const c_char;
type Strings = *const *const c_char;

hooks! {
    malloc(size: usize) -> Void = heap::malloc(size);
    calloc(count: usize, size: usize) -> Void = heap::calloc(count, size);
    realloc(block: Void, size: usize) -> Void = heap::realloc(block, size);
    reallocarray(block: Void, count: usize, size: usize) -> Void = heap::reallocarray(block, count, size);
    free(block: Void) -> () = heap::free(block);
    cfree(block: Void) -> () = heap::free(block);
    posix_memalign(out: *mut Void, align: usize, size: usize) -> c_int = heap::posix_memalign(out, align, size);
    aligned_alloc(align: usize, size: usize) -> Void = heap::memalign(align, size);
    memalign(align: usize, size: usize) -> Void = heap::memalign(align, size);
    valloc(size: usize) -> Void = heap::valloc(size);
    pvalloc(size: usize) -> Void = heap::pvalloc(size);
    malloc_usable_size(block: Void) -> usize = heap::usable_size(block);

    mmap(addr: Void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> Void
        = maps::mmap(addr, len, prot, flags, fd, offset);
    mmap64(addr: Void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> Void
        = maps::mmap(addr, len, prot, flags, fd, offset);
    munmap(addr: Void, len: usize) -> c_int = maps::munmap(addr, len);
    mremap(addr: Void, old: usize, new: usize, flags: c_int, to: Void) -> Void = maps::mremap(addr, old, new, flags, to);
    mprotect(addr: Void, len: usize, prot: c_int) -> c_int = maps::mprotect(addr, len, prot);
    pkey_mprotect(addr: Void, len: usize, prot: c_int, key: c_int) -> c_int = maps::pkey_mprotect(addr, len, prot, key);
    madvise(addr: Void, len: usize, advice: c_int) -> c_int = maps::madvise(addr, len, advice);
    posix_madvise(addr: Void, len: usize, advice: c_int) -> c_int = maps::posix_madvise(addr, len, advice);
    mlock(addr: Void, len: usize) -> c_int = maps::mlock(addr, len);
    mlock2(addr: Void, len: usize, flags: c_uint) -> c_int = maps::mlock2(addr, len, flags);
    munlock(addr: Void, len: usize) -> c_int = maps::munlock(addr, len);
    mlockall(flags: c_int) -> c_int = maps::mlockall(flags);
    munlockall() -> c_int = maps::munlockall();

    _Fork() -> libc::pid_t = fork::raw_fork();
    clone(entry: fork::Entry, stack: Void, flags: c_int, arg: Void, parent: *mut c_int, tls: Void, child: *mut c_int) -> c_int
        = fork::raw_clone(entry, stack, flags, arg, (parent, tls, child));

    execve(path: Path, argv: Strings, envp: Strings) -> c_int = exec::execve(path, argv, envp);
    execv(path: Path, argv: Strings) -> c_int = exec::execv(path, argv);
    execvp(file: Path, argv: Strings) -> c_int = exec::execvp(file, argv);
    execvpe(file: Path, argv: Strings, envp: Strings) -> c_int = exec::execvpe(file, argv, envp);
    fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int = exec::fexecve(fd, argv, envp);
    execveat(dir: c_int, path: Path, argv: Strings, envp: Strings, flags: c_int) -> c_int
        = exec::execveat(dir, path, argv, envp, flags);
    posix_spawn(pid: *mut libc::pid_t, path: Path, actions: Void, attributes: Void, argv: Strings, envp: Strings) -> c_int
        = exec::posix_spawn(exec::Child { pid, file: path, actions, attributes, argv }, envp, false);
    posix_spawnp(pid: *mut libc::pid_t, file: Path, actions: Void, attributes: Void, argv: Strings, envp: Strings) -> c_int
        = exec::posix_spawn(exec::Child { pid, file, actions, attributes, argv }, envp, true);
}
