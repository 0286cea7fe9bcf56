//! Encrypts what goes to far and decrypts what comes back, over any backend.
//!
//! Frames in limbo stay as the program left them, so writes go by way of bounce buffers, which hold nothing but encrypted
//! bytes; reads are decrypted in the frame where they arrive, before anybody looks at it. Both in the pager's thread.
//!
//! Each store has a key of its own, random, in memory only, and gone with the last process that has it. A child of a fork
//! inherits the keys of the stores that it may read, and makes one for its own.
//!
//! Invariant: the bounce buffers are free when no write is under way, so a fork finds them empty.

use super::{Backend, Securer, StoreId};
use crate::frame_bytes;
use crate::xts::{KEY_BYTES, Xts};
use nearfar_core::addr::{BLOCK, Extent, PAGE};
use nearfar_core::ranges::Ranges;
use nearfar_sys::errno::Errno;
use nearfar_sys::io::{Done, Piece};
use nearfar_sys::map::{self, OwnedMap};
use nearfar_sys::secret::Secret;
use std::collections::{HashMap, VecDeque};
use std::os::fd::RawFd;

/// Bounce buffers take this part of near at the most: the writes that keep a device busy fit into it.
const BOUNCE_SHARE: u64 = 64;
/// The least holds one write of a whole block.
const BOUNCE: (usize, usize) = (BLOCK, 16 << 20);

/// A write that waits for room in the bounce buffers.
struct Write {
    token: u64,
    store: StoreId,
    offset: u64,
    pieces: Vec<Piece>,
}

/// An operation that the inner backend has.
enum Live {
    Write { bounce: Extent },
    Read { store: StoreId, offset: u64, pieces: Vec<Piece> },
}

/// A backend whose stores hold only encrypted bytes.
pub struct Encrypted {
    inner: Box<dyn Backend>,
    // By store.
    keys: Vec<Secret<Xts>>,
    bounce: OwnedMap,
    free: Ranges,
    /// Bytes of the bounce buffers that were ever used; only they are memory.
    used: usize,
    live: HashMap<u64, Live>,
    waiting: VecDeque<Write>,
}

fn len_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.len).sum()
}

/// Addresses of the pages of `pieces`, each with its number in the store.
fn pages(pieces: &[Piece], offset: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
    let addresses = pieces.iter().flat_map(|piece| (piece.addr..piece.addr + piece.len).step_by(PAGE));
    addresses.zip(offset / PAGE as u64..)
}

impl Encrypted {
    /// Encrypts what goes to `inner`, under a new key.
    pub fn new(inner: Box<dyn Backend>, near_bytes: u64) -> Result<Self, Errno> {
        let len = (near_bytes / BOUNCE_SHARE).clamp(BOUNCE.0 as u64, BOUNCE.1 as u64) as usize / PAGE * PAGE;
        let bounce = OwnedMap::new(len)?;
        // SAFETY: our own fresh mapping. A core file has no use for it.
        let _ = unsafe { map::madvise(bounce.range(), libc::MADV_DONTDUMP) };
        let free = Ranges::new(bounce.range());
        let keys = vec![Secret::from_random::<KEY_BYTES>(Xts::new)?];
        Ok(Self { inner, keys, bounce, free, used: 0, live: HashMap::new(), waiting: VecDeque::new() })
    }

    /// Starts a write if there is room for it.
    fn start(&mut self, write: Write) -> Result<(), Write> {
        let len = len_of(&write.pieces);
        let Some(addr) = self.free.take(len, PAGE) else { return Err(write) };
        self.used = self.used.max(addr + len - self.bounce.range().start);
        let key = &self.keys[write.store as usize];
        for ((from, number), to) in pages(&write.pieces, write.offset).zip((addr..).step_by(PAGE)) {
            // SAFETY: the frames of an operation are populated and change no more until it ends; the bounce pages were just
            // taken, so nobody else uses them.
            let page = unsafe { frame_bytes::copy_page(from, to) };
            key.encrypt(number, page);
        }
        self.live.insert(write.token, Live::Write { bounce: Extent::new(addr, len) });
        self.inner.submit(write.token, true, write.store, write.offset, vec![Piece { addr, len }]);
        Ok(())
    }

    /// What an operation of ours came to, in whole pages: a page that came in part cannot be decrypted.
    fn ended(&mut self, done: Done) -> Done {
        let whole = done.result.map(|bytes| bytes / PAGE * PAGE);
        match self.live.remove(&done.token) {
            Some(Live::Write { bounce }) => {
                // Given back exactly as taken: it cannot be refused.
                let _ = self.free.give(bounce);
            }
            Some(Live::Read { store, offset, pieces }) => {
                let key = &self.keys[store as usize];
                for (addr, number) in pages(&pieces, offset).take(whole.unwrap_or(0) / PAGE) {
                    // SAFETY: the read into this frame has ended, and its pages are populated; whoever started it looks at
                    // the frame only when told of the end.
                    key.decrypt(number, unsafe { frame_bytes::page_mut(addr) });
                }
            }
            None => {}
        }
        Done { token: done.token, result: whole }
    }
}

impl Backend for Encrypted {
    fn submit(&mut self, token: u64, write: bool, store: StoreId, offset: u64, pieces: Vec<Piece>) {
        if !write {
            self.live.insert(token, Live::Read { store, offset, pieces: pieces.clone() });
            self.inner.submit(token, false, store, offset, pieces);
            return;
        }
        let write = Write { token, store, offset, pieces };
        // In order, so that a large one is not passed by small ones for ever.
        let refused = if self.waiting.is_empty() { self.start(write).err() } else { Some(write) };
        self.waiting.extend(refused);
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        let mut done = Vec::new();
        self.inner.completions(&mut done);
        for one in done {
            let one = self.ended(one);
            out.push(one);
        }
        let mut started = false;
        while let Some(write) = self.waiting.pop_front() {
            if let Err(write) = self.start(write) {
                self.waiting.push_front(write);
                break;
            }
            started = true;
        }
        if started {
            self.inner.flush();
        }
    }

    fn wait_fd(&self) -> RawFd {
        self.inner.wait_fd()
    }

    fn secure(&mut self, from: u64, to: u64) -> Result<(), Errno> {
        self.inner.secure(from, to)
    }

    fn securer(&self) -> Option<Securer> {
        self.inner.securer()
    }

    fn free_bytes(&self) -> u64 {
        self.inner.free_bytes()
    }

    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno> {
        self.inner.prepare_child(bytes)
    }

    fn forget_child(&mut self) {
        self.inner.forget_child();
    }

    fn discard(&mut self, offset: u64, len: u64) {
        self.inner.discard(offset, len);
    }

    fn move_now(&mut self, write: bool, store: StoreId, offset: u64, piece: Piece) -> Result<(), Errno> {
        // In place there and back: the caller's memory is a buffer of its own, and as it was at the end.
        let crypt = |keys: &[Secret<Xts>], encrypt: bool| {
            for (addr, number) in pages(&[piece], offset) {
                // SAFETY: the caller's buffer, which nobody else uses until this returns.
                let page = unsafe { frame_bytes::page_mut(addr) };
                if encrypt { keys[store as usize].encrypt(number, page) } else { keys[store as usize].decrypt(number, page) }
            }
        };
        if write {
            crypt(&self.keys, true);
        }
        let result = self.inner.move_now(write, store, offset, piece);
        if write || result.is_ok() {
            crypt(&self.keys, false);
        }
        result
    }

    fn own(&self) -> StoreId {
        self.inner.own()
    }

    fn after_fork(&mut self) -> Result<u64, Errno> {
        let secured = self.inner.after_fork()?;
        self.keys.iter().for_each(Secret::lock);
        // Nothing is under way: what the parent had there is of no use.
        // SAFETY: our own mapping, which nobody uses.
        let _ = unsafe { map::madvise(self.bounce.range(), libc::MADV_DONTNEED) };
        self.used = 0;
        self.keys.push(Secret::from_random::<KEY_BYTES>(Xts::new)?);
        Ok(secured)
    }

    fn describe(&self) -> String {
        format!("{}, encrypted", self.inner.describe())
    }

    fn fds(&self) -> Vec<RawFd> {
        self.inner.fds()
    }

    fn near_bytes(&self) -> usize {
        self.inner.near_bytes() + self.used + self.keys.iter().map(Secret::len).sum::<usize>()
    }

    fn near_step(&self) -> usize {
        self.inner.near_step() + (self.bounce.range().len() - self.used).min(BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::super::emulated::Emulated;
    use super::*;

    fn wait(backend: &mut Encrypted, count: usize) -> Vec<Done> {
        let mut done = Vec::new();
        while done.len() < count {
            backend.flush();
            backend.completions(&mut done);
            std::thread::yield_now();
        }
        done
    }

    /// More is written at once than the bounce buffers hold, from pieces, and comes back.
    #[test]
    fn what_was_written_comes_back_and_frames_stay_as_they_were() {
        let emulated = Emulated::new(1 << 40, 0).expect("emulated far");
        let mut backend = Encrypted::new(Box::new(emulated), 1).expect("encrypted far");
        let (memory, back) = (OwnedMap::new(4 * BLOCK).expect("memory"), OwnedMap::new(BLOCK).expect("memory"));
        let bytes = |map: &OwnedMap, from: usize, len: usize| {
            // SAFETY: inside a mapping of ours, which only this thread and operations that have ended use.
            unsafe { std::slice::from_raw_parts_mut((map.range().start + from) as *mut u8, len) }
        };
        bytes(&memory, 0, 4 * BLOCK).iter_mut().enumerate().for_each(|(at, byte)| *byte = ((at / 97 * 31) >> 2) as u8);
        for block in 0..4 {
            let start = memory.range().start + block * BLOCK;
            let pieces = vec![Piece { addr: start + PAGE, len: BLOCK - PAGE }, Piece { addr: start, len: PAGE }];
            backend.submit(block as u64, true, 0, (block * BLOCK) as u64, pieces);
        }
        assert!(wait(&mut backend, 4).iter().all(|done| done.result == Ok(BLOCK)));
        for block in 0..4 {
            backend.submit(9, false, 0, (block * BLOCK) as u64, vec![Piece { addr: back.range().start, len: BLOCK }]);
            assert_eq!(wait(&mut backend, 1)[0].result, Ok(BLOCK));
            let written = bytes(&memory, block * BLOCK, BLOCK);
            assert!(bytes(&back, 0, BLOCK - PAGE) == &written[PAGE..]);
            assert!(bytes(&back, BLOCK - PAGE, PAGE) == &written[..PAGE]);
            assert_eq!(written[97 * 5], (((block * BLOCK + 97 * 5) / 97 * 31) >> 2) as u8, "the frame was changed");
        }
        let piece = Piece { addr: back.range().start, len: PAGE };
        backend.inner.move_now(false, 0, 0, piece).expect("emulated far");
        assert!(bytes(&back, 0, PAGE) != &bytes(&memory, PAGE, PAGE)[..], "what lies in far is not encrypted");
    }
}
