//! Fits a plan to the build of the program that is to be run. Offsets hold for the build that was profiled; in another one functions
//! count, and compilers put functions into their callers as they like: frames of functions that are none of their own in this build
//! are left out, and frames of such as have become some are taken in.
//!
//! Libraries are taken as they come: which ones will be loaded is not known before the program runs.

use nearfar_core::placement::plan::{Frame, Place, Plan};
use nearfar_profile::image::Image;
use nearfar_sys::elf::{self, SymbolKind};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// What came of it.
#[derive(Debug, Default)]
pub struct Fitted {
    /// No rule can fit anything.
    pub hopeless: bool,
    /// Rules that name code of the program, those among them that were found again in another build, and those that were not.
    of_program: usize,
    again: usize,
    lost: Vec<String>,
    name: String,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Fitted {
    /// Why it is hopeless.
    pub fn why(&self) -> String {
        format!(
            "none of its rules can match anything in {}: it has none of the functions that they name ({}). Is it another program, or one \
             without symbols?",
            self.name,
            self.lost.join(", ")
        )
    }
}

/// A program as a plan sees it.
struct Program<'a> {
    path: &'a Path,
    name: String,
    functions: HashSet<String>,
}

impl<'a> Program<'a> {
    /// `None` when it is no ELF file (a script, whose interpreter anything may load).
    fn read(path: &'a Path) -> Option<Self> {
        let mut mark = [0; 4];
        std::fs::File::open(path).ok()?.read_exact(&mut mark).ok()?;
        if &mark != b"\x7fELF" {
            return None;
        }
        let mut functions = HashSet::new();
        let read = elf::symbols(path, |name, symbol| {
            if symbol.kind == SymbolKind::Function && symbol.size > 0 {
                functions.insert(String::from_utf8_lossy(name).into_owned());
            }
        });
        read.ok()?;
        Some(Self { path, name: path.file_name()?.to_string_lossy().into_owned(), functions })
    }

    /// The frame is of this very build.
    fn is_built_so(&self, frame: &Frame) -> bool {
        frame.build_id().is_ok_and(|id| !id.is_empty() && Image::open(self.path, &id).is_ok())
    }

    /// A library, or nobody knows what: it may be loaded.
    fn is_elsewhere(&self, frame: &Frame) -> bool {
        frame.module.as_ref().is_some_and(|module| *module != self.name && module.contains(".so"))
    }

    fn has(&self, frame: &Frame) -> bool {
        frame.function.as_ref().is_some_and(|function| self.functions.contains(function))
    }
}

/// Fits `plan` to `program`; without one only leaves inlined frames out.
pub fn fit(plan: &mut Plan, program: Option<&Path>) -> Fitted {
    let program = program.and_then(Program::read);
    let mut fitted = Fitted::default();
    let mut possible = 0;
    let mut place = Vec::new();
    for mut rule in std::mem::take(&mut plan.place) {
        let had_frames = !rule.frame.is_empty();
        match &program {
            Some(program) if had_frames => fit_rule(&mut rule, program, &mut fitted),
            _ => rule.frame.retain(|frame| !frame.inlined),
        }
        if had_frames && rule.frame.is_empty() {
            // Without its frames it would fit everything.
            let name = if rule.name.is_empty() { format!("rule {}", place.len() + 1) } else { rule.name.clone() };
            fitted.lost.push(name);
            continue;
        }
        possible += 1;
        place.push(rule);
    }
    plan.place = place;
    if let Some(program) = &program {
        fitted.name.clone_from(&program.name);
    }
    fitted.hopeless = possible == 0;
    if fitted.hopeless {
        // Something must be there to be compiled: it fits nothing.
        let nothing = Frame { function: Some("nothing of this name".to_owned()), ..Frame::default() };
        plan.place.push(Place { frame: vec![nothing], ..Place::default() });
    }
    if fitted.again + fitted.lost.len() > 0 {
        let lost = if fitted.lost.is_empty() { String::new() } else { format!("; not found: {}", fitted.lost.join(", ")) };
        fitted.notes.push(format!(
            "the program was rebuilt since the plan was made: {} of its {} rules about the program are found by their functions{lost}",
            fitted.again, fitted.of_program
        ));
    }
    fitted
}

fn fit_rule(rule: &mut Place, program: &Program<'_>, fitted: &mut Fitted) {
    let real = || rule.frame.iter().filter(|frame| !frame.inlined);
    if real().all(|frame| program.is_elsewhere(frame) || frame.function.is_none()) {
        rule.frame.retain(|frame| !frame.inlined);
        return;
    }
    fitted.of_program += 1;
    if real().any(|frame| program.is_built_so(frame)) {
        rule.frame.retain(|frame| !frame.inlined);
        return;
    }
    rule.frame.retain(|frame| program.is_elsewhere(frame) || program.has(frame));
    if rule.frame.iter().all(|frame| frame.hands_on) {
        // Whoever asked has become a part of its caller: what is left hands memory on for anybody.
        rule.frame.clear();
    }
    for frame in rule.frame.iter_mut().filter(|frame| frame.module.as_ref().is_some_and(|module| !module.contains(".so"))) {
        // A program may have been renamed when it was built.
        frame.module = Some(program.name.clone());
    }
    fitted.again += usize::from(!rule.frame.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(functions: &[(&str, bool)]) -> Place {
        let frame = |&(function, inlined): &(&str, bool)| Frame {
            function: Some(function.to_owned()),
            module: (!inlined).then(|| "an-older-name".to_owned()),
            build_id: (!inlined).then(|| "0123".to_owned()),
            offset: (!inlined).then_some(64),
            inlined,
            ..Frame::default()
        };
        Place { name: functions[0].0.to_owned(), frame: functions.iter().map(frame).collect(), ..Place::default() }
    }

    #[test]
    fn frames_follow_what_the_compiler_made_of_functions() {
        let own = std::env::current_exe().expect("own path");
        let functions = |plan: &Plan| -> Vec<Vec<String>> {
            let names = |rule: &Place| rule.frame.iter().filter_map(|frame| frame.function.clone()).collect();
            plan.place.iter().map(names).collect()
        };
        let mut plan = Plan::new(vec![rule(&[("inlined_here", false), ("main", false)]), rule(&[("gone", false)])]);
        let fitted = fit(&mut plan, Some(&own));
        assert_eq!(functions(&plan), [["main"]]);
        assert!(
            !fitted.hopeless && fitted.notes[0].contains("1 of its 2 rules") && fitted.notes[0].contains("not found: gone"),
            "{fitted:?}"
        );
        assert_eq!(plan.place[0].frame[0].module.as_deref(), own.file_name().and_then(|name| name.to_str()));
        // What was inlined and is a function now.
        let mut plan = Plan::new(vec![rule(&[("main", true), ("_start", false)])]);
        fit(&mut plan, Some(&own));
        assert_eq!(functions(&plan), [["main", "_start"]]);
        let mut plan = Plan::new(vec![rule(&[("main", true), ("_start", false)])]);
        fit(&mut plan, None);
        assert_eq!(functions(&plan), [["_start"]]);
    }

    #[test]
    fn a_plan_of_another_program_is_hopeless() {
        let own = std::env::current_exe().expect("own path");
        let mut plan = Plan::new(vec![rule(&[("never_heard_of", false)])]);
        let fitted = fit(&mut plan, Some(&own));
        assert!(fitted.hopeless && fitted.why().contains("never_heard_of") && plan.place.len() == 1);
        // A rule of a library may yet fit, and one without frames always.
        let mut library = rule(&[("never_heard_of", false)]);
        library.frame[0].module = Some("libx.so.1".to_owned());
        assert!(!fit(&mut Plan::new(vec![library]), Some(&own)).hopeless);
        assert!(!fit(&mut Plan::new(vec![Place::default()]), Some(&own)).hopeless);
    }
}
