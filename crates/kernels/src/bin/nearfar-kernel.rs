//! One workload as a program of its own: what `nearfar bench` starts under each rival.
//!
//! Prints one report to standard output. Does not compare. Arguments are parsed by hand: the program is to start as fast and to own
//! as little memory as the C programs it stands for.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use nearfar_core::units::Bytes;
use nearfar_kernels::buffer::Placement;
use nearfar_kernels::integrals::Source;
use nearfar_kernels::report::{Report, Verified};
use nearfar_kernels::stream::Operation;
use nearfar_kernels::sweep_order::Order;
use nearfar_kernels::thread_team::Setting;
use nearfar_kernels::{
    bfs, btree, chase, cholesky, churn, circuit, columns, compute, fft, fft_blocked, gemm, gemm_plain, hydro, integrals, join,
    latency, lu, lu_columns, lu_tiled, md, objects, planewave, polynomial, qft, random_updates, service, sort, spectral, stream,
    su3, sweep, touch, trisolve,
};

const USAGE: &str = "\
usage: nearfar-kernel WORKLOAD [OPTION...]
WORKLOAD: copy | scale | add | triad | strided | reverse | streams | columns | random | chase | objects | gemm | touch
          | churn | latency | polynomial | compute | fft | gemm-plain | lu | lu-columns | lu-tiled | trisolve | sort
          | join | btree | bfs | fft-blocked | qft | circuit | integrals | planewave | spectral | su3 | hydro | md
          | cholesky
  --bytes SIZE         data, all arrays together (2400M)
  --threads N          threads (all CPUs)
  --sweeps K           timed repetitions (3)
  --ops N              operations per repetition (random, chase, objects, btree, churn, latency, compute: 1000000)
  --seconds S          longest time of one repetition
  --stride SIZE        bytes from one place to the next (strided, chase, latency: 4096)
  --streams N          streams that take turns (streams: 8)
  --update             change what is visited, rather than reading it (strided, reverse, streams)
  --stored, --direct   compute integrals once and keep them, or anew in every repetition (integrals: --stored)
  --working SIZE       bytes of the pages that latency touches (all)
  --near SIZE          near memory that tiles are chosen for (gemm, lu-tiled: 800M)
  --degree N           degree of the polynomial, its intensity is N/8 flop per byte (polynomial: 64)
  --mmap-file PATH     place the data in a shared mapping of an unlinked file made at PATH, instead of the heap
  --advised-file PATH  the same, with madvise telling the kernel the access pattern
  --verify full|none   read the data back and check it (full)
  --json               one line of JSON";

struct Request {
    workload: String,
    setting: Setting,
    operations: u64,
    stride: usize,
    streams: usize,
    update: bool,
    source: Source,
    working_bytes: usize,
    near_bytes: usize,
    degree: usize,
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match service::run(&arguments) {
        None => {}
        Some(Ok(line)) => {
            println!("{line}");
            return ExitCode::SUCCESS;
        }
        Some(Err(message)) => {
            eprintln!("nearfar-kernel: {message}");
            return ExitCode::from(2);
        }
    }
    let request = match parse(arguments.into_iter()) {
        Ok(Some(request)) => request,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("nearfar-kernel: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let result = match request.workload.as_str() {
        "copy" => stream::stream(&request.setting, Operation::Copy),
        "scale" => stream::stream(&request.setting, Operation::Scale),
        "add" => stream::stream(&request.setting, Operation::Add),
        "triad" => stream::stream(&request.setting, Operation::Triad),
        "polynomial" => polynomial::polynomial(&request.setting, request.degree),
        "random" => random_updates::random_updates(&request.setting, request.operations),
        "chase" => chase::chase(&request.setting, request.stride, request.operations),
        "gemm" => gemm::gemm(&request.setting, request.near_bytes),
        "gemm-plain" => gemm_plain::gemm_plain(&request.setting),
        "touch" => touch::touch(&request.setting),
        "strided" => sweep::sweep(&request.setting, Order::Strided(request.stride), request.update),
        "reverse" => sweep::sweep(&request.setting, Order::Reverse, request.update),
        "streams" => sweep::sweep(&request.setting, Order::Streams(request.streams), request.update),
        "columns" => columns::columns(&request.setting),
        "fft" => fft::fft(&request.setting),
        "fft-blocked" => fft_blocked::fft_blocked(&request.setting),
        "qft" => qft::qft(&request.setting),
        "circuit" => circuit::circuit(&request.setting),
        "integrals" => integrals::integrals(&request.setting, request.source),
        "planewave" => planewave::planewave(&request.setting),
        "lu" => lu::lu(&request.setting),
        "lu-columns" => lu_columns::lu_columns(&request.setting),
        "lu-tiled" => lu_tiled::lu_tiled(&request.setting, request.near_bytes),
        "trisolve" => trisolve::trisolve(&request.setting),
        "spectral" => spectral::spectral(&request.setting),
        "su3" => su3::su3(&request.setting),
        "hydro" => hydro::hydro(&request.setting),
        "md" => md::md(&request.setting),
        "cholesky" => cholesky::cholesky(&request.setting),
        "sort" => sort::sort(&request.setting),
        "join" => join::join(&request.setting),
        "btree" => btree::btree(&request.setting, request.operations),
        "bfs" => bfs::bfs(&request.setting),
        "objects" => objects::objects(&request.setting, request.operations),
        "compute" => compute::compute(&request.setting, request.operations),
        "churn" => churn::churn(&request.setting, request.operations),
        "latency" => {
            let pages = latency::Pages { working_bytes: request.working_bytes, stride: request.stride };
            latency::latency(&request.setting, pages, request.operations)
        }
        other => {
            eprintln!("nearfar-kernel: unknown workload {other:?}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(report) => {
            println!("{}", if request.json { report.to_json() } else { readable(&report) });
            if matches!(report.verified, Verified::Wrong(_)) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("nearfar-kernel: {}: {error}", request.workload);
            ExitCode::FAILURE
        }
    }
}

/// `None`: help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Request>, String> {
    let workload = arguments.next().ok_or("no workload given")?;
    if workload == "--help" || workload == "-h" {
        return Ok(None);
    }
    let mut request = Request {
        workload,
        setting: Setting::new(2400 << 20, std::thread::available_parallelism().map_or(1, usize::from), 3),
        operations: 1_000_000,
        stride: 4096,
        streams: 8,
        update: false,
        source: Source::Stored,
        working_bytes: usize::MAX,
        near_bytes: 800 << 20,
        degree: 64,
        json: false,
    };
    while let Some(option) = arguments.next() {
        if option == "--json" {
            request.json = true;
            continue;
        }
        if option == "--update" {
            request.update = true;
            continue;
        }
        if option == "--stored" || option == "--direct" {
            request.source = if option == "--direct" { Source::Direct } else { Source::Stored };
            continue;
        }
        if option == "--help" || option == "-h" {
            return Ok(None);
        }
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        let bad = |accepted: &str| format!("{option}: {value:?} is not accepted; write {accepted}");
        let size = || value.parse::<Bytes>().map(|bytes| bytes.0 as usize).map_err(|error| format!("{option}: {error}"));
        let count = || value.parse::<usize>().ok().filter(|&n| n > 0).ok_or_else(|| bad("a whole number above 0"));
        match option.as_str() {
            "--bytes" => request.setting.data_bytes = size()?,
            "--threads" => request.setting.threads = count()?,
            "--sweeps" => request.setting.repetitions = count()?,
            "--ops" => request.operations = count()? as u64,
            "--seconds" => {
                let seconds = value.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                request.setting.limit = Some(seconds.ok_or_else(|| bad("a number of seconds"))?);
            }
            "--stride" => request.stride = size()?,
            "--streams" => request.streams = count()?,
            "--working" => request.working_bytes = size()?,
            "--degree" => {
                request.degree = count().ok().filter(|&n| n <= 8192).ok_or_else(|| bad("a whole number from 1 to 8192"))?;
            }
            "--near" => request.near_bytes = size()?,
            "--advised-file" => request.setting.placement = Placement::AdvisedFile(PathBuf::from(&value)),
            "--mmap-file" => request.setting.placement = Placement::MappedFile(PathBuf::from(&value)),
            "--verify" => {
                request.setting.verify = match value.as_str() {
                    "full" => true,
                    "none" => false,
                    _ => return Err(bad("full or none")),
                }
            }
            _ => return Err(format!("unknown option {option}")),
        }
    }
    Ok(Some(request))
}

fn readable(report: &Report) -> String {
    let mut text = format!(
        "{} of {} ({}), {} threads; setup {:.3} s\n",
        report.workload,
        Bytes(report.data_bytes as u64),
        report.placement,
        report.threads,
        report.setup_seconds
    );
    for (number, repetition) in report.repetitions.iter().enumerate() {
        text += &format!(
            "  {}: {:.4} s, {:.3} GB/s, {:.4e} {}/s{}\n",
            number + 1,
            repetition.seconds,
            repetition.gb_per_s(),
            repetition.operations_per_s(),
            report.operation,
            if repetition.complete { "" } else { ", ended by the time limit" }
        );
    }
    for (part, seconds) in &report.parts {
        text += &format!("     {part}: {seconds:.4} s\n");
    }
    match report.verified {
        Verified::Right => {
            text += &format!("data right, digest {:016x}, read back in {:.3} s", report.checksum, report.verify_seconds)
        }
        Verified::Wrong(count) => text += &format!("DATA WRONG: {count} values; digest {:016x}", report.checksum),
        Verified::Skipped => text += "data not read back",
    }
    text
}
