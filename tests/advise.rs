//! What is advised for a profile, whether plans find objects again in another build, and what bad input is told. The profiles here are
//! summaries made by hand, of a program whose traffic is known; those of real runs are tests of `nearfar profile`.

use crate::util::{Scratch, nearfar_bin, program_file, shared_machine};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;
const BINS: usize = 8;

/// `advise_arrays` as these options build it.
fn built(dir: &Path, options: &[&str]) -> PathBuf {
    let out = dir.join("arrays");
    let mut gcc = Command::new("gcc");
    gcc.args(options).args(["-g", "-o"]).arg(&out).arg(program_file("advise_arrays.c"));
    assert!(gcc.status().expect("gcc runs").success());
    out
}

fn build_id(program: &Path) -> String {
    let notes = Command::new("readelf").arg("-n").arg(program).output().expect("readelf runs");
    let text = String::from_utf8_lossy(&notes.stdout).into_owned();
    text.split("Build ID: ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a build id").to_owned()
}

fn estimate(value: f64) -> String {
    format!(r#"{{"value": {value}, "low": {}, "high": {}}}"#, 0.9 * value, 1.1 * value)
}

/// An array of `mib` that was swept so often, allocated in `function`, of which `allocate` had become a part.
fn object(name: &str, mib: u64, sweeps: f64, function: &str, build_id: &str) -> String {
    let bytes = mib * MIB;
    let traffic = bytes as f64 * sweeps;
    let per_bin = |value: f64| format!("{:?}", vec![value; BINS]);
    let frame = |function: &str, symbol: &str| {
        format!(
            r#"{{"module": "arrays", "build_id": "{build_id}", "offset": 0, "symbol": "{symbol}", "function": "{function}", "line": "a.c:1"}}"#
        )
    };
    format!(
        r#"{{"name": "{name}", "kind": "Heap", "symbol": "", "frames": [{}, {}, {}], "count": 1, "least": {bytes}, "most": {bytes},
        "peak_bytes": {bytes}, "live_bytes": {}, "lifetime_s": 1, "footprint": {}, "read": {}, "written": {}, "traffic": {},
        "lines_per_visit": {}, "pattern": "stream", "misses": {{"points": [[0, 1], [{}, 1], [{bytes}, 0]]}}, "page_visits": {},
        "routines": [["sum", 1.0]], "busy_s": 0, "looks": 200, "touches": 150}}"#,
        frame("allocate", ""),
        frame(function, function),
        frame("main", "main"),
        per_bin(bytes as f64),
        estimate(bytes as f64),
        estimate(traffic),
        estimate(0.0),
        per_bin(traffic / BINS as f64),
        estimate(64.0),
        bytes - MIB,
        estimate(traffic / 4096.0),
    )
}

/// A profile of `program` of which `sweeps` went over the hot array.
fn profile(program: &Path, sweeps: f64) -> String {
    let id = build_id(program);
    let objects = [
        object("hot", 32, sweeps, "allocate_hot", &id),
        object("warm", 64, sweeps / 8.0, "allocate_warm", &id),
        object("cold", 64, 0.0, "allocate_cold", &id),
    ];
    let path = program.display();
    format!(
        r#"{{"format": 1, "program": "{path}", "args": ["32", "64", "64", "16"], "processes": 1, "host": "h", "method": "PageFaults",
        "wall_s": 2.0, "cpu_s": 2.0, "bin_s": 0.25, "cache_bytes": 33554432, "peak_bytes": {}, "objects": [{}], "routines": [],
        "misses": {{"points": []}}, "overhead": 0.01, "notes": []}}"#,
        160 * MIB,
        objects.join(",")
    )
}

fn advise(scratch: &Scratch, args: &[&str]) -> Output {
    Command::new(nearfar_bin()).arg("advise").args(args).current_dir(scratch.work()).output().expect("nearfar runs")
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A program, its profile in `app.json` and the plan of it.
fn planned(scratch: &Scratch, options: &[&str]) -> PathBuf {
    let program = built(&scratch.work(), options);
    fs::write(scratch.work().join("app.json"), profile(&program, 400.0)).expect("written");
    let output = advise(scratch, &["app.json", "--near", "64M", "--far", "emu:bw=4G,lat=10us", "-o", "plan.toml"]);
    assert!(output.status.success(), "{}", words(&output));
    program
}

#[test]
fn the_hot_array_is_near_with_its_reason_and_its_gain() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    planned(&scratch, &["-O2"]);
    let args = ["app.json", "--near", "64M", "--far", "emu:bw=4G,lat=10us", "--json", "a.json", "--plot", "a.svg"];
    let output = advise(&scratch, &args);
    let text = words(&output);
    let row = text.lines().find(|line| line.contains("hot")).expect("a row");
    assert!(row.contains("near") && row.contains(" s +- ") && row.contains("in order"), "{text}");
    for part in ["all far", "plan", "all near", "cache", "hybrid", "run time by bytes of near", "<- --near"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plan = fs::read_to_string(scratch.work().join("plan.toml")).expect("a plan");
    assert!(
        plan.contains("# why: ") && plan.contains("function = \"allocate_hot\"") && !plan.contains("allocate_cold"),
        "{plan}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scratch.work().join("a.json")).expect("written")).expect("JSON");
    let far = json["advice"]["times"]["all_far"]["value"].as_f64().expect("a number");
    let planned = json["advice"]["times"]["plan"]["value"].as_f64().expect("a number");
    assert!(far > 1.5 * planned && json["advice"]["items"][0]["name"] == "hot", "{far} {planned}");
    let svg = fs::read_to_string(scratch.work().join("a.svg")).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.contains("cache mode"));
    let knl = words(&advise(&scratch, &["app.json", "--near", "64M", "--machine", "knl-flat"]));
    assert!(knl.contains("knl-flat") && knl.contains("predicted run time"), "{knl}");
}

#[test]
fn plans_find_objects_in_other_builds() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let program = planned(&scratch, &["-O2"]);
    for options in [&["-O2"][..], &["-O0"], &["-O3", "-DOTHER"], &["-O1", "-fno-plt"]] {
        built(&scratch.work(), options);
        let mut run = Command::new(nearfar_bin());
        run.args(["run", "--near", "64M", "--far", "emu:bw=4G,lat=10us", "--place", "plan:plan.toml", "--"]).arg(&program);
        let output = run.args(["32", "64", "64", "1"]).current_dir(scratch.work()).output().expect("nearfar runs");
        let text = words(&output);
        assert!(output.status.success() && text.starts_with("OK"), "{options:?}: {text}");
        assert!(text.contains("placed near: 1 objects of 32.0 MiB"), "{options:?}: {text}");
        assert_eq!(text.contains("rebuilt"), options != ["-O2"], "{options:?}: {text}");
    }
}

#[test]
fn a_plan_of_another_program_stops_unless_forced() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    planned(&scratch, &["-O2"]);
    let run = |options: &[&str]| {
        let mut run = Command::new(nearfar_bin());
        run.args(["run", "--near", "64M", "--far", "emu:bw=4G,lat=10us", "--place", "plan:plan.toml"]).args(options);
        run.args(["--", "/bin/true"]).current_dir(scratch.work()).output().expect("nearfar runs")
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(words(&refused).contains("--force"), "{}", words(&refused));
    assert_eq!(run(&["--force"]).status.code(), Some(0));
}

#[test]
fn predictions_are_verified() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    planned(&scratch, &["-O2"]);
    let args = [
        "app.json",
        "--near",
        "64M",
        "--far",
        "emu:bw=4G,lat=10us",
        "--verify",
        "--runs",
        "1",
        "--each",
        "--sets",
        "--json",
        "v.json",
    ];
    let output = advise(&scratch, &args);
    let text = words(&output);
    assert!(output.status.success(), "{text}");
    let runs = ["round 1 of 1: All far, predicted ", "predicted to take ", "Ctrl-C ends them"];
    for part in ["All far", "Mixed", "All near", "only hot", "measured", "of the gain of all near with"].into_iter().chain(runs) {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scratch.work().join("v.json")).expect("written")).expect("JSON");
    assert_eq!(json["verified"]["rows"].as_array().map(Vec::len), Some(4));
    let verified = &json["verified"];
    assert!(verified["rows"][0]["error"].is_number());
    // What comes from far is said and counted; with everything near, nothing does.
    let read = |row: usize, of: &str| verified["rows"][row][of]["read"].as_f64().expect("bytes");
    assert!(read(0, "predicted_moved") > 1e6 && read(0, "measured_moved") > 1e6, "{verified}");
    assert_eq!((read(2, "predicted_moved"), read(2, "measured_moved")), (0.0, 0.0), "{verified}");
    // The plan is run against other sets only.
    let sets = verified["sets"].as_array().expect("sets");
    let items = json["advice"]["items"].as_array().expect("items");
    let planned: Vec<_> = items.iter().filter(|item| item["near"].as_f64() > Some(0.0)).map(|item| &item["name"]).collect();
    let same = |set: &serde_json::Value| {
        let objects = set["objects"].as_array().expect("objects");
        objects.len() == planned.len() && planned.iter().all(|name| objects.contains(name))
    };
    assert!(!sets.is_empty(), "{verified}");
    assert_eq!(sets.iter().any(|set| !same(set)), verified["against_best"]["runs"] == 3, "{verified}");
    let other = advise(&scratch, &["app.json", "--near", "64M", "--far", "emu:bw=4G", "--verify", "--", "/bin/true"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(words(&other).contains("the profile is of"), "{}", words(&other));
    let fails = built(&scratch.work(), &["-O2", "-DSTATUS=7"]);
    let failed =
        advise(&scratch, &["app.json", "--near", "64M", "--far", "emu:bw=4G", "--verify", "--", &fails.to_string_lossy()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(words(&failed).contains("status 7"), "{}", words(&failed));
}

#[test]
fn bad_input_is_told() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let program = built(&scratch.work(), &["-O2"]);
    let write = |name: &str, text: &str| fs::write(scratch.work().join(name), text).expect("written");
    let right = profile(&program, 100.0);
    write("app.json", &right);
    write("idle.json", &profile(&program, 0.0));
    write("text", "not a profile at all");
    write("empty", "");
    let emu = ["--far", "emu:bw=4G,lat=10us"];
    let told = |args: &[&str], hint: &str| {
        let output = advise(&scratch, args);
        let text = words(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(hint), "{args:?}: {text}");
    };
    told(&["text", "--near", "64M", emu[0], emu[1]], "not a profile");
    told(&["empty", "--near", "64M", emu[0], emu[1]], "holds nothing");
    told(&["missing", "--near", "64M", emu[0], emu[1]], "No such file");
    told(&["idle.json", "--near", "64M", emu[0], emu[1]], "saw no use");
    told(&["app.json", "--near", "64M"], "no machine is named");
    told(&["app.json", "--near", "64M", "--machine", "knl-flta"], "did you mean knl-flat");
    told(&["app.json", "--near", "64M", "--machine", "genoa-9004"], "one kind of memory");
    told(&["app.json", "--near", "17G", "--machine", "knl-flat"], "--near 17G: that is 17.0 GiB, but knl-flat has 16.0 GiB");
    write("bins.json", &right.replace("\"bin_s\": 0.25", "\"bin_s\": 1e-9"));
    told(&["bins.json", "--near", "64M", emu[0], emu[1]], "not a summary of a profile: bin_s");
    write("other.json", &right.replace("\"format\": 1", "\"format\": 9"));
    told(&["other.json", "--near", "64M", emu[0], emu[1]], "format 9");
    told(&["app.json", "--near", "node:1", emu[0], emu[1]], "write a size");
    told(&["app.json", "--near", "64M", "--far", "node:0"], "--machine node.json");
    told(&["app.json", "--near", "64M", "--verify"], "--far emu");
    told(&["app.json", "--near", "64M", emu[0], emu[1], "-o", "/nowhere/plan.toml"], "cannot be written");
    let knl = ["--machine", "knl-7250-flat"];
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--threads", "273"], "68 cores with 272 hardware threads");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--threads", "64", "--ranks", "5"], "that is 320 threads");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--threads", "8", "--scaling", "app.json"], "another number of threads");
    write("stranger.json", &right.replacen("/arrays\"", "/other\"", 1));
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--threads", "8", "--scaling", "stranger.json"], "that is a profile of");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--explain", "nobody"], "no object of the profile is called that");
    write("prices.toml", "currency = \"EUR\"\n[near]\ngib_huor = 1\n[far]\ngib_hour = 1\n");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--prices", "prices.toml"], "gib_huor");
    write("half.toml", "currency = \"EUR\"\n[near]\ngib = 1.0\n[far]\ngib_hour = 1.0\n");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--prices", "half.toml"], "[near] has no price");
    told(&["app.json", "--near", "64M", knl[0], knl[1], "--plain", "3"], "--plain belongs to a trace");
    let everything = advise(&scratch, &["app.json", "--near", "4G", emu[0], emu[1], "-o", "all.toml"]);
    assert!(everything.status.success() && words(&everything).contains("everything fits"), "{}", words(&everything));
    let plan = fs::read_to_string(scratch.work().join("all.toml")).expect("a plan");
    assert!(plan.contains("allocate_hot") && plan.contains("allocate_cold"), "{plan}");
}

#[test]
fn more_threads_and_ranks_and_prices_are_predicted() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let program = built(&scratch.work(), &["-O2"]);
    // Much traffic, nearly all that there is to do: two seconds for 400 GB.
    fs::write(scratch.work().join("app.json"), profile(&program, 4000.0)).expect("written");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/prices.toml"), scratch.work().join("prices.toml")).expect("copied");
    let times = |options: &[&str]| {
        let args = [&["app.json", "--near", "1G", "--machine", "knl-7250-flat", "--json", "out.json"], options].concat();
        let output = advise(&scratch, &args);
        assert!(output.status.success(), "{}", words(&output));
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(scratch.work().join("out.json")).expect("JSON")).expect("JSON");
        let of = |name: &str| json["advice"]["times"][name]["value"].as_f64().expect("seconds");
        (of("all_far"), of("all_near"), words(&output), json)
    };
    let (one, ..) = times(&[]);
    let (many, near, text, _) = times(&["--threads", "64"]);
    assert!(many < one && near < 0.6 * many, "64 threads fill DRAM, and MCDRAM is faster: {one} {many} {near}");
    assert!(text.contains("predicted for 64 threads (profiled: 1)") && text.contains("extrapolated"), "{text}");
    // Eight ranks have an eighth of the bandwidth each.
    let (ranks, ..) = times(&["--threads", "8", "--ranks", "8"]);
    assert!(ranks > 3.0 * many, "{ranks} {many}");
    let (_, _, text, json) = times(&["--threads", "64", "--prices", "prices.toml", "--explain", "hot"]);
    assert!(text.contains("prices in EUR") && text.contains("cheapest run") && text.contains("all stretches"), "{text}");
    let sizes = json["costs"]["sizes"].as_array().expect("sizes");
    assert!(sizes.iter().any(|size| size["front"] == true) && sizes.iter().any(|size| size["front"] == false), "{sizes:?}");
}

#[test]
fn a_trace_gives_run_time_by_near_size() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let kernel = nearfar_bin().with_file_name("nearfar-kernel");
    let kernel = kernel.to_str().expect("a name");
    let work = [kernel, "triad", "--bytes", "96M", "--threads", "1", "--sweeps", "3", "--verify", "none"];
    let run = |args: &[&str]| {
        let output = Command::new(nearfar_bin()).current_dir(scratch.work()).args(args).args(work).output().expect("runs");
        assert!(output.status.success(), "{}", words(&output));
        words(&output)
    };
    let emu = ["--far", "emu:bw=4G,lat=10us"];
    run(&["run", "--quiet", "--near", "48M", emu[0], emu[1], "--grain", "4K", "--trace", "app.nft", "--"]);
    let asked = ["advise", "app.nft", "--near", "48M", emu[0], emu[1], "--json", "curve.json", "--plot", "curve.svg"];
    let text = run(&[&asked[..], &["--verify", "--runs", "1", "--"]].concat());
    assert!(text.contains("<- --near") && text.contains("without nearfar"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(scratch.work().join("curve.json")).expect("JSON")).expect("JSON");
    let sizes = json["sizes"].as_array().expect("sizes");
    let at = |size: &serde_json::Value, name: &str| size[name].as_f64().unwrap_or_else(|| panic!("{name}: {size}"));
    let data = json["data_bytes"].as_f64().expect("bytes");
    assert!((0.99..1.1).contains(&(data / f64::from(96 << 20))), "{data}");
    let (least, most) = (sizes.first().expect("a size"), sizes.last().expect("a size"));
    assert!(least["seconds"]["value"].as_f64() > most["seconds"]["value"].as_f64(), "{sizes:?}");
    // Two sweeps of which half is not there.
    assert!(at(least, "read") > 0.8 * data && at(most, "read") < 0.4 * data, "{sizes:?}");
    assert!(sizes.iter().filter(|size| size["measured"].is_array()).count() >= 2, "{sizes:?}");
    assert!(fs::read_to_string(scratch.work().join("curve.svg")).expect("a chart").contains("measured"));
    let told = |args: &[&str], hint: &str| {
        let output = advise(&scratch, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", words(&output));
        assert!(words(&output).contains(hint), "{args:?}: {}", words(&output));
    };
    told(&["app.nft", "--near", "48M", emu[0], emu[1]], "--plain SECONDS");
    told(&["app.nft", "--near", "48M", emu[0], emu[1], "--plain", "0"], "without nearfar");
    told(&["app.nft", "--near", "48M"], "name what is far");
    told(&["app.nft", "--near", "48M", emu[0], emu[1], "--plain", "1", "--explain", "x"], "needs a profile");
    told(&["app.nft", "app.nft", "--near", "48M", emu[0], emu[1], "--plain", "1"], "asked about alone");
}

/// Predicted and measured seconds of a routine.
fn of_routine(row: &serde_json::Value, function: &str) -> (f64, f64) {
    let routines = row["routines"].as_array().expect("routines");
    let one = routines.iter().find(|one| one["function"] == function).unwrap_or_else(|| panic!("{function}: {row}"));
    (one["predicted"].as_f64().expect("a prediction"), one["measured"].as_f64().expect("a measurement"))
}

#[test]
fn predictions_are_verified_by_routine() {
    let (scratch, _beside) = (Scratch::new(), shared_machine());
    let program = built(&scratch.work(), &["-O2"]);
    let routine = |name: &str, seconds: f64| {
        let (time, traffic) = (vec![seconds / BINS as f64; BINS], estimate(0.0));
        format!(r#"{{"function": "{name}", "module": "arrays", "self_s": {seconds}, "time": {time:?}, "traffic": {traffic}}}"#)
    };
    let routines = format!(r#""routines": [{}, {}],"#, routine("sum", 1.5), routine("think", 0.5));
    let text = profile(&program, 400.0).replace(r#""routines": [],"#, &routines);
    fs::write(scratch.work().join("app.json"), text).expect("written");
    let nearfar = |args: &[&str]| {
        let output = Command::new(nearfar_bin()).args(args).current_dir(scratch.work()).output().expect("nearfar runs");
        assert!(output.status.success(), "{args:?}: {}", words(&output));
        words(&output)
    };
    let (far, program) = (["--far", "emu:bw=1G,lat=10us"], program.to_string_lossy());
    let advise = ["advise", "app.json", "--near", "64M", far[0], far[1], "--verify", "--runs", "1", "--json", "v.json"];
    let text = nearfar(&[&advise[..], &["--", &program, "32", "64", "64", "64", "12000000"]].concat());
    let json = fs::read_to_string(scratch.work().join("v.json")).expect("written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    if let Some(why) = json["verified"]["routines_missing"].as_str() {
        // EPERM, EACCES, ENOSYS, or no rights of a debugger; anything else is ours.
        let refused = ["(os error 1)", "(os error 13)", "(os error 38)", "cannot be observed"];
        assert!(refused.iter().any(|refusal| why.contains(refusal)), "{why}");
        return println!("skipped: {why}");
    }
    let rows = json["verified"]["rows"].as_array().expect("rows");
    for row in rows {
        let sum = |of: &str| row["routines"].as_array().expect("routines").iter().filter_map(|one| one[of].as_f64()).sum::<f64>();
        let (said, seen) = (row["predicted"]["value"].as_f64().expect("a number"), row["median"].as_f64().expect("a number"));
        assert!((sum("predicted") / said - 1.0).abs() < 1e-6 && (sum("measured") / seen - 1.0).abs() < 1e-6, "{row}");
    }
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {text}"));
    let (far, near) = (row("All far"), row("All near"));
    // Waits for far are of the one that goes through arrays, and not of the one that computes.
    let (moved, at_once) = (of_routine(far, "sum"), of_routine(near, "sum"));
    let (computed, beside) = (of_routine(far, "think"), of_routine(near, "think"));
    assert!(moved.0 > 1.5 * at_once.0 && (computed.0 / beside.0 - 1.0).abs() < 0.01, "{text}");
    // Other programs make both slower, each run as they happen to; what far adds makes one of them several times slower.
    println!("seconds measured, far and near: sum {} {}, think {} {}", moved.1, at_once.1, computed.1, beside.1);
    // All near, the arrays take a tenth of a second: on a busy machine no sample may fall into it.
    assert!(moved.1 > 0.0 && beside.1 > 0.0 && computed.1 > 0.0, "{text}");
    assert!(moved.1 * beside.1 > 1.5 * computed.1 * at_once.1.max(0.01), "{text}");
    assert!(text.contains("by routine: seconds predicted and measured, error") && text.contains(". other"), "{text}");
    nearfar(&["report", "v.json", "-o", "v.html"]);
    let page = fs::read_to_string(scratch.work().join("v.html")).expect("a page");
    assert!(page.contains("By routine") && page.contains("think") && page.matches("class=\"block").count() > 8);
}
