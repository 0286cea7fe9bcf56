//! The engine for kernels without io_uring: plain threads with preadv and pwritev.

use crate::credentials;
use crate::errno::Errno;
use crate::event::Event;
use crate::io::{Done, Engine, Op};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

struct Queue {
    todo: VecDeque<Op>,
    done: Vec<Done>,
    closed: bool,
}

struct Common {
    queue: Mutex<Queue>,
    more: Condvar,
    event: Event,
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Operations through a few threads; the threads end when the engine is dropped.
pub struct Threads {
    common: Arc<Common>,
}

impl Threads {
    /// Starts `count` threads.
    pub fn new(count: usize) -> Result<Self, Errno> {
        let queue = Mutex::new(Queue { todo: VecDeque::new(), done: Vec::new(), closed: false });
        let common = Arc::new(Common { queue, more: Condvar::new(), event: Event::new()? });
        for index in 0..count.max(1) {
            let common = Arc::clone(&common);
            crate::thread::spawn(&format!("nearfar-io{index}"), move || work(&common))?;
        }
        Ok(Self { common })
    }
}

fn work(common: &Common) {
    let mut queue = common.lock();
    loop {
        if let Some(op) = queue.todo.pop_front() {
            drop(queue);
            let done = Done { token: op.token, result: op.carry_out() };
            queue = common.lock();
            queue.done.push(done);
            common.event.signal();
        } else if queue.closed {
            return;
        } else {
            queue = credentials::wait_on(&common.more, queue);
        }
    }
}

impl Engine for Threads {
    fn submit(&mut self, op: Op) {
        self.common.lock().todo.push_back(op);
        self.common.more.notify_one();
    }

    fn flush(&mut self) {}

    fn completions(&mut self, out: &mut Vec<Done>) {
        self.common.event.clear();
        out.append(&mut self.common.lock().done);
    }

    fn wait_fd(&self) -> RawFd {
        self.common.event.as_raw_fd()
    }

    fn name(&self) -> &'static str {
        "threads"
    }

    fn leave(self: Box<Self>) {
        // The threads are not here, and one of them may have held the lock.
        std::mem::forget(self);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.common.lock().closed = true;
        self.common.more.notify_all();
    }
}
