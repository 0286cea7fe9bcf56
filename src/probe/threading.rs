//! Overhead of threads for `nearfar probe`: our own in this process, and every OpenMP runtime that is found in a process of its own.

use crate::launch::{helper, kernel_program};
use nearfar_core::node::{CpuList, Figure, Missing, Runtime, Threading};
use nearfar_kernels::probe_overhead::{self, CONSTRUCTS, ConstructOverhead, Effort, RuntimeOverheads};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Names that the loader may know, in the order in which they are tried: GCC, LLVM, Intel.
const NAMES: [&str; 4] = ["libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"];
/// More runtimes than this are not measured: they take a second or so each.
const MOST: usize = 3;
/// A runtime that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(20);
/// Settings of the user that decide what is measured.
const SETTINGS: [&str; 6] =
    ["OMP_WAIT_POLICY", "OMP_PLACES", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY", "KMP_BLOCKTIME", "KMP_AFFINITY"];

/// Rows of our threads and of the OpenMP runtimes found, on `cpus`, by number of threads; and what could not be measured.
pub fn measure(quick: bool, cpus: &CpuList) -> (Vec<Threading>, Vec<Missing>) {
    let counts = probe_overhead::thread_counts(cpus.len());
    let mut rows = probe_overhead::own(&counts, cpus, if quick { Effort::QUICK } else { Effort::FULL });
    let (openmp, missing) = openmp(quick, &counts);
    rows.extend(openmp);
    (rows, missing)
}

fn openmp(quick: bool, counts: &[usize]) -> (Vec<Threading>, Vec<Missing>) {
    let missing = |what: String, why: String| Missing { what, why };
    let kernel = match kernel_program::find() {
        Ok(kernel) => kernel,
        Err(why) => return (Vec::new(), vec![missing("OpenMP overhead".into(), why)]),
    };
    let (mut rows, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for name in NAMES.into_iter().map(PathBuf::from).chain(installed()) {
        if seen.len() >= MOST {
            break;
        }
        if name.is_absolute() && name.canonicalize().is_ok_and(|path| seen.contains(&path.display().to_string())) {
            continue;
        }
        match run(&kernel, &name, quick, counts) {
            Ok(Some(report)) if seen.insert(report.library.clone()) => rows.extend(rows_of(&report)),
            Ok(_) => {}
            Err(why) => problems.push(missing(format!("OpenMP overhead ({})", name.display()), why)),
        }
    }
    if rows.is_empty() && problems.is_empty() {
        let why = format!(
            "no OpenMP runtime was found ({} and the usual directories); install one (Debian: libgomp1 or libomp5, Fedora: libgomp or libomp), \
             or load the module of your compiler so that LD_LIBRARY_PATH names it",
            NAMES.join(", ")
        );
        problems.push(missing("OpenMP overhead".into(), why));
    }
    if !rows.is_empty() {
        let set = SETTINGS.into_iter().filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)));
        let set: Vec<String> = set.collect();
        if !set.is_empty() {
            problems
                .push(missing("OpenMP overhead with default settings".into(), format!("measured with your {}", set.join(", "))));
        }
    }
    (rows, problems)
}

/// Runtimes in directories that the loader does not search.
fn installed() -> Vec<PathBuf> {
    let arch = std::env::consts::ARCH;
    let mut dirs: Vec<PathBuf> = [
        format!("/usr/lib/{arch}-linux-gnu"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
        "/usr/local/lib".into(),
        "/usr/local/lib64".into(),
        "/opt/intel/oneapi/compiler/latest/lib".into(),
        "/opt/intel/oneapi/compiler/latest/linux/compiler/lib/intel64_lin".into(),
    ]
    .map(PathBuf::from)
    .into();
    for variable in ["CONDA_PREFIX", "CMPLR_ROOT"] {
        dirs.extend(std::env::var_os(variable).map(|prefix| Path::new(&prefix).join("lib")));
    }
    // Debian: /usr/lib/llvm-14/lib.
    let llvm = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    dirs.extend(
        llvm.filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"llvm")))
            .map(|path| path.join("lib")),
    );
    dirs.into_iter().flat_map(|dir| NAMES.map(|name| dir.join(name))).filter(|path| path.is_file()).collect()
}

/// `Ok(None)`: there is no such library.
fn run(kernel: &Path, library: &Path, quick: bool, counts: &[usize]) -> Result<Option<RuntimeOverheads>, String> {
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    let mut command = Command::new(kernel);
    command.arg("openmp").arg("--library").arg(library).args(["--threads", &counts.join(",")]);
    if quick {
        command.arg("--quick");
    }
    // Threads stay where they are, unless the user has decided otherwise. Figures of the runtime's own logging are nobody's.
    if std::env::var_os("OMP_PROC_BIND").is_none() {
        command.env("OMP_PROC_BIND", "true");
    }
    command.env_remove("OMP_DISPLAY_ENV").env_remove("OMP_DISPLAY_AFFINITY");
    let finished = helper::run(&mut command, LIMIT).map_err(|error| format!("{}: {error}", kernel.display()))?;
    if !finished.is_ok() {
        let said = &finished.stderr;
        // Neither the library nor, of a broken one, what it needs.
        let absent = said.contains("cannot open shared object") || said.contains("No such file");
        return if absent { Ok(None) } else { Err(finished.problem(LIMIT)) };
    }
    serde_json::from_str(finished.stdout.trim()).map(Some).map_err(|error| format!("its report cannot be read: {error}"))
}

fn rows_of(report: &RuntimeOverheads) -> Vec<Threading> {
    let row = |construct: &str, threads: usize, overhead| Threading {
        runtime: Runtime::OpenMp(report.library.clone()),
        construct: construct.to_owned(),
        threads: threads as u32,
        overhead,
    };
    let of = |measured: &ConstructOverhead| match &measured.problem {
        Some(why) => CONSTRUCTS.iter().map(|construct| row(construct, measured.threads, Figure::invalid(why.as_str()))).collect(),
        None => vec![row(&measured.construct, measured.threads, probe_overhead::figure(&measured.samples))],
    };
    report.rows.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::Validity;

    #[test]
    fn reports_become_rows() {
        let text = r#"{"library":"/l/libgomp.so.1","rows":[{"construct":"barrier","threads":2,"samples":[100,101,99]},
            {"construct":"fork-join","threads":1,"samples":[-1,1,0]},
            {"construct":"all","threads":4,"problem":"gave 2 of 4 threads","samples":[]}]}"#;
        let rows = rows_of(&serde_json::from_str(text).expect("JSON"));
        let told: Vec<_> = rows.iter().map(|row| (row.construct.as_str(), row.threads, row.overhead.validity)).collect();
        assert_eq!(told[..2], [("barrier", 2, Validity::Valid), ("fork-join", 1, Validity::Noisy)]);
        assert_eq!(told[2..], CONSTRUCTS.map(|construct| (construct, 4, Validity::Invalid)));
        assert_eq!(rows[2].overhead.why, "gave 2 of 4 threads");
        assert_eq!(rows[0].runtime, Runtime::OpenMp("/l/libgomp.so.1".into()));
    }
}
