//! What `nearfar profile` records: the right objects at the right places, whatever processes do; the program does not notice.

use crate::util::{Scratch, compile, nearfar_bin, program_file, python, shared_machine};
use nearfar_core::profile::file::{self, Content};
use nearfar_core::profile::record::{Kind, Object, Record, Site, Start};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A program under `nearfar profile`, and the profile.
pub struct Profiled {
    output: Output,
    pub content: Content,
    size: u64,
}

/// Runs a command line; one that hangs is killed.
pub fn profiled(options: &[&str], argv: &[OsString]) -> Profiled {
    let scratch = Scratch::new();
    let file = scratch.work().join("a.nfprof");
    let mut command = Command::new(nearfar_bin());
    command.arg("profile").args(options).arg("-o").arg(&file).arg("--").args(argv);
    let _beside = shared_machine();
    command.current_dir(scratch.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("nearfar runs");
    let start = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            // The program: signals are passed on. It may be held by what is tested here, and must not stay.
            let _ = Command::new("sh")
                .args(["-c", "kill -9 $(cat /proc/$0/task/*/children) $0"])
                .arg(child.id().to_string())
                .status();
            panic!("no end after 60 s: {argv:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("its output");
    let bytes = std::fs::read(&file).expect("a profile");
    let content = file::read(&bytes).unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&output.stderr)));
    Profiled { output, content, size: bytes.len() as u64 }
}

fn objects_program(what: &str) -> Vec<OsString> {
    vec![compile("profiled_objects.c").into(), what.into()]
}

impl Profiled {
    #[track_caller]
    pub fn ok(self) -> Self {
        let (out, err) = (String::from_utf8_lossy(&self.output.stdout), String::from_utf8_lossy(&self.output.stderr));
        assert_eq!((&*out, self.output.status.code()), ("OK\n", Some(0)), "{err}");
        assert_eq!(self.content.lost_bytes, 0);
        self
    }

    pub fn records(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.content.batches.iter().flat_map(|batch| batch.records.iter().map(|record| (batch.pid, record)))
    }

    pub fn starts(&self) -> Vec<&Start> {
        self.records().filter_map(|(_, record)| if let Record::Start(start) = record { Some(start) } else { None }).collect()
    }

    /// All objects, each with its last place and size.
    pub fn objects(&self) -> Vec<(u32, Object)> {
        let mut found: Vec<(u32, Object)> = Vec::new();
        for (pid, record) in self.records() {
            match record {
                Record::Object(object) => found.push((pid, object.clone())),
                Record::Resized { id, addr, len, .. } => {
                    let object = found.iter_mut().rev().find(|(of, object)| (*of, object.id) == (pid, *id));
                    let (_, object) = object.expect("begun before");
                    (object.addr, object.len) = (*addr, *len);
                }
                _ => {}
            }
        }
        found
    }

    /// The objects of `kind` with `len` bytes.
    pub fn of(&self, kind: Kind, len: u64) -> Vec<(u32, Object)> {
        self.objects().into_iter().filter(|(_, object)| object.kind == kind && object.len == len).collect()
    }

    fn site(&self, pid: u32, object: &Object) -> &Site {
        let site = self.records().find_map(|(of, record)| match record {
            Record::Site(site) if of == pid && site.id == object.site => Some(site),
            _ => None,
        });
        site.unwrap_or_else(|| panic!("{object:?} has no site"))
    }

    /// The functions on the stack where `object` was allocated, of the program itself.
    fn functions(&self, pid: u32, object: &Object, program: &Path) -> Vec<String> {
        let module = self.records().find_map(|(of, record)| match record {
            Record::Module(module) if of == pid && Path::new(&module.path) == program => Some(module),
            _ => None,
        });
        let module = module.expect("the program's module");
        let inside = |addr: &&u64| module.start <= **addr && **addr < module.end;
        let addrs: Vec<String> =
            self.site(pid, object).frames.iter().filter(inside).map(|addr| format!("{:#x}", addr - module.bias - 1)).collect();
        let output = Command::new("addr2line").args(["-f", "-C", "-e"]).arg(program).args(addrs).output().expect("addr2line");
        String::from_utf8_lossy(&output.stdout).lines().step_by(2).map(str::to_owned).collect()
    }

    fn ended(&self) -> usize {
        self.records().filter(|(_, record)| matches!(record, Record::End { .. })).count()
    }
}

#[test]
fn objects_have_their_sizes_and_places() {
    let program = compile("profiled_objects.c").canonicalize().expect("compiled");
    let run = profiled(&[], &objects_program("plain")).ok();
    let one = |kind: Kind, len: u64| {
        let found = run.of(kind, len);
        assert_eq!(found.len(), 1, "{kind:?} {len}: {:?}", run.objects());
        found[0].clone()
    };
    let (pid, matrix) = one(Kind::Heap, 8_000_000);
    assert_eq!(run.functions(pid, &matrix, &program)[0], "make_matrix");
    let (pid, aligned) = one(Kind::Heap, 560_000);
    assert_eq!(run.functions(pid, &aligned, &program)[0], "make_aligned");
    let (pid, grown) = one(Kind::Heap, 3_000_000);
    assert_eq!(run.functions(pid, &grown, &program)[0], "make_grown");
    assert!(run.of(Kind::Heap, 300_000).is_empty());
    assert_eq!(run.of(Kind::Heap, 1 << 20).len(), 3, "of the threads");
    let (_, table) = one(Kind::Static, 1_600_000);
    assert_eq!(table.name, "profiled_table");
    // What is left of a mapping with a hole, whose first part was moved and has grown.
    assert_eq!((run.of(Kind::Map, 5 << 20).len(), run.of(Kind::Map, 4 << 20).len()), (1, 1), "{:?}", run.objects());
    assert_eq!((run.starts().len(), run.ended()), (1, 1));
}

/// Looks are random, and few in a program that is soon over on a busy machine: one of several runs must see something.
#[test]
fn pages_are_watched_where_they_can_be() {
    let mut said = Vec::new();
    for _ in 0..5 {
        let run = profiled(&["--budget", "20%"], &objects_program("plain")).ok();
        if format!("{:?}", run.starts()[0].method) == "None" {
            return println!("skipped: pages cannot be watched here");
        }
        let matrix = run.of(Kind::Heap, 8_000_000)[0].1.clone();
        let watches: Vec<_> =
            run.records().filter_map(|(_, record)| if let Record::Watch(watch) = record { Some(*watch) } else { None }).collect();
        let is_code = |record: &Record| matches!(record, Record::Code { ip, start, bytes } if ip >= start && !bytes.is_empty());
        if watches.iter().any(|watch| watch.object == matrix.id && watch.touched != 0)
            && run.records().any(|(_, record)| is_code(record))
        {
            return;
        }
        let cost = run.records().filter(|(_, record)| matches!(record, Record::Cost(_))).last();
        said.push(format!("{matrix:?} {watches:?} {cost:?}"));
    }
    panic!("no touch of the matrix was seen: {said:#?}");
}

fn stacks_program(what: &str) -> Vec<OsString> {
    vec![compile("profiled_stacks.c").into(), what.into()]
}

/// As above: looks are random.
#[test]
fn arrays_on_stacks_are_seen() {
    let mut said = Vec::new();
    for _ in 0..5 {
        let run = profiled(&["--budget", "20%"], &stacks_program("plain")).ok();
        let stack = |kind: Kind| {
            let found: Vec<_> = run.objects().into_iter().filter(|(_, object)| object.kind == kind).collect();
            assert_eq!(found.len(), 1, "{kind:?}: {:?}", run.objects());
            // Of 4,000,000 bytes: a page that may hold thread-local data as well is left out.
            assert!((3_990_000..4_400_000).contains(&found[0].1.len), "what was used: {found:?}");
            found[0].1.clone()
        };
        let stacks = [Kind::MainStack, Kind::ThreadStack].map(stack);
        if format!("{:?}", run.starts()[0].method) == "None" {
            return println!("skipped: pages cannot be watched here");
        }
        let touched = |object: &Object| {
            let is_one =
                |record: &Record| matches!(record, Record::Watch(watch) if watch.object == object.id && watch.touched != 0);
            run.records().filter(|(_, record)| is_one(record)).count()
        };
        let touches = stacks.each_ref().map(touched);
        if touches.iter().all(|&touches| touches > 0) {
            return;
        }
        said.push(touches);
    }
    panic!("no touch of one of them was seen: {said:?}");
}

/// On a machine with much else to do a thread of 150 ms may end before it is found: then again.
#[test]
fn stacks_end_with_their_threads() {
    let mut said = Vec::new();
    for _ in 0..3 {
        let run = profiled(&[], &stacks_program("ends")).ok();
        assert_eq!(run.ended(), 1);
        let stacks: Vec<_> = run.objects().into_iter().filter(|(_, object)| object.kind == Kind::ThreadStack).collect();
        assert!(stacks.len() <= 9, "{stacks:?}");
        let mut alive = Vec::new();
        for (_, stack) in &stacks {
            let end = run.records().find_map(|(_, record)| match record {
                Record::Gone { id, at } if *id == stack.id => Some(*at),
                _ => None,
            });
            alive.push((end.expect("it ended") - stack.at) / 1_000_000);
        }
        alive.sort_unstable();
        // Two in three end by themselves, after 150 ms, the others when they are cancelled, after 350; a stack is found a little late.
        if alive.len() == 9 && alive[0] >= 100 && alive[6] >= 270 && alive[8] < 5000 {
            return;
        }
        said.push(alive);
    }
    panic!("{said:?}");
}

#[test]
fn threads_that_do_little_leave_nothing() {
    let run = profiled(&[], &stacks_program("many")).ok();
    let stacks = run.objects().iter().filter(|(_, object)| object.kind == Kind::ThreadStack).count();
    assert!(stacks == 0 && run.size < 64 << 10, "{stacks} {}", run.size);
}

#[test]
fn without_any_means_objects_are_recorded() {
    let run = profiled(&["--deny", "faults,clock"], &objects_program("plain")).ok();
    assert_eq!(run.of(Kind::Heap, 8_000_000).len(), 1);
    assert!(!run.records().any(|(_, record)| matches!(record, Record::Watch(_) | Record::Time(_))));
}

#[test]
fn children_have_records_of_their_own() {
    let run = profiled(&[], &objects_program("fork")).ok();
    let starts = run.starts();
    let parent = starts
        .iter()
        .find(|start| start.args.len() == 1 && !starts.iter().any(|other| other.pid == start.parent))
        .expect("the first");
    let children: Vec<_> = starts.iter().filter(|start| start.parent == parent.pid && start.args.len() == 1).collect();
    assert!(children.len() >= 4, "{starts:?}");
    // What they have inherited is theirs, and what they allocate.
    let (shared, own) = (run.of(Kind::Heap, 4_000_000), run.of(Kind::Heap, 5_000_000));
    assert_eq!((shared.len(), own.len()), (5, 4), "{shared:?}");
    assert!(shared.iter().all(|(pid, object)| run.site(*pid, object).frames.len() > 1));
    assert!(run.ended() >= 5, "by exit and by _exit");
}

#[test]
fn what_was_known_before_exec_is_kept() {
    let run = profiled(&[], &objects_program("exec")).ok();
    assert_eq!((run.of(Kind::Heap, 4_800_000).len(), run.of(Kind::Heap, 8_000_000).len()), (1, 1));
    assert_eq!((run.starts().len(), run.ended()), (2, 1));
}

#[test]
fn a_killed_program_leaves_what_was_known() {
    let run = profiled(&[], &objects_program("kill"));
    assert_eq!((run.output.status.signal(), run.ended(), run.content.lost_bytes), (Some(9), 0, 0));
    assert_eq!(run.of(Kind::Heap, 5_600_000).len(), 1);
    assert!(String::from_utf8_lossy(&run.output.stderr).contains("make_matrix"), "the table is printed all the same");
}

#[test]
fn closing_all_descriptors_closes_none_of_ours() {
    let run = profiled(&["--budget", "20%"], &objects_program("closed")).ok();
    assert_eq!((run.of(Kind::Heap, 5_600_000).len(), run.ended()), (1, 1));
    let end = run.records().find_map(|(_, record)| if let Record::End { at, .. } = record { Some(*at) } else { None });
    // The last sweep, of 0.4 s, comes after everything was closed twice.
    let late = end.expect("an end") - 350_000_000;
    let touched = |from: u64| {
        let is_one = |record: &Record| matches!(record, Record::Watch(watch) if watch.touched != 0 && watch.at >= from);
        run.records().filter(|(_, record)| is_one(record)).count()
    };
    assert!(touched(late) > 0 || touched(0) == 0, "pages are not looked at any more: {} touches before", touched(0));
    let timed = |from: u64| {
        let is_one = |record: &Record| matches!(record, Record::Time(time) if time.since >= from && !time.samples.is_empty());
        run.records().filter(|(_, record)| is_one(record)).count()
    };
    assert!(timed(late) > 0 || timed(0) == 0, "time is not sampled any more: {} records before", timed(0));
}

/// A file for each, which `report` takes together.
#[test]
fn ranks_of_mpirun_have_a_profile_each() {
    needs!("mpirun");
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let mut command = Command::new("mpirun");
    command.args(["-n", "2"]).arg(nearfar_bin()).args(["profile", "-q", "-o", "a.nfprof", "--"]).args(objects_program("plain"));
    // Root, and more ranks than processors, in the words of Open MPI 4 and 5; others ignore them.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")]);
    let output = command.current_dir(scratch.work()).stdin(Stdio::null()).output().expect("mpirun runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for rank in [0, 1] {
        let bytes = std::fs::read(scratch.work().join(format!("a.{rank}.nfprof"))).expect("a profile");
        let content = file::read(&bytes).expect("a profile");
        let mut records = content.batches.iter().flat_map(|batch| &batch.records);
        assert!(records.any(|record| matches!(record, Record::Start(start) if start.rank == Some((rank, 2)))), "rank {rank}");
        assert_eq!(records.filter(|record| matches!(record, Record::Object(object) if object.len == 8_000_000)).count(), 1);
    }
    let mut report = Command::new(nearfar_bin());
    report.args(["report", "a.0.nfprof", "a.1.nfprof", "-o", "a.html"]).current_dir(scratch.work());
    assert!(report.output().expect("nearfar runs").status.success());
}

/// In a virtual machine, where the user may: a descriptor of the request tells. `--deny awake` does without.
#[test]
fn idle_cpus_are_kept_from_halting_in_a_guest() {
    needs!("root");
    let driver = std::fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver").unwrap_or_default();
    if driver.trim() != "haltpoll" || !Path::new("/dev/cpu_dma_latency").exists() {
        println!("skipped: the CPUs of this machine do not halt through a hypervisor, or cannot be kept from it");
        return;
    }
    let script = "ends=$((SECONDS + 3)); while ((SECONDS < ends)); do :; done; ls -l /proc/$$/fd | grep -c cpu_dma_latency";
    let said = |options: &[&str]| {
        let run = profiled(options, &["bash".into(), "-c".into(), script.into()]);
        String::from_utf8_lossy(&run.output.stdout).into_owned()
    };
    assert_eq!([said(&[]), said(&["--deny", "awake"])], ["1\n", "0\n"]);
}

/// The last thread's end ends the process: ours do not count.
#[test]
fn exits_amid_busy_threads() {
    let program = compile("lifecycle_exits.c");
    let alone = Command::new(&program).stdin(Stdio::null()).output().expect("it runs");
    let run = profiled(&[], &[program.into()]);
    assert_eq!(String::from_utf8_lossy(&run.output.stdout), String::from_utf8_lossy(&alone.stdout));
    assert_eq!((run.output.status.code(), run.content.lost_bytes), (Some(0), 0));
    // The program, and its children by exit, exit in a thread, _exit, and the end of the last thread; quick_exit as well.
    assert!(run.ended() >= 5, "{}", run.ended());
}

#[test]
fn mappings_move_while_their_pages_are_looked_at() {
    profiled(&["--budget", "50%"], &[compile("profiled_remaps.c").into()]).ok();
}

#[test]
fn churn_is_told_in_few_words() {
    let run = profiled(&[], &objects_program("churn")).ok();
    let count: u64 = run.records().map(|(_, record)| if let Record::Brief(brief) = record { brief.count } else { 0 }).sum();
    let singly = run.objects().len() as u64;
    assert!(count + singly >= 2_019_000 && run.size < 2 << 20, "{count} {singly} {}", run.size);
}

#[test]
fn the_file_stays_within_its_limit() {
    let run = profiled(&["--limit", "2M"], &objects_program("many")).ok();
    assert!(run.size < 3 << 20, "{}", run.size);
    let brief: u64 = run.records().map(|(_, record)| if let Record::Brief(brief) = record { brief.count } else { 0 }).sum();
    assert!(brief > 100_000 && run.ended() == 1, "{brief}");
}

#[test]
fn objects_of_cpp() {
    needs!("g++");
    let program = compile("profiled_vectors.cpp").canonicalize().expect("compiled");
    let run = profiled(&[], &[program.clone().into()]).ok();
    for len in [2_400_000, 1_200_000] {
        let (pid, object) = run.of(Kind::Heap, len)[0].clone();
        let functions = run.functions(pid, &object, &program);
        assert!(functions.iter().any(|name| name.contains("main") || name.contains("build")), "{functions:?}");
    }
}

#[test]
fn objects_of_fortran() {
    needs!("gfortran");
    let program = compile("profiled_fields.f90").canonicalize().expect("compiled");
    let run = profiled(&[], &[program.clone().into()]).ok();
    let (pid, psi) = run.of(Kind::Heap, 3_200_000)[0].clone();
    assert!(!run.functions(pid, &psi, &program).is_empty());
    assert_eq!(run.of(Kind::Static, 800_000)[0].1.name, "fields_");
}

#[test]
fn lines_of_python() {
    needs!("python3");
    let script = program_file("profiled_arrays.py");
    let run = profiled(&[], &[python().into(), script.into()]).ok();
    let lines = |len: u64| {
        let found = run.of(Kind::Heap, len);
        let sites = found.iter().map(|(pid, object)| &run.site(*pid, object).script);
        sites
            .map(|script| (script.first().map(|frame| frame.function.clone()), script.get(1).map_or(0, |frame| frame.line)))
            .collect::<Vec<_>>()
    };
    let big = lines(3_000_001);
    assert_eq!(big.len(), 4, "{:?}", run.objects());
    assert!(big.iter().all(|(function, _)| function.as_deref() == Some("big")), "{big:?}");
    assert!(big.iter().map(|(_, line)| line).collect::<std::collections::HashSet<_>>().len() == 2, "two callers: {big:?}");
    assert_eq!(lines(5_000_001)[0].0.as_deref(), Some("other"));
}

#[test]
fn objects_of_numpy() {
    needs!("numpy");
    let text = "import numpy\ndef psi():\n    return numpy.zeros(500_001)\na = psi(); a += 1\nprint('OK' if a.sum() == 500_001 else 'BAD')";
    let run = profiled(&[], &[python().into(), "-c".into(), text.into()]).ok();
    let found = run.of(Kind::Heap, 4_000_008);
    let (pid, object) = found.first().expect("the array");
    let script = &run.site(*pid, object).script;
    assert_eq!((script[0].function.as_str(), script[0].line, script[1].line), ("psi", 3, 4), "{script:?}");
}

#[test]
fn bad_files_are_refused() {
    let scratch = Scratch::new();
    let text = scratch.work().join("text");
    std::fs::write(&text, "somebody's").expect("written");
    for path in [text.clone(), scratch.work(), PathBuf::from("/nowhere/a.nfprof"), PathBuf::from("/dev/null")] {
        let output =
            Command::new(nearfar_bin()).args(["profile", "-o"]).arg(&path).args(["--", "true"]).output().expect("nearfar runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("-o "), "{}: {said}", path.display());
    }
    assert_eq!(std::fs::read_to_string(&text).expect("there"), "somebody's");
}

#[test]
fn status_and_summary() {
    let scratch = Scratch::new();
    let json = scratch.work().join("a.json");
    let mut command = Command::new(nearfar_bin());
    command.args(["profile", "-q", "--json"]).arg(&json).args(["--", "sh", "-c", "echo out; exit 7"]).current_dir(scratch.work());
    let output = command.output().expect("nearfar runs");
    assert_eq!((output.status.code(), &*output.stdout, &*output.stderr), (Some(7), &b"out\n"[..], &b""[..]));
    assert!(std::fs::read_to_string(&json).expect("there").contains("\"objects\"") && scratch.work().join("sh.nfprof").exists());
    let mut rank = Command::new(nearfar_bin());
    rank.args(["profile", "-q", "-o", "b.nfprof", "--", "true"]).current_dir(scratch.work());
    rank.env("OMPI_COMM_WORLD_RANK", "3").env("OMPI_COMM_WORLD_SIZE", "4");
    assert!(rank.status().expect("nearfar runs").success() && scratch.work().join("b.3.nfprof").exists());
}
