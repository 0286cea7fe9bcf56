//! Where a program and its routines stand on a roofline. Bytes from memory and time are known from the profile; floating-point
//! operations are counted by nobody without counters, so a routine is a bracket of arithmetic intensities on the line of its bandwidth:
//! at least what its inner loops do for each byte they load or store, if every one of those bytes came from memory once; at most what
//! the cores could compute in its time. Operations that the user counted make it a point.

use super::summary::{Routine, Summary};

/// Routines below this share of the time are left out.
const LEAST_SHARE: f64 = 0.05;

/// Where the operations are known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The user said how many.
    Given,
    /// From the machine code of inner loops (lower end) and the peak of the cores (upper end).
    MachineCode,
    /// The peak of the cores only: the lower end is not known.
    Peak,
}

/// A place on the roofline, in FLOP per byte of memory traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    /// Program or routine.
    pub name: String,
    /// Least intensity.
    pub low: f64,
    /// Most.
    pub high: f64,
    /// Bytes per second from and to memory: operations per second are intensity times this.
    pub bytes_per_s: f64,
    /// Where the ends are from.
    pub counted: Counted,
}

/// The program first, then its routines. `peak` is FLOP/s of all CPUs that the program may use and `cpus` their number; a routine's CPU
/// seconds are spread over as many CPUs as the program kept busy. `given` are the program's operations, if the user counted them.
pub fn brackets(summary: &Summary, peak: f64, cpus: u32, given: Option<f64>) -> Vec<Bracket> {
    let traffic: f64 = summary.objects.iter().map(|object| object.total().value).sum();
    let busy = if summary.wall_s > 0.0 { (summary.cpu_s / summary.wall_s).clamp(1.0, f64::from(cpus.max(1))) } else { 1.0 };
    let mut all = Vec::new();
    let shares = || summary.routines.iter().filter_map(|routine| Some((routine.flops_per_access_byte?, routine.self_s)));
    let known: f64 = shares().map(|(_, seconds)| seconds).sum();
    let weighted: f64 = shares().map(|(flops, seconds)| flops * seconds).sum();
    // The program's lower end: its routines' by time, those that nothing is known of counted as none.
    let low = (known > 0.0 && summary.cpu_s > 0.0).then(|| weighted / summary.cpu_s.max(known));
    all.extend(bracket(&summary.program, traffic, summary.wall_s, low, peak, given));
    for routine in summary.routines.iter().filter(|routine| routine.self_s > LEAST_SHARE * summary.cpu_s) {
        let Routine { function, self_s, traffic, flops_per_access_byte, .. } = routine;
        all.extend(bracket(function, traffic.value, self_s / busy, *flops_per_access_byte, peak, None));
    }
    all
}

fn bracket(name: &str, bytes: f64, seconds: f64, low: Option<f64>, peak: f64, given: Option<f64>) -> Option<Bracket> {
    if !(bytes > 0.0 && seconds > 0.0 && peak > 0.0) {
        return None;
    }
    let most = peak * seconds / bytes;
    let (low, high, counted) = match (given, low) {
        (Some(flops), _) => (flops / bytes, flops / bytes, Counted::Given),
        // Loops that compute nothing have no place on a roofline.
        (None, Some(low)) if low > 0.0 => (low.min(most), most, Counted::MachineCode),
        (None, Some(_)) => return None,
        // Three decades are as good as nothing, but show where the bandwidth is.
        (None, None) => (most / 1000.0, most, Counted::Peak),
    };
    (low > 0.0 && high.is_finite()).then(|| Bracket { name: name.to_owned(), low, high, bytes_per_s: bytes / seconds, counted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::record::Method;
    use crate::profile::summary::{Estimate, FORMAT, ObjectGroup, Pattern};

    fn object(bytes: f64) -> ObjectGroup {
        ObjectGroup {
            name: "a".into(),
            count: 1,
            least: 1,
            most: 1,
            peak_bytes: 1,
            lifetime_s: 1.0,
            read: Estimate::exact(bytes),
            lines_per_visit: Estimate::exact(64.0),
            pattern: Pattern::Stream,
            looks: 100,
            touches: 100,
            ..ObjectGroup::default()
        }
    }

    fn summary() -> Summary {
        let routine = |function: &str, self_s, bytes, flops| Routine {
            function: function.into(),
            module: "a".into(),
            self_s,
            traffic: Estimate::exact(bytes),
            flops_per_access_byte: flops,
            ..Routine::default()
        };
        Summary {
            format: FORMAT,
            least: 4096,
            program: "triad".into(),
            processes: 1,
            method: Method::PageFaults,
            wall_s: 10.0,
            cpu_s: 20.0,
            bin_s: 1.0,
            peak_bytes: 1,
            objects: vec![object(1e11)],
            routines: vec![
                routine("sweep", 12.0, 1e11, Some(2.0 / 24.0)),
                routine("fft", 6.0, 1e9, None),
                routine("copy", 1.5, 1e9, Some(0.0)),
                routine("rest", 0.5, 1e8, Some(1.0)),
            ],
            ..Summary::default()
        }
    }

    #[test]
    fn routines_lie_on_the_line_of_their_bandwidth() {
        let all = brackets(&summary(), 1e11, 2, None);
        let names: Vec<&str> = all.iter().map(|bracket| bracket.name.as_str()).collect();
        assert_eq!(names, ["triad", "sweep", "fft"], "what computes nothing and what takes no time is left out");
        // 12 CPU seconds on two busy CPUs are 6 seconds.
        assert!((all[1].bytes_per_s - 1e11 / 6.0).abs() < 1.0 && (all[1].low - 1.0 / 12.0).abs() < 1e-12);
        assert!((all[1].high - 6.0).abs() < 1e-9, "the peak bounds what can be done in its time");
        assert_eq!((all[1].counted, all[2].counted), (Counted::MachineCode, Counted::Peak));
        assert!(all.iter().all(|bracket| bracket.low <= bracket.high && bracket.bytes_per_s > 0.0));
    }

    #[test]
    fn operations_that_are_given_make_a_point() {
        let all = brackets(&summary(), 1e11, 2, Some(2e11));
        assert_eq!((all[0].low, all[0].high, all[0].counted), (2.0, 2.0, Counted::Given));
        let nothing = Summary { objects: Vec::new(), routines: Vec::new(), wall_s: 0.0, ..summary() };
        assert!(brackets(&nothing, 1e11, 2, Some(1.0)).is_empty() && brackets(&summary(), 0.0, 2, None).is_empty());
    }
}
