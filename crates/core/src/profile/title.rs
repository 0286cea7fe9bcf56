//! What people call a group of objects: the line of the program that asked for the memory, not the library in between.

use super::record::{Kind, ScriptFrame};
use super::summary::NamedFrame;

/// Functions that hand out memory for others, by the beginning of their names.
const ALLOCATORS: [&str; 39] = [
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
    "__gnu_cxx::",
    "void* std::",
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
    "<alloc::",
    "__rust_",
    "__rdl_",
    "__rg_",
    "hashbrown::",
    "core::",
    "<core::",
];
/// Libraries that hand out memory for others, by the beginning of their names.
const LIBRARIES: [&str; 12] = [
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

/// Whether a frame only passes on what another asked for.
fn passes_on(frame: &NamedFrame) -> bool {
    LIBRARIES.iter().any(|name| frame.module.starts_with(name)) || ALLOCATORS.iter().any(|name| frame.function.starts_with(name))
}

/// The frames that only pass on, and those from the one that asked for the memory on; all, if all pass it on.
pub fn split_at_asker(mut frames: Vec<NamedFrame>) -> (Vec<NamedFrame>, Vec<NamedFrame>) {
    let asks = |frame: &NamedFrame| !(passes_on(frame) || frame.function.is_empty() && frame.module.is_empty());
    let rest = frames.split_off(frames.iter().position(asks).unwrap_or(0));
    (frames, rest)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function without its parameters, which may be longer than a page.
fn short(function: &str) -> String {
    let end = function.find(['(', '<']).filter(|&end| end > 0).unwrap_or(function.len());
    let name: String = function[..end].chars().take(60).collect();
    if name.is_empty() { "?".to_owned() } else { name.trim_end().to_owned() }
}

/// A name, not yet unique. `frames` are those of [`split_at_asker`].
pub fn title(kind: Kind, symbol: &str, script: &[ScriptFrame], frames: &[NamedFrame]) -> String {
    match kind {
        Kind::Static if !symbol.is_empty() => return symbol.to_owned(),
        Kind::MainStack => return "stack of the first thread".to_owned(),
        Kind::ThreadStack if frames.is_empty() => return "stacks of threads".to_owned(),
        Kind::SmallBlocks => return "small blocks".to_owned(),
        _ => {}
    }
    if let Some(frame) =
        script.iter().find(|frame| !frame.file.starts_with('<') && !frame.file.contains("/numpy/")).or(script.first())
    {
        return format!("{}:{} ({})", file_name(&frame.file), frame.line, frame.function);
    }
    let named = frames.iter().find(|frame| !frame.line.is_empty() && !passes_on(frame));
    if let Some(frame) = named {
        return format!("{} ({})", short(&frame.function), file_name(&frame.line));
    }
    match frames.first() {
        Some(frame) if frame.function.is_empty() && frame.module.is_empty() => format!("code at {:#x}", frame.offset),
        Some(frame) => {
            let function = if frame.function.is_empty() { "?".to_owned() } else { short(&frame.function) };
            format!("{function}+{:#x} ({})", frame.offset, frame.module)
        }
        None if kind == Kind::Map => "mappings".to_owned(),
        None => "objects of unknown origin".to_owned(),
    }
}

/// Makes names unique, the first of equals keeping its own.
pub fn distinguish<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut taken = std::collections::HashSet::new();
    for name in names {
        let mut number = 2;
        let mut own = name.clone();
        while !taken.insert(own.clone()) {
            own = format!("{name} #{number}");
            number += 1;
        }
        *name = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, function: &str, line: &str) -> NamedFrame {
        NamedFrame { module: module.into(), function: function.into(), line: line.into(), offset: 0x10, ..NamedFrame::default() }
    }

    #[test]
    fn the_line_that_asked_is_the_name() {
        let frames = vec![
            frame("libc.so.6", "malloc", ""),
            frame("app", "std::vector<double>::resize(unsigned long)", "stl_vector.h:10"),
            frame("app", "solve(double*, int)", "/src/wave.cpp:12"),
        ];
        let (handed_on, frames) = split_at_asker(frames);
        assert!(!handed_on.is_empty());
        assert_eq!(title(Kind::Heap, "", &[], &frames), "solve (wave.cpp:12)");
        assert_eq!(title(Kind::Heap, "", &[], &split_at_asker(vec![frame("app", "work", "")]).1), "work+0x10 (app)");
        let script = ScriptFrame { file: "/home/u/job.py".into(), function: "main".into(), line: 7 };
        assert_eq!(title(Kind::Heap, "", &[script], &frames), "job.py:7 (main)");
        assert_eq!(title(Kind::Static, "table_", &[], &[]), "table_");
        assert_eq!(title(Kind::Heap, "", &[], &[]), "objects of unknown origin");
        assert_eq!(split_at_asker(vec![frame("libc.so.6", "malloc", "")]).1.len(), 1);
    }

    #[test]
    fn equal_names_are_told_apart() {
        let mut names = ["a", "a", "a #2", "b"].map(String::from);
        distinguish(names.iter_mut());
        assert_eq!(names, ["a", "a #2", "a #2 #2", "b"]);
    }
}
