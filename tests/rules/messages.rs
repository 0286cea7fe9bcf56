//! Every text that a user can get, read from the source: no synonym of a word in ARCHITECTURE.md's glossary, and none of the turns of
//! phrase that read as a puzzle. `make messages` prints them all, for a person to read in one go.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Shorter texts are names, keys and parts.
const FEWEST_WORDS: usize = 4;

/// What was found in messages once, and what stands there now.
const PUZZLES: &[(&str, &str)] = &[
    ("is not to be had", "there is none; this kernel does not have it"),
    ("is not to be known", "cannot be known"),
    ("makes no sense", "say what is accepted"),
    ("told of", "reported"),
    ("in sum", "in total"),
    ("may not be executed", "cannot be executed"),
    ("failed to", "cannot"),
    ("invalid argument", "say which, and what is accepted"),
];

struct Text {
    file: String,
    line: usize,
    text: String,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(dir).expect("directory").flatten().map(|entry| entry.path()) {
        match path.file_name().and_then(|name| name.to_str()) {
            // memkind's and the kernel's own words, and tests.
            Some("tests" | "examples" | "tests.rs" | "errno_text.rs" | "code.rs") => {}
            _ if path.is_dir() => sources(&path, found),
            Some(name) if name.ends_with(".rs") => found.push(path),
            _ => {}
        }
    }
}

/// Adds the string literals of `tokens`, and the files of modules that only tests have.
fn literals(tokens: TokenStream, help: bool, file: &Path, texts: &mut Vec<Text>, only_tests: &mut BTreeSet<PathBuf>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                // Inner attributes have an exclamation mark.
                at += usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Punct(mark)) if mark.as_char() == '!'));
                if let Some(TokenTree::Group(attribute)) = tokens.get(at + 1)
                    && attribute.delimiter() == Delimiter::Bracket
                {
                    let words: String = attribute.stream().to_string().split_whitespace().collect();
                    if words == "cfg(test)" {
                        let end = |token: &TokenTree| match token {
                            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                            TokenTree::Punct(mark) => mark.as_char() == ';',
                            _ => false,
                        };
                        let item: Vec<&TokenTree> = tokens[at + 2..].iter().take_while(|token| !end(token)).collect();
                        if let [.., TokenTree::Ident(module), TokenTree::Ident(name)] = item.as_slice()
                            && module == "mod"
                        {
                            let beside = file.parent().expect("in a directory");
                            only_tests.insert(beside.join(format!("{name}.rs")));
                            only_tests.insert(file.with_extension("").join(format!("{name}.rs")));
                        }
                        at += 3 + item.len();
                        continue;
                    }
                    // Doc comments are help where the options are declared, and comments elsewhere.
                    if help || !words.starts_with("doc=") {
                        literals(attribute.stream(), help, file, texts, only_tests);
                    }
                    at += 1;
                }
            }
            TokenTree::Group(group) => literals(group.stream(), help, file, texts, only_tests),
            TokenTree::Literal(literal) => {
                if let Ok(string) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    let file = file.strip_prefix(root()).expect("of this tree").display().to_string();
                    texts.push(Text { file, line: literal.span().start().line, text: string.value() });
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// All texts, with the files that only tests have left out.
fn texts() -> Vec<Text> {
    let mut files = Vec::new();
    for dir in ["src", "crates"] {
        sources(&root().join(dir), &mut files);
    }
    files.sort();
    let (mut texts, mut only_tests) = (Vec::new(), BTreeSet::new());
    for file in &files {
        let source = std::fs::read_to_string(file).expect("source");
        let tokens: TokenStream = source.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        literals(tokens, file.starts_with(root().join("src/cli")), file, &mut texts, &mut only_tests);
    }
    let of_tests = |text: &Text| only_tests.contains(&root().join(&text.file));
    texts.retain(|text| !of_tests(text) && words(&text.text) >= FEWEST_WORDS);
    texts
}

fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_lowercase()).count() >= 2;
    text.split_whitespace().filter(is_word).count()
}

/// (a word not to be used, the one instead), from the table in ARCHITECTURE.md.
fn synonyms() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, rest) = page.split_once("| Word | What it is | Not |").expect("the glossary");
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<String>>();
    let pairs = |row: Vec<String>| {
        let not: Vec<String> = row[3].split(", ").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        not.into_iter().map(move |not| (not, row[1].clone()))
    };
    rows.map(cells).flat_map(pairs).collect()
}

/// True when `text` has `word` as a word of its own, or its plural.
fn has(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-' && c != '/');
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        edge(text[..at].chars().next_back()) && edge(after.strip_prefix('s').unwrap_or(after).chars().next())
    })
}

#[test]
fn one_word_for_each_idea() {
    let all = texts();
    if std::env::var_os("NEARFAR_LIST").is_some() {
        all.iter().for_each(|text| println!("{}:{}: {}", text.file, text.line, text.text));
        println!("{} texts", all.len());
    }
    assert!(all.len() > 1000, "only {} texts were found", all.len());
    let mut not: Vec<(String, String)> = synonyms();
    assert!(not.len() > 10, "the glossary is read: {not:?}");
    not.extend(PUZZLES.iter().map(|&(word, instead)| (word.to_owned(), instead.to_owned())));
    let mut wrong = Vec::new();
    for text in &all {
        for (word, instead) in not.iter().filter(|(word, _)| has(&text.text, word)) {
            wrong.push(format!("{}:{}: \"{word}\" (rather: {instead}) in: {}", text.file, text.line, text.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pages_use_the_words_of_the_glossary() {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut dirs = vec![root().join("docs")];
    while let Some(dir) = dirs.pop() {
        for path in std::fs::read_dir(&dir).expect("docs").flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.ends_with("man") {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let mut wrong = Vec::new();
    for page in &pages {
        let text = std::fs::read_to_string(page).expect("page");
        for (at, line) in text.lines().enumerate() {
            for (word, instead) in synonyms().iter().filter(|(word, _)| has(line, word)) {
                wrong.push(format!("{}:{}: \"{word}\" (rather: {instead}): {line}", page.display(), at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
