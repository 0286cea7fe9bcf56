//! The command-line tools of memkind, by the names that scripts call them by: links to `nearfar`, or its first argument. They print what
//! memkind's print and end as memkind's do, but --help succeeds and a failure says why.

use crate::exit::{BAD_INPUT, CANNOT_EXECUTE, NOT_FOUND, refuse};
use crate::launch::library;
use crate::ui::message;
use clap::{CommandFactory, Parser};
use nearfar_core::node::Topology;
use nearfar_kinds::choice::{self, Unavailable};
use nearfar_kinds::environment::Environment;
use nearfar_kinds::memtier_env;
use nearfar_kinds::static_kind::StaticKind;
use nearfar_sys::machine;
use nearfar_sys::root::Root;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Status of a tool that found nothing, as documented: memkind-hbw-nodes and memtier, memkind-auto-dax-kmem-nodes.
const NOTHING_FOUND: u8 = 1;
const NO_DAX_NODE: u8 = 3;

/// Print a comma-separated list of the NUMA nodes of high-bandwidth memory
#[derive(Parser)]
#[command(
    name = "memkind-hbw-nodes",
    after_long_help = "The nodes are those of MEMKIND_HBW_NODES if that is set. \"numactl --membind\" takes the list as it is.\n\n\
                       Exit status: 0, 1 when there is no such memory, 2 for a bad argument."
)]
struct HbwNodes {}

/// Print a comma-separated list of the NUMA nodes of persistent or CXL memory, as detected
#[derive(Parser)]
#[command(
    name = "memkind-auto-dax-kmem-nodes",
    after_long_help = "\"numactl --membind\" takes the list as it is.\n\n\
                       Exit status: 0, 2 for a bad argument, 3 when there is no such memory."
)]
struct DaxKmemNodes {}

/// Run a program with its allocations spread over DRAM and a memory of larger capacity (libmemtier.so)
#[derive(Parser)]
#[command(
    name = "memtier",
    after_long_help = "More kinds of memory can be used with LD_PRELOAD=libmemtier.so and MEMKIND_MEM_TIERS: see docs/reference/autohbw-and-memtier.md.\n\n\
                       Exit status: the program's own; 1 when there is no such memory, 2 for a bad argument, 126 and 127 when the \
                       program cannot be executed."
)]
struct Memtier {
    /// Parts of DRAM and of the other memory, such as 1:4. Without it: in proportion to what is installed
    #[arg(short, long, value_name = "A:B")]
    ratio: Option<String>,

    /// Small allocations in DRAM, large ones in the other memory, with a threshold that follows the ratio: for example
    /// INIT_VAL:1024,MIN_VAL:512,MAX_VAL:65536
    #[arg(short, long, alias = "thresholds", value_name = "LIST")]
    threshold: Option<String>,

    /// Print on standard error what is set for the library
    #[arg(short, long)]
    verbose: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    program: Vec<OsString>,
}

/// The tools, for the man pages.
pub fn commands() -> [clap::Command; 3] {
    [HbwNodes::command(), DaxKmemNodes::command(), Memtier::command()]
}

/// Runs the tool that `args`, as the process got them, name: by the name of the program, or by its first argument. `None` when they
/// name none.
pub fn dispatch(args: &[OsString]) -> Option<anyhow::Result<ExitCode>> {
    let is_tool = |name: &OsStr| commands().iter().any(|command| name == command.get_name());
    let called = Path::new(args.first()?).file_name()?;
    let args =
        if is_tool(called) { args } else { args.get(1..).filter(|rest| rest.first().is_some_and(|name| is_tool(name)))? };
    let called = Path::new(args.first()?).file_name()?;
    Some(match called.to_str()? {
        "memkind-hbw-nodes" => {
            let _: HbwNodes = HbwNodes::parse_from(args);
            Ok(hbw_nodes())
        }
        "memkind-auto-dax-kmem-nodes" => {
            let _: DaxKmemNodes = DaxKmemNodes::parse_from(args);
            Ok(dax_kmem_nodes())
        }
        _ => memtier(Memtier::parse_from(args)),
    })
}

fn nodes() -> Topology {
    machine::nodes(&Root::this())
}

/// Prints nodes, or why there are none.
fn listed(nodes: Result<impl Iterator<Item = u32>, Unavailable>, status: u8) -> ExitCode {
    match nodes {
        Ok(nodes) => {
            println!("{}", nodes.map(|node| node.to_string()).collect::<Vec<_>>().join(","));
            ExitCode::SUCCESS
        }
        Err(unavailable) => {
            message::line(format_args!("{}; \"nearfar doctor\" and \"nearfar probe\" tell more", unavailable.why));
            ExitCode::from(status)
        }
    }
}

fn hbw_nodes() -> ExitCode {
    let found = choice::high_bandwidth_nodes(&nodes(), Environment::this());
    listed(found.as_ref().map(|nodes| nodes.iter()).map_err(Clone::clone), NOTHING_FOUND)
}

fn dax_kmem_nodes() -> ExitCode {
    // As detected: the variables do not count.
    let found = choice::choose(&nodes(), &Environment::parse(|_| None), StaticKind::DaxKmemAll);
    listed(found.as_ref().map(|choice| choice.nodes.iter()).map_err(Clone::clone), NO_DAX_NODE)
}

/// Parts of DRAM and of the other memory.
fn parse_ratio(text: &str) -> Option<(u32, u32)> {
    let (near, far) = text.split_once(':')?;
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    Some((number(near)?, number(far)?)).filter(|&parts| parts != (0, 0))
}

/// Two amounts of bytes as parts that fit a ratio.
fn parts(near: u64, far: u64) -> (u32, u32) {
    // In MiB a ratio holds 4 PiB; a memory of less than one is a part as well.
    let part = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX).max(1);
    let (near, far) = (part(near), part(far));
    let mut divisor = (near, far);
    while divisor.1 != 0 {
        divisor = (divisor.1, divisor.0 % divisor.1);
    }
    (near / divisor.0, far / divisor.0)
}

fn memtier(args: Memtier) -> anyhow::Result<ExitCode> {
    let (near, far) = match &args.ratio {
        Some(text) => parse_ratio(text).ok_or_else(|| {
            refuse(format_args!("--ratio \"{text}\" is not two whole numbers with a colon between them; write for example 1:4"))
        })?,
        None => match (bytes(StaticKind::Regular), bytes(StaticKind::DaxKmemAll)) {
            (Ok(near), Ok(far)) => parts(near, far),
            (Err(why), _) | (_, Err(why)) => {
                message::line(format_args!("memtier: {why}"));
                return Ok(ExitCode::from(NOTHING_FOUND));
            }
        },
    };
    let policy = if args.threshold.is_some() { "DYNAMIC_THRESHOLD" } else { "STATIC_RATIO" };
    let tier = |kind: &str, ratio: u32| if ratio == 0 { String::new() } else { format!("KIND:{kind},RATIO:{ratio};") };
    let tiers = format!("{}{}POLICY:{policy}", tier("DRAM", near), tier("KMEM_DAX", far));
    memtier_env::parse(Some(&tiers), args.threshold.as_deref()).map_err(|why| refuse(format_args!("memtier: {why}")))?;
    let library = library::find_named("libmemtier.so")?;
    let preload = library::preload_with(&library, std::env::var_os("LD_PRELOAD").as_deref());
    let (program, rest) = args.program.split_first().ok_or_else(|| refuse("memtier: no program is given"))?;
    let mut command = Command::new(program);
    command.args(rest).env("LD_PRELOAD", &preload).env("MEMKIND_MEM_TIERS", &tiers);
    match &args.threshold {
        Some(thresholds) => command.env("MEMKIND_MEM_THRESHOLDS", thresholds),
        None => command.env_remove("MEMKIND_MEM_THRESHOLDS"),
    };
    if args.verbose {
        message::raw(&format!("setting LD_PRELOAD={}\nsetting MEMKIND_MEM_TIERS={tiers}\n", preload.display()));
        if let Some(thresholds) = &args.threshold {
            message::raw(&format!("setting MEMKIND_MEM_THRESHOLDS={thresholds}\n"));
        }
    }
    let error = command.exec();
    message::line(format_args!("memtier: {}: {error}", program.display()));
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    Ok(ExitCode::from(if is_missing { NOT_FOUND } else { CANNOT_EXECUTE }))
}

fn bytes(kind: StaticKind) -> Result<u64, String> {
    let choice = choice::choose(&nodes(), Environment::this(), kind);
    choice.map(|choice| choice.bytes).map_err(|unavailable| unavailable.why)
}

/// A tool's status for a bad argument is clap's own.
const _: () = assert!(BAD_INPUT == 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_called_by_name() {
        let is_tool = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let is_tool = |name: &OsStr| commands().iter().any(|command| name == command.get_name());
            is_tool(Path::new(&args[0]).file_name().unwrap_or_default()) || args.get(1).is_some_and(|name| is_tool(name))
        };
        assert!(is_tool(&["/usr/bin/memtier"]) && is_tool(&["nearfar", "memkind-hbw-nodes"]) && !is_tool(&["nearfar", "run"]));
        commands().into_iter().for_each(|command| command.debug_assert());
    }

    #[test]
    fn ratios() {
        assert_eq!([parse_ratio("1:4"), parse_ratio("1:0"), parse_ratio("0:7")], [Some((1, 4)), Some((1, 0)), Some((0, 7))]);
        for text in ["", "1", "1:", "a:b", "1:2:3", "0:0", "-1:2", "4294967296:1"] {
            assert_eq!(parse_ratio(text), None, "{text}");
        }
        assert_eq!(parts(64 << 30, 256 << 30), (1, 4));
        assert_eq!(parts(3 << 20, 1), (3, 1));
        assert_eq!(parts(u64::MAX, u64::MAX), (1, 1));
    }
}
