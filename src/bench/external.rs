//! Programs that are not ours: LAMMPS, and those in Python; how they are started, and what they say, in the form of our own workloads' reports.
//!
//! They time their own work, as our workloads do, so that starting them does not count. What is not installed is an obstacle with a
//! reason. Does not judge.

use super::apps;
use super::scripts::Script;
use crate::launch::kernel_program::Report;
use nearfar_kernels::report::Repetition;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// nearfar-kernel.
    Kernel,
    /// LU factorisation and solution of a dense system by numpy.
    NumpyLu,
    /// A Lennard-Jones melt by LAMMPS.
    Lammps,
    /// One of the programs in Python.
    Script(Script),
}

/// Where the outside programs are, or why they are not.
#[derive(Clone, Debug)]
pub struct Outside {
    python: Result<PathBuf, String>,
    lammps: Result<PathBuf, String>,
    /// Modules that the interpreter has, of those that scripts live on.
    modules: Vec<String>,
}

/// Solves, times and checks itself. Arguments: bytes, repetitions.
const NUMPY_LU: &str = r#"
import json, sys, time
import numpy as np
start = time.perf_counter()
# solve works on a copy of its matrix.
n = max(int((int(sys.argv[1]) / 16) ** 0.5), 16)
rng = np.random.default_rng(1)
a = rng.random((n, n))
a[np.arange(n), np.arange(n)] += n
x = np.arange(n) % 7 - 3.0
b = a @ x
setup = time.perf_counter() - start
repetitions, wrong = [], False
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    y = np.linalg.solve(a, b)
    seconds = time.perf_counter() - start
    wrong = wrong or not np.abs(y - x).max() < 1e-6
    repetitions.append({"seconds": seconds, "bytes": 8 * n * n, "operations": 2 * n**3 // 3, "complete": True})
print(json.dumps({"setup_seconds": setup, "repetitions": repetitions, "verified": "wrong" if wrong else "right",
    "checksum": np.round(y).sum().hex()}))
"#;

/// Bytes that LAMMPS takes per atom of the melt, with neighbour lists and what its heap adds.
const BYTES_PER_ATOM: u64 = 512;
/// Steps of one repetition: the lists of neighbours are made anew in it.
const STEPS: u64 = 10;

impl Outside {
    /// Looks for them.
    pub fn find() -> Self {
        let said = |program: &str, arguments: &[&str]| -> Result<String, String> {
            let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(|error| format!("{program} cannot be started ({error})"))?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            let why = || text(&output.stderr).lines().next_back().unwrap_or("it said nothing").to_owned();
            if output.status.success() { Ok(text(&output.stdout)) } else { Err(format!("{program}: {}", why())) }
        };
        // The interpreter itself: a version manager's wrapper would be started under nearfar as well.
        let own = apps::python();
        let start = own.as_ref().and_then(|path| path.to_str()).unwrap_or("python3");
        let python = said(start, &["-c", "import sys; print(sys.executable)"]).map(PathBuf::from);
        let look = "import sys; sys.path = [p for p in sys.path if p]; import importlib.util as u; print(*[m for m in sys.argv[1:] if u.find_spec(m)])";
        let wanted =
            [Script::Fft, Script::Sqlite, Script::Duckdb, Script::Pardiso, Script::MklFft, Script::Pyscf].map(Script::module);
        let modules = said(start, &[&["-c", look][..], &wanted].concat()).unwrap_or_default();
        let modules = modules.split_whitespace().map(str::to_owned).collect();
        let lammps = said("lmp", &["-help"]).map(|_| PathBuf::from("lmp"));
        Self { python, lammps, modules }
    }

    /// None here, for tests.
    #[cfg(test)]
    pub fn nowhere() -> Self {
        Self { python: Err("not here".to_owned()), lammps: Ok("lmp".into()), modules: Vec::new() }
    }

    /// Where `program` is, or why it cannot be run; `None` for nearfar-kernel.
    pub fn path(&self, program: Program) -> Option<Result<&Path, String>> {
        let (found, module) = match program {
            Program::Kernel => return None,
            Program::NumpyLu => (&self.python, Some("numpy")),
            Program::Script(script) => (&self.python, Some(script.module())),
            Program::Lammps => (&self.lammps, None),
        };
        let missing = module.filter(|&module| found.is_ok() && !self.modules.iter().any(|other| other == module));
        Some(match missing {
            Some(module) => Err(format!("python3 has no module {module} (nearfar bench apps --install)")),
            None => found.as_deref().map_err(String::clone),
        })
    }
}

impl Program {
    /// Its arguments for `data_bytes` and so many repetitions of at most so many seconds. `input`: where [`Program::input`] will lie.
    pub fn arguments(
        self,
        data_bytes: u64,
        (repetitions, seconds): (usize, Option<f64>),
        input: &Path,
    ) -> Vec<std::ffi::OsString> {
        match self {
            Program::Kernel => Vec::new(),
            Program::NumpyLu => ["-c", NUMPY_LU, &data_bytes.to_string(), &repetitions.to_string()].map(Into::into).to_vec(),
            Program::Script(script) => script.arguments(data_bytes, repetitions, seconds),
            Program::Lammps => {
                let mut arguments: Vec<std::ffi::OsString> = vec!["-in".into(), input.into()];
                arguments.extend(["-log", "none", "-nocite"].map(Into::into));
                arguments
            }
        }
    }

    /// What must be in its input file.
    pub fn input(self, data_bytes: u64, repetitions: usize) -> Option<String> {
        if self != Program::Lammps {
            return None;
        }
        // Four atoms per cell of the lattice.
        let edge = ((data_bytes / BYTES_PER_ATOM / 4) as f64).cbrt().max(8.0) as u64;
        let mut text = format!(
            "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 {edge} 0 {edge} 0 {edge}\ncreate_box 1 box\n\
             create_atoms 1 box\nmass 1 1.0\nvelocity all create 3.0 87287 loop geom\npair_style lj/cut 2.5\n\
             pair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\nneigh_modify every 5 delay 0 check no\nfix 1 all nve\nthermo {STEPS}\n"
        );
        text += &format!("run {STEPS}\n").repeat(repetitions);
        Some(text + "print \"energy $(etotal:%.10g) temperature $(temp:%.10g)\"\n")
    }

    /// Variables of the environment for `threads` threads.
    pub fn environment(self, threads: usize) -> Vec<(&'static str, String)> {
        match self {
            Program::Kernel => Vec::new(),
            Program::NumpyLu | Program::Script(_) => {
                ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, threads.to_string())).to_vec()
            }
            // A single process needs no network, and a container may have none.
            Program::Lammps => [
                ("OMP_NUM_THREADS", "1"),
                ("OMPI_MCA_btl", "self"),
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ]
            .map(|(name, value)| (name, value.to_owned()))
            .to_vec(),
        }
    }

    /// The report in what it printed; `None` when there is none.
    pub fn report(self, stdout: &str) -> Option<Report> {
        match self {
            Program::Kernel | Program::NumpyLu | Program::Script(_) => serde_json::from_str(stdout.trim()).ok(),
            Program::Lammps => lammps_report(stdout),
        }
    }
}

/// From lines such as `Loop time of 4.40681 on 1 procs for 15 steps with 256000 atoms`.
fn lammps_report(stdout: &str) -> Option<Report> {
    let mut repetitions = Vec::new();
    for line in stdout.lines().filter_map(|line| line.strip_prefix("Loop time of ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |word: &str| words.get(words.iter().position(|&w| w == word)?.checked_sub(1)?)?.parse::<u64>().ok();
        let operations = before("steps")? * before("atoms")?;
        repetitions.push(Repetition { seconds: words.first()?.parse().ok()?, bytes: 0, operations, complete: true });
    }
    // Energy and temperature to ten digits: the same program computes the same, wherever its memory is. The command that prints
    // is echoed in some versions, with its quotes.
    let end = stdout.lines().rev().find(|line| line.starts_with("energy "))?;
    let right = !repetitions.is_empty() && !end.contains("nan");
    let verified = if right { "right" } else { "wrong" }.to_owned();
    Some(Report { repetitions, verified, checksum: end.to_owned(), ..Report::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lammps_is_understood() {
        let text = "Loop time of 4.5 on 1 procs for 15 steps with 256000 atoms\n\nLoop time of 4.25 on 1 procs for 15 steps with \
                    256000 atoms\nenergy -2.27 temperature 1.49\nTotal wall time: 0:00:05\n";
        let report = Program::Lammps.report(text).expect("a report");
        assert_eq!((report.repetitions.len(), report.repetitions[1].operations), (2, 15 * 256_000));
        assert_eq!((report.checksum.as_str(), report.verified.as_str()), ("energy -2.27 temperature 1.49", "right"));
        assert!(Program::Lammps.report("ERROR: something\n").is_none());
        assert_eq!(Program::Lammps.report("energy nan temperature 0\n").expect("a report").verified, "wrong");
    }

    #[test]
    fn the_melt_takes_about_the_data_it_was_given() {
        let text = Program::Lammps.input(480 << 20, 3).expect("an input");
        assert!(text.contains("block 0 62 0 62 0 62") && text.matches("\nrun 10").count() == 3, "{text}");
    }
}
