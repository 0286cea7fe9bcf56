//! The part of a request that is about paging: how large near is, where far is, what the kernel offers for it.

use crate::cli::run::{Commit, DEFAULT_FAR, Heap, RunArgs};
use crate::exit::refuse;
use crate::files::spill_dir::{FarDir, MIN_FREE};
use crate::machine::{self, MemoryLimit};
use crate::run::binding;
use crate::run::placement::PlacementRequest;
use crate::run::plan_file::PlanFile;
use crate::run::tiers::Paged;
use nearfar_core::addr::PAGE;
use nearfar_core::mode::Mode;
use nearfar_core::node::Topology;
use nearfar_core::placement::{NodeSet, nodes};
use nearfar_core::policy::fetch_grain::Grain;
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use nearfar_sys::kernel::{self, Denied, Paging};
use nearfar_sys::numa::MemoryPolicy;
use nearfar_sys::place;
use nearfar_sys::seccomp;
use nearfar_sys::uffd::FaultScope;
use nearfar_tiers::job::Settings;
use nearfar_tiers::mapped::Mapped;
use std::path::{Path, PathBuf};

/// Less near than this cannot hold the pager's own tables and a few blocks in flight.
pub const MIN_NEAR: u64 = 16 << 20;
/// Percent of memory that are near when nobody says.
const HALF: f64 = 50.0;

/// What a paged job is told.
pub struct PagedJob {
    /// Everything but the smallest size and the trace.
    pub settings: Settings,
    /// The plan, in flat and hybrid mode.
    pub plan: Option<PlanFile>,
    /// Nodes that near is taken from, when they were named.
    pub memory: Option<MemoryPolicy>,
}

impl PagedJob {
    /// Checks the part of `args` that is about paging. `topology` is asked for when nodes are named.
    pub fn new(
        paged: &Paged,
        args: &RunArgs,
        topology: impl FnOnce() -> Topology,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<Self> {
        let denied = args.kernel.deny;
        let way = check_paging(denied);
        if matches!(way, Way::Caught) {
            notes.push(USER_ONLY.to_owned());
        }
        let half = NearSpec::Percent(HALF);
        let near = paged.near.as_ref().unwrap_or(&half);
        let (near, memory) = match &paged.on {
            Some(on) => (near_on_nodes(near, on, &topology())?, Some(MemoryPolicy::new(binding::preferred(on), *on))),
            None => (near_bytes(near, machine::memory_limit())?, None),
        };
        let usual = FarSpec::Path(DEFAULT_FAR.to_owned());
        let mut settings = far_settings(near, paged.far.as_ref().unwrap_or(&usual), denied, notes)?;
        let requested = PlacementRequest::of_budget(paged.mode, args, near, MIN_NEAR)?;
        settings.placement = requested.placement;
        notes.extend(requested.notes);
        settings.heap_all = args.heap == Heap::All;
        settings.strict = args.commit == Commit::Strict;
        settings.far_max = args.far_max.map_or(Ok(0), far_max)?;
        settings.denied = denied.0;
        settings.check_rounds = check_rounds()?;
        settings.core_on_stop = std::env::var_os("NEARFAR_CORE").is_some_and(|text| text == "1");
        settings.encrypt = args.encrypt;
        settings.compare_all = args.check;
        settings.faults = args.faults;
        if settings.faults.any() {
            notes.push(format!("far fails on purpose: {}", settings.faults));
        }
        settings.user_only = matches!(way, Way::Caught);
        if let Way::Kernel(why) = &way {
            by_kernel(why, paged.mode, args, &mut settings, notes)?;
        }
        Ok(Self { settings, plan: requested.plan, memory })
    }

    /// How far is named in files and messages.
    pub fn far_name(&self) -> String {
        far_name(&self.settings)
    }
}

/// There is no userfaultfd: the kernel pages a mapped file, as far as that can be done.
fn by_kernel(why: &str, mode: Mode, args: &RunArgs, settings: &mut Settings, notes: &mut Vec<String>) -> anyhow::Result<()> {
    settings.kernel_paging = true;
    check_far_for_kernel(settings)?;
    if mode != Mode::Cache {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, and no object could be kept near; write --mode cache, or {HOW_TO_GET_UFFD}"
        )));
    }
    if args.trace.is_some() {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, and visits to its pages could not be recorded: leave --trace out, or {HOW_TO_GET_UFFD}"
        )));
    }
    if args.grain != Grain::Auto {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, and decides by itself how much to read: leave --grain out, or {HOW_TO_GET_UFFD}"
        )));
    }
    if args.check {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, and checks nothing of it: leave --check out, or {HOW_TO_GET_UFFD}"
        )));
    }
    if settings.far_max > 0 {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, and nobody could bound it: leave --far-max out, use a disk quota, or {HOW_TO_GET_UFFD}"
        )));
    }
    if settings.encrypt {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, which cannot be encrypted: leave --encrypt out, or {HOW_TO_GET_UFFD}"
        )));
    }
    if settings.faults.any() {
        return Err(refuse(format_args!(
            "{why}: the kernel would page a mapped file, where no faults can be made: unset NEARFAR_FAULTS, or {HOW_TO_GET_UFFD}"
        )));
    }
    notes.push(format!(
        "{why}: the kernel pages a mapped file in {}, which is slower and holds near less closely (docs/reference/promises-and-limits.md)",
        settings.far_dir()
    ));
    Ok(())
}

fn near_bytes(spec: &NearSpec, limit: MemoryLimit) -> anyhow::Result<u64> {
    let bytes = spec.budget(limit.bytes).unwrap_or(0);
    if bytes > limit.bytes {
        let what = if limit.by_cgroup { "the memory limit of this cgroup" } else { "this machine's memory" };
        return Err(refuse(format_args!("--near {spec} is more than {what} ({}); write less, or 50%", Bytes(limit.bytes))));
    }
    enough(spec, bytes)
}

/// A budget of what the nodes have free, or of what was asked for.
fn near_on_nodes(spec: &NearSpec, on: &NodeSet, topology: &Topology) -> anyhow::Result<u64> {
    let have = nodes::bytes(topology, on);
    let bytes = spec.budget(have).unwrap_or_else(|| nodes::free_bytes(topology, on));
    if bytes > have {
        return Err(refuse(format_args!("--near {spec} is more than there is on these nodes ({}); write less", Bytes(have))));
    }
    enough(spec, bytes)
}

fn enough(spec: &NearSpec, bytes: u64) -> anyhow::Result<u64> {
    if bytes < MIN_NEAR {
        return Err(refuse(format_args!("--near {spec} is too little to work with; write {} or more", Bytes(MIN_NEAR).exact())));
    }
    Ok(bytes / PAGE as u64 * PAGE as u64)
}

fn far_max(bytes: Bytes) -> anyhow::Result<u64> {
    if bytes.0 < MIN_FREE {
        return Err(refuse(format_args!(
            "--far-max {} is too little to work with; write {} or more",
            bytes.exact(),
            Bytes(MIN_FREE).exact()
        )));
    }
    Ok(bytes.0)
}

/// Tests and people who look for a bug have the page table checked in every so many rounds of each pager.
fn check_rounds() -> anyhow::Result<u32> {
    let Some(text) = std::env::var_os("NEARFAR_CHECK") else { return Ok(0) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| refuse(format_args!("NEARFAR_CHECK={} is not a number of rounds", text.display())))
}

/// What the kernel lets the pager do, less what is denied.
pub fn paging(denied: Denied) -> Option<Paging> {
    (!denied.has("uffd")).then(|| kernel::paging(denied))
}

/// How an ordinary user gets a userfaultfd that also serves the kernel's own accesses.
pub const HOW_TO_GET_UFFD: &str = "as root: \"sysctl vm.unprivileged_userfaultfd=1\", or give the user access to /dev/userfaultfd, \
                                   or run with CAP_SYS_PTRACE";

/// How this run pages.
enum Way {
    /// By a userfaultfd that serves the program and the kernel's own accesses.
    Full,
    /// By one that misses the kernel's own accesses: system calls on paged memory are caught.
    Caught,
    /// The kernel pages a mapped file; why.
    Kernel(String),
}

/// Said where system calls are caught.
const USER_ONLY: &str = "this user's userfaultfd misses the kernel's own accesses, so system calls on paged memory are caught one \
                         by one, which costs a few microseconds each; \"nearfar doctor\" says what is not covered and how to get \
                         the other kind";

/// Whether the kernel would page a mapped file.
pub fn kernel_pages(denied: Denied) -> bool {
    matches!(check_paging(denied), Way::Kernel(_))
}

fn check_paging(denied: Denied) -> Way {
    let Some(paging) = paging(denied) else {
        return Way::Kernel("userfaultfd is switched off by --deny".to_owned());
    };
    match paging.scope {
        Ok(FaultScope::UserAndKernel) => Way::Full,
        Ok(FaultScope::UserOnly) if seccomp::is_available() => Way::Caught,
        Ok(FaultScope::UserOnly) => Way::Kernel(
            "this user's userfaultfd misses the kernel's own accesses, and system calls cannot be caught here".to_owned(),
        ),
        Err(errno) => Way::Kernel(format!("there is no userfaultfd here ({errno})")),
    }
}

/// The kernel can page only what is a file on a disk.
fn check_far_for_kernel(settings: &Settings) -> anyhow::Result<()> {
    if settings.emulated {
        return Err(refuse(format_args!(
            "--far {}: emulated far memory needs userfaultfd; name a directory",
            far_name(settings)
        )));
    }
    let dir = settings.far_dir();
    let file_system = place::file_system(Path::new(dir)).map_err(|error| refuse(format_args!("far {dir}: {error}")))?;
    if file_system.in_memory {
        return Err(refuse(format_args!(
            "far {dir} is a file system in memory, and without userfaultfd nothing would leave memory; name a directory on a disk"
        )));
    }
    // As `Mapped::new` does it.
    Mapped::new(Path::new(dir)).map_err(|error| {
        refuse(format_args!("far {dir}: no large sparse file can be created there: {error}; is `ulimit -f` set?"))
    })?;
    Ok(())
}

fn far_settings(near: u64, far: &FarSpec, denied: Denied, notes: &mut Vec<String>) -> anyhow::Result<Settings> {
    let cannot = |errno| refuse(format_args!("--far {far}: {errno}"));
    let named = match far {
        FarSpec::Path(path) => PathBuf::from(path),
        FarSpec::Emulated { bytes_per_s, latency_ns } => {
            let mut settings = Settings::new(near, "").map_err(cannot)?;
            settings.emulated = true;
            settings.emu_bytes_per_s = *bytes_per_s;
            settings.emu_latency_ns = *latency_ns;
            return Ok(settings);
        }
        FarSpec::Node { .. } => return Err(refuse(format_args!("--far {far}: the pager needs a directory or emulated memory"))),
    };
    let far = FarDir::open(&named, !denied.has("odirect"))?;
    notes.extend(far.note);
    if far.file_system.in_memory {
        notes.push(format!("far {} is a file system in memory: what is moved there still takes memory", far.path.display()));
    }
    let path = far.path.to_str().ok_or_else(|| refuse("--far: the path is not UTF-8; name another directory"))?;
    Settings::new(near, path).map_err(cannot)
}

fn far_name(settings: &Settings) -> String {
    if settings.emulated {
        FarSpec::Emulated { bytes_per_s: settings.emu_bytes_per_s, latency_ns: settings.emu_latency_ns }.to_string()
    } else {
        settings.far_dir().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::MemoryNode;

    const LIMIT: MemoryLimit = MemoryLimit { bytes: 8 << 30, by_cgroup: false };

    #[test]
    fn near_budgets() {
        let near = |text: &str| near_bytes(&text.parse().expect(text), LIMIT);
        assert_eq!(near("800M").expect("a size"), 800 << 20);
        assert_eq!(near("50%").expect("a share"), 4 << 30);
        assert_eq!(near("16777217").expect("whole pages"), 16 << 20);
        for (bad, advice) in [("15M", "16M"), ("9G", "8.0 GiB"), ("0.01%", "16M")] {
            let message = near(bad).expect_err(bad).to_string();
            assert!(message.contains(advice), "{bad}: {message}");
        }
    }

    #[test]
    fn near_on_nodes_is_what_they_have_free() {
        let node = MemoryNode { id: 1, bytes: 1 << 30, free_bytes: (1 << 29) + 1, allowed: true, ..MemoryNode::default() };
        let topology = Topology { nodes: vec![node], ..Topology::default() };
        let near = |text: &str| near_on_nodes(&text.parse().expect(text), &[1].into_iter().collect(), &topology);
        assert_eq!(near("node:1").expect("all that is free"), 1 << 29);
        assert_eq!(near("node:1:800M").expect("as asked for"), 800 << 20);
        assert!(near("node:1:2G").expect_err("too much").to_string().contains("1.0 GiB"));
        assert!(near("node:1:1M").expect_err("too little").to_string().contains("16M"));
    }

    #[test]
    fn denied_facilities() {
        assert!(matches!(check_paging(Denied::parse("uffd").expect("known")), Way::Kernel(_)));
        let emulated =
            far_settings(1 << 30, &"emu:bw=4G,lat=10us".parse().expect("a spec"), Denied(0), &mut Vec::new()).expect("emulated");
        assert!(check_far_for_kernel(&emulated).is_err());
        let in_memory = Settings::new(1 << 30, "/dev/shm").expect("short path");
        assert!(check_far_for_kernel(&in_memory).is_err());
        check_far_for_kernel(&Settings::new(1 << 30, "/var/tmp").expect("short path")).expect("a disk");
    }

    #[test]
    fn emulated_far_has_a_name_that_parses_back() {
        let settings =
            far_settings(1 << 30, &"emu:bw=4G,lat=10us".parse().expect("a spec"), Denied(0), &mut Vec::new()).expect("emulated");
        assert_eq!(far_name(&settings), "emu:bw=4G,lat=10000ns");
    }
}
