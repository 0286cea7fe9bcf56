//! Where the frames of a plan are in this process: return addresses and functions, translated for what is loaded now.

use crate::objects::{self, Object};
use nearfar_core::addr::Extent;
use nearfar_core::placement::is_wrapper;
use nearfar_core::placement::table::{Frame, Table, name_hash};
use nearfar_sys::elf::{self, SymbolKind};
use std::path::PathBuf;

/// The frames of a table as addresses.
#[derive(Clone)]
pub struct Code {
    /// `objects::generation` when it was made.
    pub generation: u64,
    frames: Vec<Vec<Extent>>,
    wrappers: Vec<Extent>,
    own: Vec<Extent>,
    /// All code of the objects it was made for.
    all: Vec<Extent>,
    objects: Vec<(usize, PathBuf)>,
}

fn code_of(object: &Object) -> impl Iterator<Item = Extent> + '_ {
    object.segments.iter().filter(|(_, flags)| flags & libc::PF_X != 0).map(|(segment, _)| *segment)
}

impl Code {
    /// Translates the frames of `table` for all loaded objects. What `before` says of objects that are still there holds.
    pub fn of(table: &Table<'_>, before: Option<&Self>) -> Self {
        let generation = objects::generation();
        let loaded = objects::loaded();
        let is_in = |known: &(usize, PathBuf)| loaded.iter().any(|object| (object.base, &object.path) == (known.0, &known.1));
        // Where something was unloaded, other code may lie there now.
        let before = before.filter(|before| before.objects.iter().all(is_in));
        let mut code = before.map_or_else(|| Self::empty(table.frames().count()), Self::clone);
        code.generation = generation;
        for object in loaded {
            if code.objects.iter().any(|(base, path)| (*base, path) == (object.base, &object.path)) {
                continue;
            }
            code.all.extend(code_of(&object));
            if object.has_code(Self::of as *const () as usize) {
                code.own.extend(code_of(&object));
            } else {
                let name = object.file_name();
                if is_wrapper(&name) {
                    code.wrappers.extend(code_of(&object));
                }
                translate(table, &object, name_hash(&name), &mut code.frames);
            }
            code.objects.push((object.base, object.path));
        }
        code
    }

    fn empty(frames: usize) -> Self {
        let [wrappers, own, all] = [const { Vec::new() }; 3];
        Self { generation: 0, frames: vec![Vec::new(); frames], wrappers, own, all, objects: Vec::new() }
    }

    /// True for code of an object that it knows.
    pub fn knows(&self, addr: usize) -> bool {
        self.all.iter().any(|range| range.contains(addr))
    }

    /// True when frame number `frame` of the table is at the return address `addr`.
    pub fn is_at(&self, frame: usize, addr: usize) -> bool {
        self.frames.get(frame).is_some_and(|ranges| ranges.iter().any(|range| range.contains(addr)))
    }

    /// True for code that allocates on behalf of others.
    pub fn is_wrapper(&self, addr: usize) -> bool {
        self.wrappers.iter().any(|range| range.contains(addr))
    }

    /// True for code of this library.
    pub fn is_own(&self, addr: usize) -> bool {
        self.own.iter().any(|range| range.contains(addr))
    }
}

/// Adds where frames are in `object`.
fn translate(table: &Table<'_>, object: &Object, name: u64, out: &mut [Vec<Extent>]) {
    let mut functions: Vec<(usize, u64)> = Vec::new();
    for (index, frame) in table.frames().enumerate() {
        match exact(&frame, object, name) {
            Some(addr) => out[index].push(Extent { start: addr, end: addr + 1 }),
            None => functions.extend(by_function(&frame, object, name).map(|function| (index, function))),
        }
    }
    if functions.is_empty() {
        return;
    }
    // Without its file nothing is found, and nothing matches: the match rate tells.
    let _ = elf::symbols(&object.path, |symbol_name, symbol| {
        if symbol.kind != SymbolKind::Function || symbol.size == 0 {
            return;
        }
        let hash = name_hash(symbol_name);
        for &(index, _) in functions.iter().filter(|(_, function)| *function == hash) {
            let start = object.base.wrapping_add(symbol.value as usize);
            // A return address may lie right behind a function that ends with a call.
            out[index].push(Extent { start: start + 1, end: start.saturating_add(symbol.size as usize + 1) });
        }
    });
}

/// The address of a frame whose offset holds for this object.
fn exact(frame: &Frame<'_>, object: &Object, name: u64) -> Option<usize> {
    let offset = usize::try_from(frame.offset?).ok()?;
    let same = if frame.build_id.is_empty() { frame.module == Some(name) } else { frame.build_id == object.build_id };
    same.then(|| object.base.wrapping_add(offset))
}

/// The function of a frame that is to be looked for in this object: it was built anew, or has no offset.
fn by_function(frame: &Frame<'_>, object: &Object, name: u64) -> Option<u64> {
    let may_be_here = frame.module.is_none_or(|module| module == name);
    let is_known = frame.offset.is_some() && !frame.build_id.is_empty() && frame.build_id == object.build_id;
    frame.function.filter(|_| may_be_here && !is_known)
}
