//! The library for programmers (nearfar.h) in each language: without a job, on nodes, under `nearfar run`; examples, the pages of
//! docs/how-to/in-your-program.md, and an installed copy.

use crate::boots;
use crate::guest::Ran;
use crate::util::{Scratch, TestProgram, compile, nearfar_bin, python};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn library_dir() -> PathBuf {
    nearfar_bin().parent().expect("a directory").to_owned()
}

/// A directory under target/ for what is built here.
fn built(name: &str) -> PathBuf {
    let dir = root().join("target").join(name);
    std::fs::create_dir_all(&dir).expect("target/ can be written");
    dir
}

/// A program that links to the library, which therefore is built first.
fn linked(name: &str) -> TestProgram {
    nearfar_bin();
    TestProgram::source(name)
}

fn with_python(program: TestProgram) -> TestProgram {
    let library = library_dir().join("libnearfar.so");
    program.env("PYTHONPATH", &root().join("python").display().to_string()).env("NEARFAR_LIBRARY", &library.display().to_string())
}

#[track_caller]
fn says_ok(program: &TestProgram) {
    assert_eq!(program.plain().ok().stdout, "OK\n");
}

#[track_caller]
fn succeeds(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = || String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {:?}\n{}", output.status, said());
    output
}

#[test]
fn c_without_a_job() {
    says_ok(&linked("api_calls.c"));
    says_ok(&linked("api_calls.c").env("NEARFAR_NEAR", "node:0:64M"));
}

/// The loader's lock, held by a thread that walks its list, is held for ever in a child that was born meanwhile: one hung in 1 of 3 runs.
#[test]
fn no_child_is_born_while_the_loader_is_asked() {
    let program = || linked("api_first_calls.c").env("NEARFAR_NEAR", "node:0:64M");
    says_ok(&program());
    says_ok(&program().args(["slow"]));
    says_ok(&program().env("LD_PRELOAD", compile("loader_slow.c").to_str().expect("UTF-8")));
}

#[test]
fn c_in_a_paged_job() {
    assert_eq!(linked("api_calls.c").near("128M").nearfar().ok().stdout, "OK\n");
}

#[test]
fn near_blocks_of_a_flat_job_stay_near() {
    let program = linked("api_stays_near.c").near("128M").options(["--mode", "flat", "--place", "calls"]);
    let outcome = program.nearfar().ok().paged();
    assert_eq!(outcome.stdout, "OK\n", "{}", outcome.stderr);
    let calls = linked("api_calls.c").near("256M").options(["--mode", "flat", "--place", "calls"]);
    assert_eq!(calls.nearfar().ok().stdout, "OK\n");
}

#[test]
fn cpp_without_and_in_a_job() {
    needs!("g++");
    says_ok(&linked("api_containers.cpp"));
    assert_eq!(linked("api_containers.cpp").nearfar().ok().stdout, "OK\n");
}

#[test]
fn headers_are_clean_in_every_standard() {
    needs!("g++");
    let check = |compiler: &str, standard: &str, language: &str, header: &str| {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]);
        command.args([&format!("-std={standard}"), "-x", language, "-include", header, "-I"]).arg(root().join("include"));
        succeeds(command.arg("/dev/null"));
    };
    for standard in ["c99", "c11", "c17", "c2x"] {
        check("cc", standard, "c", "nearfar.h");
    }
    for standard in ["c++11", "c++14", "c++17", "c++20", "c++23"] {
        check("g++", standard, "c++", "nearfar.hpp");
    }
}

#[test]
fn fortran_without_and_in_a_job() {
    needs!("gfortran");
    says_ok(&linked("api_pointers.f90"));
    assert_eq!(linked("api_pointers.f90").nearfar().ok().stdout, "OK\n");
}

#[test]
fn python_without_and_in_a_job() {
    needs!("numpy");
    says_ok(&with_python(TestProgram::python("api_arrays.py")));
    assert_eq!(with_python(TestProgram::python("api_arrays.py")).near("256M").nearfar().ok().stdout, "OK\n");
}

#[test]
fn python_without_the_library_says_what_to_do() {
    needs!("numpy");
    let script = ["-c", "import nearfar; nearfar.describe()"];
    let program = TestProgram::command([python().into_os_string()]).args(script).env("NEARFAR_LIBRARY", "/nowhere/libnearfar.so");
    let outcome = program.env("PYTHONPATH", &root().join("python").display().to_string()).plain();
    assert_eq!(outcome.end(), (Some(1), None));
    let advice = ["LibraryNotFound", "Set NEARFAR_LIBRARY", "/nowhere/libnearfar.so"];
    assert!(advice.iter().all(|words| outcome.stderr.contains(words)), "{}", outcome.stderr);
}

#[test]
fn rust_crate() {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--offline", "--quiet"]).current_dir(root().join("rust/nearfar-alloc"));
    command.env("NEARFAR_LIB_DIR", library_dir()).env("LD_LIBRARY_PATH", library_dir());
    succeeds(command.env("CARGO_TARGET_DIR", built("rust-crate")));
}

#[test]
fn a_misnamed_tier_is_refused_with_advice() {
    for (value, advice) in [("node:77", "nodes with memory"), ("8G", "nearfar run --near 8G"), ("nodes", "NEARFAR_NEAR=nodes")] {
        let outcome = linked("api_calls.c").env("NEARFAR_NEAR", value).plain();
        assert_eq!(outcome.end(), (Some(1), None));
        assert!(outcome.stderr.contains(advice), "{value}: {}", outcome.stderr);
        assert!(outcome.stdout.contains("FAILED"), "{value}: {}", outcome.stdout);
    }
}

/// Linking the library changes nothing for a program without a job: no thread, no descriptor, no arena, the C library's heap.
#[test]
fn linked_and_idle() {
    nearfar_bin();
    let program = compile("api_idle.c");
    let outcome = TestProgram::command([program]).plain().ok();
    assert_eq!(outcome.stdout, "OK\n", "{}", outcome.stderr);
}

/// As `api_places` finds the library: ../release from its own place.
pub const RELEASE: &str = "ln -sfn /usr/local/bin /usr/local/release; ";
pub const KNL_TIERS: &str =
    "api_places 2 1 320 && NEARFAR_NEAR=node:1:96M api_places 2 1 256 && NEARFAR_FAR=node:1 api_places 1 2";
pub const KNL_JOB: &str = "nearfar run --quiet --near node:1 --far node:0 --place calls -- api_places 2 1 320 && \
                           nearfar run --quiet --near node:1 --far node:0 --place all -- api_places 2 1";
pub const SNC4_TIERS: &str =
    "NEARFAR_NEAR=node:4-7 NEARFAR_FAR=node:0-3 api_places f0 f && NEARFAR_NEAR=node:5 NEARFAR_FAR=node:0,2 api_places 20 5";
pub const CXL_TIERS: &str = "api_places 1 2";
pub const DUAL_TIERS: &str = "NEARFAR_NEAR=node:0 numactl --cpunodebind=0 api_places 1 2";

/// Every run of `api_places` was content.
#[track_caller]
fn content(ran: &Ran, script: &str) {
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (Some(0), "OK\n".repeat(script.matches("api_places").count()).as_str()),
        "{}",
        ran.stderr
    );
}

#[test]
fn tiers_of_a_machine_with_hbm() {
    needs!("guest");
    content(&boots::KNL_FLAT.script("api tiers"), KNL_TIERS);
}

#[test]
fn tiers_of_a_job_on_nodes() {
    needs!("guest");
    content(&boots::KNL_FLAT.script("api job"), KNL_JOB);
}

#[test]
fn tiers_of_a_machine_with_hbm_in_four_parts() {
    needs!("guest");
    content(&boots::KNL_SNC4.script("api tiers"), SNC4_TIERS);
}

#[test]
fn tiers_of_a_machine_with_cxl_and_of_two_sockets() {
    needs!("guest");
    content(&boots::CXL.script("api tiers"), CXL_TIERS);
    content(&boots::DUAL_SOCKET.script("api tiers"), DUAL_TIERS);
}

fn make(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new("make");
    succeeds(command.args(arguments).current_dir(directory).env_remove("MAKEFLAGS").env_remove("MAKELEVEL"))
}

/// Programs in `dir` that print the same line, plainly and in a paged job.
#[track_caller]
fn examples_agree(dir: &Path) {
    let expected = "vector add: 300000 elements, sum 67499775000.0\n";
    let mut programs: Vec<_> = crate::util::names_in(dir).into_iter().filter(|name| name.starts_with("vector_add_")).collect();
    programs.retain(|name| !name.ends_with("hbw"));
    assert!(programs.len() >= 2, "{programs:?}");
    for name in programs {
        let program = TestProgram::command([dir.join(&name)]).args(["300000"]);
        assert_eq!(program.plain().ok().stdout, expected, "{name}");
        assert_eq!(program.nearfar().ok().stdout, expected, "{name}");
    }
}

#[test]
fn examples_are_built_and_agree() {
    needs!("openmp");
    nearfar_bin();
    let out = built("test-examples");
    make(&["-B", &format!("OUT={}", out.display())], &root().join("examples"));
    examples_agree(&out);
    for where_to in ["near", "far", "malloc"] {
        let stream = TestProgram::command([out.join("stream")]).args([where_to, "24"]);
        let outcome = stream.plain().ok();
        assert_eq!(outcome.stdout, "stream: 3145728 elements, a = 5.766504e+11, 0 wrong\n");
        assert!(outcome.stderr.contains("Triad"), "{}", outcome.stderr);
        assert_eq!(stream.near("96M").nearfar().ok().stdout, outcome.stdout);
    }
    if out.join("work_arrays").exists() {
        let outcome = TestProgram::command([out.join("work_arrays")]).plain().ok();
        assert_eq!(outcome.stdout, "work arrays: 2302200 -144000\n");
    }
    if out.join("vector_add_hbw").exists() {
        let program = TestProgram::command([out.join("vector_add_hbw")]).args(["300000"]).env("MEMKIND_HBW_NODES", "0");
        assert_eq!(program.plain().ok().stdout, "vector add: 300000 elements, sum 67499775000.0\n");
    }
}

#[test]
fn the_python_example() {
    needs!("numpy");
    let script = root().join("examples/vector_add.py");
    let program = with_python(TestProgram::command([python().into_os_string(), script.into(), "300000".into()]));
    assert_eq!(program.plain().ok().stdout, "vector add: 300000 elements, sum 67499775000.0\n");
}

#[test]
fn an_installed_copy_serves_programs() {
    needs!("openmp");
    let scratch = Scratch::new();
    let prefix = scratch.0.join("prefix");
    let at = |path: &str| prefix.join(path);
    make(&["install", &format!("PREFIX={}", prefix.display())], root());
    assert!(at("lib/nearfar/libmemkind.so.0").exists() && at("bin/memkind-hbw-nodes").exists());
    // What Tab completes, asked of the shell itself.
    let script = at("share/bash-completion/completions/nearfar");
    let ask = format!(
        "source {}; COMP_WORDS=(nearfar run --nea) COMP_CWORD=2; _nearfar nearfar --nea run; echo ${{COMPREPLY[@]}}",
        script.display()
    );
    let answer = Command::new("bash").args(["-c", &ask]).output().expect("bash");
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "--near", "{answer:?}");
    assert!(at("share/zsh/site-functions/_nearfar").exists() && at("share/fish/vendor_completions.d/nearfar.fish").exists());
    let out = scratch.0.join("out");
    let arguments = [format!("NEARFAR={}", prefix.display()), format!("OUT={}", out.display())];
    make(&[&arguments[0], &arguments[1]], &at("share/nearfar/examples"));
    examples_agree(&out);
    // As other build systems find it.
    let mut found = Command::new("pkg-config");
    found.args(["--cflags", "--libs", "nearfar"]).env("PKG_CONFIG_PATH", at("lib/pkgconfig"));
    let Ok(flags) = found.output() else { return println!("skipped: no pkg-config") };
    let flags = String::from_utf8(flags.stdout).expect("UTF-8");
    let mut compiler = Command::new("cc");
    compiler.arg(root().join("examples/vector_add.c")).arg("-o").arg(out.join("by_pkg_config")).args(flags.split_whitespace());
    succeeds(&mut compiler);
    TestProgram::command([out.join("by_pkg_config")]).plain().ok();
}

/// The programs of docs/how-to/in-your-program.md: blocks that begin with three backquotes and a language, in the order of the page.
fn programs_of_the_page() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(root().join("docs/how-to/in-your-program.md")).expect("the page");
    let blocks = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let programs = blocks.filter(|(language, _)| ["c", "cpp", "fortran", "python", "rust"].contains(language));
    programs.map(|(language, text)| (language.to_owned(), text.to_owned() + "\n")).collect()
}

#[test]
fn programs_of_the_documentation() {
    needs!("g++", "gfortran", "numpy");
    let (include, libraries) = (root().join("include"), library_dir());
    let scratch = Scratch::new();
    let programs = programs_of_the_page();
    assert_eq!(programs.len(), 5, "one program per language");
    for (language, text) in programs {
        let file = |name: &str| scratch.work().join(name);
        let write = |name: &str| std::fs::write(file(name), &text).expect("written");
        let link = |command: &mut Command| {
            command.arg("-o").arg(file(&language)).arg("-L").arg(&libraries).arg("-lnearfar");
            succeeds(command.arg(format!("-Wl,-rpath,{}", libraries.display())).current_dir(scratch.work()));
        };
        let program = match language.as_str() {
            "c" => {
                write("page.c");
                link(Command::new("cc").args(["-Wall", "-Werror", "-I"]).arg(&include).arg("page.c"));
                TestProgram::command([file("c")])
            }
            "cpp" => {
                write("page.cpp");
                link(Command::new("g++").args(["-std=c++17", "-Wall", "-Werror", "-I"]).arg(&include).arg("page.cpp"));
                TestProgram::command([file("cpp")])
            }
            "fortran" => {
                write("page.f90");
                link(Command::new("gfortran").arg(root().join("fortran/nearfar.F90")).arg("page.f90"));
                TestProgram::command([file("fortran")])
            }
            "python" => {
                write("page.py");
                with_python(TestProgram::command([python(), file("page.py")]))
            }
            _ => {
                std::fs::create_dir_all(file("page/src")).expect("a directory");
                let crate_dir = root().join("rust/nearfar-alloc");
                let manifest = format!(
                    "[package]\nname = \"page\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\nnearfar-alloc = {{ path = \"{}\" }}\n[workspace]\n",
                    crate_dir.display()
                );
                std::fs::write(file("page/Cargo.toml"), manifest).expect("written");
                write("page/src/main.rs");
                let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                cargo.args(["build", "--offline", "--quiet"]).current_dir(file("page")).env("NEARFAR_LIB_DIR", &libraries);
                succeeds(cargo.env("CARGO_TARGET_DIR", file("page/target")));
                TestProgram::command([file("page/target/debug/page")]).env("LD_LIBRARY_PATH", &libraries.display().to_string())
            }
        };
        let outcome = program.plain().ok();
        assert_eq!(outcome.stdout, "sum of squares: 333332833333500000\n", "{language}: {}", outcome.stderr);
    }
}
