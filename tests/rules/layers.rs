//! The order of crates and modules, checked: nothing uses upward. Put it here if it can be seen from the text of the tree alone.

use std::path::{Path, PathBuf};

/// Layers, lowest first: a crate may depend on crates of lower layers only. `nearfar` is the command, in the root.
const LAYERS: &[&[&str]] = &[
    &["core"],
    &["sys"],
    &["tiers", "profile", "kernels"],
    &["kinds", "host"],
    &["preload", "memkind", "autohbw", "memtier", "nearfar"],
];

/// Crates that promise to hold no unsafe code.
const SAFE: &[&str] = &["core", "host", "nearfar"];

/// Longest file, in lines, tests included. Longer ones hold two nouns.
const MAX_LINES: usize = 500;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn dir_of(name: &str) -> PathBuf {
    if name == "nearfar" { root().to_owned() } else { root().join("crates").join(name) }
}

/// The crates of the tree, with their layer.
fn crates() -> Vec<(&'static str, usize)> {
    let all = LAYERS.iter().enumerate().flat_map(|(layer, names)| names.iter().map(move |&name| (name, layer)));
    all.filter(|(name, _)| dir_of(name).join("Cargo.toml").exists()).collect()
}

/// Names in `[dependencies]` and `[target...dependencies]` of a manifest; those for tests and builds do not count.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section == "dependencies" || (section.starts_with("target.") && section.ends_with(".dependencies"));
            names.extend(section.strip_prefix("dependencies.").map(str::to_owned));
        } else if inside && !line.starts_with('#') && line.contains('=') {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            names.push(line[..end].to_owned());
        }
    }
    names
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file under `dir`, ordered.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    // `mod tests;` names a file of tests and ends nothing.
    let inline = |at: &usize| text[*at..].lines().find(|line| line.contains("mod ")).is_some_and(|line| line.contains('{'));
    let marks = text.match_indices("#[cfg(test)]\nmod ").chain(text.match_indices("#[cfg(all(test"));
    let end = marks.map(|(at, _)| at).filter(inline).min().unwrap_or(text.len());
    // A name that is a word of the language lies in a file without the mark.
    text[..end].lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n").replace("r#", "")
}

/// The first names after each `crate::`, those in braces included.
fn uses(code: &str) -> Vec<String> {
    let name_of = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (at, mark) in code.match_indices("crate::") {
        // Not the end of a longer word such as `my_crate::`, and not `$crate::`, whose place is where the macro is used.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + mark.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(name_of(rest));
            continue;
        };
        let mut depth = 1;
        let mut start = true;
        for (index, c) in group.char_indices() {
            if start && depth == 1 && !c.is_whitespace() {
                names.push(name_of(&group[index..]));
                start = false;
            }
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => start = true,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Modules that a crate root declares, in order, without those for tests.
fn modules(root_code: &str) -> Vec<String> {
    let declared = |line: &str| {
        let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
    };
    let lines: Vec<&str> = root_code.lines().collect();
    let for_tests = |at: usize| at > 0 && lines[at - 1].contains("cfg(test)");
    lines.iter().enumerate().filter(|(at, _)| !for_tests(*at)).filter_map(|(_, line)| declared(line)).collect()
}

fn crate_root(name: &str) -> PathBuf {
    let src = dir_of(name).join("src");
    [src.join("lib.rs"), src.join("main.rs")].into_iter().find(|path| path.exists()).expect("a crate root")
}

#[test]
fn crates_use_lower_layers_only() {
    for (name, layer) in crates() {
        let manifest = read(&dir_of(name).join("Cargo.toml"));
        for dependency in dependencies(&manifest) {
            let Some(ours) = dependency.strip_prefix("nearfar-") else { continue };
            let below = LAYERS.iter().take(layer).any(|names| names.contains(&ours));
            assert!(below, "{name} must not depend on {ours}: the order is {LAYERS:?}");
        }
    }
}

#[test]
fn every_crate_has_a_layer() {
    let entries = std::fs::read_dir(root().join("crates")).expect("crates/");
    for entry in entries.flatten().filter(|entry| entry.path().join("Cargo.toml").exists()) {
        let name = entry.file_name().into_string().expect("UTF-8");
        assert!(LAYERS.concat().contains(&name.as_str()), "{name} has no place in the order; add it to tests/rules/layers.rs");
    }
}

#[test]
fn core_is_pure() {
    let manifest = read(&dir_of("core").join("Cargo.toml"));
    for impure in ["libc", "rustix", "io-uring"] {
        assert!(!dependencies(&manifest).iter().any(|name| name == impure), "core must not depend on {impure}");
    }
    for path in sources(&dir_of("core").join("src")) {
        let code = code(&read(&path));
        for word in ["std::fs", "std::thread", "std::env", "std::net", "std::process"] {
            assert!(!code.contains(word), "{} must not use {word}", path.display());
        }
    }
}

#[test]
fn promises_of_safety_are_kept_by_the_compiler() {
    for &name in SAFE {
        let path = crate_root(name);
        assert!(read(&path).contains("#![forbid(unsafe_code)]"), "{} must forbid unsafe code", path.display());
    }
}

#[test]
fn modules_use_modules_above_them() {
    for (name, _) in crates() {
        let root_file = crate_root(name);
        let order = modules(&code(&read(&root_file)));
        let src = root_file.parent().expect("src/");
        for (place, module) in order.iter().enumerate() {
            let file = src.join(format!("{module}.rs"));
            let mut files = sources(&src.join(module));
            files.extend(file.exists().then_some(file));
            assert!(!files.is_empty(), "{name}: module {module} has no file");
            for path in files {
                let text = code(&read(&path));
                // From the module's own file `super` is the crate root; from files below it lies further up.
                let below = path.strip_prefix(src.join(module)).map_or(0, |rest| rest.components().count());
                let depth = if path.ends_with("mod.rs") { below.saturating_sub(1) } else { below };
                for used in uses(&text).into_iter().chain(supers_used(&text, depth)) {
                    let upward = order.iter().position(|other| *other == used).is_some_and(|index| index > place);
                    assert!(
                        !upward,
                        "{}: uses {used}, which is listed below {module} in {}",
                        path.display(),
                        root_file.display()
                    );
                }
            }
        }
    }
}

/// The first names after exactly `depth` + 1 times `super::`.
fn supers_used(code: &str, depth: usize) -> Vec<String> {
    let mut text = code.replace("crate::", "elsewhere::");
    // The longest chains first, so that none is taken for a part of another.
    for length in (1..=8).rev() {
        let to = if length == depth + 1 { "crate::" } else { "above::" };
        text = text.replace(&"super::".repeat(length), to);
    }
    uses(&text)
}

/// Names of siblings that a file uses which lies `depth` folders below them; `room` is the path of their folder from the crate root.
fn siblings_used(code: &str, depth: usize, room: &str) -> Vec<String> {
    // `crate::ROOM::NAME` becomes `crate::NAME`, which `uses` reads.
    let own = code.replace("crate::", "elsewhere::").replace(&format!("elsewhere::{room}::"), "crate::");
    let mut names = uses(&own);
    names.extend(supers_used(code, depth));
    names
}

/// Modules of one folder that use each other in a circle, each circle once by its first module.
fn circles(folder: &Path, room: &str) -> Vec<String> {
    let owner = [folder.join("mod.rs"), folder.with_extension("rs")].into_iter().find(|path| path.exists());
    let Some(owner) = owner else { return Vec::new() };
    let names = modules(&code(&read(&owner)));
    let mut edges: Vec<(String, String)> = Vec::new();
    for name in &names {
        let own = folder.join(format!("{name}.rs"));
        let below = folder.join(name);
        for path in sources(&below).into_iter().chain(own.exists().then_some(own.clone())) {
            let inside = path.strip_prefix(&below).map_or(0, |rest| rest.components().count());
            let depth = if path.ends_with("mod.rs") { inside.saturating_sub(1) } else { inside };
            let used = siblings_used(&code(&read(&path)), depth, room);
            edges.extend(used.into_iter().filter(|used| used != name && names.contains(used)).map(|used| (name.clone(), used)));
        }
    }
    let reaches_itself = |start: &String| {
        let (mut seen, mut next) = (Vec::new(), vec![start.clone()]);
        while let Some(from) = next.pop() {
            for (_, to) in edges.iter().filter(|(name, _)| *name == from) {
                if to == start {
                    return true;
                }
                if !seen.contains(to) {
                    seen.push(to.clone());
                    next.push(to.clone());
                }
            }
        }
        false
    };
    names.iter().filter(|name| reaches_itself(name)).map(|name| folder.join(name).display().to_string()).collect()
}

/// The folders below `dir`, with their paths as modules.
fn rooms(dir: &Path, path: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(dir) else { return found };
    for folder in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        let path = if path.is_empty() { name } else { format!("{path}::{name}") };
        found.push((folder.clone(), path.clone()));
        found.extend(rooms(&folder, &path));
    }
    found
}

#[test]
fn no_circles_inside_a_folder() {
    let mut found = Vec::new();
    for (name, _) in crates() {
        for (folder, room) in rooms(&dir_of(name).join("src"), "") {
            found.extend(circles(&folder, &room));
        }
    }
    assert!(found.is_empty(), "these modules use each other in a circle:\n{}", found.join("\n"));
}

/// Sub-commands, as the table of options has them.
fn sub_commands() -> Vec<String> {
    let table = read(&root().join("src/cli/mod.rs"));
    modules(&code(&table))
}

#[test]
fn only_ui_draws() {
    for path in sources(&root().join("src")).iter().filter(|path| !path.starts_with(root().join("src/ui"))) {
        let code = code(&read(path));
        for word in ["comfy_table", "indicatif", "crossterm", "<svg", "<table", "<h2", "<nav"] {
            assert!(!code.contains(word), "{} must leave {word} to src/ui", path.display());
        }
    }
}

#[test]
fn a_sub_command_has_its_folder_and_its_options() {
    let src = root().join("src");
    for name in sub_commands() {
        assert!(src.join(&name).join("mod.rs").exists(), "nearfar {name}: src/{name}/ is missing");
    }
    let loose = ["main.rs", "exit.rs", "machine.rs", "sample.rs", "memkind_tools.rs"];
    for path in std::fs::read_dir(&src).expect("src/").flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        assert!(
            loose.contains(&name),
            "src/{name} belongs into the folder of a sub-command, or into one of those that they share"
        );
    }
    let known = ["cli", "files", "ui", "launch"];
    for (folder, room) in rooms(&src, "").into_iter().filter(|(_, room)| !room.contains("::")) {
        let expected = known.contains(&room.as_str()) || sub_commands().contains(&room);
        assert!(expected, "{} is neither a sub-command nor one of {known:?}", folder.display());
    }
}

#[test]
fn files_are_one_noun_long_and_say_what_they_own() {
    let mut late = Vec::new();
    for (name, _) in crates() {
        for path in sources(&dir_of(name).join("src")) {
            let text = read(&path);
            let lines = text.lines().count();
            if lines > MAX_LINES {
                late.push(format!("{} has {lines} lines; split it by noun at {MAX_LINES}", path.display()));
            }
            if !text.starts_with("//!") {
                late.push(format!("{} does not open with //!", path.display()));
            }
        }
    }
    assert!(late.is_empty(), "{}", late.join("\n"));
}

#[test]
fn the_readers_of_this_file_can_be_trusted() {
    assert_eq!(uses("use crate::{a::{b, c}, d};\nlet x = crate::e::f(mycrate::g);"), ["a", "d", "e"]);
    assert_eq!(uses("use crate::{\n    a,\n    b::c,\n};"), ["a", "b"]);
    let text = "use super::a;\nuse super::super::b;\nuse crate::x::y::c::D;\nuse crate::other::e;";
    assert_eq!(siblings_used(text, 0, "x::y"), ["c", "a"]);
    assert_eq!(siblings_used(text, 1, "x::y"), ["c", "b"]);
    assert_eq!(modules("mod a;\npub mod b;\npub(crate) mod c;\nmod d { }\nuse x;"), ["a", "b", "c"]);
    assert_eq!(code("#[cfg(test)]\nmod tests;\nuse crate::d;"), "#[cfg(test)]\nmod tests;\nuse crate::d;");
    assert_eq!(code("a // crate::b\n#[cfg(test)]\nmod tests { crate::c }"), "a ");
    let manifest =
        "[dependencies]\na = \"1\"\nb.workspace = true\n[dev-dependencies]\nc = \"1\"\n[target.'cfg(x)'.dependencies]\nd = \"1\"";
    assert_eq!(dependencies(manifest), ["a", "b", "d"]);
}
