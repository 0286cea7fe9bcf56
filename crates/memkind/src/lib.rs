//! libmemkind.so: the interface of memkind 1.14.0 and of its last commit, for programs that were built for either. Exports, and no
//! more: what they do is in `nearfar-kinds`. docs/reference/memkind.md lists what answers neutrally and what differs.

mod kinds;
mod functions;
mod internals;
mod memtier;
