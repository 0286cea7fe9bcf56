//! The programs whose traffic is known, and how they are built. Their sources are part of the command.

use crate::bench::recipe;
use crate::files::nfprof;
use anyhow::{Context, Result, ensure};
use nearfar_core::profile::summary::Summary;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
const MELT: &str = include_str!("../../../tests/verify/melt.in");

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

/// Settings of profiled runs.
pub struct Runs<'a> {
    pub seconds: f64,
    pub size: u32,
    pub options: &'a [String],
}

impl Program {
    /// Runs it under `nearfar profile`: what it printed, and its profile.
    pub fn profiled(&self, runs: &Runs<'_>, dir: &Path) -> Result<(String, Summary)> {
        let command = self.build(dir)?;
        let file = dir.join(format!("{}.nfprof", self.name));
        let mut profile = Command::new(std::env::current_exe()?);
        profile.arg("profile").arg("-o").arg(&file).args(runs.options).arg("--").args(command);
        profile.args([runs.seconds.to_string(), runs.size.to_string(), self.threads.to_string()]);
        let printed = output_of(profile.env("OMP_NUM_THREADS", self.threads.to_string())).context("nearfar profile")?;
        Ok((printed, nfprof::read(&[file])?))
    }

    /// The same; where `dir` has the profile and what the program printed, these, if they are of runs with the same settings.
    pub fn kept(&self, runs: &Runs<'_>, dir: &Path) -> Result<(String, Summary)> {
        let file = |ending: &str| dir.join(format!("{}.{ending}", self.name));
        let settings = format!("{} s, {} MiB, {}\n", runs.seconds, runs.size, runs.options.join(" "));
        if let Ok(before) = std::fs::read_to_string(file("settings")) {
            anyhow::ensure!(before == settings, "{} has it with other settings: {}", dir.display(), before.trim_end());
            return Ok((std::fs::read_to_string(file("printed"))?, nfprof::read(&[file("nfprof")])?));
        }
        let found = self.profiled(runs, dir)?;
        std::fs::write(file("printed"), &found.0)?;
        std::fs::write(file("settings"), settings)?;
        Ok(found)
    }

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
            Some("py") => return Ok(vec![numpy()?.into(), source.into()]),
            Some("f90") => "gfortran",
            Some("cpp") => "g++",
            _ => "gcc",
        };
        let program = dir.join(name);
        compile(compiler, options, &source, &program)?;
        Ok(vec![program.into()])
    }
}

/// Compiles one file.
fn compile(compiler: &str, further: &[&str], source: &Path, program: &Path) -> Result<()> {
    let mut command = Command::new(compiler);
    // Functions that are alike stay two, and stand in the stack when they call malloc last: their names tell the objects apart.
    let options = ["-O2", "-g", "-fopenmp", "-fno-ipa-icf", "-fno-optimize-sibling-calls", "-o"];
    // Modules of Fortran are written to where the compiler runs.
    command.args(further).args(options).arg(program).arg(source).current_dir(source.parent().unwrap_or(Path::new("/")));
    output_of(&mut command).with_context(|| format!("building it with {compiler}"))?;
    Ok(())
}

/// What a command prints that ends well; of one that does not, its status and the last line of its errors.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.lines().last().unwrap_or_default());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How a program is started that always does the same.
pub struct Started {
    pub command: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
}

impl Started {
    /// A source in C, compiled in `dir`.
    pub fn compiled(name: &str, source: &str, arguments: &[&str], dir: &Path) -> Result<Self> {
        let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
        std::fs::write(&file, source)?;
        compile("gcc", &[], &file, &program)?;
        let command = [OsString::from(program)].into_iter().chain(arguments.iter().map(OsString::from)).collect();
        Ok(Self { command, environment: Vec::new() })
    }

    /// A Lennard-Jones melt by LAMMPS, for seconds; without a recipe around it, since one process is profiled.
    pub fn lammps(tens_of_steps: usize, dir: &Path) -> Result<Self> {
        output_of(Command::new("lmp").arg("-help").stdin(Stdio::null())).context("lmp")?;
        let input = dir.join("input");
        std::fs::write(&input, format!("{MELT}{}", "run 10\n".repeat(tens_of_steps)))?;
        let command = ["lmp".into(), "-in".into(), input.into(), "-log".into(), "none".into(), "-nocite".into()].to_vec();
        // A single process needs no network, and a container may have none.
        let one =
            ["OMP_NUM_THREADS", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_ess_singleton_isolated"]
                .map(|name| (name, "1".to_owned()));
        let environment = one.into_iter().chain([("OMPI_MCA_btl", "self".to_owned())]).collect();
        Ok(Self { command, environment })
    }

    /// Solving equations with numpy, for seconds.
    pub fn numpy_lu() -> Result<Self> {
        let arguments = recipe::named("numpy_lu").arguments(300 << 20, 3, None);
        let environment = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"].map(|name| (name, "2".to_owned())).to_vec();
        Ok(Self { command: [numpy()?.into()].into_iter().chain(arguments).collect(), environment })
    }
}

/// A Python that has numpy.
pub fn numpy() -> Result<PathBuf> {
    let own = |python| output_of(Command::new(python).args(["-c", "import sys, numpy; print(sys.executable)"]));
    let found = ["python3", "/usr/bin/python3"].into_iter().find_map(|python| own(python).ok());
    found.map(|path| PathBuf::from(path.trim())).context("no python3 here has numpy")
}
