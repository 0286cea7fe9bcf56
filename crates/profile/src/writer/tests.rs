//! The writer by itself, without a library in a program.

use super::*;
use nearfar_core::profile::analyse::{self, analyse};
use nearfar_core::profile::file;
use nearfar_core::profile::hardware::Event;
use nearfar_core::profile::names::NoNames;
use nearfar_core::profile::record::Source;
use nearfar_sys::map::OwnedMap;

#[test]
fn lost_samples_of_time_are_told_of_once() {
    let path = std::env::temp_dir().join(format!("nearfar-writer-{}", std::process::id()));
    std::fs::write(&path, file::head()).unwrap();
    let none = Extent { start: 0, end: 0 };
    let (queue, sites) = (Queue::new().unwrap(), Sites::new(none).unwrap());
    let output = Output::open(&path, 1 << 20).unwrap();
    let mut writer = Writer::new(Settings::default(), output, Start::default(), none);
    for lost in [0, 3, 7] {
        writer.clock = Some(Clock::that_lost(lost));
        writer.write(&queue, &sites, false);
    }
    let content = file::read(&std::fs::read(&path).unwrap()).unwrap();
    let notes: Vec<&Record> =
        content.batches.iter().flat_map(|batch| &batch.records).filter(|record| matches!(record, Record::Note { .. })).collect();
    assert!(matches!(notes[..], [Record::Note { text }] if text.contains("time samples")), "{notes:?}");
    std::fs::remove_file(&path).unwrap();
}

/// A writer that appends to a file of that name, and what it needs.
fn writer(name: &str, settings: Settings) -> (Writer, Queue, Sites, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("nearfar-{name}-{}", std::process::id()));
    std::fs::write(&path, file::head()).unwrap();
    let none = Extent { start: 0, end: 0 };
    let output = Output::open(&path, 8 << 20).unwrap();
    let start = Start { at: event::now_ns(), pid: process::pid(), ..Start::default() };
    (Writer::new(settings, output, start, none), Queue::new().unwrap(), Sites::new(none).unwrap(), path)
}

/// The whole way of a sample, from the kernel's ring to what is said of an object: page faults stand in for loads, which few machines
/// that build this can sample.
#[test]
fn samples_go_from_the_ring_to_the_object() {
    // Other tests fault as well, and may fill the rings.
    for _ in 0..20 {
        match attempt() {
            Ok(0) => return,
            Ok(_) => {}
            Err(errno) => return println!("skip: no perf_event_open here: {errno}"),
        }
    }
    panic!("samples were lost each time");
}

/// Returns how many samples were lost; checks what is said of them if none were.
fn attempt() -> Result<u64, nearfar_sys::errno::Errno> {
    let (mut writer, queue, sites, path) = writer("samples", Settings { precise: true, ..Settings::default() });
    let faults = Event { unit: 1, config: 2, ..Event::default() };
    writer.processor = Some(Processor::of(&[(faults, 1)], &[])?);
    let array = |name: &str, pages: usize, writer: &mut Writer| {
        let fresh = OwnedMap::new(pages * 4096).unwrap();
        let (start, len) = (fresh.range().start as u64, fresh.range().len() as u64);
        writer.book.begin(Kind::Static, start, len, 0, Some(name.into()), event::now_ns());
        fresh
    };
    let (one, other) = (array("one", 300, &mut writer), array("other", 100, &mut writer));
    for page in 0..300 {
        // SAFETY: within fresh mappings of our own.
        unsafe {
            std::ptr::write_volatile((one.range().start + page * 4096) as *mut u8, 1);
            if page % 3 == 0 {
                std::ptr::write_volatile((other.range().start + page / 3 * 4096) as *mut u8, 1);
            }
        }
        if page % 50 == 49 {
            writer.take_samples(usize::MAX);
        }
    }
    // As a processor tells of loads; a page fault has no source.
    for access in &mut writer.accesses {
        (access.source, access.cycles) = (Source::Memory, 200);
    }
    let lost = writer.accesses_lost;
    writer.write(&queue, &sites, true);
    let content = file::read(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    if lost > 0 {
        return Ok(lost);
    }
    let summary = analyse(&content, &NoNames, &analyse::Options::default());
    let of = |name: &str| summary.objects.iter().find(|object| object.symbol == name).unwrap();
    assert_eq!((of("one").samples, of("other").samples), (300, 100));
    assert_eq!((summary.method, of("one").load_cycles), (Method::Hardware, 200.0));
    assert_eq!((of("one").read.value, of("other").read.value), (300.0 * 64.0, 100.0 * 64.0));
    Ok(0)
}

#[test]
fn a_flood_of_samples_is_thinned_out_and_keeps_its_weight() {
    let (mut writer, queue, sites, path) = writer("flood", Settings::default());
    let access = |at: u64| Access {
        at,
        ip: 0,
        tid: 1,
        addr: 4096 + at,
        stands_for: 1000,
        cycles: 1,
        source: if at.is_multiple_of(10) { Source::Memory } else { Source::L2 },
        writes: false,
    };
    writer.accesses = (0..10_000).map(access).collect();
    writer.accesses_lost = 17;
    writer.write(&queue, &sites, false);
    writer.write(&queue, &sites, true);
    let content = file::read(&std::fs::read(&path).unwrap()).unwrap();
    let records = content.batches.iter().flat_map(|batch| &batch.records);
    let found: Vec<_> = records
        .filter_map(|record| if let Record::Accesses { samples, lost, .. } = record { Some((samples, lost)) } else { None })
        .collect();
    let [(samples, 17)] = found[..] else { panic!("{found:?}") };
    assert_eq!(samples.len(), SAMPLES);
    let events =
        |source: Source| samples.iter().filter(|access| access.source == source).map(|access| access.stands_for).sum::<u64>();
    assert_eq!((events(Source::Memory), events(Source::L2)), (1_000_000, 9_000_000));
    std::fs::remove_file(&path).unwrap();
}
