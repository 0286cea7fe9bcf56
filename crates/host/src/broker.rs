//! The broker: one small file per job and node, in memory, that the ranks keep their book in (`core::share::Book`).
//!
//! A file of lines that are only ever added, each a JSON object: the header, then events. Whoever changes it holds a lock (flock),
//! which the kernel frees when its holder dies; a line half written is cut off by the next one. Whoever comes first creates it
//! (0600), whoever leaves last removes it; one that nobody will come back to is removed by whoever comes across it.
//! Nothing here waits longer than `PATIENCE`.

use nearfar_core::share::{Book, Event, Process};
use nearfar_sys::private_file::{self, Refusal};
use nearfar_sys::{place, process};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest wait for the lock: it is held for microseconds, unless its holder was stopped.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);
/// Files of other jobs that are looked at when one comes.
const SWEPT: usize = 64;
const PREFIX: &str = "nearfar-ranks";
const FORMAT: &str = "nearfar-broker";
/// Changes when a reader of the old version would misread the new one.
const VERSION: u32 = 1;

/// Where the file is, when not in the usual places.
pub const ENV_DIR: &str = "NEARFAR_RANKS_DIR";

/// What the ranks of one job on one node have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the job, where the launcher gives one.
    pub job: Option<String>,
    /// The process that started the ranks of this node.
    pub launcher: Process,
    /// Ranks on this node; at most so many, when that is not exact.
    pub places: u32,
    /// Whether the number is known.
    #[serde(default = "yes")]
    pub exact: bool,
}

fn yes() -> bool {
    true
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    boot: String,
    #[serde(flatten)]
    identity: Identity,
}

#[derive(Serialize, Deserialize)]
struct Line<R> {
    #[serde(flatten)]
    event: Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<R>,
}

/// Why there is no broker: words for the user.
pub type Trouble = String;

/// The open file and what it said so far. `R` is what a rank tells when it leaves.
pub struct Broker<R> {
    path: PathBuf,
    identity: Identity,
    file: File,
    read: u64,
    book: Book,
    records: Vec<(Process, R)>,
}

/// The broker while nobody else may change it.
pub struct Locked<'a, R>(&'a mut Broker<R>);

/// What became of the launcher that a file names.
enum Owner {
    Lives,
    IsGone,
    OtherBoot,
}

/// Whether `who` runs.
pub fn alive(who: Process) -> bool {
    process::is_alive(who.pid, who.start)
}

/// This boot of this machine: process numbers of another one mean nothing.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The first of the usual places that can be written to; the same for all ranks.
fn dir() -> Result<PathBuf, Trouble> {
    let variable = |name| std::env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if let Some(dir) = variable(ENV_DIR) {
        return Ok(dir);
    }
    let usual = [Some("/dev/shm".into()), variable("XDG_RUNTIME_DIR"), Some("/tmp".into())];
    let mut usable = usual.into_iter().flatten().filter(|dir| dir.is_dir() && place::may_write(dir).is_ok());
    usable.next().ok_or_else(|| {
        format!("none of /dev/shm, XDG_RUNTIME_DIR and /tmp can be written to; set {ENV_DIR} to a directory that can")
    })
}

/// A name that another job of this user does not have. Processes of other process number spaces (containers) could not tell who
/// lives, so that they have other files.
fn file_name(identity: &Identity) -> String {
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let job = identity.job.clone().unwrap_or_else(|| format!("{}-{}", identity.launcher.pid, identity.launcher.start));
    // FNV-1a; the readable part may be cut.
    let all = job.bytes().chain([0]).chain(space.as_os_str().as_encoded_bytes().iter().copied());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let readable: String = job.chars().map(plain).take(40).collect();
    format!("{PREFIX}-{}-{readable}-{hash:016x}", private_file::user())
}

impl<R: Serialize + DeserializeOwned> Broker<R> {
    /// Opens the broker of a job, or begins it.
    pub fn open(identity: Identity) -> Result<Self, Trouble> {
        let dir = dir()?;
        sweep(&dir);
        let path = dir.join(file_name(&identity));
        let file = open_at(&path)?;
        let book = Book::new(identity.places, identity.exact);
        Ok(Self { path, identity, file, read: 0, book, records: Vec::new() })
    }

    /// True when something may have been added since the last lock.
    pub fn has_news(&self) -> bool {
        self.file.metadata().map_or(true, |facts| facts.len() != self.read) || !private_file::is_at(&self.file, &self.path)
    }

    /// Locks it and reads what is new. With `coming`, a file that its ranks are done with, or that is of an earlier boot, is
    /// replaced.
    pub fn lock(&mut self, coming: bool) -> Result<Locked<'_, R>, Trouble> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let locked = private_file::try_lock(&self.file).map_err(|errno| self.trouble(&errno))?;
            if locked && private_file::is_at(&self.file, &self.path) {
                let is_stale = self.read_news().inspect_err(|_| private_file::unlock(&self.file))?;
                if !(coming && (is_stale || self.book.is_over(alive))) {
                    return Ok(Locked(self));
                }
                let _ = std::fs::remove_file(&self.path);
            }
            if locked {
                self.file = open_at(&self.path)?;
                let Identity { places, exact, .. } = self.identity;
                (self.read, self.book, self.records) = (0, Book::new(places, exact), Vec::new());
            }
            if Instant::now() >= deadline {
                return Err(format!("{} is held by another process; is one of the ranks stopped?", self.path.display()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn trouble(&self, why: &dyn std::fmt::Display) -> Trouble {
        format!("{}: {why}", self.path.display())
    }

    /// Takes in what is new, under the lock; begins an empty file. True when the file is of nobody that lives.
    fn read_news(&mut self) -> Result<bool, Trouble> {
        let len = self.file.metadata().map_err(|error| self.trouble(&error))?.len();
        let mut bytes = vec![0; len.saturating_sub(self.read) as usize];
        self.file.read_exact_at(&mut bytes, self.read).map_err(|error| self.trouble(&error))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        if whole < bytes.len() {
            // Its writer was killed.
            self.file.set_len(self.read + whole as u64).map_err(|error| self.trouble(&error))?;
        }
        let mut owner = Owner::Lives;
        let mut lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
        if self.read == 0 {
            match lines.next() {
                Some(line) => owner = self.check_header(line)?,
                None => {
                    let identity = self.identity.clone();
                    let header = Header { format: FORMAT.to_owned(), version: VERSION, boot: boot(), identity };
                    return self.append(&header).map(|()| false);
                }
            }
        }
        self.read += whole as u64;
        for line in lines {
            // What a later version adds is left out.
            let Ok(Line { event, record }) = serde_json::from_slice::<Line<R>>(line) else { continue };
            if let (Event::Left { process }, Some(record)) = (&event, record) {
                self.records.push((*process, record));
            }
            self.book.apply(event);
        }
        Ok(match owner {
            Owner::Lives => false,
            // Ranks may outlive what started them.
            Owner::IsGone => self.book.living(alive).next().is_none(),
            Owner::OtherBoot => true,
        })
    }

    fn check_header(&mut self, line: &[u8]) -> Result<Owner, Trouble> {
        let header = serde_json::from_slice::<Header>(line).ok().filter(|header| header.format == FORMAT);
        let Some(header) = header else { return Err(self.trouble(&"it is not a nearfar file; remove it")) };
        if header.version != VERSION {
            return Err(
                self.trouble(&format_args!("it has version {} (this nearfar has {VERSION}); use one for all", header.version))
            );
        }
        let (identity, own) = (header.identity, &self.identity);
        self.book = Book::new(identity.places, identity.exact);
        Ok(if header.boot != boot() {
            Owner::OtherBoot
        } else if identity.launcher != own.launcher && !alive(identity.launcher) {
            Owner::IsGone
        } else {
            Owner::Lives
        })
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), Trouble> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| self.trouble(&error))?;
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, self.read).map_err(|error| self.trouble(&error))?;
        self.read += bytes.len() as u64;
        Ok(())
    }
}

impl<R: Serialize + DeserializeOwned> Locked<'_, R> {
    /// What is in the book.
    pub fn book(&self) -> &Book {
        &self.0.book
    }

    /// What those who left have told.
    pub fn records(&self) -> &[(Process, R)] {
        &self.0.records
    }

    /// Writes an event.
    pub fn write(&mut self, event: Event, record: Option<R>) -> Result<(), Trouble> {
        let line = Line { event, record };
        self.0.append(&line)?;
        if let (Event::Left { process }, Some(record)) = (&line.event, line.record) {
            self.0.records.push((*process, record));
        }
        self.0.book.apply(line.event);
        Ok(())
    }

    /// Removes the file: everybody has come and left.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.0.path);
    }
}

impl<R> Drop for Locked<'_, R> {
    fn drop(&mut self) {
        private_file::unlock(&self.0.file);
    }
}

fn open_at(path: &Path) -> Result<File, Trouble> {
    private_file::open(path, true).map_err(|why| match why {
        Refusal::Errno(errno) => format!("{}: {errno}", path.display()),
        why => format!("{} is not used: {why}", path.display()),
    })
}

/// Removes files of this user's that are of an earlier boot, or whose launcher and ranks are all gone.
fn sweep(dir: &Path) {
    let prefix = format!("{PREFIX}-{}-", private_file::user());
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    for path in ours.take(SWEPT).map(|entry| entry.path()) {
        let Ok(file) = private_file::open(&path, false) else { continue };
        if !private_file::try_lock(&file).unwrap_or(false) {
            continue;
        }
        let identity = Identity { job: None, launcher: Process { pid: 0, start: 0 }, places: 0, exact: true };
        // What was told is not looked at.
        let mut broker =
            Broker::<serde_json::Value> { path, identity, file, read: 0, book: Book::new(0, true), records: Vec::new() };
        // An empty one is being begun.
        let has_lines = broker.file.metadata().is_ok_and(|facts| facts.len() > 0);
        if has_lines && private_file::is_at(&broker.file, &broker.path) && broker.read_news() == Ok(true) {
            let _ = std::fs::remove_file(&broker.path);
        }
        private_file::unlock(&broker.file);
    }
}
