//! `make soak MINUTES=n`: round after round of everything at once, with random near sizes and denied facilities. Fails on any
//! wrong byte, on a hang (stacks are printed), on anything left behind. Each round prints how it can be repeated.
//!
//! NEARFAR_SOAK_SEED=n repeats one round; NEARFAR_SOAK_FAULTS="spec;spec" gives some rounds one of these as NEARFAR_FAULTS,
//! after which a program may also be stopped with status 86 and a message.

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

/// Stressors of stress-ng that verify their memory; sizes are set beside a near of 64 MiB or so. Without mremap: it moves shared
/// mappings by MREMAP_FIXED to addresses of the arena, which is refused (ENOMEM).
const STRESSORS: [&[&str]; 8] = [
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

fn round(seed: u64, faults: &[&str]) {
    let mut dice = Dice(seed);
    dice.roll(2);
    let (program, right) = match dice.roll(8) {
        0..=2 => (mix(&mut dice), "OK\n"),
        3 => (storm(&mut dice), "OK\nOK\nOK\n"),
        4 if has("stress-ng").is_ok() => {
            let mut arguments = vec!["--verify", "--timeout", "6", "--quiet", "--temp-path", "."];
            arguments.extend(dice.pick(&STRESSORS.map(|one| one)));
            (TestProgram::command(["stress-ng"]).args(arguments), "")
        }
        _ => (TestProgram::source(dice.pick(&PROGRAMS)).env("NEARFAR_TEST_SECONDS", "5"), "OK\n"),
    };
    let near = format!("{}M", 32 + dice.roll(96));
    let denied: Vec<&str> = ["move", "io_uring", "odirect", "thp", "awake"].into_iter().filter(|_| dice.roll(4) == 0).collect();
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
        program = program.env("NEARFAR_FAULTS", fault);
    }
    println!("NEARFAR_SOAK_SEED={seed}: {program}");
    let under = program.nearfar();
    let stopped = under.end() == (Some(86), None) || under.end() == (Some(9), None);
    if fault.is_some() && stopped && under.stderr.contains("nearfar: stopped") && !under.stdout.contains("WRONG") {
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
    let faults = variable("NEARFAR_SOAK_FAULTS");
    let faults: Vec<&str> = faults.split(';').filter(|spec| !spec.is_empty()).collect();
    if let Ok(seed) = variable("NEARFAR_SOAK_SEED").parse() {
        return round(seed, &faults);
    }
    let minutes: f64 = variable("NEARFAR_SOAK_MINUTES").parse().unwrap_or(10.0);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let shared = names_in(Path::new("/dev/shm"));
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let mut rounds = 0;
    while Instant::now() < end {
        round(start * 1000 + rounds, &faults);
        assert_eq!(names_in(Path::new("/dev/shm")), shared, "left in /dev/shm");
        rounds += 1;
    }
    println!("{rounds} rounds");
    wait_for_space(&scratch_root());
}
