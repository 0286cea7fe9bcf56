//! Paging itself: right content under every kind of pressure, no needless writes, faults of the program's own, every facility denied in turn.

use crate::util::{MIB, TestProgram, compile};

fn verify_mix(arguments: &[&str]) -> TestProgram {
    TestProgram::source("verify_mix.c").args(arguments)
}

programs! {
    mix_on_the_heap: verify_mix(&["bytes=192M", "threads=4", "seconds=4", "seed=1"]).self_checked().paged();
    mix_in_a_mapping: verify_mix(&["bytes=192M", "threads=3", "seconds=3", "seed=2", "buffer=mmap"]).self_checked().paged();
    mix_in_a_static_array: verify_mix(&["bytes=192M", "threads=2", "seconds=3", "seed=3", "buffer=bss"]).self_checked().paged();
    mix_with_one_thread: verify_mix(&["bytes=128M", "threads=1", "seconds=3", "seed=4"]).near("32M").self_checked().paged();
    mix_with_many_threads: verify_mix(&["bytes=128M", "threads=16", "seconds=3", "seed=5"]).near("48M").self_checked().paged();
    mix_with_the_least_near: verify_mix(&["bytes=96M", "threads=4", "seconds=3", "seed=6"]).near("16M").self_checked().paged();
    mix_that_just_overflows_near:
        verify_mix(&["bytes=72M", "threads=4", "seconds=3", "seed=7"]).near("64M").self_checked().paged();
}

#[test]
fn mix_that_fits_in_near() {
    let under = verify_mix(&["bytes=32M", "threads=4", "seconds=3", "seed=8"]).near("256M").self_checked();
    assert_eq!(under.counter("bytes_in"), 0, "nothing needed to be paged");
}

#[test]
fn mix_over_emulated_far_memory() {
    verify_mix(&["bytes=160M", "threads=4", "seconds=3", "seed=9"]).far("emu:bw=2G,lat=20us").self_checked().paged();
}

/// The last stream has 48 blocks; what earlier ones left behind must not keep it from being read ahead.
#[test]
fn streams_that_ended_do_not_stop_prefetch() {
    let under = TestProgram::source("dead_streams.c").near("32M").alone().self_checked().paged();
    let ahead = under.counter("faults_staged") + under.counter("faults_late");
    assert!(ahead >= 40, "{ahead} faults found data brought ahead");
}

/// Nine tenths of near hold what is used over and over; with an eighth of it set aside whatever the program does, as it was once,
/// 0.34 GB were read with 60000 faults.
#[test]
fn data_that_nearly_fills_near_stays() {
    let under = TestProgram::source("nearly_fits.c").args(["58"]).near("64M").self_checked().paged();
    assert!(under.counter("bytes_in") < 4 * 58 * MIB, "{} bytes read", under.counter("bytes_in"));
    let again = under.counter("faults_demand") + under.counter("faults_staged") + under.counter("faults_rescued");
    assert!(again < 30_000, "{again} faults on what had been there");
}

/// A small run of everything without one facility of the kernel: the fallback must be as right as the fast path.
fn denied(what: &str) {
    let deny = ["--deny", what];
    verify_mix(&["bytes=128M", "threads=4", "seconds=3", "seed=10"]).options(deny).self_checked().paged();
    for name in ["realloc_growth.c", "mremap_moves.c", "fork_chain.c", "socket_messages.c"] {
        TestProgram::source(name).options(deny).same().ok().paged();
    }
}

programs! {
    denied_io_uring: denied("io_uring");
    denied_direct_io: denied("odirect");
    denied_moves: denied("move");
    denied_huge_pages: denied("thp");
    denied_everything_at_once: denied("io_uring,odirect,move,thp");
    static_arrays: TestProgram::source("static_arrays.c").near("80M").same().ok().paged();
}

#[test]
fn zeros_are_not_written() {
    let under = TestProgram::source("zero_pages.c").args(["192M"]).same().ok();
    // One page of 64 of the second block holds something: 3 MiB, written a few times at most, in units of up to 64 KiB or so.
    assert!(under.counter("bytes_out") < 64 * MIB, "{} bytes written", under.counter("bytes_out"));
}

#[test]
fn clean_pages_are_not_written_twice() {
    let under = TestProgram::source("read_only_sweeps.c").args(["160M", "6"]).same().ok().paged();
    assert!(under.counter("bytes_out") <= 176 * MIB, "{} bytes written", under.counter("bytes_out"));
    assert!(under.counter("bytes_in") >= 6 * (160 - 64) * MIB, "{} bytes read", under.counter("bytes_in"));
}

#[test]
fn own_fault_handlers_get_real_faults() {
    TestProgram::source("own_fault_handlers.c").same().ok().paged();
}

#[test]
fn timers_interrupt_faults() {
    TestProgram::source("profiling_timer.c").self_checked().paged();
}

#[test]
fn two_programs_page_side_by_side() {
    let mix = compile("verify_mix.c");
    let script = "\"$1\" bytes=96M seconds=3 seed=1 & first=$!; \"$1\" bytes=96M seconds=3 seed=2 threads=2 & second=$!; wait $first && wait $second";
    let arguments = ["-c".as_ref(), script.as_ref(), "bash".as_ref(), mix.as_os_str()];
    TestProgram::command(["bash"]).args(arguments).same().ok().paged();
}

/// Whatever is brought at once, results are the same, and the run file says what was asked for.
#[test]
fn any_grain_gives_the_same() {
    for (grain, options) in [("4K", &[][..]), ("16K", &["--deny", "kernel-faults"]), ("64K", &[]), ("2M", &["--deny", "move"])] {
        let mix = verify_mix(&["bytes=96M", "threads=3", "seconds=2"]).near("40M").options(["--grain", grain]);
        let under = mix.options(options.iter().copied()).nearfar().ok();
        assert_eq!(under.stdout, "OK\n", "{grain}");
        let file = under.run_file();
        assert_eq!(file["grain"], grain);
        let count = |name: &str| file["counters"][name].as_u64().expect(name);
        assert_eq!(count("prefetch_bytes"), 0, "nothing comes ahead");
        let sizes = ["demand_4k", "demand_64k", "demand_256k", "demand_2m"].map(count);
        assert!(count("faults_demand") > 0 && sizes.iter().sum::<u64>() == count("faults_demand"), "{grain}: {sizes:?}");
        let allowed = match grain {
            "4K" => 1,
            "2M" => 4,
            _ => 2,
        };
        assert!(sizes[allowed..].iter().all(|&reads| reads == 0), "{grain}: {sizes:?}");
        assert_eq!(count("read_around_bytes") > 0, grain != "4K");
    }
}
