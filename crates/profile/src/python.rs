//! Lines of a Python script: which of them asked for memory.
//!
//! Asking the interpreter would make frame objects, which allocates, and may collect garbage, within an allocation. So its structures
//! are read where they lie, for the versions whose layout is known (CPython 3.9 to 3.13 with a GIL); all others have no script frames.
//! The GIL is not needed, and often not held (numpy lets go of it where it allocates zeros): the frames of a thread are changed by that
//! thread alone, they keep their code, and what is read of code never changes. The only calls are ones that look at memory. While the
//! interpreter shuts down nothing is looked at: it frees the states of threads that still run.

use nearfar_core::profile::record::ScriptFrame;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Frames looked at.
pub const DEPTH: usize = 4;
/// Frames of the interpreter's own that may lie between.
const MOST_STEPS: usize = 16;

/// Where things lie in one version.
#[derive(Debug)]
struct Layout {
    minor: u32,
    /// From the thread's state to the innermost frame: offsets to follow.
    to_frame: [usize; 2],
    steps: usize,
    code: usize,
    previous: usize,
    /// The instruction: a pointer, or (`is_index`) an index.
    instruction: usize,
    is_index: bool,
    /// Bytes that an index counts.
    unit: i32,
    /// Where the instructions lie in the code object.
    adaptive: usize,
    filename: usize,
    name: usize,
    /// Size of the head of a string of ASCII characters, and of others.
    ascii: usize,
    compact: usize,
}

const fn frames(minor: u32, instruction: usize, unit: i32) -> Layout {
    let (filename, name) = (104, 112);
    let (to_frame, steps, ascii, compact) = ([24, 0], 1, 48, 72);
    Layout {
        minor,
        to_frame,
        steps,
        code: 32,
        previous: 24,
        instruction,
        is_index: true,
        unit,
        adaptive: 0,
        filename,
        name,
        ascii,
        compact,
    }
}

/// Offsets as offsetof printed them for 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0 on x86-64; those of a minor version do not change.
const LAYOUTS: [Layout; 5] = [
    frames(9, 104, 1),
    frames(10, 96, 2),
    Layout { code: 32, previous: 48, adaptive: 184, ascii: 48, compact: 72, ..inner(11, [56, 8], 2) },
    Layout { adaptive: 192, ..inner(12, [56, 0], 2) },
    Layout { adaptive: 200, ..inner(13, [72, 0], 1) },
];

const fn inner(minor: u32, to_frame: [usize; 2], steps: usize) -> Layout {
    let (filename, name) = (112, 120);
    Layout {
        minor,
        to_frame,
        steps,
        code: 0,
        previous: 8,
        instruction: 56,
        is_index: false,
        unit: 1,
        adaptive: 0,
        filename,
        name,
        ascii: 40,
        compact: 56,
    }
}

/// The functions of the interpreter that are called; addresses, since symbols are found without the loader (`modules`).
#[derive(Debug, Default)]
pub struct Found {
    /// `_Py_IsFinalizing` or `Py_IsFinalizing`.
    pub finalizing: usize,
    /// `PyGILState_GetThisThreadState`.
    pub this_thread: usize,
    /// `PyCode_Addr2Line`.
    pub line: usize,
    /// `PyCode_Type`.
    pub code_type: usize,
    /// `Py_GetVersion`.
    pub version: usize,
}

impl Found {
    /// Takes note of a symbol.
    pub fn see(&mut self, name: &[u8], addr: usize) {
        match name {
            b"_Py_IsFinalizing" | b"Py_IsFinalizing" => self.finalizing = addr,
            b"PyGILState_GetThisThreadState" => self.this_thread = addr,
            b"PyCode_Addr2Line" => self.line = addr,
            b"PyCode_Type" => self.code_type = addr,
            b"Py_GetVersion" => self.version = addr,
            _ => {}
        }
    }

    fn is_whole(&self) -> bool {
        [self.finalizing, self.this_thread, self.line, self.code_type, self.version].iter().all(|&addr| addr != 0)
    }
}

/// The interpreter of this process, once it is known.
#[derive(Debug, Default)]
pub struct Python {
    known: AtomicBool,
    layout: AtomicUsize,
    finalizing: AtomicUsize,
    this_thread: AtomicUsize,
    line: AtomicUsize,
    code_type: AtomicUsize,
}

/// A frame as it is told from others: the code object, the instruction, and the code's file and name mixed, since another code object
/// may come to lie at the same place.
pub type Raw = [(usize, usize, usize); DEPTH];

/// # Safety
/// `addr` is readable for a word.
unsafe fn word(addr: usize) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { (addr as *const usize).read_unaligned() }
}

impl Python {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            known: AtomicBool::new(false),
            layout: AtomicUsize::new(0),
            finalizing: AtomicUsize::new(0),
            this_thread: AtomicUsize::new(0),
            line: AtomicUsize::new(0),
            code_type: AtomicUsize::new(0),
        }
    }

    /// Begins to look, if everything was found in this process and the version is a known one; else says what the version is.
    ///
    /// # Safety
    /// The addresses are those of the functions, in a library that is never unloaded.
    pub unsafe fn begin(&self, found: &Found) -> Result<(), String> {
        if !found.is_whole() {
            return Err("not whole".into());
        }
        // SAFETY: the caller's promise; returns a C string that never changes.
        let text = unsafe {
            let version: extern "C" fn() -> *const c_char = std::mem::transmute(found.version);
            CStr::from_ptr(version()).to_string_lossy()
        };
        let minor =
            text.strip_prefix("3.").and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
        let layout = LAYOUTS.iter().position(|layout| Some(layout.minor) == minor);
        let Some(layout) = layout.filter(|_| !text.contains("free-threading") && cfg!(target_arch = "x86_64")) else {
            return Err(text.split_whitespace().next().unwrap_or_default().to_owned());
        };
        self.layout.store(layout, Ordering::Relaxed);
        self.finalizing.store(found.finalizing, Ordering::Relaxed);
        self.this_thread.store(found.this_thread, Ordering::Relaxed);
        self.line.store(found.line, Ordering::Relaxed);
        self.code_type.store(found.code_type, Ordering::Relaxed);
        self.known.store(true, Ordering::Release);
        Ok(())
    }

    /// The innermost frames of the script that runs in this thread, or waits for a call of C.
    #[inline]
    pub fn frames(&self) -> Option<Raw> {
        if !self.known.load(Ordering::Acquire) {
            return None;
        }
        self.walk()
    }

    #[inline(never)]
    fn walk(&self) -> Option<Raw> {
        let layout = &LAYOUTS[self.layout.load(Ordering::Relaxed)];
        let code_type = self.code_type.load(Ordering::Relaxed);
        let mut raw = [(0, 0, 0); DEPTH];
        let mut count = 0;
        // SAFETY: functions of the interpreter without arguments, which only look (`begin`). The state is this thread's own, which
        // stays unless the interpreter shuts down; so do its frames and their code while the thread is here.
        unsafe {
            let finalizing: extern "C" fn() -> c_int = std::mem::transmute(self.finalizing.load(Ordering::Relaxed));
            let this_thread: extern "C" fn() -> usize = std::mem::transmute(self.this_thread.load(Ordering::Relaxed));
            if finalizing() != 0 {
                return None;
            }
            let state = this_thread();
            if state == 0 {
                return None;
            }
            let mut frame = state;
            for &offset in &layout.to_frame[..layout.steps] {
                frame = word(frame + offset);
                if frame == 0 {
                    return None;
                }
            }
            for _ in 0..MOST_STEPS {
                if frame == 0 || count == DEPTH {
                    break;
                }
                let code = word(frame + layout.code);
                // The second word of every object is its type; the interpreter's own frames have something else here.
                if code != 0 && code.is_multiple_of(8) && word(code + 8) == code_type {
                    let instruction = word(frame + layout.instruction);
                    let text = word(code + layout.filename).rotate_left(17) ^ word(code + layout.name);
                    raw[count] = (code, if layout.is_index { instruction & 0xffff_ffff } else { instruction }, text);
                    count += 1;
                }
                frame = word(frame + layout.previous);
            }
        }
        (count > 0).then_some(raw)
    }

    /// What the frames are called, for people.
    pub fn names(&self, raw: &Raw) -> Vec<ScriptFrame> {
        let layout = &LAYOUTS[self.layout.load(Ordering::Relaxed)];
        let named = |&(code, instruction, _): &(usize, usize, usize)| {
            // SAFETY: the code of a frame of this thread; a function as in `begin`, which does not call back.
            unsafe {
                let line: extern "C" fn(usize, c_int) -> c_int = std::mem::transmute(self.line.load(Ordering::Relaxed));
                let at = match layout.is_index {
                    true => instruction as u32 as i32 * layout.unit,
                    false => instruction.wrapping_sub(code + layout.adaptive) as i32,
                };
                ScriptFrame {
                    file: text(layout, word(code + layout.filename)),
                    function: text(layout, word(code + layout.name)),
                    line: u32::try_from(line(code, at)).unwrap_or(0),
                }
            }
        };
        // From 3.12 on the frame by which C enters the interpreter has code as well.
        raw.iter().filter(|(code, ..)| *code != 0).map(named).filter(|frame| frame.file != "<shim>").collect()
    }
}

/// The characters of a string object, without asking for its UTF-8, which would allocate.
///
/// # Safety
/// `object` is null or a live string object.
unsafe fn text(layout: &Layout, object: usize) -> String {
    const MOST: usize = 4096;
    if object == 0 {
        return String::new();
    }
    // SAFETY: the caller's promise; a compact string has its characters behind its head.
    unsafe {
        let len = word(object + 16).min(MOST);
        let state = (object as *const u32).byte_add(32).read();
        let (kind, is_compact, is_ascii) = (state >> 2 & 7, state & 0x20 != 0, state & 0x40 != 0);
        let start = object + if is_ascii { layout.ascii } else { layout.compact };
        match kind {
            _ if !is_compact => String::new(),
            1 => std::slice::from_raw_parts(start as *const u8, len).iter().map(|&byte| char::from(byte)).collect(),
            2 => String::from_utf16_lossy(std::slice::from_raw_parts(start as *const u16, len)),
            4 => {
                let points = std::slice::from_raw_parts(start as *const u32, len).iter();
                points.map(|&point| char::from_u32(point).unwrap_or('?')).collect()
            }
            _ => String::new(),
        }
    }
}
