//! Who asks for memory, and what for: functions that hand it on for others, containers, and run-time systems that manage their own.

use super::summary::NamedFrame;

/// Functions that hand out memory for others, by the beginning of their names.
const ALLOCATORS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "mmap",
    "__mmap",
    "mremap",
    "__libc_",
    "operator new",
    "_Znwm",
    "_Znam",
    "std::",
    "void std::",
    "void* std::",
    "__gnu_cxx::",
    "_gfortran_",
    "_gfortrani_",
    "xmalloc",
    "g_malloc",
    "PyMem_",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "_PyMem_",
    "_PyObject_",
    "PyDataMem_",
    "PyArray_",
    "npy_",
    "alloc::",
    "core::",
    "hashbrown::",
    "__rust_",
    "__rdl_",
    "__rg_",
];
/// Libraries that hand out memory for others, by the beginning of their names.
const LIBRARIES: &[&str] = &[
    "libc.so",
    "libc-",
    "ld-linux",
    "libstdc++",
    "libc++",
    "libgfortran",
    "libnearfar",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "_multiarray_umath",
    "libmemkind",
];
/// Types of which Rust's own traits are implemented for everybody: `<T as alloc::...>::f`, `<str>::f`.
const GENERIC: &[&str] = &["T", "I", "U", "str", "[T]", "&", "Box<"];

/// Whether a frame only passes on what another asked for.
pub fn passes_on(frame: &NamedFrame) -> bool {
    let function = frame.function.as_str();
    let begins = |names: &[&str], text: &str| names.iter().any(|name| text.starts_with(name));
    // Rust: what type it is of.
    let of = function.strip_prefix('<').map(|rest| rest.split([' ', '>']).next().unwrap_or_default());
    begins(LIBRARIES, &frame.module)
        || begins(ALLOCATORS, function)
        || of.is_some_and(|of| GENERIC.contains(&of) || of.starts_with('&') || begins(ALLOCATORS, of))
}

/// Containers: name, arguments that tell what is in it, and what it is called without them.
const CONTAINERS: &[(&str, usize, &str)] = &[
    ("std::vector<", 1, "std::vector"),
    ("std::deque<", 1, "std::deque"),
    ("std::list<", 1, "std::list"),
    ("std::__cxx11::list<", 1, "std::list"),
    ("std::map<", 2, "std::map"),
    ("std::multimap<", 2, "std::multimap"),
    ("std::set<", 1, "std::set"),
    ("std::multiset<", 1, "std::multiset"),
    ("std::unordered_map<", 2, "std::unordered_map"),
    ("std::unordered_multimap<", 2, "std::unordered_multimap"),
    ("std::unordered_set<", 1, "std::unordered_set"),
    ("std::unordered_multiset<", 1, "std::unordered_multiset"),
    ("std::valarray<", 1, "std::valarray"),
    ("std::__cxx11::basic_string<char", 0, "std::string"),
    ("std::__cxx11::basic_string<", 1, "std::basic_string"),
    ("alloc::string::String", 0, "String"),
    ("<alloc::string::String", 0, "String"),
    ("std::collections::hash::map::HashMap", 0, "HashMap"),
    ("<std::collections::hash::map::HashMap", 0, "HashMap"),
    ("hashbrown::map::HashMap", 0, "HashMap"),
    ("<hashbrown::map::HashMap", 0, "HashMap"),
    ("alloc::collections::btree::", 0, "BTreeMap"),
    ("alloc::collections::vec_deque::", 0, "VecDeque"),
    ("alloc::vec::", 0, "Vec"),
    ("<alloc::vec::Vec", 0, "Vec"),
    ("alloc::raw_vec::", 0, "Vec"),
];
/// What containers are made of, for where the compiler has left nothing else.
const INSIDES: &[(&str, usize, &str)] = &[
    ("std::_Vector_base<", 1, "std::vector"),
    ("std::_Deque_base<", 1, "std::deque"),
    ("std::_Hashtable<", 0, "hash table"),
    ("std::_Rb_tree<", 0, "std::map"),
];
/// Longer arguments are left out.
const LONGEST: usize = 32;

/// Memory that a run-time system manages: module and function (where they begin with that), what it is called, and whether that says
/// all, so that the line which happened to ask for more does not count.
const RUNTIMES: &[(&str, &str, &str, bool)] = &[
    ("libjvm.so", "ReservedHeapSpace::", "Java heap", true),
    ("libjvm.so", "CodeCache::", "Java code cache", true),
    ("libjvm.so", "CodeHeap::", "Java code cache", true),
    ("libjvm.so", "ReservedCodeSpace::", "Java code cache", true),
    ("libjvm.so", "Metaspace", "Java classes", true),
    ("libjvm.so", "metaspace::", "Java classes", true),
    ("libjvm.so", "G1", "Java garbage collector", true),
    ("libjvm.so", "Shenandoah", "Java garbage collector", true),
    ("libjvm.so", "Parallel", "Java garbage collector", true),
    ("libjvm.so", "PS", "Java garbage collector", true),
    ("libjvm.so", "CardTable", "Java garbage collector", true),
    ("libjvm.so", "Compile", "Java compiler", true),
    ("", "x_cgo_mmap", "Go heap", true),
    ("", "_cgo_", "C.malloc in Go", true),
    ("", "blas_memory_alloc", "OpenBLAS buffer", true),
    ("libpython3", "new_arena", "Python objects", false),
    ("python3", "new_arena", "Python objects", false),
    ("libpython3", "_PyObject_Arena", "Python objects", false),
    ("python3", "_PyObject_Arena", "Python objects", false),
    ("libpython3", "new_keys_object", "Python dict", false),
    ("python3", "new_keys_object", "Python dict", false),
    ("libpython3", "list_resize", "Python list", false),
    ("python3", "list_resize", "Python list", false),
    ("_multiarray_umath", "", NUMPY, false),
];
const NUMPY: &str = "numpy array";
/// A library in which nothing else was recognised.
const WHOLE: &[(&str, &str)] = &[("libjvm.so", "Java virtual machine")];

/// What memory is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A run-time system's own: that is its name.
    Runtime(&'static str),
    /// Of that sort, asked for at some line.
    Sort(String),
}

/// What blocks are for that were asked for through `handed_on` by `frames`; `brief`: many, each for a short time.
pub fn origin(handed_on: &[NamedFrame], frames: &[NamedFrame], brief: bool) -> Option<Origin> {
    // Whoever has called the run-time system has not asked for its memory.
    let own = frames.first().map(|frame| frame.module.as_str()).unwrap_or_default();
    let within = || handed_on.iter().chain(frames.iter().take_while(|frame| frame.module == own));
    let known = within().find_map(|frame| {
        RUNTIMES.iter().find(|(module, function, ..)| frame.module.starts_with(module) && frame.function.starts_with(function))
    });
    if let Some(&(.., name, is_all)) = known {
        return Some(match is_all {
            true => Origin::Runtime(name),
            false if name == NUMPY && brief => Origin::Sort("numpy temporary".to_owned()),
            false => Origin::Sort(name.to_owned()),
        });
    }
    if let Some((_, name)) = WHOLE.iter().find(|(module, _)| own.starts_with(module)) {
        return Some(Origin::Runtime(name));
    }
    let named = |table: &[(&str, usize, &str)]| handed_on.iter().find_map(|frame| container(&frame.function, table));
    named(CONTAINERS).or_else(|| named(INSIDES)).map(Origin::Sort)
}

/// `std::vector<double>::resize` -> `std::vector<double>`.
fn container(function: &str, table: &[(&str, usize, &str)]) -> Option<String> {
    let &(begin, count, name) = table.iter().find(|(begin, ..)| function.starts_with(begin))?;
    let arguments = if count == 0 { "" } else { arguments(&function[begin.len()..], count).unwrap_or_default() };
    Some(match arguments.is_empty() || arguments.len() > LONGEST {
        true => name.to_owned(),
        false => format!("{name}<{arguments}>"),
    })
}

/// The first `count` arguments of a list that has been opened.
fn arguments(list: &str, count: usize) -> Option<&str> {
    let (mut depth, mut seen) = (0, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' | b'(' => depth += 1,
            b'>' if depth == 0 => return Some(list[..at].trim_end()),
            b'>' | b')' => depth -= 1,
            b',' if depth == 0 => {
                seen += 1;
                if seen == count {
                    return Some(&list[..at]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, function: &str) -> NamedFrame {
        NamedFrame { module: module.into(), function: function.into(), ..NamedFrame::default() }
    }

    #[test]
    fn who_passes_on() {
        for (module, function) in [
            ("libc.so.6", "anything"),
            ("app", "operator new(unsigned long)"),
            ("app", "std::vector<double>::resize"),
            ("app", "__gnu_cxx::new_allocator<double>::allocate"),
            ("app", "alloc::vec::Vec<T,A>::push"),
            ("app", "<alloc::alloc::Global>::alloc_impl"),
            ("app", "<T as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"),
            ("app", "<str>::repeat"),
            ("app", "<hashbrown::map::HashMap<K,V,S,A> as core::iter::traits::collect::Extend<(K,V)>>::extend"),
            ("app", "<&T as alloc::string::ToString>::to_string"),
            ("app", "_gfortran_matmul_r8"),
            ("_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "default_malloc"),
        ] {
            assert!(passes_on(&frame(module, function)), "{module} {function}");
        }
        for (module, function) in [
            ("app", "main"),
            ("app", "build_grid"),
            ("app", "<app::Grid as core::iter::traits::collect::Extend<f64>>::extend"),
            ("app", "<Table as core::default::Default>::default"),
            ("app", "stdlike::grow"),
            ("libjvm.so", "os::malloc"),
        ] {
            assert!(!passes_on(&frame(module, function)), "{module} {function}");
        }
    }

    fn of(handed_on: &[&str], asker: (&str, &str)) -> Option<String> {
        let handed_on: Vec<NamedFrame> = handed_on.iter().map(|function| frame("app", function)).collect();
        match origin(&handed_on, &[frame(asker.0, asker.1)], false)? {
            Origin::Runtime(name) => Some(format!("[{name}]")),
            Origin::Sort(name) => Some(name),
        }
    }

    #[test]
    fn containers_by_what_is_innermost() {
        let app = ("app", "main");
        for (handed_on, name) in [
            (
                &["operator new(unsigned long)", "std::_Vector_base<double>::_M_allocate", "std::vector<double>::resize"][..],
                "std::vector<double>",
            ),
            // The rows of a table, and the table.
            (&["std::vector<double>::vector", "std::vector<std::vector<double>>::vector"], "std::vector<double>"),
            (
                &["std::_Vector_base<int>::_M_allocate", "std::vector<std::vector<double>>::vector"],
                "std::vector<std::vector<double>>",
            ),
            (
                &[
                    "std::_Hashtable<long, std::pair<long const, double>>::_M_rehash",
                    "std::unordered_map<long, double, std::hash<long>>::operator[]",
                ],
                "std::unordered_map<long, double>",
            ),
            (&["std::_Hashtable<long, std::pair<long const, double>>::_M_rehash"], "hash table"),
            (&["std::_Vector_base<Cell>::_M_allocate"], "std::vector<Cell>"),
            (&["std::__cxx11::basic_string<char, std::char_traits<char>>::_M_mutate"], "std::string"),
            (&["std::vector<a_very_long_name_of_a_type_that_nobody_reads>::push_back"], "std::vector"),
            (&["std::vector<void (*)(int, long)>::push_back"], "std::vector<void (*)(int, long)>"),
            (&["alloc::raw_vec::RawVec<T,A>::grow_one", "alloc::vec::Vec<T,A>::push"], "Vec"),
            (&["hashbrown::raw::RawTable<T,A>::reserve", "hashbrown::map::HashMap<K,V,S,A>::reserve"], "HashMap"),
        ] {
            assert_eq!(of(handed_on, app).as_deref(), Some(name), "{handed_on:?}");
        }
        assert_eq!((of(&["malloc"], app), of(&["std::make_unique<double []>"], app), of(&[], app)), (None, None, None));
        for odd in ["std::vector<", "std::vector<(", "std::vector<a, b", "std::vector<>>"] {
            let _ = of(&[odd], app);
        }
    }

    #[test]
    fn memory_of_run_time_systems() {
        assert_eq!(of(&[], ("libjvm.so", "ReservedHeapSpace::try_reserve_range")).as_deref(), Some("[Java heap]"));
        let stack = ["os::reserve_memory", "ReservedSpace::reserve", "CodeHeap::reserve", "G1Arguments::create"];
        let stack = stack.map(|function| frame("libjvm.so", function));
        assert_eq!(origin(&[], &stack, false), Some(Origin::Runtime("Java code cache")), "what is innermost tells");
        assert_eq!(of(&[], ("libjvm.so", "StringTable::create_table")).as_deref(), Some("[Java virtual machine]"));
        // A native method's block is its own.
        assert_eq!(origin(&[], &[frame("libuser.so", "work"), frame("libjvm.so", "CodeCache::f")], false), None);
        let numpy = [frame("_multiarray_umath.cpython-311.so", "default_malloc")];
        let python = [frame("libpython3.11.so.1.0", "object_vacall")];
        assert_eq!(origin(&numpy, &python, false), Some(Origin::Sort("numpy array".into())));
        assert_eq!(origin(&numpy, &python, true), Some(Origin::Sort("numpy temporary".into())));
        assert_eq!(of(&["_PyObject_ArenaMmap"], ("libpython3.11.so", "new_arena")).as_deref(), Some("Python objects"));
        assert_eq!(of(&[], ("app", "x_cgo_mmap")).as_deref(), Some("[Go heap]"));
    }
}
