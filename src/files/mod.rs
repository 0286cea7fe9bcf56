//! Files that the command reads and writes, whatever the sub-command: their names, formats and checks. Modules are listed lowest first.

pub mod output;
pub mod private_dir;
pub mod rank_name;
pub mod spill_dir;
pub mod preset;
pub mod advice;
pub mod curve;
pub mod suite;
pub mod nfprof;
pub mod document;
