//! Starting programs: which file is executed, with which library, and who looks after it until its end. Modules are listed lowest first.

pub mod bundle;
pub mod library;
pub mod kernel_program;
pub mod helper;
pub mod executable;
pub mod supervisor;
