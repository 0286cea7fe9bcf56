//! The advisor: what a placement of a program's objects gives, and which placement is best. Reads a profile's summary and a machine's
//! description; measures nothing.
//!
//! - [`machine`]: two tiers as the model needs them.
//! - [`demand`]: what each object asks of a tier, over time.
//! - [`model`]: the time of a placement, of cache mode and of hybrid mode.
//! - [`by_routine`]: whose time that is.
//! - [`interval`]: how far off that may be.
//! - [`choose`]: the placement that takes the least time.
//! - [`heuristic`]: what practice would say.
//! - [`rules`]: the plan for `nearfar run --place`.
//! - [`advice`](mod@advice): all of it for one question.

pub mod machine;
pub mod demand;
pub mod model;
pub mod by_routine;
pub mod interval;
pub mod choose;
pub mod heuristic;
pub mod rules;
pub mod advice;
