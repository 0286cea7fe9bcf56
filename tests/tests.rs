//! Black box: programs run plainly and under `nearfar run`, and what can be seen of both must be the same.
//!
//! Each module says what belongs in it; the programs are in `tests/programs`, one file per behaviour, and hold their own checks
//! (they print OK or the first wrong address). `NEARFAR_REQUIRE=numpy,gfortran,...` (or `all`) turns a skip for want of something
//! into a failure; `NEARFAR_TEST_SECONDS` sets how long the timed ones run; `NEARFAR_BIN` tests another build;
//! `NEARFAR_TEST_KILLS` is how often something is killed, `NEARFAR_TEST_SEED` repeats what was random.

#[macro_use]
mod macros;
mod util;
/// Not tests: a virtual machine with other NUMA nodes, for those that need one.
mod guest;
/// Not tests: the boots that tests of nodes share.
mod boots;

/// Put it here if a program that people really use, or one in another language, must give the same result.
mod real_programs;

/// Put it here if a language's own runtime keeps the memory: collectors, interpreters.
mod runtimes;

/// Put it here if it is about the malloc or mmap family as a program sees it.
mod hooks;

/// Put it here if it is about how processes and threads start and end, and what they leave behind.
mod lifecycle;

/// Put it here if it is about what is paged, when it is written, and faults: right data under pressure, with every facility denied in turn.
mod pager;

/// Put it here if the kernel, not the program, touches paged memory.
mod kernel_access;

/// Put it here if it is about users with fewer rights: the kernel's own accesses are not served.
mod rights;

/// Put it here if it is about what another user could do to a job or with it, or what a job leaves open to others.
mod security;

/// Put it here if a process is copied: fork, raw clone, exec and spawn in a program with paged data.
mod fork;

/// Put it here if it is about options, messages and exit codes of the command.
mod cli;

/// Put it here if the program brings a malloc of its own.
mod allocators;

/// Put it here if the pager takes no turns.
mod stalls;

/// Put it here if it is a trap that other pagers fell into.
mod traps;

/// Put it here if it is a call of the C library that reaches every thread, or pages behind the caller's back.
mod corners;

/// Put it here if the page table is to be checked while a program runs.
mod page_table;

/// Put it here if something is killed at random moments.
mod kills;

/// Everything at once, for as long as one likes: `make soak MINUTES=n`.
mod soak;
/// Put it here if far fails, is slow, full or read by others: right data or a clear stop, and no hang.
mod faults;
/// Put it here if it is about a system without userfaultfd, where the kernel pages.
mod fallback;

/// Put it here if it is about what a profile says of a program whose traffic is known.
mod truth;

/// Put it here if it measures memory against `--near`.
mod budget;
/// Put it here if it is about where programs run: file systems for far, control groups.
mod surroundings;

/// Put it here if it is about the workloads of `nearfar bench`, or about what that prints.
mod bench;
/// Put it here if it is about `nearfar bench suite`: what it saves, goes on with and refuses.
mod suite;

/// Put it here if it is about what `run --trace` records.
mod trace;

/// Put it here if it is about a far tier that has no more space: refused allocations, strict commitment, room made in far.
mod space;

/// Put it here if it is about what `nearfar probe` measures and prints.
mod probe;
/// Put it here if it is about `nearfar sensitivity`: that it runs and ends as it should. What it concludes is tested in `core`.
mod sensitivity;
/// Put it here if it is about a page of `nearfar report` as a browser shows it.
mod pages;
/// Put it here if it is about what `nearfar map` shows of threads and pages.
mod map;
/// Put it here if it is about what `nearfar top` shows of running jobs, and that it leaves the terminal as it was.
mod top;
/// Put it here if it is about what programmers call: nearfar.h, its languages, the examples, an installed copy.
mod api;
/// Put it here if it is about `nearfar try`: what a newcomer sees, and that nothing is left behind.
mod trying;
/// Put it here if it is about packages: what is in them, and that they install, work and go without a trace.
mod packages;
/// Put it here if several `nearfar run` on one node are ranks of one job.
mod ranks;
/// Put it here if a real launcher starts the ranks: Open MPI, MPICH, Slurm.
mod launchers;
/// Put it here if it is about NUMA nodes as near and far: what is chosen and refused, and where pages then lie.
mod numa;
/// Put it here if it is about libmemkind.so in the place of memkind's.
mod memkind_abi;
/// Put it here if it is about libautohbw.so, libmemtier.so or the command-line tools of memkind.
mod autohbw;
/// Put it here if it is about cache mode between NUMA nodes: which pages move, and when none do.
mod numa_cache;
/// Put it here if it is about where single objects go in flat and hybrid mode: every kind of memory, plans, near full.
mod placing;

/// Put it here if it is about what is advised for a profile, and plans that meet another build.
mod advise;
/// Put it here if it goes from a profile through a plan to a run.
mod plans;
/// Put it here if it is about what `nearfar profile` records, and that the program does not notice.
mod profile;

/// Put it here if it is about what `nearfar profile` calls objects, or about arrays that it finds by their symbols.
mod profiled_arrays;
