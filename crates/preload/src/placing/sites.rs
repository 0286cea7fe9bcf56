//! Call sites: which rule of a plan an allocation belongs to, by the return addresses on the stack.
//!
//! The caller's own address decides most cases: an allocation whose innermost frame is in no rule is not looked at further, which is
//! a few comparisons. Only where the caller is a wrapper (operator new, Fortran's runtime), or the rule names more frames, the stack
//! is unwound: about a microsecond, without allocating and without locks of ours.

use super::code::Code;
use crate::objects;
use nearfar_core::placement::table::{Rule, Table};
use nearfar_core::placement::{ObjectKind, SizeRange, Tier};
use nearfar_sys::event::now_ns;
use nearfar_sys::thread;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The loader is asked what is loaded once in so long, or when an allocation comes from code that is not known.
const ASK_NS: u64 = 5_000_000;
/// Frames looked at.
const DEPTH: usize = 48;
/// Frames of wrappers that may come before the first frame of a rule.
const WRAPPERS: usize = 6;

/// Return addresses, innermost first.
pub struct Stack {
    frames: [usize; DEPTH],
    len: usize,
}

impl Stack {
    fn frames(&self) -> &[usize] {
        &self.frames[..self.len]
    }
}

/// What came of looking an allocation up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No rule is about objects of this kind and size.
    NotAsked,
    /// Rules are, but none about this place.
    Nothing,
    /// The first rule that fits says so.
    Tier(Tier),
}

/// A plan and where its frames are.
pub struct Sites {
    table: Table<'static>,
    code: AtomicPtr<Code>,
    /// Held by whoever asks the loader. No mutex: it must be possible to let go of it in the child of a fork.
    asking: AtomicBool,
    /// When the loader is asked again.
    ask_ns: AtomicU64,
}

impl Sites {
    /// For `table`.
    pub fn new(table: Table<'static>) -> Self {
        let code = Box::into_raw(Box::new(Code::of(&table, None)));
        Self { table, code: AtomicPtr::new(code), asking: AtomicBool::new(false), ask_ns: AtomicU64::new(0) }
    }

    /// Its rules.
    pub fn table(&self) -> Table<'static> {
        self.table
    }

    /// Sizes that rules about `kind` mean.
    pub fn sizes(&self, kind: ObjectKind) -> Vec<SizeRange> {
        self.table.rules().filter(|rule| rule.names(kind)).map(|rule| rule.sizes).collect()
    }

    /// The translation for what is loaded now, for a call that returns to `caller`. The loader, whose lock is the process's, is asked
    /// when that is not in code that is known, and once in a while, since code may be unloaded and its place used again. Old
    /// translations stay, since others may be reading them; libraries are loaded seldom.
    fn code(&self, caller: usize) -> &Code {
        // SAFETY: never null, and never freed.
        let code = unsafe { &*self.code.load(Ordering::Acquire) };
        let now = now_ns();
        let is_known = caller == 0 || code.knows(caller);
        if (is_known && now < self.ask_ns.load(Ordering::Relaxed)) || self.asking.swap(true, Ordering::Acquire) {
            return code;
        }
        self.ask_ns.store(now + ASK_NS, Ordering::Relaxed);
        // SAFETY: as above; changed only by whoever holds `asking`.
        let mut code = unsafe { &*self.code.load(Ordering::Acquire) };
        if code.generation != objects::generation() {
            let new = Box::into_raw(Box::new(Code::of(&self.table, Some(code))));
            self.code.store(new, Ordering::Release);
            // SAFETY: made just now, never freed.
            code = unsafe { &*new };
        }
        self.asking.store(false, Ordering::Release);
        code
    }

    /// Before fork: no other thread holds the loader's lock for us, which the child would find locked for ever.
    pub fn hold(&self) {
        while self.asking.swap(true, Ordering::Acquire) {
            thread::give_way();
        }
    }

    /// After fork, in parent and child.
    pub fn release(&self) {
        self.asking.store(false, Ordering::Release);
    }

    /// Where an object goes that is allocated by a call which returns to `caller` (0: not known).
    pub fn find(&self, kind: ObjectKind, bytes: u64, caller: usize) -> Found {
        let mut rules = (0..self.table.len()).filter_map(|index| Some((index, self.table.rule(index)?)));
        let Some(first) = rules.find(|(_, rule)| rule.fits(kind, bytes)) else { return Found::NotAsked };
        let code = self.code(caller);
        let mut stack = None;
        for (index, rule) in std::iter::once(first).chain(rules.filter(|(_, rule)| rule.fits(kind, bytes))) {
            if self.is_at(code, index, &rule, caller, &mut stack) {
                return Found::Tier(rule.tier);
            }
        }
        Found::Nothing
    }

    fn is_at(&self, code: &Code, index: usize, rule: &Rule<'_>, caller: usize, stack: &mut Option<Stack>) -> bool {
        let (depth, Some(first)) = (rule.depth(), self.table.first_frame(index)) else { return false };
        if depth == 0 {
            return true;
        }
        if caller != 0 && !code.is_wrapper(caller) {
            let here = code.is_at(first, caller);
            if !here || depth == 1 {
                return here;
            }
        }
        let stack = stack.get_or_insert_with(|| unwind(code));
        matches(stack.frames(), depth, |frame, addr| code.is_at(first + frame, addr), |addr| code.is_wrapper(addr))
    }
}

/// True when `depth` frames of a rule are on the stack, the first of them behind nothing but wrappers.
fn matches(stack: &[usize], depth: usize, is_at: impl Fn(usize, usize) -> bool, is_wrapper: impl Fn(usize) -> bool) -> bool {
    for start in 0..=WRAPPERS {
        let Some(part) = stack.get(start..start + depth) else { return false };
        if part.iter().enumerate().all(|(frame, &addr)| is_at(frame, addr)) {
            return true;
        }
        if !stack.get(start).is_some_and(|&addr| is_wrapper(addr)) {
            return false;
        }
    }
    false
}

struct Walk<'a> {
    code: &'a Code,
    stack: Stack,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 5;
    // SAFETY: the local of `unwind`, which nobody else uses meanwhile, and the context that the unwinder passes.
    let (walk, addr) = unsafe { (&mut *walk.cast::<Walk<'_>>(), _Unwind_GetIP(context)) };
    if addr == 0 || walk.stack.len >= DEPTH {
        return STOP;
    }
    if walk.stack.len > 0 || !walk.code.is_own(addr) {
        walk.stack.frames[walk.stack.len] = addr;
        walk.stack.len += 1;
    }
    GO_ON
}

/// The stack of the calling thread from where it entered this library.
#[cold]
#[inline(never)]
fn unwind(code: &Code) -> Stack {
    let mut walk = Walk { code, stack: Stack { frames: [0; DEPTH], len: 0 } };
    // SAFETY: `step` gets back the pointer to the local. Reads the stack and unwind tables only.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk.stack
}

impl Drop for Sites {
    fn drop(&mut self) {
        let code = self.code.swap(null_mut(), Ordering::AcqRel);
        // SAFETY: made by `new` or `code`; nobody reads it any more.
        drop(unsafe { Box::from_raw(code) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearfar_core::placement::plan::{Frame, Place, Plan};
    use nearfar_core::placement::table;

    #[test]
    fn frames_behind_wrappers() {
        let is_wrapper = |addr| addr >= 100;
        let found = |stack: &[usize], rule: &[usize]| matches(stack, rule.len(), |frame, addr| rule[frame] == addr, is_wrapper);
        assert!(found(&[1, 2, 3], &[1]) && found(&[1, 2, 3], &[1, 2, 3]) && found(&[100, 101, 1, 2], &[1, 2]));
        assert!(found(&[100, 1], &[100, 1]), "a wrapper may be named");
        assert!(!found(&[1, 2], &[2]) && !found(&[1, 2], &[1, 2, 3]) && !found(&[100, 7, 1], &[1]) && !found(&[], &[1]));
    }

    #[inline(never)]
    #[unsafe(no_mangle)]
    fn nearfar_test_site(sites: &Sites, bytes: u64) -> Found {
        std::hint::black_box(sites.find(ObjectKind::Heap, bytes, 0))
    }

    fn sites(function: &str) -> Sites {
        let frame = Frame { function: Some(function.into()), ..Frame::default() };
        let plan = Plan::new(vec![Place { least: Some("1M".into()), frame: vec![frame], ..Place::default() }]);
        let bytes: &'static [u8] = table::compile(&plan).expect("a plan").leak();
        Sites::new(Table::new(bytes).expect("a table"))
    }

    #[test]
    fn functions_are_found_on_the_stack() {
        // Under test this code is part of the program: the frames of this library are those of the test too.
        let code = Code::of(&sites("main").table(), None);
        let stack = unwind(&code);
        assert!(
            stack.frames().first().is_some_and(|&addr| !code.is_own(addr)),
            "what follows is the C library's start of a thread"
        );
        let known = sites("nearfar_test_site");
        assert_eq!(nearfar_test_site(&known, 100), Found::NotAsked);
        assert_ne!(nearfar_test_site(&known, 2 << 20), Found::NotAsked);
        assert_eq!(known.sizes(ObjectKind::Heap).len(), 1);
        assert!(known.sizes(ObjectKind::Map).is_empty());
    }
}
