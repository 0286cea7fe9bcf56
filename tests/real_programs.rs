//! Real programs, and one in each language: the same output as without nearfar, at about a third of the memory they need.

use crate::util::{Scratch, TestProgram, compile, nearfar_bin, program_file};
use std::ffi::OsStr;
use std::process::Command;

programs! {
    numpy_lu_solve (needs "numpy"): TestProgram::python("numpy_lu_solve.py").near("96M").limit_s(180).same().ok().paged();
    numpy_fft (needs "numpy"): TestProgram::python("numpy_fft.py").near("128M").same().ok().paged();
    numpy_sort (needs "numpy"): TestProgram::python("numpy_sort.py").near("96M").limit_s(180).same().ok().paged();
    numpy_pickle_to_file_and_back (needs "numpy"):
        TestProgram::python("numpy_pickle.py").near("192M").limit_s(180).same().ok().paged();
    python_multiprocessing_by_fork (needs "python3"):
        TestProgram::python("multiprocessing_sums.py").near("128M").limit_s(240).same().ok().paged();
}

#[test]
fn lammps_melt() {
    needs!("lmp");
    let script = "lmp -in \"$1\" -log none -screen none && cat melt.txt";
    let melt = program_file("melt.in");
    let arguments = ["-c".as_ref(), script.as_ref(), "sh".as_ref(), melt.as_os_str()];
    // A single MPI process needs no network, and a container may have none.
    let program = TestProgram::command(["sh"]).args(arguments).env("OMPI_MCA_btl", "self").env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    program.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").near("64M").limit_s(240).same().ok().paged();
}

#[test]
fn sqlite_in_memory() {
    needs!("sqlite3");
    TestProgram::command(["sqlite3", ":memory:"])
        .stdin(program_file("memory_tables.sql"))
        .near("48M")
        .limit_s(180)
        .same()
        .ok()
        .paged();
}

#[test]
fn c_compiler() {
    needs!("gcc");
    let script = "i=0; while [ $i -lt 400 ]; do echo \"int f$i(int a, int *b) { int s = $i; for (int i = 0; i < a; i++) { \
        s += b[i] * $i + (b[i] ^ s); if (s & 1) b[i] = s / 3; else b[(i * 7) % a] -= s % 11; } \
        switch (s % 5) { case 0: return s; case 1: return b[0]; case 2: return s * b[1]; default: return s ^ a; } }\"; i=$((i+1)); done > big.c \
        && gcc -O2 -c big.c -o big.o && sha256sum big.o && rm big.o";
    TestProgram::command(["sh", "-c", script]).near("40M").limit_s(180).same().ok().paged();
}

#[test]
fn stress_ng_verifies() {
    needs!("stress-ng");
    let arguments =
        ["--vm", "2", "--vm-bytes", "160M", "--vm-ops", "20000", "--vm-keep", "--verify", "--timeout", "60", "--quiet"];
    TestProgram::command(["stress-ng"]).args(arguments).near("64M").limit_s(180).same().ok().paged();
}

/// The stressors that say most, two seconds each, in turn as root and with `--deny kernel-faults`: `tests/stress_ng.sh --telling` takes both.
#[test]
fn stress_ng_finds_what_it_finds_plain() {
    needs!("stress-ng", "gcc", "root");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stress_ng.sh");
    let arguments = ["--telling", "--lazy", "--seconds", "2", "--mode", "alternate", "--near", "32M", "--ballast", "96"];
    let output = Command::new("bash").arg(script).args(arguments).env("NEARFAR_BIN", nearfar_bin()).output().expect("bash runs");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success() && said.contains(" as plain, "), "{said}{errors}");
}

#[test]
fn fortran_allocatable_arrays() {
    needs!("gfortran");
    TestProgram::source("allocatable_arrays.f90").near("64M").same().ok().paged();
}

#[test]
fn cpp_containers() {
    needs!("g++");
    TestProgram::source("containers.cpp").near("64M").limit_s(240).same().ok().paged();
}

#[test]
fn rust_collections() {
    needs!("rustc");
    TestProgram::source("collections.rs").near("64M").limit_s(180).same().ok().paged();
}

#[test]
fn openmp_triad() {
    needs!("openmp");
    let under = TestProgram::source("openmp_triad.c").args(["64M"]).env("OMP_NUM_THREADS", "4").near("64M").same().ok().paged();
    assert!(under.stdout.starts_with("OK"), "{}", under.stdout);
}

#[test]
fn shell_script_with_children() {
    let touch = compile("touch.c");
    let script = "for size in 48M 96M 64M; do \"$1\" $size 2 & done; wait; \"$1\" 80M 1 | tr a-z A-Z; \"$1\" 70M exit3; echo \"last $?\"; (exit 9)";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), touch.as_os_str()];
    let program = TestProgram::command(["bash"]).args(arguments).near("64M");
    let (plain, under) = (program.plain(), program.nearfar().paged());
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&plain.stdout), sorted(&under.stdout), "{}", under.stderr);
    assert_eq!(under.end(), (Some(9), None));
}

/// Issue 19: Redis, which is linked with jemalloc, hung when paging began. Loaded, forked to save itself, read again.
#[test]
fn redis_saves_itself_by_a_fork() {
    needs!("redis-server");
    let script = program_file("redis_digest.sh");
    let scratch = Scratch::new();
    let run = |prefix: &[&OsStr]| {
        let mut command = Command::new("bash");
        command.arg(&script).arg("35000").args(prefix).current_dir(scratch.work());
        let output = command.output().expect("bash");
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (plain, _) = run(&[]);
    assert!(plain.contains("rdb_last_bgsave_status:ok") && plain.ends_with("status 0\n"), "{plain}");
    let (nearfar, far) = (nearfar_bin(), scratch.far());
    let prefix = [
        nearfar.as_os_str(),
        "run".as_ref(),
        "--near".as_ref(),
        "16M".as_ref(),
        "--far".as_ref(),
        far.as_os_str(),
        "--".as_ref(),
    ];
    let (under, words) = run(&prefix);
    assert_eq!(under, plain, "{words}");
    assert!(words.contains(" in, ") && !words.contains("fits in near"), "nothing was paged: {words}");
}

/// The 30 stressors that say most. Ten seconds each, since some have done nothing after one; too long for every run of the suite.
#[test]
#[ignore = "ten minutes"]
fn stress_ng_as_a_judge() {
    needs!("stress-ng");
    let output = Command::new("bash")
        .arg("tests/stress_ng.sh")
        .args(["--telling", "--seconds", "1", "--mode", "root"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("bash");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
