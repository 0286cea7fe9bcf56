//! Where libnearfar.so is: NEARFAR_LIB_DIR, else what pkg-config says, else the release build of the tree that this crate lies in.
//! Programs find it at run time by LD_LIBRARY_PATH, ldconfig or an rpath (RUSTFLAGS="-C link-arg=-Wl,-rpath,DIR").

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=NEARFAR_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=dylib=nearfar");
    if let Some(dir) = named().or_else(installed).or_else(built) {
        println!("cargo:rustc-link-search=native={}", dir.display());
    }
}

fn named() -> Option<PathBuf> {
    std::env::var_os("NEARFAR_LIB_DIR").map(PathBuf::from)
}

fn installed() -> Option<PathBuf> {
    let output = Command::new("pkg-config").args(["--variable=libdir", "nearfar"]).output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !dir.trim().is_empty()).then(|| dir.trim().into())
}

fn built() -> Option<PathBuf> {
    let tree = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?).join("../../target/release");
    tree.join("libnearfar.so").exists().then_some(tree)
}
