//! Linker options of libnearfar.so. The set of exported symbols needs none: rustc exports what `hooks.rs` marks and no more.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for option in [
        // Bound at load: a lazy binding would run the loader inside a vfork child or a signal handler.
        "-Wl,-z,now",
        // Never unloaded: the program's memory depends on it.
        "-Wl,-z,nodelete",
        "-Wl,-soname,libnearfar.so",
        // Calls of our own to functions that we export stay here: a program may define them too, as one that has tcmalloc linked in
        // does with mmap, and its tables are paged memory.
        "-Wl,-Bsymbolic-functions",
        // mimalloc names its mappings, which would split the arena into a kernel mapping per name: see `small_heap.rs`.
        "-Wl,--wrap=prctl",
    ] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
}
