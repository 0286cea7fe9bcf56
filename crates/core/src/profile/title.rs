//! What people call a group of objects: the line of the program that asked for the memory, not the library in between.

use super::origin::{self, Origin, passes_on};
use super::record::{Kind, ScriptFrame};
use super::summary::NamedFrame;

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

/// What is known of a group when it is named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// What sort of memory.
    pub kind: Kind,
    /// The symbol of an array, as people say it.
    pub symbol: &'a str,
    /// The library that defines the array; empty: the program does.
    pub library: &'a str,
    /// Lines of a script, innermost first.
    pub script: &'a [ScriptFrame],
    /// Frames that hand on, and the others: see [`split_at_asker`].
    pub handed_on: &'a [NamedFrame],
    /// Frames from the one that asked on.
    pub frames: &'a [NamedFrame],
    /// There were many, each for a short time.
    pub brief: bool,
}

/// A name, not yet unique.
pub fn title(known: &Known<'_>) -> String {
    let Known { kind, symbol, library, script, handed_on, frames, brief } = *known;
    match kind {
        Kind::Static if !symbol.is_empty() && library.is_empty() => return symbol.to_owned(),
        Kind::Static if !symbol.is_empty() => return format!("{symbol} ({library})"),
        Kind::ThreadLocal if library.is_empty() => return format!("{symbol} (thread-local)"),
        Kind::ThreadLocal => return format!("{symbol} (thread-local, {library})"),
        Kind::MainStack => return "stack of the first thread".to_owned(),
        Kind::ThreadStack if frames.is_empty() => return "stacks of threads".to_owned(),
        Kind::SmallBlocks => return "small blocks".to_owned(),
        _ => {}
    }
    let sort = match origin::origin(handed_on, frames, brief) {
        Some(Origin::Runtime(name)) => return name.to_owned(),
        Some(Origin::Sort(sort)) => sort,
        None => String::new(),
    };
    let own = script.iter().find(|frame| !frame.file.starts_with('<') && !frame.file.contains("/numpy/"));
    // While a module is imported, only the interpreter's own lines are known: the library that asks tells more.
    let asks_itself = |frame: &NamedFrame| !frame.function.is_empty() && !is_python(&frame.module);
    let first = || script.first().filter(|line| !line.file.starts_with("<frozen") || !frames.first().is_some_and(asks_itself));
    if let Some(frame) = own.or_else(first) {
        let line = format!("{}:{} ({})", file_name(&frame.file), frame.line, frame.function);
        return if sort.is_empty() { line } else { format!("{sort}, {line}") };
    }
    let line = asker(kind, frames);
    if sort.is_empty() { line } else { format!("{sort} in {line}") }
}

fn is_python(module: &str) -> bool {
    module.starts_with("libpython3") || module.starts_with("python3")
}

/// Function and line that asked for memory.
fn asker(kind: Kind, frames: &[NamedFrame]) -> String {
    let named = frames.iter().find(|frame| !frame.line.is_empty() && !passes_on(frame));
    if let Some(frame) = named {
        return format!("{} ({})", short(&frame.function), file_name(&frame.line));
    }
    match frames.first() {
        Some(frame) if frame.function.is_empty() && frame.module.is_empty() => format!("code at {:#x}", frame.offset),
        // Without symbols the function is told by its place already.
        Some(frame) if frame.function.starts_with(&format!("{}+0x", frame.module)) => frame.function.clone(),
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
            frame("app", "std::vector<double>::resize", "stl_vector.h:10"),
            frame("app", "solve(double*, int)", "/src/wave.cpp:12"),
        ];
        let (handed_on, frames) = split_at_asker(frames);
        assert_eq!(handed_on.len(), 2);
        let known = Known { handed_on: &handed_on, frames: &frames, ..Known::default() };
        assert_eq!(title(&known), "std::vector<double> in solve (wave.cpp:12)");
        assert_eq!(title(&Known { handed_on: &[], ..known }), "solve (wave.cpp:12)");
        let line = |file: &str, function: &str, line| ScriptFrame { file: file.into(), function: function.into(), line };
        let script = [line("<frozen importlib>", "load", 241), line("/home/u/job.py", "main", 7)];
        assert_eq!(title(&Known { script: &script, handed_on: &[], ..known }), "job.py:7 (main)");
        // The interpreter's own lines tell less than the library, but more than the interpreter's code.
        let frozen = &script[..1];
        assert_eq!(title(&Known { script: frozen, handed_on: &[], ..known }), "solve (wave.cpp:12)");
        let python = [frame("libpython3.11.so", "new_keys", "")];
        assert_eq!(title(&Known { script: frozen, frames: &python, ..Known::default() }), "<frozen importlib>:241 (load)");
        let numpy = [frame("_multiarray_umath.so", "default_malloc", "")];
        let of_numpy = Known { script: &script, handed_on: &numpy, frames: &python, ..Known::default() };
        assert_eq!(title(&of_numpy), "numpy array, job.py:7 (main)");
        assert_eq!(title(&Known { brief: true, ..of_numpy }), "numpy temporary, job.py:7 (main)");
        let of = |frames: Vec<NamedFrame>| title(&Known { frames: &split_at_asker(frames).1, ..Known::default() });
        assert_eq!(of(vec![frame("app", "work", "")]), "work+0x10 (app)");
        assert_eq!(of(vec![frame("app", "app+0x10", "")]), "app+0x10");
        assert_eq!(of(Vec::new()), "objects of unknown origin");
        assert_eq!(split_at_asker(vec![frame("libc.so.6", "malloc", "")]).1.len(), 1);
    }

    #[test]
    fn arrays_by_their_symbols() {
        let of = |kind, library| title(&Known { kind, symbol: "table", library, ..Known::default() });
        assert_eq!((of(Kind::Static, ""), of(Kind::Static, "liba.so")), ("table".into(), "table (liba.so)".into()));
        assert_eq!(of(Kind::ThreadLocal, ""), "table (thread-local)");
        assert_eq!(of(Kind::ThreadLocal, "liba.so"), "table (thread-local, liba.so)");
    }

    #[test]
    fn equal_names_are_told_apart() {
        let mut names = ["a", "a", "a #2", "b"].map(String::from);
        distinguish(names.iter_mut());
        assert_eq!(names, ["a", "a #2", "a #2 #2", "b"]);
    }
}
