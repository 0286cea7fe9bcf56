//! Round trips, damage, and what becomes of records.

use super::*;
use crate::policy::Unit;
use crate::policy::replay::{Access, Action};
use proptest::prelude::*;

const WINDOW: u32 = 64;

fn file(batches: &[Batch]) -> Vec<u8> {
    let mut bytes = header(WINDOW).to_vec();
    batches.iter().for_each(|batch| encode(batch, &mut bytes));
    bytes
}

fn batch(pid: u32, number: u32, records: Vec<Record>) -> Batch {
    Batch { process: Process { pid, since_ns: 7 }, number, dropped: u64::from(number) * 3, records }
}

fn visit(page: u64, write: bool, found: Found, time_us: u64) -> Record {
    Record::Visit { page, thread: 12, write, found, time_us }
}

fn any_record() -> impl Strategy<Value = Record> {
    let found = prop::sample::select(vec![Found::Zero, Found::Far, Found::Late, Found::Staged, Found::Limbo]);
    let page = prop_oneof![any::<u64>(), 0x0007_f000_0000u64..0x0007_f000_0010];
    prop_oneof![
        (page.clone(), any::<u32>(), any::<bool>(), found, any::<u64>())
            .prop_map(|(page, thread, write, found, time_us)| Record::Visit { page, thread, write, found, time_us }),
        (page.clone(), any::<bool>()).prop_map(|(page, changed)| Record::Out { page, changed }),
        (page, any::<u64>()).prop_map(|(page, pages)| Record::Gone { page, pages }),
    ]
}

fn any_batch() -> impl Strategy<Value = Batch> {
    (any::<u32>(), any::<u64>(), any::<u32>(), any::<u64>(), prop::collection::vec(any_record(), 0..60)).prop_map(
        |(pid, since_ns, number, dropped, records)| Batch { process: Process { pid, since_ns }, number, dropped, records },
    )
}

proptest! {
    #[test]
    fn what_was_written_is_read(batches in prop::collection::vec(any_batch(), 0..6)) {
        let bytes = file(&batches);
        let mut reader = Reader::new(&bytes).unwrap();
        prop_assert_eq!(reader.by_ref().collect::<Vec<_>>(), batches);
        prop_assert_eq!((reader.damaged_bytes(), reader.window_chunks()), (0, WINDOW));
    }

    /// Cut anywhere, as by SIGKILL, also with others writing behind the cut: every whole batch is read.
    #[test]
    fn what_is_whole_survives(batches in prop::collection::vec(any_batch(), 1..4), cut in any::<prop::sample::Index>(), behind in any_batch()) {
        let whole = file(&batches[..batches.len() - 1]);
        let mut last = Vec::new();
        encode(&batches[batches.len() - 1], &mut last);
        let kept = cut.index(last.len());
        let mut bytes = whole;
        bytes.extend_from_slice(&last[..kept]);
        encode(&behind, &mut bytes);
        let mut reader = Reader::new(&bytes).unwrap();
        let read: Vec<Batch> = reader.by_ref().collect();
        prop_assert_eq!(&read[..batches.len() - 1], &batches[..batches.len() - 1]);
        prop_assert_eq!(read.last(), Some(&behind));
        prop_assert_eq!(read.len(), batches.len());
        prop_assert_eq!(reader.damaged_bytes(), kept as u64);
    }

    /// Any bytes at all, and whole files with some bytes changed: no panic, nothing made up, every byte accounted for.
    #[test]
    fn nothing_panics(noise in prop::collection::vec(any::<u8>(), 0..400), batches in prop::collection::vec(any_batch(), 0..3),
                      spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let _ = accesses(&noise, Grain::Chunk);
        let mut bytes = file(&batches);
        bytes.extend_from_slice(&noise);
        for (spot, value) in spots {
            let at = HEADER_BYTES + spot.index(bytes.len() - HEADER_BYTES + 1);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        for grain in [Grain::Chunk, Grain::Block] {
            let (list, summary) = accesses(&bytes, grain).unwrap();
            prop_assert!(summary.visits <= summary.faults && summary.faults <= list.len() as u64 + bytes.len() as u64);
        }
        let mut reader = Reader::new(&bytes).unwrap();
        prop_assert!(reader.by_ref().all(|found| batches.contains(&found)));
    }

    /// Records that say anything become accesses without a panic.
    #[test]
    fn any_records_can_be_replayed(batches in prop::collection::vec(any_batch(), 0..6)) {
        let bytes = file(&batches);
        for grain in [Grain::Chunk, Grain::Block] {
            let (list, _) = accesses(&bytes, grain).unwrap();
            let tally = crate::policy::replay::belady(&list, 64);
            prop_assert_eq!(tally.hits + tally.misses + tally.fresh, tally.accesses);
        }
    }
}

#[test]
fn other_files_are_no_traces() {
    assert!(Reader::new(b"").is_none() && Reader::new(b"nftrace\n\x01\0\0").is_none());
    let mut newer = header(1);
    newer[8] = 2;
    assert!(Reader::new(&newer).is_none());
    assert!(Reader::new(&header(1)).is_some_and(|mut reader| reader.next().is_none()));
}

/// A change of the format that this test does not follow is a change of the version.
#[test]
fn the_format_is_that_of_the_document() {
    let records = vec![
        visit(0x100, true, Found::Limbo, 5),
        Record::Out { page: 0xff, changed: true },
        Record::Gone { page: 0x100, pages: 300 },
    ];
    let bytes = file(&[Batch { process: Process { pid: 0x0102, since_ns: 3 }, number: 4, dropped: 6, records }]);
    let head = b"nftrace\n\x01\0\0\0\x40\0\0\0nftb\x0b\0\0\0\x02\x01\0\0\x04\0\0\0\x03\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x03\0\0\0";
    assert_eq!(bytes[..head.len()], head[..]);
    let body = [4 | 8 | 16, 0x80, 4, 0, 12, 5 | 8, 1, 6, 2, 0xac, 2];
    assert_eq!(bytes[head.len() + 4..], body);
    // CRC-32C of "123456789" is known.
    assert_eq!(super::bytes::checksum([b"1234", b"56789"]), 0xe306_9283);
}

#[test]
fn records_become_visits() {
    let at = |chunk: u64| 0x200 * 9 + 16 * chunk;
    let records = vec![
        visit(at(1), true, Found::Zero, 1),
        visit(at(1) + 1, true, Found::Zero, 2),
        visit(at(2), false, Found::Far, 3),
        Record::Out { page: at(1), changed: true },
        Record::Out { page: at(2), changed: false },
        visit(at(2) + 3, false, Found::Limbo, 5),
        visit(at(1), false, Found::Limbo, 6),
        Record::Out { page: at(2), changed: true },
        Record::Gone { page: at(1) - 1, pages: 18 },
        visit(at(1), true, Found::Zero, 8),
    ];
    let other = vec![visit(at(2), true, Found::Far, 4)];
    let bytes = file(&[batch(1, 0, records), batch(2, 1, other)]);
    let (list, summary) = accesses(&bytes, Grain::Chunk).unwrap();
    let mine = |chunk, act| Access { unit: Unit::chunk(9, chunk), pages: 16, act };
    let expected = [
        mine(1, Action::Fresh),
        mine(2, Action::Read),
        Access { unit: Unit::chunk((1 << 28) + 9, 2), pages: 16, act: Action::Write },
        mine(2, Action::Write),
        mine(1, Action::Read),
        mine(1, Action::Discard),
        mine(1, Action::Fresh),
    ];
    assert_eq!(list, expected);
    assert_eq!((summary.faults, summary.visits, summary.units, summary.processes, summary.dropped), (7, 6, 3, 2, 3));
    // A range far larger than what was visited ends the same units.
    let wide = vec![visit(at(1), true, Found::Zero, 1), Record::Gone { page: 0, pages: u64::MAX }];
    let (list, _) = accesses(&file(&[batch(1, 0, wide)]), Grain::Chunk).unwrap();
    assert_eq!(list, [mine(1, Action::Fresh), mine(1, Action::Discard)]);
    let (blocks, _) = accesses(&bytes, Grain::Block).unwrap();
    assert_eq!(blocks.iter().map(|access| access.act).collect::<Vec<_>>(), [Action::Fresh, Action::Write, Action::Write]);
}
