//! One small survey per mistake that people make, and quiet on what is right.

use super::*;
use crate::affinity::{ObjectPages, Pool, Rank};
use crate::node::{MemoryKind, MemoryNode};

/// Two packages of two cores with two hardware threads each; a node per package.
fn survey(processes: Vec<Process>) -> Survey {
    let place = |cpu: u32| Placement { cpu, package: Some(cpu / 4), core: Some(cpu / 2 % 2), node: Some(cpu / 4) };
    let node = |id: u32, cpus: &str| MemoryNode { id, bytes: 64 << 30, cpus: cpus.parse().unwrap(), ..MemoryNode::default() };
    Survey {
        seconds: 10.0,
        looks: 100,
        placement: (0..8).map(place).collect(),
        nodes: vec![node(0, "0-3"), node(1, "4-7")],
        processes,
        ..Survey::default()
    }
}

fn busy(tid: u32, allowed: &str, cpu: u32) -> Thread {
    Thread {
        tid,
        name: "prog".into(),
        last_s: 10.0,
        cpu_s: 9.0,
        watched_s: 10.0,
        cpu: Some(cpu),
        seen: vec![(cpu, 90)],
        allowed: allowed.parse().unwrap(),
        ..Thread::default()
    }
}

fn process(threads: Vec<Thread>) -> Process {
    let allowed = threads.iter().flat_map(|thread| thread.allowed.as_slice().iter().copied()).collect();
    Process { pid: 7, name: "prog".into(), threads, allowed, ..Process::default() }
}

fn openmp(mut process: Process, settings: &[(&str, &str)]) -> Process {
    process.openmp = vec!["libgomp.so.1".into()];
    process.settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    crate::affinity::number_threads(&mut process);
    process
}

fn crowding(most: u32, cpus: u32, over: u32) -> Crowding {
    Crowding { looks: 100, most, cpus, over, ..Crowding::default() }
}

fn words(survey: &Survey) -> String {
    let lines = judge(survey).into_iter().map(|warning| format!("{warning}\n  {}\n", warning.advice()));
    lines.collect()
}

#[test]
fn a_well_placed_program_is_left_in_peace() {
    let threads = vec![busy(1, "0", 0), busy(2, "2", 2), busy(3, "4", 4), busy(4, "6", 6)];
    let mut process = openmp(process(threads), &[("OMP_NUM_THREADS", "4")]);
    process.crowding = crowding(4, 4, 0);
    assert_eq!(words(&survey(vec![process])), "");
}

#[test]
fn more_threads_than_cpus() {
    let threads = (1..=4).map(|tid| busy(tid, "0-1", tid % 2)).collect();
    let mut process = openmp(process(threads), &[("OMP_NUM_THREADS", "4")]);
    process.crowding = crowding(4, 2, 80);
    let said = words(&survey(vec![process.clone()]));
    assert!(said.contains("4 threads wanted to run at once on 2 CPUs") && said.contains("OMP_NUM_THREADS=2"), "{said}");
    assert!(!said.contains("nested"), "{said}");
    process.crowding.over = 1;
    assert_eq!(words(&survey(vec![process.clone()])), "", "one look is chance");
    process.crowding = Crowding { looks: 4, over: 2, ..process.crowding };
    assert_eq!(words(&survey(vec![process])), "", "and so is a start of which there are few looks");
}

#[test]
fn nested_teams() {
    let threads = (1..=4).map(|tid| busy(tid, "0-7", tid)).collect();
    let mut process = openmp(process(threads), &[("OMP_NUM_THREADS", "2")]);
    process.crowding = crowding(4, 8, 0);
    let said = words(&survey(vec![process.clone()]));
    assert!(said.contains("nested OpenMP: 4 busy threads") && said.contains("OMP_MAX_ACTIVE_LEVELS=1"), "{said}");
    process.pools = vec![Pool::Mkl];
    let said = words(&survey(vec![process]));
    assert!(said.contains("MKL_NUM_THREADS=1"), "{said}");
}

#[test]
fn ranks_and_threads() {
    let rank = |number: u32, cpus: &str| {
        let threads = (0..4).map(|index| busy(number * 10 + index, cpus, 0)).collect();
        let mut process = openmp(process(threads), &[("OMP_NUM_THREADS", "4")]);
        process.pid = number;
        process.rank = Some(Rank { number, source: "OMPI_COMM_WORLD_RANK", launcher: Launcher::OpenMpi });
        process
    };
    let mut free = survey(vec![rank(0, "0-7"), rank(1, "0-7"), rank(2, "0-7")]);
    free.crowding = crowding(12, 8, 90);
    let said = words(&free);
    assert!(said.contains("3 MPI ranks x 4 OpenMP threads = 12 threads on 8 CPUs"), "{said}");
    assert!(said.contains("OMP_NUM_THREADS=2 and start with mpirun --map-by slot:PE=2 --bind-to core"), "{said}");
    assert!(!said.contains("all processes together"), "said once: {said}");
    // Bound to a core each, as mpirun does by itself: the usual mistake.
    let mut bound = rank(0, "0-1");
    bound.crowding = crowding(4, 2, 90);
    let said = words(&survey(vec![bound, rank(1, "2-5")]));
    assert!(said.contains("give every rank more CPUs: mpirun --map-by slot:PE=4"), "{said}");
}

#[test]
fn threads_pinned_together() {
    let said = words(&survey(vec![process(vec![busy(1, "3", 3), busy(2, "3", 3), busy(3, "5", 5)])]));
    assert!(said.contains("2 busy threads are pinned together to CPU 3"), "{said}");
    let said = words(&survey(vec![process(vec![busy(1, "2", 2), busy(2, "3", 3), busy(3, "0-7", 5)])]));
    assert!(said.contains("hardware threads of shared cores (CPUs 2-3) while 3 cores had none"), "{said}");
    let mut one_after_another = vec![busy(1, "3", 3), busy(2, "3", 3), busy(3, "5", 5)];
    (one_after_another[0].last_s, one_after_another[1].first_s) = (4.0, 5.0);
    assert_eq!(words(&survey(vec![process(one_after_another)])), "");
}

#[test]
fn threads_that_wander_or_pile_up() {
    let mut wanderer = busy(1, "0-7", 1);
    wanderer.moves = 60;
    let said = words(&survey(vec![openmp(process(vec![wanderer]), &[])]));
    assert!(said.contains("changed CPU often") && said.contains("OMP_PROC_BIND=close OMP_PLACES=cores"), "{said}");
    let mut piled = survey(vec![process(vec![busy(1, "0-7", 1), busy(2, "0-7", 1)])]);
    piled.crowding = Crowding { stacked: 70, ..crowding(2, 8, 0) };
    assert!(words(&piled).contains("at 70 % of the looks two threads were on one CPU"), "{}", words(&piled));
}

fn pages(by_node: &[(u32, u64)], policy: &str) -> Pages {
    let bytes = by_node.iter().map(|(_, bytes)| bytes).sum();
    let heap = ObjectPages {
        object: Object::Anonymous,
        bytes,
        by_node: by_node.iter().copied().collect(),
        huge_bytes: bytes,
        swap_bytes: 0,
    };
    Pages { at_s: 1.0, nodes_known: true, objects: vec![heap], policies: BTreeMap::from([(policy.to_owned(), bytes)]) }
}

#[test]
fn pages_on_the_wrong_node() {
    let mut remote = process(vec![busy(1, "0-3", 0), busy(2, "0-3", 1)]);
    remote.memory = Some(pages(&[(0, 1 << 28), (1, 3 << 28)], "bind:1"));
    let said = words(&survey(vec![remote]));
    assert!(said.contains("75 % of its data lie on node 1 (policy bind:1)") && said.contains("--membind=0"), "{said}");
    let mut first_touch = process(vec![busy(1, "0-3", 0), busy(2, "4-7", 5)]);
    first_touch.memory = Some(pages(&[(0, 1 << 30)], "default"));
    let said = words(&survey(vec![first_touch.clone()]));
    assert!(said.contains("one thread touched them first") && said.contains("--interleave=all"), "{said}");
    first_touch.memory = Some(pages(&[(0, 1 << 20)], "default"));
    assert_eq!(words(&survey(vec![first_touch])), "", "too little to matter");
}

#[test]
fn pages_in_far_memory() {
    let mut flat = process(vec![busy(1, "0-3", 0)]);
    flat.memory = Some(pages(&[(0, 8 << 30)], "default"));
    let mut survey = survey(vec![flat]);
    survey.nodes[0].kind = MemoryKind::Dram;
    survey.nodes[1] = MemoryNode { id: 1, bytes: 16 << 30, free_bytes: 15 << 30, kind: MemoryKind::Hbm, ..MemoryNode::default() };
    let said = words(&survey);
    assert!(said.contains("8.0 GiB of the data of process 7 lie in far memory") && said.contains("--preferred-many=1"), "{said}");
}

#[test]
fn limits_from_outside() {
    let mut limited = survey(vec![process(vec![busy(1, "0-7", 0)])]);
    limited.crowding = crowding(8, 8, 0);
    limited.limits.quota_cpus = Some(2.0);
    limited.limits.throttled = Some(41);
    limited.limits.memory_bytes = Some(1 << 30);
    limited.limits.memory_used_bytes = Some(1000 << 20);
    let said = words(&limited);
    assert!(said.contains("2.0 CPUs of time, and 8 threads") && said.contains("stopped 41 times"), "{said}");
    assert!(said.contains("1000.0 MiB of its memory limit of 1.0 GiB"), "{said}");
}

#[test]
fn small_pages_and_swap() {
    let mut plain = process(vec![busy(1, "0-7", 0)]);
    let mut memory = pages(&[(0, 1 << 30)], "default");
    memory.objects[0].huge_bytes = 0;
    memory.objects[0].swap_bytes = 1 << 29;
    plain.memory = Some(memory);
    let mut survey = survey(vec![plain]);
    survey.limits.huge_pages = Some("madvise".into());
    let said = words(&survey);
    assert!(
        said.contains("GLIBC_TUNABLES=glibc.malloc.hugetlb=1") && said.contains("512.0 MiB of process 7 are in swap"),
        "{said}"
    );
    survey.limits.huge_pages = None;
    assert!(!words(&survey).contains("small pages"), "a kernel without huge pages cannot be told to use them");
}
