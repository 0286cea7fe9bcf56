//! The objects that the loader has loaded: the program and its libraries, where they lie and what they are called.

use crate::loader::each_object;
use nearfar_core::addr::Extent;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One loaded object.
pub struct Object {
    /// What is added to addresses of the file.
    pub base: usize,
    /// Path as the loader knows it; of the program, /proc/self/exe.
    pub path: PathBuf,
    /// True for the program itself.
    pub is_program: bool,
    /// The build id, empty without one.
    pub build_id: Vec<u8>,
    /// Segments with their protection (`PF_*`).
    pub segments: Vec<(Extent, u32)>,
}

impl Object {
    /// The name of its file, without the directory.
    pub fn file_name(&self) -> Vec<u8> {
        let path = if self.is_program { std::fs::read_link(&self.path).unwrap_or_default() } else { self.path.clone() };
        path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default()
    }

    /// True when `addr` lies in its code.
    pub fn has_code(&self, addr: usize) -> bool {
        self.segments.iter().any(|(segment, flags)| flags & libc::PF_X != 0 && segment.contains(addr))
    }

    /// Its writable segments.
    pub fn writable(&self) -> impl Iterator<Item = Extent> + '_ {
        self.segments.iter().filter(|(_, flags)| flags & libc::PF_W != 0).map(|(segment, _)| *segment)
    }

    /// True when `addr` lies in it.
    pub fn contains(&self, addr: usize) -> bool {
        self.segments.iter().any(|(segment, _)| segment.contains(addr))
    }
}

/// All loaded objects, the program first.
pub fn loaded() -> Vec<Object> {
    let mut found: Vec<Object> = Vec::new();
    each_object(&mut |object| {
        let segments: Vec<_> = object.headers(libc::PT_LOAD).map(|(segment, header)| (segment, header.p_flags)).collect();
        let is_mapped =
            |note: &Extent| segments.iter().any(|(segment, flags)| flags & libc::PF_R != 0 && segment.contains_extent(*note));
        let notes = object.headers(libc::PT_NOTE).map(|(note, _)| note).filter(is_mapped);
        // SAFETY: a readable segment of a loaded object, which stays while the loader's lock is held.
        let texts = notes.map(|note| unsafe { std::slice::from_raw_parts(note.start as *const u8, note.len()) });
        let build_id = texts.filter_map(build_id_of).next().unwrap_or_default().to_vec();
        let is_program = found.is_empty();
        let path = if is_program { Path::new("/proc/self/exe") } else { Path::new(OsStr::from_bytes(object.name())) }.to_owned();
        found.push(Object { base: object.base(), path, is_program, build_id, segments });
        ControlFlow::Continue(())
    });
    found
}

/// A number that changes whenever objects are loaded or unloaded.
pub fn generation() -> u64 {
    let mut count = 0;
    each_object(&mut |object| {
        count = object.generation();
        ControlFlow::Break(())
    });
    count
}

/// The build id among the notes in `notes`.
fn build_id_of(notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let (head, tail) = rest.split_first_chunk::<12>()?;
        let [name_len, len, kind] = [0, 4, 8].map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
        let begin = (name_len as usize).checked_next_multiple_of(4)?;
        let end = begin.checked_add(len as usize)?;
        let bytes = tail.get(begin..end)?;
        if kind == NT_GNU_BUILD_ID && tail.starts_with(b"GNU\0") {
            return Some(bytes);
        }
        rest = tail.get(end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_and_its_libraries() {
        let objects = loaded();
        assert!(objects[0].is_program && objects[0].has_code(this_program_and_its_libraries as *const () as usize));
        let libc = objects.iter().find(|object| object.has_code(libc::getpid as *const () as usize)).expect("the C library");
        assert!(String::from_utf8_lossy(&libc.file_name()).starts_with("libc"), "{:?}", libc.path);
        assert!(!libc.build_id.is_empty() && libc.writable().next().is_some());
        assert_eq!(generation(), generation());
    }

    #[test]
    fn notes() {
        let other = [4, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, b'G', b'N', b'U', 0, 1, 2, 3, 4, 5, 0, 0, 0];
        let id = [4, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0, 0xab, 0x12];
        assert_eq!(build_id_of(&[&other[..], &id[..]].concat()), Some(&[0xab, 0x12][..]));
        assert_eq!((build_id_of(&other), build_id_of(&id[..17]), build_id_of(&[])), (None, None, None));
    }
}
