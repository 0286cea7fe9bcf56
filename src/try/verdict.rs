//! What the runs say together: five lines. Pure.

use nearfar_core::units::Bytes;
use serde_json::Value;

/// A run may take so many times as long before it is called dear: as long as a run of another day.
const CHEAP: f64 = 1.15;

/// The program without nearfar.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    /// Its wall time.
    pub wall_s: f64,
    /// Its processor time.
    pub cpu_s: f64,
    /// Most of its memory.
    pub memory: u64,
    /// It was profiled, not run.
    pub profiled: bool,
}

/// A run under nearfar.
#[derive(Clone, Debug)]
pub struct Limited {
    /// Part of the memory, in words.
    pub part: &'static str,
    /// Near memory, as `--near` takes it.
    pub near: String,
    /// How it went.
    pub result: Result<Done, Failed>,
}

/// It ended well.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its wall time.
    pub wall_s: f64,
    /// It printed what the run without nearfar did; `None`: that was not run.
    pub same_output: Option<bool>,
    /// Its run file.
    pub file: Value,
}

/// It did not.
#[derive(Clone, Debug, PartialEq)]
pub enum Failed {
    /// The limit came first, after so many seconds; its run file until then.
    Slow(f64, Value),
    /// Not run: more memory was too slow.
    NotRun,
    /// It ended so.
    Ended(String),
}

impl Limited {
    fn ratio(&self, plain: &Plain) -> Option<f64> {
        self.result.as_ref().ok().map(|done| done.wall_s / plain.wall_s)
    }

    fn line(&self, plain: &Plain) -> String {
        let what = match &self.result {
            Ok(done) => {
                let output = match done.same_output {
                    Some(true) => ", same output",
                    Some(false) => ", other output: are times or random numbers in it?",
                    None => "",
                };
                format!("{:.1} s, {:.2} times as long{output}", done.wall_s, done.wall_s / plain.wall_s)
            }
            Err(Failed::NotRun) => "not run, since that takes longer still".to_owned(),
            Err(Failed::Slow(seconds, _)) => {
                format!("stopped after {seconds:.0} s, {:.0} times as long (--limit)", seconds / plain.wall_s)
            }
            Err(Failed::Ended(how)) => format!("failed: {how}"),
        };
        format!("{:<9} {:>9}  {what}", self.part, self.near)
    }
}

/// A line for each run, that without nearfar first.
pub fn times(plain: &Plain, runs: &[Limited]) -> Vec<String> {
    let source = if plain.profiled { " (profiled)" } else { "" };
    let all = format!("{:<9} {:>9}  {:.1} s{source}", "all", Bytes(plain.memory).to_string(), plain.wall_s);
    std::iter::once(all).chain(runs.iter().map(|run| run.line(plain))).collect()
}

/// Five lines. `command`: what the user typed, `far`: where it goes.
pub fn lines(plain: &Plain, runs: &[Limited], far: &str, command: &str) -> Vec<String> {
    let mut lines = times(plain, runs);
    lines.push(format!("why       {}", why(plain, runs)));
    lines.push(format!("next      {}", next(plain, runs, far, command)));
    lines
}

/// What the run with the least memory that ended spent its time with.
fn why(plain: &Plain, runs: &[Limited]) -> String {
    let told = |run: &Limited| match &run.result {
        Ok(Done { file, .. }) | Err(Failed::Slow(_, file)) => (!file.is_null()).then(|| file.clone()),
        Err(_) => None,
    };
    let Some(file) = runs.iter().rev().find_map(told) else { return "no run in less memory left its figures".to_owned() };
    let counter = |name: &str| file["counters"][name].as_u64().unwrap_or(0);
    let (read, written) = (counter("bytes_in"), counter("bytes_out"));
    if read == 0 && written == 0 {
        return "nothing had to leave near: much of that memory is files or never used again".to_owned();
    }
    let mut text = format!("{} read from far, {} written", Bytes(read), Bytes(written));
    if let Some(stalled) = file["derived"]["stall_share"].as_f64().filter(|share| *share > 0.0) {
        text += &format!("; {stalled:.2} threads waited on average");
    }
    if let (Some(user), Some(system)) = (file["cpu_user_s"].as_f64(), file["cpu_system_s"].as_f64()) {
        text += &format!("; {:.1} s of CPU time, {:.1} s without nearfar", user + system, plain.cpu_s);
    }
    if let Some(efficiency) = file["derived"]["efficiency_vs_bound"].as_f64() {
        text += &format!("; {:.0} % of what this far and the program allow for these bytes", 100.0 * efficiency);
    }
    text
}

/// The command to type next.
fn next(plain: &Plain, runs: &[Limited], far: &str, command: &str) -> String {
    let cheap = runs.iter().rev().find(|run| run.ratio(plain).is_some_and(|ratio| ratio <= CHEAP));
    if let Some(run) = cheap {
        return format!("nearfar run --near {} --far {far} -- {command}", run.near);
    }
    if runs.iter().all(|run| matches!(run.result, Err(Failed::Ended(_)))) {
        return "nearfar doctor: what this kernel and user allow".to_owned();
    }
    let advised = runs.first().map_or("", |run| &run.near);
    format!(
        "which data deserve near: nearfar profile -o try.nfprof -- {command}; then nearfar advise try.nfprof --near {advised} --far {far} -o try.toml"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Plain = Plain { wall_s: 10.0, cpu_s: 9.0, memory: 1 << 30, profiled: false };

    fn done(part: &'static str, near: &str, wall_s: f64) -> Limited {
        let file = serde_json::json!({"counters": {"bytes_in": 3 << 20, "bytes_out": 1 << 20}, "cpu_user_s": 12.0, "cpu_system_s": 3.0,
            "derived": {"stall_share": 0.5, "efficiency_vs_bound": 0.8}});
        Limited { part, near: near.into(), result: Ok(Done { wall_s, same_output: Some(true), file }) }
    }

    fn told(half: Limited, third: Limited) -> Vec<String> {
        lines(&PLAIN, &[half, third], "/far", "./app")
    }

    #[test]
    fn the_least_memory_that_costs_little_is_advised() {
        let lines = told(done("half", "512M", 10.5), done("third", "341M", 11.0));
        assert_eq!(lines.len(), 5);
        assert!(lines[2].contains("1.10 times as long, same output"), "{lines:?}");
        assert!(
            lines[3].contains("3.0 MiB read from far, 1.0 MiB written; 0.50 threads waited")
                && lines[3].contains("15.0 s of CPU time, 9.0 s without nearfar; 80 %"),
            "{lines:?}"
        );
        assert_eq!(lines[4], "next      nearfar run --near 341M --far /far -- ./app");
        let lines = told(done("half", "512M", 10.5), done("third", "341M", 30.0));
        assert_eq!(lines[4], "next      nearfar run --near 512M --far /far -- ./app");
    }

    #[test]
    fn what_is_dear_is_to_be_profiled_and_what_fails_examined() {
        let lines = told(
            done("half", "512M", 20.0),
            Limited { result: Err(Failed::Slow(100.0, Value::Null)), ..done("third", "341M", 0.0) },
        );
        assert!(lines[2].contains("stopped after 100 s, 10 times as long"), "{lines:?}");
        assert!(lines[4].contains("profile -o try.nfprof -- ./app") && lines[4].contains("--near 512M"), "{lines:?}");
        let failed = |part| Limited { result: Err(Failed::Ended("exit status 3".into())), ..done(part, "1M", 0.0) };
        let lines = told(failed("half"), failed("third"));
        assert!(lines[1].contains("failed: exit status 3") && lines[4].contains("doctor"), "{lines:?}");
    }
}
