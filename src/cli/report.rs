//! Options of `nearfar report`.

use std::path::PathBuf;

/// `nearfar report`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_long_help = REPORT_NOTES)]
pub struct ReportArgs {
    /// Machine descriptions from "nearfar probe -o", run files from "nearfar run --stats", profiles, and what "nearfar advise --json" and
    /// "nearfar bench suite" wrote; several machines are put side by side
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
The page is one file that needs nothing else and loads nothing from a network.
It begins with the answer in words; charts and tables follow. It suits the
reader's light or dark scheme, a phone or a wide screen, and can be printed.

The page of a suite lets you choose: which far, how much near, how many threads;
share of speed, GB/s or seconds. A click on a work (or Tab and Enter) shows its
curve, where its time went, and the command that repeats it. Without scripts,
the answer and all tables are there still.

The exit status is 2 when a file cannot be used: unreadable, not nearfar's, or
of a newer format; nothing is written then.

Example:
  nearfar probe -o node.json && nearfar report node.json -o node.html
  nearfar report suite.json -o suite.html";
