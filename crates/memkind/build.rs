//! Linker options of libmemkind.so.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The name that programs built against memkind ask the loader for. Never unloaded: blocks outlive a dlclose.
    for option in ["-Wl,-soname,libmemkind.so.0", "-Wl,-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
}
