//! Options of `nearfar report`.

use std::path::PathBuf;

/// `nearfar report`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = REPORT_NOTES)]
pub struct ReportArgs {
    /// Machine descriptions from "nearfar probe -o", run files from "nearfar run --stats", profiles, and what "nearfar advise --json"
    /// wrote; several machines are put side by side
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Where the page goes; "-" is standard output. Without it: beside the first FILE, with .html for its extension
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Put a published machine beside the first one, in tables and on the roofline (see "nearfar probe --list-machines")
    #[arg(long, value_name = "NAME")]
    pub compare: Option<String>,

    /// Write every chart to a file of its own in this directory as well, as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
}

const REPORT_NOTES: &str = "\
The page is one file that needs nothing else: charts are part of it, and there
are no scripts. It follows the reader's light or dark scheme and can be printed.

The exit status is 2 when a file cannot be used: unreadable, not nearfar's, or
of a newer format; nothing is written then.

Example:
  nearfar probe -o node.json && nearfar report node.json -o node.html";
