//! What is concluded of a machine, and how sure that is.

use serde::{Deserialize, Serialize};

/// How sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It follows from several facts that could have another reason.
    Inferred,
    /// The machine says so.
    Detected,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// "flat", "cache", "hybrid", "HBM only", "one kind of memory", "unified".
    #[default]
    MemoryMode,
    /// "SNC-4", "NPS-4", "quadrant, hemisphere or all-to-all", "none".
    ClusterMode,
    /// The product line: "Knights Landing", "Xeon Max", "Grace-Hopper", "MI300A", ...
    Product,
    /// Which node is near memory and which is far: "near: nodes 4-7, far: nodes 0-3".
    Tiers,
    /// Anything that distorts figures: virtual machine, container, cgroup limit, sources that disagree.
    Caution,
}

/// One conclusion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub subject: Subject,
    /// The conclusion, in words for people; "unknown" when there is none.
    pub value: String,
    /// How sure.
    pub certainty: Certainty,
    /// The facts behind it, each with where it was read.
    pub evidence: Vec<String>,
}
