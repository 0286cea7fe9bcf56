//! `needs!`: what a test cannot do without; `programs!`: tests of one statement, as a table.

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

/// Tests of one statement each, as a table: `name: what is run;`, or `name (needs "what"): ...;`.
macro_rules! programs {
    ($($(#[$attribute:meta])* $name:ident $((needs $($need:literal),+))?: $run:expr;)+) => {
        $($(#[$attribute])* #[test] fn $name() {
            $(needs!($($need),+);)?
            $run;
        })+
    };
}
