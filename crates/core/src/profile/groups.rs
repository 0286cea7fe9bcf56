//! Objects of one origin together: all blocks of a call site, a static array, the stacks. Every look is weighed by the memory and the
//! time it stands for, since the sampler may look more often at one object or time than at another.

use super::process::Process;
use super::record::{Brief, Kind, Object, ObjectId, Record, ScriptFrame, SiteId, Watch, WatchEnd};
use super::timeline::{PAGE, Timeline};
use std::collections::HashMap;

/// An object.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its process and its number there.
    pub object: (usize, ObjectId),
    /// Second and size, from its beginning on.
    pub sizes: Vec<(f64, u64)>,
    /// Second of its end.
    pub end: f64,
}

impl Item {
    /// Its largest size.
    pub fn most(&self) -> u64 {
        self.sizes.iter().map(|&(_, len)| len).max().unwrap_or(0)
    }

    /// Second of its beginning.
    pub fn begin(&self) -> f64 {
        self.sizes.first().map_or(0.0, |&(at, _)| at)
    }

    /// Stretches of time with their size.
    pub fn spans(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        self.sizes.iter().enumerate().map(|(at, &(begin, len))| {
            let end = self.sizes.get(at + 1).map_or(self.end, |next| next.0).min(self.end);
            (begin, end.max(begin), len)
        })
    }

    /// Page-seconds between two seconds.
    fn page_seconds(&self, from: f64, to: f64) -> f64 {
        self.spans().map(|(begin, end, len)| (end.min(to) - begin.max(from)).max(0.0) * pages(len)).sum()
    }
}

/// Whole and begun pages.
pub fn pages(len: u64) -> f64 {
    len.div_ceil(PAGE) as f64
}

/// A look at a page of a group.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// What was recorded.
    pub watch: Watch,
    /// Index of the process.
    pub process: usize,
    /// Index of the object in its group.
    pub item: usize,
    /// Second.
    pub at: f64,
    /// Seconds that it lasted for the program.
    pub waited: f64,
    /// Page-seconds it stands for.
    pub weight: f64,
    /// The memory went, and so was never touched again.
    pub died: bool,
}

/// What all objects of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What sort of memory.
    pub kind: Kind,
    /// The symbol of a static or thread-local array.
    pub symbol: String,
    /// The library that defines it; empty: the program, or it is no array.
    pub library: String,
    /// Code of the frames as text that is equal across processes: module, build-id, offset.
    pub frames: Vec<(String, String, u64)>,
    /// Script frames.
    pub script: Vec<(String, String, u32)>,
}

/// Objects with one key.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they have in common.
    pub key: Key,
    /// A process and a site of it, for names.
    pub origin: (usize, Vec<u64>),
    /// Script frames, innermost first.
    pub script: Vec<ScriptFrame>,
    /// The objects.
    pub items: Vec<Item>,
    /// Those that lived too shortly for a record, with their process.
    pub briefs: Vec<(f64, Brief)>,
    /// Looks in order of time.
    pub looks: Vec<Look>,
    /// Objects too brief for records, and the seconds of all together in memory.
    pub page_seconds: f64,
}

/// Seconds of a time stamp.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// First and last second of all records.
pub fn period(processes: &[Process<'_>]) -> (f64, f64) {
    let (mut first, mut last) = (u64::MAX, 0);
    for process in processes {
        let mut see = |at: u64| {
            first = first.min(at);
            last = last.max(at);
        };
        if let Some(start) = process.start {
            see(start.at);
        }
        if let Some((_, at)) = process.became {
            see(at);
        }
        for record in &process.records {
            match record {
                Record::Object(object) => see(object.at),
                Record::Resized { at, .. } | Record::Gone { at, .. } | Record::End { at, .. } => see(*at),
                Record::Watch(watch) => {
                    see(watch.at);
                    see(watch.at.saturating_add(watch.waited));
                }
                Record::Time(samples) => see(samples.at),
                Record::Accesses { at, .. } => see(*at),
                Record::Cost(cost) => see(cost.at),
                Record::Brief(brief) => see(brief.at),
                _ => {}
            }
        }
    }
    if first > last { (0.0, 0.0) } else { (seconds(first), seconds(last)) }
}

/// Last second of a process.
fn end_of(process: &Process<'_>) -> f64 {
    period(std::slice::from_ref(process)).1
}

/// Looks of a stratum, or batches of them: enough that their number is about what it should be, few enough that they lie close together in time.
const STRATUM: usize = 8;
/// Looks come in batches: those that begin within this share of the mean time between looks.
const BATCH: f64 = 0.2;
/// And at most so many seconds.
const LONGEST_BATCH: f64 = 1e-3;
/// There are no batches where there would be more of them than this share of the looks.
const ALONE: f64 = 0.7;

/// Groups the objects of all processes; in order of keys, so that the same records always give the same.
pub fn collect(processes: &[Process<'_>]) -> Vec<Group> {
    let mut groups: HashMap<Key, Group> = HashMap::new();
    for (index, process) in processes.iter().enumerate() {
        collect_process(index, process, &mut groups);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by(|one, other| one.key.cmp(&other.key));
    let (begin, end) = period(processes);
    for group in &mut groups {
        group.looks.sort_by(|one, other| one.at.total_cmp(&other.at));
        for look in &mut group.looks {
            let gone = group.items.get(look.item).map_or(f64::INFINITY, |item| item.end);
            look.died = look.watch.end == WatchEnd::Lost && look.at + seconds(look.watch.waited) >= gone - 0.05;
        }
        group.weigh(begin, end);
    }
    groups
}

/// One process after the other.
fn collect_process(index: usize, process: &Process<'_>, groups: &mut HashMap<Key, Group>) {
    let end = end_of(process);
    let mut sites: HashMap<SiteId, (Vec<u64>, Vec<ScriptFrame>)> = HashMap::new();
    let mut modules = Vec::new();
    let mut where_is: HashMap<ObjectId, (Key, usize)> = HashMap::new();
    let program = process.start.map_or("", |start| file_name(&start.program));
    let key_of = |kind: Kind,
                  (symbol, library): (&str, &str),
                  site: &(Vec<u64>, Vec<ScriptFrame>),
                  modules: &[&super::record::Module]| Key {
        kind,
        symbol: symbol.to_owned(),
        library: if library == program { String::new() } else { library.to_owned() },
        frames: site.0.iter().map(|&addr| place(addr, modules)).collect(),
        script: site.1.iter().map(|frame| (frame.file.clone(), frame.function.clone(), frame.line)).collect(),
    };
    let group_of = |key: &Key, site: &(Vec<u64>, Vec<ScriptFrame>)| Group {
        key: key.clone(),
        origin: (index, site.0.clone()),
        script: site.1.clone(),
        items: Vec::new(),
        briefs: Vec::new(),
        looks: Vec::new(),
        page_seconds: 0.0,
    };
    let unknown = (Vec::new(), Vec::new());
    for record in &process.records {
        match record {
            Record::Module(module) => modules.push(module),
            Record::Site(site) => {
                sites.insert(site.id, (site.frames.clone(), site.script.clone()));
            }
            Record::Object(object) => {
                let site = sites.get(&object.site).unwrap_or(&unknown);
                let key = key_of(object.kind, defined(object, &modules), site, &modules);
                let group = groups.entry(key.clone()).or_insert_with(|| group_of(&key, site));
                where_is.insert(object.id, (key, group.items.len()));
                let at = seconds(object.at);
                group.items.push(Item { object: (index, object.id), sizes: vec![(at, object.len)], end: end.max(at) });
            }
            Record::Resized { id, len, at, .. } => {
                if let Some(item) = item(groups, &where_is, *id) {
                    let last = item.sizes.last().map_or(0.0, |&(at, _)| at);
                    item.sizes.push((seconds(*at).max(last), *len));
                }
            }
            Record::Gone { id, at } => {
                if let Some(item) = item(groups, &where_is, *id) {
                    item.end = seconds(*at).max(item.begin());
                }
            }
            Record::Brief(brief) => {
                let site = sites.get(&brief.site).unwrap_or(&unknown);
                // What sort it was is not recorded; blocks and mappings of one site are seldom both brief.
                let key = [Kind::Map, Kind::Heap]
                    .map(|kind| key_of(kind, ("", ""), site, &modules))
                    .into_iter()
                    .find(|key| groups.contains_key(key))
                    .unwrap_or_else(|| key_of(Kind::Heap, ("", ""), site, &modules));
                let group = groups.entry(key.clone()).or_insert_with(|| group_of(&key, site));
                group.briefs.push((seconds(brief.at), brief.clone()));
            }
            Record::Watch(watch) => {
                if let Some((key, item)) = where_is.get(&watch.object)
                    && let Some(group) = groups.get_mut(key)
                {
                    let (at, waited) = (seconds(watch.at), seconds(watch.waited.saturating_sub(watch.stalled)));
                    let look = Look { watch: *watch, process: index, item: *item, at, waited, weight: 0.0, died: false };
                    group.looks.push(look);
                }
            }
            _ => {}
        }
    }
}

fn item<'a>(
    groups: &'a mut HashMap<Key, Group>,
    where_is: &HashMap<ObjectId, (Key, usize)>,
    id: ObjectId,
) -> Option<&'a mut Item> {
    let (key, at) = where_is.get(&id)?;
    groups.get_mut(key)?.items.get_mut(*at)
}

fn file_name(path: &str) -> &str {
    let path = path.trim_end_matches(" (deleted)");
    path.rsplit('/').next().unwrap_or(path)
}

/// The symbol of an array, and the file that defines it.
fn defined<'a>(object: &'a Object, modules: &[&'a super::record::Module]) -> (&'a str, &'a str) {
    match object.kind {
        Kind::ThreadLocal => object.name.rsplit_once('@').unwrap_or((&object.name, "")),
        Kind::Static => {
            let module = modules.iter().rev().find(|module| (module.start..module.end).contains(&object.addr));
            (&object.name, module.map_or("", |module| file_name(&module.path)))
        }
        _ => (&object.name, ""),
    }
}

/// An address as it is in the file of its module.
fn place(addr: u64, modules: &[&super::record::Module]) -> (String, String, u64) {
    match modules.iter().rev().find(|module| (module.start..module.end).contains(&addr)) {
        Some(module) => {
            let name = module.path.rsplit('/').next().unwrap_or_default().to_owned();
            let id = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            (name, id, addr.wrapping_sub(module.bias))
        }
        None => (String::new(), String::new(), addr),
    }
}

impl Group {
    /// Page-seconds of all objects.
    pub fn page_seconds_of_all(&self) -> f64 {
        let of_items: f64 = self.items.iter().map(|item| item.page_seconds(f64::NEG_INFINITY, f64::INFINITY)).sum();
        of_items + self.briefs.iter().map(|(_, brief)| brief_page_seconds(brief)).sum::<f64>()
    }

    /// Gives every look the page-seconds that it stands for.
    pub fn weigh(&mut self, begin: f64, end: f64) {
        self.page_seconds = self.page_seconds_of_all();
        let mut looks_at: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, look) in self.looks.iter().enumerate() {
            looks_at.entry(look.item).or_default().push(at);
        }
        let mut pooled = Timeline::new(begin, end, 1024);
        for (at, item) in self.items.iter().enumerate() {
            match looks_at.get(&at) {
                Some(looks) if looks.len() >= 2 * STRATUM => {
                    strata(&mut self.looks, looks, |from, to| item.page_seconds(from, to));
                }
                _ => item.spans().for_each(|(from, to, len)| pooled.add(from, to, pages(len) * (to - from))),
            }
        }
        let mut rest: Vec<usize> = looks_at.into_values().filter(|looks| looks.len() < 2 * STRATUM).flatten().collect();
        rest.sort_unstable();
        let sums = pooled.running();
        strata(&mut self.looks, &rest, |from, to| sums.between(from, to));
        // Objects without looks are spoken for by the others.
        let total: f64 = self.looks.iter().map(|look| look.weight).sum();
        if total > 0.0 {
            self.looks.iter_mut().for_each(|look| look.weight *= self.page_seconds / total);
        }
    }
}

/// Page-seconds of objects too brief for records.
pub fn brief_page_seconds(brief: &Brief) -> f64 {
    let mean = brief.bytes as f64 / (brief.count.max(1)) as f64;
    mean / PAGE as f64 * seconds(brief.lifetime_ns)
}

/// Weighs looks, which are in order of time, by what `page_seconds` there are between the middles of gaps between strata. A batch of looks
/// is in one stratum: within it there is no time that they could stand for.
fn strata(looks: &mut [Look], chosen: &[usize], page_seconds: impl Fn(f64, f64) -> f64) {
    let span = chosen.first().zip(chosen.last()).map_or(0.0, |(&first, &last)| looks[last].at - looks[first].at);
    let close = (BATCH * span / chosen.len().max(1) as f64).min(LONGEST_BATCH);
    let mut begins: Vec<usize> =
        (0..chosen.len()).filter(|&at| at == 0 || looks[chosen[at]].at - looks[chosen[at - 1]].at > close).collect();
    // At moments independent of each other a fifth would be as close by chance.
    if begins.len() as f64 > ALONE * chosen.len() as f64 {
        begins = (0..chosen.len()).collect();
    }
    let number = (begins.len() / STRATUM).max(1);
    let bound = |stratum: usize| begins.get(stratum * begins.len() / number).copied().unwrap_or(chosen.len());
    let mut from = f64::NEG_INFINITY;
    for stratum in 0..number {
        let (first, last) = (bound(stratum), bound(stratum + 1));
        let to = match (last.checked_sub(1).and_then(|at| chosen.get(at)), chosen.get(last)) {
            (Some(&one), Some(&next)) => 0.5 * (looks[one].at + looks[next].at),
            _ => f64::INFINITY,
        };
        let weight = page_seconds(from, to) / (last - first).max(1) as f64;
        for &at in &chosen[first..last] {
            looks[at].weight = weight.max(0.0);
        }
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::record::WatchEnd;

    #[test]
    fn a_batch_of_looks_stands_for_one_time() {
        // Batches of 2 to 7 looks every 10 ms, in the second half every 20 ms.
        let mut looks = Vec::new();
        let mut at = 0.0;
        for batch in 0..120_u64 {
            at += if batch < 80 { 0.01 } else { 0.02 };
            for look in 0..2 + batch % 6 {
                let watch = Watch {
                    object: 1,
                    page: 0,
                    pages: 1,
                    at: 0,
                    waited: 1_000_000,
                    stalled: 0,
                    end: WatchEnd::Read,
                    touched: 0,
                    ip: 0,
                    tid: 0,
                    wrote: None,
                    lines: None,
                };
                let at = at + 30e-6 * look as f64;
                looks.push(Look { watch, process: 0, item: 0, at, waited: 1e-3, weight: 0.0, died: false });
            }
        }
        let chosen: Vec<usize> = (0..looks.len()).collect();
        strata(&mut looks, &chosen, |from, to| to.min(at) - from.max(0.0));
        let weights = |from: f64, to: f64| -> Vec<f64> {
            looks.iter().filter(|look| (from..to).contains(&look.at)).map(|look| look.weight).collect()
        };
        let (early, late) = (weights(0.1, 0.7), weights(0.95, 1.5));
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        assert!((1.8..2.2).contains(&(mean(&late) / mean(&early))), "half as often: {} {}", mean(&late), mean(&early));
        for weights in [&early, &late] {
            assert!(weights.iter().all(|weight| (weight / mean(weights) - 1.0).abs() < 0.25), "{weights:?}");
        }
        assert!((looks.iter().map(|look| look.weight).sum::<f64>() - at).abs() < 1e-9);
    }
}
