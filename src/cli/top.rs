//! Options of `nearfar top`.

use std::time::Duration;

/// `nearfar top`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = TOP_NOTES)]
pub struct TopArgs {
    /// Print one table and end
    #[arg(long)]
    pub once: bool,

    /// With --once: print JSON instead (see docs/reference/formats.md)
    #[arg(long, requires = "once")]
    pub json: bool,

    /// Seconds between two looks, which all rates are of; from 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Duration,

    /// Show only the job that this process belongs to, or that it runs
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

const TOP_NOTES: &str = "\
Shows the jobs of \"nearfar run\" that run on this machine: your own, and as root
those of all users. Jobs do not notice: their figures are read from the memory
that a job's processes count in, once per look.

Columns:
  NEAR    near memory in use, of the budget
  HIT%    page faults on existing data that did not wait for far
  MISS/s  those that did
  IN, OUT bytes read from far and written to it (MB is 1,000,000 bytes)
  WAIT%   time that threads waited for the pager; 100 is one thread all the time
  GRAIN   most reads that threads waited for brought so much, or less
  BUSY%   time in which far had something to do (wide screens)
  DEPTH   reads and writes under way while it had (wide screens)
Below stand the large objects of the selected job, from 1 MiB on:
  NEAR%   share of its pages in the program's view; not those that were never
          touched, nor those that nearfar has near but out of view
  HEAT    its share of the job's misses; what is always near has none, however
          much it is used
A dash: nothing of the kind happened, or it cannot be known.

Keys: q ends, arrows select a job, s sorts by the next column, r turns the
order round, p pauses, ? shows help. The environment variable NO_COLOR turns
colours off. A job that ends stays on the screen for 10 seconds.

Examples:
  nearfar top
  nearfar top --once --interval 5
  nearfar top --once --json | jq '.jobs[].rates'";

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text} is not a time from 0.1 to 3600 seconds; write, for example, 2.5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        assert_eq!(interval("2.5").ok(), Some(Duration::from_millis(2500)));
        assert_eq!(interval("1s").ok(), Some(Duration::from_secs(1)));
        for bad in ["0", "0.01", "-1", "nan", "1e9", "x", ""] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
