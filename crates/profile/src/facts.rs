//! What a process tells of itself: at its start, and at its end.

use crate::settings::Settings;
use nearfar_core::profile::record::{Record, Start};
use nearfar_core::share::member_of;
use nearfar_sys::usage::{UsageOf, used};
use nearfar_sys::{event, process};

/// The rank that this process is among those of its job, and their number.
pub fn rank() -> Option<(u32, u32)> {
    // Variables that are not UTF-8 are not a launcher's.
    let environment: Vec<(String, String)> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    rank_in(|wanted| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str()))
}

fn rank_in<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Option<(u32, u32)> {
    let member = member_of(variable)?;
    member.world.filter(|&world| member.rank.number < world).map(|world| (member.rank.number, world))
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
    fn a_rank_is_below_their_number() {
        let rank =
            |pairs: &'static [(&str, &str)]| rank_in(|wanted| pairs.iter().find(|(name, _)| *name == wanted).map(|pair| pair.1));
        assert_eq!(rank(&[("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")]), Some((2, 4)));
        assert_eq!(rank(&[("OMPI_COMM_WORLD_RANK", "4"), ("OMPI_COMM_WORLD_SIZE", "4")]), None);
        assert_eq!(rank(&[("OMPI_COMM_WORLD_RANK", "0")]), None);
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
