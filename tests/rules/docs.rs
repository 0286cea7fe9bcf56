//! The documentation, checked: links lead somewhere, pages are short, and no page is without a link from the README.

use std::path::{Path, PathBuf};

/// Longest page, in words. Tables that the tool makes between `<!--` marks do not count.
const MOST_WORDS: usize = 2500;
/// Longest README.
const MOST_WORDS_README: usize = 900;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(dir).expect("docs").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(pages_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn all_pages() -> Vec<PathBuf> {
    let mut pages = pages_below(&root().join("docs"));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"];
    pages.extend(others.iter().map(|name| root().join(name)));
    pages
}

/// Targets of `[...](...)` in `text`, without those on the web.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()));
    targets.filter(|target| !target.contains("://") && !target.contains(' ') && !target.is_empty()).collect()
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn words(text: &str) -> usize {
    let mut made = false;
    let counts = |line: &&str| {
        let mark = line.starts_with("<!--");
        made = made != mark;
        !made && !mark
    };
    // Bars and dashes of tables are no words.
    text.lines().filter(counts).flat_map(str::split_whitespace).filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn links_lead_somewhere() {
    let mut lost = Vec::new();
    for page in all_pages() {
        for link in links(&read(&page)) {
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().expect("a folder").join(path) };
            let known = |text: &str| text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == fragment);
            if !target.exists() || (!fragment.is_empty() && !known(&read(&target))) {
                lost.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(lost.is_empty(), "links that lead nowhere:\n{}", lost.join("\n"));
}

#[test]
fn pages_are_short() {
    for page in pages_below(&root().join("docs")) {
        let words = words(&read(&page));
        assert!(words <= MOST_WORDS, "{} has {words} words; split it at {MOST_WORDS}", page.display());
    }
    let words = words(&read(&root().join("README.md")));
    assert!(words <= MOST_WORDS_README, "README.md has {words} words, more than {MOST_WORDS_README}");
}

#[test]
fn every_page_is_found_from_the_readme() {
    let readme = read(&root().join("README.md"));
    let known: Vec<PathBuf> = links(&readme).iter().map(|link| root().join(link.split('#').next().unwrap_or_default())).collect();
    let lost: Vec<_> = pages_below(&root().join("docs")).into_iter().filter(|page| !known.contains(page)).collect();
    assert!(lost.is_empty(), "no link in README.md leads to {lost:?}");
}

/// A fact whose test was renamed is held by nothing.
#[test]
fn tests_that_security_names_exist() {
    let text = read(&root().join("SECURITY.md"));
    let named: Vec<(&str, &str)> = text.split('`').skip(1).step_by(2).filter_map(|name| name.split_once("::")).collect();
    assert!(named.len() >= 8, "{named:?}");
    for (module, name) in named {
        let tests = read(&root().join(format!("tests/{module}.rs")));
        assert!(tests.contains(&format!("fn {name}()")), "there is no test {module}::{name}");
    }
}

#[test]
fn names_of_pages_in_code_and_messages_are_right() {
    let mut lost = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests", "include", "fortran", "python/nearfar", "examples"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for rest in text.split("docs/").skip(1) {
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '/' | '-' | '.')).collect();
                let name = name.trim_end_matches('.');
                if name.ends_with(".md") && !root().join("docs").join(name).exists() {
                    lost.push(format!("{}: docs/{name}", path.display()));
                }
            }
        }
    }
    assert!(lost.is_empty(), "pages that do not exist:\n{}", lost.join("\n"));
}

#[test]
fn the_readers_of_this_file_can_be_trusted() {
    assert_eq!(links("[a](b.md#c) [d](https://e) ![f](g.svg)"), ["b.md#c", "g.svg"]);
    assert_eq!(anchor("## How much, and `why`?"), "how-much-and-why");
    assert_eq!(words("one two | - |\n<!-- made -->\nthree\n<!-- end -->\nfour"), 3);
}
