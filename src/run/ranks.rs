//! A run that is one rank of many: its share of the node's near, the names of its files, and one report for all ranks of the node.
//!
//! The broker (`nearfar_host::broker`) is a help, never a condition: where it cannot be used, or answers too late, a rank takes the even part
//! that it can work out alone, says so, and reports alone.

use crate::cli::run::RunArgs;
use crate::exit::refuse;
use crate::files::output::OutputFile;
use crate::files::rank_name::{add, host, is_special, plain, rank_suffix, with_marks};
use crate::machine;
use crate::run::account::{Account, RankRecord};
use crate::run::outcome::Outcome;
use crate::run::paging::MIN_NEAR;
use crate::run::request::RunRequest;
use crate::ui::message;
use nearfar_core::addr::{CHUNK, PAGE};
use nearfar_core::share::{Book, Claim, Event, Member, NODE_NAME, NewRank, Process, divide, member_of};
use nearfar_core::units::Bytes;
use nearfar_host::broker::{Broker, Identity, Locked, alive};
use nearfar_sys::process;
use nearfar_sys::zones::total_bytes;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a rank waits for the others of its node to come, so that all know what all ask for. Ranks of MPI wait for each other
/// in MPI_Init anyway.
const WAIT: Duration = Duration::from_secs(2);
/// Where nobody knows how many will come: when none has come for so long, these are all.
const QUIET: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(5);

const NOBODY_HOLDS: &str =
    "the ranks' shares of near are not enforced: nothing can be preloaded, and the kernel gives near to whoever asks first";

/// `Placement::cache_ppm` of cache mode.
const ALL_PPM: u32 = 1_000_000;

/// A rank before it has come to the broker.
pub struct Rank {
    member: Member,
    claim: Claim,
    launcher: Process,
    host: String,
    /// Where statistics go when the broker cannot be used: a name of this rank's own.
    own_stats: Option<PathBuf>,
}

/// A rank that has its share.
pub struct Ranked {
    rank: Rank,
    broker: Option<Broker<RankRecord>>,
    come: NewRank,
    near_bytes: u64,
    quiet: bool,
    told: bool,
}

/// What is left to write when a rank has left: figures of those who name the same `--stats`, and of all.
#[derive(Default)]
struct Parting {
    same_stats: Option<Account>,
    all: Option<Account>,
}

/// Writes a run file to a target.
type Write<'a> = &'a dyn Fn(&Account, &OutputFile);

/// Puts host and rank into the names of files, and finds out which rank this is; `None` when it is not one of many.
pub fn prepare(mut args: RunArgs) -> anyhow::Result<(RunArgs, Option<Rank>)> {
    let claim = args.share;
    // Variables that are not UTF-8 are not a launcher's.
    let environment: Vec<(String, String)> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
    let mut member = member_of(|wanted| environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str()));
    let launcher = member.as_ref().map(launcher);
    let node = member.as_ref().and_then(|member| member.node.clone().or_else(|| node_of(launcher?)));
    if let (Some(job), Some(node)) = (member.as_mut().and_then(|member| member.job.as_mut()), &node) {
        // One host may be several nodes, each with its near.
        *job = format!("{job}.{node}");
    }
    let host = node.map_or_else(host, |node| plain(&node));
    let number = member.as_ref().map_or(0, |member| member.rank.number);
    let own_name = |path: &Path| match with_marks(path, &host, number) {
        (path, true) => path,
        (path, false) => add(&path, &rank_suffix(&host, member.as_ref())),
    };
    let own_stats = args.stats.as_deref().map(own_name);
    // Processes of one run append to one trace; ranks have one each.
    let trace = args.trace.take();
    args.trace = trace.map(|path| if member.is_some() { own_name(&path) } else { with_marks(&path, &host, number).0 });
    args.stats = args.stats.map(|path| {
        let several_nodes = member.as_ref().is_some_and(Member::on_several_nodes);
        let names_host = path.as_os_str().as_bytes().windows(2).any(|pair| pair == b"%h");
        let (named, names_rank) = with_marks(&path, &host, number);
        if several_nodes && !names_host && !names_rank && !is_special(&named) { add(&named, &format!(".{host}")) } else { named }
    });
    Ok((args, member.zip(launcher).map(|(member, launcher)| Rank { member, claim, launcher, host, own_stats })))
}

impl Rank {
    /// Comes to the broker of the node and changes `request` to this rank's share.
    pub fn join(self, request: &mut RunRequest) -> anyhow::Result<Ranked> {
        let whole = whole(request);
        let (places, exact) = self.member.places(cpus());
        let local = self.member.local;
        let even = divide(whole, &vec![Claim::Fair; places as usize]);
        let even =
            even.get(local.unwrap_or(0) as usize).copied().unwrap_or(whole / u64::from(places) / PAGE as u64 * PAGE as u64);
        self.check(request, whole, places, self.claim.asked(whole).unwrap_or(even))?;
        let pid = process::pid();
        let me = Process { pid, start: process::start_of(pid) };
        let mut come = NewRank {
            process: me,
            rank: self.member.rank.number,
            place: local.unwrap_or(0),
            extra: false,
            near: whole,
            claim: self.claim,
            stats: request.stats.as_ref().map(|target| target.path().to_string_lossy().into_owned()),
        };
        let identity = Identity { job: self.member.job.clone(), launcher: self.launcher, places, exact };
        let meeting = Broker::open(identity).and_then(|mut broker| {
            let got = meet(&mut broker, &mut come, local, exact)?;
            Ok((broker, got))
        });
        let mut ranked = Ranked { rank: self, broker: None, come, near_bytes: even, quiet: request.quiet, told: false };
        let first = ranked.come.place == 0 && !ranked.come.extra;
        match meeting {
            Ok((broker, (got, words))) => {
                ranked.broker = Some(broker);
                ranked.near_bytes = match (ranked.come.claim, got) {
                    (Claim::Off, _) => whole,
                    (_, Some(bytes)) if !ranked.come.extra || bytes >= MIN_NEAR => bytes,
                    _ => {
                        ranked.say(format_args!(
                            "runs more than one nearfar at a time, and the node's near is all given out: this one uses {} more",
                            Bytes(even)
                        ));
                        even
                    }
                };
                if first {
                    request.notes.push(words);
                } else {
                    request.notes.clear();
                    request.live = false;
                }
            }
            Err(why) => {
                ranked.near_bytes = if ranked.come.claim == Claim::Off { whole } else { even };
                ranked.say(format_args!(
                    "the ranks of this node cannot be coordinated ({why}): near is {}, an even part for {places} ranks, \
                     and this rank reports alone",
                    Bytes(ranked.near_bytes)
                ));
                request.stats = ranked.rank.own_stats.clone().map(|path| OutputFile::new("--stats", path)).transpose()?;
                if local.unwrap_or(ranked.come.rank) != 0 {
                    request.notes.clear();
                }
            }
        }
        ranked.rank.check(request, whole, places, ranked.near_bytes)?;
        if request.settings.placement.is_numa() {
            request.settings.placement.near_limit = ranked.near_bytes;
            let claim = ranked.come.claim;
            let shared = claim != Claim::Off && places > 1;
            let not_held = match &mut request.migration {
                Some(migration) => {
                    migration.limit_near(ranked.near_bytes);
                    migration.not_held()
                }
                None => request.library.is_none().then(|| NOBODY_HOLDS.to_owned()),
            };
            // What is said of a limit is said already, and by the first of the node for all.
            let news = not_held.filter(|note| shared && first && !request.notes.contains(note));
            request.notes.extend(news);
        } else {
            request.settings.near_bytes = ranked.near_bytes;
            ranked.keep_a_cache(request)?;
        }
        Ok(ranked)
    }

    /// Refuses a share that nothing can be done with.
    fn check(&self, request: &RunRequest, whole: u64, places: u32, share: u64) -> anyhow::Result<()> {
        let rank = self.member.rank.number;
        if self.claim == Claim::Off {
            let placement = &request.settings.placement;
            let (have, whose) = if placement.is_numa() {
                (placement.near.iter().filter_map(total_bytes).sum(), format!("nodes {}", placement.near))
            } else {
                (machine::memory_limit().bytes, "this machine's memory".to_owned())
            };
            return too_much_together(whole, places, have, &whose)
                .map_or(Ok(()), |why| Err(refuse(format_args!("rank {rank}: {why}"))));
        }
        if share < MIN_NEAR {
            return Err(refuse(format_args!(
                "rank {rank}: --near is for all {places} ranks of this node together; its share of {} is {}, which is too little to \
                 work with: write {} or more",
                Bytes(whole),
                Bytes(share),
                Bytes(MIN_NEAR * u64::from(places)).exact()
            )));
        }
        let window = u64::from(request.settings.trace_window) * CHUNK as u64;
        if window > share / 2 {
            return Err(refuse(format_args!(
                "rank {rank}: --trace-window is {}, more than half of this rank's share of near, {}",
                Bytes(window),
                Bytes(share)
            )));
        }
        Ok(())
    }
}

/// Comes, waits for the others for a while, and gets a share; with words on what all got.
fn meet(
    broker: &mut Broker<RankRecord>,
    come: &mut NewRank,
    local: Option<u32>,
    exact: bool,
) -> Result<(Option<u64>, String), String> {
    let me = come.process;
    let mut locked = broker.lock(true)?;
    (come.place, come.extra) = locked.book().place_for(local, alive);
    locked.write(Event::NewRank(come.clone()), None)?;
    if locked.book().divided().is_some() {
        let bytes = locked.book().due_to_late(me, alive);
        if let Some(bytes) = bytes {
            locked.write(Event::Got { process: me, bytes }, None)?;
        }
        return Ok((bytes, words(locked.book(), come)));
    }
    let begin = Instant::now();
    let mut last_news = begin;
    loop {
        let (waited, quiet) = (begin.elapsed(), last_news.elapsed());
        let enough = waited >= WAIT || (exact && locked.book().all_came()) || (!exact && quiet >= QUIET);
        if locked.book().divided().is_none() && enough {
            let division = locked.book().division();
            locked.write(division, None)?;
        }
        if locked.book().divided().is_some() {
            let own = locked.book().guests().iter().rev().find(|guest| guest.come.process == me);
            let mut got = own.and_then(|guest| guest.got);
            if come.extra {
                got = locked.book().due_to_late(me, alive);
                if let Some(bytes) = got {
                    locked.write(Event::Got { process: me, bytes }, None)?;
                }
            }
            return Ok((got, words(locked.book(), come)));
        }
        drop(locked);
        let nap = Instant::now();
        while !broker.has_news() && begin.elapsed() < WAIT && (exact || nap.elapsed() < QUIET) {
            std::thread::sleep(POLL);
        }
        if broker.has_news() {
            last_news = Instant::now();
        }
        locked = broker.lock(false)?;
    }
}

/// What all ranks of the node got, in a line.
fn words(book: &Book, come: &NewRank) -> String {
    if come.claim == Claim::Off {
        return format!("--share off: every rank has {} of near for itself", Bytes(come.near));
    }
    let Some((whole, shares)) = book.divided() else { return String::new() };
    let (least, most) = (shares.iter().min().copied().unwrap_or(0), shares.iter().max().copied().unwrap_or(0));
    let each = if most - least <= PAGE as u64 {
        format!("{} each", Bytes(least))
    } else {
        shares.iter().map(|&share| Bytes(share).to_string()).collect::<Vec<_>>().join(", ")
    };
    let here = shares.len()
        - (0..shares.len()).filter(|place| !book.guests().iter().any(|guest| guest.come.place as usize == *place)).count();
    let waiting =
        if here < shares.len() { format!(" ({here} have started; the rest is kept for the others)") } else { String::new() };
    format!("near {} of this node is shared by {} ranks: {each}{waiting}", Bytes(*whole), shares.len())
}

impl Ranked {
    fn say(&self, words: std::fmt::Arguments<'_>) {
        if !self.quiet {
            message::line(format_args!("rank {}: {words}", self.come.rank));
        }
    }

    /// In flat and hybrid mode a part of near is cache, which has a least size: of a smaller near it may be a larger part.
    fn keep_a_cache(&self, request: &mut RunRequest) -> anyhow::Result<()> {
        let placement = &mut request.settings.placement;
        let cache = |ppm: u32| u128::from(self.near_bytes) * u128::from(ppm) / u128::from(ALL_PPM);
        if placement.cache_ppm == ALL_PPM || cache(placement.cache_ppm) >= u128::from(MIN_NEAR) {
            return Ok(());
        }
        if self.near_bytes < 2 * MIN_NEAR {
            return Err(refuse(format_args!(
                "rank {}: its share of near is {}, too little for a cache and placed objects, {} each: write more for --near",
                self.come.rank,
                Bytes(self.near_bytes),
                Bytes(MIN_NEAR).exact()
            )));
        }
        placement.cache_ppm = (MIN_NEAR * u64::from(ALL_PPM)).div_ceil(self.near_bytes) as u32;
        Ok(())
    }

    fn record(&self, program: &Path) -> RankRecord {
        let (rank, pid) = (self.come.rank, self.come.process.pid);
        let (host, program) = (self.rank.host.clone(), program.to_string_lossy().into_owned());
        RankRecord { rank, host, pid, program, near_bytes: self.near_bytes, ..RankRecord::default() }
    }

    /// Hands this rank's figures to the others. `write` is called with those of all ranks that name the same `--stats` by the last
    /// of them, `tell` with those of all by the last of all.
    pub fn leave(mut self, request: &RunRequest, outcome: Outcome, write: Write<'_>, tell: &dyn Fn(&Account)) {
        self.told = true;
        let target = request.stats.as_ref();
        let alone = Account::alone(outcome, self.near_bytes);
        let Some(mut broker) = self.broker.take() else {
            tell(&alone);
            target.inspect(|target| write(&alone, target));
            return;
        };
        let record = self.record(&request.program).with(&alone.outcome);
        let left = broker.lock(false).and_then(|locked| self.leave_locked(locked, record));
        let why = match left {
            // The lock is free again: files and terminals may be slow.
            Ok(Parting { same_stats, all }) => {
                same_stats.zip(target).inspect(|(same, target)| write(same, target));
                return all.as_ref().map_or((), tell);
            }
            Err(why) => why,
        };
        self.say(format_args!("the figures of the other ranks cannot be read ({why}): these are of this rank alone"));
        tell(&alone);
        // Under a name of its own: the others write theirs.
        let own = self.rank.own_stats.clone().map(|path| OutputFile::new("--stats", path)).transpose();
        match own {
            Ok(target) => drop(target.inspect(|target| write(&alone, target))),
            Err(error) => message::line(format_args!("{error:#}")),
        }
    }

    /// Leaves, and takes along what the last one has to write; the lock ends here.
    fn leave_locked(&self, mut locked: Locked<'_, RankRecord>, record: RankRecord) -> Result<Parting, String> {
        let process = self.come.process;
        if !locked.book().guests().iter().any(|guest| guest.come.process == process) {
            // Somebody removed the file meanwhile, as some systems do at the end of a session.
            locked.write(Event::NewRank(self.come.clone()), None)?;
        }
        locked.write(Event::Left { process }, Some(record))?;
        let book = locked.book();
        let same = |come: &NewRank| come.stats == self.come.stats;
        let mut parting = Parting::default();
        if !book.living(alive).any(|guest| same(&guest.come)) {
            parting.same_stats = Some(self.together(&locked, same));
        }
        if book.living(alive).next().is_none() {
            parting.all = Some(self.together(&locked, |_| true));
        }
        if book.is_over(alive) {
            locked.remove();
        }
        Ok(parting)
    }

    /// The figures of those who were `wanted`; of who left without a word, that it did.
    fn together(&self, locked: &Locked<'_, RankRecord>, wanted: impl Fn(&NewRank) -> bool) -> Account {
        let of = |process: Process| locked.records().iter().find(|(of, _)| *of == process).map(|(_, record)| record.clone());
        let lost = |come: &NewRank, got: Option<u64>| RankRecord {
            rank: come.rank,
            host: self.rank.host.clone(),
            pid: come.process.pid,
            near_bytes: got.unwrap_or(0),
            lost: true,
            ..RankRecord::default()
        };
        let guests = locked.book().guests().iter().filter(|guest| wanted(&guest.come));
        // One that left without figures had nothing to tell: its program was not started.
        let known =
            guests.filter_map(|guest| of(guest.come.process).or_else(|| (!guest.left).then(|| lost(&guest.come, guest.got))));
        Account::of(known.collect())
    }
}

impl Drop for Ranked {
    /// The program was not started: nobody waits for its figures.
    fn drop(&mut self) {
        let Some(broker) = self.broker.as_mut().filter(|_| !self.told) else { return };
        let Ok(mut locked) = broker.lock(false) else { return };
        let written = locked.write(Event::Left { process: self.come.process }, None);
        if written.is_ok() && locked.book().is_over(alive) {
            locked.remove();
        }
    }
}

/// Why each of `places` ranks cannot have a near of `whole` for itself, of `have` that `whose` is.
fn too_much_together(whole: u64, places: u32, have: u64, whose: &str) -> Option<String> {
    let all = whole.saturating_mul(u64::from(places));
    (all > have).then(|| {
        format!(
            "with --share off each of {places} ranks has a near of {}, which is {} together and more than there is of {whose} ({}); write \
             less for --near",
            Bytes(whole),
            Bytes(all),
            Bytes(have)
        )
    })
}

/// Bytes of near that this node's ranks share.
fn whole(request: &RunRequest) -> u64 {
    let placement = &request.settings.placement;
    if !placement.is_numa() {
        return request.settings.near_bytes;
    }
    placement.near_limit.min(placement.near.iter().filter_map(total_bytes).sum())
}

/// Processors of the machine, also those that this rank may not use.
fn cpus() -> u32 {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count().max(1) as u32
}

/// The process that started the ranks of this node: the nearest ancestor that is not this rank itself (a shell, a wrapper), which
/// is seen from its environment.
fn launcher(member: &Member) -> Process {
    let mark = format!("{}={}", member.rank.source, member.rank.number);
    let is_rank = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|pair| pair == mark.as_bytes())
    };
    let mut pid = std::os::unix::process::parent_id();
    while is_rank(pid) {
        match process::parent_of(pid) {
            Some(parent) => pid = parent,
            None => break,
        }
    }
    Process { pid, start: process::start_of(pid) }
}

/// What Slurm calls the node on which it started `launcher`.
fn node_of(launcher: Process) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{}/environ", launcher.pid)).ok()?;
    let pairs = environment.split(|&byte| byte == 0).filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
    pairs.filter(|(name, value)| *name == NODE_NAME && !value.is_empty()).map(|(_, value)| value.to_owned()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_for_each_must_fit() {
        assert_eq!(too_much_together(1 << 30, 4, 4 << 30, "nodes 1"), None);
        let why = too_much_together(4 << 30, 2, 4 << 30, "nodes 1").expect("refused");
        assert!(why.contains("8.0 GiB together") && why.contains("nodes 1 (4.0 GiB)"), "{why}");
        assert!(too_much_together(u64::MAX, 2, 4 << 30, "nodes 1").is_some());
    }

    #[test]
    fn this_machine() {
        assert!(cpus() >= 1 && !host().contains('/') && !host().is_empty());
        let stranger = Member::default();
        assert_eq!(launcher(&stranger).pid, std::os::unix::process::parent_id());
    }
}
