//! A suite as text: what is said while it runs, and its tables.

use super::works::WORKS;
use crate::files::suite::{Point, Spread, SuiteFile, SuiteMachine, System, Verdict, WorkResults};
use crate::ui::table::{align_right, for_output, framed};
use nearfar_core::units::Bytes;
use std::fmt::Write;

/// All works.
pub fn list() -> String {
    let mut table = for_output(120);
    table.set_header(["work", "what it is", "how it goes over its data"]);
    for work in WORKS {
        table.add_row([work.name, work.title, work.access]);
    }
    format!("{table}\n")
}

/// Version and machine, in a line.
pub fn origin(nearfar: &str, machine: &SuiteMachine) -> String {
    format!("nearfar {nearfar} on {} ({} CPUs), kernel {}, far {}", machine.cpu, machine.cpus, machine.kernel, machine.far)
}

/// The lines above everything.
pub fn heading(file: &SuiteFile) -> String {
    let (machine, settings) = (&file.machine, &file.settings);
    let ratios: Vec<String> = settings.ratios.iter().map(f64::to_string).collect();
    format!(
        "suite     {} works of {}, data {} times near; runs of each point: {}; a repetition is stopped after {} s, or 6 times that in all-DRAM\n\
         machine   {} ({} CPUs), {} of memory, kernel {}, huge pages: {}\n\
         far       {}\n\
         nearfar   {}\n",
        file.works.len(),
        Bytes(settings.data_bytes).exact(),
        ratios.join(", "),
        settings.runs,
        settings.seconds,
        machine.cpu,
        machine.cpus,
        Bytes(machine.ram),
        machine.kernel,
        machine.huge_pages,
        machine.far,
        file.nearfar,
    )
}

/// `, about 3 min left`.
pub fn time_left(seconds: Option<f64>) -> String {
    match seconds {
        None => String::new(),
        Some(s) if s < 90.0 => format!(", about {s:.0} s left"),
        Some(s) if s < 5400.0 => format!(", about {:.0} min left", s / 60.0),
        Some(s) => format!(", about {:.1} h left", s / 3600.0),
    }
}

/// `nearfar, disk, data 2 x near, 1 thread`.
pub fn where_(point: &Point) -> String {
    let ratio = if point.system == System::Dram { String::new() } else { format!(", data {} x near", point.ratio) };
    let threads = if point.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", point.threads) };
    format!("{}{ratio}, {threads}", point.system.name())
}

/// What the last run of a point gave.
pub fn step_line(work: &WorkResults, index: usize) -> String {
    let point = &work.points[index];
    let what = format!("{}, {}", work.name, where_(point));
    let Some(run) = point.runs.last() else {
        return format!("{what}: not measured: {}", point.obstacle.as_deref().unwrap_or("no reason known"));
    };
    if let Some(why) = &run.failed {
        return format!("{what}: failed: {why}");
    }
    let share = work.efficiency(point).filter(|_| point.system != System::Dram);
    let share = share.map_or_else(String::new, |share| format!(", {} of all-DRAM", percent(&share)));
    format!("{what}: {}{:.3} s{share}", if run.stopped { "more than " } else { "" }, run.seconds)
}

/// A share, as it is shown.
pub fn percent(share: &Spread) -> String {
    format!("{}{} %", if share.stopped { "< " } else { "" }, digits(share.median))
}

/// A share in per cent, with as many digits as tell something.
pub fn digits(share: f64) -> String {
    let percent = 100.0 * share;
    let places = match percent {
        p if p >= 10.0 => 0,
        p if p >= 0.1 => 1,
        _ => 3,
    };
    format!("{percent:.places$}")
}

/// Speed by work and ratio for every system and number of threads, what failed, and the targets.
pub fn tables(file: &SuiteFile) -> String {
    let mut text = String::new();
    for &threads in &file.settings.threads {
        for &system in file.settings.systems.iter().filter(|system| !system.is_mode()) {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "\n{}, {threads} {}: speed as a share of all-DRAM / its bound (?: not known)\n{}",
                system.name(),
                if threads == 1 { "thread" } else { "threads" },
                shares(file, system, threads)
            );
        }
    }
    for work in &file.works {
        for point in &work.points {
            let what = if point.obstacle.is_some() { "not measured" } else { "failed" };
            if let Some(why) = point.trouble() {
                let _ = writeln!(text, "  {}, {}: {what}: {why}", work.name, where_(point));
            }
        }
    }
    text + &targets(&file.verdicts())
}

fn shares(file: &SuiteFile, system: System, threads: usize) -> String {
    let mut table = framed();
    let ratios = &file.settings.ratios;
    let head = ["work".to_owned(), "flop/byte".to_owned()].into_iter().chain(ratios.iter().map(|ratio| format!("{ratio} x")));
    table.set_header(head);
    align_right(&mut table, 1..ratios.len() + 2);
    for work in &file.works {
        let cell = |&ratio: &f64| {
            let Some(point) = work.point(system, threads, ratio) else { return "-".to_owned() };
            let Some(share) = work.efficiency(point) else { return "-".to_owned() };
            let bound = match &point.bound {
                _ if !system.is_nearfar() => String::new(),
                Some(bound) => format!(" / {}", digits(bound.efficiency)),
                None => " / ?".to_owned(),
            };
            percent(&share) + &bound
        };
        let intensity = if work.intensity > 0.0 { format!("{:.2}", work.intensity) } else { "-".to_owned() };
        table.add_row([work.name.clone(), intensity].into_iter().chain(ratios.iter().map(cell)));
    }
    table.to_string()
}

fn targets(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut table = for_output(140);
    table.set_header(["work", "data", "of all-DRAM", "low .. high", "target", "", "published", "why"]);
    align_right(&mut table, 1..5);
    for verdict in verdicts {
        let (share, spread) = match &verdict.measured {
            Some(share) => (percent(share), format!("{:.0} .. {:.0}", 100.0 * share.low, 100.0 * share.high)),
            None => ("-".to_owned(), String::new()),
        };
        let met = match verdict.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "open",
        };
        let target = verdict.target;
        table.add_row([
            verdict.title.to_owned(),
            format!("{} x near", target.ratio),
            share,
            spread,
            format!(">= {:.0} %", 100.0 * target.least),
            met.to_owned(),
            target.published.clone(),
            verdict.why.clone(),
        ]);
    }
    let count = |met| verdicts.iter().filter(|verdict| verdict.met == met).count();
    format!(
        "\ntargets, far emulated at an eighth of the bandwidth of DRAM, as many threads as there are\n{table}\n  {} met, {} missed, {} open\n\n",
        count(Some(true)),
        count(Some(false)),
        count(None)
    )
}
