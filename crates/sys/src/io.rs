//! What an I/O engine is: operations in, completions out, a descriptor to wait on. `io_uring` and `io_threads` are engines.

use crate::errno::{Errno, call};
use std::os::fd::RawFd;

/// A piece of memory that takes part in an operation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// First byte.
    pub addr: usize,
    /// Bytes; at most 2 MiB.
    pub len: usize,
}

/// One read or write of a file at an offset.
///
/// Whoever makes an operation answers for its memory: it stays mapped and is touched by nobody else until the completion.
pub struct Op {
    /// Returned with the completion.
    pub token: u64,
    /// Write to the file; otherwise read from it.
    pub write: bool,
    /// The file.
    pub fd: RawFd,
    /// Byte offset in the file.
    pub offset: u64,
    /// Memory, in file order; at most 512 pieces.
    pub pieces: Vec<Piece>,
}

impl Op {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// True when nothing is to be moved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Carries it out once, waiting for it. Returns the bytes moved, which may be fewer than asked for.
    pub fn carry_out(&self) -> Result<usize, Errno> {
        let number = if self.write { libc::SYS_pwritev } else { libc::SYS_preadv };
        let (list, count) = (self.pieces.as_ptr() as usize, self.pieces.len());
        loop {
            // SAFETY: `Piece` has the layout of iovec; the memory is answered for by whoever made the operation.
            match unsafe { call(number, [self.fd as usize, list, count, self.offset as usize, 0, 0]) } {
                Err(Errno::EINTR) | Err(Errno::EAGAIN) => {}
                result => return result,
            }
        }
    }

    /// Carries all of it out, waiting for it. A file that ends before it is an error.
    pub fn finish(mut self) -> Result<(), Errno> {
        while !self.is_empty() {
            let done = self.carry_out()?;
            if done == 0 {
                return Err(Errno(libc::EIO));
            }
            self.offset += done as u64;
            self.pieces = rest_of(&self.pieces, done);
        }
        Ok(())
    }
}

/// What is left of `pieces` after their first `done` bytes.
pub fn rest_of(pieces: &[Piece], done: usize) -> Vec<Piece> {
    let mut skip = done;
    let mut rest = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let cut = skip.min(piece.len);
        skip -= cut;
        if cut < piece.len {
            rest.push(Piece { addr: piece.addr + cut, len: piece.len - cut });
        }
    }
    rest
}

/// The end of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Token of the operation.
    pub token: u64,
    /// Bytes moved, from the beginning, or why none were. Whoever submitted it sees to the rest of a short operation.
    pub result: Result<usize, Errno>,
}

/// Carries out operations without blocking the caller.
pub trait Engine: Send {
    /// Queues an operation; it may start at once or at `flush`.
    fn submit(&mut self, op: Op);
    /// Starts what was queued.
    fn flush(&mut self);
    /// Moves completions into `out`; never blocks.
    fn completions(&mut self, out: &mut Vec<Done>);
    /// Readable when completions may have arrived.
    fn wait_fd(&self) -> RawFd;
    /// Short name for messages.
    fn name(&self) -> &'static str;
    /// In the child of a fork, where nothing is under way: gives back what was inherited of the parent's, if that can be done.
    fn leave(self: Box<Self>);
}

/// In the place of an engine, between one and the next.
pub struct NoEngine;

impl Engine for NoEngine {
    fn submit(&mut self, _op: Op) {}
    fn flush(&mut self) {}
    fn completions(&mut self, _out: &mut Vec<Done>) {}
    fn wait_fd(&self) -> RawFd {
        -1
    }
    fn name(&self) -> &'static str {
        "none"
    }
    fn leave(self: Box<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_begins_inside_a_piece() {
        let pieces = [Piece { addr: 0x1000, len: 0x1000 }, Piece { addr: 0x8000, len: 0x2000 }];
        let rest = |done| rest_of(&pieces, done).iter().map(|piece| (piece.addr, piece.len)).collect::<Vec<_>>();
        assert_eq!(rest(0), [(0x1000, 0x1000), (0x8000, 0x2000)]);
        assert_eq!(rest(0x1000), [(0x8000, 0x2000)]);
        assert_eq!(rest(0x2800), [(0x9800, 0x800)]);
        assert!(rest(0x3000).is_empty());
    }
}
