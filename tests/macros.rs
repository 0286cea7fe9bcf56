//! `needs!`: what a test cannot do without.

/// Skips the test with a printed reason when the machine lacks one of the named things; fails instead when `NEARFAR_REQUIRE` names it.
/// Names are those of `util::has`.
macro_rules! needs {
    ($($name:literal),+ $(,)?) => {
        for name in [$($name),+] {
            if let Err(why) = $crate::util::has(name) {
                if $crate::util::is_required(name) {
                    panic!("NEARFAR_REQUIRE forbids to skip for want of {name}: {why}");
                }
                println!("skipped: needs {name}: {why}");
                return;
            }
        }
    };
}
