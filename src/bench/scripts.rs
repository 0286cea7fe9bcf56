//! Real programs in Python that `bench grain` and `bench apps` run: what they need, and their text. They time and check themselves, and
//! print the report of our own workloads. They stop themselves at the limit of a repetition.

use std::ffi::OsString;

const PRELUDE: &str = include_str!("scripts/prelude.py");

/// A program in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Three-dimensional transforms by numpy.
    Fft,
    /// A join, an update and a sum of a database in memory by SQLite.
    Sqlite,
    /// Tables made, joined, grouped and sorted in memory by DuckDB.
    Duckdb,
    /// Factors of a three-dimensional Laplacian, and a solution with them, by MKL's PARDISO.
    Pardiso,
    /// Three-dimensional transforms in place by MKL.
    MklFft,
    /// LU factors of a dense matrix, and a solution with them, by MKL.
    MklLu,
    /// Hartree-Fock by PySCF, with all integrals in memory.
    Pyscf,
}

impl Script {
    /// The module that it lives on.
    pub const fn module(self) -> &'static str {
        match self {
            Script::Fft => "numpy",
            Script::Sqlite => "sqlite3",
            Script::Duckdb => "duckdb",
            Script::Pardiso => "pypardiso",
            // It brings MKL with it.
            Script::MklFft | Script::MklLu => "mkl_fft",
            Script::Pyscf => "pyscf",
        }
    }

    /// Arguments of the interpreter. A repetition that takes longer than `seconds` is the last.
    pub fn arguments(self, data_bytes: u64, repetitions: usize, seconds: Option<f64>) -> Vec<OsString> {
        let text = match self {
            Script::Fft => include_str!("scripts/fft.py"),
            Script::Sqlite => include_str!("scripts/sqlite.py"),
            Script::Duckdb => include_str!("scripts/duckdb.py"),
            Script::Pardiso => include_str!("scripts/pardiso.py"),
            Script::MklFft => include_str!("scripts/mkl_fft.py"),
            Script::MklLu => include_str!("scripts/mkl_lu.py"),
            Script::Pyscf => include_str!("scripts/pyscf.py"),
        };
        let numbers = [data_bytes.to_string(), repetitions.to_string(), seconds.unwrap_or(0.0).to_string()];
        // The current directory may hold anything, modules of the same names included; option -P is new in 3.11.
        let program = format!("import sys\nsys.path = [p for p in sys.path if p]\n{PRELUDE}{text}");
        ["-c".into(), program.into()].into_iter().chain(numbers.map(OsString::from)).collect()
    }
}
