//! A job segment as somebody sees it who does not belong to the job: `nearfar top`.
//!
//! It is read as a file, not mapped, and plain numbers alone are taken from it: the segment may be another user's, who could have
//! written anything there and may cut it short at any time. Nothing of the job is changed. What is past is read before the slots of
//! the processes: one that is buried in between is in neither, so sums can be too low for a moment, and never too high.

use super::objects::{Object, Objects};
use super::{Header, MAGIC, PATH_BYTES, Settings, Slot};
use crate::ledger::{Account, Ledger};
use nearfar_core::addr::PAGE;
use nearfar_core::placement::NodeSet;
use nearfar_core::stats::{COUNTERS, Snapshot};
use nearfar_sys::shared::Shared;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

/// An open segment. It stays readable when the job has ended.
#[derive(Debug)]
pub struct View {
    file: File,
    id: u64,
}

/// A job at one moment.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Near memory for all processes together, in bytes.
    pub near_bytes: u64,
    /// Near memory that the processes have charged, in bytes.
    pub near_used_bytes: u64,
    /// Directory of the spill files; empty without.
    pub far_dir: String,
    /// Bandwidth (bytes per second) and latency (ns) of emulated far memory.
    pub emulated: Option<(u64, u64)>,
    /// Nodes of near; empty when memory is paged.
    pub near_nodes: NodeSet,
    /// Nodes of far.
    pub far_nodes: NodeSet,
    /// The kernel pages.
    pub kernel_paging: bool,
    /// Pages that are brought around one that is asked for; 0: learned.
    pub grain_pages: u32,
    /// Counters of the whole job, past processes included.
    pub counters: Snapshot,
    /// Processes that could not be managed.
    pub unmanaged: u64,
    /// The processes.
    pub members: Vec<Member>,
}

/// A process of the job.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the machine did.
    pub start: u64,
    /// Near memory that it has charged, in bytes.
    pub near_used_bytes: u64,
    /// Its counters.
    pub counters: Snapshot,
    /// Its large objects.
    pub objects: Vec<Object>,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn half_word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn flag(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|&byte| byte != 0)
}

fn nodes(bytes: &[u8], at: usize) -> NodeSet {
    let words = (0..size_of::<NodeSet>() / 8).map(|index| word(bytes, at + index * 8));
    let bits =
        words.enumerate().flat_map(|(index, word)| (0..64).map(move |bit| (index as u32 * 64 + bit, word >> bit & 1 == 1)));
    bits.filter(|(_, set)| *set).map(|(node, _)| node).collect()
}

fn counters(bytes: &[u8], at: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for &counter in COUNTERS {
        snapshot.set(counter, word(bytes, at + counter as usize * 8));
    }
    snapshot
}

/// The device that the kernel shows for files in memory that have no name: that of a segment of our own.
fn memory_device() -> io::Result<u64> {
    static DEVICE: OnceLock<u64> = OnceLock::new();
    if let Some(&device) = DEVICE.get() {
        return Ok(device);
    }
    let (_, own) = Shared::create(c"nearfar-view", PAGE).map_err(|error| io::Error::from_raw_os_error(error.0))?;
    let device = File::from(own).metadata()?.dev();
    Ok(*DEVICE.get_or_init(|| device))
}

impl View {
    /// Opens the segment behind `path`, such as `/proc/4711/fd/3`.
    ///
    /// # Errors
    /// Those of opening and reading; `InvalidData` when it is not of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Another file may stand there by now, which its owner may not open and we may: a device that does something when it is opened,
        // or a file of a system of his own that never answers. So it is looked at first, and what was looked at is opened.
        let place = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
        let facts = place.metadata()?;
        if !facts.is_file() || facts.nlink() != 0 || facts.dev() != memory_device()? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
        let id = facts.ino();
        let view = Self { file, id };
        view.header().map(|_| view)
    }

    /// A number that no other segment of this machine has while this one is open.
    pub fn id(&self) -> u64 {
        self.id
    }

    fn header(&self) -> io::Result<Vec<u8>> {
        let header = self.bytes(0, size_of::<Header>())?;
        match word(&header, offset_of!(Header, magic)) {
            MAGIC => Ok(header),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn bytes(&self, at: usize, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at as u64)?;
        Ok(bytes)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of reading; `InvalidData` when it is not of this version any more.
    pub fn read(&self) -> io::Result<Seen> {
        let header = self.header()?;
        let settings = &header[offset_of!(Header, settings)..][..size_of::<Settings>()];
        let far_len = half_word(settings, offset_of!(Settings, far_dir_len)) as usize;
        let far_dir = &settings[offset_of!(Settings, far_dir)..][..far_len.min(PATH_BYTES)];
        let ledger = &header[offset_of!(Header, ledger)..][..size_of::<Ledger>()];
        let mut seen = Seen {
            near_bytes: word(settings, offset_of!(Settings, near_bytes)),
            near_used_bytes: Ledger::total_in(ledger) * PAGE as u64,
            far_dir: String::from_utf8_lossy(far_dir).into_owned(),
            emulated: flag(settings, offset_of!(Settings, emulated)).then(|| {
                (word(settings, offset_of!(Settings, emu_bytes_per_s)), word(settings, offset_of!(Settings, emu_latency_ns)))
            }),
            near_nodes: nodes(settings, offset_of!(Settings, placement.near)),
            far_nodes: nodes(settings, offset_of!(Settings, placement.far)),
            kernel_paging: flag(settings, offset_of!(Settings, kernel_paging)),
            grain_pages: half_word(settings, offset_of!(Settings, grain_pages)),
            counters: counters(&header, offset_of!(Header, past)),
            unmanaged: word(&header, offset_of!(Header, lost)),
            members: Vec::new(),
        };
        for index in Ledger::alive_in(ledger) {
            let slot = self.bytes(size_of::<Header>() + index * size_of::<Slot>(), size_of::<Slot>())?;
            let account = &slot[offset_of!(Slot, account)..][..size_of::<Account>()];
            let Some((pid, start, pages)) = Account::owner_in(account) else { continue };
            let counters = counters(&slot, offset_of!(Slot, counters));
            seen.counters.combine(&counters, true);
            // After an exec a process may have two slots for a moment.
            seen.members.retain(|other| other.pid != pid);
            let objects = Objects::in_bytes(&slot[offset_of!(Slot, objects)..][..size_of::<Objects>()]);
            seen.members.push(Member { pid, start, near_used_bytes: pages * PAGE as u64, counters, objects });
        }
        seen.members.sort_by_key(|member| (member.start, member.pid));
        Ok(seen)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::Job;
    use nearfar_core::addr::Extent;
    use nearfar_core::stats::Counter;
    use std::path::PathBuf;

    fn path_of(fd: &impl AsRawFd) -> PathBuf {
        format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
    }

    #[test]
    fn a_job_from_outside() {
        let mut settings = Settings::new(100 * 4096, "/var/tmp").expect("short path");
        (settings.grain_pages, settings.emulated, settings.emu_bytes_per_s) = (16, true, 7);
        settings.placement.far.insert(70);
        let (job, fd) = Job::create(settings).expect("memfd");
        let view = View::open(&path_of(&fd)).expect("of this version");
        let slot = job.join().expect("slot");
        assert!(job.try_charge(slot, 90));
        slot.add(Counter::FaultsDemand, 3);
        slot.set(Counter::FarUsed, 5);
        slot.objects().begin(Extent::new(1 << 30, 1 << 20), 77);
        let seen = view.read().expect("read");
        assert_eq!((seen.near_bytes, seen.near_used_bytes, seen.far_dir.as_str()), (100 * 4096, 90 * 4096, "/var/tmp"));
        assert_eq!((seen.grain_pages, seen.emulated, seen.kernel_paging), (16, Some((7, 0)), false));
        assert_eq!((seen.near_nodes.len(), seen.far_nodes.iter().collect::<Vec<_>>()), (0, vec![70]));
        let [member] = seen.members.as_slice() else { panic!("one process: {seen:?}") };
        assert_eq!((member.pid, member.near_used_bytes), (std::process::id(), 90 * 4096));
        assert_eq!((seen.counters.get(Counter::FaultsDemand), seen.counters.get(Counter::FarUsed)), (3, 5));
        assert_eq!(member.objects, [Object { start: 1 << 30, bytes: 1 << 20, site: 77, number: 1, ..Object::default() }]);
        job.bury_own_past();
        let seen = view.read().expect("read");
        assert_eq!((seen.members.len(), seen.counters.get(Counter::FaultsDemand), seen.near_used_bytes), (0, 3, 0));
        assert_eq!(seen.counters.get(Counter::FarUsed), 0, "a gauge ends with its process");
        assert_eq!(slot.objects().list(), []);
        assert_eq!(seen.counters, job.snapshot().0);
    }

    #[test]
    fn what_is_no_job_of_this_version() {
        let (job, fd) = Job::create(Settings::new(4096, "/").expect("short path")).expect("memfd");
        let view = View::open(&path_of(&fd)).expect("of this version");
        job.header().magic.store(MAGIC + 1, std::sync::atomic::Ordering::Release);
        assert_eq!(View::open(&path_of(&fd)).expect_err("another version").kind(), io::ErrorKind::InvalidData);
        assert_eq!(view.read().expect_err("another version").kind(), io::ErrorKind::InvalidData);
        // A file with a name, and one of another file system without.
        let other = File::open("/proc/self/exe").expect("this program");
        for other in ["/dev/null", "/proc/self/comm", "/nonexistent", &path_of(&other).to_string_lossy()] {
            assert!(View::open(Path::new(other)).is_err(), "{other}");
        }
    }
}
