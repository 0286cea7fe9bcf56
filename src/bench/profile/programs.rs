//! The programs whose traffic is known, and how they are built. Their sources are part of the command.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program.
pub struct Program {
    pub name: &'static str,
    file: &'static str,
    source: &'static str,
    pub threads: u32,
    /// It can write down the pages that it visits, in order (`trace.h`): what one thread does.
    pub traced: bool,
}

const HEADER: &str = include_str!("../../../tests/truth/truth.h");
const TRACE: &str = include_str!("../../../tests/truth/trace.h");
const SWEEPS: &str = include_str!("../../../tests/truth/sweeps.c");
const GATHER: &str = include_str!("../../../tests/truth/gather.c");
const STENCIL: &str = include_str!("../../../tests/truth/stencil.c");

const HOT: &str = include_str!("../../../tests/truth/hot.c");
const BRIEF: &str = include_str!("../../../tests/truth/brief.c");
const PLACES: &str = include_str!("../../../tests/truth/places.c");
const STRIDED: &str = include_str!("../../../tests/truth/strided.c");
const VECTORS: &str = include_str!("../../../tests/truth/vectors.cpp");
const FIELDS: &str = include_str!("../../../tests/truth/fields.f90");
const ARRAYS: &str = include_str!("../../../tests/truth/arrays.py");

/// All of them.
pub const PROGRAMS: [Program; 13] = [
    Program { name: "sweeps", file: "sweeps.c", source: SWEEPS, threads: 1, traced: true },
    Program { name: "sweeps-2", file: "sweeps.c", source: SWEEPS, threads: 2, traced: false },
    Program { name: "gather", file: "gather.c", source: GATHER, threads: 1, traced: true },
    Program { name: "gather-2", file: "gather.c", source: GATHER, threads: 2, traced: false },
    Program { name: "stencil", file: "stencil.c", source: STENCIL, threads: 1, traced: true },
    Program { name: "stencil-2", file: "stencil.c", source: STENCIL, threads: 2, traced: false },
    Program { name: "hot", file: "hot.c", source: HOT, threads: 1, traced: true },
    Program { name: "brief", file: "brief.c", source: BRIEF, threads: 1, traced: true },
    Program { name: "places", file: "places.c", source: PLACES, threads: 1, traced: true },
    Program { name: "strided", file: "strided.c", source: STRIDED, threads: 1, traced: true },
    Program { name: "vectors", file: "vectors.cpp", source: VECTORS, threads: 1, traced: true },
    Program { name: "fields", file: "fields.f90", source: FIELDS, threads: 1, traced: false },
    Program { name: "arrays", file: "arrays.py", source: ARRAYS, threads: 1, traced: false },
];

impl Program {
    /// Builds it in `dir`; how it is started.
    pub fn build(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.build_as(self.name, &[], dir)
    }

    /// The same, writing the visits of pages to its standard output (`misses::visits` reads them).
    pub fn build_traced(&self, dir: &Path) -> Result<Vec<OsString>> {
        self.build_as(&format!("{}-traced", self.name), &["-DTRUTH_TRACE"], dir)
    }

    fn build_as(&self, name: &str, options: &[&str], dir: &Path) -> Result<Vec<OsString>> {
        let source = dir.join(self.file);
        std::fs::write(dir.join("truth.h"), HEADER)?;
        std::fs::write(dir.join("trace.h"), TRACE)?;
        std::fs::write(&source, self.source)?;
        let compiler = match source.extension().and_then(|extension| extension.to_str()) {
            Some("py") => return Ok(vec![numpy().context("no python3 here has numpy")?.into(), source.into()]),
            Some("f90") => "gfortran",
            Some("cpp") => "g++",
            _ => "gcc",
        };
        let program = dir.join(name);
        compile_as(compiler, options, &source, &program)?;
        Ok(vec![program.into()])
    }
}

/// Compiles one file.
pub fn compile(compiler: &str, source: &Path, program: &Path) -> Result<()> {
    compile_as(compiler, &[], source, program)
}

fn compile_as(compiler: &str, further: &[&str], source: &Path, program: &Path) -> Result<()> {
    let mut command = Command::new(compiler);
    // Functions that are alike stay two, and stand in the stack when they call malloc last: their names tell the objects apart.
    let options = ["-O2", "-g", "-fopenmp", "-fno-ipa-icf", "-fno-optimize-sibling-calls", "-o"];
    // Modules of Fortran are written to where the compiler runs.
    command.args(further).args(options).arg(program).arg(source).current_dir(source.parent().unwrap_or(Path::new("/")));
    let output = command.output().with_context(|| format!("{compiler} is needed to build it"))?;
    if !output.status.success() {
        bail!("{compiler}: {}", String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default());
    }
    Ok(())
}

/// A Python that has numpy.
pub fn numpy() -> Option<PathBuf> {
    ["python3", "/usr/bin/python3"].into_iter().find_map(|python| {
        let output = Command::new(python).args(["-c", "import sys, numpy; print(sys.executable)"]).output().ok()?;
        output.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    })
}

/// A directory that is gone afterwards.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("nearfar-bench-profile-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays lies among other temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
