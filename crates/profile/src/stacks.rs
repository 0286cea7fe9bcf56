//! Stacks of threads: which there are, and how deep each has been used. Most of a stack is never touched; what lies below the deepest
//! page that was is not part of the object, so that no look goes there. Pure.

use nearfar_core::profile::record::{Kind, ObjectId};
use std::collections::BTreeMap;

/// Of a thread that used less nothing is said: it stays in its caches.
const LEAST: u64 = 64 << 10;
/// The first thread's stack grows so far without being asked for, and the kernel keeps that free.
const FREE_BELOW: u64 = 128 << 20;

/// The stack of a thread that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Of the first thread, or of another.
    pub kind: Kind,
    /// The lowest address that it may have.
    pub start: u64,
    /// Where it begins to be used.
    pub end: u64,
    /// The thread.
    pub tid: u32,
    /// Where its descriptor is, by which its thread-local data are found; 0: not known.
    pub descriptor: u64,
    /// When it began.
    pub at: u64,
    /// Below this it was not used yet.
    pub low: u64,
    /// Its number and the address it is kept by, once it is an object.
    pub object: Option<(ObjectId, u64)>,
}

impl Stack {
    fn new(kind: Kind, start: u64, end: u64, (tid, descriptor): (u32, u64), at: u64) -> Self {
        Self { kind, start, end, tid, descriptor, at, low: end, object: None }
    }

    /// Its lowest page in use was found: where the object now begins, if that is worth a change.
    pub fn used_from(&mut self, low: u64) -> Option<u64> {
        self.low = low.clamp(self.start, self.low);
        let len = self.end - self.low;
        let known = self.object.map_or(0, |(_, addr)| self.end - addr);
        (len >= LEAST && len - known > known / 16).then_some(self.low)
    }
}

/// All stacks, by their ends.
#[derive(Debug, Default)]
pub struct Stacks {
    by_end: BTreeMap<u64, Stack>,
    /// The descriptor of the first thread; 0: not known.
    pub first: u64,
}

impl Stacks {
    /// A thread begins, with its number and its descriptor; returns those that were where its stack is, whose ends were not told of.
    pub fn begin(&mut self, start: u64, end: u64, thread: (u32, u64), at: u64) -> Vec<Stack> {
        let over: Vec<u64> =
            self.by_end.range(start + 1..).map(|(&end, _)| end).take_while(|other| self.by_end[other].start < end).collect();
        let over = over.iter().filter_map(|end| self.by_end.remove(end)).collect();
        self.by_end.insert(end, Stack::new(Kind::ThreadStack, start, end, thread, at));
        over
    }

    /// A thread ends.
    pub fn end(&mut self, end: u64) -> Option<Stack> {
        self.by_end.remove(&end)
    }

    /// The first thread's, as it is mapped now.
    pub fn main(&mut self, start: u64, end: u64, at: u64) {
        let start = start.min(end.saturating_sub(FREE_BELOW));
        let stack = self.by_end.entry(end).or_insert(Stack::new(Kind::MainStack, start, end, (0, self.first), at));
        stack.start = stack.start.min(start);
    }

    /// All, to be looked into.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Stack> {
        self.by_end.values_mut()
    }

    /// Descriptors of the threads, and when those began.
    pub fn descriptors(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_end.values().map(|stack| (stack.descriptor, stack.at)).filter(|&(descriptor, _)| descriptor != 0)
    }

    /// Takes out those of threads that are gone.
    pub fn gone(&mut self, lives: impl Fn(u32) -> bool) -> Vec<Stack> {
        let mut gone = Vec::new();
        self.by_end.retain(|_, stack| {
            let stays = stack.kind != Kind::ThreadStack || lives(stack.tid);
            gone.extend((!stays).then_some(*stack));
            stays
        });
        gone
    }

    /// In the child of a fork, on a stack that `here` lies in: the calling thread, now `tid`, is the only one.
    pub fn forked(&mut self, here: u64, tid: u32) -> Vec<Stack> {
        let is_own = |stack: &Stack| stack.kind == Kind::ThreadStack && stack.start <= here && here < stack.end;
        self.all_mut().filter(|stack| is_own(stack)).for_each(|stack| stack.tid = tid);
        self.gone(|of| of == tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;

    #[test]
    fn stacks_come_and_go() {
        let mut stacks = Stacks::default();
        assert_eq!(stacks.begin(1000 * K, 2000 * K, (7, 0), 1), []);
        assert_eq!(stacks.begin(2000 * K, 3000 * K, (8, 0), 1), []);
        // In the place of the first, larger; and one that the C library gave parts of two.
        assert_eq!(stacks.begin(500 * K, 2000 * K, (9, 0), 2).iter().map(|stack| stack.tid).collect::<Vec<_>>(), [7]);
        assert_eq!(stacks.begin(1900 * K, 2100 * K, (10, 0), 3).iter().map(|stack| stack.tid).collect::<Vec<_>>(), [9, 8]);
        assert_eq!((stacks.end(2100 * K).map(|stack| stack.tid), stacks.end(2100 * K)), (Some(10), None));
        stacks.begin(1000 * K, 2000 * K, (11, 0), 4);
        stacks.begin(2000 * K, 3000 * K, (12, 0), 4);
        stacks.main(9900 * K, 10_000 * K, 0);
        assert_eq!(stacks.gone(|tid| tid == 12).len(), 1);
        stacks.begin(1000 * K, 2000 * K, (13, 0), 5);
        assert_eq!(stacks.forked(1500 * K, 70).iter().map(|stack| stack.tid).collect::<Vec<_>>(), [12]);
        assert_eq!(
            stacks.all_mut().map(|stack| (stack.kind, stack.tid)).collect::<Vec<_>>(),
            [(Kind::ThreadStack, 70), (Kind::MainStack, 0)]
        );
    }

    #[test]
    fn an_object_is_what_was_used() {
        let mut stack = Stack::new(Kind::ThreadStack, 0, 8 << 20, (1, 0), 0);
        let end = stack.end;
        assert_eq!((stack.used_from(end - 8 * K), stack.used_from(end - 256 * K)), (None, Some(end - 256 * K)));
        stack.object = Some((1, end - 256 * K));
        assert_eq!((stack.used_from(end - 260 * K), stack.used_from(end - 16 * K), stack.low), (None, None, end - 260 * K));
        assert_eq!(stack.used_from(end - 280 * K), Some(end - 280 * K));
    }
}
