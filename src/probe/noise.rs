//! How quiet the machine is while it is measured: CPU time that the hypervisor or other processes took.
//!
//! Reads /proc; a machine without it is of unknown quiet, which is said.

use nearfar_core::node::{Node, Noise, Validity};

/// CPU time of others above this share of all, or above so many CPUs, and figures are not trusted: few busy CPUs of many take
/// bandwidth as well.
const MOST_OTHERS: (f64, f64) = (0.05, 0.5);
/// CPU time stolen by the hypervisor above this share, likewise.
const MOST_STEAL: f64 = 0.01;
/// Ticks per second of /proc: USER_HZ is 100 on every architecture that Linux runs on today.
const HZ: f64 = 100.0;

/// CPU time of the machine and of this process, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    total: f64,
    idle: f64,
    steal: f64,
    own: f64,
}

fn times(stat: &str, own: &str) -> Option<Times> {
    let mut fields =
        stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().map(|word| word.parse::<f64>().unwrap_or(0.0));
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let ticks: Vec<f64> = fields.by_ref().take(8).collect();
    let get = |index: usize| ticks.get(index).copied().unwrap_or(0.0) / HZ;
    // The name may hold blanks: fields are counted from behind its closing parenthesis. utime, stime, cutime, cstime are 14 to 17.
    let after = own.rsplit_once(')')?.1;
    let own: f64 = after.split_ascii_whitespace().skip(11).take(4).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() / HZ;
    Some(Times { total: ticks.iter().sum::<f64>() / HZ, idle: get(3) + get(4), steal: get(7), own })
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn now() -> Option<Times> {
    times(&read("/proc/stat"), &read("/proc/self/stat"))
}

/// Begins to watch.
pub struct Watch {
    start: Option<Times>,
    load: Option<f64>,
}

impl Watch {
    /// From now on.
    pub fn start() -> Self {
        let load = read("/proc/loadavg").split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        Self { start: now(), load }
    }

    /// What happened since, on a machine of so many CPUs.
    pub fn end(&self, cpus: usize) -> Noise {
        judge(self.load, cpus, self.start, now())
    }
}

fn judge(load_before: Option<f64>, cpus: usize, start: Option<Times>, end: Option<Times>) -> Noise {
    let mut noise = Noise { load_before, ..Noise::default() };
    let (Some(start), Some(end)) = (start, end) else {
        noise.why = "/proc/stat cannot be read: whether the machine was quiet is not known".into();
        return noise;
    };
    let total = end.total - start.total;
    if total <= 0.0 {
        return noise;
    }
    let steal = ((end.steal - start.steal) / total).max(0.0);
    let busy = total - (end.idle - start.idle) - (end.steal - start.steal);
    let others = ((busy - (end.own - start.own)) / total).max(0.0);
    (noise.steal, noise.others) = (Some(steal), Some(others));
    let mut why = Vec::new();
    if steal > MOST_STEAL {
        why.push(format!("the hypervisor gave {:.1} % of the CPU time to others", steal * 100.0));
    }
    if others > MOST_OTHERS.0 || others * cpus as f64 > MOST_OTHERS.1 {
        why.push(format!("other processes had {:.1} % of the CPU time ({:.1} CPUs)", others * 100.0, others * cpus as f64));
    }
    (noise.noisy, noise.why) = (!why.is_empty(), why.join("; "));
    noise
}

/// Marks every valid figure as noisy when the machine was.
pub fn spread(node: &mut Node) {
    if !node.noise.noisy {
        return;
    }
    let why = node.noise.why.clone();
    for figure in node.figures_mut() {
        if figure.validity == Validity::Valid && figure.runs > 0 {
            (figure.validity, figure.why) = (Validity::Noisy, why.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3\n";
    const OWN: &str = "12 (near far) x) S 1 1 1 0 -1 4194304 100 0 0 0 50 30 10 10 20 0 1 0 1\n";

    #[test]
    fn times_of_the_kernel() {
        let times = times(STAT, OWN).expect("times");
        assert_eq!(times, Times { total: 10.0, idle: 8.0, steal: 0.0, own: 1.0 });
        assert_eq!(super::times("", OWN), None);
        assert_eq!(super::times(STAT, ""), None);
    }

    #[test]
    fn others_make_noise_and_we_do_not() {
        let start = Times { total: 0.0, idle: 0.0, steal: 0.0, own: 0.0 };
        let quiet = judge(Some(0.1), 2, Some(start), Some(Times { total: 10.0, idle: 5.0, steal: 0.05, own: 4.9 }));
        assert!(!quiet.noisy && quiet.why.is_empty(), "{quiet:?}");
        let busy = judge(None, 2, Some(start), Some(Times { total: 10.0, idle: 2.0, steal: 0.5, own: 4.5 }));
        assert!(busy.noisy && busy.why.contains("hypervisor") && busy.why.contains("30.0 %"), "{busy:?}");
        let few = judge(None, 256, Some(start), Some(Times { total: 100.0, idle: 96.0, steal: 0.0, own: 1.0 }));
        assert!(few.noisy && few.why.contains("CPUs"), "7 CPUs of 256: {few:?}");
        assert!(!judge(None, 2, None, None).why.is_empty());
    }

    #[test]
    fn noise_marks_every_figure() {
        use nearfar_core::node::{Bandwidth, Figure};
        let mut node = Node::default();
        node.bandwidth.push(Bandwidth { rate: Figure::of(&[1.0, 1.0]), ..Bandwidth::default() });
        node.bandwidth.push(Bandwidth { rate: Figure::invalid("bad"), ..Bandwidth::default() });
        spread(&mut node);
        assert_eq!(node.bandwidth[0].rate.validity, Validity::Valid);
        (node.noise.noisy, node.noise.why) = (true, "noise".into());
        spread(&mut node);
        assert_eq!(node.bandwidth[0].rate.validity, Validity::Noisy);
        assert_eq!(node.bandwidth[1].rate.why, "bad");
    }
}
