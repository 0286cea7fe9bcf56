//! Observes: which objects a program has, where they are allocated, and how often their pages are touched. One half runs inside the
//! program (recorder, sampler), the other afterwards (names, code). A third watches from outside where the time of a run goes (outside). What is concluded is the business of `core::profile`.
//!
//! Modules are listed lowest first; a module uses only modules above it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod settings;
pub mod queue;
pub mod hook_time;
pub mod python;
pub mod sites;
pub mod locals;
pub mod modules;
pub mod live;
pub mod stacks;
pub mod output;
pub mod facts;
pub mod book;
pub mod ring;
pub mod sampler;
pub mod rings;
pub mod clock;
pub mod processor;
pub mod writer;
pub mod recorder;
pub mod code;
pub mod demangle;
pub mod image;
pub mod names;
pub mod outside;
