//! The file that `--place plan:FILE` names: read, checked and compiled before anything starts, then given to programs as a memfd.

use crate::exit::refuse;
use crate::run::plan_fit;
use anyhow::Context;
use nearfar_core::placement::plan::Plan;
use nearfar_core::placement::table;
use nearfar_sys::shared::Shared;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Larger files are no plans: the largest that can be used has some 20 MB.
const MOST_BYTES: u64 = 64 << 20;

/// A plan that can be used.
#[derive(Clone, Debug)]
pub struct PlanFile {
    table: Vec<u8>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

impl PlanFile {
    /// Reads the plan at `path`, for `program` as far as that is known. With `force` also one that says nothing of this program.
    ///
    /// # Errors
    /// A refusal that says what is wrong, with the line where there is one.
    pub fn read(path: &Path, program: Option<&Path>, force: bool) -> anyhow::Result<Self> {
        let shown = path.display();
        let cannot = |why: &dyn std::fmt::Display| refuse(format_args!("--place plan:{shown} cannot be used: {why}"));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| cannot(&error))?;
        file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| cannot(&error))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(cannot(&"it is too large to be a plan"));
        }
        Self::parse(&text, program, force).map(|plan| plan.named(path)).map_err(|why| cannot(&why.trim_end()))
    }

    fn parse(text: &str, program: Option<&Path>, force: bool) -> Result<Self, String> {
        // Before anything else, so that another file is not told about fields that it lacks.
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        if !table.contains_key("nearfar_plan") {
            return Err("it lacks \"nearfar_plan = 1\" at its top".to_owned());
        }
        let mut plan: Plan = toml::from_str(text).map_err(|error| error.to_string())?;
        plan.check().map_err(|error| error.to_string())?;
        let mut notes = match plan.unknown().as_slice() {
            [] => Vec::new(),
            names => vec![format!("these fields are not known and were ignored: {}", names.join(", "))],
        };
        let fitted = plan_fit::fit(&mut plan, program);
        if fitted.hopeless && !force {
            return Err(format!("{}; --force runs it anyway", fitted.why()));
        }
        notes.extend(fitted.notes);
        let table = table::compile(&plan).map_err(|error| error.to_string())?;
        Ok(Self { table, notes })
    }

    fn named(mut self, path: &Path) -> Self {
        self.notes.iter_mut().for_each(|note| *note = format!("plan {}: {note}", path.display()));
        self
    }

    /// The compiled plan as a file without a name; programs read it while the descriptor is open.
    pub fn publish(&self) -> anyhow::Result<OwnedFd> {
        let (_, fd) = Shared::create(c"nearfar-plan", self.table.len()).context("the compiled plan cannot be stored")?;
        let file = fd.try_clone().context("the compiled plan cannot be stored")?;
        std::fs::File::from(file).write_all(&self.table).context("the compiled plan cannot be stored")?;
        Ok(fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_plan_reaches_programs() {
        let text =
            "nearfar_plan = 1\n[[place]]\ntier = \"near\"\nleast = \"1M\"\n[[place.frame]]\nmodule = \"a\"\noffset = 0x1234\n";
        let plan = PlanFile::parse(text, None, false).expect("a plan");
        let fd = plan.publish().expect("a memfd");
        let bytes = std::fs::read(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("read back");
        let rule = table::Table::new(&bytes).expect("a table").rule(0).expect("a rule");
        assert_eq!((rule.sizes.least, rule.frames().next().and_then(|frame| frame.offset)), (1 << 20, Some(0x1234)));
        assert!(plan.notes.is_empty());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, hint) in [
            ("", "nearfar_plan = 1"),
            ("[package]\nname = \"x\"\n", "nearfar_plan = 1"),
            ("nearfar_plan = 9\n[[place]]\ntier = \"near\"\n", "format 9"),
            ("nearfar_plan = 1\n", "no [[place]]"),
            ("nearfar_plan = 1\n[[place]]\ntier = \"middle\"\n", "line 3"),
            ("nearfar_plan = 1\n[[place]]\n", "tier"),
            ("nearfar_plan = 1\n[[place]\n", "line 2"),
            ("nearfar_plan = 1\n[[place]]\ntier = \"near\"\nmost = \"12Q\"\n", "[[place]] number 1: most"),
        ] {
            let error = PlanFile::parse(text, None, false).expect_err(text);
            assert!(error.contains(hint), "{text}: {error}");
        }
        let plan = PlanFile::parse("nearfar_plan = 1\n[[place]]\ntier = \"near\"\nlest = \"1M\"\n", None, false).expect("a plan");
        assert!(plan.notes[0].contains("lest in [[place]] number 1"), "{:?}", plan.notes);
        assert!(
            PlanFile::read(Path::new("/nowhere/plan.toml"), None, false)
                .expect_err("missing")
                .to_string()
                .contains("No such file")
        );
    }
}
