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

    /// Carries out what is left after `done` bytes, waiting for it. Ends short operations whatever the engine.
    pub fn finish(&self, mut done: usize) -> Result<(), Errno> {
        let total = self.len();
        while done < total {
            let mut skip = done;
            let mut rest = Vec::with_capacity(self.pieces.len());
            for piece in &self.pieces {
                let cut = skip.min(piece.len);
                skip -= cut;
                if cut < piece.len {
                    rest.push(Piece { addr: piece.addr + cut, len: piece.len - cut });
                }
            }
            let number = if self.write { libc::SYS_pwritev } else { libc::SYS_preadv };
            let offset = (self.offset + done as u64) as usize;
            // SAFETY: `Piece` has the layout of iovec; the memory is answered for by whoever made the operation.
            match unsafe { call(number, [self.fd as usize, rest.as_ptr() as usize, rest.len(), offset, 0, 0]) } {
                Ok(0) => return Err(Errno(libc::EIO)),
                Ok(more) => done += more,
                Err(Errno::EINTR) | Err(Errno::EAGAIN) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

/// The end of an operation; short operations have been completed.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Token of the operation.
    pub token: u64,
    /// Everything moved, or why not.
    pub result: Result<(), Errno>,
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
}
