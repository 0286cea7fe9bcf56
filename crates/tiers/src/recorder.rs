//! Writes down what the pager sees (`nearfar run --trace`): a bounded buffer, and a thread of its own that appends it to the file.
//!
//! The pager waits for nobody: when the buffer is full, records are dropped and counted. What is in the file is whole at every
//! moment (`core::trace`), so that a process may be killed at any time; it loses what it saw in the last `PAUSE_MS`.
//! Owns no decision. Its memory is charged like the pager's other tables.

use nearfar_core::trace::{Batch, Process, Record, encode};
use nearfar_sys::append::AppendFile;
use nearfar_sys::errno::Errno;
use nearfar_sys::event::{Event, now_ns, wait_readable};
use nearfar_sys::{process, thread};
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records that the buffer holds: a tenth of a second of more faults than can be served.
const ROOM: usize = 32 << 10;
/// Records written at once.
const BATCH: usize = 16 << 10;
/// The thread looks at the buffer so often.
const PAUSE_MS: i32 = 50;

struct Queue {
    records: Vec<Record>,
    dropped: u64,
}

/// What the thread works with.
struct Writer {
    spare: Vec<Record>,
    batch: Batch,
    bytes: Vec<u8>,
    failed: bool,
}

/// What the pager and the thread share. The pager holds `queue` for one push, the thread for one swap; the thread holds
/// `writer`, and then `queue`, never the other way round.
struct Shared {
    file: AppendFile,
    event: Event,
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
}

/// The recorder of one process.
pub struct Recorder {
    shared: &'static Shared,
    running: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Records to the file at `path`, which exists and has its header.
    pub fn open(path: &[u8]) -> Result<Self, Errno> {
        let process = Process { pid: process::pid(), since_ns: now_ns() };
        let shared = Shared {
            file: AppendFile::open(OsStr::from_bytes(path))?,
            event: Event::new()?,
            queue: Mutex::new(Queue { records: Vec::with_capacity(ROOM), dropped: 0 }),
            writer: Mutex::new(Writer {
                spare: Vec::with_capacity(ROOM),
                batch: Batch { process, number: 0, dropped: 0, records: Vec::with_capacity(BATCH) },
                bytes: Vec::new(),
                failed: false,
            }),
        };
        // For the life of the process: its thread is never told to end.
        Ok(Self { shared: Box::leak(Box::new(shared)), running: false })
    }

    /// Takes a record; never waits for the file. Called under the lock of `Memory`.
    pub fn push(&mut self, record: Record) {
        let mut queue = lock(&self.shared.queue);
        if queue.records.len() == ROOM {
            queue.dropped += 1;
            return;
        }
        queue.records.push(record);
        let half = queue.records.len() == ROOM / 2;
        drop(queue);
        if half {
            self.shared.event.signal();
        }
        if !self.running {
            let shared = self.shared;
            // Without a thread the buffer fills up, and the rest is counted as dropped.
            self.running = thread::spawn("nearfar-trace", move || shared.write_for_ever()).is_ok();
        }
    }

    /// What is needed to write all that was recorded so far, without the lock of `Memory`.
    pub fn flusher(&self) -> Flusher {
        Flusher(self.shared)
    }

    /// Descriptors that the program must not close.
    pub fn fds(&self) -> [RawFd; 2] {
        [self.shared.file.as_raw_fd(), self.shared.event.as_raw_fd()]
    }

    /// Bytes of the buffers.
    pub fn metadata_bytes(&self) -> usize {
        (2 * ROOM + BATCH) * size_of::<Record>()
    }
}

/// Writes what a recorder holds.
pub struct Flusher(&'static Shared);

impl Flusher {
    /// Returns when all that was recorded before is in the file.
    pub fn flush(self) {
        // As with the lock of `Memory`: a handler that touched paged memory here would wait for the pager, which may be about
        // to record something.
        let _signals = nearfar_sys::signal::Blocked::all();
        thread::go_inside();
        self.0.write_all();
        thread::come_out();
    }
}

impl Shared {
    fn write_for_ever(&self) {
        let mut ready = [false];
        loop {
            nearfar_sys::credentials::follow();
            wait_readable(&[self.event.as_raw_fd()], PAUSE_MS, &mut ready);
            if ready[0] {
                self.event.clear();
            }
            self.write_all();
        }
    }

    fn write_all(&self) {
        let mut writer = lock(&self.writer);
        let Writer { spare, batch, bytes, failed } = &mut *writer;
        {
            let mut queue = lock(&self.queue);
            std::mem::swap(&mut queue.records, spare);
            batch.dropped = queue.dropped;
        }
        for part in spare.chunks(BATCH) {
            if *failed {
                lock(&self.queue).dropped += part.len() as u64;
                continue;
            }
            batch.records.clear();
            batch.records.extend_from_slice(part);
            bytes.clear();
            encode(batch, bytes);
            match self.file.append(bytes) {
                Ok(()) => batch.number += 1,
                Err(errno) => {
                    *failed = true;
                    let pid = process::pid();
                    let text = format!("nearfar: process {pid}: the trace can no longer be written ({errno}); it ends here\n");
                    process::write_stderr(text.as_bytes());
                }
            }
        }
        spare.clear();
    }
}
