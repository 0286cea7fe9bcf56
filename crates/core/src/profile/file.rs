//! The bytes of an `.nfprof` file: a head, then batches of records, each written by one process in one piece. A file that was cut
//! off anywhere (SIGKILL, full disk) is readable but for what was cut off; others may have gone on behind it. Drawn in docs/reference/binary-formats.md.

use super::record::Record;

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"nfprof\r\n";
/// Version of the format. Readers refuse others, but for the one before.
pub const VERSION: u32 = 3;
/// A version without thread-local objects, else the same.
const OLD: u32 = 2;
/// First bytes of a batch.
const BATCH: u32 = u32::from_le_bytes(*b"batc");
/// MAGIC, VERSION, four bytes of nothing.
const HEAD: usize = 16;
/// Mark, process, bytes of content, checksum of it.
const BATCH_HEAD: usize = 16;
/// No batch is larger: what claims to be is damage.
const MOST: usize = 64 << 20;

/// Why bytes are no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// They begin with something else.
    #[error("this is not a profile of nearfar")]
    Foreign,
    /// Another version wrote it.
    #[error("this profile has format {0}, and this nearfar reads formats {OLD} and {VERSION}: use the nearfar that wrote it")]
    Version(u32),
    /// It ends before the first record.
    #[error("this profile holds nothing: the program ended before anything was written, or the file was cut off")]
    Empty,
}

/// Records of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Number of the process.
    pub pid: u32,
    /// In order of time.
    pub records: Vec<Record>,
}

/// A file's content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// In the order of the file, which for each process is that of time.
    pub batches: Vec<Batch>,
    /// Bytes that are in no whole batch: the file was cut off or damaged there.
    pub lost_bytes: u64,
}

/// What a file begins with.
pub fn head() -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// FNV-1a, 32 bits.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The bytes of a batch.
pub fn batch(pid: u32, records: &[Record]) -> Vec<u8> {
    let mut out = vec![0; BATCH_HEAD];
    for record in records {
        // Serialising to memory cannot fail for these types; a record that did would be left out whole.
        if let Ok(bytes) = postcard::to_allocvec(record) {
            out.extend_from_slice(&bytes);
        }
    }
    let content = &out[BATCH_HEAD..];
    let words = [BATCH, pid, content.len() as u32, checksum(content)];
    for (at, word) in words.into_iter().enumerate() {
        out[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
    }
    out
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The batch that `bytes` begin with, and the rest.
fn take_batch(bytes: &[u8]) -> Option<(Batch, &[u8])> {
    let [mark, pid, len, sum] = [word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?, word(bytes, 12)?];
    let len = len as usize;
    if mark != BATCH || len > MOST {
        return None;
    }
    let content = bytes.get(BATCH_HEAD..BATCH_HEAD + len)?;
    if checksum(content) != sum {
        return None;
    }
    let mut rest = content;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (record, after) = postcard::take_from_bytes::<Record>(rest).ok()?;
        records.push(record);
        rest = after;
    }
    Some((Batch { pid, records }, &bytes[BATCH_HEAD + len..]))
}

/// Reads a file.
///
/// # Errors
/// It is no profile, of another version, or without any record. Damage is none as long as a batch is whole: see [`Content::lost_bytes`].
pub fn read(bytes: &[u8]) -> Result<Content, FileError> {
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(if bytes.is_empty() { FileError::Empty } else { FileError::Foreign });
    }
    match word(bytes, 8) {
        Some(VERSION | OLD) => {}
        Some(version) => return Err(FileError::Version(version)),
        None => return Err(FileError::Empty),
    }
    let mut rest = bytes.get(HEAD..).unwrap_or_default();
    let mut content = Content::default();
    while !rest.is_empty() {
        match take_batch(rest) {
            Some((batch, after)) => {
                content.batches.push(batch);
                rest = after;
            }
            None => {
                // What one process could not finish ends nothing for the others.
                let next = rest[1..].windows(4).position(|bytes| bytes == BATCH.to_le_bytes());
                let skipped = next.map_or(rest.len(), |next| next + 1);
                content.lost_bytes += skipped as u64;
                rest = &rest[skipped..];
            }
        }
    }
    if content.batches.is_empty() { Err(FileError::Empty) } else { Ok(content) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::record::{Start, Watch, WatchEnd};

    fn records() -> Vec<Record> {
        let watch = Watch {
            object: 1,
            page: 0x7000,
            pages: 1,
            at: 5,
            waited: 7,
            stalled: 0,
            end: WatchEnd::Write,
            touched: 0x7008,
            ip: 9,
            tid: 3,
            wrote: Some(true),
            lines: None,
        };
        vec![
            Record::Start(Start { program: "a".into(), ..Start::default() }),
            Record::Watch(watch),
            Record::Gone { id: 1, at: 9 },
        ]
    }

    #[test]
    fn written_read_and_cut_off_anywhere() {
        let mut bytes = head().to_vec();
        bytes.extend(batch(1, &records()));
        let first = bytes.len();
        bytes.extend(batch(2, &records()));
        let content = read(&bytes).unwrap();
        assert_eq!((content.batches.len(), content.lost_bytes), (2, 0));
        assert_eq!(content.batches[1], Batch { pid: 2, records: records() });
        for end in 0..bytes.len() {
            match read(&bytes[..end]) {
                Ok(content) => assert_eq!((end >= first, content.batches.len()), (true, 1), "{end}"),
                Err(error) => assert!(end < first && matches!(error, FileError::Empty | FileError::Foreign), "{end}: {error}"),
            }
        }
    }

    /// A full disk, or a signal amid the write: others go on behind it.
    #[test]
    fn one_torn_batch_is_all_that_is_lost() {
        let torn = batch(2, &records());
        for end in 0..torn.len() {
            let mut bytes = head().to_vec();
            bytes.extend(batch(1, &records()));
            bytes.extend(&torn[..end]);
            for pid in [3, 4] {
                bytes.extend(batch(pid, &records()));
            }
            let content = read(&bytes).unwrap();
            let pids: Vec<u32> = content.batches.iter().map(|batch| batch.pid).collect();
            assert_eq!((pids, content.lost_bytes), (vec![1, 3, 4], end as u64));
        }
    }

    #[test]
    fn damage_and_strangers() {
        let mut bytes = head().to_vec();
        bytes.extend(batch(1, &records()));
        let first = bytes.len();
        bytes.extend(batch(2, &records()));
        for at in first..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let content = read(&damaged).unwrap();
            assert_eq!(content.batches[0].records, records(), "what came before damage at {at} is whole");
            if (first + 4..first + 8).contains(&at) {
                // The number of the process, which has no checksum.
                continue;
            }
            assert_eq!((content.batches.len(), content.lost_bytes), (1, (bytes.len() - first) as u64), "{at}");
            // Nor is what comes after it lost.
            damaged.extend(batch(3, &records()));
            let content = read(&damaged).unwrap();
            let pids: Vec<u32> = content.batches.iter().map(|batch| batch.pid).collect();
            assert_eq!((pids, content.lost_bytes), (vec![1, 3], (bytes.len() - first) as u64), "damage at {at}");
            assert_eq!(content.batches[1].records, records());
        }
        assert_eq!(read(b"\x7fELF and so on, not a profile"), Err(FileError::Foreign));
        let mut older = head().to_vec();
        older[8] = 2;
        older.extend(batch(1, &records()));
        assert_eq!(read(&older).unwrap().batches[0].records, records());
        let mut newer = head();
        newer[8] = 9;
        assert_eq!(read(&newer), Err(FileError::Version(9)));
    }
}
