//! `nearfar report`: one HTML page from what other commands wrote.

use crate::args::ReportArgs;
use crate::exit::refuse;
use crate::node_file::{self, Document};
use crate::{presets, report};
use anyhow::Context;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Reads the files, writes the page.
pub fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    let documents: Vec<Document> = args.files.iter().map(|path| node_file::read(path)).collect::<anyhow::Result<_>>()?;
    let published = args.compare.as_deref().map(presets::find).transpose()?;
    if published.is_some() && !documents.iter().any(|document| matches!(document, Document::Node(_))) {
        return Err(refuse("--compare needs a machine description (node.json) to compare with; there are only run files"));
    }
    let target = target(&args)?;
    let page = report::render(&documents, published.as_ref());
    match target {
        None => {
            // A reader that closed the pipe has seen enough.
            let _ = std::io::stdout().write_all(page.as_bytes());
        }
        Some(path) => {
            write(&path, &page).with_context(|| path.display().to_string())?;
            crate::say::line(format_args!("wrote {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes; `None` for standard output.
fn target(args: &ReportArgs) -> anyhow::Result<Option<PathBuf>> {
    let path = match &args.output {
        Some(output) if output.as_os_str() == OsStr::new("-") => return Ok(None),
        Some(output) => output.clone(),
        None => default_name(args.files.first().map_or(Path::new("report"), PathBuf::as_path)),
    };
    if args.files.iter().any(|input| is_same(input, &path)) {
        return Err(refuse(format_args!(
            "{} is read for this report and would be overwritten: name another file with -o",
            path.display()
        )));
    }
    if path.is_dir() {
        return Err(refuse(format_args!("-o {} is a directory: name a file in it", path.display())));
    }
    Ok(Some(path))
}

/// The input with .html for its extension, beside it.
fn default_name(input: &Path) -> PathBuf {
    input.with_extension("html")
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Beside its place and renamed there, so that a page that is there already stays whole until the new one is; devices and pipes are
/// written in place.
fn write(path: &Path, page: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return std::fs::write(path, page);
    }
    // Behind a link: the file is replaced, not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let result = std::fs::write(&beside, page).and_then(|()| std::fs::rename(&beside, &path));
    if result.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(files: &[&Path], output: Option<&Path>) -> ReportArgs {
        ReportArgs {
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            output: output.map(Path::to_path_buf),
            compare: None,
        }
    }

    #[test]
    fn the_input_is_never_overwritten() {
        let dir = std::env::temp_dir().join(format!("nearfar-report-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary directory");
        let (input, link, page) = (dir.join("node.json"), dir.join("link.html"), dir.join("node.html"));
        std::fs::write(&input, "{\"format\": 1, \"name\": \"x\"}").expect("written");
        std::os::unix::fs::symlink(&input, &link).expect("a link");
        for output in [&input, &link, &dir] {
            assert!(run(args(&[&input], Some(output))).is_err(), "{}", output.display());
        }
        run(args(&[&input], None)).expect("a page");
        assert!(std::fs::read_to_string(&page).expect("beside the input").starts_with("<!DOCTYPE html>"));
        assert!(std::fs::read_to_string(&input).expect("as it was").starts_with('{'));
        // An input that is called .html already.
        std::fs::write(&page, "{\"format\": 1}").expect("written");
        assert!(run(args(&[&page], None)).is_err());
        assert_eq!(std::fs::read_dir(&dir).expect("list").count(), 3, "nothing else is left");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
