//! Recipes: the real programs that `bench apps`, `grain` and `fits` run. Each is one file in `recipes/`, in Python: a header of comments,
//! as `# key: value`, that says what it needs and what is wanted of it, and a text that makes its input, does, times and checks its work,
//! and prints the report of our own workloads. A program that is not Python is started by it.
//!
//! Pure: does not look for anything, and starts nothing.

use std::ffi::OsString;
use std::sync::LazyLock;

/// What the text of each begins with.
const PRELUDE: &str = include_str!("prelude.py");
/// Names and texts of all files; `build.rs` makes the list.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

/// A real program, and how it is tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipe {
    /// Its file, without the ending.
    pub name: &'static str,
    /// `title`: for people.
    pub title: &'static str,
    /// `counts`: what an operation is, in the plural.
    pub counts: &'static str,
    /// `pip`: packages of PyPI with their versions.
    pub pip: Vec<&'static str>,
    /// `apt`: packages of Debian.
    pub apt: Vec<&'static str>,
    /// `program`: what must be on the PATH, or a file with its path.
    pub programs: Vec<&'static str>,
    /// `module`: what the interpreter must have.
    pub modules: Vec<&'static str>,
    /// `wanted`: share of all-DRAM with near for a third of the data.
    pub wanted: f64,
    /// `published`: what others reached.
    pub published: Option<&'static str>,
    /// The whole file.
    pub text: &'static str,
}

/// All of them, those first of which the least is wanted. (A test reads every file: none is left out.)
pub fn all() -> &'static [Recipe] {
    static ALL: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
        let mut all: Vec<Recipe> = FILES.iter().filter_map(|(name, text)| Recipe::parse(name, text).ok()).collect();
        all.sort_by(|a, b| a.wanted.total_cmp(&b.wanted).then(a.title.cmp(b.title)));
        all
    });
    &ALL
}

/// The recipe in the file of this name.
///
/// # Panics
/// There is none: a mistake in our tables, which tests make.
pub fn named(name: &str) -> &'static Recipe {
    all().iter().find(|recipe| recipe.name == name).unwrap_or_else(|| panic!("no recipe {name}"))
}

impl Recipe {
    /// Reads a file.
    fn parse(name: &'static str, text: &'static str) -> Result<Self, String> {
        let mut recipe = Self { name, text, ..Self::default() };
        for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
            let (key, value) = line.split_once(": ").ok_or_else(|| format!("{name}: not \"# key: value\": {line}"))?;
            match key {
                "title" => recipe.title = value,
                "counts" => recipe.counts = value,
                "pip" => recipe.pip.push(value),
                "apt" => recipe.apt.push(value),
                "program" => recipe.programs.push(value),
                "module" => recipe.modules.push(value),
                "wanted" => recipe.wanted = value.parse().map_err(|_| format!("{name}: not a share: {value}"))?,
                "published" => recipe.published = Some(value),
                _ => return Err(format!("{name}: no such key: {key}")),
            }
        }
        if !(0.0..=1.0).contains(&recipe.wanted) {
            return Err(format!("{name}: not a share from 0 to 1: {}", recipe.wanted));
        }
        let missing =
            [("title", recipe.title.is_empty()), ("counts", recipe.counts.is_empty()), ("wanted", recipe.wanted == 0.0)];
        match missing.into_iter().find(|(_, is_missing)| *is_missing) {
            Some((key, _)) => Err(format!("{name}: no {key}")),
            None => Ok(recipe),
        }
    }

    /// Arguments of the interpreter. A repetition that takes longer than `seconds` is the last.
    pub fn arguments(&self, data_bytes: u64, repetitions: usize, seconds: Option<f64>) -> Vec<OsString> {
        let numbers = [data_bytes.to_string(), repetitions.to_string(), seconds.unwrap_or(0.0).to_string()];
        ["-c".to_owned(), format!("{PRELUDE}{}", self.text)].into_iter().chain(numbers).map(OsString::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_its_packages_have_one_version_each() {
        let mut pins: Vec<&str> = Vec::new();
        for (name, text) in FILES {
            let recipe = Recipe::parse(name, text).expect("a recipe");
            assert!(!recipe.programs.is_empty() | !recipe.modules.is_empty(), "{name}");
            assert!(recipe.apt.is_empty() == recipe.programs.is_empty(), "{name}: what is missing must have a package");
            assert!(text.contains("\nrun(work, "), "{name}");
            pins.extend(&recipe.pip);
        }
        let titles: std::collections::BTreeSet<&str> = all().iter().map(|recipe| recipe.title).collect();
        assert_eq!(titles.len(), FILES.len(), "titles tell cases apart");
        assert!(all().len() == FILES.len() && FILES.len() >= 15, "{}", FILES.len());
        pins.sort_unstable();
        pins.dedup();
        let names: Vec<&str> = pins.iter().map(|pin| pin.split_once("==").expect("a version").0).collect();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{pins:?}");
    }

    #[test]
    fn headers_are_read_to_their_end_and_what_is_wrong_is_refused() {
        let text = "# title: A: b\n# counts: rows\n# pip: a==1\n# pip: b==2\n# wanted: 0.5\n\n# Not a header.\n";
        let recipe = Recipe::parse("a", text).expect("a recipe");
        assert_eq!((recipe.title, recipe.wanted, recipe.published), ("A: b", 0.5, None));
        assert_eq!(recipe.pip, ["a==1", "b==2"]);
        for (text, why) in [
            ("# title: A\n# colour: red\n", "a: no such key: colour"),
            ("# title: A\n# wanted: much\n", "a: not a share: much"),
            ("# title: A\n# wanted: 0.5\n", "a: no counts"),
            ("# wanted: 7\n", "a: not a share from 0 to 1: 7"),
            ("# Hello\n", "a: not \"# key: value\": Hello"),
        ] {
            assert_eq!(Recipe::parse("a", text), Err(why.to_owned()));
        }
    }
}
