//! Which CPUs the program, the hog and the packed run have. Whole cores, so that no hardware thread of the program shares its core
//! with the hog, and half of the cores of every memory node, so that the program's half has all of the memory bandwidth.

use nearfar_core::node::{CpuList, Topology};

/// Who runs where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// All CPUs.
    pub all: CpuList,
    /// Half of the cores of each node, for the program beside a hog and for the halved run; why there is no half.
    pub split: Result<Split, String>,
    /// All CPUs of half of the nodes, as many as the program has in `split`.
    pub packed: Option<CpuList>,
}

/// Two halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The program's.
    pub program: CpuList,
    /// The hog's.
    pub hog: CpuList,
    /// Both halves are hardware threads of the same cores.
    pub share_cores: bool,
}

impl Plan {
    /// For the CPUs in `all`.
    pub fn new(topology: &Topology, all: &CpuList) -> Self {
        let nodes: Vec<Vec<CpuList>> = topology.cpus_by_node(all).iter().map(|node| topology.cores(node)).collect();
        let split = split(&nodes);
        let half_of_nodes = nodes.iter().take(nodes.len() / 2).flatten();
        let packed: CpuList = union(half_of_nodes);
        let is_fair =
            nodes.len() > 1 && split.as_ref().is_ok_and(|split| split.program.len() == packed.len() && split.program != packed);
        Self { all: all.clone(), split, packed: is_fair.then_some(packed) }
    }
}

fn union<'a>(cores: impl IntoIterator<Item = &'a CpuList>) -> CpuList {
    cores.into_iter().flat_map(|core| core.as_slice()).copied().collect()
}

fn split(nodes: &[Vec<CpuList>]) -> Result<Split, String> {
    let cores: Vec<&CpuList> = nodes.iter().flatten().collect();
    let halves = |program: Vec<&CpuList>| {
        let hog = cores.iter().copied().filter(|core| !program.contains(core));
        Split { program: union(program.iter().copied()), hog: union(hog), share_cores: false }
    };
    let of_nodes: Vec<&CpuList> = nodes.iter().flat_map(|cores| &cores[..cores.len() / 2]).collect();
    match cores[..] {
        [] => Err("no CPU is known".into()),
        [core] if core.len() < 2 => {
            Err("the program may use one CPU only, so there is no half of them, and none for a hog; allow it two or more".into())
        }
        [core] => {
            let (program, hog) = core.as_slice().split_at(core.len() / 2);
            let list = |cpus: &[u32]| cpus.iter().copied().collect();
            Ok(Split { program: list(program), hog: list(hog), share_cores: true })
        }
        // Nodes of one core each.
        _ if of_nodes.is_empty() => Ok(halves(cores[..cores.len() / 2].to_vec())),
        _ => Ok(halves(of_nodes)),
    }
}

/// Settings of threads that people make in the environment, as they are to be in a run confined to `half` of `all` CPUs: numbers are
/// scaled, and lists of CPUs removed, since they may name CPUs that are not allowed then. What is not set stays so: runtimes count the
/// CPUs that they may use.
pub fn confined_environment(
    get: impl Fn(&str) -> Option<String>,
    all: usize,
    half: usize,
) -> Vec<(&'static str, Option<String>)> {
    const NUMBERS: [&str; 9] = [
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "GOTO_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "JULIA_NUM_THREADS",
        "GOMAXPROCS",
    ];
    const LISTS: [&str; 3] = ["OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];
    let scaled = NUMBERS.into_iter().filter_map(|name| {
        let value = get(name)?;
        // "8,2": threads of the outermost region first.
        let (first, rest) = value.split_once(',').map_or((value.as_str(), None), |(first, rest)| (first, Some(rest)));
        let threads: usize = first.trim().parse().ok().filter(|&threads| threads > 0)?;
        let fewer = (threads * half).div_ceil(all.max(1)).max(1).to_string();
        Some((name, Some(rest.map_or(fewer.clone(), |rest| format!("{fewer},{rest}")))))
    });
    let removed = LISTS.into_iter().filter(|name| get(name).is_some_and(|value| value.contains(|c: char| c.is_ascii_digit())));
    scaled.chain(removed.map(|name| (name, None))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::node::{MemoryNode, Placement};

    fn list(text: &str) -> CpuList {
        text.parse().expect("a list")
    }

    /// With these CPUs per node, of these cores.
    fn machine(nodes: &[&str], core: impl Fn(u32) -> u32) -> Topology {
        let mut topology = Topology::default();
        for (id, cpus) in (0..).zip(nodes) {
            let cpus = list(cpus);
            let place = |&cpu: &u32| Placement { cpu, package: Some(0), core: Some(core(cpu)), node: Some(id) };
            topology.placement.extend(cpus.as_slice().iter().map(place));
            topology.nodes.push(MemoryNode { id, cpus, ..MemoryNode::default() });
        }
        topology
    }

    #[test]
    fn half_of_the_cores_of_every_node() {
        // Two sockets of four cores with two threads each.
        let machine = machine(&["0-3,8-11", "4-7,12-15"], |cpu| cpu % 8);
        let plan = Plan::new(&machine, &list("0-15"));
        let split = plan.split.expect("two halves");
        assert_eq!((split.program, split.hog), (list("0-1,4-5,8-9,12-13"), list("2-3,6-7,10-11,14-15")));
        assert_eq!(plan.packed, Some(list("0-3,8-11")));
    }

    #[test]
    fn small_machines() {
        let two = Plan::new(&machine(&["0-1"], |cpu| cpu), &list("0-1"));
        let split = two.split.expect("two halves");
        assert_eq!((split.program, split.hog, split.share_cores, two.packed), (list("0"), list("1"), false, None));
        let one_core = Plan::new(&machine(&["0-1"], |_| 0), &list("0-1"));
        assert!(one_core.split.expect("two threads").share_cores);
        assert!(Plan::new(&machine(&["0"], |_| 0), &list("0")).split.expect_err("one CPU").contains("one CPU"));
        let one_each = Plan::new(&machine(&["0", "1"], |cpu| cpu), &list("0-1"));
        assert_eq!((one_each.split.expect("halves").hog, one_each.packed), (list("1"), None));
    }

    #[test]
    fn settings_of_threads_are_scaled_and_cpu_lists_removed() {
        let set = |name: &str| {
            let value = match name {
                "OMP_NUM_THREADS" => "8,2",
                "MKL_NUM_THREADS" => "1",
                "GOMAXPROCS" => "many",
                "OMP_PLACES" => "{0},{1}",
                "KMP_AFFINITY" => "compact",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let changes = confined_environment(set, 8, 4);
        let expected =
            [("OMP_NUM_THREADS", Some("4,2".to_owned())), ("MKL_NUM_THREADS", Some("1".to_owned())), ("OMP_PLACES", None)];
        assert_eq!(changes, expected);
    }
}
