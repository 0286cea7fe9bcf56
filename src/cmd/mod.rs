//! One file per subcommand: takes arguments, returns the exit status.

pub mod bench;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod man;
pub mod map;
pub mod memkind_tools;
pub mod probe_compare;
pub mod profile;
pub mod report;
pub mod run;
pub mod probe;
pub mod sensitivity;
pub mod advise;
