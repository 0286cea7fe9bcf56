//! Thread-local arrays in the books: they begin when a thread is found to have them, and end with the thread, with the block of the heap
//! that holds them, or with the module.

use super::Book;
use crate::live::Object;
use crate::locals::Locals;
use nearfar_core::profile::record::{Kind, ObjectId, Record};
use std::collections::HashMap;

/// The arrays that a thread has of a module.
#[derive(Debug, Default)]
struct Held {
    /// The block of the heap that they lie in; 0: none.
    heap: u64,
    /// Those that live, by their addresses.
    arrays: Vec<(ObjectId, u64)>,
}

/// All of them: by the thread's descriptor and the number of the module.
#[derive(Debug, Default)]
pub(super) struct ThreadLocals {
    by_thread: HashMap<(u64, usize), Held>,
    by_heap: HashMap<u64, (u64, usize)>,
}

impl ThreadLocals {
    fn take(&mut self, key: (u64, usize)) -> Vec<(ObjectId, u64)> {
        let held = self.by_thread.remove(&key).unwrap_or_default();
        self.by_heap.remove(&held.heap);
        held.arrays
    }
}

impl Book {
    /// Begins the arrays of the module number `module`, whose file is `file`, in all threads where they are not known yet. `read` reads a
    /// word of memory that may be gone.
    pub fn begin_locals(&mut self, module: usize, file: &str, locals: &Locals, read: &mut dyn FnMut(u64) -> Option<u64>) {
        let threads: Vec<(u64, u64)> = self.stacks.descriptors().collect();
        for (descriptor, at) in threads {
            let key = (descriptor, module);
            if self.locals.by_thread.contains_key(&key) {
                continue;
            }
            let Some(block) = locals.block(descriptor, read) else { continue };
            let mut at = at;
            if block.heap != 0 {
                // Not told of yet; or the block of a module that is gone, which the thread has not noticed.
                if self.live.at(block.heap).is_none_or(|object| object.kind != Kind::Heap) {
                    continue;
                }
                let Some(object) = self.live.remove(block.heap) else { continue };
                at = object.at;
                if object.written {
                    self.unwrite(object);
                }
                self.locals.by_heap.insert(block.heap, key);
            }
            let mut arrays = Vec::new();
            for (symbol, range) in &locals.arrays {
                let start = block.start.saturating_add(range.start as u64);
                let end = start.saturating_add(range.len() as u64);
                // A stack in memory that the program has made for it belongs to that object.
                if self.live.overlapping(start, end).is_empty() {
                    let name = format!("{symbol}@{file}").into_boxed_str();
                    arrays.push((self.begin(Kind::ThreadLocal, start, end - start, 0, Some(name), at), start));
                }
            }
            self.locals.by_thread.insert(key, Held { heap: block.heap, arrays });
        }
    }

    /// Ends an object that turned out to be others, as if it had never been, if its record is not in the file yet.
    fn unwrite(&mut self, object: Object) {
        let is_its = |record: &Record| matches!(record, Record::Object(one) if one.id == object.id);
        match self.records.iter().position(is_its) {
            Some(place) => {
                self.records.remove(place);
                // Nor are its looks told of.
                if let Some(looked) = self.looked.get_mut(&object.id) {
                    looked.ended = Some(0);
                }
            }
            None => {
                let at = object.at;
                self.gone(object, at);
            }
        }
    }

    /// A thread ends: those beside its stack do. Others end with their blocks.
    pub(super) fn thread_gone(&mut self, descriptor: u64, at: u64) {
        if self.locals.by_thread.is_empty() {
            return;
        }
        self.end_locals(|&(of, _)| of == descriptor, at);
    }

    /// A module is not there any more.
    pub fn module_gone(&mut self, module: usize, at: u64) {
        self.end_locals(|&(_, of)| of == module, at);
    }

    /// A block of the heap is freed.
    pub(super) fn heap_gone(&mut self, addr: u64, at: u64) {
        if let Some(&key) = self.locals.by_heap.get(&addr) {
            self.end_locals(|&of| of == key, at);
        }
    }

    fn end_locals(&mut self, ends: impl Fn(&(u64, usize)) -> bool, at: u64) {
        let keys: Vec<(u64, usize)> = self.locals.by_thread.keys().copied().filter(ends).collect();
        for key in keys {
            let arrays = self.locals.take(key);
            self.end(&arrays, at);
        }
    }

    /// Ends objects, if they still live where they were.
    pub fn end(&mut self, objects: &[(ObjectId, u64)], at: u64) {
        for &(id, addr) in objects {
            if self.live.at(addr).is_some_and(|object| object.id == id)
                && let Some(object) = self.live.remove(addr)
            {
                self.gone(object, at);
            }
        }
    }
}
