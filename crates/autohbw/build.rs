//! Linker options of libautohbw.so. Its exported symbols are those that `lib.rs` marks.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Bound at load and never unloaded, since blocks of the program lie in its heaps.
    for option in ["-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,-soname,libautohbw.so.0"] {
        println!("cargo:rustc-cdylib-link-arg={option}");
    }
}
