//! libmemkind.so in the place of memkind's: the same symbols, and programs built against memkind's headers and ours that check the
//! contract. The programs are in tests/memkind; each prints OK or the first line that is not as it should be.
//!
//! memkind's own headers and library: Debian's packages libmemkind-dev and libmemkind0, installed or extracted (`apt-get download`,
//! `dpkg -x PACKAGE DIR`) to the directory that `NEARFAR_MEMKIND_DEV` names.

use crate::util::{Beside, Scratch, memkind_dev, nearfar_bin, release_library, shared_machine};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Node 0, which every machine has, as memory of high bandwidth.
const NODE_0: (&str, &str) = ("MEMKIND_HBW_NODES", "0");

/// A program of tests/memkind and the library that it finds.
struct Built {
    scratch: Scratch,
    program: PathBuf,
    _beside: Beside,
}

impl Built {
    /// Compiles `name` against the headers in `include`, and links it as programs link memkind.
    fn new(name: &str, include: &Path, flags: &[&str]) -> Self {
        let scratch = Scratch::new();
        let library = release_library("memkind");
        for link in ["libmemkind.so.0", "libmemkind.so"] {
            std::os::unix::fs::symlink(&library, scratch.0.join(link)).expect("a link");
        }
        let program = scratch.0.join("program");
        let mut compiler = Command::new(if name.ends_with(".c") { "cc" } else { "g++" });
        compiler.args(["-O1", "-g", "-Wall", "-pthread", "-Wno-unused-result", "-Wno-deprecated-declarations"]).args(flags);
        compiler.arg("-I").arg(include).arg(root().join("tests/memkind").join(name)).arg("-o").arg(&program);
        compiler.arg("-L").arg(&scratch.0).arg("-lmemkind");
        let output = compiler.output().expect("a compiler");
        assert!(output.status.success(), "{compiler:?}:\n{}", String::from_utf8_lossy(&output.stderr));
        Self { scratch, program, _beside: shared_machine() }
    }

    fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.scratch.work()).env("LD_LIBRARY_PATH", &self.scratch.0);
        command.envs(env.iter().copied());
        command
    }

    #[track_caller]
    fn ok(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        ok(self.command(args, env))
    }
}

#[track_caller]
fn ok(mut command: Command) -> Output {
    let output = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.ends_with("OK\n"), "{command:?}: {:?}\n{stdout}{stderr}", output.status);
    output
}

fn ours() -> PathBuf {
    root().join("include")
}

fn theirs() -> PathBuf {
    memkind_dev().expect("asked for").join("include")
}

/// Name -> sort, and bytes of an object, of all that a library defines for others.
fn symbols(library: &Path) -> BTreeMap<String, (bool, u64)> {
    let output = Command::new("nm").args(["-DS", "--defined-only"]).arg(library).output().expect("nm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, bytes, sort, name] = words[..] else { return None };
        let is_object = !matches!(sort, "T" | "t" | "W" | "w");
        let bytes = u64::from_str_radix(bytes, 16).expect("a size");
        Some((name.to_owned(), (is_object, if is_object { bytes } else { 0 })))
    };
    text.lines().filter_map(line).collect()
}

/// The list that is kept in the tree.
fn recorded() -> BTreeMap<String, (bool, u64)> {
    let text = std::fs::read_to_string(root().join("tests/memkind/symbols-1.14.0.txt")).expect("the list");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bytes = words.get(2).map_or(0, |bytes| bytes.parse().expect("a size"));
        (words[0].to_owned(), (words[1] == "object", bytes))
    };
    lines.map(one).collect()
}

#[test]
fn every_symbol_of_memkind_is_there() {
    let found = symbols(&release_library("memkind"));
    let missing: Vec<_> = recorded().into_iter().filter(|(name, what)| found.get(name) != Some(what)).collect();
    assert!(missing.is_empty(), "missing, or of another sort or size: {missing:?}");
    let more: Vec<&str> = found.keys().map(String::as_str).filter(|name| !recorded().contains_key(*name)).collect();
    assert_eq!(more, ["memkind_set_allow_zero_allocs"], "what the last commit of memkind has, and no more");
}

#[test]
fn the_recorded_symbols_are_those_of_the_package() {
    needs!("libmemkind-dev");
    let dev = memkind_dev().expect("asked for");
    let library = [dev.join("lib/x86_64-linux-gnu"), dev.join("lib/aarch64-linux-gnu"), dev.join("lib")]
        .into_iter()
        .map(|dir| dir.join("libmemkind.so.0"))
        .find(|path| path.exists());
    let Some(library) = library else { return println!("skipped: headers without the library") };
    assert_eq!(symbols(&library), recorded());
}

#[test]
fn the_library_has_memkinds_name() {
    let output = Command::new("readelf").arg("-d").arg(release_library("memkind")).output().expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Library soname: [libmemkind.so.0]"), "{text}");
}

#[test]
fn contract() {
    for flags in [["-no-pie"], ["-fPIE"]] {
        Built::new("contract.c", &ours(), &flags).ok(&[], &[NODE_0]);
    }
}

#[test]
fn contract_with_memkinds_headers() {
    needs!("libmemkind-dev");
    // Not position-independent: the pointers to kinds are then copied into the program.
    Built::new("contract.c", &theirs(), &["-no-pie"]).ok(&[], &[NODE_0]);
}

programs! {
    kinds_that_programs_make: Built::new("made_kinds.c", &ours(), &[]).ok(&["."], &[]);
    kinds_that_programs_make_with_memkinds_headers (needs "libmemkind-dev"):
        Built::new("made_kinds.c", &theirs(), &["-no-pie"]).ok(&["."], &[]);
    i19_what_memkinds_own_tests_found: Built::new("peer_tests.c", &ours(), &[]).ok(&[], &[NODE_0]);
    i19_what_memkinds_own_tests_found_with_memkinds_headers (needs "libmemkind-dev"):
        Built::new("peer_tests.c", &theirs(), &["-no-pie"]).ok(&[], &[NODE_0]);
}

#[test]
fn threads_forks_and_what_is_written_at_exit() {
    let built = Built::new("lifecycle.c", &ours(), &[]);
    built.ok(&["written"], &[NODE_0]);
    let text = std::fs::read_to_string(built.scratch.work().join("written")).expect("the file");
    let expected: String = (0..79).map(|number| format!("{number:09}\n")).collect();
    assert_eq!(text, expected, "stdio buffers in the heap are written when the program ends");
}

#[test]
fn forks_beside_the_first_use_of_other_threads() {
    Built::new("first_fork.c", &ours(), &[]).ok(&[], &[NODE_0]);
}

#[test]
fn bad_variables_are_refused_in_one_line() {
    let built = Built::new("unavailable.c", &ours(), &[]);
    for (value, why) in [
        ("nonsense", "not a list of NUMA nodes such as 1-3,5"),
        ("", "not a list of NUMA nodes such as 1-3,5"),
        ("0-", "not a list of NUMA nodes such as 1-3,5"),
        ("977", "node 977 has no memory that this process may use"),
        ("0,977", "node 977 has no memory that this process may use"),
        ("4096", "no machine has a node 4096"),
    ] {
        let output = built.ok(&["-12"], &[("MEMKIND_HBW_NODES", value)]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(why) && text.lines().count() == 1, "{value}: {text}");
    }
    let output = built.ok(&["-12"], &[("MEMKIND_HBW_THRESHOLD", "fast")]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("MEMKIND_HBW_THRESHOLD=fast"), "{output:?}");
}

#[test]
fn variables_that_need_no_action_are_accepted() {
    let built = Built::new("contract.c", &ours(), &[]);
    let output = built.ok(
        &[],
        &[
            NODE_0,
            ("MEMKIND_HOG_MEMORY", "1"),
            ("MEMKIND_ARENA_NUM_PER_KIND", "4"),
            ("MEMKIND_HEAP_MANAGER", "JEMALLOC"),
            ("MEMKIND_BACKGROUND_THREAD_LIMIT", "2"),
        ],
    );
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = built.ok(&[], &[NODE_0, ("MEMKIND_DEBUG", "1")]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("MEMKIND_INFO: memkind_hbw is made of nodes 0"), "{output:?}");
    let output = built.ok(&[], &[NODE_0, ("MEMKIND_ARENA_NUM_PER_KIND", "-1")]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("MEMKIND_ARENA_NUM_PER_KIND=-1: not a number"), "{output:?}");
}

#[test]
fn allocators_in_containers() {
    needs!("g++");
    for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
        Built::new("allocators.cpp", &ours(), &[standard]).ok(&["."], &[NODE_0]);
    }
    Built::new("allocator98.cpp", &ours(), &["-std=c++98", "-pedantic"]).ok(&[], &[NODE_0]);
    Built::new("example.cpp", &ours(), &["-std=c++11"]).ok(&["."], &[NODE_0]);
}

#[test]
fn allocators_of_memkinds_headers() {
    needs!("g++", "libmemkind-dev");
    Built::new("example.cpp", &theirs(), &["-std=c++11"]).ok(&["."], &[NODE_0]);
}

#[test]
fn headers_compile_without_warnings() {
    needs!("g++");
    let compile = |compiler: &str, standard: &str, headers: &[&str]| {
        let text: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
        let language = if compiler == "cc" { "c" } else { "c++" };
        let mut command = Command::new("sh");
        let line = format!(
            "printf '%s' \"$0\" | {compiler} -std={standard} -Wall -Wextra -pedantic -Werror -x {language} -c - -o /dev/null"
        );
        let output = command.arg("-c").arg(format!("{line} -I {}", ours().display())).arg(text).output().expect("a compiler");
        assert!(output.status.success(), "{standard} {headers:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for header in ["hbwmalloc.h", "memkind.h", "memkind_memtier.h"] {
        ["c99", "c11"].iter().for_each(|standard| compile("cc", standard, &[header]));
        ["c++98", "c++11", "c++17"].iter().for_each(|standard| compile("g++", standard, &[header]));
    }
    compile("g++", "c++98", &["hbw_allocator.h"]);
    for standard in ["c++11", "c++14", "c++17", "c++20", "c++23"] {
        for header in ["hbw_allocator.h", "memkind_allocator.h", "pmem_allocator.h", "fixed_allocator.h"] {
            compile("g++", standard, &[header]);
        }
    }
}

#[test]
fn a_paged_job_serves_high_bandwidth_from_near() {
    let built = Built::new("paged.c", &ours(), &[]);
    let stub = built.scratch.0.join("stub.so");
    let source = root().join("tests/memkind/paged_stub.c");
    let status = Command::new("cc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&stub).arg(source).status();
    assert!(status.expect("a compiler").success());
    let preload = stub.to_str().expect("a name");
    built.ok(&[], &[("LD_PRELOAD", preload)]);
    built.ok(&["off"], &[("LD_PRELOAD", preload), ("NEARFAR_HBW", "off")]);
}

/// `nearfar bench memkind --suite` on a tree with a stand-in for memkind and for its tests.
#[test]
fn i19_tests_of_another_library_are_run_with_both() {
    let scratch = Scratch::new();
    let (tree, ours) = (scratch.0.join("tree"), release_library("memkind"));
    for dir in [".libs", "test/.libs"] {
        std::fs::create_dir_all(tree.join(dir)).expect("a directory");
    }
    let library = tree.join(".libs/libmemkind.so.0");
    let compile = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).arg(&library).arg(root().join("tests/memkind/judge.c"));
        let status = shell.arg(tree.join("test/.libs/get_capacity_test")).status();
        assert!(status.expect("a shell").success(), "{script}");
    };
    compile(
        r#"echo 'int memkind_get_version(void) { return 7; }' | cc -shared -fPIC -Wl,-soname,libmemkind.so.0 -x c - -o "$0""#,
    );
    let run = |more: &[&str]| {
        let mut command = Command::new(nearfar_bin());
        command.args(["bench", "memkind", "--suite"]).arg(&tree).args(more);
        let output = command.output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    };
    let (status, text) = run(&[]);
    assert!(status == Some(2) && text.contains("no built tests"), "{status:?}: {text}");
    // As libtool links: its own library comes first, whatever LD_LIBRARY_PATH says, for one of the two; and not for the other.
    for tags in ["--disable-new-dtags", "--enable-new-dtags"] {
        compile(&format!(r#"cc "$1" "$0" -o "$2" -Wl,{tags},-rpath,"$(dirname "$0")""#));
        let (status, text) = run(&[]);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(&ours.display().to_string()) && text.contains("set       MEMKIND_HBW_NODES="), "{text}");
        assert!(text.contains("Other.theirs\n    theirs  passed\n    ours    failed: judge.c:7: the version"), "{text}");
        assert!(text.contains("Other.ours\n    theirs  crashed: SIGABRT\n    ours    passed"), "{text}");
        assert!(text.contains("1 test passes with theirs and not with ours"), "{text}");
    }
    let (status, text) = run(&["--only", "Same.*"]);
    assert!(status == Some(0) && !text.contains("    theirs  "), "{status:?}: {text}");
    assert!(text.contains("passes with ours, or is explained"), "{text}");
}
