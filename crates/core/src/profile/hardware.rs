//! Memory samples of processors (PEBS on Intel, IBS on AMD), as the kernel hands them out by perf_event_open(2): which events to ask
//! for, told from what /sys says of the machine, and the records of a ring. No system call is made here.
//!
//! What they are worth: address, instruction, latency and source of single loads and stores. A stream whose lines a hardware
//! prefetcher brought shows as cache hits, so these samples tell latencies and who touches what, not bytes from memory; those
//! come from looks at pages.

use super::record::{Access, Source};
use std::collections::BTreeMap;

/// The fields that are asked for, in this order in each record: instruction, thread, time, address, period, weight, source.
pub const SAMPLE_TYPE: u64 = IP | TID | TIME | ADDR | PERIOD | WEIGHT | DATA_SRC;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const PERIOD: u64 = 1 << 8;
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;

const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// The part of misc that tells the mode, and the modes that are no program's: kernel, hypervisor, a guest's kernel.
const CPU_MODE: u8 = 7;
const KERNEL_MODES: [u8; 3] = [1, 3, 4];
/// Type, misc and size.
const HEAD: usize = 8;
/// HEAD and the fields of [`SAMPLE_TYPE`].
const SAMPLE_BYTES: usize = HEAD + 7 * 8;

/// An event as perf_event_open(2) wants it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `attr.type`: the number of the unit that counts.
    pub unit: u32,
    /// `attr.config`.
    pub config: u64,
    /// `attr.config1`.
    pub config1: u64,
    /// `attr.config2`.
    pub config2: u64,
    /// `attr.precise_ip`.
    pub precise: u8,
    /// `attr.config` of an event that must lead a group with this one: Intel's from Sapphire Rapids on sample loads only so.
    pub auxiliary: Option<u64>,
}

/// Why a description of /sys is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// A term that the unit's formats do not name.
    #[error("the term {0} of an event is not among the formats of its unit")]
    Term(String),
    /// A number or a range of bits that is none.
    #[error("{0} is not understood in the description of an event")]
    Text(String),
}

/// The event that `terms` (the content of `events/mem-loads`: "event=0xcd,umask=0x1,ldlat=3") means on a unit of number `unit`
/// whose `formats` (`format/umask`: "config:8-15") are given.
///
/// # Errors
/// See [`EventError`].
pub fn event(unit: u32, terms: &str, formats: &BTreeMap<String, String>) -> Result<Event, EventError> {
    let mut event = Event { unit, ..Event::default() };
    for term in terms.trim().split(',').filter(|term| !term.is_empty()) {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = number(value.trim()).ok_or_else(|| EventError::Text(term.to_owned()))?;
        match name.trim() {
            "config" => event.config |= value,
            "config1" => event.config1 |= value,
            "config2" => event.config2 |= value,
            name => {
                let format = formats.get(name).ok_or_else(|| EventError::Term(name.to_owned()))?;
                put(&mut event, format, value).ok_or_else(|| EventError::Text(format.clone()))?;
            }
        }
    }
    Ok(event)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Spreads `value` over the bits that `format` names ("config:0-7,32-35"), lowest first.
fn put(event: &mut Event, format: &str, mut value: u64) -> Option<()> {
    let (word, ranges) = format.trim().split_once(':')?;
    let word = match word {
        "config" => &mut event.config,
        "config1" => &mut event.config1,
        "config2" => &mut event.config2,
        _ => return None,
    };
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last > 63 {
            return None;
        }
        let bits = last - first + 1;
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        *word |= (value & mask) << first;
        value = if bits == 64 { 0 } else { value >> bits };
    }
    Some(())
}

/// What was read from a ring.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// With the process that each belongs to.
    pub accesses: Vec<(u32, Access)>,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Bytes of whole records: what may be given back to the kernel.
    pub used: usize,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Reads the records of `ring`, which begins with a whole one (unrolled: a record does not go round the end). Records of other
/// kinds are passed over. What has no address says nothing and is left out.
pub fn samples(ring: &[u8]) -> Samples {
    let mut found = Samples::default();
    while let Some(head) = ring.get(found.used..found.used + HEAD) {
        let (kind, size) = (half(head, 0), usize::from(u16::from_le_bytes([head[6], head[7]])));
        let Some(record) = ring.get(found.used..found.used + size).filter(|_| size >= HEAD) else { break };
        found.used += size;
        match kind {
            RECORD_LOST => found.lost += word(record, HEAD + 8),
            RECORD_SAMPLE if size >= SAMPLE_BYTES => {
                let field = |index: usize| word(record, HEAD + 8 * index);
                let (source, writes) = source(field(6));
                let access = Access {
                    at: field(2),
                    ip: field(0),
                    tid: (field(1) >> 32) as u32,
                    addr: field(3),
                    stands_for: field(4).max(1),
                    // With PERF_SAMPLE_WEIGHT the whole word is the latency in cycles.
                    cycles: u32::try_from(field(5)).unwrap_or(u32::MAX),
                    source,
                    writes,
                };
                // IBS in kernels before 6.14 samples the kernel's own accesses as well.
                let is_user = !KERNEL_MODES.contains(&(head[4] & CPU_MODE));
                if access.addr != 0 && is_user {
                    found.accesses.push((field(1) as u32, access));
                }
            }
            _ => {}
        }
    }
    found
}

/// Where the data came from and whether it was a store, of the kernel's `perf_mem_data_src`.
fn source(word: u64) -> (Source, bool) {
    let operation = word & 0x1f;
    let (level, number) = (word >> 5 & 0x3fff, word >> 33 & 0xf);
    let is_hit = level & 2 != 0;
    // The newer field first: 15 says "not available", 0 that an old kernel did not know it.
    let source = match number {
        1 => Source::L1,
        2 => Source::L2,
        3 | 4 if is_hit || level & 4 == 0 => Source::L3,
        3 | 4 => Source::Memory,
        // Misses of the second cache that are under way; a cache on the memory's side of the last level is memory to a processor.
        5 | 0xc => Source::FillBuffer,
        6 | 9 | 0xd | 0xe => Source::Memory,
        0xb => Source::OtherCache,
        _ if level & 0x8 != 0 && is_hit => Source::L1,
        _ if level & 0x10 != 0 => Source::FillBuffer,
        _ if level & 0x20 != 0 && is_hit => Source::L2,
        _ if level & 0x40 != 0 && is_hit => Source::L3,
        _ if level & 0x380 != 0 || (level & 0x40 != 0 && level & 4 != 0) => Source::Memory,
        _ if level & 0xc00 != 0 => Source::OtherCache,
        _ => Source::Unknown,
    };
    (source, operation & 4 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight page faults as Linux 6.18 wrote them (tests/rings; software events have no source). The page of each is the next, the
    /// offset 8 bytes more.
    #[test]
    fn a_recorded_ring() {
        let ring = include_bytes!("../../tests/rings/page_faults.ring");
        let found = samples(ring);
        assert_eq!((found.used, found.lost, found.accesses.len()), (512, 0, 8));
        for (number, (pid, access)) in (0..).zip(&found.accesses) {
            assert_eq!((*pid, access.tid, access.ip), (9954, 9954, 0x564b_3c62_b281));
            assert_eq!(access.addr, 0x7f50_a24f_0000 + number * 4104);
            assert_eq!((access.stands_for, access.source, access.writes), (1, Source::Unknown, false));
        }
        assert!(found.accesses.is_sorted_by_key(|(_, access)| access.at));
        for end in 0..ring.len() {
            let part = samples(&ring[..end]);
            assert_eq!((part.used, part.accesses.len()), (end / 64 * 64, end / 64), "cut off at {end}");
        }
    }

    fn sample(data_src: u64, weight: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&RECORD_SAMPLE.to_le_bytes());
        bytes.extend_from_slice(&[2, 0, SAMPLE_BYTES as u8, 0]);
        for field in [0x40_1000, 7 | 8 << 32, 99, 0x7000_0040, 1009, weight, data_src] {
            bytes.extend_from_slice(&u64::to_le_bytes(field));
        }
        bytes
    }

    #[test]
    fn sources_of_loads_and_stores() {
        let number = |number: u64| number << 33;
        for (data_src, expected) in [
            (2 | (2 | 8) << 5 | number(1), (Source::L1, false)),
            (2 | (2 | 0x80) << 5 | number(0xd), (Source::Memory, false)),
            (4 | (2 | 8) << 5 | number(1), (Source::L1, true)),
            (2 | 0x10 << 5 | number(0xc), (Source::FillBuffer, false)),
            (2 | (4 | 0x40) << 5 | number(3), (Source::Memory, false)),
            (2 | (2 | 0x40) << 5, (Source::L3, false)),
            (2 | (2 | 0x80) << 5, (Source::Memory, false)),
            (2 | number(9), (Source::Memory, false)),
            (2 | number(6), (Source::Memory, false)),
            (2 | number(5), (Source::FillBuffer, false)),
            // A store that missed the first cache: where its line was is not told.
            (4 | (4 | 8) << 5, (Source::Unknown, true)),
        ] {
            let found = samples(&sample(data_src, 250));
            let access = found.accesses[0].1;
            assert_eq!((access.source, access.writes), expected, "{data_src:#x}");
            assert_eq!((access.cycles, access.stands_for, found.accesses[0].0, access.tid), (250, 1009, 7, 8));
        }
    }

    #[test]
    fn what_the_kernel_touched_is_not_the_programs() {
        for (mode, expected) in [(0, 1), (1, 0), (2, 1), (3, 0), (4, 0), (5, 1)] {
            let mut record = sample(2, 1);
            record[4] = mode;
            assert_eq!(samples(&record).accesses.len(), expected, "mode {mode}");
        }
    }

    #[test]
    fn lost_samples_and_other_records() {
        let mut ring = vec![3, 0, 0, 0, 0, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        ring.extend_from_slice(&[2, 0, 0, 0, 0, 0, 24, 0]);
        ring.extend_from_slice(&u64::to_le_bytes(1));
        ring.extend_from_slice(&u64::to_le_bytes(42));
        ring.extend(sample(2, 1));
        assert_eq!((samples(&ring).lost, samples(&ring).accesses.len()), (42, 1));
        assert_eq!(samples(&[9, 0, 0, 0, 0, 0, 0, 0, 0]).used, 0, "a record of no size ends it");
    }

    #[test]
    fn events_of_intel_and_amd() {
        let formats = |pairs: &[(&str, &str)]| pairs.iter().map(|&(name, bits)| (name.to_owned(), bits.to_owned())).collect();
        let intel = formats(&[("event", "config:0-7"), ("umask", "config:8-15"), ("ldlat", "config1:0-15")]);
        let loads = event(4, "event=0xcd,umask=0x1,ldlat=3\n", &intel).unwrap();
        assert_eq!((loads.unit, loads.config, loads.config1), (4, 0x1cd, 3));
        let amd = formats(&[("cnt_ctl", "config:19"), ("l3missonly", "config:16"), ("split", "config2:0-3,60-63")]);
        assert_eq!(event(10, "cnt_ctl=1", &amd).unwrap().config, 1 << 19);
        assert_eq!(event(10, "l3missonly", &amd).unwrap().config, 1 << 16);
        assert_eq!(event(10, "split=0xa5", &amd).unwrap().config2, 5 | 0xa << 60);
        assert_eq!(event(4, "frontend=1", &intel), Err(EventError::Term("frontend".into())));
        assert!(matches!(event(4, "umask=x", &intel), Err(EventError::Text(_))));
    }
}
