//! The books: what is recorded of objects that come and go.

use super::*;

fn event(what: What, addr: u64, len: u64, at: u64, of: u64) -> Event {
    Event { what, site: 1, addr, len, at, of }
}

fn shown(records: &[Record]) -> Vec<String> {
    let one = |record: &Record| match record {
        Record::Object(object) => format!("object {} {}+{}", object.id, object.addr, object.len),
        Record::Resized { id, addr, len, .. } => format!("resized {id} {addr}+{len}"),
        Record::Gone { id, .. } => format!("gone {id}"),
        Record::Brief(brief) => format!("brief {} {}", brief.count, brief.bytes),
        Record::Watch(watch) => format!("watch {}", watch.object),
        _ => "?".into(),
    };
    records.iter().map(one).collect()
}

fn run(book: &mut Book, events: &[(What, u64, u64, u64)]) -> Vec<String> {
    for (at, &(what, addr, len, of)) in events.iter().enumerate() {
        book.note(at as u64, &event(what, addr, len, at as u64, of));
    }
    shown(&book.take(Thin::No, 1000, false))
}

#[test]
fn blocks() {
    let mut book = Book::new(10);
    let events = [
        (What::Alloc, 100, 50, 0),
        (What::Alloc, 200, 50, 0),
        (What::Free, 200, 0, 0),
        (What::Take, 100, 0, 0),
        // Another thread has the old place before this one tells where its block is now.
        (What::Alloc, 100, 20, 0),
        (What::Put, 300, 80, 3),
        (What::Free, 999, 0, 0),
    ];
    assert_eq!(run(&mut book, &events), ["object 1 300+80", "object 3 100+20", "brief 1 50"]);
    let events = [
        (What::Take, 300, 0, 0),
        (What::Put, 300, UNCHANGED, 0),
        (What::Take, 300, 0, 0),
        (What::Put, 300, 5, 2),
        (What::Take, 100, 0, 0),
        (What::Put, 500, 30, 4),
    ];
    assert_eq!(run(&mut book, &events), ["gone 1", "resized 3 500+30"]);
    // A free that was lost: the next block at its place ends it.
    assert_eq!(run(&mut book, &[(What::Alloc, 510, 30, 0)]), ["gone 3", "object 4 510+30"]);
}

#[test]
fn mappings() {
    let mut book = Book::new(10);
    assert_eq!(run(&mut book, &[(What::Map, 1000, 1000, 0), (What::Map, 1200, 100, 0)]), ["object 1 1000+1000"]);
    assert_eq!(run(&mut book, &[(What::Unmap, 1200, 100, 0)]), ["resized 1 1000+200", "object 2 1300+700"]);
    assert_eq!(run(&mut book, &[(What::MapTake, 1000, 200, 0), (What::MapPut, 5000, 400, 0)]), ["resized 1 5000+400"]);
    assert_eq!(run(&mut book, &[(What::Unmap, 0, 9000, 0)]), ["gone 2", "gone 1"]);
}

#[test]
fn stacks_are_objects_once_they_are_used() {
    const M: u64 = 1 << 20;
    let mut book = Book::new(10);
    let used = |book: &mut Book, low: u64| book.measure_stacks(0, &mut |start, end| Some(low.clamp(start, end)));
    assert!(run(&mut book, &[(What::StackBegin, M, 8 * M, 77)]).is_empty());
    used(&mut book, 9 * M - 4096);
    assert!(run(&mut book, &[]).is_empty());
    used(&mut book, 8 * M);
    assert_eq!(run(&mut book, &[]), ["object 1 8388608+1048576"]);
    used(&mut book, 6 * M);
    assert_eq!(run(&mut book, &[(What::StackEnd, 9 * M, 0, 0)]), ["resized 1 6291456+3145728", "gone 1"]);
    // One in a block is the block's; one that the C library has unmapped ends when there is something else.
    assert!(run(&mut book, &[(What::StackBegin, 20 * M, M, 78)]).is_empty());
    book.note(0, &event(What::Alloc, 20 * M, 2 * M, 5, 0));
    used(&mut book, 20 * M);
    assert_eq!(run(&mut book, &[(What::StackEnd, 21 * M, 0, 0)]), ["object 2 20971520+2097152"]);
    book.note(0, &event(What::StackBegin, 40 * M, M, 0, 79));
    used(&mut book, 40 * M);
    assert_eq!(
        run(&mut book, &[(What::Map, 40 * M, 8 * M, 0)]),
        ["object 3 41943040+1048576", "gone 3", "object 4 41943040+8388608"]
    );
    used(&mut book, 40 * M);
    assert!(run(&mut book, &[(What::StackEnd, 41 * M, 0, 0)]).is_empty());
}

#[test]
fn looks_at_what_was_gone_are_not_told() {
    let mut book = Book::new(10);
    book.note(0, &event(What::Alloc, 0x1000, 0x4000, 0, 0));
    let watch = |at| Watch {
        object: 1,
        page: 0x1000,
        pages: 1,
        at,
        waited: 5,
        stalled: 0,
        end: nearfar_core::profile::record::WatchEnd::Read,
        touched: 0,
        ip: 0,
        tid: 0,
        wrote: None,
        lines: None,
    };
    assert_eq!(book.look(0x1000, 0x2000, 30), Some((1, false)));
    assert_eq!(book.look(0x1000, 0x2000, 35), Some((1, false)));
    book.note(1, &event(What::Free, 0x1000, 0, 50, 0));
    book.watched(watch(40));
    book.watched(watch(60));
    book.watched(watch(40));
    assert_eq!(shown(&book.take(Thin::No, 100, false)), ["object 1 4096+16384", "gone 1", "watch 1"]);
}

/// The sampler drops what it cannot begin, without a word.
#[test]
fn looks_without_a_result_are_forgotten() {
    let mut book = Book::new(10);
    for n in 0..1000 {
        book.note(n, &event(What::Alloc, 0x1000, 0x4000, n, 0));
        assert!(book.look(0x1000, 0x2000, n).is_some());
        book.note(n, &event(What::Free, 0x1000, 0, n, 0));
    }
    book.look_elsewhere(7777, FORGET_NS);
    book.take(Thin::No, FORGET_NS / 2, false);
    assert_eq!(book.looked.len(), 1001, "they may be under way");
    book.take(Thin::No, FORGET_NS + 2000, false);
    assert_eq!(book.looked.keys().collect::<Vec<_>>(), [&7777]);
}

#[test]
fn little_is_told_when_the_file_is_nearly_full() {
    let mut book = Book::new(10);
    for n in 0..100 {
        book.note(n, &event(What::Alloc, 0x1000 * (n + 1), 100, n, 0));
    }
    assert!(book.take(Thin::Small, 100, false).is_empty());
    for n in 0..50 {
        book.note(n, &event(What::Free, 0x1000 * (n + 1), 0, 200, 0));
    }
    assert_eq!(shown(&book.take(Thin::Small, 200, false)), ["brief 50 5000"]);
    assert_eq!(shown(&book.take(Thin::Full, 300, true)), ["brief 50 5000"]);
}

/// Two threads, and a module whose block the first has in the heap, the second beside its stack.
#[test]
fn thread_local_arrays_begin_and_end_with_what_holds_them() {
    use crate::locals::{Locals, Way};
    use nearfar_core::addr::Extent;
    const M: u64 = 1 << 20;
    let arrays = [("a", 0x100, 0x1100), ("b", 0x2000, 0x6000)];
    let arrays = arrays.map(|(name, start, end)| (name.to_owned(), Extent { start, end })).to_vec();
    let locals = Locals::new(Way::Number(8), arrays);
    let mut book = Book::new(10);
    for (start, tid) in [(M, 1), (3 * M, 2)] {
        book.note(0, &Event { what: What::StackBegin, site: 0x8000, addr: start, len: M, at: 5, of: tid });
    }
    // The module's number; the tables of the threads, and their lengths; blocks.
    let table = |descriptor: u64, table: u64, block: u64, heap: u64| {
        [(descriptor + 8, table), (table - 16, 4), (table + 16, block), (table + 24, heap)]
    };
    let first = table(2 * M + 0x8000, 0x100_0000, 0x200_0010, 0x200_0000);
    let second = table(4 * M + 0x8000, 0x110_0000, 4 * M + 0x1000, 0);
    let words: HashMap<u64, u64> = first.into_iter().chain(second).chain([(8, 1)]).collect();
    let begin = |book: &mut Book| {
        book.begin_locals(0, "app", &locals, &mut |addr| words.get(&addr).copied());
        shown(&book.take(Thin::No, 1000, false))
    };
    let of_second = [format!("object 1 {}+4096", 4 * M + 0x1100), format!("object 2 {}+16384", 4 * M + 0x3000)];
    assert_eq!(begin(&mut book), of_second, "that of the heap was not told of yet");
    book.note(1, &event(What::Alloc, 0x200_0000, 0x7000, 7, 0));
    assert_eq!(begin(&mut book), [format!("object 4 {}+4096", 0x200_0110), format!("object 5 {}+16384", 0x200_2010)]);
    let object = book.live.at(0x200_0110).unwrap();
    assert_eq!((object.kind, object.at, object.name.as_deref()), (Kind::ThreadLocal, 7, Some("a@app")));
    assert!(begin(&mut book).is_empty());
    assert_eq!(run(&mut book, &[(What::StackEnd, 4 * M, 0, 0)]), ["gone 1", "gone 2"]);
    assert_eq!(run(&mut book, &[(What::Free, 0x200_0000, 0, 0)]), ["gone 4", "gone 5"]);
    // What the thread frees late does not come back, and the module's end ends it as well.
    assert!(begin(&mut book).is_empty());
    book.note(2, &event(What::Alloc, 0x200_0000, 0x7000, 8, 0));
    assert_eq!(begin(&mut book).len(), 2);
    book.module_gone(0, 9);
    assert_eq!(run(&mut book, &[(What::Free, 0x200_0000, 0, 0)]), ["gone 7", "gone 8"]);
}
