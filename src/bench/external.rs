//! Programs that are not ours: whether what a recipe needs is here, and how it is started. They time their own work, as our workloads do,
//! so that starting them does not count. What is not installed is an obstacle with a reason. Does not judge.

use super::apps;
use super::recipe::{self, Recipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a case runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    /// nearfar-kernel.
    Kernel,
    /// A real program.
    Recipe(&'static Recipe),
}

/// Where the outside programs are, or why they are not.
#[derive(Clone, Debug)]
pub struct Outside {
    python: Result<PathBuf, String>,
    /// Modules that the interpreter has, of those that recipes live on.
    modules: Vec<String>,
}

impl Outside {
    /// Looks for them.
    pub fn find() -> Self {
        let said = |program: &str, arguments: &[&str]| -> Result<String, String> {
            let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(|error| format!("{program} cannot be started ({error})"))?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            let why = || text(&output.stderr).lines().next_back().unwrap_or("it said nothing").to_owned();
            if output.status.success() { Ok(text(&output.stdout)) } else { Err(format!("{program}: {}", why())) }
        };
        // The interpreter itself: a version manager's wrapper would be started under nearfar as well.
        let own = apps::python();
        let start = own.as_ref().and_then(|path| path.to_str()).unwrap_or("python3");
        let python = said(start, &["-c", "import sys; print(sys.executable)"]).map(PathBuf::from);
        let look = "import sys; sys.path = [p for p in sys.path if p]; import importlib.util as u; print(*[m for m in sys.argv[1:] if u.find_spec(m)])";
        let wanted: Vec<&str> = recipe::all().iter().flat_map(|recipe| recipe.modules.iter().copied()).collect();
        let modules = said(start, &[&["-c", look][..], &wanted].concat()).unwrap_or_default();
        let modules = modules.split_whitespace().map(str::to_owned).collect();
        Self { python, modules }
    }

    /// An interpreter without modules, for tests.
    #[cfg(test)]
    pub fn nowhere() -> Self {
        Self { python: Ok("python3".into()), modules: Vec::new() }
    }

    /// What `recipe` needs and is not here, with the command that installs it.
    pub fn missing(&self, recipe: &Recipe) -> Option<String> {
        if let Some(name) = apps::missing_program(recipe) {
            return Some(format!("there is no {name} ({} {})", apps::APT.join(" "), recipe.apt.join(" ")));
        }
        if let Err(why) = &self.python {
            return Some(why.clone());
        }
        let name = recipe.modules.iter().find(|&&name| !self.modules.iter().any(|other| other == name))?;
        Some(format!("python3 has no module {name} (nearfar bench apps --install)"))
    }

    /// A line for each of `recipes`: whether it can be run, and what it needs.
    pub fn list(&self, recipes: &[&Recipe]) -> String {
        let line = |recipe: &&Recipe| {
            let needs = || format!("here     {}", [&recipe.pip[..], &recipe.apt].concat().join(" "));
            let state = self.missing(recipe).map_or_else(needs, |why| format!("missing  {why}"));
            format!("{:36} {}\n", recipe.title, state.trim_end())
        };
        recipes.iter().map(line).collect()
    }

    /// The interpreter of all recipes.
    pub fn python(&self) -> Option<&Path> {
        self.python.as_deref().ok()
    }
}

impl Program {
    /// The recipe, where it is one.
    pub const fn recipe(self) -> Option<&'static Recipe> {
        match self {
            Program::Kernel => None,
            Program::Recipe(recipe) => Some(recipe),
        }
    }

    /// Variables of the environment for `threads` threads.
    pub fn environment(self, threads: usize) -> Vec<(&'static str, String)> {
        let names = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"];
        if self == Program::Kernel { Vec::new() } else { names.map(|name| (name, threads.to_string())).to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_command_that_installs_it() {
        let python = Recipe { modules: vec!["nosuch"], ..Recipe::default() };
        let why = Outside::nowhere().missing(&python).expect("missing");
        assert_eq!(why, "python3 has no module nosuch (nearfar bench apps --install)");
        let program = Recipe { programs: vec!["/bin/sh", "no-such"], apt: vec!["a", "b"], ..Recipe::default() };
        let why = Outside::nowhere().missing(&program).expect("missing");
        assert_eq!(why, "there is no no-such (apt-get install --no-install-recommends a b)");
        let here = Recipe { title: "Shell", programs: vec!["/bin/sh", "sh"], apt: vec!["dash"], ..Recipe::default() };
        assert_eq!(Outside::nowhere().missing(&here), None);
        let list = Outside::nowhere().list(&[&here, &python]);
        let words: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((&words[0][..], &words[1][..3]), (&["Shell", "here", "dash"][..], &["missing", "python3", "has"][..]));
    }
}
