//! Who is watched from outside: processes, their threads, and how much of what was asked about them came.

use super::NoTimes;
use crate::modules;
use nearfar_core::addr::Extent;
use nearfar_core::profile::record::Module;
use nearfar_core::profile::wall::{Place, Seen};
use nearfar_sys::proc_maps;
use nearfar_sys::root::Root;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Between two times that mappings of a process are read.
const MAPS: Duration = Duration::from_millis(200);
/// Parts of samples and looks beyond which their lack is told.
const TOLERATED: f64 = 0.03;

/// How much of what was asked for came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    /// Looks at a thread that told something.
    pub(super) told: u64,
    /// Those that were refused.
    pub(super) refused: u64,
    /// Samples of the clock.
    pub(super) samples: u64,
    /// Those for which there was no room.
    pub(super) lost: u64,
}

impl Coverage {
    /// What to say of it.
    pub(super) fn doubt(&self) -> Result<Option<String>, NoTimes> {
        if self.refused > self.told {
            return Err(NoTimes::Threads);
        }
        let part = |lacks: u64, has: u64| lacks as f64 / (lacks + has).max(1) as f64;
        let (lost, refused) = (part(self.lost, self.samples), part(self.refused, self.told));
        let lost = (lost > TOLERATED).then(|| format!("{:.0} % of the samples of routines were lost", 100.0 * lost));
        let refused = (refused > TOLERATED)
            .then(|| format!("{:.0} % of looks at threads were refused: their time is counted for others", 100.0 * refused));
        let doubts: Vec<String> = lost.into_iter().chain(refused).collect();
        Ok((!doubts.is_empty()).then(|| doubts.join("; ")))
    }
}

#[derive(Default)]
pub(super) struct Thread {
    pub(super) seen: Seen,
    /// Its last sample, and when that was.
    last: Option<(u64, Place)>,
    pub(super) is_ours: bool,
}

impl Thread {
    /// Samples of one CPU come in order, those of several do not.
    pub(super) fn sample(&mut self, at: u64, place: Place) {
        self.seen.fresh.push(place);
        if self.last.is_none_or(|(last, _)| at >= last) {
            self.last = Some((at, place));
        }
    }

    /// What was seen in the stretch that ends.
    pub(super) fn end_stretch(&mut self) -> Seen {
        std::mem::replace(&mut self.seen, Seen { before: self.last.map(|(_, place)| place), ..Seen::default() })
    }
}

#[derive(Default)]
pub(super) struct Member {
    pub(super) threads: HashMap<u32, Thread>,
    pub(super) modules: Vec<Module>,
    /// Mappings of no file that code was seen in: made as the program runs, or the kernel's.
    nameless: Vec<Extent>,
    pub(super) read: Option<Instant>,
    /// It has ended; its modules are kept for names.
    pub(super) is_gone: bool,
}

impl Member {
    /// Reads what is mapped, for the instruction at `ip` if there is one, unless that was just done (false); what was mapped before
    /// stays known.
    pub(super) fn read_modules(&mut self, root: &Root, pid: u32, ip: Option<u64>) -> bool {
        if self.read.is_some_and(|read| read.elapsed() < MAPS) {
            return false;
        }
        self.read = Some(Instant::now());
        let text = root.text(&format!("/proc/{pid}/maps")).unwrap_or_default();
        self.mapped(&text, ip);
        true
    }

    fn mapped(&mut self, text: &str, ip: Option<u64>) {
        let maps: Vec<_> = text.lines().filter_map(proc_maps::parse_line).collect();
        for mapped in modules::among(&maps) {
            if !self.modules.contains(&mapped.module) {
                self.modules.push(mapped.module);
            }
        }
        if let Some(ip) = ip.filter(|&ip| !self.knows(ip)) {
            self.nameless.extend(maps.iter().map(|map| map.range).filter(|range| holds(range, ip)));
        }
    }

    pub(super) fn knows(&self, ip: u64) -> bool {
        self.modules.iter().any(|module| (module.start..module.end).contains(&ip))
            || self.nameless.iter().any(|range| holds(range, ip))
    }

    /// The process has ended and its last stretch is divided.
    pub(super) fn end(&mut self) {
        self.threads.clear();
        self.is_gone = true;
    }
}

fn holds(range: &Extent, ip: u64) -> bool {
    (range.start as u64..range.end as u64).contains(&ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_refusals_are_tolerated_and_losses_told() {
        let came = Coverage { told: 1000, refused: 1, samples: 1000, lost: 10 };
        assert_eq!(came.doubt(), Ok(None));
        let lossy = Coverage { lost: 1000, ..came }.doubt().unwrap().unwrap();
        assert!(lossy.contains("50 % of the samples") && !lossy.contains("refused"), "{lossy}");
        let some = Coverage { refused: 250, ..came }.doubt().unwrap().unwrap();
        assert!(some.contains("20 % of looks"), "{some}");
        assert_eq!(Coverage { refused: 1001, ..came }.doubt(), Err(NoTimes::Threads));
        assert_eq!(Coverage { refused: 1, ..Coverage::default() }.doubt(), Err(NoTimes::Threads));
    }

    #[test]
    fn where_it_ran_last_is_the_last_in_time() {
        let mut thread = Thread::default();
        for (at, ip) in [(1, 0x10), (2, 0x20), (4, 0x10), (3, 0x20)] {
            thread.sample(at, (1, ip));
        }
        assert_eq!(thread.end_stretch().fresh.len(), 4);
        assert_eq!(thread.seen, Seen { before: Some((1, 0x10)), ..Seen::default() });
        thread.end_stretch();
        assert_eq!(thread.seen.before, Some((1, 0x10)), "a stretch without samples changes nothing");
    }

    #[test]
    fn code_in_no_file_is_known_by_its_mapping() {
        let maps = "7f0000000000-7f0000100000 rwxp 00000000 00:00 0 \n7f0000200000-7f0000300000 rwxp 00000000 00:00 0 \n";
        let mut member = Member::default();
        member.mapped(maps, Some(0x7f00_0000_1000));
        assert!(member.knows(0x7f00_0008_0000) && !member.knows(0x7f00_0020_0000) && member.modules.is_empty());
    }
}
