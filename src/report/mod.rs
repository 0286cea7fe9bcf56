//! `nearfar report`: one HTML page from what other commands wrote.
//!
//! Modules are listed lowest first.

mod answers;
mod machine;
mod measured;
mod beside;
mod run;
mod runs;
mod profile;
mod advice;
mod suite;
mod page;

use crate::cli::report::ReportArgs;
use crate::exit::refuse;
use crate::files::document::{self, Document};
use crate::files::output::OutputFile;
use crate::files::{nfprof, preset};
use crate::profile::display;
use crate::ui::{chart, message};
use nearfar_core::node::Node;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Reads the files, writes the page.
pub fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    let documents: Vec<Document> = args.files.iter().map(|path| document(path)).collect::<anyhow::Result<_>>()?;
    let published = args.compare.as_deref().map(preset::find).transpose()?;
    if published.is_some() && !documents.iter().any(|document| matches!(document, Document::Node(_))) {
        return Err(refuse("--compare needs a machine description (node.json) to compare with; there are only run files"));
    }
    let target = target(&args)?;
    for document in &documents {
        if let Document::Profile(summary) = document {
            message::raw(&display::table(summary, std::io::stderr().is_terminal()));
        }
    }
    let page = page::render(&documents, published.as_ref(), &[]);
    match target {
        None => {
            // A reader that closed the pipe has seen enough.
            let _ = std::io::stdout().write_all(page.as_bytes());
        }
        Some(target) => {
            target.write(&page)?;
            message::line(format_args!("wrote {}", target.path().display()));
        }
    }
    if let Some(dir) = &args.svg {
        write_charts(dir, &documents, published.as_ref())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page about some documents, after what was `told` of them together.
pub fn page_of(documents: &[Document], told: &[String]) -> String {
    page::render(documents, None, told)
}

/// A file of any kind that has a place on the page.
fn document(path: &Path) -> anyhow::Result<Document> {
    if nfprof::is_one(path) {
        return Ok(Document::Profile(Box::new(nfprof::read(&[path.to_owned()])?)));
    }
    document::read(path)
}

/// Where the page goes; `None` for standard output.
fn target(args: &ReportArgs) -> anyhow::Result<Option<OutputFile>> {
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
    OutputFile::new("-o", path).map(Some)
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

/// Every chart of the machines as a file of its own in `dir`; with several machines their number comes first.
fn write_charts(dir: &Path, documents: &[Document], other: Option<&Node>) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| refuse(format_args!("--svg {}: {error}", dir.display())))?;
    let nodes: Vec<&Node> =
        documents.iter().filter_map(|document| if let Document::Node(node) = document { Some(&**node) } else { None }).collect();
    for (number, node) in nodes.iter().enumerate() {
        for chart in chart::all(node, other) {
            let Some(svg) = chart.svg else { continue };
            let first = if nodes.len() > 1 { format!("{}-", number + 1) } else { String::new() };
            let path = dir.join(format!("{first}{}.svg", chart.name));
            OutputFile::new("--svg", path)?.write(&svg)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(files: &[&Path], output: Option<&Path>) -> ReportArgs {
        ReportArgs {
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            output: output.map(Path::to_path_buf),
            compare: None,
            svg: None,
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
        let charts = dir.join("charts");
        run(ReportArgs { svg: Some(charts.clone()), ..args(&[&input], None) }).expect("a page and charts");
        std::fs::remove_dir_all(&charts).expect("made, though there was nothing to draw");
        assert!(std::fs::read_to_string(&page).expect("beside the input").starts_with("<!DOCTYPE html>"));
        assert!(std::fs::read_to_string(&input).expect("as it was").starts_with('{'));
        // An input that is called .html already.
        std::fs::write(&page, "{\"format\": 1}").expect("written");
        assert!(run(args(&[&page], None)).is_err());
        assert_eq!(std::fs::read_dir(&dir).expect("list").count(), 3, "nothing else is left");
        std::fs::remove_dir_all(&dir).expect("clean up");
    }
}
