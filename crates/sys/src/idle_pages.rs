//! Idle page tracking: /sys/kernel/mm/page_idle/bitmap (CONFIG_IDLE_PAGE_TRACKING, Linux 4.3, root).
//!
//! A page is marked idle; when the mark is gone later, the page was visited. Pages are found through /proc/PID/pagemap, whose frame numbers
//! only root sees. Of a huge page only the first frame can be marked, and stands for all of it.

use nearfar_core::addr::{Extent, PAGE};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

const BITMAP: &str = "/sys/kernel/mm/page_idle/bitmap";
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
/// Frames of a huge page.
const HUGE: u64 = 512;

/// The bitmap of all frames.
#[derive(Debug)]
pub struct IdlePages {
    bitmap: File,
}

/// The frames of one process.
#[derive(Debug)]
pub struct Frames(File);

impl Frames {
    /// Of process `pid`.
    ///
    /// # Errors
    /// Those of opening its pagemap.
    pub fn of(pid: u32) -> std::io::Result<Self> {
        File::open(format!("/proc/{pid}/pagemap")).map(Self)
    }

    /// The frame of the page at `address`; `None` without a page, or without the right to know.
    pub fn at(&self, address: usize) -> Option<u64> {
        let mut entry = [0; 8];
        self.0.read_exact_at(&mut entry, (address / PAGE * 8) as u64).ok()?;
        let entry = u64::from_ne_bytes(entry);
        Some(entry & FRAME).filter(|&frame| entry & PRESENT != 0 && frame != 0)
    }

    /// The frame of one of the pages of `range`, at random by `random`; a few are tried.
    pub fn random(&self, range: Extent, random: &mut impl FnMut() -> u64) -> Option<u64> {
        let pages = (range.len() / PAGE).max(1) as u64;
        (0..4).find_map(|_| self.at(range.start + (random() % pages) as usize * PAGE))
    }
}

impl IdlePages {
    /// Opens the bitmap.
    ///
    /// # Errors
    /// Why it cannot be had, for people.
    pub fn open() -> Result<Self, String> {
        let this = Self::open_at(Path::new(BITMAP)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => "the kernel has no idle page tracking (CONFIG_IDLE_PAGE_TRACKING)".to_owned(),
            ErrorKind::PermissionDenied => "only root may use idle page tracking".to_owned(),
            _ => format!("{BITMAP}: {error}"),
        })?;
        // The kernel hides frames from those without CAP_SYS_ADMIN.
        let here = 0u8;
        let frames = Frames::of(std::process::id()).map_err(|error| format!("/proc/self/pagemap: {error}"))?;
        match frames.at((&raw const here).addr()) {
            Some(_) => Ok(this),
            None => Err("frame numbers are hidden: idle page tracking needs CAP_SYS_ADMIN".to_owned()),
        }
    }

    fn open_at(path: &Path) -> std::io::Result<Self> {
        Ok(Self { bitmap: OpenOptions::new().read(true).write(true).open(path)? })
    }

    /// Marks `frame`, or the huge page that it belongs to, as idle; the frame that bears the mark, or `None` when it cannot bear one.
    pub fn mark(&self, frame: u64) -> Option<u64> {
        [frame, frame / HUGE * HUGE].into_iter().find(|&frame| self.set(frame).is_ok() && self.is_idle(frame) == Ok(true))
    }

    /// True when the mark on `frame` is gone.
    pub fn was_visited(&self, frame: u64) -> bool {
        self.is_idle(frame) == Ok(false)
    }

    fn set(&self, frame: u64) -> Result<(), ErrorKind> {
        // Zeros are ignored: one bit is set, the others stay.
        let word = (1u64 << (frame % 64)).to_ne_bytes();
        self.bitmap.write_all_at(&word, frame / 64 * 8).map_err(|error: Error| error.kind())
    }

    fn is_idle(&self, frame: u64) -> Result<bool, ErrorKind> {
        let mut word = [0; 8];
        self.bitmap.read_exact_at(&mut word, frame / 64 * 8).map_err(|error| error.kind())?;
        Ok(u64::from_ne_bytes(word) & 1 << (frame % 64) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_per_frame() {
        // An ordinary file stands for the bitmap: what is written is read again, until something clears it.
        let path = std::env::temp_dir().join(format!("nearfar-idle-{}", std::process::id()));
        std::fs::write(&path, [0u8; 256]).expect("written");
        let idle = IdlePages::open_at(&path).expect("opened");
        assert_eq!(idle.mark(130), Some(130));
        assert!(!idle.was_visited(130) && idle.was_visited(131));
        assert_eq!(std::fs::read(&path).expect("read")[16], 4);
        assert_eq!(idle.mark(1 << 40).filter(|&frame| frame != 1 << 40), None);
        std::fs::write(&path, [0u8; 256]).expect("written");
        assert!(idle.was_visited(130));
        std::fs::remove_file(&path).expect("removed");
        assert!(IdlePages::open_at(&path).is_err());
    }

    #[test]
    fn where_it_cannot_be_had_it_says_why() {
        if let Err(why) = IdlePages::open() {
            assert!(why.contains("idle page tracking") || why.contains("bitmap"), "{why}");
        }
    }

    #[test]
    fn frames_of_this_process() {
        let data = vec![1u8; 16 * PAGE];
        let frames = Frames::of(std::process::id()).expect("own");
        let at = data.as_ptr() as usize / PAGE * PAGE + PAGE;
        let frame = frames.at(at);
        let mut next = 0u64;
        let random = frames.random(Extent::new(at, PAGE), &mut || {
            next += 1;
            next
        });
        assert_eq!(frame, random, "one page, unless the kernel moved it");
        std::hint::black_box(&data);
    }
}
