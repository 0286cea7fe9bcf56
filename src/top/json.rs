//! The document of `--once --json`, described in docs/reference/formats.md.

use crate::run::run_file::Values;
use crate::top::jobs::Jobs;
use crate::top::objects::ObjectRates;
use crate::top::rates::{Paging, Rates};
use crate::top::watched::Watched;
use nearfar_core::policy::fetch_grain::Grain;
use serde::Serialize;
use std::time::Duration;

/// Changes when a reader of the old version would misread the new one; added fields do not count.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    nearfar: &'static str,
    host: &'a str,
    interval_s: f64,
    jobs: Vec<Job<'a>>,
    unreadable: Vec<Unreadable<'a>>,
}

#[derive(Serialize)]
struct Job<'a> {
    program: &'a str,
    args: &'a [String],
    command_pid: u32,
    ended: bool,
    paging: Paging,
    near_bytes: u64,
    near_used_bytes: Option<u64>,
    far: String,
    grain: Option<String>,
    unmanaged: u64,
    rates: Option<&'a Rates>,
    counters: Values<'a>,
    processes: Vec<Process<'a>>,
    objects: &'a [ObjectRates],
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    name: &'a str,
    near_used_bytes: u64,
    rates: Option<&'a Rates>,
}

#[derive(Serialize)]
struct Unreadable<'a> {
    pid: u32,
    why: &'a str,
}

impl<'a> From<&'a Watched> for Job<'a> {
    fn from(job: &'a Watched) -> Self {
        let process = |at: usize| Process {
            pid: job.seen.members[at].pid,
            name: job.names.get(at).map_or("", String::as_str),
            near_used_bytes: job.seen.members[at].near_used_bytes,
            rates: job.members[at].as_ref(),
        };
        Self {
            program: &job.program.name,
            args: &job.program.args,
            command_pid: job.command,
            ended: job.ended_ns.is_some(),
            paging: job.paging(),
            near_bytes: job.seen.near_bytes,
            near_used_bytes: job.near_used(),
            far: job.far(),
            grain: (job.paging() == Paging::Pager).then(|| Grain::of_number(job.seen.grain_pages).to_string()),
            unmanaged: job.seen.unmanaged,
            rates: job.rates.as_ref(),
            counters: Values(&job.seen.counters),
            processes: (0..job.members.len()).map(process).collect(),
            objects: &job.objects,
        }
    }
}

/// The document, of looks that lie `interval` apart.
///
/// # Errors
/// Those of the serializer, which there are none of for these types.
pub fn document(jobs: &Jobs, host: &str, interval: Duration) -> anyhow::Result<String> {
    let document = Document {
        format: "nearfar-top",
        version: VERSION,
        nearfar: env!("CARGO_PKG_VERSION"),
        host,
        interval_s: interval.as_secs_f64(),
        jobs: jobs.list.iter().map(Job::from).collect(),
        unreadable: jobs.unreadable.iter().map(|(pid, why)| Unreadable { pid: *pid, why }).collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::busy;
    use nearfar_sys::root::Root;
    use serde_json::Value;
    use std::path::Path;

    fn value() -> Value {
        let mut jobs = Jobs::new(Root::captured("").expect("a capture"));
        jobs.list = vec![busy(1, "./stream")];
        jobs.list[0].objects =
            vec![ObjectRates { pid: 4711, bytes: 1 << 30, name: Some("solve (app.c:7)".into()), ..ObjectRates::default() }];
        jobs.unreadable = vec![(9, "why".into())];
        serde_json::from_str(&document(&jobs, "n1", Duration::from_secs(1)).expect("JSON")).expect("JSON")
    }

    #[test]
    fn what_scripts_read() {
        let value = value();
        assert_eq!((&value["format"], &value["version"], &value["interval_s"]), (&"nearfar-top".into(), &1.into(), &1.0.into()));
        let job = &value["jobs"][0];
        assert_eq!(
            (&job["program"], &job["args"][1], &job["processes"][0]["pid"]),
            (&"./stream".into(), &"4G".into(), &4711.into())
        );
        assert_eq!((&job["rates"]["hit_share"], &job["rates"]["grains_per_s"][1]), (&0.75.into(), &1234.0.into()));
        assert_eq!((&job["paging"], &job["grain"], &job["ended"]), (&"pager".into(), &"auto".into(), &false.into()));
        assert_eq!(job["counters"]["faults_demand"], 1234);
        assert_eq!((&job["objects"][0]["name"], &job["objects"][0]["bytes"]), (&"solve (app.c:7)".into(), &(1 << 30).into()));
        assert_eq!(value["unreadable"][0]["pid"], 9);
    }

    #[test]
    fn the_document_names_every_field() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/formats.md");
        let text = std::fs::read_to_string(&path).expect("docs/reference/formats.md");
        let (_, rest) = text.split_once("\n## Jobs that run").expect("the part about top");
        let part = rest.split_once("\n## ").map_or(rest, |(part, _)| part);
        let value = value();
        let job = &value["jobs"][0];
        for object in [&value, job, &job["rates"], &job["processes"][0], &job["objects"][0], &value["unreadable"][0]] {
            for name in object.as_object().expect("an object").keys() {
                assert!(part.contains(&format!("\"{name}\":")), "docs/reference/formats.md does not tell of {name}");
            }
        }
    }
}
