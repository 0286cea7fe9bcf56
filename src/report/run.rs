//! A run file of `nearfar run --stats`: what was run, what came of it, and the counters as they are.

use super::answers;
use crate::ui::html::{self, Cell, method, section, table};
use nearfar_core::node::words;
use serde_json::Value;

/// The heading of a run: its program and arguments.
pub fn title(run: &Value) -> String {
    let program = run["program"].as_str().unwrap_or("an unknown program");
    let args = run["args"].as_array().map(|args| args.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
    format!("{program} {}", args.unwrap_or_default()).trim_end().to_owned()
}

/// The sections on a run.
pub fn sections(run: &Value) -> String {
    let hits = answers::hits(run).map_or(String::new(), |share| {
        html::shares("Where faults found their page", &[("near", "pager", share), ("far", "far", 1.0 - share)])
    });
    html::conclusion(&answers::run(run), &[]) + &hits + &facts(run) + &derived(run) + &counters(run)
}

fn facts(run: &Value) -> String {
    let seconds = |name: &str| run[name].as_f64().map(|value| format!("{} s", words::digits(value)));
    let machine = &run["machine"];
    let parts = [
        machine["cpu"].as_str().map(str::to_owned),
        machine["cpus"].as_u64().map(|cpus| format!("{cpus} CPUs")),
        machine["ram"].as_u64().map(words::size),
        machine["kernel"].as_str().map(|kernel| format!("Linux {kernel}")),
    ];
    let text = |name: &str| run[name].as_str().map(str::to_owned);
    let above_zero = |name: &str| run[name].as_u64().filter(|count| *count > 0).map(|count| count.to_string());
    let facts = [
        ("Near", run["near_bytes"].as_u64().map(words::size)),
        ("Far", text("far")),
        ("Mode", text("mode")),
        ("Machine", Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))),
        ("Wall time", seconds("wall_s")),
        ("Processor time, user", seconds("cpu_user_s")),
        ("Processor time, system", seconds("cpu_system_s")),
        ("End", Some(end(&run["exit"]))),
        ("Managed processes", run["processes"].as_u64().map(|count| count.to_string())),
        ("Processes that could not be managed", above_zero("unmanaged")),
        ("Processes that had not ended", above_zero("still_running")),
        ("nearfar", text("nearfar")),
    ];
    html::facts(facts.map(|(what, words)| (what, words.unwrap_or_default())))
}

/// How a run ended, in words.
pub fn end(exit: &Value) -> String {
    let stopped = if exit["stopped_by_nearfar"].as_bool() == Some(true) {
        ", stopped by nearfar: its data could not be kept right"
    } else {
        ""
    };
    match (exit["status"].as_u64(), exit["signal_name"].as_str(), exit["signal"].as_i64()) {
        (Some(status), ..) => format!("exit status {status}{stopped}"),
        (None, Some(name), _) => format!("signal {name}"),
        (None, None, Some(signal)) => format!("signal {signal}"),
        _ => "not known".to_owned(),
    }
}

fn derived(run: &Value) -> String {
    let Some(values) = run["derived"].as_object() else { return String::new() };
    let show = |name: &str, value: &Value| {
        let Some(number) = value.as_f64() else {
            return value.as_str().map_or("too little was moved to say".to_owned(), str::to_owned);
        };
        if name.ends_with("_bytes") {
            words::size(number.max(0.0) as u64)
        } else if name.ends_with("_s") {
            format!("{} s", words::digits(number))
        } else if name.ends_with("_share") || name.starts_with("efficiency") {
            words::percent(number)
        } else {
            words::digits(number)
        }
    };
    let cell = |name: &str, value: &Value| {
        if value.is_string() { Cell::text(show(name, value)) } else { Cell::number(show(name, value)) }
    };
    let rows = values.iter().map(|(name, value)| vec![Cell::text(name), cell(name, value)]);
    let how = "What each is, and how it is computed: docs/reference/formats.md, \"derived\".";
    section("Derived", &["figure", "value"], rows, how)
}

fn counters(run: &Value) -> String {
    let Some(values) = run["counters"].as_object() else { return String::new() };
    let unit = |name: &str| run["units"][name].as_str().unwrap_or_default().to_owned();
    let mut zero = Vec::new();
    let mut rows = Vec::new();
    for (name, value) in values {
        let Some(number) = value.as_u64() else { continue };
        if number == 0 {
            zero.push(name.clone());
            continue;
        }
        let shown = match unit(name).as_str() {
            "bytes" => words::size(number),
            "ns" => words::time(number as f64),
            "bytes/s" | "bytes per second" => words::rate(number as f64),
            _ => number.to_string(),
        };
        rows.push(vec![Cell::text(name), Cell::number(shown), Cell::number(number.to_string()), Cell::text(unit(name))]);
    }
    let mut html = table(&["counter", "value", "exactly", "unit"], rows);
    if !zero.is_empty() {
        html += &method(&format!("Zero: {}.", zero.join(", ")));
    }
    html::folded(None, "Counters", &html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told() {
        let run: Value = serde_json::from_str(
            r#"{"format":"nearfar-run","version":1,"program":"/bin/<x>","args":["-a","b"],"near_bytes":838860800,"far":"/var/tmp",
                "wall_s":12.5,"exit":{"status":null,"signal":11,"signal_name":"SIGSEGV","stopped_by_nearfar":false},
                "counters":{"faults":123,"bytes_in":1048576,"stall_ns":0},"units":{"faults":"count","bytes_in":"bytes","stall_ns":"ns"},
                "derived":{"near_hit_share":0.75,"bound_s":null,"bound_method":"the larger <of>"}}"#,
        )
        .expect("JSON");
        assert_eq!(title(&run), "/bin/<x> -a b");
        let html = sections(&run);
        for words in ["800 MiB", "12.5 s", "SIGSEGV", "1 MiB", "75 %", "too little", "Zero: stall_ns", "&lt;of&gt;"] {
            assert!(html.contains(words), "no \"{words}\" in {html}");
        }
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let run: Value = serde_json::from_str("{\"counters\": {\"faults\": \"many\"}, \"derived\": 3}").expect("JSON");
        assert!(sections(&run).contains("not known"));
        assert_eq!(title(&run), "an unknown program");
    }
}
