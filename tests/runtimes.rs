//! Programs whose memory a language's runtime keeps, in a third of what they have resident plainly: the same output, within
//! near.

use crate::util::{MIB, Outcome, TestProgram, program_file};

/// Runs `program` in a third of its largest resident set.
fn in_a_third(program: TestProgram) -> Outcome {
    let program = program.watched().limit_s(600);
    let plain = program.plain().ok();
    let near = plain.peak_resident / 3;
    let under = program.near(&near.to_string()).nearfar().ok();
    assert_eq!(plain.stdout, under.stdout, "not the same under nearfar\n{}", under.stderr);
    let said = under.counter("near_peak_bytes");
    println!("resident {}, near {near}, said {said}", plain.peak_resident);
    // After a fork what is shared counts twice (docs/reference/promises-and-limits.md).
    assert!(under.counter("forks") > 0 || said <= near + near / 1000, "near_peak_bytes {said} is over near {near}");
    under
}

/// The run file tells that there is memory beside near.
fn beside_near(under: &Outcome) {
    let resident = under.run_file()["resident_peak_bytes"].as_u64().expect("bytes");
    let near = under.counter("near_peak_bytes");
    assert!(resident > near + 64 * MIB, "resident {resident}, near {near}");
}

fn java(collector: &str) -> Outcome {
    in_a_third(TestProgram::command(["java", "-Xmx1g", collector]).args([program_file("HeapArrays.java")]).args(["250"]))
}

#[test]
fn java_g1() {
    needs!("java");
    java("-XX:+UseG1GC").paged();
}

#[test]
fn java_parallel() {
    needs!("java");
    java("-XX:+UseParallelGC").paged();
}

#[test]
fn java_serial() {
    needs!("java");
    java("-XX:+UseSerialGC").paged();
}

/// Its heap is shared memory, which is not managed: the run file shows it.
#[test]
fn java_z() {
    needs!("java");
    let under = java("-XX:+UseZGC");
    beside_near(&under);
}

#[test]
fn node() {
    needs!("node");
    in_a_third(TestProgram::command(["node"]).args([program_file("heap_objects.js")])).paged();
}

#[test]
fn go_with_c() {
    needs!("go", "gcc");
    in_a_third(TestProgram::source("heap_blocks.go")).paged();
}

#[test]
fn python_dict_and_pool() {
    needs!("python3");
    in_a_third(TestProgram::python("dict_pool.py")).paged();
}
