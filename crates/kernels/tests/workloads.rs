//! All workloads in one table: their data is right, and digests and operations depend on nothing but what they may. Put a workload
//! here as a row, and what only its algorithm has into its file.

use std::collections::BTreeMap;
use std::time::Duration;

use Verified::{Right, Skipped};
use nearfar_kernels::buffer::Placement;
use nearfar_kernels::integrals::Source::{Direct, Stored};
use nearfar_kernels::latency::Pages;
use nearfar_kernels::report::{Report, Traffic, Verified};
use nearfar_kernels::stream::Operation;
use nearfar_kernels::sweep_order::Order;
use nearfar_kernels::thread_team::{Error, Setting};
use nearfar_kernels::{
    bfs, btree, chase, cholesky, churn, circuit, columns, compute, fft, fft_blocked, gemm, gemm_plain, hydro, integrals, join,
    latency, lu, lu_columns, lu_tiled, md, objects, planewave, polynomial, qft, random_updates, sort, spectral, stream, su3,
    sweep, touch, trisolve,
};

type Workload = fn(&Setting) -> Result<Report, Error>;

struct Row {
    name: &'static str,
    run: Workload,
    data_bytes: usize,
    /// Of each whole repetition, with 1 to 3 threads alike.
    operations: u64,
    /// Numbers of threads that come to one digest. Others have one of their own.
    same_digest: &'static [usize],
    /// Whether its data can be placed in files.
    in_files: bool,
    /// What is said of the data when all repetitions were whole.
    whole: Verified,
    cut: Cut,
    /// What a whole repetition moves and computes, by formula.
    traffic: Option<fn(&Setting) -> Traffic>,
}

/// What follows from a time limit that is over at once.
enum Cut {
    /// No further repetition, and this is said of the data.
    Ends(Verified),
    /// All repetitions are cut off, and the data is right.
    Continues,
    /// Repetitions are whole.
    None,
}

/// For workloads that are told how many operations to do.
const OPS: u64 = 12_000;
const STRIDED: Order = Order::Strided(8192);
const PAGES: Pages = Pages { working_bytes: 1 << 20, stride: 1 << 14 };

const fn row(name: &'static str, run: Workload, data_bytes: usize, operations: u64) -> Row {
    Row {
        name,
        run,
        data_bytes,
        operations,
        same_digest: &[1, 2, 3],
        in_files: true,
        whole: Right,
        cut: Cut::Ends(Right),
        traffic: None,
    }
}

/// Threads take parts of their own, or random numbers.
const fn own(row: Row) -> Row {
    Row { same_digest: &[], ..row }
}

/// Timed by the clock.
const fn clocked(name: &'static str, run: Workload, data_bytes: usize) -> Row {
    Row { cut: Cut::Continues, ..row(name, run, data_bytes, OPS) }
}

/// Three threads have streams of other lengths, and leave other rests unvisited.
const fn swept(name: &'static str, run: Workload, pieces: u64) -> Row {
    Row { same_digest: &[1, 2], ..row(name, run, 3 << 20, pieces) }
}

/// Elements of arrays of 3 MiB together.
const fn streamed(name: &'static str, run: Workload, elements: u64, traffic: fn(&Setting) -> Traffic) -> Row {
    counted(row(name, run, 3 << 20, elements), traffic)
}

/// Results that are not verified where a repetition was cut off.
const fn whole_only(row: Row) -> Row {
    Row { cut: Cut::Ends(Skipped), ..row }
}

/// With a formula of its traffic.
const fn counted(row: Row, traffic: fn(&Setting) -> Traffic) -> Row {
    Row { traffic: Some(traffic), ..row }
}

const ROWS: &[Row] = &[
    streamed(
        "copy",
        |setting| stream::stream(setting, Operation::Copy),
        3 << 16,
        |setting| stream::traffic(setting, Operation::Copy),
    ),
    streamed(
        "scale",
        |setting| stream::stream(setting, Operation::Scale),
        3 << 16,
        |setting| stream::traffic(setting, Operation::Scale),
    ),
    streamed(
        "add",
        |setting| stream::stream(setting, Operation::Add),
        1 << 17,
        |setting| stream::traffic(setting, Operation::Add),
    ),
    streamed(
        "triad",
        |setting| stream::stream(setting, Operation::Triad),
        1 << 17,
        |setting| stream::traffic(setting, Operation::Triad),
    ),
    // 2 N for each of half the words.
    counted(row("polynomial", |setting| polynomial::polynomial(setting, 20), 1 << 20, 40 << 16), |setting| {
        polynomial::traffic(setting, 20)
    }),
    swept("strided", |setting| sweep::sweep(setting, STRIDED, false), 384),
    swept("strided-update", |setting| sweep::sweep(setting, STRIDED, true), 384),
    swept("reverse", |setting| sweep::sweep(setting, Order::Reverse, false), 768),
    swept("reverse-update", |setting| sweep::sweep(setting, Order::Reverse, true), 768),
    swept("streams", |setting| sweep::sweep(setting, Order::Streams(8), false), 3 << 14),
    swept("streams-update", |setting| sweep::sweep(setting, Order::Streams(8), true), 3 << 14),
    row("columns", columns::columns, 2 << 20, 360 * 360),
    // Three by three tiles of 96 by 96 values.
    counted(whole_only(row("gemm", |setting| gemm::gemm(setting, 360_000), 1_080_000, 2 * 288 * 288 * 288)), |setting| {
        gemm::traffic(setting, 360_000)
    }),
    // Twelve rows of 496 values and as many rows of B.
    counted(whole_only(row("gemm-plain", gemm_plain::gemm_plain, 1 << 20, 2 * 12 * 496 * 496)), gemm_plain::traffic),
    counted(whole_only(Row { same_digest: &[1, 2, 3, 100], ..row("fft", fft::fft, 3 << 20, 3 << 17) }), fft::traffic),
    counted(
        whole_only(Row { same_digest: &[1, 2, 3, 100], ..row("fft-blocked", fft_blocked::fft_blocked, 3 << 20, 3 << 17) }),
        fft_blocked::traffic,
    ),
    counted(whole_only(row("qft", qft::qft, 3 << 20, 9 * (17 << 17))), qft::traffic),
    counted(whole_only(row("circuit", circuit::circuit, 3 << 20, (16 * 14 + 8 / 2) << 17)), circuit::traffic),
    // As many as 435 pairs of 29 functions have.
    counted(whole_only(row("integrals", |setting| integrals::integrals(setting, Stored), 1 << 20, 435 * 436 / 2)), |setting| {
        integrals::traffic(setting, Stored)
    }),
    counted(
        whole_only(row("integrals-direct", |setting| integrals::integrals(setting, Direct), 1 << 20, 435 * 436 / 2)),
        |setting| integrals::traffic(setting, Direct),
    ),
    // 47 bands of 1024 points, in blocks of 16, 16 and 15.
    counted(
        whole_only(row(
            "planewave",
            planewave::planewave,
            1 << 20,
            47 * 1024 * (6 * 50 / 3 + 8 + 16 * 16) + 16 * 1024 * (256 + 512 + 15 * 47),
        )),
        planewave::traffic,
    ),
    // n (n - 1) / 2 + n (n - 1) (2 n - 1) / 3, for n of 320.
    whole_only(row("lu", lu::lu, 1 << 20, 320 * 319 / 2 + 320 * 319 * 639 / 3)),
    // Eight columns of 360 divided, and as many times the rest updated.
    counted(whole_only(row("lu-columns", lu_columns::lu_columns, 1 << 20, 2_025_012)), lu_columns::traffic),
    // As lu: five by five tiles of one block each.
    counted(
        whole_only(row("lu-tiled", |setting| lu_tiled::lu_tiled(setting, 400_000), 1 << 20, 320 * 319 / 2 + 320 * 319 * 639 / 3)),
        |setting| lu_tiled::traffic(setting, 400_000),
    ),
    // Rows of 168 bytes, and a word more per thread.
    own(row("trisolve", trisolve::trisolve, 18_000 * 168 + 3 * 8, 2 * 18_000)),
    // 2 x 2 x 6 elements with 44 pairs of neighbours.
    counted(whole_only(row("spectral", spectral::spectral, 1 << 20, 4 * (24 * 62_544 + 44 * 64) + 24 * 1616)), spectral::traffic),
    // 4 x 4 x 6 rows of 16 sites.
    counted(whole_only(row("su3", su3::su3, 1 << 20, 4 * 4 * 4 * 6 * 16 * 582)), su3::traffic),
    // 2 x 8 cells by 28 rows by 29 planes, with a row of faces more in each plane.
    counted(whole_only(row("hydro", hydro::hydro, 1 << 20, 2 * 16 * 29 * ((4 * 28 + 1) * 73 + 28 * 35))), hydro::traffic),
    // 8 x 8 x 9 unit cells of four atoms.
    whole_only(row("md", md::md, 1 << 20, 6 * 2304)),
    // As counted by the formula.
    counted(whole_only(row("cholesky", cholesky::cholesky, 1 << 20, 5_013_880)), cholesky::traffic),
    row("sort", sort::sort, 1 << 20, 1 << 17),
    // Sixteen edges for each 80 bytes.
    counted(whole_only(row("bfs", bfs::bfs, 1 << 20, (1 << 20) / 80 / 64 * 64 * 16)), bfs::traffic),
    // Six rows in every 18 words.
    own(row("join", join::join, 2 << 20, (2 << 20) / 144 * 6)),
    own(row("compute", |setting| compute::compute(setting, OPS), 0, OPS)),
    own(clocked("random", |setting| random_updates::random_updates(setting, OPS), 1 << 20)),
    own(clocked("chase-64", |setting| chase::chase(setting, 64, OPS), 1 << 20)),
    own(clocked("chase-4096", |setting| chase::chase(setting, 4096, OPS), 1 << 20)),
    own(clocked("objects", |setting| objects::objects(setting, OPS), 2 << 20)),
    clocked("btree", |setting| btree::btree(setting, OPS), 4 << 20),
    clocked("latency", |setting| latency::latency(setting, PAGES, OPS), 4 << 20),
    Row { in_files: false, ..own(clocked("churn", |setting| churn::churn(setting, OPS), 8 << 20)) },
    Row { whole: Skipped, cut: Cut::None, ..row("touch", touch::touch, 1 << 20, 256) },
];

impl Row {
    fn report(&self, setting: &Setting) -> Report {
        (self.run)(setting).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Threads and placements to run with.
    fn variants(&self) -> Vec<(usize, Placement)> {
        let more = self.same_digest.iter().copied().filter(|&threads| threads > 3);
        // Twice with two threads: what can be on the heap only has nothing else to be compared with.
        let mut all: Vec<_> = [1, 2, 2, 3].into_iter().chain(more).map(|threads| (threads, Placement::Heap)).collect();
        if self.in_files {
            let path = std::env::temp_dir().join(format!("nearfar-{}-{}", self.name, std::process::id()));
            all.extend([(2, Placement::MappedFile(path.clone())), (3, Placement::AdvisedFile(path))]);
        }
        all
    }
}

#[test]
fn digests_and_operations_depend_on_nothing_but_what_they_may() {
    // Even and odd: a Fourier transform goes forth and back by turns.
    for (row, repetitions) in ROWS.iter().flat_map(|row| [(row, 2), (row, 3)]) {
        let mut digests = BTreeMap::new();
        for (threads, placement) in row.variants() {
            let how = format!("{}: {repetitions} repetitions, {threads} threads, {}", row.name, placement.name());
            let report = row.report(&Setting { placement, ..Setting::new(row.data_bytes, threads, repetitions) });
            assert_eq!((report.verified, report.repetitions.len()), (row.whole, repetitions), "{how}");
            for repetition in &report.repetitions {
                assert_eq!((repetition.complete, repetition.operations), (true, row.operations), "{how}");
            }
            let group = if row.same_digest.contains(&threads) { 0 } else { threads };
            assert_eq!(report.checksum, *digests.entry(group).or_insert(report.checksum), "digest of {how}");
        }
    }
}

#[test]
fn a_time_limit_ends_repetitions_and_is_said() {
    for row in ROWS {
        let (count, verified) = match row.cut {
            Cut::Ends(verified) => (1, verified),
            Cut::Continues => (3, Right),
            Cut::None => continue,
        };
        let report = row.report(&Setting { limit: Some(Duration::ZERO), ..Setting::new(row.data_bytes, 2, 3) });
        assert_eq!((report.verified, report.repetitions.len()), (verified, count), "{}", row.name);
        for repetition in &report.repetitions {
            assert!(!repetition.complete && repetition.operations < row.operations, "{}: {repetition:?}", row.name);
        }
    }
}

#[test]
fn bytes_and_flop_are_those_of_the_formula() {
    for (row, traffic) in ROWS.iter().filter_map(|row| Some((row, row.traffic?))) {
        for threads in [1, 2, 3] {
            let setting = Setting::new(row.data_bytes, threads, 2);
            let (counted, expected) = (row.report(&setting).traffic(), traffic(&setting));
            let off = |a: f64, b: f64| (a - b).abs() > 1e-9 * b;
            let wrong = off(counted.bytes, expected.bytes) || off(counted.flop, expected.flop);
            assert!(!wrong, "{}, {threads} threads: counted {counted:?}, by formula {expected:?}", row.name);
        }
    }
}
