//! Paging with the userfaultfd that ordinary users get, which misses the kernel's own accesses (docs/explanation/user-mode.md): forced by
//! `--deny kernel-faults`, and once as an ordinary user.

use crate::util::{ForOthers, TestProgram, program_file, python};
use std::path::Path;

/// Other programs than those need no more than what is tested elsewhere: nothing of them is handed to the kernel.
fn caught(program: TestProgram) {
    let under = program.options(["--deny", "kernel-faults"]).limit_s(300).same().ok();
    // Not `paged`: what is lent to the kernel may exceed near for a moment.
    assert!(under.counter("bytes_in") > 0 && under.counter("bytes_out") > 0, "nothing was paged");
    assert!(under.counter("calls_caught") > 0, "no system call was caught");
}

fn same(name: &str) {
    TestProgram::source(name).options(["--deny", "kernel-faults"]).limit_s(300).same().ok();
}

programs! {
    calls_of_every_kind: caught(TestProgram::source("kernel_calls.c"));
    one_read_and_one_write_of_a_big_file: caught(TestProgram::source("whole_file.c").args(["256M"]));
    messages_over_sockets_and_pipes: caught(TestProgram::source("socket_messages.c"));
    small_structures: caught(TestProgram::source("small_structs.c"));
    direct_io_under_eviction: caught(TestProgram::source("direct_io.c").near("96M"));
    paged_stacks: caught(TestProgram::source("lifecycle_paged_stacks.c"));
}

#[test]
fn signals_and_odd_times() {
    for name in ["own_fault_handlers.c", "profiling_timer.c", "malloc_at_odd_times.c", "longjmp_out.c"] {
        same(name);
    }
}

#[test]
fn forks_and_children() {
    for name in
        ["fork_parent_writes.c", "fork_chain.c", "fork_threads.c", "fork_raw.c", "lifecycle_vfork.c", "exec_environment.c"]
    {
        same(name);
    }
    let under = TestProgram::source("fork_then_exec.c").options(["--deny", "kernel-faults"]).same().paged();
    assert_eq!(under.end(), (Some(6), None), "{}{}", under.stdout, under.stderr);
}

#[test]
fn random_work_on_all_of_memory() {
    let arguments = ["bytes=128M", "threads=4", "seconds=2", "seed=12"];
    let program = TestProgram::source("verify_mix.c").args(arguments).options(["--deny", "kernel-faults"]);
    program.self_checked().paged();
}

#[test]
fn without_moving_pages_as_well() {
    let program = TestProgram::source("small_structs.c").options(["--deny", "kernel-faults,move"]).limit_s(300);
    program.same().ok().paged();
}

/// A program that is not position independent and has no handler inherits the filter, and notices nothing.
#[test]
fn static_children_of_a_process_that_pages() {
    needs!("python3", "libc.a");
    let script = "import subprocess, os\nheld = bytearray(160 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n\
        open('s.c', 'w').write('#include <sys/uio.h>\\n#include <stdio.h>\\nint main(){struct iovec v={\"writev\\\\n\",7};\
        writev(1,&v,1);puts(\"puts\");return 3;}')\n\
        for how in ['-static', '-static-pie']:\n    subprocess.check_call(['gcc', how, '-o', 's', 's.c'])\n    \
        print(subprocess.run(['./s'], capture_output=True))\nprint(sum(held[::4096]))";
    caught(TestProgram::command([python()]).args(["-c", script]).near("64M"));
}

#[test]
fn numpy_pickle_to_file_and_back() {
    needs!("numpy");
    caught(TestProgram::python("numpy_pickle.py").near("192M"));
}

#[test]
fn python_multiprocessing_by_fork() {
    needs!("python3");
    caught(TestProgram::python("multiprocessing_sums.py").near("128M"));
}

#[test]
fn sqlite_in_memory() {
    needs!("sqlite3");
    let program = TestProgram::command(["sqlite3", ":memory:"]).stdin(program_file("memory_tables.sql")).near("48M");
    program.options(["--deny", "kernel-faults"]).limit_s(300).same().ok().paged();
}

#[test]
fn lammps_melt() {
    needs!("lmp");
    let script = "lmp -var side 28 -in \"$1\" -log none -screen none && cat melt.txt";
    let melt = program_file("melt.in");
    let arguments = ["-c".as_ref(), script.as_ref(), "sh".as_ref(), melt.as_os_str()];
    let program = TestProgram::command(["sh"]).args(arguments).env("OMPI_MCA_btl", "self").env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    let program = program.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").near("32M").options(["--deny", "kernel-faults"]);
    program.limit_s(300).same().ok().paged();
}

#[test]
fn c_compiler() {
    needs!("gcc");
    let script = "i=0; while [ $i -lt 200 ]; do echo \"int f$i(int a, int *b) { int s = $i; for (int i = 0; i < a; i++) { \
        s += b[i] * $i + (b[i] ^ s); if (s & 1) b[i] = s / 3; else b[(i * 7) % a] -= s % 11; } return s; }\"; i=$((i+1)); done > big.c \
        && gcc -O2 -c big.c -o big.o && sha256sum big.o && rm big.o";
    let program = TestProgram::command(["sh", "-c", script]).near("32M").options(["--deny", "kernel-faults"]);
    program.limit_s(300).same().ok().paged();
}

/// The example of the README, as a user without any rights but to read (the Python of a test machine may be root's).
#[test]
fn an_ordinary_user() {
    needs!("root", "numpy");
    if std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|text| text.trim() != "0") {
        println!("skipped: vm.unprivileged_userfaultfd gives every user the other kind of userfaultfd");
        return;
    }
    let _machine = crate::util::machine();
    let place = ForOthers::new("rights");
    let caps = "-all,+dac_read_search";
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["--inh-caps", caps, "--ambient-caps", caps, "--bounding-set", caps]);
    command.arg(place.0.join("nearfar")).args(["run", "--near", "96M", "--far"]).arg(place.0.join("far"));
    let script = "import numpy, os\na = numpy.ones(30_000_000)\na.tofile('far/a')\n\
        b = numpy.fromfile('far/a')\nprint(os.getuid(), a.sum(), (a == b).all())\nos.remove('far/a')";
    command.arg("--").arg(python()).args(["-c", script]).current_dir(&place.0);
    let output = command.output().expect("setpriv");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "65534 30000000.0 True\n");
    assert_eq!(said.matches("caught one by one").count(), 1, "{said}");
    assert!(said.contains("GiB in") || said.contains("MiB in"), "nothing was paged: {said}");
    assert_eq!(crate::util::names_in(Path::new(&place.0.join("far"))), [""; 0]);
}

/// io_uring leaves what has to wait to threads of its own, which `ulimit -u` counts. Where it may have none the pager does it.
#[test]
fn no_threads_for_io_uring() {
    needs!("root");
    let _machine = crate::util::machine();
    let place = ForOthers::new("threads");
    let touch = place.0.join("touch");
    std::fs::copy(crate::util::compile("touch.c"), &touch).expect("copy");
    let mut paged = false;
    for most in 4..7 {
        let mut command = std::process::Command::new("setpriv");
        // A user that nobody else is: the limit is one of the user's.
        command.args(["--reuid", "64206", "--regid", "64206", "--clear-groups", "bash", "-c"]);
        command.arg(format!("ulimit -u {most}; exec ./nearfar run --deny odirect --near 64M --far far -- ./touch 200M 2"));
        let output = command.current_dir(&place.0).output().expect("setpriv");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{most}: {:?}\n{said}", output.status);
        assert!(!said.contains("tried again"), "{most}: {said}");
        paged |= said.contains("MiB in");
    }
    assert!(paged, "there was never a thread to page with");
}
