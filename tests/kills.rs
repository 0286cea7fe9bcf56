//! SIGKILL at random moments, of the program or of nearfar: no process, file or shared memory is left, and the disk is free again.

use crate::util::{Scratch, TestProgram, descendants, machine, names_in, wait_for_space, wait_gone};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How many moments: NEARFAR_TEST_KILLS; soak takes 200.
fn moments() -> u64 {
    std::env::var("NEARFAR_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(16)
}

fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.subsec_nanos().into());
    std::env::var("NEARFAR_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(now)
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn nothing_is_left_after_any_moment() {
    let _machine = machine();
    let scratch = Scratch::new();
    let shared = names_in(Path::new("/dev/shm"));
    let seed = seed();
    println!("NEARFAR_TEST_SEED={seed} repeats the moments");
    let mut state = seed;
    for moment in 0..moments() {
        let delay = Duration::from_micros(random(&mut state) % 400_000);
        let whom = random(&mut state) % 3;
        let arguments = ["bytes=96M", "threads=2", "seconds=60", &format!("seed={moment}")].map(str::to_owned);
        // Forks too: each process has a store of its own.
        let program = match random(&mut state) % 3 {
            0 => TestProgram::source("fork_many.c").near("32M"),
            _ => TestProgram::source("verify_mix.c").args(arguments).near("32M"),
        };
        let mut command = program.command_under_nearfar(&scratch);
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).current_dir(scratch.work()).process_group(0);
        let mut nearfar = command.spawn().expect("nearfar starts");
        std::thread::sleep(delay);
        let all = descendants(nearfar.id());
        println!("moment {moment}: after {delay:?}, {} processes, kind {whom}", all.len());
        // The program, or nearfar first and then the rest, or all at once.
        let victims: Vec<u32> = match whom {
            0 => all.iter().copied().filter(|&pid| pid != nearfar.id()).collect(),
            1 => std::iter::once(nearfar.id()).chain(all.iter().copied().filter(|&pid| pid != nearfar.id())).collect(),
            _ => all.clone(),
        };
        victims.iter().for_each(|&pid| kill(pid));
        if whom != 0 || victims.is_empty() {
            kill(nearfar.id());
        }
        // What was forked between looking and killing.
        let begin = Instant::now();
        loop {
            let rest = descendants(nearfar.id());
            rest.iter().filter(|&&pid| whom != 0 || pid != nearfar.id()).for_each(|&pid| kill(pid));
            match nearfar.try_wait().expect("wait") {
                Some(_) if descendants(nearfar.id()).is_empty() => break,
                _ => assert!(begin.elapsed() < Duration::from_secs(20), "processes of {rest:?} still live"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        wait_gone(&all);
        assert_eq!(names_in(&scratch.far()), [""; 0], "left in the far directory");
        assert_eq!(names_in(Path::new("/dev/shm")), shared, "left in /dev/shm");
    }
    wait_for_space(&scratch.far());
}

fn kill(pid: u32) {
    if Path::new(&format!("/proc/{pid}")).exists() {
        crate::util::kill_all(&[pid]);
    }
}
