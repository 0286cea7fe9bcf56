//! The advisor: what a placement of a program's objects gives, and which placement is best. Reads a profile's summary and a machine's
//! description; measures nothing.
//!
//! - [`scaling`]: the run on more threads than were profiled.
//! - [`machine`]: two tiers as the model needs them.
//! - [`shares`]: which routine took how much of each stretch of the run.
//! - [`sharing`]: what misses in a cache that groups share.
//! - [`demand`]: what each object asks of a tier, over time.
//! - [`overlap`]: how long computing and moving take beside each other.
//! - [`unknowns`]: what nobody measured.
//! - [`model`]: the time of a placement, of cache mode and of hybrid mode.
//! - [`samples`]: what profiles say of numbers of threads.
//! - [`by_routine`]: whose time that is.
//! - [`interval`]: how far off that may be.
//! - [`choose`]: the placement that takes the least time.
//! - [`heuristic`]: what practice would say.
//! - [`rules`]: the plan for `nearfar run --place`.
//! - [`reason`]: why an object is where the plan has it.
//! - [`advice`](mod@advice): all of it for one question.
//! - [`replay`]: run time against near size from a recorded trace.
//! - [`prices`]: what that costs.
//! - [`explain`](mod@explain): the arithmetic of one object's gain.

pub mod scaling;
pub mod machine;
pub mod shares;
pub mod sharing;
pub mod demand;
pub mod overlap;
pub mod unknowns;
pub mod model;
pub mod samples;
pub mod by_routine;
pub mod interval;
pub mod choose;
pub mod heuristic;
pub mod rules;
pub mod reason;
pub mod advice;
pub mod replay;
pub mod prices;
pub mod explain;
