//! Pages of `nearfar report` in a browser: every kind, at the widths of a phone, a small and a large screen, in light and in dark.
//!
//! `pages/check.js` looks at the page from inside and drives a suite. The page lies in a frame, since a browser's own window is never
//! as narrow as a phone. `NEARFAR_SHOTS=DIR` keeps pictures, to be looked at.

use crate::util::{Scratch, compile, nearfar_bin};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shared with unit tests of `src/report/suite`.
#[path = "util/suite_sample.rs"]
mod suite_sample;

const CHECK: &str = include_str!("pages/check.js");
/// Widths in pixels, and whether it is dark: what differs in the dark are colours, and most of a width is seen in either.
const OPENINGS: [(u32, bool); 4] = [(390, false), (390, true), (1024, false), (1600, true)];
/// Most milliseconds until a page can be used, in the quickest of its openings. It was 0.5 to 0.7 s for the largest beside another page,
/// and 1.1 s beside other tests on a machine that others used too.
const MOST_MS: f64 = 3000.0;
const MOST_BYTES: usize = 2_000_000;

/// Before all else in the page: what goes wrong is kept. The base makes links within the page lead to the page, though it is in a frame.
const EARLY: &str = "<base href=\"about:srcdoc\"><script>window.errors = [];\
    addEventListener('error', (event) => errors.push(event.message));\
    addEventListener('securitypolicyviolation', (event) => errors.push('refused: ' + event.blockedURI));</script>";
/// Takes what the check found out of the frame.
const TAKE: &str = "<script>addEventListener('load', () => { const pre = document.createElement('pre'); pre.id = 'result';\
    pre.textContent = page.contentDocument.getElementById('found')?.textContent || 'nothing';\
    document.body.replaceChildren(pre); })</script>";

/// The page that nearfar makes of `files`.
fn report(scratch: &Scratch, files: &[&Path], more: &[&str]) -> String {
    let page = scratch.work().join("page.html");
    let output =
        Command::new(nearfar_bin()).arg("report").args(files).args(more).arg("-o").arg(&page).output().expect("nearfar runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(page).expect("a page")
}

fn file(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.work().join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn framed(page: &str, (width, height): (u32, u32), more: &str) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><body style=\"margin:0\">\
         <iframe id=\"page\" width=\"{width}\" height=\"{height}\" style=\"border:0;display:block\" srcdoc=\"{page}\"></iframe>{more}"
    )
}

fn chromium(scratch: &Scratch, html: &str, dark: bool, (width, height): (u32, u32), options: &[String]) -> String {
    let outer = file(scratch, "outer.html", html);
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
        .arg(format!("--user-data-dir={}", scratch.work().join("browser").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .args(options)
        .arg(format!("file://{}", outer.display()))
        .stdin(Stdio::null())
        .output()
        .expect("chromium runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the check finds in `page`.
#[track_caller]
fn checked(scratch: &Scratch, page: &str, width: u32, dark: bool) -> Value {
    let mut page = page.replacen("<title>", &format!("{EARLY}<title>"), 1);
    if !page.contains("script-src") {
        // A page without scripts refuses the check as well.
        page = page.replacen("style-src", "script-src 'unsafe-inline'; style-src", 1);
    }
    let (start, end) = page.rsplit_once("</body>").expect("a body");
    let html = framed(&format!("{start}<script>{CHECK}</script></body>{end}"), (width, 1000), TAKE);
    let dom = chromium(scratch, &html, dark, (1700, 1100), &["--dump-dom".to_owned()]);
    let result = dom.rsplit_once("<pre id=\"result\">").and_then(|(_, rest)| Some(rest.split_once("</pre>")?.0));
    let result = result.unwrap_or_else(|| panic!("the browser gave no result: {}", &dom[..dom.len().min(500)]));
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let found: Value = serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {result}"));
    assert_eq!((found["width"].as_u64(), found["dark"].as_bool()), (Some(u64::from(width)), Some(dark)));
    found
}

/// No problem at any width, in light and in dark; what the page showed when it was driven.
#[track_caller]
fn reads_well(scratch: &Scratch, name: &str, page: &str) -> Value {
    assert!(page.len() < MOST_BYTES, "{name}: {} bytes", page.len());
    let (mut values, mut quickest) = (Value::Null, f64::INFINITY);
    for (width, dark) in OPENINGS {
        let found = checked(scratch, page, width, dark);
        let problems = found["problems"].as_array().expect("a list");
        let scheme = if dark { "dark" } else { "light" };
        assert!(problems.is_empty(), "{name}, {width} pixels, {scheme}:\n{problems:#?}");
        assert!(found["texts"].as_u64() > Some(20), "{name}: {found}");
        quickest = quickest.min(found["ready_ms"].as_f64().expect("milliseconds"));
        values = found["values"].clone();
        if let Some(dir) = std::env::var_os("NEARFAR_SHOTS") {
            let shot = Path::new(&dir).join(format!("{name}-{width}-{scheme}.png"));
            let size = (width.max(500), 3000);
            let options = ["--virtual-time-budget=3000".to_owned(), format!("--screenshot={}", shot.display())];
            chromium(scratch, &framed(page, (width, size.1), ""), dark, size, &options);
        }
    }
    println!("{name}: {} bytes, ready after {quickest:.0} ms", page.len());
    assert!(quickest < MOST_MS, "{name}: ready after {quickest} ms");
    values
}

#[test]
fn a_suite_reads_well_and_answers_to_what_is_chosen() {
    needs!("chromium");
    let scratch = Scratch::new();
    let suite = file(&scratch, "suite.json", &suite_sample::json());
    let page = report(&scratch, &[&suite], &[]);
    let values = reads_well(&scratch, "suite", &page);
    let told = |name: &str| values[name].as_str().unwrap_or_else(|| panic!("{name}: {values}")).to_owned();
    // The same cell in every unit, with other threads, with another far.
    let shown: Vec<String> = ["start", "rate", "seconds", "one_thread", "emulated"].iter().map(|name| told(name)).collect();
    assert!((1..shown.len()).all(|at| !shown[..at].contains(&shown[at])), "{shown:?}");
    assert!(shown[0].ends_with('%') && shown[2].ends_with('s') && !shown[1].ends_with(['%', 's']), "{shown:?}");
    assert!(told("heading").starts_with("With data 8 times near"));
    // Hover and focus tell value, spread, runs and bound; a click shows the work.
    for words in ["lu", "nearfar, emulated far: ", "% – ", "3 runs", "bound: ", "kernel swap: "] {
        assert!(told("tip").contains(words), "{words}: {}", told("tip"));
    }
    assert!(told("before").starts_with("chase: ") && told("work") == "lu: LU by panels of columns" && told("current") == "lu");
    assert!(told("command").contains("--far emu:bw=1.5G,lat=10us -- nearfar-kernel lu"), "{}", told("command"));
    assert!(told("split").starts_with("8 ") && told("split").matches('%').count() == 3, "{}", told("split"));
    assert!(told("arrow").starts_with("data 6 times near") && told("arrow").contains("mmap of a file: "));
    assert_eq!((told("by_strip").as_str(), &values["unfolded"]), ("triad: STREAM triad", &json!(true)));
    assert_eq!(values["drawn"], json!([true, true]));
}

/// The same figures, said of modes: they stand beside each other.
#[test]
fn modes_read_well_beside_each_other() {
    needs!("chromium");
    let scratch = Scratch::new();
    let renamed = [("disk", "cache"), ("emulated", "flat_by_plan"), ("swap", "hybrid25"), ("mmap", "all_far")];
    let modes = renamed
        .iter()
        .fold(suite_sample::json(), |text, (system, mode)| text.replace(&format!("\"{system}\""), &format!("\"{mode}\"")));
    let page = report(&scratch, &[&file(&scratch, "modes.json", &modes)], &[]);
    assert!(page.contains("With a third of the memory near, ") && page.contains("in the middle of the works they keep"));
    let values = reads_well(&scratch, "modes", &page);
    for words in ["cache: ", "flat by plan: ", "hybrid 25 %: ", "all far: "] {
        assert!(values["tip"].as_str().is_some_and(|tip| tip.contains(words)), "{words}: {values}");
    }
}

#[test]
fn a_suite_without_scripts_has_its_answer_and_tables() {
    needs!("chromium");
    let scratch = Scratch::new();
    let suite = file(&scratch, "suite.json", &suite_sample::json());
    let page = report(&scratch, &[&suite], &[]).replace("script-src 'unsafe-inline'", "script-src 'none'");
    let dom = chromium(&scratch, &page, false, (1024, 1000), &["--dump-dom".to_owned()]);
    assert!(dom.contains("With a third of the memory") && !dom.contains("class=\"suite live\""));
    assert_eq!(dom.matches("class=\"strip\"").count(), 4, "all of them, none hidden");
    assert!(!dom.contains("hidden=\"\"") && dom.contains("All figures"));
}

#[test]
fn every_other_report_reads_well() {
    needs!("chromium", "gcc");
    let scratch = Scratch::new();
    let machine = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("machines").join(format!("{name}.json"));
    reads_well(&scratch, "machine", &report(&scratch, &[&machine("knl-flat")], &[]));
    reads_well(&scratch, "compare", &report(&scratch, &[&machine("xeon-max-9480-flat")], &["--compare", "hbv4"]));

    let run = json!({
        "format": "nearfar-run", "version": 1, "nearfar": "0.0.0", "program": "/usr/bin/solver", "args": ["--of", "test data"],
        "near_bytes": 838_860_800_u64, "far": "/var/tmp", "mode": "cache", "wall_s": 12.5, "cpu_user_s": 9.1, "cpu_system_s": 1.2,
        "machine": { "cpu": "Made-up processor", "cpus": 2, "kernel": "0.0", "ram": 8_u64 << 30 }, "exit": { "status": 0 }, "processes": 1,
        "counters": { "faults": 123_456, "bytes_in": 3_u64 << 30, "bytes_out": 1_u64 << 30, "stall_ns": 3_750_000_000_u64, "late": 0 },
        "units": { "faults": "count", "bytes_in": "bytes", "bytes_out": "bytes", "stall_ns": "ns", "late": "count" },
        "derived": { "near_hit_share": 0.75, "stall_share": 0.3, "bound_s": 9.0, "bound_method": "the larger of the two", "efficiency_vs_bound": 0.72 }
    });
    let run = file(&scratch, "run.json", &run.to_string());
    reads_well(&scratch, "run", &report(&scratch, &[&run], &[]));

    let time = |value: f64| json!({ "value": value, "low": 0.9 * value, "high": 1.1 * value });
    let row = |name: &str, predicted: f64, median: f64| json!({ "name": name, "predicted": time(predicted), "measured": [median], "median": median, "error": predicted / median - 1.0 });
    let advice = json!({
        "nearfar_advice": 1, "program": "solver", "near_bytes": 1_u64 << 30, "notes": ["Test data."],
        "advice": {
            "times": { "all_far": time(10.0), "plan": time(4.0), "all_near": time(2.0), "cache": time(5.0), "hybrid": time(4.5) },
            "items": [{ "name": "psi (wave.f90:120)", "bytes": 1 << 29, "near": 1.0, "gain": time(5.0), "why": "most of the traffic" }]
        },
        "verified": { "rows": [row("All far", 10.0, 11.0), row("Mixed", 4.0, 4.4), row("All near", 2.0, 2.1)], "gain_share": 0.7, "bytes_share": 0.4 }
    });
    let advice = file(&scratch, "advice.json", &advice.to_string());
    reads_well(&scratch, "advice", &report(&scratch, &[&advice], &[]));

    let profile = scratch.work().join("a.nfprof");
    let mut command = Command::new(nearfar_bin());
    command.arg("profile").arg("-o").arg(&profile).arg("--").arg(compile("profiled_objects.c")).arg("plain");
    let output = command.current_dir(scratch.work()).stdin(Stdio::null()).output().expect("nearfar runs");
    assert!(profile.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    reads_well(&scratch, "profile", &report(&scratch, &[&profile, &machine("knl-flat")], &[]));
}
