//! Batches: records of one process that were written in one piece, each readable without the others.
//!
//! Processes append to one file, and any of them may be killed while it writes. So each batch has a mark and a checksum, and a
//! reader that finds anything else looks for the next mark.

use super::Record;
use super::bytes::{Cursor, checksum, put_signed, put_varint};
use crate::policy::Found;

const FILE_MARK: &[u8; 8] = b"nftrace\n";
/// Version of the format. Readers refuse others.
const VERSION: u32 = 1;
/// Bytes of the file's header.
pub const HEADER_BYTES: usize = 16;
const BATCH_MARK: &[u8; 4] = b"nftb";
/// Bytes of a batch before its records, the checksum at the end included.
const BATCH_HEADER: usize = 48;

const OUT: u8 = 5;
const GONE: u8 = 6;
const KIND: u8 = 7;
const FLAG: u8 = 8;
const OTHER_THREAD: u8 = 16;
const KINDS: [Found; 5] = [Found::Zero, Found::Far, Found::Late, Found::Staged, Found::Limbo];

/// Whose records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began to record (monotonic ns): tells programs apart that one process executed, and processes of one number.
    pub since_ns: u64,
}

/// Records of one process, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Who wrote it.
    pub process: Process,
    /// How many batches it wrote before.
    pub number: u32,
    /// Records that it had to drop so far, because they came faster than they could be written.
    pub dropped: u64,
    /// The records.
    pub records: Vec<Record>,
}

/// The first bytes of a file whose recorder keeps `window_chunks` chunks in view.
pub fn header(window_chunks: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(FILE_MARK);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..].copy_from_slice(&window_chunks.to_le_bytes());
    bytes
}

/// Appends `batch` to `out`.
pub fn encode(batch: &Batch, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + BATCH_HEADER, 0);
    let base_us = batch.records.iter().find_map(time_of).unwrap_or(0);
    let (mut page, mut time, mut thread) = (0u64, base_us, 0u32);
    for record in &batch.records {
        match *record {
            Record::Visit { page: at, thread: by, write, found, time_us } => {
                let kind = KINDS.iter().position(|&kind| kind == found).unwrap_or(0) as u8;
                let other = by != thread;
                out.push(kind | if write { FLAG } else { 0 } | if other { OTHER_THREAD } else { 0 });
                put_signed(out, at.wrapping_sub(page) as i64);
                put_signed(out, time_us.wrapping_sub(time) as i64);
                if other {
                    put_varint(out, u64::from(by));
                }
                (page, time, thread) = (at, time_us, by);
            }
            Record::Out { page: at, changed } => {
                out.push(OUT | if changed { FLAG } else { 0 });
                put_signed(out, at.wrapping_sub(page) as i64);
                page = at;
            }
            Record::Gone { page: at, pages } => {
                out.push(GONE);
                put_signed(out, at.wrapping_sub(page) as i64);
                put_varint(out, pages);
                page = at;
            }
        }
    }
    let mut head = Vec::with_capacity(BATCH_HEADER);
    head.extend_from_slice(BATCH_MARK);
    head.extend_from_slice(&((out.len() - start - BATCH_HEADER) as u32).to_le_bytes());
    head.extend_from_slice(&batch.process.pid.to_le_bytes());
    head.extend_from_slice(&batch.number.to_le_bytes());
    head.extend_from_slice(&batch.process.since_ns.to_le_bytes());
    head.extend_from_slice(&base_us.to_le_bytes());
    head.extend_from_slice(&batch.dropped.to_le_bytes());
    head.extend_from_slice(&(batch.records.len() as u32).to_le_bytes());
    let sum = checksum([&head, &out[start + BATCH_HEADER..]]);
    head.extend_from_slice(&sum.to_le_bytes());
    out[start..start + BATCH_HEADER].copy_from_slice(&head);
}

fn time_of(record: &Record) -> Option<u64> {
    match record {
        Record::Visit { time_us, .. } => Some(*time_us),
        _ => None,
    }
}

/// Reads a file, batch by batch.
pub struct Reader<'a> {
    rest: &'a [u8],
    window_chunks: u32,
    damaged: u64,
}

impl<'a> Reader<'a> {
    /// `None` when `bytes` do not begin as a trace of this version does.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.strip_prefix(FILE_MARK)?);
        if cursor.word::<4>()? != u64::from(VERSION) {
            return None;
        }
        let window_chunks = cursor.word::<4>()? as u32;
        Some(Self { rest: cursor.0, window_chunks, damaged: 0 })
    }

    /// Chunks that were in view at a time, for each process.
    pub fn window_chunks(&self) -> u32 {
        self.window_chunks
    }

    /// Bytes passed over so far because they belong to no whole batch.
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged
    }
}

impl Iterator for Reader<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        loop {
            // Most often the mark is where it should be.
            let at = self.rest.windows(BATCH_MARK.len()).position(|bytes| bytes == BATCH_MARK).unwrap_or(self.rest.len());
            self.damaged += at as u64;
            self.rest = &self.rest[at..];
            if self.rest.is_empty() {
                return None;
            }
            match decode(self.rest) {
                Some((batch, len)) => {
                    self.rest = &self.rest[len..];
                    return Some(batch);
                }
                None => {
                    self.damaged += 1;
                    self.rest = &self.rest[1..];
                }
            }
        }
    }
}

/// The batch at the front of `bytes` and its length; `None` when it is not whole or not what was written.
fn decode(bytes: &[u8]) -> Option<(Batch, usize)> {
    let (head, body) = bytes.split_at_checked(BATCH_HEADER)?;
    let mut cursor = Cursor(head.strip_prefix(BATCH_MARK)?);
    let len = cursor.word::<4>()? as usize;
    let pid = cursor.word::<4>()? as u32;
    let number = cursor.word::<4>()? as u32;
    let since_ns = cursor.word::<8>()?;
    let base_us = cursor.word::<8>()?;
    let dropped = cursor.word::<8>()?;
    let count = cursor.word::<4>()?;
    let sum = cursor.word::<4>()?;
    let body = body.get(..len)?;
    if u64::from(checksum([&head[..BATCH_HEADER - 4], body])) != sum {
        return None;
    }
    let records = decode_records(body, base_us)?;
    let process = Process { pid, since_ns };
    (records.len() as u64 == count).then_some((Batch { process, number, dropped, records }, BATCH_HEADER + len))
}

fn decode_records(body: &[u8], base_us: u64) -> Option<Vec<Record>> {
    let mut cursor = Cursor(body);
    let mut records = Vec::new();
    let (mut page, mut time_us, mut thread) = (0u64, base_us, 0u32);
    while let Some(tag) = cursor.byte() {
        page = page.wrapping_add(cursor.signed()? as u64);
        let flag = tag & FLAG != 0;
        records.push(match tag & KIND {
            OUT => Record::Out { page, changed: flag },
            GONE => Record::Gone { page, pages: cursor.varint()? },
            kind => {
                time_us = time_us.wrapping_add(cursor.signed()? as u64);
                if tag & OTHER_THREAD != 0 {
                    thread = cursor.varint()? as u32;
                }
                Record::Visit { page, thread, write: flag, found: *KINDS.get(usize::from(kind))?, time_us }
            }
        });
    }
    Some(records)
}
