//! System calls that move more than a share of near at once (one read of a whole file): made piece by piece, each of which is
//! lent for itself.
//!
//! Files and writes go on until everything is moved, as the kernel would. Reads of pipes and sockets end with the first
//! piece: a short count is what programs expect there, and a second read might wait for data that never come. Datagrams are
//! never divided.

use nearfar_core::addr::Extent;
use nearfar_sys::call_memory::{self, Lender, is_watched, words};
use nearfar_sys::call_table::Entry;
use nearfar_sys::gate;
use nearfar_tiers::memory::{CallLoan, Memory};
use std::ffi::c_int;

const ITEMS: usize = 1024;
const WORD: usize = size_of::<usize>();

/// How a call names its buffers.
#[derive(Clone, Copy)]
enum Shape {
    /// Argument of the buffer; its length is the next.
    Plain(usize),
    /// Arguments 1 and 2 are a list of buffers.
    List,
    /// Argument 1 is a message header.
    Message,
}

/// A call that is made in pieces.
pub struct Transfer {
    entry: &'static Entry,
    args: [usize; 6],
    shape: Shape,
    buffers: Vec<Extent>,
    most: usize,
    /// Goes on after a full piece.
    all: bool,
}

fn shape(number: libc::c_long) -> Option<Shape> {
    Some(match number {
        libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64 => Shape::Plain(1),
        libc::SYS_sendto | libc::SYS_recvfrom => Shape::Plain(1),
        libc::SYS_getrandom => Shape::Plain(0),
        libc::SYS_readv | libc::SYS_writev | libc::SYS_preadv | libc::SYS_pwritev => Shape::List,
        libc::SYS_preadv2 | libc::SYS_pwritev2 | libc::SYS_vmsplice => Shape::List,
        libc::SYS_sendmsg | libc::SYS_recvmsg => Shape::Message,
        _ => return None,
    })
}

/// What a descriptor is, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A file or device: it gives what is asked for while there is more.
    File,
    /// A pipe or a stream socket.
    Stream,
    /// A socket that keeps messages apart.
    Messages,
}

fn kind(fd: usize) -> Kind {
    // SAFETY: all zeros is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fills the local.
    unsafe { gate::call(libc::SYS_fstat as usize, [fd, (&raw mut stat).addr(), 0, 0, 0, 0]) };
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFSOCK => {
            let (mut what, mut len): (c_int, c_int) = (0, 4);
            let (level, name) = (libc::SOL_SOCKET as usize, libc::SO_TYPE as usize);
            let args = [fd, level, name, (&raw mut what).addr(), (&raw mut len).addr(), 0];
            // SAFETY: fills the locals.
            unsafe { gate::call(libc::SYS_getsockopt as usize, args) };
            if what == libc::SOCK_STREAM { Kind::Stream } else { Kind::Messages }
        }
        libc::S_IFIFO => Kind::Stream,
        _ => Kind::File,
    }
}

impl Transfer {
    /// The call `args` of `entry` as one that is made in pieces, if more than `most` of its buffers would have to be lent. What
    /// describes the buffers is lent to find out.
    pub fn of(entry: &'static Entry, args: &[usize; 6], most: usize, loan: &mut CallLoan) -> Option<Self> {
        let (number, shape) = (entry.0, shape(entry.0)?);
        let buffers = match shape {
            Shape::Plain(arg) => vec![Extent { start: args[arg], end: args[arg].saturating_add(args[arg + 1]) }],
            Shape::List => {
                loan.lend(&[Extent { start: args[1], end: args[1].saturating_add(args[2].min(ITEMS) * 2 * WORD) }]);
                call_memory::buffers(args[1], args[2])
            }
            Shape::Message => {
                loan.lend(&[Extent { start: args[1], end: args[1].saturating_add(7 * WORD) }]);
                let [_, _, list, count, ..] = words::<7>(args[1])?;
                loan.lend(&[Extent { start: list, end: list.saturating_add(count.min(ITEMS) * 2 * WORD) }]);
                call_memory::buffers(list, count)
            }
        };
        let watched = buffers.iter().filter(|buffer| is_watched(buffer.start)).map(Extent::len).fold(0, usize::saturating_add);
        if watched <= most {
            return None;
        }
        let kind = kind(args[0]);
        let reads = [libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg].contains(&number);
        let flags = match number {
            libc::SYS_recvfrom => args[3] as c_int,
            libc::SYS_recvmsg => args[2] as c_int,
            _ => 0,
        };
        let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
        let all = !reads || waits_for_all || kind == Kind::File;
        let whole = kind == Kind::Messages && number != libc::SYS_getrandom;
        (!whole).then_some(Self { entry, args: *args, shape, buffers, most, all })
    }

    /// Makes the call; the result is as the kernel's. `mask` is the thread's signal mask, in force during the calls.
    pub fn run(mut self, memory: &Memory, mask: u64) -> isize {
        let mut done = 0;
        loop {
            let window = self.window();
            let wanted: usize = window.iter().map(|[_, len]| len).sum();
            if wanted == 0 {
                return done;
            }
            let got = self.piece(memory, &window, done as usize, mask);
            if got < 0 {
                return if done > 0 { done } else { got };
            }
            done += got;
            self.advance(got as usize);
            if (got as usize) < wanted || !self.all {
                return done;
            }
        }
    }

    /// The next buffers, of which not more than `most` is to be lent.
    fn window(&self) -> Vec<[usize; 2]> {
        let mut left = self.most;
        let mut out = Vec::new();
        for buffer in &self.buffers {
            let len = buffer.len().min(left);
            if len < buffer.len() && len == 0 {
                break;
            }
            out.push([buffer.start, len]);
            left -= len;
        }
        out
    }

    fn advance(&mut self, mut bytes: usize) {
        for buffer in &mut self.buffers {
            let step = bytes.min(buffer.len());
            buffer.start += step;
            bytes -= step;
        }
        self.buffers.retain(|buffer| !buffer.is_empty());
    }

    fn piece(&self, memory: &Memory, window: &[[usize; 2]], done: usize, mask: u64) -> isize {
        let mut args = self.args;
        let mut header = None;
        match self.shape {
            Shape::Plain(arg) => [args[arg], args[arg + 1]] = window[0],
            Shape::List => (args[1], args[2]) = (window.as_ptr().addr(), window.len()),
            Shape::Message => {
                let Some(mut words) = words::<7>(self.args[1]) else { return -libc::EFAULT as isize };
                (words[2], words[3]) = (window.as_ptr().addr(), window.len());
                if done > 0 {
                    // Descriptors and the like go with the first piece.
                    (words[4], words[5]) = (0, 0);
                }
                args[1] = header.insert(words).as_ptr().addr();
            }
        }
        let has_offset = [libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_preadv, libc::SYS_pwritev].contains(&self.entry.0)
            || [libc::SYS_preadv2, libc::SYS_pwritev2].contains(&self.entry.0) && args[3] as isize != -1;
        if has_offset {
            args[3] = args[3].wrapping_add(done);
        }
        let (mut loan, _) = memory.begin_loan();
        call_memory::lend_all(self.entry, &args, &mut loan);
        // SAFETY: the program's own call, on a part of its buffers.
        let got = with_mask(mask, || unsafe { gate::call(self.entry.0 as usize, args) });
        loan.end();
        if let (Some(words), libc::SYS_recvmsg) = (header, self.entry.0)
            && got >= 0
            && done == 0
        {
            self.copy_back(memory, &words);
        }
        got
    }

    /// What the kernel tells in the header of a message.
    fn copy_back(&self, memory: &Memory, words: &[usize; 7]) {
        let (mut loan, _) = memory.begin_loan();
        loan.lend(&[Extent { start: self.args[1], end: self.args[1] + 7 * WORD }]);
        for index in [1, 5, 6] {
            call_memory::poke(self.args[1] + index * WORD, &words[index].to_ne_bytes()[..if index == 5 { WORD } else { 4 }]);
        }
        loan.end();
    }
}

/// Calls `act` with the signal mask of the program: it may take long, and be interrupted.
fn with_mask<R>(mask: u64, act: impl FnOnce() -> R) -> R {
    let set = |mask: u64, old: usize| {
        let args = [libc::SIG_SETMASK as usize, (&raw const mask).addr(), old, 8, 0, 0];
        // SAFETY: reads and writes locals of 8 bytes.
        unsafe { gate::call(libc::SYS_rt_sigprocmask as usize, args) };
    };
    let mut before = 0u64;
    set(mask, (&raw mut before).addr());
    let result = act();
    set(before, 0);
    result
}
