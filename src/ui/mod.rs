//! How things are shown to people: messages, progress, HTML and charts. Modules are listed lowest first.

pub mod message;
pub mod progress;
pub mod html;
pub mod chart;
