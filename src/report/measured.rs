//! What was measured on a machine: a table for each kind of row, and below it how the figures were got.

use crate::ui::html::{Cell, heading, method, section, table};
use nearfar_core::node::{
    Bandwidth, Compute, Energy, FarPoint, Latency, LoadedLatency, Memory, Missing, Mpi, Node, Operation, ParallelLoads,
    Threading, words,
};

/// The sections on measurements.
pub fn sections(node: &Node) -> String {
    let parts = [
        bandwidth(node),
        latency(node),
        loaded(node),
        parallel(node),
        compute(node),
        threading(node),
        far(node),
        energy(node),
        mpi(node),
        missing(node),
    ];
    parts.concat()
}

fn bandwidth(node: &Node) -> String {
    if node.bandwidth.is_empty() {
        return String::new();
    }
    let mut html = heading("Bandwidth") + &matrix(node);
    let row = |row: &Bandwidth| {
        let cpus = row.cpu_node.map_or("all".to_owned(), |id| format!("node {id}"));
        let (moved, with_allocate) = match row.known_stores() {
            Some(_) if row.counted_bytes > 0 && row.moved_bytes > row.counted_bytes => {
                let rate = row.rate.median * f64::from(row.moved_bytes) / f64::from(row.counted_bytes);
                (row.moved_bytes.to_string(), words::rate(rate))
            }
            Some(_) => (row.moved_bytes.to_string(), String::new()),
            None => ("not published".to_owned(), String::new()),
        };
        vec![
            Cell::text(node.memory_name(row.memory)),
            Cell::text(cpus),
            Cell::text(row.operation.name()),
            Cell::text(row.known_stores().map_or("not published", |stores| stores.name())),
            Cell::number(known(u64::from(row.threads), |threads| threads.to_string())),
            Cell::number(known(row.array_bytes, words::size)),
            Cell::number(known(u64::from(row.counted_bytes), |bytes| bytes.to_string())),
            Cell::number(moved),
            Cell::figure(&row.rate, words::rate),
            Cell::number(with_allocate),
        ]
    };
    let head = [
        "memory",
        "CPUs",
        "operation",
        "stores",
        "threads",
        "arrays",
        "bytes counted",
        "bytes moved",
        "bandwidth",
        "with write-allocate",
    ];
    html += &table(&head, node.bandwidth.iter().map(row));
    html + &method(
        "Arrays of f64, one thread per CPU, each on its own part; every element is checked afterwards. \"bytes counted\" are bytes per \
         element that the program asks for, and the bandwidth is of these. \"bytes moved\" add the read of a line before an ordinary \
         store (write-allocate); \"with write-allocate\" is the bandwidth counted so, unless the processor avoids that read. Median of \
         the runs with the 95 % interval of the median (order statistics); n is the number of runs. NOISY: the interval is wider than a \
         tenth of the median. INVALID: a condition of the method was not met; the figure is not to be used.",
    )
}

fn known(value: u64, show: impl Fn(u64) -> String) -> String {
    if value == 0 { String::new() } else { show(value) }
}

/// The best triad (or read, where there is no triad) from each CPU node to each memory node.
fn matrix(node: &Node) -> String {
    let mut sources: Vec<u32> = node.bandwidth.iter().filter_map(|row| row.cpu_node).collect();
    let mut targets: Vec<u32> = Vec::new();
    for row in &node.bandwidth {
        if let (Memory::Node(id), Some(_)) = (row.memory, row.cpu_node) {
            targets.push(id);
        }
    }
    for list in [&mut sources, &mut targets] {
        list.sort_unstable();
        list.dedup();
    }
    if sources.len() * targets.len() < 2 {
        return String::new();
    }
    let operation = if node.bandwidth.iter().any(|row| row.operation == Operation::Triad && row.cpu_node.is_some()) {
        Operation::Triad
    } else {
        Operation::Read
    };
    let mut head = vec![format!("best {}, counted bytes", operation.name())];
    head.extend(targets.iter().map(|&id| format!("to {}", node.memory_name(Memory::Node(id)))));
    let cell = |from: u32, to: u32| {
        let cell = |row: &&Bandwidth| (row.cpu_node, row.memory, row.operation) == (Some(from), Memory::Node(to), operation);
        // A valid figure goes before a higher one that is not.
        let key = |row: &&Bandwidth| (row.rate.is_usable(), row.rate.median);
        let rows = node.bandwidth.iter().filter(cell);
        let best = rows.max_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
        best.map_or(Cell::number("-"), |row| Cell::figure(&row.rate, words::rate))
    };
    let row = |&from: &u32| {
        let first = Cell::text(format!("from CPUs of node {from}"));
        std::iter::once(first).chain(targets.iter().map(|&to| cell(from, to))).collect()
    };
    table(&head, sources.iter().map(row))
}

fn latency(node: &Node) -> String {
    let row = |row: &Latency| {
        let (chase, pages) =
            row.method().map_or(("not published", "not published"), |(chase, pages)| (chase.name(), pages.name()));
        vec![
            Cell::text(node.memory_name(row.memory)),
            Cell::text(format!("node {}", row.cpu_node)),
            Cell::text(chase),
            Cell::text(pages),
            Cell::number(known(row.bytes, words::size)),
            Cell::figure(&row.time, words::time),
        ]
    };
    let head = ["memory", "CPU", "order", "pages", "data", "latency"];
    let how = "One thread follows a chain of dependent loads through every line once, in a random cycle. page-local: within 64 \
               neighbouring pages at a time, so that address translation hits; random: over all of the data, so that it is part of the \
               figure. The kind of pages is what the kernel says was really there.";
    section("Idle latency", &head, node.latency.iter().map(row), how)
}

fn loaded(node: &Node) -> String {
    let row = |row: &LoadedLatency| {
        let summary = Summary::of(row);
        let shown = |value: Option<f64>, show: fn(f64) -> String| Cell::number(value.map_or("-".to_owned(), show));
        vec![
            Cell::text(node.memory_name(row.memory)),
            Cell::text(format!("node {}", row.cpu_node)),
            Cell::text(row.injection.name()),
            Cell::number(row.injectors.to_string()),
            shown(summary.idle, words::time),
            shown(summary.knee, words::rate),
            shown(summary.most, words::rate),
            shown(summary.full, words::time),
        ]
    };
    let head = ["memory", "CPUs", "load", "threads of it", "least load", "twice that at", "most bandwidth", "latency then"];
    let how = "One thread chases pointers while the others load the memory, with pauses of different lengths. \"twice that at\": the \
               bandwidth at which a load takes twice as long as under the least load; - when it never does.";
    section("Loaded latency", &head, node.loaded.iter().map(row), how)
}

fn parallel(node: &Node) -> String {
    let row = |row: &ParallelLoads| {
        let at = |cycles: u32| row.points.iter().find(|point| point.cycles == cycles);
        let time = |cycles: u32| at(cycles).map_or(Cell::number("-"), |point| Cell::figure(&point.time, words::time));
        let first = [
            Cell::text(node.memory_name(row.memory)),
            Cell::text(format!("node {}", row.cpu_node)),
            Cell::text(row.pages.name()),
        ];
        let most = Cell::number(row.most().map_or("-".to_owned(), |most| format!("{most:.1}")));
        first.into_iter().chain([1, 2, 4, 8, 16, 32].map(time)).chain([most]).collect()
    };
    let head = ["memory", "CPU", "pages", "1", "2", "4", "8", "16", "32 at once", "under way"];
    let how = "One thread follows so many cycles of dependent loads at once, at random places; time per load. Under way: how often the \
               shortest time goes into that of a single cycle, 32 at the most: how many loads the core keeps in flight.";
    section("Parallel loads", &head, node.parallel_loads.iter().map(row), how)
}

/// What people ask of a curve.
struct Summary {
    idle: Option<f64>,
    knee: Option<f64>,
    most: Option<f64>,
    full: Option<f64>,
}

impl Summary {
    fn of(row: &LoadedLatency) -> Self {
        let points: Vec<_> = row.points.iter().filter(|point| point.time.is_usable()).collect();
        let idle = points.first().map(|point| point.time.median);
        let loaded = || points.iter().filter(|point| point.rate.is_usable());
        let fullest = loaded().max_by(|a, b| a.rate.median.total_cmp(&b.rate.median));
        let slow = loaded().filter(|point| idle.is_some_and(|idle| point.time.median >= 2.0 * idle));
        let knee = slow.map(|point| point.rate.median).reduce(f64::min);
        Self { idle, knee, most: fullest.map(|point| point.rate.median), full: fullest.map(|point| point.time.median) }
    }
}

fn compute(node: &Node) -> String {
    let row = |row: &Compute| {
        vec![
            Cell::text(row.precision.name()),
            Cell::text(row.isa.name()),
            Cell::text(row.arithmetic.name()),
            Cell::number(known(u64::from(row.threads), |threads| threads.to_string())),
            Cell::figure(&row.rate, words::flops),
            row.clock_hz.as_ref().map_or(Cell::number("-"), |clock| Cell::figure(clock, words::hertz)),
            Cell::number(row.per_clock.map_or("-".to_owned(), words::digits)),
        ]
    };
    let head = ["numbers", "instructions", "arithmetic", "threads", "rate", "clock", "per clock and core"];
    let how = "Chains of independent operations in registers, one thread per core; a fused multiply-add counts as two. The clock is \
               measured while they run, from a chain of dependent additions, and not taken from the data sheet.";
    section("Compute", &head, node.compute.iter().map(row), how)
}

fn threading(node: &Node) -> String {
    let row = |row: &Threading| {
        vec![
            Cell::text(row.runtime.name()),
            Cell::text(&row.construct),
            Cell::number(row.threads.to_string()),
            Cell::figure(&row.overhead, words::time),
        ]
    };
    let head = ["runtime", "construct", "threads", "overhead"];
    let how = "Time with the construct less time without it, per construct (the method of the EPCC OpenMP microbenchmarks).";
    section("Threads", &head, node.threading.iter().map(row), how)
}

fn far(node: &Node) -> String {
    let mut html = String::new();
    for tier in &node.far {
        let row = |point: &FarPoint| {
            let published = |value: u64, show: &dyn Fn(u64) -> String| {
                Cell::number(if value == 0 { "not published".to_owned() } else { show(value) })
            };
            vec![
                Cell::text(point.access.name()),
                published(point.request_bytes, &words::size),
                published(point.depth.into(), &|depth| depth.to_string()),
                Cell::figure(&point.rate, words::rate),
                Cell::figure(&point.time, words::time),
            ]
        };
        let direct =
            if tier.direct { "past the page cache (O_DIRECT)" } else { "through the page cache: figures may be those of memory" };
        let file = known(tier.file_bytes, |bytes| format!("; a file of {}", words::size(bytes)));
        let how = format!("{}{file}; {direct}. The time of a request is the mean over a run.", tier.about);
        let head = ["access", "request", "at once", "bandwidth", "time of a request"];
        html += &section(&format!("Far tier {}", tier.spec), &head, tier.points.iter().map(row), &how);
    }
    html
}

fn energy(node: &Node) -> String {
    let row = |row: &Energy| {
        vec![
            Cell::text(&row.load),
            Cell::text(&row.domain),
            Cell::number(if row.watts > 0.0 { format!("{} W", words::digits(row.watts)) } else { "-".to_owned() }),
            Cell::figure(&row.joules, words::joules),
            Cell::text(format!("per {}", row.unit)),
        ]
    };
    let head = ["load", "domain", "power", "energy", ""];
    let how = "From the processor's own counters (RAPL), above idle unless a source says otherwise.";
    section("Energy", &head, node.energy.iter().map(row), how)
}

fn mpi(node: &Node) -> String {
    let show = |unit: &str, value: f64| match unit {
        "ns" => words::time(value),
        "bytes/s" => words::rate(value),
        _ => format!("{} {unit}", words::digits(value)),
    };
    let row = |row: &Mpi| {
        vec![
            Cell::text(&row.what),
            Cell::number(words::size(row.bytes)),
            Cell::number(row.ranks.to_string()),
            Cell::figure(&row.value, |value| show(&row.unit, value)),
            Cell::text(&row.library),
        ]
    };
    let head = ["what", "message", "ranks", "figure", "library"];
    let how = "Between ranks on this machine.";
    section("MPI", &head, node.mpi.iter().map(row), how)
}

fn missing(node: &Node) -> String {
    let row = |row: &Missing| vec![Cell::text(&row.what), Cell::text(format!("not measured, because: {}", row.why))];
    section("Not measured", &["what", "why"], node.missing.iter().map(row), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;
    use nearfar_core::node::{Figure, LoadPoint, Stores};

    #[test]
    fn every_preset_has_its_tables() {
        for name in preset::names() {
            let node = preset::find(name).expect("found");
            let html = sections(&node);
            for row in &node.bandwidth {
                assert!(html.contains(&words::rate(row.rate.median)), "{name}");
            }
            assert!(html.contains("not measured, because"), "{name}");
        }
        assert!(sections(&Node::default()).is_empty());
    }

    #[test]
    fn the_matrix_prefers_what_is_valid() {
        let row = |from, to, rate: Figure| Bandwidth {
            cpu_node: Some(from),
            memory: Memory::Node(to),
            operation: Operation::Triad,
            stores: Stores::Ordinary,
            counted_bytes: 24,
            moved_bytes: 32,
            rate,
            ..Bandwidth::default()
        };
        let node = Node {
            bandwidth: vec![
                row(0, 0, Figure::of(&[30e9])),
                row(0, 0, Figure::of(&[90e9]).condemned("arrays too small")),
                row(0, 1, Figure::of(&[12e9])),
            ],
            ..Node::default()
        };
        let matrix = matrix(&node);
        assert!(matrix.contains("30.0 GB/s") && !matrix.contains("90.0 GB/s") && matrix.contains("to node 1"));
        let all = bandwidth(&node);
        assert!(all.contains("INVALID") && all.contains("arrays too small") && all.contains("40.0 GB/s"), "with write-allocate");
    }

    #[test]
    fn curves_are_summed_up() {
        let point = |ns: f64, rate: f64| LoadPoint { delay: Some(1), time: Figure::of(&[ns]), rate: Figure::of(&[rate]) };
        let points = vec![point(90.0, 1e9), point(100.0, 20e9), point(185.0, 40e9), point(260.0, 42e9)];
        let summary = Summary::of(&LoadedLatency { points, ..LoadedLatency::default() });
        assert_eq!((summary.idle, summary.knee, summary.most, summary.full), (Some(90.0), Some(40e9), Some(42e9), Some(260.0)));
    }
}
