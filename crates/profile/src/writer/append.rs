//! What the writer appends to the file: records of the books, sites, code, samples of time, costs.

use super::*;
use nearfar_core::profile::record::{Cost, Source, TimeSamples};
use nearfar_core::profile::thin;

impl Writer {
    /// Appends what there is; `last`: the process ends.
    pub fn write(&mut self, queue: &Queue, sites: &Sites, last: bool) {
        let now = event::now_ns();
        let thin = self.output.thin(OBJECT * self.book.unwritten());
        if thin < Thin::Most {
            for region in self.regions.iter_mut().filter(|region| !region.written) {
                region.written = true;
                self.book.records.push(object(region));
            }
        }
        let mut records = self.book.take(thin, now, last);
        records.extend(self.accesses(now, thin));
        let mut head: Vec<Record> = self.start.take().map(Record::Start).into_iter().collect();
        let mut middle = Vec::new();
        self.new_sites(&records, sites, &mut middle);
        let codes = if thin < Thin::Full { self.new_codes(&records, sites) } else { Vec::new() };
        for module in &self.modules[self.modules_written..] {
            head.push(Record::Module(module.module.clone()));
        }
        self.modules_written = self.modules.len();
        head.extend(self.notes.drain(..).map(|text| Record::Note { text }));
        if self.clock.as_ref().is_some_and(|clock| clock.lost() > 0) && !std::mem::replace(&mut self.overflow_said, true) {
            let text = "time samples were lost while the program kept the recorder waiting: times of routines are slightly low";
            head.push(Record::Note { text: text.to_owned() });
        }
        let lost = queue.lost();
        if lost > self.lost_said {
            self.lost_said = lost;
            head.push(Record::Note {
                text: format!("{lost} allocations and frees could not be recorded: the writer fell behind"),
            });
        }
        if !self.samples.is_empty() && thin < Thin::Full {
            middle.push(Record::Time(self.time(now, thin == Thin::No)));
        }
        self.moments.clear();
        self.written = now;
        head.extend(middle);
        head.extend(codes);
        let whole = thin == Thin::Full && !last;
        if whole {
            self.output.left_out += records.len() as u64;
        } else {
            head.extend(records.into_iter().filter(|record| thin < Thin::Full || matches!(record, Record::Brief(_))));
        }
        self.output.write(self.pid, &head, last && thin == Thin::Full);
        let mut tail = vec![Record::Cost(self.cost(now))];
        if last {
            if self.output.unwritten > 0 {
                let text = format!(
                    "the file could not be written for a while (disk full?): {} records are missing",
                    self.output.unwritten
                );
                tail.push(Record::Note { text });
            }
            tail.push(facts::end());
        }
        self.output.write(self.pid, &tail, last);
    }

    /// What has run since the last write; `when`: with the order in which it ran.
    fn time(&mut self, at: u64, when: bool) -> TimeSamples {
        let samples: Vec<_> = self.samples.drain().map(|((ip, tid), count)| (ip, tid, count)).collect();
        let mut moments = Vec::new();
        if when {
            let index: HashMap<_, _> = samples.iter().enumerate().map(|(at, &(ip, tid, _))| ((ip, tid), at as u32)).collect();
            // The rings of the CPUs come one after the other.
            self.moments.sort_unstable();
            let mut last = self.written;
            for &(at, ip, tid) in &self.moments {
                let spaced = moments.is_empty() || at >= last + MOMENTS_NS;
                if let Some(&which) = index.get(&(ip, tid)).filter(|_| spaced) {
                    moments.push(((at.saturating_sub(last) / 1000) as u32, which));
                    last += at.saturating_sub(last) / 1000 * 1000;
                }
            }
        }
        TimeSamples { at, period_ns: PERIOD_NS, samples, since: self.written, moments }
    }

    /// Takes what the processor has sampled since the last time, and holds `most` of it. What that costs is none of the looks' time.
    pub(super) fn take_samples(&mut self, most: usize) {
        let Some(processor) = &mut self.processor else { return };
        let begun = facts::thread_cpu_ns();
        processor.drain(&mut self.accesses);
        self.accesses_lost += processor.take_lost();
        if self.accesses.len() > most {
            thin::thin(&mut self.accesses, most / 2, &mut self.random);
        }
        if let Some(sampler) = self.sampler {
            sampler.spent_beside(facts::thread_cpu_ns().saturating_sub(begun));
        }
    }

    /// How many samples a write has.
    pub(super) fn samples_kept(&self, thin: Thin) -> usize {
        let most = if self.settings.precise { 4 * SAMPLES } else { SAMPLES };
        match thin {
            Thin::No => most,
            Thin::Small => most / 2,
            Thin::Most => most / 8,
            Thin::Full => 0,
        }
    }

    /// The processor's samples since the last write.
    fn accesses(&mut self, at: u64, how: Thin) -> Option<Record> {
        let most = self.samples_kept(how);
        self.take_samples(most * SAMPLES_HELD);
        let mut samples = std::mem::take(&mut self.accesses);
        let all = samples.len();
        thin::thin(&mut samples, most, &mut self.random);
        if how == Thin::Full {
            self.output.left_out += (all - samples.len()) as u64;
        }
        let lost = std::mem::take(&mut self.accesses_lost);
        (lost > 0 || !samples.is_empty()).then_some(Record::Accesses { at, samples, lost })
    }

    fn cost(&self, at: u64) -> Cost {
        let spent = self.sampler.map(Sampler::cost).unwrap_or_default();
        Cost {
            at,
            cpu_ns: self.cpu_ns + spent.cpu_ns,
            stall_ns: spent.stall_ns,
            hooks_ns: self.hooks_ns,
            watches: spent.watches,
            touched: spent.touched,
            allocations: self.book.allocations,
            left_out: self.output.left_out,
        }
    }

    /// Sites that `records` name for the first time; reads the mappings if one has an address that is in none.
    fn new_sites(&mut self, records: &[Record], sites: &Sites, out: &mut Vec<Record>) {
        let mut strange = false;
        for record in records {
            let id = match record {
                Record::Object(object) => object.site,
                Record::Brief(brief) => brief.site,
                _ => continue,
            } as usize;
            if self.sites_written.len() <= id {
                self.sites_written.resize(id + 1, false);
            }
            if id == 0 || std::mem::replace(&mut self.sites_written[id], true) {
                continue;
            }
            if let Some(site) = sites.site(id as u32) {
                strange |= site.frames.iter().any(|&addr| self.is_strange(addr));
                out.push(Record::Site(site));
            }
        }
        if strange {
            self.read_maps(sites);
        }
    }

    /// True of code in no module, the first time.
    pub(super) fn is_strange(&mut self, addr: u64) -> bool {
        !self.modules.iter().any(|module| module.contains(addr)) && self.unknown.len() < 10_000 && self.unknown.insert(addr)
    }

    /// The code around instructions that were seen for the first time.
    fn new_codes(&mut self, records: &[Record], sites: &Sites) -> Vec<Record> {
        let looked = records.iter().filter_map(|record| if let Record::Watch(watch) = record { Some(watch.ip) } else { None });
        let sampled =
            records.iter().filter_map(|record| if let Record::Accesses { samples, .. } = record { Some(samples) } else { None });
        let mut few = HashSet::new();
        let sampled = sampled.flatten().filter(|access| access.writes || access.source == Source::Memory).map(|access| access.ip);
        let sampled: Vec<u64> =
            sampled.filter(|ip| !self.codes.contains(ip) && few.len() < SAMPLED_CODES && few.insert(*ip)).collect();
        let ips: Vec<u64> =
            looked.chain(sampled).filter(|&ip| ip != 0 && self.codes.len() < 20_000 && self.codes.insert(ip)).collect();
        let strange = ips.iter().filter(|&&ip| self.is_strange(ip)).count() > 0;
        if strange {
            self.read_maps(sites);
        }
        ips.into_iter().filter_map(|ip| self.code(ip)).collect()
    }

    fn code(&self, ip: u64) -> Option<Record> {
        let module = self.modules.iter().find(|module| module.code.iter().any(|code| code.contains(ip as usize)))?;
        let code = module.code.iter().find(|code| code.contains(ip as usize))?;
        let start = (ip.saturating_sub(CODE)).max(code.start as u64);
        let end = (ip + CODE).min(code.end as u64);
        let mut bytes = vec![0; (end - start) as usize];
        // As another process would read it: it may have been unmapped since.
        call_memory::peek(start as usize, &mut bytes).then_some(Record::Code { ip, start, bytes })
    }
}
