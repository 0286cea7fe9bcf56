//! A summary beside what a program said.

use super::*;
use nearfar_core::profile::record::Method;
use nearfar_core::profile::summary::{FORMAT, NamedFrame};

fn group(name: &str, function: &str, kind: Kind, bytes: f64) -> ObjectGroup {
    let read = Estimate { value: bytes, low: bytes * 0.8, high: bytes * 1.2 };
    ObjectGroup {
        name: name.into(),
        kind,
        symbol: if kind == Kind::Static { name.into() } else { String::new() },
        frames: vec![NamedFrame { function: function.into(), ..NamedFrame::default() }],
        count: 1,
        read,
        pattern: Pattern::Stream,
        ..ObjectGroup::default()
    }
}

fn summary(objects: Vec<ObjectGroup>) -> Summary {
    Summary {
        format: FORMAT,
        least: 4096,
        processes: 1,
        method: Method::PageFaults,
        wall_s: 1.0,
        cpu_s: 1.0,
        bin_s: 1.0,
        objects,
        ..Summary::default()
    }
}

#[test]
fn shares_beside_the_truth() {
    let text = "noise\n{\"object\":\"make_a\",\"sparse\":false,\"bytes\":600}\n{\"object\":\"field\",\"sparse\":false,\"bytes\":300}\n\
                {\"object\":\"stack\",\"sparse\":true,\"bytes\":100}\n{\"object\":\"make_hot\",\"sparse\":false,\"bytes\":0}\n";
    let truths = parse(text);
    assert_eq!(truths.len(), 4);
    let found = summary(vec![
        group("a", "make_a", Kind::Heap, 400.0),
        group("arrays.py:9 (make_a)", "", Kind::Map, 100.0),
        group("field", "", Kind::Static, 400.0),
        group("stack of thread 2", "", Kind::ThreadStack, 100.0),
        group("make_another", "make_another", Kind::Heap, 0.0),
    ]);
    let (rows, order_right) = compare(&truths, &found);
    let shown: Vec<_> = rows.iter().map(|row| (row.object.as_str(), row.measured.round(), row.is_close(), row.missing)).collect();
    assert_eq!(
        shown,
        [
            ("make_a", 50.0, false, false),
            ("field", 40.0, false, false),
            ("stack", 10.0, true, false),
            ("make_hot", 0.0, true, true)
        ]
    );
    assert!(order_right);
    let mut tally = Tally::default();
    tally.add(&rows, order_right);
    assert_eq!((tally.dense, tally.sparse, tally.hot, tally.orders), ((0, 3), (1, 1), (1, 1), (1, 1)));
    assert_eq!(tally.intervals, (2, 4));
    let (_, wrong) =
        compare(&truths, &summary(vec![group("field", "", Kind::Static, 4.0), group("a", "make_a", Kind::Heap, 3.0)]));
    assert!(!wrong);
}
