//! What hooks tell the writer: a ring of events that any thread appends to and the writer takes from, in one order for all threads.
//!
//! No lock: a hook may run in a signal handler that interrupted another hook, on a thread that the sampler has just stopped, or be left
//! by longjmp. An appender takes a ticket, fills the place and marks it full; whoever interrupts it takes the next ticket. What is taken
//! and never filled is skipped after a while. Tickets order events: a block is told of before it is freed and after it is allocated, so
//! the free comes before the next allocation at its address.

use nearfar_core::addr::Extent;
use nearfar_sys::errno::Errno;
use nearfar_sys::{event, futex, map, process, thread};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Places; a power of two.
const PLACES: u64 = 1 << 15;
/// The writer is woken whenever so many have come.
const WAKE: u64 = PLACES / 4;
/// A hook that finds the ring full waits at most so long: who drains it may wait for what the hook's thread holds. Whoever finds it
/// still full after that, with nothing drained since, does not wait at all.
const PATIENCE_NS: u64 = 1_000_000_000;
/// What was not filled after so long never will be.
const GIVE_UP_NS: u64 = 5_000_000_000;

/// What happened.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A block of the heap begins: address, bytes.
    Alloc,
    /// One ends: address.
    Free,
    /// One is about to be reallocated: address. It is nowhere until `Put`.
    Take,
    /// It goes on: address, bytes (0: it has ended), ticket of the `Take`.
    Put,
    /// A private anonymous mapping begins: address, bytes.
    Map,
    /// Memory is unmapped, or mapped over with something else: address, bytes.
    Unmap,
    /// A mapping moved or changed its size: old address, old bytes; a `MapPut` follows in the same thread.
    MapTake,
    /// Where it is now: address, bytes, ticket of the `MapTake`.
    MapPut,
    /// A thread begins: lowest address of its stack, bytes, the thread in place of the ticket; in place of the site how far behind the
    /// stack its descriptor is (0: not known).
    StackBegin,
    /// It ends: end of its stack.
    StackEnd,
}

impl What {
    fn from_word(word: u32) -> Option<Self> {
        let blocks = [Self::Alloc, Self::Free, Self::Take, Self::Put];
        let mappings = [Self::Map, Self::Unmap, Self::MapTake, Self::MapPut];
        let stacks = [Self::StackBegin, Self::StackEnd];
        blocks.into_iter().chain(mappings).chain(stacks).find(|what| *what as u32 == word)
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub what: What,
    /// Where it was allocated; 0: not known.
    pub site: u32,
    /// Address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// CLOCK_MONOTONIC.
    pub at: u64,
    /// The ticket that this one belongs to.
    pub of: u64,
}

/// `state` is twice the lap when the place is free for it, and one more when it is full: memory of zeros is a new ring.
#[repr(C, align(64))]
struct Place {
    state: AtomicU64,
    what: AtomicU64,
    addr: AtomicU64,
    len: AtomicU64,
    at: AtomicU64,
    of: AtomicU64,
}

/// The ring.
pub struct Queue {
    places: Extent,
    tail: AtomicU64,
    head: AtomicU64,
    /// Changes when the writer is to look; it waits on this.
    bell: AtomicU32,
    /// Changes when places have become free.
    drained: AtomicU32,
    waiting: AtomicU32,
    /// Somebody waited in vain while `drained` was this, less one; 0: nobody has.
    in_vain: AtomicU64,
    /// Time that hooks waited for room.
    waited_ns: AtomicU64,
    /// Events that found no place.
    lost: AtomicU64,
    /// The process that it is of: a copy that the kernel made of it behind our back is drained by nobody.
    pid: u32,
    /// The place that is waited for, and since when.
    stuck: AtomicU64,
    stuck_since: AtomicU64,
}

impl Queue {
    /// An empty one.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new() -> Result<Self, Errno> {
        let len = PLACES as usize * size_of::<Place>();
        // SAFETY: not fixed: the kernel picks free space. Never unmapped: hooks may come at any time.
        let start = unsafe { map::mmap(0, len, map::RW, map::ANON, -1, 0)? };
        Ok(Self {
            places: Extent::new(start, len),
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            drained: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            in_vain: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            pid: process::pid(),
            stuck: AtomicU64::new(u64::MAX),
            stuck_since: AtomicU64::new(0),
        })
    }

    fn place(&self, ticket: u64) -> &Place {
        let index = (ticket % PLACES) as usize;
        // SAFETY: within the mapping, which is zeroed (a valid value), aligned to pages, and stays.
        unsafe { &*(self.places.start as *const Place).add(index) }
    }

    /// Appends; returns the ticket. When the ring is full it waits a little, and gives up at last: the event is lost then.
    #[inline]
    pub fn push(&self, what: What, site: u32, addr: u64, len: u64, of: u64) -> u64 {
        let mut ticket = self.tail.load(Ordering::Relaxed);
        loop {
            let place = self.place(ticket);
            let wanted = 2 * (ticket / PLACES);
            let state = place.state.load(Ordering::Acquire);
            if state == wanted {
                match self.tail.compare_exchange_weak(ticket, ticket + 1, Ordering::SeqCst, Ordering::Relaxed) {
                    Ok(_) => {
                        place.what.store(u64::from(site) << 32 | what as u64, Ordering::Relaxed);
                        place.addr.store(addr, Ordering::Relaxed);
                        place.len.store(len, Ordering::Relaxed);
                        place.at.store(event::now_ns(), Ordering::Relaxed);
                        place.of.store(of, Ordering::Relaxed);
                        // Fails when it was skipped, after seconds: the event is lost.
                        let _ = place.state.compare_exchange(wanted, wanted + 1, Ordering::Release, Ordering::Relaxed);
                        if ticket.is_multiple_of(WAKE) {
                            self.ring();
                        }
                        return ticket;
                    }
                    Err(now) => ticket = now,
                }
            } else if state < wanted {
                if !self.wait_for_room() {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                    return u64::MAX;
                }
                ticket = self.tail.load(Ordering::Relaxed);
            } else {
                ticket = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// False when there is none for too long, or the caller is of our own, which may be the one that drains.
    #[cold]
    fn wait_for_room(&self) -> bool {
        if thread::is_inside() || process::pid() != self.pid {
            return false;
        }
        let head = self.head.load(Ordering::SeqCst);
        let mut word = self.drained.load(Ordering::SeqCst);
        if self.in_vain.load(Ordering::Relaxed) == u64::from(word) + 1 {
            return false;
        }
        let since = event::now_ns();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut room = false;
        while !room && event::now_ns() - since < PATIENCE_NS {
            self.ring();
            word = self.drained.load(Ordering::SeqCst);
            room = self.head.load(Ordering::SeqCst) != head;
            if !room {
                futex::wait(&self.drained, word, 1_000_000);
            }
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.waited_ns.fetch_add(event::now_ns() - since, Ordering::Relaxed);
        if !room {
            self.in_vain.store(u64::from(word) + 1, Ordering::Relaxed);
        }
        room
    }

    /// Hands over the events that are there now, with their tickets: not those that come meanwhile, so that it ends whatever the
    /// program does. For one thread at a time.
    pub fn take(&self, mut each: impl FnMut(u64, &Event)) {
        let end = self.tail.load(Ordering::SeqCst);
        let mut count = 0u32;
        while self.head.load(Ordering::Relaxed) < end
            && let Some((ticket, event)) = self.pop()
        {
            each(ticket, &event);
            count += 1;
            // Those who wait for room need not wait for all.
            if count.is_multiple_of(1024) {
                self.release();
            }
        }
        self.release();
    }

    /// The next event with its ticket.
    fn pop(&self) -> Option<(u64, Event)> {
        loop {
            let ticket = self.head.load(Ordering::Relaxed);
            let place = self.place(ticket);
            let free = 2 * (ticket / PLACES);
            if place.state.load(Ordering::Acquire) == free + 1 {
                let word = place.what.load(Ordering::Relaxed);
                let event = What::from_word(word as u32).map(|what| Event {
                    what,
                    site: (word >> 32) as u32,
                    addr: place.addr.load(Ordering::Relaxed),
                    len: place.len.load(Ordering::Relaxed),
                    at: place.at.load(Ordering::Relaxed),
                    of: place.of.load(Ordering::Relaxed),
                });
                place.state.store(free + 2, Ordering::Release);
                self.head.store(ticket + 1, Ordering::SeqCst);
                match event {
                    Some(event) => return Some((ticket, event)),
                    None => continue,
                }
            }
            if self.tail.load(Ordering::SeqCst) == ticket || !self.skip(ticket, place, free) {
                return None;
            }
        }
    }

    /// Skips a place that somebody took and did not fill for seconds.
    #[cold]
    fn skip(&self, ticket: u64, place: &Place, free: u64) -> bool {
        let now = event::now_ns();
        if self.stuck.swap(ticket, Ordering::Relaxed) != ticket {
            self.stuck_since.store(now, Ordering::Relaxed);
            return false;
        }
        if now - self.stuck_since.load(Ordering::Relaxed) < GIVE_UP_NS
            || place.state.compare_exchange(free, free + 2, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return false;
        }
        self.head.store(ticket + 1, Ordering::SeqCst);
        self.lost.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Tells those who wait for room.
    fn release(&self) {
        self.drained.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.drained, u32::MAX >> 1);
        }
    }

    /// Wakes the writer.
    pub fn ring(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.bell, 1);
    }

    /// What `wait` compares with.
    pub fn bell(&self) -> u32 {
        self.bell.load(Ordering::SeqCst)
    }

    /// The writer waits until it is rung since `bell`, or so long.
    pub fn wait(&self, bell: u32, limit_ns: u64) {
        futex::wait(&self.bell, bell, limit_ns);
    }

    /// Time that hooks waited for room, together.
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }

    /// Events that were lost.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn in_order_and_none_lost() {
        const EACH: u64 = 100_000;
        let queue = Queue::new().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let crew: Vec<_> = (0..3u32)
                .map(|thread| {
                    let queue = &queue;
                    scope.spawn(move || {
                        for n in 0..EACH {
                            queue.push(What::Alloc, thread, n, 3 * n, n);
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut next = [0u64; 3];
                let mut last = None;
                loop {
                    let ended = done.load(Ordering::SeqCst);
                    while let Some((ticket, event)) = queue.pop() {
                        assert!(last < Some(ticket));
                        last = Some(ticket);
                        let next = &mut next[event.site as usize];
                        assert_eq!((event.addr, event.len, event.of), (*next, 3 * *next, *next));
                        *next += 1;
                    }
                    queue.release();
                    if ended {
                        return next;
                    }
                    queue.wait(queue.bell(), 1_000_000);
                }
            });
            crew.into_iter().for_each(|one| one.join().unwrap());
            done.store(true, Ordering::SeqCst);
            assert_eq!(reader.join().unwrap(), [EACH; 3]);
        });
        assert_eq!(queue.lost(), 0);
    }

    #[test]
    fn what_comes_meanwhile_is_left_for_the_next_time() {
        let queue = Queue::new().unwrap();
        (0..3000).for_each(|n| assert_eq!(queue.push(What::Free, 0, n, 0, 0), n));
        let mut taken = Vec::new();
        queue.take(|ticket, event| {
            assert_eq!(ticket, event.addr);
            taken.push(ticket);
            assert!(taken.len() < 4000, "a program that goes on and on is drained for ever");
            queue.push(What::Free, 0, 3000 + ticket, 0, 0);
        });
        assert_eq!(taken, (0..3000).collect::<Vec<_>>());
        queue.take(|ticket, _| taken.push(ticket));
        assert_eq!((taken.len(), queue.lost()), (6000, 0));
    }

    #[test]
    fn one_waits_for_what_never_comes_and_the_others_do_not() {
        let queue = Queue::new().unwrap();
        (0..PLACES).for_each(|n| assert_eq!(queue.push(What::Free, 0, n, 0, 0), n));
        let begun = std::time::Instant::now();
        for _ in 0..1000 {
            assert_eq!(queue.push(What::Free, 0, 0, 0, 0), u64::MAX);
        }
        assert!(begun.elapsed().as_nanos() < 3 * u128::from(PATIENCE_NS), "{:?}", begun.elapsed());
        assert_eq!(queue.lost(), 1000, "each is told of");
        // Drained once, it is worth waiting again.
        let mut count = 0;
        queue.take(|_, _| count += 1);
        assert_eq!(count, PLACES);
        (0..PLACES).for_each(|n| assert_eq!(queue.push(What::Free, 0, n, 0, 0), PLACES + n));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| queue.push(What::Free, 0, 1, 0, 0));
            while queue.waiting.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            queue.take(|_, _| {});
            assert_eq!(waits.join().unwrap(), 2 * PLACES);
        });
    }

    #[test]
    fn nobody_waits_for_ever() {
        let queue = Queue::new().unwrap();
        thread::go_inside();
        for n in 0..PLACES + 5 {
            queue.push(What::Free, 0, n, 0, 0);
        }
        thread::come_out();
        assert_eq!(queue.lost(), 5);
        assert_eq!(queue.push(What::Free, 0, 0, 0, 0), u64::MAX);
        assert_eq!(queue.pop().map(|(ticket, event)| (ticket, event.addr)), Some((0, 0)));
        assert_eq!(queue.push(What::Put, 0, 1, 0, 0), PLACES);
    }
}
