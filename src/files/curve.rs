//! What `nearfar advise TRACE --json` writes: run time against near size.

use nearfar_core::advise::replay::Point;
use serde::{Deserialize, Serialize};

/// Version of the document.
pub const FORMAT: u32 = 1;

/// A size of near, as JSON has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Size {
    /// What was said.
    #[serde(flatten)]
    pub said: Point,
    /// Wall seconds that were measured, one for each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<f64>,
}

/// What `--json` writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replayed {
    /// Version of this document.
    pub nearfar_curve: u32,
    /// The trace.
    pub trace: String,
    /// What is far.
    pub far: String,
    /// Bytes that the trace visits.
    pub data_bytes: f64,
    /// Wall seconds without nearfar.
    pub plain_s: f64,
    /// The curve.
    pub sizes: Vec<Size>,
}
