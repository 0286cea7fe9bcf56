//! `make soak MINUTES=n` or `HOURS=n`: round after round of everything at once, with random near sizes, denied facilities, failing
//! disks and a far that is too small. Fails on any wrong byte, on a hang (stacks are printed), on anything left behind. Each round
//! prints how it can be repeated, the end what was served.
//!
//! NEARFAR_SOAK_START=n repeats all rounds in their order, NEARFAR_SOAK_SEED=n one. NEARFAR_SOAK_FAULTS="spec;spec" takes the place of
//! `FAULTS` (empty: none). After a fault a program may also be stopped with status 86 and a message.

use crate::util::{TestProgram, compile, has, names_in, scratch_root, wait_for_space};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small generator, so that a seed repeats a round.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len() as u64) as usize]
    }
}

/// Programs of tests/programs that check themselves and end with OK, or print the same as without nearfar.
const PROGRAMS: [&str; 20] = [
    "fork_many.c",
    "fork_chain.c",
    "fork_threads.c",
    "fork_parent_writes.c",
    "lifecycle_exits.c",
    "lifecycle_clone.c",
    "lifecycle_vfork.c",
    "allocating_threads.c",
    "freeing_elsewhere.c",
    "thread_turnover.c",
    "profiling_timer.c",
    "own_fault_handlers.c",
    "mremap_moves.c",
    "reservation.c",
    "realloc_growth.c",
    "discards.c",
    "same_page.c",
    "socket_messages.c",
    "small_structs.c",
    "longjmp_out.c",
];

/// Given to every second round: disks that are slow, fail now and then, go bad for good, or are full.
const FAULTS: &str = "slow=300us;read-eio=every:101,write-eio=every:23,short-read=every:3,short-write=every:5,corrupt=every:127;\
                      write-eio=after:3000;corrupt=after:2000;full-after=48M;full-after=160M";

/// Stressors of stress-ng that verify their memory; sizes are set beside a near of 64 MiB or so.
const STRESSORS: [&[&str]; 10] = [
    &["--mremap", "1", "--mremap-bytes", "128m"],
    &["--clone", "1"],
    &["--vm", "2", "--vm-bytes", "160M"],
    &["--malloc", "2", "--malloc-bytes", "128M"],
    &["--mmap", "2", "--mmap-bytes", "96M"],
    &["--fork", "2"],
    &["--bigheap", "1", "--bigheap-growth", "1M", "--bigheap-ops", "300"],
    &["--matrix", "2", "--matrix-size", "1500"],
    &["--pthread", "2"],
    &["--sigsegv", "2"],
];

fn mix(dice: &mut Dice) -> TestProgram {
    let arguments = [
        format!("bytes={}M", 64 + dice.roll(160)),
        format!("threads={}", 1 + dice.roll(8)),
        format!("seconds={}", 3 + dice.roll(8)),
        format!("seed={}", dice.roll(1 << 30)),
        format!("buffer={}", dice.pick(&["malloc", "mmap", "bss"])),
    ];
    TestProgram::source("verify_mix.c").args(arguments)
}

fn torture(dice: &mut Dice) -> TestProgram {
    let arguments = [
        format!("bytes={}M", 48 + dice.roll(160)),
        format!("threads={}", 1 + dice.roll(8)),
        format!("seconds={}", 3 + dice.roll(8)),
        format!("seed={}", dice.roll(1 << 30)),
    ];
    TestProgram::source("torture.c").args(arguments)
}

fn storm(dice: &mut Dice) -> TestProgram {
    let mix = compile("verify_mix.c");
    // Several at once, of which some are killed on the way: the others must not feel it.
    let script = "for seed in $2 $(($2 + 1)) $(($2 + 2)); do \"$1\" bytes=64M threads=2 seconds=6 seed=$seed & kept=\"$kept $!\"; \
                  \"$1\" bytes=48M threads=2 seconds=60 seed=$seed > /dev/null & lost=\"$lost $!\"; done; \
                  sleep $3; kill -KILL $lost; for one in $kept; do wait $one || exit 9; done";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), mix.as_os_str()];
    let numbers = [dice.roll(1 << 30).to_string(), format!("0.{}", 1 + dice.roll(9))];
    TestProgram::command(["bash"]).args(arguments).args(numbers)
}

/// What came of the rounds.
#[derive(Default)]
struct Sum {
    rounds: u64,
    stopped: u64,
    faults: u64,
    forks: u64,
    moved_bytes: u64,
    retries: u64,
}

/// However the rounds end.
impl Drop for Sum {
    fn drop(&mut self) {
        let Self { rounds, stopped, faults, forks, moved_bytes, retries } = self;
        println!(
            "{rounds} rounds, {stopped} of them stopped by a fault made on purpose; {faults} page faults, {forks} forks, {:.1} GiB to \
             and from far, {retries} operations tried again",
            *moved_bytes as f64 / (1u64 << 30) as f64
        );
    }
}

fn round(seed: u64, faults: &[&str], sum: &mut Sum) {
    let mut dice = Dice(seed);
    dice.roll(2);
    let (program, right) = match dice.roll(12) {
        0..=1 => (mix(&mut dice), "OK\n"),
        2 => (storm(&mut dice), "OK\nOK\nOK\n"),
        3..=7 => (torture(&mut dice), "OK\n"),
        8 if has("stress-ng").is_ok() => {
            let mut arguments = vec!["--verify", "--timeout", "6", "--quiet", "--temp-path", "."];
            arguments.extend(dice.pick(&STRESSORS.map(|one| one)));
            (TestProgram::command(["stress-ng"]).args(arguments), "")
        }
        _ => (TestProgram::source(dice.pick(&PROGRAMS)).env("NEARFAR_TEST_SECONDS", "5"), "OK\n"),
    };
    let near = format!("{}M", 32 + dice.roll(96));
    let denied: Vec<&str> =
        ["move", "io_uring", "odirect", "thp", "awake", "kernel-faults"].into_iter().filter(|_| dice.roll(4) == 0).collect();
    let mut program = program.near(&near).limit_s(300);
    if !denied.is_empty() {
        program = program.options(["--deny", &denied.join(",")]);
    }
    if dice.roll(4) == 0 {
        program = program.env("NEARFAR_CHECK", "500");
    }
    if dice.roll(6) == 0 {
        program = program.far("emu:bw=3G,lat=15us");
    }
    let fault = (!faults.is_empty() && dice.roll(2) == 0).then(|| dice.pick(faults));
    if let Some(fault) = fault {
        // Every byte that is changed on its way is to be found.
        program = program.env("NEARFAR_FAULTS", fault).options(["--check"]);
    }
    println!("NEARFAR_SOAK_SEED={seed}: {program}");
    let under = program.nearfar();
    sum.rounds += 1;
    // None where a disk is full from the start.
    let counter = |name: &str| under.counter_if_written(name).unwrap_or(0);
    sum.faults += counter("faults");
    sum.forks += counter("forks");
    sum.moved_bytes += counter("bytes_in") + counter("bytes_out");
    sum.retries += counter("far_retries");
    // A program that was stopped, or whose children were, and said so; or one that had no memory where far is too small.
    let refused = fault.is_some_and(|fault| fault.starts_with("full")) && under.stderr.contains("nearfar: process");
    // (Programs whose child was stopped say that, or what it ended with.)
    let stopped = under.stderr.contains("nearfar: stopped") && under.end().1.is_none();
    // stress-ng misses the counts of a child that was stopped.
    let is_failure = |line: &&str| line.contains("fail:") && !line.contains("bogo-ops counter") && !line.contains("metrics");
    let failed = under.stderr.lines().any(|line| is_failure(&line));
    let wrong = under.stdout.contains("WRONG") || failed || under.stderr.contains("internal error");
    if fault.is_some() && !under.status.success() && (stopped || refused) && !wrong {
        sum.stopped += 1;
        return;
    }
    let said = under.stdout.lines().filter(|line| line.starts_with("OK")).count();
    let fine = under.status.success() && said >= right.lines().count();
    assert!(fine, "{program}\n{:?}\n{}{}", under.status, under.stdout, under.stderr);
    assert!(!under.stdout.contains("WRONG") && !under.stderr.contains("fail:"), "{}{}", under.stdout, under.stderr);
}

#[test]
#[ignore = "make soak MINUTES=n"]
fn everything_at_once() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let faults = std::env::var("NEARFAR_SOAK_FAULTS").unwrap_or_else(|_| FAULTS.to_owned());
    let faults: Vec<&str> = faults.split(';').filter(|spec| !spec.is_empty()).collect();
    let mut sum = Sum::default();
    if let Ok(seed) = variable("NEARFAR_SOAK_SEED").parse() {
        return round(seed, &faults, &mut sum);
    }
    let minutes: f64 = variable("NEARFAR_SOAK_MINUTES").parse().unwrap_or(10.0);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let shared = names_in(Path::new("/dev/shm"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let start = variable("NEARFAR_SOAK_START").parse().unwrap_or(now);
    println!("NEARFAR_SOAK_START={start} repeats these rounds");
    while Instant::now() < end {
        round(start * 100_000 + sum.rounds, &faults, &mut sum);
        assert_eq!(names_in(Path::new("/dev/shm")), shared, "left in /dev/shm");
    }
    println!("all right; NEARFAR_SOAK_START={start}");
    wait_for_space(&scratch_root());
}
