//! The writer: drains the queue, keeps the books, has pages looked at, and appends records to the file. One at a time does this, under
//! the lock of `recorder`: the thread "nearfar-write", or a thread of the program at its exit, exec or fork.

mod append;
mod mapped;

use crate::book::Book;
use crate::clock::{Clock, PERIOD_NS};
use crate::facts;
use crate::locals::Locals;
use crate::modules::Mapped;
use crate::output::{Output, Thin};
use crate::processor::{Processor, SampleRate};
use crate::queue::Queue;
use crate::sampler::{Look, Options, Sampler, Wakeful};
use crate::settings::Settings;
use crate::sites::Sites;
use nearfar_core::addr::Extent;
use nearfar_core::profile::record::{self, Access, Kind, Method, ObjectId, Record, Start};
use nearfar_core::random_numbers::Random;
use nearfar_sys::errno::Errno;
use nearfar_sys::pagemap::Pagemap;
use nearfar_sys::{call_memory, event, process, task};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Records are written once in so long.
const WRITE_NS: u64 = 250_000_000;
/// Mappings are read once in so long, and when an address is in none that is known.
const MAPS_NS: u64 = 1_000_000_000;
/// Which groups are worth looking at is asked again after so long.
const SORT_NS: u64 = 15_000_000;
/// Programs that end sooner need not know what waking takes.
const WAKING_NS: u64 = 300_000_000;
/// Looks of so much time at once at most.
const LATE_NS: u64 = 60_000_000;
/// How deep stacks are used is looked up once in so long, or so many times what it takes.
const STACKS_NS: u64 = 20_000_000;
const STACKS_REST: u64 = 200;
/// A page that nobody touches is given up after so long.
const LONGEST: Duration = Duration::from_secs(4);
/// Heaps below this are not worth a record. Our own threads have a heap each of the least size, 132 KiB.
const LEAST_REGION: usize = 256 << 10;
/// Moments at which something ran are told of at this distance.
const MOMENTS_NS: u64 = 800_000;
/// Bytes that the record of an object has, and that of its end.
const OBJECT: u64 = 40;
/// Memory samples of the processor that a write of the file has at most, at the usual pace: 32 KiB a second.
const SAMPLES: usize = 256;
/// So many times as many are held until then.
const SAMPLES_HELD: usize = 16;
/// Instructions of those whose code is told of, in a write: most are known after a few.
const SAMPLED_CODES: usize = 32;
/// Bytes of code told of on each side of an instruction.
const CODE: u64 = 512;

/// Memory that is no single object: heaps of the C library.
struct Region {
    id: ObjectId,
    kind: Kind,
    range: Extent,
    /// Its bytes less those of objects in it.
    len: u64,
    at: u64,
    written: bool,
}

/// All that the writer has.
pub struct Writer {
    settings: Settings,
    output: Output,
    pub(crate) book: Book,
    pid: u32,
    start: Option<Start>,
    modules: Vec<Mapped>,
    modules_written: usize,
    /// Static arrays by the number of their module, and modules with thread-local ones.
    arrays: HashMap<usize, Vec<(ObjectId, u64)>>,
    locals: Vec<(usize, Locals)>,
    sites_written: Vec<bool>,
    codes: HashSet<u64>,
    regions: Vec<Region>,
    /// Addresses in no module: code built as the program runs.
    unknown: HashSet<u64>,
    sampler: Option<&'static Sampler>,
    clock: Option<Clock>,
    processor: Option<Processor>,
    /// Its samples since the last write, and how many it lost.
    accesses: Vec<Access>,
    accesses_lost: u64,
    /// Samples by instruction and thread since the last write.
    samples: HashMap<(u64, u32), u32>,
    /// When they were, and the time of the last write.
    moments: Vec<(u64, u64, u32)>,
    written: u64,
    /// The own thread has begun.
    begun: bool,
    next_write: u64,
    next_maps: u64,
    next_sort: u64,
    /// Looks that are due, and since when they are counted.
    owed: f64,
    last_look: u64,
    /// When it is measured what waking a thread takes; 0: it was.
    waking_at: u64,
    /// CPUs are kept from sleep while this asks for it.
    awake: Option<Wakeful>,
    next_stacks: u64,
    pagemap: Option<Pagemap>,
    random: Random,
    cpu_ns: u64,
    hooks_ns: u64,
    notes: Vec<String>,
    lost_said: u64,
    /// It was told that samples of time found no room.
    overflow_said: bool,
    own: Extent,
}

impl Writer {
    /// For a process that begins to be observed; `own` is the code of this library.
    pub fn new(settings: Settings, output: Output, start: Start, own: Extent) -> Self {
        let seed = if settings.seed == 0 { event::now_ns() } else { settings.seed };
        Self {
            output,
            book: Book::new(settings.least),
            pid: start.pid,
            random: Random::new(seed ^ u64::from(start.pid) << 32),
            start: Some(start),
            modules: Vec::new(),
            modules_written: 0,
            arrays: HashMap::new(),
            locals: Vec::new(),
            sites_written: Vec::new(),
            codes: HashSet::new(),
            regions: Vec::new(),
            unknown: HashSet::new(),
            sampler: None,
            clock: None,
            processor: None,
            accesses: Vec::new(),
            accesses_lost: 0,
            samples: HashMap::new(),
            moments: Vec::new(),
            written: event::now_ns(),
            begun: false,
            next_write: event::now_ns() + WRITE_NS,
            next_maps: 0,
            next_sort: 0,
            owed: 0.0,
            last_look: event::now_ns(),
            waking_at: 0,
            awake: None,
            next_stacks: 0,
            pagemap: None,
            cpu_ns: 0,
            hooks_ns: 0,
            notes: Vec::new(),
            lost_said: 0,
            overflow_said: false,
            own,
            settings,
        }
    }

    /// The sampler, where there is one.
    pub fn sampler(&self) -> Option<&'static Sampler> {
        self.sampler
    }

    /// Nothing is looked at any more: CPUs may sleep.
    pub fn let_sleep(&mut self) {
        self.awake = None;
    }

    /// What the own thread does first: what the starting thread of the program must not wait for.
    pub fn begin(&mut self, sites: &Sites) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let mut refused = None;
        if !self.settings.denied.faults && self.sampler.is_none() {
            let options = Options { budget: self.settings.budget, seed: self.random.next(), longest: LONGEST };
            match Sampler::start(options) {
                Ok(sampler) => {
                    self.waking_at = event::now_ns() + WAKING_NS;
                    self.sampler = Some(sampler);
                }
                Err(errno) => refused = Some(errno),
            }
        }
        self.start_clock();
        if !self.settings.denied.samples {
            let pace = if self.settings.precise { SampleRate::Fast } else { SampleRate::Usual };
            match Processor::start(&own_threads(), pace) {
                Ok(processor) => self.processor = Some(processor),
                // Most machines have none, and what takes their place is told by the method.
                Err(Errno(libc::ENODEV | libc::ENOENT | libc::EOPNOTSUPP)) => {}
                Err(errno) => self.notes.push(format!("the processor's memory samples are not available here: {errno}")),
            }
        }
        if let Some(errno) = refused {
            let instead =
                if self.processor.is_some() { "only the processor's samples show accesses" } else { "only objects are recorded" };
            self.notes.push(format!("pages cannot be watched here ({errno}): {instead}"));
        }
        if let Some(start) = &mut self.start {
            start.method = match (self.sampler.is_some(), self.processor.is_some()) {
                (true, true) => Method::Both,
                (true, false) => Method::PageFaults,
                (false, true) => Method::Hardware,
                (false, false) => Method::None,
            };
        }
        self.pagemap = Pagemap::open().ok();
        self.read_maps(sites);
    }

    fn start_clock(&mut self) {
        if self.settings.denied.clock {
            return;
        }
        match Clock::start(&own_threads()) {
            Ok(clock) => self.clock = Some(clock),
            Err(why) => self.notes.push(why.to_string()),
        }
    }

    /// One round: everything that has come; records when it is time.
    pub fn round(&mut self, queue: &Queue, sites: &Sites) {
        self.drain(queue);
        self.measure_stacks();
        self.look();
        if let Some(clock) = &mut self.clock {
            let samples = &mut self.samples;
            let moments = &mut self.moments;
            clock.drain(&mut |ip, tid, at| {
                *samples.entry((ip, tid)).or_default() += 1;
                moments.push((at, ip, tid));
            });
        }
        self.take_samples(self.samples_kept(Thin::No) * SAMPLES_HELD);
        let now = event::now_ns();
        if now >= self.next_maps {
            self.read_maps(sites);
        }
        if now >= self.next_write {
            self.next_write = now + WRITE_NS;
            self.write(queue, sites, false);
        }
    }

    /// CPU time of the own thread so far, if it is the caller, and time within hooks.
    pub fn spent(&mut self, cpu_ns: Option<u64>, hooks_ns: u64) {
        self.cpu_ns = cpu_ns.unwrap_or(self.cpu_ns);
        self.hooks_ns = hooks_ns;
    }

    pub(crate) fn drain(&mut self, queue: &Queue) {
        queue.take(|ticket, event| self.book.note(ticket, event));
        if let Some(sampler) = self.sampler {
            while let Some(watch) = sampler.take() {
                self.book.watched(watch);
            }
        }
    }

    /// Has as many pages looked at as the sampler wants.
    fn look(&mut self) {
        let Some(sampler) = self.sampler else { return };
        let now = event::now_ns();
        if self.waking_at != 0 && now >= self.waking_at {
            self.waking_at = 0;
            // A child of fork knows what its parent measured.
            self.awake = match &self.awake {
                Some(of_parent) => of_parent.anew(),
                None => sampler.settle_waking(!self.settings.denied.awake),
            };
            self.last_look = event::now_ns();
            return;
        }
        if now >= self.next_sort {
            // New groups must be known at once, and a choice costs about 20 ns a group: 0.1 % of the time.
            self.next_sort = now + (self.book.live.groups() as u64 * 20_000).max(SORT_NS);
            self.book.live.sort(now);
        }
        // What a round comes to late for is not made up for in a burst.
        self.owed += sampler.rate() * (now - self.last_look.max(now.saturating_sub(LATE_NS))) as f64 * 1e-9;
        self.last_look = now;
        if self.waking_at == 0
            && let Some(awake) = &mut self.awake
        {
            awake.follow(sampler);
        }
        let count = self.owed as usize;
        self.owed -= count as f64;
        let mut passed = 0;
        for _ in 0..count {
            let random = &mut self.random;
            // Heaps of the C library have their share of the looks, as the groups have theirs.
            let heaps: Vec<usize> =
                (0..self.regions.len()).filter(|&index| self.regions[index].kind == Kind::SmallBlocks).collect();
            let drawn = if !heaps.is_empty() && random.below(16) == 0 {
                let region = &mut self.regions[heaps[random.below(heaps.len() as u64) as usize]];
                let page = self.book.free_page(region.range.start as u64, region.range.end as u64, random);
                page.map(|page| {
                    if !std::mem::replace(&mut region.written, true) {
                        self.book.records.push(object(region));
                    }
                    self.book.look_elsewhere(region.id, now);
                    Look { object: region.id, page: page as usize, huge: false, fine: 0 }
                })
            } else {
                let drawn = self.book.live.draw(random);
                drawn.and_then(|(addr, page)| {
                    let (object, huge) = self.book.look(addr, page, now)?;
                    let fine = self.book.live.at(addr).map_or(0, |object| object.fine_page(random));
                    Some(Look { object, page: page as usize, huge, fine: fine as usize })
                })
            };
            let Some(look) = drawn else {
                passed += 1;
                continue;
            };
            if !sampler.offer(look) {
                self.book.not_looked(look.object);
                break;
            }
        }
        sampler.passed(passed);
        sampler.begin_looks();
    }

    fn measure_stacks(&mut self) {
        let now = event::now_ns();
        if now < self.next_stacks {
            return;
        }
        let pagemap = &mut self.pagemap;
        self.book.measure_stacks(now, &mut |start, end| {
            let range = Extent { start: start as usize, end: end as usize };
            let found = pagemap.as_mut().map_or(Ok(None), |pagemap| pagemap.next_present(range));
            found.ok().flatten().map(|addr| addr as u64)
        });
        self.find_locals();
        let took = event::now_ns() - now;
        self.next_stacks = now + STACKS_NS.max(STACKS_REST * took);
    }

    /// In the child of a fork: a process of its own, with the objects that it has inherited.
    pub fn forked(&mut self) {
        let parent = self.pid;
        self.pid = process::pid();
        self.start = Some(facts::start(&self.settings, parent));
        let here = 0u8;
        self.book.forked((&raw const here).addr() as u64, process::tid());
        self.modules_written = 0;
        self.sites_written.clear();
        self.codes.clear();
        self.regions.iter_mut().for_each(|region| region.written = false);
        (self.clock, self.processor, self.pagemap) = (None, None, None);
        self.accesses.clear();
        self.accesses_lost = 0;
        (self.begun, self.overflow_said) = (false, false);
        self.samples.clear();
        self.moments.clear();
        self.written = event::now_ns();
        if let Some(sampler) = self.sampler
            && sampler.fork_child().is_err()
        {
            self.sampler = None;
        }
        if self.sampler.is_none() {
            self.awake = None;
        } else if self.awake.is_some() {
            // Its request is the parent's.
            self.waking_at = event::now_ns() + WAKING_NS;
        }
        if let (Some(start), Some(_)) = (&mut self.start, self.sampler) {
            start.method = Method::PageFaults;
        }
        (self.cpu_ns, self.lost_said) = (0, 0);
        (self.owed, self.last_look) = (0.0, event::now_ns());
        self.random = Random::new(self.random.next() ^ u64::from(self.pid));
        self.next_write = event::now_ns() + WRITE_NS;
    }

    /// True when nothing was written of this process yet, and it is young: not worth it before an exec.
    pub fn is_new(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.parent != 0 && event::now_ns() - start.at < WRITE_NS)
    }
}

fn object(region: &Region) -> Record {
    let Region { id, kind, range, len, at, .. } = *region;
    Record::Object(record::Object { id, kind, addr: range.start as u64, len, site: 0, name: String::new(), at })
}

/// Threads of ours, by their names.
fn own_threads() -> Vec<u32> {
    let all = task::others().into_iter().chain([process::tid()]);
    all.filter(|&tid| task::name(tid).starts_with("nearfar-")).collect()
}

#[cfg(test)]
mod tests;
