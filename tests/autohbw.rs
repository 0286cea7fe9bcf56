//! libautohbw.so, libmemtier.so and memkind's command-line tools: what is documented works, and what the originals got wrong does not.
//! Node 0 stands for the high-bandwidth memory; what is placed there is told by its memory policy.

use crate::util::{Outcome, Scratch, TestProgram, nearfar_bin, python, release_library};
use std::path::PathBuf;
use std::process::Command;

fn library(name: &str) -> String {
    release_library(name).display().to_string()
}

/// `program` under AutoHBW with these sizes, node 0 as high-bandwidth memory.
fn autohbw(program: TestProgram, size: &str) -> TestProgram {
    program.env("LD_PRELOAD", &library("autohbw")).env("MEMKIND_HBW_NODES", "0").env("AUTO_HBW_SIZE", size)
}

/// `program` under libmemtier with these tiers.
fn memtier(program: TestProgram, tiers: &str) -> TestProgram {
    program.env("LD_PRELOAD", &library("memtier")).env("MEMKIND_MEM_TIERS", tiers)
}

const TWO_TIERS: &str = "KIND:DRAM,RATIO:1;KIND:NODE:0,RATIO:4;POLICY:STATIC_RATIO";

fn shell(script: &str) -> TestProgram {
    TestProgram::command(["sh", "-c", script])
}

#[track_caller]
fn is_ok(outcome: Outcome) -> Outcome {
    let outcome = outcome.ok();
    assert!(outcome.stdout.ends_with("OK\n"), "{}{}", outcome.stdout, outcome.stderr);
    outcome
}

/// Names that a library exports.
fn exports(path: &str) -> Vec<String> {
    let output = Command::new("nm").args(["-D", "--defined-only", path]).output().expect("nm");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| line.split(' ').nth(2).map(str::to_owned)).collect()
}

#[test]
fn the_libraries_export_what_is_documented_and_no_more() {
    needs!("gcc");
    let family = [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
        "malloc_usable_size",
        "free",
        "cfree",
    ];
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let plain = family.iter().map(|name| (*name).to_owned());
    let switches = ["enableAutoHBW", "disableAutoHBW"].map(str::to_owned);
    assert_eq!(sorted(exports(&library("autohbw"))), sorted(plain.clone().chain(switches).collect()));
    let twins = family.iter().map(|name| format!("je_{name}"));
    assert_eq!(sorted(exports(&library("memtier"))), sorted(plain.chain(twins).collect()));
    for name in ["autohbw", "memtier"] {
        let output = Command::new("objdump").args(["-p", &library(name)]).output().expect("objdump");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.lines().any(|line| line.trim().starts_with("SONAME") && line.ends_with(&format!("lib{name}.so.0"))),
            "{text}"
        );
    }
}

#[test]
fn the_malloc_family_inside_and_outside_of_a_window() {
    let program = || TestProgram::source("autohbw_blocks.c");
    is_ok(autohbw(program().args(["4K"]), "4K").plain());
    is_ok(autohbw(program().args(["1M:5M"]), "1M:5M").plain());
    is_ok(autohbw(program().args(["0"]), "0").plain());
    is_ok(program().plain());
}

#[test]
fn pages_lie_on_the_node_and_placing_can_be_switched_off() {
    is_ok(autohbw(TestProgram::source("autohbw_node.c"), "1M:5M").plain());
}

#[test]
fn streams_are_not_lost_at_exit() {
    let lines: String = (0..100).map(|line| format!("line {line}\n")).collect();
    for preload in [autohbw as fn(TestProgram, &str) -> TestProgram, |program, _| memtier(program, TWO_TIERS)] {
        let scratch = Scratch::new();
        let path = scratch.work().join("written");
        let outcome = preload(TestProgram::source("autohbw_streams.c").args([&path]), "4K").plain().ok();
        assert_eq!(outcome.stdout, lines);
        assert_eq!(std::fs::read_to_string(path).expect("the file"), lines);
    }
}

#[test]
fn threads_and_forks() {
    is_ok(autohbw(TestProgram::source("autohbw_threads.c"), "4K").plain());
    is_ok(autohbw(TestProgram::source("autohbw_threads.c"), "0").plain());
    is_ok(memtier(TestProgram::source("autohbw_threads.c"), TWO_TIERS).plain());
}

#[test]
fn aligned_new_of_cpp() {
    needs!("g++");
    let plain = is_ok(TestProgram::source("aligned_new.cpp").plain());
    for under in
        [autohbw(TestProgram::source("aligned_new.cpp"), "64"), memtier(TestProgram::source("aligned_new.cpp"), TWO_TIERS)]
    {
        assert_eq!(is_ok(under.plain()).stdout, plain.stdout);
    }
}

#[test]
fn allocatable_arrays_of_fortran_are_caught() {
    needs!("gfortran");
    let program = || TestProgram::source("allocatable_arrays.f90");
    let plain = program().plain().ok();
    let under = autohbw(program(), "1M").env("AUTO_HBW_LOG", "0").plain().ok();
    assert_eq!(under.stdout, plain.stdout);
    assert!(!under.stderr.contains(" 0 allocations"), "{}", under.stderr);
    assert!(under.stderr.contains("placed in memkind_hbw_preferred (node 0)"), "{}", under.stderr);
    assert_eq!(memtier(program(), TWO_TIERS).plain().ok().stdout, plain.stdout);
}

#[test]
fn real_programs_give_the_same() {
    let script = "ls /usr/bin | head -50; grep -c e /etc/passwd; printf 'b\\na\\n' | sort; bash -c 'for i in 1 2 3; do (echo $i); done'; \
                  sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c where x<20000) select sum(x) from c' \
                  2>/dev/null; tar cf - /etc/hostname 2>/dev/null | wc -c";
    let plain = shell(script).plain().ok();
    for under in [autohbw(shell(script), "4K"), autohbw(shell(script), "0"), memtier(shell(script), TWO_TIERS)] {
        let under = under.plain().ok();
        assert_eq!((under.stdout, under.stderr), (plain.stdout.clone(), plain.stderr.clone()));
    }
}

#[test]
fn python_gives_the_same() {
    needs!("python3");
    let code = "import json,threading,subprocess\nx=[bytes(i*100) for i in range(3000)]\nt=[threading.Thread(target=lambda:sorted(str(i) \
                for i in range(20000))) for _ in range(4)]\n[a.start() for a in t];[a.join() for a in t]\nprint(sum(map(len,x)), \
                len(json.dumps(list(range(100000)))), subprocess.run(['echo','child'],capture_output=True).stdout)";
    let program = || TestProgram::command([python().into_os_string(), "-c".into(), code.into()]);
    let plain = program().plain().ok();
    for under in [autohbw(program(), "4K"), autohbw(program(), "0"), memtier(program(), TWO_TIERS)] {
        assert_eq!(under.plain().ok().stdout, plain.stdout);
    }
}

#[test]
fn sizes_that_the_original_misread_are_understood_or_refused() {
    for (size, said) in [
        ("4KB:8KB", "allocations of 4K to 8K go to"),
        ("1.5M", "at least 1536K go to"),
        ("2T", "at least 2T go to"),
        ("1M:", "at least 1M go to"),
        ("100", "at least 100 go to"),
        ("abc", "AUTO_HBW_SIZE: \"abc\" is not a size"),
        ("5M:1M", "AUTO_HBW_SIZE: \"5M:1M\" contains no size"),
        ("1X", "nothing is placed"),
    ] {
        let outcome = autohbw(shell("exit 7"), size).env("AUTO_HBW_LOG", "0").plain();
        assert!(outcome.stderr.contains(said), "{size}: {}", outcome.stderr);
        assert_eq!(outcome.status.code(), Some(7), "{size}: the program runs as ever");
        assert_eq!(outcome.stderr.contains("nothing is placed"), !outcome.stderr.contains(" go to "), "{size}");
    }
}

#[test]
fn every_level_prints_what_is_documented() {
    let said = |level: &str| {
        let program = TestProgram::source("autohbw_node.c");
        let program = if level.is_empty() { program } else { program.env("AUTO_HBW_LOG", level) };
        is_ok(autohbw(program, "1M:5M").plain()).stderr
    };
    for quiet in ["", "-2", "-1"] {
        assert_eq!(said(quiet), "", "level {quiet}");
    }
    let info = said("0");
    assert!(info.contains("go to memkind_hbw_preferred (node 0)") && !info.contains("malloc("), "{info}");
    assert!(info.contains("2 allocations of 1M to 5M placed") && info.contains("4.0 MiB in all"), "{info}");
    let allocations = said("1");
    assert_eq!(allocations.matches("malloc(20971").count(), 2, "{allocations}");
    assert!(!allocations.contains("from "), "{allocations}");
    let callers = said("2");
    assert!(callers.contains("AutoHBW:     from ") && callers.contains("autohbw_node+0x"), "{callers}");
    assert!(said("loud").contains("AUTO_HBW_LOG: \"loud\" is not a level"));
}

#[test]
fn every_kind_can_be_chosen_and_what_is_not_there_is_said() {
    let said =
        |kind: &str| autohbw(shell("true"), "1M").env("AUTO_HBW_LOG", "0").env("AUTO_HBW_MEM_TYPE", kind).plain().ok().stderr;
    for kind in ["memkind_hbw", "MEMKIND_HBW_ALL", "memkind_hbw_interleave", "memkind_regular", "memkind_interleave"] {
        let text = said(kind);
        assert!(text.contains(&format!("go to {} (node", kind.to_lowercase())), "{kind}: {text}");
    }
    assert!(said("memkind_default").contains("ordinary memory"));
    assert!(said("MEMKIND_HBM").contains("is not a kind of memory"));
    assert!(said("MEMKIND_HBW_GBTLB").contains("_HUGETLB"));
    let none = shell("true").env("LD_PRELOAD", &library("autohbw")).env("MEMKIND_HBW_NODES", "999").plain().ok();
    assert!(none.stderr.contains("stays in ordinary memory"), "{}", none.stderr);
}

#[test]
fn the_library_can_be_linked_and_opened_late() {
    needs!("python3");
    let code =
        format!("import ctypes; a = ctypes.CDLL('{}'); a.disableAutoHBW(); a.enableAutoHBW(); print('OK')", library("autohbw"));
    is_ok(TestProgram::command([python().into_os_string(), "-c".into(), code.into()]).env("MEMKIND_HBW_NODES", "0").plain());
}

#[test]
fn memtier_keeps_the_ratio_and_the_tier_of_a_block() {
    for (near, far) in [("1", "4"), ("1", "1"), ("7", "3")] {
        let tiers = format!("KIND:DRAM,RATIO:{near};KIND:NODE:0,RATIO:{far};POLICY:STATIC_RATIO");
        is_ok(memtier(TestProgram::source("memtier_ratio.c").args([near, far]), &tiers).plain());
    }
    is_ok(memtier(TestProgram::source("autohbw_blocks.c"), TWO_TIERS).plain());
    let thresholds = "KIND:DRAM,RATIO:1;KIND:NODE:0,RATIO:1;POLICY:DYNAMIC_THRESHOLD";
    is_ok(
        memtier(TestProgram::source("autohbw_blocks.c"), thresholds)
            .env("MEMKIND_MEM_THRESHOLDS", "INIT_VAL:64,MIN_VAL:1,MAX_VAL:10000")
            .plain(),
    );
    let hbw = "KIND:HBW,RATIO:1;POLICY:STATIC_RATIO";
    is_ok(memtier(TestProgram::source("autohbw_blocks.c").args(["0"]), hbw).env("MEMKIND_HBW_NODES", "0").plain());
}

#[test]
fn memtier_on_a_file() {
    let scratch = Scratch::new();
    let tiers = format!(
        "KIND:DRAM,RATIO:1;KIND:FS_DAX,PATH:{},PMEM_SIZE_LIMIT:256M,RATIO:1;POLICY:STATIC_RATIO",
        scratch.work().display()
    );
    is_ok(memtier(TestProgram::source("autohbw_blocks.c"), &tiers).plain());
    assert!(std::fs::read_dir(scratch.work()).expect("the directory").next().is_none(), "the file has no name");
}

#[test]
fn memtier_without_good_tiers_aborts_and_tells() {
    let aborted = |program: TestProgram, said: &str| {
        let outcome = program.plain();
        assert_eq!(outcome.end().1, Some(6), "{said}: {:?} {}", outcome.status, outcome.stderr);
        assert!(
            outcome.stderr.starts_with("MEMKIND_MEM_TIERING_LOG_ERROR: ") && outcome.stderr.contains(said),
            "{said}: {}",
            outcome.stderr
        );
    };
    let program = || TestProgram::command(["/bin/true"]);
    aborted(program().env("LD_PRELOAD", &library("memtier")), "MEMKIND_MEM_TIERS is not set");
    for (tiers, said) in [
        ("KIND:DRAM,RATIO:1", "POLICY"),
        ("KIND:MCDRAM,RATIO:1;POLICY:STATIC_RATIO", "MCDRAM"),
        ("KIND:NODE:999,RATIO:1;POLICY:STATIC_RATIO", "node 999"),
        ("KIND:FS_DAX,PATH:/nonexistent,RATIO:1;POLICY:STATIC_RATIO", "/nonexistent"),
        ("KIND:KMEM_DAX,RATIO:1;POLICY:STATIC_RATIO", "MEMKIND_DAX_KMEM_NODES"),
    ] {
        aborted(memtier(program(), tiers), said);
    }
}

/// A tool by its own name, as an installation has it.
fn tool(name: &str) -> PathBuf {
    let link = nearfar_bin().with_file_name(name);
    // It may be there from another run.
    let _ = std::os::unix::fs::symlink("nearfar", &link);
    link
}

#[test]
fn the_tools_print_and_end_as_documented() {
    // memtier looks for its library beside the command.
    library("memtier");
    let run = |name: &str, args: &[&str], env: (&str, &str)| {
        let by_name = TestProgram::command([tool(name)]).args(args).env(env.0, env.1).plain();
        let by_command = TestProgram::command([nearfar_bin()]).args([name]).args(args).env(env.0, env.1).plain();
        assert_eq!((by_name.status.code(), &by_name.stdout), (by_command.status.code(), &by_command.stdout), "{name} {args:?}");
        (by_name.status.code(), by_name.stdout, by_name.stderr)
    };
    let none = ("MEMKIND_DEBUG", "0");
    assert_eq!(run("memkind-hbw-nodes", &[], ("MEMKIND_HBW_NODES", "0")), (Some(0), "0\n".into(), String::new()));
    let (status, out, why) = run("memkind-hbw-nodes", &[], ("MEMKIND_HBW_NODES", "999"));
    assert!(status == Some(1) && out.is_empty() && why.contains("999"), "{status:?} {out} {why}");
    for name in ["memkind-hbw-nodes", "memkind-auto-dax-kmem-nodes", "memtier"] {
        for help in ["-h", "--help"] {
            let (status, out, _) = run(name, &[help], none);
            assert!(status == Some(0) && out.contains("Usage:"), "{name} {help}: {status:?} {out}");
        }
        assert_eq!(run(name, &["--nonsense"], none).0, Some(2), "{name}");
    }
    let (status, out, why) = run("memkind-auto-dax-kmem-nodes", &[], none);
    assert!(
        matches!((status, out.is_empty(), why.is_empty()), (Some(3), true, false) | (Some(0), false, true)),
        "{status:?} {out} {why}"
    );
    let (status, out, said) = run("memtier", &["-v", "-r", "1:2", "echo", "hi"], ("MEMKIND_DAX_KMEM_NODES", "0"));
    assert_eq!((status, out.as_str()), (Some(0), "hi\n"), "{said}");
    assert!(said.contains("setting MEMKIND_MEM_TIERS=KIND:DRAM,RATIO:1;KIND:KMEM_DAX,RATIO:2;POLICY:STATIC_RATIO"), "{said}");
    let thresholds = "INIT_VAL=1024,MIN_VAL=512,MAX_VAL=65536";
    assert_eq!(
        run("memtier", &["-t", thresholds, "-r", "1:2", "grep", "-c", "root:", "/etc/passwd"], ("MEMKIND_DAX_KMEM_NODES", "0")).1,
        "1\n"
    );
    assert_eq!(run("memtier", &["-r", "1:0", "sh", "-c", "exit 9"], none).0, Some(9));
    assert_eq!(run("memtier", &["-r", "1", "true"], none).0, Some(2));
    assert_eq!(run("memtier", &["-r", "1:0", "no-such-program"], none).0, Some(127));
}
