//! Prints a capture of this machine, or of a captured one as far as it is read: how tests/machines/ is made.
//!
//!     cargo run -p nearfar-sys --example capture [FILE.capture] > new.capture

use nearfar_sys::{machine, root::Root};

fn main() -> Result<(), String> {
    let root = std::env::args_os().nth(1).map_or(Ok(Root::this()), |path| Root::open(path.as_ref()))?;
    print!("{}", machine::capture(&root));
    Ok(())
}
