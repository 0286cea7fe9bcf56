//! No userfaultfd at all: the kernel pages a mapped file, and everything is as right as otherwise.

use crate::util::{MIB, Outcome, Scratch, TestProgram, compile, names_in, nearfar_bin, program_file, shared_machine};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DENY: [&str; 2] = ["--deny", "uffd"];

fn program(name: &str) -> TestProgram {
    TestProgram::source(name).options(DENY).limit_s(240)
}

/// The same results as without nearfar, and data left memory.
#[track_caller]
fn same(program: TestProgram) -> Outcome {
    let under = program.same().ok();
    assert!(under.counter("evicted_bytes") > 0, "nothing was paged");
    println!("near peak {} MiB, {} MiB out", under.counter("near_peak_bytes") / MIB, under.counter("bytes_out") / MIB);
    under
}

#[test]
fn mix_on_the_heap() {
    let mix = program("verify_mix.c").args(["bytes=192M", "threads=4", "seconds=3", "seed=21"]);
    assert!(mix.self_checked().counter("evicted_bytes") > 0);
}

#[test]
fn mix_in_a_mapping_with_the_least_near() {
    let mix = program("verify_mix.c").args(["bytes=96M", "threads=3", "seconds=3", "seed=22", "buffer=mmap"]).near("16M");
    assert!(mix.self_checked().counter("evicted_bytes") > 0);
}

#[test]
fn what_fits_in_near_is_left_alone() {
    let under = program("verify_mix.c").args(["bytes=32M", "threads=2", "seconds=2", "seed=23"]).near("256M").self_checked();
    assert_eq!((under.counter("evicted_bytes"), under.counter("over_budget_bytes")), (0, 0));
}

#[test]
fn numpy_programs() {
    needs!("numpy");
    // np.unique jumps about in its hash table: where the kernel read around each page, 8 MiB here, this took up to five minutes.
    for (name, near) in [("numpy_sort.py", "128M"), ("numpy_lu_solve.py", "160M")] {
        same(TestProgram::python(name).options(DENY).near(near).limit_s(300));
    }
}

#[test]
fn sqlite_in_memory() {
    needs!("sqlite3");
    let sqlite = TestProgram::command(["sqlite3", ":memory:"]).stdin(program_file("memory_tables.sql")).options(DENY);
    // With a third of its memory the kernel pages it for minutes.
    same(sqlite.near("128M").limit_s(240));
}

#[test]
fn allocations_of_every_kind() {
    program("malloc_api.c").same().ok();
    same(program("realloc_growth.c"));
    assert!(program("allocating_threads.c").env("NEARFAR_TEST_SECONDS", "4").self_checked().counter("evicted_bytes") > 0);
}

#[test]
fn mappings_of_every_kind() {
    for name in ["mremap_moves.c", "mprotect_read_only.c", "reservation.c", "unmap_middle.c", "advice.c"] {
        same(program(name));
    }
    program("unmapped_is_gone.c").same().ok();
    program("own_mappings_in_a_reservation.c").near("32M").same().ok();
}

#[test]
fn discarded_memory_is_zero() {
    // It writes gigabytes and checks all it reads by itself. By raw calls: advice.c is there for the library's.
    assert!(program("discards.c").args(["raw"]).self_checked().counter("evicted_bytes") > 0, "nothing was paged");
    program("zero_pages.c").args(["192M"]).same().ok();
}

#[test]
fn far_more_virtual_than_touched() {
    same(program("sparse_giant.c"));
}

#[test]
fn mlock_keeps_a_range_resident() {
    program("locked_range.c").same().ok();
}

#[test]
fn memory_that_becomes_executable() {
    same(program("executable_later.c"));
    TestProgram::source("executable_later.c").same().ok().paged();
}

#[test]
fn the_kernel_reads_and_writes_it() {
    same(program("whole_file.c").args(["256M"]));
    for name in ["direct_io.c", "socket_messages.c", "cross_memory.c"] {
        same(program(name));
    }
}

#[test]
fn forked_children_have_their_own_copy() {
    for name in ["fork_parent_writes.c", "fork_chain.c", "fork_threads.c", "fork_raw.c"] {
        same(program(name));
    }
    same(program("fork_many.c").args(["40M"]).near("32M"));
}

/// No file of its own can be had for the child: it goes on in ordinary memory, with the same data.
#[test]
fn a_child_without_far() {
    let under = same(program("fork_without_far.c"));
    assert_eq!(under.stderr.matches("goes on with ordinary memory").count(), 1, "{}", under.stderr);
}

#[test]
fn forks_that_execute() {
    assert_eq!(program("fork_then_exec.c").same().end(), (Some(6), None));
    for name in ["lifecycle_vfork.c", "lifecycle_fork_library_state.c", "lifecycle_clone.c", "lifecycle_closed_descriptors.c"] {
        program(name).same().ok();
    }
}

#[test]
fn python_multiprocessing_by_fork() {
    needs!("python3");
    same(TestProgram::python("multiprocessing_sums.py").options(DENY).near("128M").limit_s(300));
}

/// What the disk takes in time does not exceed near, but for what is read ahead and what one round misses.
#[test]
fn near_is_held_where_the_disk_keeps_up() {
    let under = same(program("slow_growth.c").args(["256M"]).alone());
    // Three times near is the margin, of four that it would be without: the thread that looks may have to wait for a CPU, and a
    // shared disk may stand still for a second.
    assert!(under.counter("near_peak_bytes") <= 192 * MIB, "near peak {} MiB of 64", under.counter("near_peak_bytes") / MIB);
}

#[test]
fn two_programs_share_near() {
    let slow = compile("slow_growth.c");
    let script = "\"$1\" 128M & one=$!; \"$1\" 128M & wait $one && wait $!";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), slow.as_os_str()];
    same(TestProgram::command(["bash"]).args(arguments).options(DENY).near("96M").limit_s(240));
}

fn text(output: &Output) -> String {
    format!("{:?}\n{}{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A filter denies userfaultfd, as container runtimes do: nearfar finds that out by itself, and says it once.
#[test]
fn a_filter_is_found_out() {
    needs!("root", "mounts");
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let mut command = Command::new(compile("without_uffd.c"));
    command.arg("hide").arg(nearfar_bin()).args(["run", "--near", "64M", "--far"]).arg(scratch.far()).arg("--");
    let output = command.arg(compile("touch.c")).args(["160M", "1"]).output().expect("runs");
    let said = text(&output);
    assert!(output.status.success() && output.stdout == b"OK 167772160\n", "{said}");
    assert_eq!(said.matches("there is no userfaultfd here").count(), 1, "{said}");
    assert!(said.contains("kernel paging of a mapped file"), "{said}");
    assert_eq!(names_in(&scratch.far()), [""; 0]);
}

/// A directory that every user may read, with copies of what is run there; removed at the end.
struct Public(PathBuf);

impl Public {
    fn with(programs: &[PathBuf]) -> Self {
        let dir = std::env::temp_dir().join(format!("nearfar-public-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("far")).expect("a directory");
        for (path, mode) in [(dir.clone(), 0o755), (dir.join("far"), 0o777)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("rights");
        }
        for program in programs {
            std::fs::copy(program, dir.join(program.file_name().expect("a name"))).expect("copied");
        }
        Self(dir)
    }
}

impl Drop for Public {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_ordinary_user_in_a_container() {
    needs!("root");
    let _beside = shared_machine();
    let bin = nearfar_bin();
    let names = ["verify_mix.c", "fork_parent_writes.c", "direct_io.c"];
    let mut files = vec![bin.clone(), bin.with_file_name("libnearfar.so"), compile("without_uffd.c")];
    files.extend(names.iter().map(|name| compile(name)));
    let public = Public::with(&files);
    for name in names {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(public.0.join("without_uffd"));
        command.arg(public.0.join("nearfar")).args(["run", "--near", "48M", "--far"]).arg(public.0.join("far")).arg("--");
        command.arg(public.0.join(Path::new(name).file_stem().expect("a stem"))).current_dir(public.0.join("far"));
        if name == "verify_mix.c" {
            command.args(["bytes=96M", "threads=2", "seconds=3", "seed=24"]);
        }
        let output = command.output().expect("runs");
        let said = text(&output);
        assert!(output.status.success() && output.stdout.starts_with(b"OK"), "{name}: {said}");
        assert!(said.contains("kernel paging of a mapped file"), "{name}: {said}");
    }
    assert_eq!(names_in(&public.0.join("far")), [""; 0]);
}

/// A small file system of its own: on it the program must end with words and status 86, not by SIGBUS.
#[test]
fn a_full_disk_is_told() {
    needs!("root", "mounts");
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let script = "cd \"$1\" && truncate -s 200M image && mkfs.ext4 -q -F image && mkdir disk && mount -o loop image disk || exit 99; \
        \"$2\" run --deny uffd --near 32M --far disk -- \"$3\" 512M; status=$?; umount disk; exit $status";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&scratch.0).arg(nearfar_bin()).arg(compile("far_full.c"));
    let output = command.output().expect("runs");
    if output.status.code() == Some(99) {
        println!("skipped: no loop mount here: {}", text(&output));
        return;
    }
    let said = text(&output);
    assert_eq!(output.status.code(), Some(86), "{said}");
    assert!(said.contains("the disk is full"), "{said}");
}

/// In an overlay, as containers have it, another file holds the pages than the one that is open.
#[test]
fn an_overlay_is_far_enough() {
    needs!("root", "mounts");
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let script = "cd \"$1\" && mkdir low up aside top && mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=aside top || exit 99; \
        \"$2\" run --deny uffd --near 64M --far top -- \"$3\" 160M && \"$2\" run --quiet --deny uffd --near 64M --far top -- \"$4\"; \
        status=$?; ls -A up; umount top; exit $status";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&scratch.0).arg(nearfar_bin());
    let output = command.arg(compile("slow_growth.c")).arg(compile("fork_parent_writes.c")).output().expect("runs");
    if output.status.code() == Some(99) {
        println!("skipped: no overlay here: {}", text(&output));
        return;
    }
    let said = text(&output);
    assert!(output.status.success() && output.stdout == b"OK 167772160\nOK\n", "{said}");
    assert!(said.contains("kernel paging of a mapped file"), "{said}");
}

/// The mapping is terabytes of holes, which the kernel would write out as zeros.
#[test]
fn core_dumps_stay_small() {
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let script = "ulimit -c unlimited; ulimit -f 4000000; \"$1\" run --quiet --deny uffd --near 64M --far \"$2\" -- \"$3\" 96M abort; \
        du -sm . | cut -f1";
    let mut command = Command::new("bash");
    command
        .args(["-c", script, "bash"])
        .arg(nearfar_bin())
        .arg(scratch.far())
        .arg(compile("touch.c"))
        .current_dir(scratch.work());
    let output = command.output().expect("runs");
    let megabytes: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    assert!(megabytes < 256, "a core of {megabytes} MiB");
}

/// Far must be a file on a disk; everything else is refused before anything starts.
#[test]
fn what_the_kernel_cannot_page_is_refused() {
    for far in ["emu:bw=2G,lat=20us", "/dev/shm"] {
        let output =
            Command::new(nearfar_bin()).args(["run", "--deny", "uffd", "--far", far, "--", "true"]).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{far}: {}", text(&output));
    }
}
