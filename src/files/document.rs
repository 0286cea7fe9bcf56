//! Files that nearfar wrote, read back: descriptions of machines (node.json), run files and advice. Which one it is, and whether this version
//! understands it, is decided here.

use crate::exit::refuse;
use crate::files::advice::{self, AdviceFile};
use crate::files::suite::{self, SuiteFile};
use nearfar_core::node::{FORMAT, Node};
use nearfar_core::profile::summary::Summary;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Larger files are none of ours: a description of a large machine has a few hundred KiB.
const MOST_BYTES: u64 = 64 << 20;

/// Highest version of run files that is understood.
const RUN_VERSION: u64 = 1;

/// A file, understood.
pub enum Document {
    /// A machine.
    Node(Box<Node>),
    /// What `nearfar run --stats` wrote, as it is.
    Run(Value),
    /// A profile, as far as it could be read.
    Profile(Box<Summary>),
    /// What `nearfar advise --json` wrote.
    Advice(Box<AdviceFile>),
    /// What `nearfar bench suite` wrote.
    Suite(Box<SuiteFile>),
}

/// The file at `path`.
///
/// # Errors
/// A refusal that names the file and says what is wrong: it cannot be read, is not JSON, is of another kind or of a newer version.
pub fn read(path: &Path) -> anyhow::Result<Document> {
    let shown = path.display();
    let text = bytes(path)?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        let plan = path.extension().is_some_and(|kind| kind == "toml");
        let hint = if plan { " (is it a plan? \"nearfar advise --json\" writes what \"nearfar report\" reads)" } else { "" };
        refuse(format_args!("{shown} is not JSON as nearfar writes it: {error}{hint}"))
    })?;
    let newer = |what: &str, version: u64, known: u64| {
        refuse(format_args!(
            "{shown} is {what} of format {version}; this nearfar knows up to {known}: use the nearfar that wrote it"
        ))
    };
    match value.get("format") {
        Some(Value::String(format)) if format == "nearfar-run" => match value.get("version").and_then(Value::as_u64) {
            Some(version) if version > RUN_VERSION => Err(newer("a run file", version, RUN_VERSION)),
            Some(version) if version > 0 => Ok(Document::Run(value)),
            _ => Err(refuse(format_args!("{shown} is a run file without a version: it is damaged"))),
        },
        Some(Value::String(format)) if format == suite::FORMAT => {
            let version = value["version"].as_u64().unwrap_or(0);
            if version > suite::VERSION {
                return Err(newer("a suite", version, suite::VERSION));
            }
            let file = serde_json::from_slice(&text)
                .map_err(|error| refuse(format_args!("{shown} is not a suite that can be used: {error}")))?;
            Ok(Document::Suite(Box::new(file)))
        }
        Some(Value::Number(format)) => match format.as_u64() {
            Some(format) if format > u64::from(FORMAT) => Err(newer("a machine description", format, FORMAT.into())),
            Some(format) if format > 0 => {
                // From the text, so that errors have lines.
                let node = serde_json::from_slice(&text)
                    .map_err(|error| refuse(format_args!("{shown} is not a machine description that can be used: {error}")))?;
                Ok(Document::Node(Box::new(node)))
            }
            _ => Err(unknown(path)),
        },
        _ if value.get("nearfar_advice").is_some() => {
            let version = value["nearfar_advice"].as_u64().unwrap_or(0);
            if version > u64::from(advice::FORMAT) {
                return Err(newer("advice", version, advice::FORMAT.into()));
            }
            let file = serde_json::from_slice(&text)
                .map_err(|error| refuse(format_args!("{shown} is not advice that can be used: {error}")))?;
            Ok(Document::Advice(Box::new(file)))
        }
        _ if value.get("cases").is_some() => {
            Err(refuse(format_args!("{shown} is from nearfar bench; this command reads node.json (nearfar probe) and run files")))
        }
        _ => Err(unknown(path)),
    }
}

/// The machine that the file at `path` describes.
///
/// # Errors
/// As [`read`], and when it is a run file.
pub fn load(path: &Path) -> anyhow::Result<Node> {
    match read(path)? {
        Document::Node(node) => Ok(*node),
        Document::Run(_) | Document::Profile(_) | Document::Advice(_) | Document::Suite(_) => Err(refuse(format_args!(
            "{} is no machine description, which is needed here (nearfar probe -o node.json)",
            path.display()
        ))),
    }
}

fn unknown(path: &Path) -> anyhow::Error {
    refuse(format_args!(
        "{} is neither a machine description (nearfar probe) nor a run file (nearfar run --stats) nor advice (nearfar advise --json) nor results of nearfar bench suite",
        path.display()
    ))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = |why: &dyn std::fmt::Display| refuse(format_args!("{} cannot be read: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| cannot(&error))?;
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(|error| cannot(&error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(cannot(&"it is too large to be a file of nearfar"));
    }
    if text.is_empty() {
        return Err(cannot(&"it is empty"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let name = format!("nearfar-node-file-{}-{:?}.json", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        std::fs::write(&path, text).expect("written");
        let result = load(&path);
        let _ = std::fs::remove_file(&path);
        result.map_or_else(|error| error.to_string(), |node| format!("read {}", node.name))
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        assert_eq!(told("{\"format\": 1, \"name\": \"x\", \"a new field\": 1}"), "read x");
        for (text, hint) in [
            ("", "empty"),
            ("{", "not JSON"),
            ("[]", "neither"),
            ("{}", "neither"),
            ("{\"format\": 0}", "neither"),
            ("{\"format\": 99}", "format 99; this nearfar knows up to 1"),
            ("{\"format\": 1, \"bandwidth\": 3}", "not a machine description"),
            ("{\"format\": 1, \"bandwidth\": [{\"rate\": {\"median\": 1e999}}]}", "not JSON"),
            ("{\"format\": \"nearfar-run\", \"version\": 1}", "no machine description"),
            ("{\"format\": \"nearfar-run\", \"version\": 7}", "format 7"),
            ("{\"nearfar_advice\": 1, \"advice\": {\"times\": 3}}", "not advice that can be used"),
            ("{\"format\": \"nearfar-suite\", \"version\": 9}", "a suite of format 9"),
            ("{\"format\": \"nearfar-suite\", \"version\": 1}", "not a suite that can be used"),
            ("{\"nearfar_advice\": 9}", "advice of format 9"),
            ("{\"version\": 2, \"cases\": []}", "nearfar bench"),
        ] {
            let told = told(text);
            assert!(told.contains(hint) && !told.contains('\n'), "{text}: {told}");
        }
        assert!(load(Path::new("/nonexistent/node.json")).expect_err("missing").to_string().contains("No such file"));
        assert!(load(Path::new("/tmp")).expect_err("a directory").to_string().contains("directory"));
    }
}
