//! What a process tells of itself: at its start, and at its end.

use crate::settings::Settings;
use nearfar_core::profile::record::{Record, Start};
use nearfar_sys::usage::{UsageOf, used};
use nearfar_sys::{event, process};

/// The pairs of variables by which launchers of MPI tell rank and number. Slurm's are those of a step: a batch script has the number
/// of tasks of its job, and is no rank.
const RANKS: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")];
/// Numbers of steps from here on are of batch scripts and the like.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

/// The rank and the number of ranks, by `variable`.
pub fn rank(variable: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let is_told = |name: &str| name != "SLURM_PROCID" || number("SLURM_STEP_ID").is_some_and(|step| step < FIRST_SPECIAL_STEP);
    let mut told = RANKS.iter().filter(|(rank, _)| is_told(rank));
    told.find_map(|(rank, size)| Some((number(rank)?, number(size)?))).filter(|(rank, size)| *size > 1 && rank < size)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Bytes of the largest cache of the first CPU.
fn cache_bytes() -> u64 {
    let size = |index: u32| {
        let text = text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"));
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = match &text[digits.len()..] {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => 1,
        };
        digits.parse::<u64>().unwrap_or(0) * unit
    };
    (0..6).map(size).max().unwrap_or(0)
}

/// The first record, still without a method.
pub fn start(settings: &Settings, parent: u32) -> Start {
    let args = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let args = args.strip_suffix(b"\0").unwrap_or(&args);
    // The first is the program's own name, which is told apart.
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Start {
        at: event::now_ns(),
        unix_time: unix.map_or(0, |time| time.as_secs()),
        pid: process::pid(),
        parent,
        program: std::fs::read_link("/proc/self/exe").map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        args: args.split(|&byte| byte == 0).skip(1).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect(),
        rank: None,
        host: text("/proc/sys/kernel/hostname"),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        cache_bytes: cache_bytes(),
        memory_bytes: process::memory_total(),
        method: Default::default(),
        least: settings.least,
    }
}

/// The last record.
pub fn end() -> Record {
    let used = used(UsageOf::Process);
    Record::End {
        at: event::now_ns(),
        cpu_user_ns: used.user.as_nanos() as u64,
        cpu_system_ns: used.system.as_nanos() as u64,
        peak_resident: used.resident_peak,
    }
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into the local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let with = |pairs: &'static [(&str, &str)]| {
            rank(|name| pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[("PMI_RANK", "2"), ("PMI_SIZE", "4")]), Some((2, 4)));
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")]), None, "in the batch script");
        let special = &[("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "4294967291"), ("SLURM_STEP_NUM_TASKS", "64")];
        assert_eq!(with(special), None);
        let srun = |tasks: &'static str| {
            rank(|name| match name {
                "SLURM_PROCID" => Some("3".to_owned()),
                "SLURM_STEP_ID" => Some("0".to_owned()),
                "SLURM_NTASKS" => Some("64".to_owned()),
                "SLURM_STEP_NUM_TASKS" => Some(tasks.to_owned()),
                _ => None,
            })
        };
        assert_eq!((srun("4"), srun("1")), (Some((3, 4)), None));
        assert_eq!(with(&[("OMPI_COMM_WORLD_RANK", "1")]), None);
    }

    #[test]
    fn this_process() {
        let start = start(&Settings::default(), 3);
        assert!(start.pid == std::process::id() && start.parent == 3 && start.cpus > 0 && start.memory_bytes > 1 << 20);
        let args: Vec<String> = std::env::args().skip(1).collect();
        assert!(start.args == args && start.program.starts_with('/'), "{:?}", start.args);
        let Record::End { cpu_user_ns, peak_resident, .. } = end() else { panic!("an end") };
        assert!(cpu_user_ns + thread_cpu_ns() > 0 && peak_resident > 0);
    }
}
