//! How things are shown to people: messages, progress, HTML and charts. Modules are listed lowest first.

pub mod message;
pub mod table;
pub mod typo;
pub mod progress;
pub mod screen;
pub mod routine;
pub mod chart;
pub mod html;
pub mod page;
pub mod suite;
