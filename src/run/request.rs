//! What was typed, validated: a request that can be carried out on this machine, or a refusal that says what to do.
//!
//! Everything is checked before anything is created, so that status 2 always means "nothing happened".

use crate::cli::run::{DEFAULT_MIGRATE_CPU, DEFAULT_MIGRATE_RATE, Full as FullArg, Migration, OnStall, RunArgs};
use crate::exit::refuse;
use crate::files::output::OutputFile;
use crate::launch::{executable, library};
use crate::run::binding::{self, Binding};
use crate::run::paging::PagedJob;
use crate::run::placement::{self, PlacementRequest};
use crate::run::plan_file::PlanFile;
use crate::run::surroundings;
use crate::run::tiers::{self, Nodes, Tiers};
use crate::run::trace_file::TraceFile;
use nearfar_core::addr::{CHUNK_PAGES, PAGE};
use nearfar_core::mode::Mode;
use nearfar_core::node::Topology;
use nearfar_core::placement::{Placement, Policy, nodes};
use nearfar_core::tier::{FarSpec, NearSpec};
use nearfar_core::units::Bytes;
use nearfar_host::mover::{Limits, Migrator, NumaCache};
use nearfar_sys::affinity;
use nearfar_sys::numa::MemoryPolicy;
use nearfar_sys::root::Root;
use nearfar_tiers::job::Settings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program to run and how.
pub struct RunRequest {
    /// The file that is executed.
    pub program: PathBuf,
    /// The program's name as typed, then its arguments.
    pub argv: Vec<OsString>,
    /// libnearfar.so; `None` for a program that cannot be preloaded and is placed by the kernel's policy alone.
    pub library: Option<PathBuf>,
    /// What every process of the job is told.
    pub settings: Settings,
    /// The plan, which `settings` name once it is published.
    pub plan: Option<PlanFile>,
    /// What the program inherits.
    pub binding: Binding,
    /// Who moves pages between nodes in cache mode; taken when the program starts.
    pub migration: Option<NumaCache>,
    /// How the near tier is named in files and messages.
    pub near: String,
    /// How the far tier is named in files and messages.
    pub far: String,
    /// How near is used.
    pub mode: Mode,
    /// Which objects go near, as `--place` has it; nothing in cache mode.
    pub place: Option<String>,
    /// Where the counters go.
    pub stats: Option<OutputFile>,
    /// Where visits are recorded.
    pub trace: Option<TraceFile>,
    /// Show a status line.
    pub live: bool,
    /// What becomes of a program that is stuck.
    pub on_stall: OnStall,
    /// Print errors only.
    pub quiet: bool,
    /// Things the user should know before the program starts.
    pub notes: Vec<String>,
}

/// What one kind of job has in its own way; the rest is alike.
struct Made {
    library: Option<PathBuf>,
    settings: Settings,
    plan: Option<PlanFile>,
    memory: Option<MemoryPolicy>,
    migration: Option<NumaCache>,
    near: String,
    far: String,
    mode: Mode,
}

impl RunRequest {
    /// Checks `args` against this machine.
    pub fn new(args: RunArgs) -> anyhow::Result<Self> {
        if let Some(problem) = surroundings::problem() {
            return Err(refuse(problem));
        }
        let topology = || nearfar_sys::machine::topology(&Root::this());
        let tiers = tiers::settle(&args, several_nodes(), topology, binding::try_placing)?;
        check_options(&args, &tiers)?;
        let cpus = match &args.cpus {
            Some(text) => {
                let allowed = affinity::of(0).map_err(|error| refuse(format_args!("--cpus: {error}")))?;
                Some(binding::cpus(text, &allowed, topology)?)
            }
            None => None,
        };
        let (min_size, grain) = (args.min_size, args.grain);
        if min_size.0 < PAGE as u64 {
            return Err(refuse(format_args!("--min-size {} is below a page; write {PAGE} or more", min_size.exact())));
        }
        if args.trace.is_some() && grain.number() > CHUNK_PAGES as u32 {
            return Err(refuse(format_args!(
                "--grain {grain} with --trace: visits are recorded in pieces of at most 64K; write 4K to 64K"
            )));
        }
        let name = args.program.first().map(OsString::as_os_str).unwrap_or_default();
        let program = executable::find(name, std::env::var_os("PATH").as_deref())?;
        let mut notes = Vec::new();
        let made = match &tiers {
            Tiers::Nodes(nodes) => on_nodes(nodes, &args, &program, &topology(), &mut notes)?,
            Tiers::Paged(paged) => {
                executable::check_preloadable(&program)?;
                let library = Some(library::find()?);
                notes.extend(paged.told.clone());
                let job = PagedJob::new(paged, &args, topology, &mut notes)?;
                let (near, far) = (Bytes(job.settings.near_bytes).exact(), job.far_name());
                let PagedJob { settings, plan, memory } = job;
                Made { library, settings, plan, memory, migration: None, near, far, mode: paged.mode }
            }
        };
        let Made { library, mut settings, plan, memory, migration, near, far, mode } = made;
        settings.min_size = min_size.0;
        settings.grain_pages = grain.number();
        let binding = Binding { cpus, memory };
        binding.check()?;
        let stats = args.stats.map(|path| OutputFile::new("--stats", path)).transpose()?;
        let near_bytes = settings.near_bytes;
        let trace = args.trace.map(|path| TraceFile::new(&path, args.trace_window, near_bytes, &mut settings)).transpose()?;
        if trace.is_some() {
            notes.push(
                "a trace is recorded, which slows the program down: this run's figures say nothing about other runs".into(),
            );
        }
        let place = (settings.placement.policy != Policy::None).then(|| args.place.clone().unwrap_or_default().to_string());
        let (argv, live, quiet, on_stall) = (args.program, args.live, args.quiet, args.on_stall);
        Ok(Self {
            program,
            argv,
            library,
            settings,
            plan,
            binding,
            migration,
            near,
            far,
            mode,
            place,
            stats,
            trace,
            live,
            on_stall,
            quiet,
            notes,
        })
    }

    /// True when near and far are nodes: nothing is paged.
    pub fn is_on_nodes(&self) -> bool {
        self.settings.placement.is_numa()
    }
}

/// Refuses what would have no effect in this run: whoever typed it expects one.
fn check_options(args: &RunArgs, tiers: &Tiers) -> anyhow::Result<()> {
    let on_nodes = matches!(tiers, Tiers::Nodes(_));
    let cache_on_nodes = matches!(tiers, Tiers::Nodes(Nodes { cache: true, .. }));
    mover_limits(args)?;
    let says_nothing = args.migrate == Migration::Auto
        && DEFAULT_MIGRATE_RATE.parse() == Ok(args.migrate_rate)
        && args.migrate_cpu == DEFAULT_MIGRATE_CPU;
    if !cache_on_nodes && !says_nothing {
        return Err(refuse(
            "--migrate, --migrate-rate and --migrate-cpu are for cache mode between nodes, and nothing is moved in this run; leave them \
             out, or write --mode cache with nodes for --near and --far",
        ));
    }
    if args.machine.is_some() && !cache_on_nodes && !(on_nodes && args.weighted) {
        return Err(refuse(
            "--machine is for --weighted and for cache mode between nodes, and has no effect in this run; leave it out, or write \
             --interleave near --weighted",
        ));
    }
    if args.live && on_nodes {
        return Err(refuse("--live shows how memory is paged, but between nodes nothing is paged; leave it out"));
    }
    Ok(())
}

/// What moving pages between nodes may take.
fn mover_limits(args: &RunArgs) -> anyhow::Result<Limits> {
    let (rate, cpu_percent) = (args.migrate_rate, args.migrate_cpu);
    if !(0.01..=100.0).contains(&cpu_percent) {
        return Err(refuse(format_args!("--migrate-cpu {cpu_percent} is not between 0.01 and 100 (per cent of one CPU)")));
    }
    if rate.0 < 1 << 20 {
        return Err(refuse(format_args!("--migrate-rate {} is too little; write 1M or more (per second)", rate.exact())));
    }
    Ok(Limits { bytes_per_s: rate.0 as f64, cpu_share: cpu_percent / 100.0 })
}

/// A quick look, so that nothing more is read on machines with one node.
fn several_nodes() -> bool {
    let file = |name: &str| Root::this().text(&format!("/sys/devices/system/node/{name}"));
    file("has_memory").or_else(|| file("online")).is_some_and(|list| list.contains([',', '-']))
}

/// Both tiers are nodes.
fn on_nodes(tiers: &Nodes, args: &RunArgs, program: &Path, topology: &Topology, notes: &mut Vec<String>) -> anyhow::Result<Made> {
    let PlacementRequest { placement, plan, notes: found } = PlacementRequest::of_nodes(tiers, args, topology)?;
    notes.extend(found);
    let library = match executable::preloadable(program)? {
        // Pages are moved from outside, and any program will do.
        _ if tiers.cache => None,
        Ok(()) => Some(library::find()?),
        // The kernel's policy for the whole process is all that everything-near takes, but for waiting.
        Err(obstacle) if placement.policy == Policy::All && args.full != Some(FullArg::Wait) => {
            if let Some(limit) = tiers.limit {
                return Err(refuse(format_args!(
                    "{}: nothing can be preloaded, and the kernel alone does not hold near to {}; leave the limit out (--near node:{}), or \
                     write --mode cache",
                    obstacle.why,
                    Bytes(limit),
                    tiers.near
                )));
            }
            let killed = if args.full == Some(FullArg::Fail) { ", and kills it when near is full" } else { "" };
            notes.push(format!("{}: nothing can be preloaded, and the kernel alone places its memory{killed}", obstacle.why));
            None
        }
        Err(obstacle) => {
            return Err(refuse(format_args!(
                "{}{}; or write --place all with --full spill or fail, for which the kernel is enough",
                obstacle.why, obstacle.advice
            )));
        }
    };
    let near_bytes = tiers.limit.unwrap_or_else(|| nodes::bytes(topology, &tiers.near));
    let mut settings = Settings::new(near_bytes, "").map_err(|errno| refuse(format_args!("--far: {errno}")))?;
    settings.placement = placement;
    let migration = if tiers.cache { Some(numa_cache(&settings.placement, args, topology)?) } else { None };
    let memory = match &migration {
        Some(migration) => migration.memory(),
        None => binding::memory_of(&settings.placement),
    };
    notes.extend(migration.iter().flat_map(|migration| migration.notes.clone()));
    let near = NearSpec::Node { nodes: tiers.near.iter().collect(), limit: tiers.limit }.to_string();
    let far = FarSpec::Node { nodes: tiers.far.iter().collect() }.to_string();
    let mode = if tiers.cache { Mode::Cache } else { Mode::Flat };
    Ok(Made { library, settings, plan, memory, migration, near, far, mode })
}

/// Cache mode between nodes: hot pages move to near, cold ones back.
fn numa_cache(placement: &Placement, args: &RunArgs, topology: &Topology) -> anyhow::Result<NumaCache> {
    let measured = args.machine.as_deref().map(|path| placement::this_machine(path, topology)).transpose()?;
    let who = match args.migrate {
        Migration::Auto => Migrator::Auto,
        Migration::Force => Migrator::Force,
        Migration::Off => Migrator::Off,
    };
    NumaCache::plan(placement, topology, measured.as_ref(), who, mover_limits(args)?).map_err(|error| {
        refuse(format_args!(
            "{error}. With a size for --near and a directory or emu:bw=4G,lat=10us for --far, memory is paged instead"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::placement::NodeSet;

    fn nodes(cache: bool) -> Tiers {
        let set = |node: u32| NodeSet::from_iter([node]);
        Tiers::Nodes(Nodes { near: set(0), far: set(1), limit: None, cache, told: None })
    }

    #[test]
    fn options_without_effect_are_refused() {
        let paged = || Tiers::Paged(tiers::Paged { near: None, far: None, mode: Mode::Cache, on: None, told: None });
        let check =
            |options: &[&str], tiers: &Tiers| check_options(&RunArgs::typed(options), tiers).map_err(|error| error.to_string());
        for tiers in [paged(), nodes(false), nodes(true)] {
            assert_eq!(check(&[], &tiers), Ok(()));
            for (options, hint) in [
                (["--migrate-rate", "1"], "1M or more"),
                (["--migrate-cpu", "1000"], "--migrate-cpu 1000"),
                (["--migrate-cpu", "NaN"], "--migrate-cpu"),
            ] {
                let error = check(&options, &tiers).expect_err(hint);
                assert!(error.contains(hint), "{options:?}: {error}");
            }
            let in_cache = tiers == nodes(true);
            for options in [["--migrate", "force"], ["--migrate", "off"], ["--migrate-rate", "1G"], ["--migrate-cpu", "2"]] {
                assert_eq!(check(&options, &tiers).is_ok(), in_cache, "{options:?}");
            }
            assert_eq!(check(&["--machine", "/nowhere"], &tiers).is_ok(), in_cache);
            assert_eq!(check(&["--live"], &tiers).is_ok(), tiers == paged());
        }
        let weighted = ["--machine", "/nowhere", "--interleave", "near", "--weighted"];
        assert_eq!(check(&weighted, &nodes(false)), Ok(()));
        assert!(check(&weighted[..4], &nodes(false)).is_err_and(|error| error.contains("--weighted")));
    }
}
