//! `nearfar doctor`: what this kernel and user allow, what follows from it, and how to get the rest.

mod row;
mod speed;

use crate::cli::doctor::DoctorArgs;
use crate::files::spill_dir::FarDir;
use crate::launch::library;
use crate::machine::{self, Machine, read};
use crate::run::binding;
use crate::run::paging::{self, HOW_TO_GET_UFFD};
use crate::run::surroundings;
use nearfar_core::node::{MemoryKind, MemoryNode, Topology};
use nearfar_core::placement::{NodeSet, nodes};
use nearfar_core::policy::read_around::MUCH;
use nearfar_core::units::Bytes;
use nearfar_kinds::choice;
use nearfar_kinds::environment::Environment;
use nearfar_sys::kernel::{self, Denied, Paging};
use nearfar_sys::numa;
use nearfar_sys::page_cache::{self, ReadAround};
use nearfar_sys::rlimit::{Limit, limit};
use nearfar_sys::root::Root;
use nearfar_sys::seccomp;
use nearfar_sys::tiering::Tiering;
use nearfar_sys::uffd::FaultScope;
use nearfar_sys::visits;
use row::{Row, State, row, table};
use speed::{Speed, Unmeasured};
use std::path::Path;
use std::process::ExitCode;

/// Prints the table; succeeds when `nearfar run` would work.
pub fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let machine = Machine::this();
    let mut rows = match surroundings::problem() {
        // What would be read of /proc would not be true.
        Some(problem) => vec![row("surroundings", State::No, problem)],
        None => examine(&args.far, args.kernel.deny),
    };
    let blocked = |rows: &[Row]| rows.iter().filter(|row| row.state == State::No).count();
    if blocked(&rows) == 0 && !args.quick {
        rows.push(speed(Speed::measure(&args.far, args.kernel.deny)));
    }
    let blocked = blocked(&rows);
    let table = table(&rows);
    let verdict = match blocked {
        0 => "nearfar run works here".to_owned(),
        _ => format!("nearfar run does not work here: see the rows marked {}", State::No.word()),
    };
    let text = format!("{}, {} CPUs, Linux {}\n{table}\n{verdict}\n", machine.cpu, machine.cpus, machine.kernel);
    // A reader that closed the pipe has seen enough.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    Ok(if blocked == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn examine(far: &Path, denied: Denied) -> Vec<Row> {
    let paging = paging::paging(denied);
    let mut rows = vec![
        userfaultfd(paging, seccomp::is_available()),
        moving(paging.filter(|_| !denied.has("move"))),
        io_uring(denied),
        waking(denied),
    ];
    rows.extend(far_rows(far, denied));
    if paging::kernel_pages(denied)
        && let Some(around) = std::fs::File::open(far).ok().and_then(|dir| page_cache::read_around(&dir))
    {
        rows.push(read_ahead(&around));
    }
    rows.push(match library::find() {
        Ok(path) => row("library", State::Good, path.display().to_string()),
        Err(error) => row("library", State::No, error.to_string()),
    });
    rows.push(memory());
    rows.push(huge_pages(kernel::huge_pages().as_deref().filter(|_| !denied.has("thp"))));
    rows.push(overcommit(&read("/proc/sys/vm/overcommit_memory")));
    rows.push(mappings(&read("/proc/sys/vm/max_map_count")));
    rows.push(limits(limit(Limit::AddressSpace), limit(Limit::LockedMemory), limit(Limit::FileSize)));
    rows.extend(nodes_rows(&nearfar_sys::machine::topology(&Root::this()), placing(), Environment::this()));
    rows.push(swap_comparison());
    rows.extend(migration(&Root::this()));
    rows
}

/// Whether memory can be given to nodes.
fn placing() -> Result<(), String> {
    let here: NodeSet = [numa::here().1].into_iter().collect();
    binding::try_placing(&here)
}

fn nodes_rows(topology: &Topology, placing: Result<(), String>, environment: &Environment) -> Vec<Row> {
    let mut rows = Vec::new();
    let one = |node: &MemoryNode| {
        let cpus = match node.cpus.is_empty() {
            true => "no CPUs".to_owned(),
            false => format!("CPUs {}", node.cpus),
        };
        let may = if node.allowed { "" } else { ", not for this process" };
        format!("node {}: {cpus}, {} ({} free) of {}{may}", node.id, Bytes(node.bytes), Bytes(node.free_bytes), kind(node))
    };
    let all: Vec<String> = topology.nodes.iter().map(one).collect();
    let shown = if all.is_empty() { "none found".to_owned() } else { all.join("; ") };
    rows.push(row("NUMA nodes", State::Good, shown));
    let gpu = nodes::gpu_nodes(topology);
    rows.push(match nodes::tiers_of(topology) {
        Some(found) if placing.is_err() => row(
            "tiers",
            State::Note,
            format!(
                "near would be {}, far {}, but memory cannot be placed on them (see placing): without --near and --far it is paged",
                nodes::name(topology, &found.near),
                nodes::name(topology, &found.far),
            ),
        ),
        Some(found) => row(
            "tiers",
            State::Good,
            format!(
                "near: {}, far: {}; {}. \"nearfar run\" uses them when neither --near nor --far is given",
                nodes::name(topology, &found.near),
                nodes::name(topology, &found.far),
                found.why
            ),
        ),
        None if !gpu.is_empty() => row(
            "tiers",
            State::Good,
            format!("{} is left to the GPU unless it is named: \"nearfar run --far node:{gpu}\"", nodes::name(topology, &gpu)),
        ),
        None if nodes::usable(topology).len() > 1 => row(
            "tiers",
            State::Good,
            "one kind of memory, or none is known to be faster; \"nearfar run --near node:0 --far node:1\" makes any pair near and far",
        ),
        None => row("tiers", State::Good, "one node: near is a budget of its memory, far a directory or emulated"),
    });
    rows.push(match placing {
        Ok(()) => row("placing", State::Good, "memory can be placed on nodes (mbind), and so can whole programs (set_mempolicy)"),
        Err(why) => row("placing", State::Note, format!("memory cannot be placed on nodes: {why}")),
    });
    rows.push(hbw(topology, environment));
    rows
}

fn kind(node: &MemoryNode) -> &'static str {
    if node.kind == MemoryKind::Unknown { "unknown kind" } else { node.kind.name() }
}

/// Whether memkind's interface finds high-bandwidth memory, as it decides itself, and why not.
fn hbw(topology: &Topology, environment: &Environment) -> Row {
    let what = "hbw_malloc";
    let named = matches!(environment.hbw_nodes, Ok(Some(_)));
    let is_ours_to_say = matches!(environment.hbw_nodes, Ok(None));
    match choice::high_bandwidth_nodes(topology, environment) {
        Ok(found) => {
            let by = if named { " (MEMKIND_HBW_NODES)" } else { "" };
            row(what, State::Good, format!("high-bandwidth memory is {}{by}", nodes::name(topology, &found)))
        }
        // An ordinary machine.
        Err(unavailable) if is_ours_to_say => {
            row(what, State::Good, format!("{}; MEMKIND_HBW_NODES=0 lets programs that use it run on node 0", unavailable.why))
        }
        Err(unavailable) => row(what, State::Note, format!("{}; hbw_malloc finds no memory", unavailable.why)),
    }
}

/// Bytes that Linux reads around a missing page where nobody set anything else.
const USUAL_READ_AHEAD: u64 = 128 << 10;

const KERNEL_PAGES: &str = "the kernel pages a mapped file instead: slower, and near is held less closely";

fn userfaultfd(paging: Option<Paging>, catching: bool) -> Row {
    let what = "userfaultfd";
    match paging.map(|paging| paging.scope) {
        Some(Ok(FaultScope::UserAndKernel)) => {
            row(what, State::Good, "serves the program's accesses and the kernel's own on its behalf")
        }
        Some(Ok(FaultScope::UserOnly)) if catching => row(
            what,
            State::Slower,
            format!(
                "the kind this user gets misses the kernel's own accesses: system calls on paged memory are caught one by one (seccomp), \
                 which costs a few microseconds each. Not covered: io_uring of the program (refused), memory that other processes, debuggers and core dumps read, Java's heap and large static arrays \
                 (they stay in ordinary memory), setuid programs started by a process that pages (docs/explanation/user-mode.md). For \
                 the other kind: {HOW_TO_GET_UFFD}"
            ),
        ),
        Some(Ok(FaultScope::UserOnly)) => row(
            what,
            State::Slower,
            format!(
                "the kind this user gets misses the kernel's own accesses (read(2) into paged memory would fail), and system calls \
                 cannot be caught (seccomp filters, on x86-64); {KERNEL_PAGES}; {HOW_TO_GET_UFFD}"
            ),
        ),
        Some(Err(errno)) => row(
            what,
            State::Slower,
            format!("{errno}; {KERNEL_PAGES}; {HOW_TO_GET_UFFD}; a container's seccomp filter may forbid it too"),
        ),
        None => row(what, State::Slower, format!("switched off by --deny; {KERNEL_PAGES}")),
    }
}

fn moving(paging: Option<Paging>) -> Row {
    let what = "moving pages";
    match paging {
        Some(Paging { can_move: true, .. }) => row(what, State::Good, "pages are moved into place (UFFDIO_MOVE)"),
        Some(Paging { scope: Ok(_), .. }) => {
            row(what, State::Slower, "pages are copied into place; Linux 6.8 and later can move them")
        }
        // The kernel pages.
        _ => row(what, State::Slower, "nothing to move pages with (see userfaultfd)"),
    }
}

fn io_uring(denied: Denied) -> Row {
    let what = "io_uring";
    if denied.has("io_uring") {
        return row(what, State::Slower, "switched off by --deny; threads do the I/O");
    }
    match nearfar_sys::io_uring::Ring::new() {
        Ok(_) => row(what, State::Good, "far is read and written without a thread per operation"),
        Err(errno) => {
            let cure = match read("/proc/sys/kernel/io_uring_disabled").trim() {
                "1" | "2" => "as root: \"sysctl kernel.io_uring_disabled=0\"",
                _ => "a filter of system calls (seccomp) forbids it, as those of containers do",
            };
            row(what, State::Slower, format!("{errno}; threads do the I/O; {cure}"))
        }
    }
}

fn waking(denied: Denied) -> Row {
    let what = "quick wake-up";
    if denied.has("awake") {
        return row(what, State::Slower, "switched off by --deny; CPUs may sleep while threads wait for far");
    }
    match nearfar_sys::pm_qos::LatencyRequest::open() {
        Ok(_) => row(what, State::Good, "CPUs are kept from deep sleep while threads wait for many reads (/dev/cpu_dma_latency)"),
        Err(errno) => row(
            what,
            State::Slower,
            format!(
                "/dev/cpu_dma_latency: {errno}; CPUs may sleep while threads wait for far, and wake up late; root can change that"
            ),
        ),
    }
}

fn far_rows(named: &Path, denied: Denied) -> Vec<Row> {
    let far = match FarDir::open(named, !denied.has("odirect")) {
        Ok(far) => far,
        Err(error) => return vec![row("far", State::No, error.to_string())],
    };
    let shown = far.path.display();
    let free = Bytes(far.file_system.free);
    let space = if far.file_system.in_memory {
        row("far", State::Note, format!("{shown}: {free} free, but in memory; name a directory on a disk with --far"))
    } else {
        row("far", State::Good, format!("{shown}: {free} free"))
    };
    let direct = if far.direct {
        row("direct I/O", State::Good, format!("{shown} bypasses the page cache"))
    } else {
        row("direct I/O", State::Slower, format!("{shown} has none: the page cache is used, which takes memory beyond near"))
    };
    vec![space, direct]
}

/// What the kernel reads around a page of far that is missing, where it does the paging.
fn read_ahead(around: &ReadAround) -> Row {
    let bytes = Bytes(around.bytes);
    if around.bytes <= MUCH {
        return row("read-ahead", State::Good, format!("the kernel reads {bytes} around a page that is missing"));
    }
    row(
        "read-ahead",
        State::Slower,
        format!(
            "the kernel reads {bytes} around a page that is missing: programs that jump about take many times as long; as root: \
             \"echo {} > {}\"",
            USUAL_READ_AHEAD >> 10,
            around.setting
        ),
    )
}

fn memory() -> Row {
    let limit = machine::memory_limit();
    let whose = if limit.by_cgroup { "allowed by this cgroup" } else { "in this machine" };
    row("memory", State::Good, format!("{} {whose}; --near is at most that", Bytes(limit.bytes)))
}

fn huge_pages(setting: Option<&str>) -> Row {
    let what = "huge pages";
    match setting {
        Some(word @ ("always" | "madvise")) => row(what, State::Good, format!("transparent huge pages: {word}")),
        _ => row(
            what,
            State::Slower,
            "none: every page is small; as root: \"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\"",
        ),
    }
}

fn overcommit(setting: &str) -> Row {
    let what = "overcommit";
    match setting {
        "2" => row(
            what,
            State::Note,
            "vm.overcommit_memory=2: the kernel counts paged memory as if it were near, so large programs may get ENOMEM; \
             as root: \"sysctl vm.overcommit_memory=0\"",
        ),
        other => row(what, State::Good, format!("vm.overcommit_memory={other}")),
    }
}

fn mappings(setting: &str) -> Row {
    const USUAL: u64 = 65530;
    let what = "mappings";
    match setting.parse::<u64>() {
        Ok(count) if count < USUAL => {
            row(what, State::Note, format!("vm.max_map_count={count} is low; as root: \"sysctl vm.max_map_count={USUAL}\""))
        }
        _ => row(what, State::Good, format!("vm.max_map_count={setting}")),
    }
}

fn limits(address_space: Option<u64>, locked: Option<u64>, file: Option<u64>) -> Row {
    let what = "limits";
    let shown = |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |bytes| Bytes(bytes).to_string());
    let words = format!("address space: {}, locked memory: {}, file size: {}", shown(address_space), shown(locked), shown(file));
    if address_space.is_some() || file.is_some() {
        let why = "nearfar reserves address space far beyond memory, and far is one file; lift them with \"ulimit -v unlimited -f unlimited\"";
        return row(what, State::Note, format!("{words}; {why}"));
    }
    row(what, State::Good, words)
}

/// Whether a slower path here is a bad one.
fn speed(measured: Result<Speed, Unmeasured>) -> Row {
    let what = "speed";
    match measured {
        Ok(speed) if speed.exceeds_near() => row(what, State::Slower, speed.words()),
        Ok(speed) => row(what, State::Good, speed.words()),
        Err(Unmeasured::Broken(why)) => row(what, State::No, why),
        Err(Unmeasured::Unknown(why)) => row(what, State::Note, format!("could not be measured: {why}")),
    }
}

/// Cache mode between NUMA nodes: who could move pages, and by what visits can be seen. Nothing on machines with one node.
fn migration(root: &Root) -> Option<Row> {
    let what = "cache on nodes";
    if root.numbered("/sys/devices/system/node", "node").len() < 2 {
        return None;
    }
    let tiering = Tiering::of(root);
    let kernel = if tiering.promotes() {
        "the kernel's tiering is on (kernel.numa_balancing includes 2) and moves pages between its tiers; "
    } else {
        ""
    };
    let offers = visits::offers();
    let best = offers.iter().find(|(_, offer)| offer.is_ok());
    Some(match best {
        Some((means, _)) => row(what, State::Good, format!("{kernel}nearfar sees which pages are visited by {means}")),
        None => {
            let why: Vec<&str> = offers.iter().filter_map(|(_, offer)| Some(offer.as_ref().err()?.as_str())).collect();
            let why = why.join("; ");
            row(
                what,
                State::Note,
                format!("{kernel}pages stay where they were touched first: {why}; see docs/explanation/numa-cache.md"),
            )
        }
    })
}

/// Whether `nearfar bench` can put kernel swap beside nearfar: it takes a memory cgroup, of either version, and root.
fn swap_comparison() -> Row {
    let what = "bench: swap";
    let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
    let has_v2 = read("/sys/fs/cgroup/cgroup.controllers").split(' ').any(|name| name == "memory");
    let root = match (v1.join("memory.limit_in_bytes").exists(), has_v2) {
        (true, _) => v1,
        (false, true) => v2,
        (false, false) => return row(what, State::Note, "there is no cgroup memory controller: bench leaves kernel swap out"),
    };
    match nearfar_sys::place::may_write(root) {
        Ok(()) => row(what, State::Good, "bench can hold kernel swap to the same memory (memory cgroup)"),
        Err(_) => row(what, State::Note, "bench leaves kernel swap out: only root may make the memory cgroup that this needs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_sys::errno::Errno;

    #[test]
    fn what_blocks_and_what_only_slows() {
        let paging = |scope, can_move| Some(Paging { scope, can_move });
        assert_eq!(userfaultfd(paging(Ok(FaultScope::UserAndKernel), true), false).state, State::Good);
        assert_eq!(userfaultfd(paging(Ok(FaultScope::UserOnly), true), true).state, State::Slower);
        for kernel in [paging(Ok(FaultScope::UserOnly), true), paging(Err(Errno(1)), false), None] {
            assert_eq!(userfaultfd(kernel, false).state, State::Slower);
        }
        assert_eq!(moving(paging(Ok(FaultScope::UserAndKernel), false)).state, State::Slower);
        assert_eq!(io_uring(Denied::parse("io_uring").expect("known")).state, State::Slower);
        assert_eq!(far_rows(Path::new("/no/such/directory"), Denied(0))[0].state, State::No);
        let around = |kib: u64| read_ahead(&ReadAround { bytes: kib << 10, setting: "/sys/x/read_ahead_kb".into() });
        assert_eq!((around(128).state, around(8192).state), (State::Good, State::Slower));
        assert!(around(8192).words.ends_with("\"echo 128 > /sys/x/read_ahead_kb\""), "{}", around(8192).words);
        assert_eq!((huge_pages(Some("never")).state, huge_pages(None).state), (State::Slower, State::Slower));
        assert_eq!((overcommit("2").state, overcommit("0").state), (State::Note, State::Good));
        assert_eq!((mappings("1000").state, mappings("1048576").state), (State::Note, State::Good));
        assert_eq!((limits(Some(1 << 30), None, None).state, limits(None, Some(1), None).state), (State::Note, State::Good));
    }

    #[test]
    fn nodes_and_what_they_are_for() {
        let captured = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/machines/{name}.capture"));
            nearfar_sys::machine::topology(&Root::open(&path).expect("a capture"))
        };
        let knl = captured("knl-snc4-flat");
        let words = |topology: &Topology, placing: Result<(), &str>, named: Option<&str>| -> String {
            let environment =
                Environment::parse(|name| (name == "MEMKIND_HBW_NODES").then(|| named.map(str::to_owned)).flatten());
            let rows = nodes_rows(topology, placing.map_err(str::to_owned), &environment);
            rows.into_iter().map(|row| row.words + "\n").collect()
        };
        let all = words(&knl, Ok(()), None);
        for part in
            ["node 4: no CPUs, ", "near: HBM on nodes 4-7, far: DRAM on nodes 0-3", "high-bandwidth memory is HBM on nodes 4-7"]
        {
            assert!(all.contains(part), "{part}\n{all}");
        }
        let denied = words(&knl, Err("set_mempolicy: not here"), None);
        assert!(denied.contains("nodes: set_mempolicy: not here") && denied.contains("it is paged"), "{denied}");
        let two = captured("two-sockets-sapphire-rapids");
        let all = words(&two, Ok(()), None);
        for part in ["makes any pair near and far", "no memory of high bandwidth (MEMKIND_HBW_NODES"] {
            assert!(all.contains(part), "{part}\n{all}");
        }
        assert!(words(&captured("grace-hopper"), Ok(()), None).contains("node 1 is left to the GPU"));
        // As the library takes it, however it is written.
        assert!(
            words(&two, Ok(()), Some("1")).contains("is DRAM on node 1 (MEMKIND_HBW_NODES)"),
            "{}",
            words(&two, Ok(()), Some("1"))
        );
        for bad in ["7", "HBM", " 1", ""] {
            let environment = Environment::parse(|name| (name == "MEMKIND_HBW_NODES").then(|| bad.to_owned()));
            let library = choice::high_bandwidth_nodes(&two, &environment);
            let found = hbw(&two, &environment);
            assert_eq!(found.state == State::Good, library.is_ok(), "{bad:?}: {}", found.words);
            assert!(found.words.contains("MEMKIND_HBW_NODES"), "{bad:?}: {}", found.words);
        }
    }

    #[test]
    fn the_table_shows_every_row() {
        let rows = examine(Path::new("/var/tmp"), Denied(0));
        let text = table(&rows).to_string();
        assert!(rows.iter().all(|row| text.contains(row.what)), "{text}");
    }
}
