//! What was typed, validated: a request that can be carried out on this machine, or a refusal that says what to do.
//!
//! Everything is checked before anything is created, so that status 2 always means "nothing happened".

use crate::args::{Commit, Heap, RunArgs};
use crate::exit::refuse;
use crate::far_dir::FarDir;
use crate::machine::{self, MemoryLimit};
use crate::target::Target;
use crate::trace_file::TraceFile;
use crate::{library, program};
use nearfar_core::addr::PAGE;
use nearfar_core::mode::Mode;
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use nearfar_sys::kernel::{self, DENY_NAMES, Denied, Paging};
use nearfar_sys::place;
use nearfar_sys::seccomp;
use nearfar_sys::uffd::Reach;
use nearfar_tiers::job::Settings;
use nearfar_tiers::mapped::Mapped;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Less near than this cannot hold the pager's own tables and a few blocks in flight.
pub const MIN_NEAR: u64 = 16 << 20;

/// A program to run and how.
pub struct RunRequest {
    /// The file that is executed.
    pub program: PathBuf,
    /// The program's name as typed, then its arguments.
    pub argv: Vec<OsString>,
    /// libnearfar.so.
    pub library: PathBuf,
    /// What every process of the job is told.
    pub settings: Settings,
    /// How the far tier is named in files and messages.
    pub far: String,
    /// Where the counters go.
    pub stats: Option<Target>,
    /// Where visits are recorded.
    pub trace: Option<TraceFile>,
    /// Show a status line.
    pub live: bool,
    /// Print errors only.
    pub quiet: bool,
    /// Things the user should know before the program starts.
    pub notes: Vec<String>,
}

impl RunRequest {
    /// Checks `args` against this machine.
    pub fn new(args: RunArgs) -> anyhow::Result<Self> {
        let near = near_bytes(&args.near, machine::memory_limit())?;
        check_mode(&args.mode)?;
        check_place(&args.place)?;
        let min_size = args.min_size.parse::<Bytes>().map_err(|error| refuse(format_args!("--min-size: {error}")))?.0;
        if min_size < PAGE as u64 {
            return Err(refuse(format_args!("--min-size {} is below a page; write {PAGE} or more", args.min_size)));
        }
        let denied = parse_denied(&args.deny)?;
        let way = check_paging(denied);

        let name = args.program.first().map(OsString::as_os_str).unwrap_or_default();
        let program = program::find(name, std::env::var_os("PATH").as_deref())?;
        program::check_preloadable(&program)?;
        let library = library::find()?;

        let mut notes = Vec::new();
        if matches!(way, Way::Caught) {
            notes.push(USER_ONLY.to_owned());
        }
        let mut settings = far_settings(near, &args.far, denied, &mut notes)?;
        settings.min_size = min_size;
        settings.heap_all = args.heap == Heap::All;
        settings.strict = args.commit == Commit::Strict;
        settings.denied = denied.0;
        settings.check_rounds = check_rounds()?;
        settings.core_on_stop = std::env::var_os("NEARFAR_CORE").is_some_and(|text| text == "1");
        settings.encrypt = args.encrypt;
        settings.faults = args.faults.parse().map_err(|error| refuse(format_args!("{error}")))?;
        if settings.faults.any() {
            notes.push(format!("far fails on purpose: {}", settings.faults));
        }
        settings.user_only = matches!(way, Way::Caught);
        if let Way::Kernel(why) = &way {
            settings.kernel_paging = true;
            check_far_for_kernel(&settings)?;
            if args.trace.is_some() {
                return Err(refuse(format_args!(
                    "{why}: the kernel would page a mapped file, and nobody would see which pages are visited; {HOW_TO_GET_UFFD}"
                )));
            }
            if settings.encrypt || settings.faults.any() {
                return Err(refuse(format_args!(
                    "{why}: the kernel would page a mapped file, which cannot be encrypted; {HOW_TO_GET_UFFD}"
                )));
            }
            notes.push(format!(
                "{why}: the kernel pages a mapped file in {}, which is slower and holds near less closely (docs/limits.md)",
                settings.far_dir()
            ));
        }
        let far = far_name(&settings);
        let stats = args.stats.map(|path| Target::new("--stats", path)).transpose()?;
        let trace = args.trace.map(|path| TraceFile::new(&path, &args.trace_window, near, &mut settings)).transpose()?;
        if trace.is_some() {
            notes.push("a trace is recorded: the program is slowed down, and this run's figures say nothing of others".into());
        }
        let (live, quiet) = (args.live, args.quiet);
        Ok(Self { program, argv: args.program, library, settings, far, stats, trace, live, quiet, notes })
    }
}

fn near_bytes(text: &str, limit: MemoryLimit) -> anyhow::Result<u64> {
    let spec: NearSpec = text.parse().map_err(|error| refuse(format_args!("--near: {error}")))?;
    let bytes = match spec.budget(limit.bytes) {
        Some(bytes) if !matches!(spec, NearSpec::Node { .. }) => bytes,
        _ => {
            return Err(refuse(format_args!(
                "--near {text}: NUMA nodes are not available yet; write a size such as 800M or a share such as 50%"
            )));
        }
    };
    if bytes > limit.bytes {
        let what = if limit.by_cgroup { "the memory limit of this cgroup" } else { "this machine's memory" };
        return Err(refuse(format_args!("--near {text} is more than {what} ({}); write less, or 50%", Bytes(limit.bytes))));
    }
    if bytes < MIN_NEAR {
        return Err(refuse(format_args!("--near {text} is too little to work with; write {} or more", Bytes(MIN_NEAR).exact())));
    }
    Ok(bytes / PAGE as u64 * PAGE as u64)
}

/// Tests and people who look for a bug have the page table checked in every so many rounds of each pager.
fn check_rounds() -> anyhow::Result<u32> {
    let Some(text) = std::env::var_os("NEARFAR_CHECK") else { return Ok(0) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| refuse(format_args!("NEARFAR_CHECK={} is not a number of rounds", text.display())))
}

fn check_mode(text: &str) -> anyhow::Result<()> {
    match text.parse::<Mode>().map_err(|error| refuse(format_args!("--mode: {error}")))? {
        Mode::Cache => Ok(()),
        mode => Err(refuse(format_args!("--mode {mode} is not available yet; leave it out or write cache"))),
    }
}

fn check_place(text: &str) -> anyhow::Result<()> {
    match text {
        "all" => Ok(()),
        _ if text.starts_with("size:") || text.starts_with("plan:") => {
            Err(refuse(format_args!("--place {text} is not available yet; leave it out or write all")))
        }
        _ => Err(refuse(format_args!("--place {text} is not understood; write all"))),
    }
}

/// The facilities named in a `--deny` list.
pub fn parse_denied(list: &str) -> anyhow::Result<Denied> {
    Denied::parse(list).map_err(|word| {
        let known: Vec<_> = DENY_NAMES.iter().map(|(name, _)| *name).collect();
        refuse(format_args!("--deny: \"{word}\" is not a facility; known are {}", known.join(", ")))
    })
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
                         by one, which costs some microseconds each; \"nearfar doctor\" tells what is not covered and how to get \
                         the other kind";

fn check_paging(denied: Denied) -> Way {
    let Some(paging) = paging(denied) else {
        return Way::Kernel("userfaultfd is switched off by --deny".to_owned());
    };
    match paging.reach {
        Ok(Reach::UserAndKernel) => Way::Full,
        Ok(Reach::UserOnly) if seccomp::is_available() => Way::Caught,
        Ok(Reach::UserOnly) => Way::Kernel(
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

fn far_settings(near: u64, text: &OsStr, denied: Denied, notes: &mut Vec<String>) -> anyhow::Result<Settings> {
    let text = text.to_str().ok_or_else(|| refuse("--far: the path is not UTF-8; name another directory"))?;
    let spec: FarSpec = text.parse().map_err(|error| refuse(format_args!("--far: {error}")))?;
    let named = match spec {
        FarSpec::Path(path) => PathBuf::from(path),
        FarSpec::Node { .. } => {
            return Err(refuse(format_args!(
                "--far {text}: NUMA nodes are not available yet; write a directory or emu:bw=4G,lat=10us"
            )));
        }
        FarSpec::Emulated { bytes_per_s, latency_ns } => {
            let mut settings = Settings::new(near, "").map_err(|errno| refuse(format_args!("--far {text}: {errno}")))?;
            settings.emulated = true;
            settings.emu_bytes_per_s = bytes_per_s;
            settings.emu_latency_ns = latency_ns;
            return Ok(settings);
        }
    };
    let far = FarDir::open(&named, !denied.has("odirect"))?;
    notes.extend(far.note);
    if far.file_system.in_memory {
        notes.push(format!("far {} is a file system in memory: what is moved there still takes memory", far.path.display()));
    }
    let path = far.path.to_str().ok_or_else(|| refuse("--far: the path is not UTF-8; name another directory"))?;
    Settings::new(near, path).map_err(|errno| refuse(format_args!("--far {text}: {errno}")))
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

    const LIMIT: MemoryLimit = MemoryLimit { bytes: 8 << 30, by_cgroup: false };

    #[test]
    fn near_budgets() {
        assert_eq!(near_bytes("800M", LIMIT).expect("a size"), 800 << 20);
        assert_eq!(near_bytes("50%", LIMIT).expect("a share"), 4 << 30);
        assert_eq!(near_bytes("16777217", LIMIT).expect("whole pages"), 16 << 20);
        for (bad, advice) in [
            ("0", "800M"),
            ("-1", "negative"),
            ("15M", "16M"),
            ("9G", "8.0 GiB"),
            ("12Q", "800M"),
            ("", "--near"),
            ("101%", "100"),
            ("node:1", "not available yet"),
            ("node:1:4G", "not available yet"),
        ] {
            let message = near_bytes(bad, LIMIT).expect_err(bad).to_string();
            assert!(message.contains(advice), "{bad}: {message}");
        }
    }

    #[test]
    fn what_is_not_there_yet_is_said() {
        for error in [check_mode("flat"), check_mode("hybrid=0.5"), check_place("size:1M..5M"), check_place("plan:x.toml")] {
            assert!(error.expect_err("not yet").to_string().contains("not available yet"));
        }
        assert!(check_mode("cash").is_err() && check_place("some").is_err());
        check_mode("cache").expect("cache");
        check_place("all").expect("all");
        let error = far_settings(1 << 30, OsStr::new("node:0"), Denied(0), &mut Vec::new());
        assert!(error.expect_err("not yet").to_string().contains("not available yet"));
    }

    #[test]
    fn denied_facilities() {
        assert!(parse_denied("").expect("none").0 == 0 && parse_denied("move,io_uring").expect("two").has("move"));
        assert!(parse_denied("mov").expect_err("unknown").to_string().contains("io_uring"));
        assert!(matches!(check_paging(Denied::parse("uffd").expect("known")), Way::Kernel(_)));
        let emulated = far_settings(1 << 30, OsStr::new("emu:bw=4G,lat=10us"), Denied(0), &mut Vec::new()).expect("emulated");
        assert!(check_far_for_kernel(&emulated).is_err());
        let in_memory = Settings::new(1 << 30, "/dev/shm").expect("short path");
        assert!(check_far_for_kernel(&in_memory).is_err());
        check_far_for_kernel(&Settings::new(1 << 30, "/var/tmp").expect("short path")).expect("a disk");
    }

    #[test]
    fn emulated_far_has_a_name_that_parses_back() {
        let settings = far_settings(1 << 30, OsStr::new("emu:bw=4G,lat=10us"), Denied(0), &mut Vec::new()).expect("emulated");
        assert_eq!(far_name(&settings), "emu:bw=4G,lat=10000ns");
    }
}
