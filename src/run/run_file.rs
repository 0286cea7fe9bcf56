//! The run file that `--stats` writes: JSON, versioned, described in docs/reference/formats.md.

use crate::exit::STOPPED_BY_NEARFAR;
use crate::launch::supervisor::End;
use crate::machine::Machine;
use crate::run::account::RankRecord;
use crate::run::outcome::{Derived, Outcome};
use nearfar_core::mode::Mode;
use nearfar_core::placement::{Full, Placement};
use nearfar_core::policy::fetch_grain::Grain;
use nearfar_core::stats::{COUNTERS, Counter, Snapshot};
use nearfar_host::mover::Report;
use nearfar_host::residence::{Residence, Resident};
use nearfar_tiers::job::Settings;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::path::Path;

/// Changes when a reader of the old version would misread the new one; added fields do not count.
const VERSION: u32 = 1;

/// The content of a run file.
#[derive(Serialize)]
pub struct RunFile<'a> {
    format: &'static str,
    version: u32,
    nearfar: &'static str,
    program: String,
    args: Vec<String>,
    near_bytes: u64,
    near: &'a str,
    far: &'a str,
    mode: String,
    place: Option<&'a str>,
    grain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migration: Option<&'a Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Nodes<'a>>,
    machine: &'a Machine,
    wall_s: f64,
    cpu_user_s: f64,
    cpu_system_s: f64,
    resident_peak_bytes: u64,
    exit: Exit,
    processes: u64,
    unmanaged: u64,
    still_running: u32,
    counters: Values<'a>,
    units: Units,
    derived: Derived,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    ranks: &'a [RankRecord],
}

/// Where memory lay, of a run between nodes.
#[derive(Serialize)]
struct Nodes<'a> {
    near: String,
    far: String,
    near_limit_bytes: Option<u64>,
    full: &'static str,
    looks: u32,
    peak: &'a Resident,
    near_peak_bytes: u64,
}

#[derive(Serialize)]
struct Exit {
    status: Option<u8>,
    signal: Option<i32>,
    signal_name: Option<String>,
    stopped_by_nearfar: bool,
}

/// Every counter by its name.
pub struct Values<'a>(pub &'a Snapshot);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        each(serializer, |counter| self.0.get(counter))
    }
}

struct Units;

impl Serialize for Units {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        each(serializer, Counter::unit)
    }
}

fn each<S: Serializer, V: Serialize>(serializer: S, value: impl Fn(Counter) -> V) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(COUNTERS.len()))?;
    for &counter in COUNTERS {
        map.serialize_entry(counter.name(), &value(counter))?;
    }
    map.end()
}

/// What was run, for the run file.
pub struct Invocation<'a> {
    /// The file that was executed.
    pub program: &'a Path,
    /// The program's arguments without its name.
    pub args: &'a [std::ffi::OsString],
    /// The near tier.
    pub near: &'a str,
    /// The far tier.
    pub far: &'a str,
    /// How near is used.
    pub mode: Mode,
    /// Which objects go near; nothing in cache mode.
    pub place: Option<&'a str>,
    /// What every process was told.
    pub settings: &'a Settings,
    /// The ranks whose figures these are together; empty for a single run.
    pub ranks: &'a [RankRecord],
    /// What was moved between nodes in cache mode.
    pub migration: Option<&'a Report>,
}

impl Invocation<'_> {
    fn grain(&self) -> Option<String> {
        let paged = !self.settings.placement.is_numa() && !self.settings.kernel_paging;
        paged.then(|| Grain::of_number(self.settings.grain_pages).to_string())
    }
}

impl RunFile<'_> {
    /// As it is written.
    pub fn text(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl<'a> RunFile<'a> {
    /// The file for `ran`, which came to `outcome` on `machine`. Bytes that are not UTF-8 become U+FFFD.
    pub fn new(ran: &Invocation<'a>, machine: &'a Machine, outcome: &'a Outcome) -> Self {
        Self {
            format: "nearfar-run",
            version: VERSION,
            nearfar: env!("CARGO_PKG_VERSION"),
            program: ran.program.to_string_lossy().into_owned(),
            args: ran.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            near_bytes: ran.settings.near_bytes,
            near: ran.near,
            far: ran.far,
            mode: ran.mode.to_string(),
            place: ran.place,
            grain: ran.grain(),
            migration: ran.migration,
            nodes: outcome.residence.as_ref().map(|residence| Nodes::of(&ran.settings.placement, residence)),
            machine,
            wall_s: outcome.wall.as_secs_f64(),
            cpu_user_s: outcome.cpu_user.as_secs_f64(),
            cpu_system_s: outcome.cpu_system.as_secs_f64(),
            resident_peak_bytes: outcome.resident_peak,
            exit: Exit::from(outcome.end),
            processes: outcome.processes,
            unmanaged: outcome.unmanaged,
            still_running: outcome.still_running,
            counters: Values(&outcome.counters),
            units: Units,
            derived: Derived::of(outcome),
            ranks: ran.ranks,
        }
    }
}

impl<'a> Nodes<'a> {
    fn of(placement: &Placement, residence: &'a Residence) -> Self {
        Self {
            near: placement.near.to_string(),
            far: placement.far.to_string(),
            near_limit_bytes: Some(placement.near_limit).filter(|&limit| limit != u64::MAX),
            full: match placement.full {
                Full::Spill => "spill",
                Full::Fail => "fail",
                Full::Wait => "wait",
            },
            looks: residence.looks,
            peak: &residence.peak,
            near_peak_bytes: residence.near_peak_bytes,
        }
    }
}

impl From<End> for Exit {
    fn from(end: End) -> Self {
        match end {
            End::Status(status) => {
                Self { status: Some(status), signal: None, signal_name: None, stopped_by_nearfar: status == STOPPED_BY_NEARFAR }
            }
            End::Signal(signal) => Self {
                status: None,
                signal: Some(signal),
                signal_name: Some(nearfar_sys::child::signal_name(signal)),
                stopped_by_nearfar: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Outcome {
        Outcome { end: End::Signal(11), ..Outcome::sample(2.0, &[]) }
    }

    fn json(outcome: &Outcome) -> serde_json::Value {
        let machine = Machine { cpu: "test".into(), cpus: 2, kernel: "6.18".into(), ram: 1 << 30 };
        let settings = Settings::new(1 << 24, "/var/tmp").expect("short path");
        let args = &["-a".into()];
        let (program, settings) = (Path::new("/bin/x"), &settings);
        let ran = Invocation {
            program,
            args,
            near: "16M",
            far: "/var/tmp",
            mode: Mode::Cache,
            place: None,
            settings,
            ranks: &[],
            migration: None,
        };
        serde_json::to_value(RunFile::new(&ran, &machine, outcome)).expect("JSON")
    }

    #[test]
    fn holds_every_counter_with_its_unit() {
        let value = json(&sample());
        assert_eq!((&value["format"], &value["version"]), (&"nearfar-run".into(), &1.into()));
        for &counter in COUNTERS {
            assert!(value["counters"][counter.name()].is_u64());
            assert_eq!(value["units"][counter.name()], counter.unit());
        }
        assert_eq!(value["exit"]["signal_name"], "SIGSEGV");
        assert!(value["derived"]["efficiency_vs_bound"].is_null());
    }

    #[test]
    fn runs_between_nodes_say_where_memory_lay() {
        let residence = Residence { looks: 3, peak: Resident { near: 5, far: 6, other: 0 }, near_peak_bytes: 7 };
        let value = json(&Outcome { residence: Some(residence), ..sample() });
        assert_eq!((&value["nodes"]["peak"]["far_bytes"], &value["nodes"]["near_peak_bytes"]), (&6.into(), &7.into()));
        assert!(json(&sample())["nodes"].is_null());
    }

    /// Every field of what is added to some runs only is in the document.
    #[test]
    fn the_document_names_the_fields_of_movers_and_ranks() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/formats.md");
        let text = std::fs::read_to_string(&path).expect("docs/reference/formats.md");
        let moved = serde_json::to_value(Report::default()).expect("JSON");
        let record = RankRecord { nodes: Some(Default::default()), ..RankRecord::default() };
        let rank = serde_json::to_value(&record).expect("JSON");
        let part = |from: &str, to: &str| {
            let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from}"));
            rest.split_once(to).unwrap_or_else(|| panic!("{to}")).0
        };
        for (value, said) in [
            (&moved, part("\"migration\": {\n", "### Ranks")),
            (&rank, part("\"ranks\": [", "### counters")),
            (&rank["nodes"], part("\"nodes\": {  ", "### counters")),
        ] {
            for name in value.as_object().expect("an object").keys() {
                assert!(said.contains(&format!("\"{name}\":")), "docs/reference/formats.md does not tell of {name}");
            }
        }
    }

    const BEGIN: &str = "<!-- counters: made from crates/core/src/stats.rs by `make docs` -->\n";
    const END: &str = "<!-- end of counters -->\n";

    #[test]
    fn the_document_lists_the_counters() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/formats.md");
        let text = std::fs::read_to_string(&path).expect("docs/reference/formats.md");
        let (before, rest) = text.split_once(BEGIN).expect("begin mark");
        let (_, after) = rest.split_once(END).expect("end mark");
        let mut table = String::from("| name | unit | over processes | what it counts |\n|---|---|---|---|\n");
        for &counter in COUNTERS {
            let combine = format!("{:?}", counter.combine()).to_lowercase();
            table += &format!("| `{}` | {} | {combine} | {} |\n", counter.name(), counter.unit(), counter.doc());
        }
        let wanted = format!("{before}{BEGIN}{table}{END}{after}");
        if std::env::var_os("NEARFAR_BLESS").is_some() {
            std::fs::write(&path, &wanted).expect("written");
        } else {
            assert!(text == wanted, "docs/reference/formats.md is behind crates/core/src/stats.rs: run \"make docs\"");
        }
    }
}
