//! Where a program runs: the file systems that users have for far, and control groups of version 2, as the kernel of a guest has them.

use crate::guest::Guest;
use crate::util::*;
use std::process::Command;

/// Runs it with far on what `mount` makes: shell in a directory for what lies below, with `$far`. Nobody else sees the mount. `None`, and
/// the reason printed, where it cannot be made.
fn mounted(program: &TestProgram, mount: &str) -> Option<Outcome> {
    let _beside = shared_machine();
    let scratch = Scratch::new();
    let under = program.command_under_nearfar(&scratch);
    let mut command = Command::new("unshare");
    // What a process that has ended had open may be closed a moment later.
    let script = format!(
        "far=$1 store=$2; shift 2; mkdir \"$store\" && cd \"$store\" && {{ {mount}; }} && mountpoint -q \"$far\" || exit 99
         trap 'umount -l \"$far\"' EXIT; cd ../work; \"$@\"; status=$?; [ -z \"$killer\" ] || wait $killer
         for i in $(seq 50); do left=$(ls -A \"$far\" | grep -vx lost+found); [ \"$left\" ] || exit $status; sleep 0.1; done
         echo \"left in far: $left\" >&2; exit 98"
    );
    command.args(["--mount", "bash", "-c", &script, "bash"]).arg(scratch.far()).arg(scratch.0.join("store"));
    command.arg(under.get_program()).args(under.get_args());
    let outcome = program.outcome(command, &scratch);
    if outcome.status.code() == Some(99) {
        println!("skipped: this cannot be mounted here: {mount}: {}", outcome.stderr);
        return None;
    }
    Some(outcome)
}

fn mix_on(mount: &str) {
    for deny in ["", "odirect", "odirect,io_uring"] {
        let mix = TestProgram::source("verify_mix.c").args(["bytes=96M", "threads=2", "seconds=1", "seed=31"]).near("32M");
        let Some(outcome) = mounted(&mix.options(["--check", "--deny", deny]), mount) else { return };
        assert_eq!(outcome.ok().paged().stdout, "OK\n", "{deny}");
    }
}

const LOOP: &str = "mount -o loop disk \"$far\"";
const SERVED: &str =
    "bindfs -f . \"$far\" & server=$!; until mountpoint -q \"$far\"; do kill -0 $server || exit 99; sleep 0.05; done";

programs! {
    far_on_xfs (needs "root", "mounts", "mkfs.xfs"): mix_on(&format!("truncate -s 2G disk && mkfs.xfs -q disk && {LOOP}"));
    far_on_btrfs (needs "root", "mounts", "mkfs.btrfs"): mix_on(&format!("truncate -s 2G disk && mkfs.btrfs -q disk >&2 && {LOOP}"));
    /// As in a container.
    far_on_overlayfs (needs "root", "mounts"):
        mix_on("mkdir low up work && mount -t overlay -o lowerdir=low,upperdir=up,workdir=work far \"$far\"");
    /// As over a network, a file that has no name any more keeps a hidden one, and another process has to answer.
    far_on_fuse (needs "root", "mounts", "bindfs"): mix_on(SERVED);
}

/// Its server dies: nothing can be read any more, and the program must neither go on nor wait for ever.
#[test]
fn a_far_directory_that_vanishes() {
    needs!("root", "mounts", "bindfs");
    // The server lives until the program, which verifies for ever then, has filled its memory.
    let until_ready = "until grep -qx ready ../stdout; do kill -0 $$ || exit; sleep 0.05; done";
    let dies = format!("({until_ready}; kill -9 $server; stat -c 'left with %a: %n' .fuse_hidden*) >&2 & killer=$!");
    let program = TestProgram::source("touch.c").args(["200M", "ready"]).near("64M");
    let Some(outcome) = mounted(&program, &format!("{SERVED}; {dies}")) else { return };
    assert_eq!(outcome.end(), (Some(86), None), "{}", outcome.stderr);
    // What SECURITY.md says is left.
    for words in ["left with 600: .fuse_hidden", "failed 4 times: Transport endpoint is not connected"] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
}

/// What the guest does in a group of 128 MiB without swap. Its disk is as slow as its processor.
const IN_A_GROUP: &str = r#"
mkdir /far && mount -t ext4 /dev/nvme0n1 /far && cd /sys/fs/cgroup && echo +memory +cpu > cgroup.subtree_control && mkdir job half
echo 128M > job/memory.max; echo 0 > job/memory.swap.max; echo 50000 100000 > half/cpu.max
within() { sh -c 'echo $$ > /sys/fs/cgroup/$0/cgroup.procs; exec "$@"' "$@"; }
echo "== held"; within job nearfar run --near 64M --far /far -- touch 200M 2 2>&1; echo "status $?"; cat job/memory.peak
echo "== half"; within job nearfar run --far /far -- touch 100M 1 2>&1; echo "status $?"
echo "== container"; within job /usr/bin/unshare --cgroup --mount sh -c 'cd / && umount /sys/fs/cgroup && mount -t cgroup2 own /sys/fs/cgroup; nearfar doctor --quick --far /far'
echo "== cpus"; within half nearfar doctor --quick --far /far
echo "== events"; grep oom_kill job/memory.events
echo "== killed"; within job nearfar run --near 128M --far /far -- touch 200M 2 2>&1; echo "status $?"
"#;

#[test]
fn a_group_of_version_2_bounds_and_kills() {
    needs!("guest");
    let scratch = Scratch::new();
    let disk = scratch.work().join("disk");
    let made = std::fs::File::create(&disk).and_then(|file| file.set_len(1 << 30)).and_then(|()| {
        let at = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        Command::new("mkfs.ext4").env("PATH", at).arg("-q").arg(&disk).status()
    });
    if !made.as_ref().is_ok_and(std::process::ExitStatus::success) {
        return println!("skipped: mkfs.ext4: {made:?}");
    }
    let ran = Guest::new("single")
        .limit_s(600)
        .disk(&disk)
        .program("touch.c")
        .file("/usr/bin/unshare", "/usr/bin/unshare")
        .run(IN_A_GROUP);
    let part = |name: &str, words: &[&str]| {
        let part = ran.part(name);
        words.iter().for_each(|words| assert!(part.contains(words), "{name}: no {words:?} in\n{part}"));
        part
    };
    // The kernel counts what the pager needs, too, and what is read and written without the page cache is not there.
    let held = part("held", &["OK 209715200", "status 0"]);
    let peak: u64 = held.lines().last().and_then(|line| line.parse().ok()).expect("memory.peak");
    assert!((64 * MIB..80 * MIB).contains(&peak), "{peak} bytes");
    part("half", &["OK 104857600", "of 64.0 MiB", "status 0"]);
    part("container", &["128.0 MiB allowed by this cgroup"]);
    part("cpus", &[" 1 CPUs"]);
    part("events", &["oom_kill 0"]);
    part("killed", &["killed 1 process for want of memory in this cgroup, whose limit is 128.0 MiB", "status 137"]);
}
