//! Far memory behind one trait. A new backend is one new file and one line in `open`; variants of all are wrappers.

pub mod emulated;
pub mod encrypted;
pub mod faulty;
pub mod file;

use crate::job::Settings;
use nearfar_sys::errno::Errno;
use nearfar_sys::io::{Done, Piece};
use std::os::fd::RawFd;

/// Secures bytes `from..to` of a store, on any thread.
pub type Securer = Box<dyn FnOnce(u64, u64) -> Result<(), Errno> + Send>;

/// Stores that a process can have: its own, and those of the ancestors that forked it.
pub type StoreId = u8;

/// Far memory: reads and writes at offsets of a store, asynchronously.
///
/// A process writes only to its own store. After fork, the child's stores of before can still be read.
pub trait Backend: Send {
    /// Queues a read or write of `pieces` at `offset` of `store`. The memory stays as it is until the completion.
    fn submit(&mut self, token: u64, write: bool, store: StoreId, offset: u64, pieces: Vec<Piece>);
    /// Starts what was queued.
    fn flush(&mut self);
    /// Moves completions into `out`; never blocks.
    fn completions(&mut self, out: &mut Vec<Done>);
    /// Readable when completions may have arrived.
    fn wait_fd(&self) -> RawFd;
    /// Makes sure that the own store has space for bytes `from..to`.
    fn secure(&mut self, from: u64, to: u64) -> Result<(), Errno>;
    /// The same as something that another thread can do meanwhile. `None` when securing takes no time.
    fn securer(&self) -> Option<Securer> {
        None
    }
    /// Bytes beyond those secured that could be had now, as far as one can know.
    fn free_bytes(&self) -> u64 {
        u64::MAX
    }
    /// Before a fork: gets the store that the child will have, with `bytes` secured, so that the fork can be refused.
    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno>;
    /// In the parent after a fork, or when there was none: what was prepared is not ours.
    fn forget_child(&mut self);
    /// Gives the space of bytes of the own store back.
    fn discard(&mut self, offset: u64, len: u64);
    /// Reads or writes `piece` at `offset` of `store`, waiting for it; all of it has moved when it returns.
    fn move_now(&mut self, write: bool, store: StoreId, offset: u64, piece: Piece) -> Result<(), Errno>;
    /// The store that this process writes.
    fn own(&self) -> StoreId;
    /// In the child of a fork: all stores so far become read-only, and a new own store begins. Returns the bytes that were
    /// secured there by `prepare_child`.
    fn after_fork(&mut self) -> Result<u64, Errno>;
    /// What it is, for messages: a directory, or the emulated speed.
    fn describe(&self) -> String;
    /// Descriptors that the program must not close.
    fn fds(&self) -> Vec<RawFd>;
    /// Near memory that it takes for itself, in bytes.
    fn near_bytes(&self) -> usize {
        0
    }
    /// Bytes by which that may soon grow at once.
    fn near_step(&self) -> usize {
        0
    }
}

/// Opens the backend that the settings name.
pub fn open(settings: &Settings) -> Result<Box<dyn Backend>, Errno> {
    let mut backend: Box<dyn Backend> = if settings.emulated {
        Box::new(emulated::Emulated::new(settings.emu_bytes_per_s, settings.emu_latency_ns)?)
    } else {
        Box::new(file::FileStore::new(settings)?)
    };
    if settings.faults.any() {
        backend = Box::new(faulty::Faulty::new(backend, settings.faults)?);
    }
    if settings.encrypt {
        // Outside of what fails: a byte that changes on the device is one of the encrypted.
        backend = Box::new(encrypted::Encrypted::new(backend, settings.near_bytes)?);
    }
    Ok(backend)
}
