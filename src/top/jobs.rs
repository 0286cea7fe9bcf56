//! All jobs of this machine that the caller may see, as they come and go.

use crate::exit::refuse;
use crate::top::inspection::Inspection;
use crate::top::program::Program;
use crate::top::watched::Watched;
use nearfar_host::jobs::{Holder, holders};
use nearfar_sys::process;
use nearfar_sys::root::Root;
use nearfar_tiers::job::view::{Seen, View};
use std::collections::HashMap;
use std::io;

/// For so long a job that has ended stays.
const STAYS_NS: u64 = 10_000_000_000;

/// The jobs, in the order in which they were found.
pub struct Jobs {
    /// Those that run, and those that ended a short while ago.
    pub list: Vec<Watched>,
    /// Commands whose jobs cannot be read, and why.
    pub unreadable: Vec<(u32, String)>,
    root: Root,
    views: HashMap<u64, View>,
    only: Option<u64>,
    inspection: Inspection,
}

/// What `view` shows, without processes that have ended and are not buried yet: another may have their number.
fn read(view: &View) -> io::Result<Seen> {
    let mut seen = view.read()?;
    seen.members.retain(|member| process::is_alive(member.pid, member.start));
    Ok(seen)
}

impl Jobs {
    /// Those that `root` shows.
    pub fn new(root: Root) -> Self {
        let (views, inspection) = (HashMap::new(), Inspection::default());
        Self { list: Vec::new(), unreadable: Vec::new(), root, views, only: None, inspection }
    }

    /// Looks once.
    pub fn look(&mut self, now_ns: u64) {
        self.unreadable.clear();
        let mut held = Vec::new();
        for Holder { pid, path } in holders(&self.root) {
            match View::open(&path) {
                Ok(view) => held.push((pid, view)),
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData || error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.unreadable
                        .push((pid, "it is of another version of nearfar; use the \"nearfar top\" of that version".into()));
                }
                Err(error) => self.unreadable.push((pid, error.to_string())),
            }
        }
        let lives = |job: &Watched| {
            // Processes go on when their command was killed. One without a start could be any process, for ever.
            process::is_alive(job.command, job.command_start)
                || job.seen.members.iter().any(|member| member.start != 0 && process::is_alive(member.pid, member.start))
        };
        for job in self.list.iter_mut().filter(|job| job.ended_ns.is_none()) {
            let seen = self.views.get(&job.id).filter(|_| lives(job)).and_then(|view| read(view).ok());
            match seen {
                Some(seen) => job.update(seen, now_ns),
                None => {
                    job.ended_ns = Some(now_ns);
                    self.views.remove(&job.id);
                }
            }
        }
        for (pid, view) in held {
            let id = view.id();
            let known = self.list.iter().any(|job| job.id == id);
            if known || self.only.is_some_and(|only| only != id) {
                continue;
            }
            if let Ok(seen) = read(&view) {
                self.list.push(Watched::new(id, (pid, process::start_of(pid)), Program::of(&self.root, pid), seen, now_ns));
                self.views.insert(id, view);
            }
        }
        for job in self.list.iter_mut().filter(|job| job.ended_ns.is_none()) {
            let name = |pid: u32| self.root.text(&format!("/proc/{pid}/comm")).unwrap_or_default();
            job.names = job.seen.members.iter().map(|member| name(member.pid)).collect();
        }
        let lives =
            |process| self.list.iter().flat_map(|job| &job.seen.members).any(|member| (member.pid, member.start) == process);
        self.inspection.forget(lives);
        self.list.retain(|job| job.ended_ns.is_none_or(|ended| now_ns.saturating_sub(ended) < STAYS_NS));
    }

    /// Finds out what can be known of the objects of job `id`, unless that was done since the last look.
    pub fn inspect(&mut self, id: u64) {
        let objects = self.list.iter_mut().filter(|job| job.id == id).flat_map(|job| &mut job.objects);
        let unknown = objects.filter(|object| object.name.is_none());
        unknown.for_each(|object| self.inspection.complete(&self.root, object));
    }

    /// From now on only the job of process `pid`.
    ///
    /// # Errors
    /// A refusal when it is in no job.
    pub fn keep_only(&mut self, pid: u32) -> anyhow::Result<()> {
        let parent = process::parent_of(pid);
        let its = |job: &&Watched| job.has(pid) || parent == Some(job.command);
        let Some(job) = self.list.iter().find(its) else {
            let why = match self.unreadable.iter().find(|(command, _)| *command == pid || Some(*command) == parent) {
                Some((_, why)) => format!("process {pid} belongs to a job that cannot be read: {why}"),
                None if !process::exists(pid) => format!("there is no process {pid}"),
                None => format!(
                    "process {pid} belongs to no job that you may see; \"nearfar top --once\" lists those there are (as root: of all users)"
                ),
            };
            return Err(refuse(format_args!("--pid {pid}: {why}")));
        };
        let id = job.id;
        self.only = Some(id);
        self.list.retain(|job| job.id == id);
        self.views.retain(|&other, _| other == id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::stats::Counter;
    use nearfar_tiers::job::{Job, Settings};
    use std::process::{Command, Stdio};

    #[test]
    fn jobs_come_and_go() {
        let (job, fd) = Job::create(Settings::new(4 << 20, "/var/tmp").expect("short path")).expect("memfd");
        let slot = job.join().expect("slot");
        // A process that holds the segment as its standard input: the command that will end.
        let mut command = Command::new("sleep").arg("60").stdin(Stdio::from(fd)).spawn().expect("starts");
        // Of all processes of this machine this one alone.
        let root = Root::captured(&format!("--- /proc/{}/fd/0 /memfd:nearfar-job (deleted)\n", command.id())).expect("a capture");
        let mut jobs = Jobs::new(root);
        jobs.look(0);
        slot.add(Counter::BytesIn, 500);
        jobs.look(1_000_000_000);
        let [watched] = jobs.list.as_slice() else { panic!("{} jobs", jobs.list.len()) };
        assert_eq!((watched.command, watched.pid()), (command.id(), std::process::id()));
        assert_eq!(watched.rates.as_ref().and_then(|rates| rates.in_bytes_per_s), Some(500.0));
        assert!(jobs.keep_only(1).is_err_and(|error| error.to_string().contains("--pid 1: process 1 belongs to no job")));
        assert!(jobs.keep_only(command.id()).is_ok() && jobs.list.len() == 1);
        command.kill().expect("killed");
        command.wait().expect("waited for");
        jobs.look(2_000_000_000);
        assert!(jobs.list[0].ended_ns.is_none(), "a process of the job goes on: this one");
        job.bury_own_past();
        jobs.look(3_000_000_000);
        assert_eq!(jobs.list[0].ended_ns, None, "its end is seen at the next look");
        jobs.look(4_000_000_000);
        assert_eq!((jobs.list[0].ended_ns, jobs.list[0].history.len()), (Some(4_000_000_000), 3));
        jobs.look(13_900_000_000);
        assert_eq!(jobs.list.len(), 1, "it stays for a while");
        jobs.look(14_000_000_000);
        assert!(jobs.list.is_empty() && jobs.views.is_empty());
    }
}
