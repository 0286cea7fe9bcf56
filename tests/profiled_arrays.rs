//! Arrays that `nearfar profile` finds by their symbols: thread-local ones, and those of libraries that are opened while the program runs.

use crate::profile::{Profiled, profiled};
use crate::util::{Scratch, compile};
use nearfar_core::profile::analyse::{Options, analyse};
use nearfar_core::profile::record::{Kind, Object, Record};
use nearfar_core::profile::summary::ObjectGroup;
use nearfar_profile::names::FileNames;
use std::ffi::OsString;
use std::path::PathBuf;

fn plugin() -> PathBuf {
    compile("profiled_plugin.c").canonicalize().expect("compiled")
}

fn run(what: &str, libraries: &[PathBuf]) -> Profiled {
    let mut argv: Vec<OsString> = vec![compile("profiled_thread_local.c").into(), what.into()];
    argv.extend(libraries.iter().map(|path| path.clone().into_os_string()));
    profiled(&["--budget", "20%"], &argv).ok()
}

fn groups(run: &Profiled) -> Vec<ObjectGroup> {
    analyse(&run.content, &FileNames::of(&run.content), &Options::default()).objects
}

/// Name and count of the groups of one kind, in order of names.
fn named(groups: &[ObjectGroup], kind: Kind) -> Vec<(String, u64)> {
    let of_kind = groups.iter().filter(|group| group.kind == kind);
    let mut named: Vec<_> = of_kind.map(|group| (group.name.clone(), group.count)).collect();
    named.sort();
    named
}

fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
}

fn is_watched(run: &Profiled) -> bool {
    format!("{:?}", run.starts()[0].method) != "None"
}

/// When an object ended.
fn end(run: &Profiled, object: &Object) -> Option<u64> {
    run.records().find_map(|(_, record)| match record {
        Record::Gone { id, at } if *id == object.id => Some(*at),
        _ => None,
    })
}

#[test]
fn thread_local_arrays_of_the_program() {
    let mut said = Vec::new();
    for _ in 0..4 {
        let run = run("own", &[]);
        let groups = groups(&run);
        let expected = pairs(&[("own_buffer (thread-local)", 3), ("second_buffer (thread-local)", 3)]);
        assert_eq!(named(&groups, Kind::ThreadLocal), expected, "of each thread");
        assert_eq!((run.of(Kind::ThreadLocal, 3_000_000).len(), run.of(Kind::ThreadLocal, 750_000).len()), (3, 3));
        // They are not also part of a stack, which is small.
        assert!(groups.iter().all(|group| group.kind != Kind::ThreadStack || group.most < 1 << 20), "{groups:?}");
        let threads: Vec<u64> = run.of(Kind::ThreadLocal, 3_000_000).iter().filter_map(|(_, one)| end(&run, one)).collect();
        assert_eq!(threads.len(), 2, "those of threads end with them");
        let touches: Vec<u64> =
            groups.iter().filter(|group| group.kind == Kind::ThreadLocal).map(|group| group.touches).collect();
        if !is_watched(&run) || touches.iter().all(|&touches| touches > 0) {
            return;
        }
        said.push(touches);
    }
    panic!("no touch of one of them was seen: {said:?}");
}

#[test]
fn thread_local_arrays_of_a_library_opened_later() {
    let run = run("opened", &[plugin()]);
    let groups = groups(&run);
    let expected = [
        ("own_buffer (thread-local)", 3),
        ("plugin_buffer (thread-local, profiled_plugin)", 3),
        ("plugin_second (thread-local, profiled_plugin)", 3),
        ("second_buffer (thread-local)", 3),
    ];
    assert_eq!(named(&groups, Kind::ThreadLocal), pairs(&expected));
    assert_eq!(named(&groups, Kind::Static), pairs(&[("plugin_table (profiled_plugin)", 1)]));
    let table = groups.iter().find(|group| group.kind == Kind::Static).expect("the table");
    assert_eq!((table.symbol.as_str(), table.frames[0].module.as_str()), ("plugin_table", "profiled_plugin"), "for plans");
    // From when their block was allocated, which is before they were found.
    let of_library = run.of(Kind::ThreadLocal, 1_600_000);
    assert!(of_library.iter().all(|(_, one)| end(&run, one).is_some() || one.at > 0), "{of_library:?}");
    let most =
        groups.iter().filter(|group| group.kind == Kind::Heap).map(|group| group.live_bytes.last().copied().unwrap_or(0.0));
    assert!(most.fold(0.0, f64::max) < 1e6, "nothing of it is also a block");
}

#[test]
fn arrays_end_with_their_library() {
    let run = run("closed", &[plugin()]);
    let tables = run.of(Kind::Static, 2_000_000);
    assert_eq!(tables.len(), 2, "opened twice: {:?}", run.objects());
    let first = end(&run, &tables[0].1).expect("it was closed");
    assert!(first <= tables[1].1.at && end(&run, &tables[1].1).is_some(), "{tables:?}");
    // In each round that of the first thread and of another.
    let buffers = run.of(Kind::ThreadLocal, 1_600_000);
    assert_eq!(buffers.len(), 4, "{buffers:?}");
    assert!(buffers.iter().all(|(_, buffer)| end(&run, buffer).is_some()), "{buffers:?}");
}

#[test]
fn libraries_that_are_there_twice() {
    let scratch = Scratch::new();
    let copy = scratch.work().join("copy_of_plugin.so");
    std::fs::copy(plugin(), &copy).expect("a copy");
    let run = run("twice", &[plugin(), copy]);
    let groups = groups(&run);
    assert_eq!(
        named(&groups, Kind::Static),
        pairs(&[("plugin_table (copy_of_plugin.so)", 1), ("plugin_table (profiled_plugin)", 2)])
    );
    let of_library = [
        ("own_buffer (thread-local)", 1),
        ("plugin_buffer (thread-local, copy_of_plugin.so)", 1),
        ("plugin_buffer (thread-local, profiled_plugin)", 2),
        ("plugin_second (thread-local, copy_of_plugin.so)", 1),
        ("plugin_second (thread-local, profiled_plugin)", 2),
        ("second_buffer (thread-local)", 1),
    ];
    assert_eq!(named(&groups, Kind::ThreadLocal), pairs(&of_library));
    // Both copies of the one file have functions with names.
    let nameless = |group: &&ObjectGroup| group.routines.iter().any(|(function, _)| function.contains("+0x"));
    assert_eq!(groups.iter().find(nameless).map(|group| &group.routines), None);
}

/// What people read of C++, Fortran and numpy.
#[test]
fn names_that_people_know() {
    needs!("g++");
    let run = profiled(&[], &[compile("profiled_vectors.cpp").into()]).ok();
    let names: Vec<String> = groups(&run).iter().map(|group| group.name.clone()).collect();
    let has = |begin: &str| names.iter().any(|name| name.starts_with(begin));
    assert!(has("std::vector<double> in Mesh::build") && has("Mesh::build"), "{names:?}");
}

#[test]
fn names_of_numpy() {
    needs!("numpy");
    let text = "import numpy\ndef psi():\n    return numpy.zeros(500_001)\na = psi(); a += 1\nfor _ in range(20): b = a * 2.0\nprint('OK' if a.sum() == 500_001 else 'BAD')";
    let run =
        profiled(&[], &["env".into(), "OPENBLAS_NUM_THREADS=1".into(), crate::util::python().into(), "-c".into(), text.into()])
            .ok();
    let groups = groups(&run);
    let of = |most: u64| groups.iter().filter(|group| group.most == most).map(|group| group.name.as_str()).collect::<Vec<_>>();
    let mut names = of(4_000_008);
    names.sort_unstable();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("numpy ")), "{names:?}");
}
