//! Talks to the kernel: the only system calls of nearfar, one facility per file.
//!
//! Everything that the preloaded library interposes (mmap, munmap, madvise, ...) is called here as a raw system call, so that
//! our own work can never come back through our own hooks, and `errno` of the program is never touched.
//! Modules are listed lowest first; a module uses only modules above it in this list.

pub mod arch;
mod errno_text;
pub mod errno;
pub mod line;
pub mod small_file;
pub mod root;
pub mod cgroup;
pub mod machine;
pub mod rapl;
pub mod memory_events;
pub mod map;
pub mod own_limits;
pub mod secret;
pub mod aside;
pub mod futex;
pub mod event;
pub mod timer;
pub mod pipe;
pub mod shared;
pub mod signal;
pub mod inside;
pub mod credentials;
pub mod own_thread;
pub mod thread;
pub mod affinity;
pub mod numa;
pub mod zones;
pub mod process;
pub mod pagemap;
pub mod keeper;
pub mod task;
pub mod perf;
pub mod blocked;
pub mod gate;
pub mod call_table;
pub mod call_memory;
pub mod seccomp;
pub mod child;
pub mod place;
pub mod rlimit;
pub mod elf;
pub mod proc_maps;
pub mod proc_tasks;
pub mod numa_maps;
pub mod proc_cgroup;
pub mod tiering;
pub mod damon;
pub mod idle_pages;
pub mod visits;
pub mod uffd;
pub mod uffd_watch;
pub mod spill_dir;
pub mod file;
pub mod private_file;
pub mod append;
pub mod page_cache;
pub mod resident;
pub mod bus_error;
pub mod io;
pub mod io_uring;
pub mod io_threads;
pub mod awake;
pub mod kernel;
