//! Far memory in nameless files of a directory, by direct I/O where the file system can.

use super::{Backend, Securer, StoreId};
use crate::job::Settings;
use nearfar_core::addr::PAGE;
use nearfar_sys::errno::Errno;
use nearfar_sys::file::SpillFile;
use nearfar_sys::io::{Done, Engine, NoEngine, Op, Piece};
use nearfar_sys::io_threads::Threads;
use nearfar_sys::io_uring::Ring;
use nearfar_sys::kernel::Denied;
use nearfar_sys::spill_dir::SpillDir;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Threads of the engine that stands in for io_uring: the depth that a small NVMe device needs.
const IO_THREADS: usize = 8;

/// The files and the engine that reads and writes them.
pub struct FileStore {
    dir: SpillDir,
    denied: Denied,
    // Shared with threads that secure space.
    files: Vec<Arc<SpillFile>>,
    child: Option<(SpillFile, u64)>,
    engine: Box<dyn Engine>,
}

fn engine(denied: Denied) -> Result<Box<dyn Engine>, Errno> {
    if !denied.has("io_uring")
        && let Ok(ring) = Ring::new()
    {
        return Ok(Box::new(ring));
    }
    Ok(Box::new(Threads::new(IO_THREADS)?))
}

impl FileStore {
    /// Creates the spill file in the directory of the settings.
    pub fn new(settings: &Settings) -> Result<Self, Errno> {
        let (dir, denied) = (SpillDir::open(settings.far_dir().as_ref()), Denied(settings.denied));
        let files = vec![Arc::new(SpillFile::create(&dir, !denied.has("odirect"))?)];
        Ok(Self { dir, denied, files, child: None, engine: engine(denied)? })
    }

    fn new_file(&self) -> Result<SpillFile, Errno> {
        SpillFile::create(&self.dir, !self.denied.has("odirect"))
    }

    fn own_file(&self) -> &SpillFile {
        &self.files[self.files.len() - 1]
    }
}

impl Backend for FileStore {
    fn submit(&mut self, token: u64, write: bool, store: StoreId, offset: u64, pieces: Vec<Piece>) {
        let fd = self.files[store as usize].as_raw_fd();
        self.engine.submit(Op { token, write, fd, offset, pieces });
    }

    fn flush(&mut self) {
        self.engine.flush();
    }

    fn completions(&mut self, out: &mut Vec<Done>) {
        self.engine.completions(out);
    }

    fn wait_fd(&self) -> RawFd {
        self.engine.wait_fd()
    }

    fn secure(&mut self, from: u64, to: u64) -> Result<(), Errno> {
        self.own_file().secure(from, to - from)
    }

    fn securer(&self) -> Option<Securer> {
        let file = Arc::clone(&self.files[self.files.len() - 1]);
        Some(Box::new(move |from, to| file.secure(from, to - from)))
    }

    fn free_bytes(&self) -> u64 {
        self.own_file().free()
    }

    fn prepare_child(&mut self, bytes: u64) -> Result<(), Errno> {
        let (file, secured) = match self.child.take() {
            Some(ready) => ready,
            None => (self.new_file()?, 0),
        };
        if bytes > secured {
            file.secure(secured, bytes - secured)?;
        }
        self.child = Some((file, bytes.max(secured)));
        Ok(())
    }

    fn forget_child(&mut self) {
        self.child = None;
    }

    fn discard(&mut self, offset: u64, len: u64) {
        self.own_file().punch(offset, len);
    }

    fn move_now(&mut self, write: bool, store: StoreId, offset: u64, piece: Piece) -> Result<(), Errno> {
        let fd = self.files[store as usize].as_raw_fd();
        let mut done = 0;
        while done < piece.len {
            let rest = Piece { addr: piece.addr + done, len: piece.len - done };
            let op = Op { token: 0, write, fd, offset: offset + done as u64, pieces: vec![rest] };
            // In whole pages, as direct I/O wants it.
            match op.carry_out()? / PAGE * PAGE {
                0 => return Err(Errno(libc::EIO)),
                more => done += more,
            }
        }
        Ok(())
    }

    fn own(&self) -> StoreId {
        (self.files.len() - 1) as StoreId
    }

    fn after_fork(&mut self) -> Result<u64, Errno> {
        if self.files.len() > StoreId::MAX as usize {
            return Err(Errno(libc::EMLINK));
        }
        let (file, secured) = match self.child.take() {
            Some(ready) => ready,
            None => (self.new_file()?, 0),
        };
        self.files.push(Arc::new(file));
        // The old engine belongs to the parent. There may be no room for two.
        std::mem::replace(&mut self.engine, Box::new(NoEngine)).leave();
        self.engine = engine(self.denied)?;
        Ok(secured)
    }

    fn describe(&self) -> String {
        let mode = if self.own_file().is_direct() { "direct" } else { "buffered" };
        format!("{} ({mode} I/O, {})", self.dir.path().display(), self.engine.name())
    }

    fn fds(&self) -> Vec<RawFd> {
        let mut fds: Vec<RawFd> = self.files.iter().map(|file| file.as_raw_fd()).collect();
        fds.extend(self.child.iter().map(|(file, _)| file.as_raw_fd()));
        fds.push(self.engine.wait_fd());
        fds.extend(self.dir.fd());
        fds
    }
}
