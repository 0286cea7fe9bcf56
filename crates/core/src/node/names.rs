//! The words that tables, charts and reports use for the choices of a row.

use super::{Arithmetic, Chase, Injection, Isa, MemoryKind, Pages, Precision, Runtime, Stores};

impl MemoryKind {
    /// The word in tables; empty when not known.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Dram => "DRAM",
            Self::Hbm => "HBM",
            Self::Cxl => "CXL",
            Self::Pmem => "PMem",
            Self::Gpu => "GPU memory",
        }
    }
}

impl Stores {
    /// The words in tables: "ordinary stores", "non-temporal stores", "no stores".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary stores",
            Self::NonTemporal => "non-temporal stores",
            Self::None => "no stores",
        }
    }
}

impl Chase {
    /// The words in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageLocal => "page-local",
            Self::Random => "random",
        }
    }
}

impl Pages {
    /// The words in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small pages",
            Self::Huge => "huge pages",
            Self::Mixed => "small and huge pages",
        }
    }
}

impl Injection {
    /// The words in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::ReadsAndWrites => "two reads for each write",
        }
    }
}

impl Precision {
    /// "f32", "f64".
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl Isa {
    /// The words in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "SSE2",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::Neon => "NEON",
        }
    }
}

impl Arithmetic {
    /// The words in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::MultiplyAdd => "multiply and add",
            Self::Fma => "FMA",
            Self::Gemm => "matrix product",
        }
    }
}

impl Runtime {
    /// "nearfar's own", "OpenMP (libgomp.so.1)".
    pub fn name(&self) -> String {
        match self {
            Self::Own => "nearfar's own".to_owned(),
            Self::OpenMp(file) => format!("OpenMP ({file})"),
        }
    }
}
