//! The words that tables, charts and reports use for the choices of a row.

use super::{
    Arithmetic, Chase, FarAccess, Injection, Isa, MemoryKind, Mpi, Operation, Pages, Precision, Runtime, Stores, Threading, words,
};

macro_rules! names {
    ($($choice:ident { $($variant:ident: $words:literal),+ })+) => {
        $(impl $choice {
            /// The words in tables; empty when not known.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $words),+ }
            }
        })+
    };
}

names! {
    MemoryKind { Unknown: "", Dram: "DRAM", Hbm: "HBM", Cxl: "CXL", Pmem: "PMem", Gpu: "GPU memory" }
    Operation { Read: "read", Write: "write", Copy: "copy", Scale: "scale", Add: "add", Triad: "triad" }
    Stores { Ordinary: "ordinary stores", NonTemporal: "non-temporal stores", None: "no stores" }
    Chase { PageLocal: "page-local", Random: "random" }
    Pages { Small: "small pages", Huge: "huge pages", Mixed: "small and huge pages" }
    Injection { Reads: "reads", ReadsAndWrites: "two reads for each write" }
    Precision { F32: "f32", F64: "f64" }
    Isa { Scalar: "scalar", Sse2: "SSE2", Avx2: "AVX2", Avx512: "AVX-512", Neon: "NEON" }
    Arithmetic { Add: "add", MultiplyAdd: "multiply and add", Fma: "FMA", Gemm: "matrix product" }
    FarAccess {
        SequentialRead: "sequential read", SequentialWrite: "sequential write",
        RandomRead: "random read", RandomWrite: "random write"
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

impl Threading {
    /// "barrier of 8 threads, OpenMP": the path of a runtime differs between machines that are otherwise alike.
    pub(super) fn title(&self) -> String {
        let runtime = if self.runtime == Runtime::Own { "own threads" } else { "OpenMP" };
        format!("{} of {} threads, {runtime}", self.construct, self.threads)
    }
}

impl Mpi {
    /// "MPI ping-pong latency, 8 B of 2 ranks".
    pub(super) fn title(&self) -> String {
        format!("MPI {}, {} of {} ranks", self.what, words::size(self.bytes), self.ranks)
    }
}
