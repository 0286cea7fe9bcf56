//! One job in full: near and far, the last looks as lines of bars, grains, totals, its processes.

use crate::top::columns::GRAIN_NAMES;
use crate::top::figures::{bar, bytes, count, cut, megabytes, or_dash, percent, spark};
use crate::top::objects::ObjectRates;
use crate::top::rates::{Paging, Rates};
use crate::top::watched::Watched;
use nearfar_core::stats::Counter;
use nearfar_core::units::Bytes;

/// Letters for the name of a line.
const NAME: usize = 9;
/// Letters before the bars of a line: its name and its figure.
const LABEL: usize = NAME + 11;
/// A process, and what it did.
const MEMBER: &str = "    PID   NEAR  HIT%  MISS/s  IN MB/s  OUT MB/s  WAIT%  PROCESS";

/// A large object, and how often it was waited for.
const OBJECT: &str = "    SIZE  NEAR%  MISS/s  WAIT%  HEAT      OBJECT, BY WHO ALLOCATED IT";
/// Letters of a bar of heat, and those before it.
const HEAT: (usize, usize) = (8, 32);

/// A line and whether it is drawn in the colour of charts behind its label.
pub struct Row {
    /// The text.
    pub text: String,
    /// Letters before its chart; `None` without one.
    pub chart_from: Option<usize>,
}

impl From<String> for Row {
    fn from(text: String) -> Self {
        Self { text, chart_from: None }
    }
}

/// What stands above: the line that was typed, and whether it has ended.
pub fn title(job: &Watched, now_ns: u64, width: usize) -> String {
    let ended = job.ended_ns.map(|at| format!(" (ended {} s ago: its last figures)", now_ns.saturating_sub(at) / 1_000_000_000));
    let ended = ended.unwrap_or_default();
    let line = format!("{}: {}", job.pid(), job.program.line());
    format!(" {}{ended} ", cut(&line, width.saturating_sub(ended.len() + 2)))
}

/// At most `height` lines of `width` letters, the most telling first.
pub fn rows(job: &Watched, width: usize, height: usize) -> Vec<Row> {
    let mut rows = vec![near(job, width), far(job).into()];
    rows.extend(charts(job, width));
    rows.extend(grain(job).map(Row::from));
    rows.push(so_far(job).into());
    rows.extend(note(job).map(Row::from));
    let several = job.members.len() > 1;
    let left = height.saturating_sub(rows.len() + 1);
    if !job.objects.is_empty() && left > usize::from(several) {
        rows.push(OBJECT.to_owned().into());
        rows.extend(objects(job, if several { left / 2 } else { left }));
    }
    let left = height.saturating_sub(rows.len() + 1);
    if several && left > 0 {
        rows.push(MEMBER.to_owned().into());
        rows.extend(members(job, left).into_iter().map(Row::from));
    }
    rows.truncate(height);
    rows.into_iter().map(|row| Row { text: cut(&row.text, width), ..row }).collect()
}

fn near(job: &Watched, width: usize) -> Row {
    let (used, budget) = (job.near_used(), Bytes(job.seen.near_bytes));
    let tables = job.seen.counters.get(Counter::Metadata);
    let tables = if tables > 0 { format!(", {} of it tables", Bytes(tables)) } else { String::new() };
    let words = format!("  {} of {budget}{tables}", or_dash(used, |used| Bytes(used).to_string()));
    let room = width.saturating_sub(NAME + words.len()).min(40);
    let share = used.unwrap_or(0) as f64 / budget.0.max(1) as f64;
    Row { text: format!("{:<NAME$}{}{words}", "near", bar(share, room)), chart_from: Some(NAME).filter(|_| used.is_some()) }
}

fn far(job: &Watched) -> String {
    let used = job.seen.counters.get(Counter::FarUsed);
    let rates = job.rates.as_ref();
    let mut words = Vec::from_iter((used > 0).then(|| format!("{} of data", Bytes(used))));
    words.extend(rates.and_then(|rates| rates.far_busy_share).map(|busy| format!("busy {} %", percent(busy))));
    words.extend(rates.and_then(|rates| rates.far_depth).map(|depth| format!("depth {depth:.1}")));
    // What may be long is last.
    words.push(job.far());
    format!("{:<NAME$}{}", "far", words.join(", "))
}

/// The last looks.
fn charts(job: &Watched, width: usize) -> Vec<Row> {
    type Chart = (&'static str, fn(&Rates) -> Option<f64>, fn(f64) -> String, Option<f64>);
    let charts: [Chart; 5] = [
        ("hit %", |rates| rates.hit_share, percent, Some(1.0)),
        ("miss/s", |rates| rates.misses_per_s, count, None),
        ("in MB/s", |rates| rates.in_bytes_per_s, megabytes, None),
        ("out MB/s", |rates| rates.out_bytes_per_s, megabytes, None),
        ("wait %", |rates| rates.wait_share, percent, None),
    ];
    let row = |(name, of, text, most): Chart| {
        let highest = job.history.iter().filter_map(of).fold(0.0, f64::max);
        let bars = spark(job.history.iter().map(of), most.unwrap_or(highest), width.saturating_sub(LABEL + 12));
        let highest = if most.is_none() && highest > 0.0 { format!("  most {}", text(highest)) } else { String::new() };
        let now = or_dash(job.rates.as_ref().and_then(of), text);
        Row { text: format!("{name:<NAME$}{now:>9}  {bars}{highest}"), chart_from: Some(LABEL) }
    };
    if job.paging() == Paging::Nodes { Vec::new() } else { charts.into_iter().map(row).collect() }
}

fn grain(job: &Watched) -> Option<String> {
    let rates = job.rates.as_ref()?;
    let all: f64 = rates.grains_per_s.iter().sum();
    let share = |(name, per_s): (&str, f64)| (per_s >= 0.005 * all).then(|| format!("{name} {:.0} %", 100.0 * per_s / all));
    let shares: Vec<String> = GRAIN_NAMES.into_iter().zip(rates.grains_per_s).filter_map(share).collect();
    let mut words = Vec::from_iter(job.asked_grain().map(|grain| format!("--grain {}", grain.exact())));
    words.extend((all > 0.0).then(|| format!("reads that were waited for, up to: {}", shares.join("  "))));
    (!words.is_empty()).then(|| format!("{:<NAME$}{}", "grain", words.join("; ")))
}

fn so_far(job: &Watched) -> String {
    let counters = &job.seen.counters;
    let get = |counter| counters.get(counter);
    let hits = or_dash(counters.near_hit_share(), percent);
    let (read, written) = (Bytes(get(Counter::BytesIn)), Bytes(get(Counter::BytesOut)));
    let waited = get(Counter::StallNs) as f64 / 1e9;
    match job.paging() {
        Paging::Pager => format!("{:<NAME$}{read} in, {written} out, {hits} % hits, threads waited {waited:.1} s", "so far"),
        Paging::Kernel => format!("{:<NAME$}about {read} in, {written} out, {hits} % hits", "so far"),
        Paging::Nodes => {
            let placed = Bytes(get(Counter::PlacedLive));
            format!("{:<NAME$}{placed} in objects that were placed near one by one", "now")
        }
    }
}

/// What else should be known.
fn note(job: &Watched) -> Option<String> {
    let why = match job.paging() {
        _ if job.seen.members.is_empty() && job.ended_ns.is_none() => "no process of it is managed (yet)".into(),
        _ if job.seen.unmanaged > 0 => {
            format!("{} processes could not be managed: they run in ordinary memory", job.seen.unmanaged)
        }
        Paging::Pager => return None,
        Paging::Kernel => "the kernel pages (no userfaultfd): how long threads wait is not known".into(),
        Paging::Nodes => format!("nothing is paged between nodes; see \"nearfar map {}\"", job.pid()),
    };
    Some(format!("{:<NAME$}{why}", "note"))
}

/// The large objects, those that were waited for most first, and what is in none of them. Heat is the share of all misses.
fn objects(job: &Watched, most: usize) -> Vec<Row> {
    let all = job.rates.as_ref().and_then(|rates| rates.misses_per_s).filter(|_| job.paging() == Paging::Pager);
    let in_objects: f64 = job.objects.iter().filter_map(|object| object.misses_per_s).sum();
    let elsewhere = all.map(|all| all - in_objects).filter(|rest| *rest > 0.005 * all.unwrap_or(0.0));
    let row = |size: String, near: Option<f64>, misses: Option<f64>, wait: Option<f64>, name: String| {
        let share = misses.zip(all).map_or(0.0, |(misses, all)| if all > 0.0 { misses / all } else { 0.0 });
        let (near, misses, wait) = (or_dash(near, percent), or_dash(misses, count), or_dash(wait, percent));
        let text = format!("{size:>8} {near:>6} {misses:>7} {wait:>6}  {}  {name}", bar(share, HEAT.0));
        Row { text, chart_from: Some(HEAT.1) }
    };
    let object = |object: &ObjectRates| {
        let whose = if job.members.len() > 1 { format!("{}: ", object.pid) } else { String::new() };
        let name = whose + object.name.as_deref().unwrap_or("...");
        row(bytes(object.bytes), object.near_share, object.misses_per_s, object.wait_share, name)
    };
    let shown = most.saturating_sub(usize::from(elsewhere.is_some()));
    let rest = elsewhere.map(|rest| row("-".into(), None, Some(rest), None, "elsewhere: small blocks, mappings".into()));
    job.objects.iter().take(shown).map(object).chain(rest).take(most).collect()
}

/// The processes, those that wait most first.
fn members(job: &Watched, most: usize) -> Vec<String> {
    let wait = |at: usize| job.members[at].as_ref().and_then(|rates| rates.wait_share).unwrap_or(-1.0);
    let mut all: Vec<usize> = (0..job.members.len()).collect();
    all.sort_by(|&a, &b| wait(b).total_cmp(&wait(a)));
    let shown = if all.len() > most { most.saturating_sub(1) } else { all.len() };
    let mut lines: Vec<String> = all[..shown].iter().map(|&at| member(job, at)).collect();
    if shown < all.len() {
        lines.push(format!("{:>7} processes more", all.len() - shown));
    }
    lines
}

fn member(job: &Watched, at: usize) -> String {
    let (member, rates) = (&job.seen.members[at], job.members[at].as_ref());
    let rate = |of: fn(&Rates) -> Option<f64>, text: fn(f64) -> String| or_dash(rates.and_then(of), text);
    format!(
        "{:>7} {:>6} {:>5} {:>7} {:>8} {:>9} {:>6}  {}",
        member.pid,
        bytes(member.near_used_bytes),
        rate(|rates| rates.hit_share, percent),
        rate(|rates| rates.misses_per_s, count),
        rate(|rates| rates.in_bytes_per_s, megabytes),
        rate(|rates| rates.out_bytes_per_s, megabytes),
        rate(|rates| rates.wait_share, percent),
        job.names.get(at).map_or("", String::as_str),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::watched::tests::{busy, member, seen};

    fn text(job: &Watched, width: usize, height: usize) -> String {
        rows(job, width, height).into_iter().map(|row| row.text + "\n").collect()
    }

    #[test]
    fn a_busy_job() {
        let job = busy(1, "./stream");
        let text = text(&job, 78, 13);
        for part in [
            "799.0 MiB of 800.0 MiB, 12.0 MiB of it tables",
            "far      3.0 GiB of data, busy 93.0 %, depth 7.8, /var/tmp",
            "hit %         75.0",
            "wait %         125",
            "most 1.2k",
            "reads that were waited for, up to: 64K 100 %",
            "1.4 GiB in, 238.4 MiB out, 75.0 % hits, threads waited 1.2 s",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('…') && text.lines().all(|line| line.chars().count() <= 78), "{text}");
        assert_eq!(title(&job, 0, 78), " 4711: ./stream --size 4G ");
        assert_eq!(rows(&job, 78, 3).len(), 3);
    }

    #[test]
    fn hot_objects() {
        let mut job = busy(1, "./stream");
        let of = |misses: f64, name: &str| ObjectRates {
            pid: 4711,
            bytes: 2 << 30,
            near_share: Some(0.25),
            misses_per_s: Some(misses),
            wait_share: Some(misses / 1000.0),
            name: Some(name.into()),
            ..ObjectRates::default()
        };
        job.objects = vec![of(617.0, "solve (app.c:7)"), of(0.0, "static arrays of app")];
        let text = self::text(&job, 78, 18);
        for part in [
            OBJECT,
            "    2.0G   25.0     617   61.7  ████░░░░  solve (app.c:7)",
            "░░░░░░░░  static arrays of app",
            "     617      -  ████░░░░  elsewhere",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(self::text(&job, 78, 10).lines().all(|line| !line.contains("SIZE")), "no room for one");
        job.seen.members.push(member(12, &[]));
        job.members.push(None);
        let text = self::text(&job, 78, 18);
        assert!(text.contains("4711: solve (app.c:7)") && text.contains(MEMBER), "{text}");
        // Where nobody counts them there is nothing elsewhere.
        job.seen.kernel_paging = true;
        assert!(!self::text(&job, 78, 18).contains("elsewhere"));
    }

    #[test]
    fn processes_and_notes() {
        let mut job = busy(1, "mpirun");
        let mut now = seen((0..9).map(|pid| member(100 + pid, &[(Counter::StallNs, u64::from(pid) * 1000)])).collect());
        now.unmanaged = 2;
        job.update(now.clone(), 2_000_000_000);
        job.update(now, 3_000_000_000);
        job.names = (0..9).map(|rank| format!("rank{rank}")).collect();
        let text = text(&job, 78, 14);
        assert!(text.contains("2 processes could not be managed") && text.contains("processes more"), "{text}");
        assert!(text.contains("  rank0"), "{text}");
        assert!(text.contains(MEMBER) && text.lines().count() == 14, "{text}");
        job.ended_ns = Some(3_000_000_000);
        assert!(title(&job, 7_000_000_000, 78).contains("--size 4G (ended 4 s ago: its last figures)"));
    }

    #[test]
    fn jobs_that_tell_less() {
        let mut job = busy(1, "x");
        job.seen.kernel_paging = true;
        assert!(text(&job, 78, 20).contains("the kernel pages"));
        job.seen.near_nodes.insert(1);
        let nodes = text(&job, 78, 20);
        assert!(nodes.contains("nearfar map 4711") && !nodes.contains("hit %"), "{nodes}");
    }
}
