//! libnearfar.so: preloaded into a program, it takes the place of the malloc and mmap families and puts the program's memory
//! under the pager (`nearfar_tiers::memory`). It holds no policy: it routes calls.
//!
//! # Life story
//! - **Load.** The loader binds the program's calls to our symbols (`hooks`). It calls malloc itself before the C library is
//!   set up; such calls, and all that come before or during the start, go to the C library's heap and stay there for life.
//! - **Start.** The first call of any hook once the C library is ready, at the latest our constructor, reads NEARFAR_JOB and
//!   attaches to the job (`lifecycle`). Without a job the process stays *inert*: every hook passes on to the C library or the
//!   kernel. With an unusable job too, after one line on standard error. Otherwise it *manages*: large static arrays are
//!   adopted, and from now on allocations and private anonymous mappings come from the arena.
//! - **Placing.** In flat and hybrid jobs chosen objects go near, each by itself (`placing`). Where near and far are NUMA nodes
//!   that is all: there is no pager, and every other hook passes on.
//! - **Profiling.** With NEARFAR_PROFILE and no job the process is only observed: memory stays the C library's, and the hooks tell
//!   `nearfar_profile::recorder` of blocks and mappings (`profiling`).
//! - **Threads** come and go without our notice, apart from mimalloc's per-thread heaps, which it hands on by itself. When
//!   the main thread leaves before the others, the process still ends with the last of them (`last_thread`).
//! - **Descriptors** of the pager are hidden from calls that close or replace descriptors (`descriptors`).
//! - **fork.** Our handlers are registered first (`early_atfork` holds others back), so they run closest around the fork: memory
//!   comes to rest, the child starts a pager of its own. `_Fork` and `clone`, which skip handlers, are wrapped (`fork`). A child of
//!   vfork runs in its parent's memory until exec, and may call any hook; one of clone with shared memory ends when nobody serves
//!   it any more (`vm_sharers`).
//! - **exec.** The new program starts from the beginning. The environment is completed if the caller dropped what leads the
//!   child back to the job (`exec`).
//! - **Ordinary users** get a userfaultfd that misses the kernel's own accesses. Then system calls on paged memory are caught
//!   by SIGSYS (`user_mode`), which the program must neither block nor handle (`signals`).
//! - **Exit.** Our destructor writes the last gauges. Memory stays served until the kernel takes the process down, so that
//!   other destructors may touch it. `_exit` and fatal signals need nothing of us.
//!
//! Needs glibc (2.26 or later). Not for programs under AddressSanitizer and its like, which must own malloc themselves.
//!
//! Modules are listed lowest first; a module uses only modules above it.

mod alloc_internal;
mod errno;
mod loader;
mod at_fork;
mod function;
mod loaded;
mod libc_heap;
mod small_heap;
mod static_arrays;
mod stack;
mod managed;
mod objects;
mod thread_entry;
mod placing;
mod signal_stacks;
mod large_transfers;
mod user_mode;
mod exec;
mod stdio;
mod recorded_threads;
mod profiling;
mod early_atfork;
mod lifecycle;
mod vm_sharers;
mod fork;
mod recorded;
mod heap;
mod standalone;
mod job_tiers;
mod api;
mod maps;
mod limits;
#[cfg(target_arch = "x86_64")]
pub mod raw_syscall;
#[cfg(target_arch = "x86_64")]
pub mod exec_lists;
mod descriptors;
mod signals;
mod async_io;
mod zero_copy;
mod ids;
mod own_uffd;
mod last_thread;
pub mod hooks;
pub mod api_hooks;
