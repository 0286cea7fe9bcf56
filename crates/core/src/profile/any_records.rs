//! Whatever a file says, conclusions are finite, in order, and come.

use super::analyse::{Options, analyse};
use super::file::{Batch, Content};
use super::names::NoNames;
use super::record::*;
use super::simulate::Machine;
use super::summary::Estimate;
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(vec![
        Kind::Heap,
        Kind::Map,
        Kind::Static,
        Kind::MainStack,
        Kind::ThreadStack,
        Kind::SmallBlocks,
        Kind::ThreadLocal,
    ])
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, 0..5_000_000_000_u64, any::<u64>()]
}

fn end() -> impl Strategy<Value = WatchEnd> {
    proptest::sample::select(vec![WatchEnd::Read, WatchEnd::Write, WatchEnd::Nobody, WatchEnd::Absent, WatchEnd::Lost])
}

fn watch() -> impl Strategy<Value = Watch> {
    let first = (0..4_u64, number(), any::<u16>(), number(), number(), end());
    let second = (number(), 0x10..0x16_u64, any::<Option<bool>>(), any::<Option<(u8, u8)>>());
    (first, second).prop_map(|((object, page, pages, at, waited, end), (touched, ip, wrote, lines))| Watch {
        object,
        page,
        pages,
        at,
        waited,
        stalled: waited / 3,
        end,
        touched,
        ip,
        tid: 1,
        wrote,
        lines,
    })
}

fn record() -> impl Strategy<Value = Record> {
    let object = (0..4_u64, kind(), number(), number(), 0..3_u32, number())
        .prop_map(|(id, kind, addr, len, site, at)| Record::Object(Object { id, kind, addr, len, site, name: "x".into(), at }));
    let brief = (0..3_u32, number(), number(), number(), number(), number()).prop_map(
        |(site, at, count, bytes, largest, lifetime_ns)| Record::Brief(Brief { site, at, count, bytes, largest, lifetime_ns }),
    );
    let time = (number(), number(), proptest::collection::vec((0x10..0x16_u64, 0..3_u32, any::<u32>()), 0..4)).prop_map(
        |(at, period_ns, samples)| {
            Record::Time(TimeSamples {
                at,
                period_ns,
                since: at.wrapping_sub(samples.len() as u64 * 1000),
                moments: (0..samples.len() as u32 + 1).map(|which| (which * 700, which)).collect(),
                samples,
            })
        },
    );
    let cost = (number(), number()).prop_map(|(at, cpu_ns)| Record::Cost(Cost { at, cpu_ns, ..Cost::default() }));
    let last =
        (number(), number()).prop_map(|(at, cpu)| Record::End { at, cpu_user_ns: cpu, cpu_system_ns: cpu / 2, peak_resident: 0 });
    let access = (number(), 0x10..0x16_u64, number(), any::<u64>(), any::<u32>(), any::<bool>(), 0..7_usize).prop_map(
        |(at, ip, addr, stands_for, cycles, writes, source)| {
            use Source::*;
            let source = [Unknown, L1, L2, L3, FillBuffer, OtherCache, Memory][source];
            Access { at, ip, tid: 1, addr, stands_for, cycles, source, writes }
        },
    );
    let accesses = (number(), proptest::collection::vec(access, 0..4), number())
        .prop_map(|(at, samples, lost)| Record::Accesses { at, samples, lost });
    prop_oneof![
        2 => accesses,
        4 => object,
        12 => watch().prop_map(Record::Watch),
        1 => brief,
        1 => time,
        1 => cost,
        1 => last,
        1 => (0..4_u64, number(), number()).prop_map(|(id, len, at)| Record::Resized { id, addr: 0, len, at }),
        1 => (0..4_u64, number()).prop_map(|(id, at)| Record::Gone { id, at }),
        1 => number().prop_map(|at| Record::Start(Start { at, cache_bytes: at % (1 << 30), ..Start::default() })),
        1 => (0..3_u32).prop_map(|id| Record::Site(Site { id, frames: vec![u64::from(id)], script: vec![] })),
    ]
}

fn sound(estimate: Estimate) {
    let numbers = [estimate.value, estimate.low, estimate.high];
    assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{estimate:?}");
    assert!(estimate.low <= estimate.value && estimate.value <= estimate.high, "{estimate:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_records_give_finite_conclusions(batches in proptest::collection::vec((0..2_u32, proptest::collection::vec(record(), 0..60)), 0..3)) {
        let batches = batches.into_iter().map(|(pid, records)| Batch { pid, records }).collect();
        let content = Content { batches, lost_bytes: 3 };
        for summary in [analyse(&content, &Machine, &Options::default()), analyse(&content, &NoNames, &Options { cache_bytes: Some(0) })] {
            for object in &summary.objects {
                for estimate in [object.footprint, object.read, object.written, object.lines_per_visit, object.page_visits] {
                    sound(estimate);
                }
                assert!(object.traffic.iter().chain(&object.live_bytes).all(|number| number.is_finite() && *number >= 0.0), "{object:?}");
                assert!(object.misses.points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1), "{object:?}");
                assert!(object.busy_s.is_finite() && object.lifetime_s.is_finite());
            }
            assert_eq!(summary.check(), Ok(()));
            assert!(summary.misses.points.iter().all(|&(x, y)| x.is_finite() && (0.0..=1.0).contains(&y)));
            summary.routines.iter().for_each(|routine| sound(routine.traffic));
            assert!([summary.wall_s, summary.cpu_s, summary.overhead, summary.bin_s].iter().all(|number| number.is_finite()));
            assert_eq!(serde_json::to_string(&summary).unwrap(), serde_json::to_string(&summary.clone()).unwrap());
        }
        assert_eq!(analyse(&content, &Machine, &Options::default()), analyse(&content, &Machine, &Options::default()));
    }
}
