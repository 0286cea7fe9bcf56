//! Numbers as bytes: little-endian words, variable-length numbers, and the checksum (CRC-32C) of a batch.

/// Reads numbers from the front of a slice; `None` at its end or where no number can be.
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl Cursor<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A little-endian number of `N` bytes, at most eight.
    pub fn word<const N: usize>(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// Seven bits a byte, lowest first; the high bit says that more follow.
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A difference: the sign is in the lowest bit.
    pub fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// CRC-32C of the parts, one behind the other.
pub(super) fn checksum(parts: [&[u8]; 2]) -> u32 {
    let step = |sum: u32, &byte: &u8| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)];
    !parts.iter().flat_map(|part| part.iter()).fold(u32::MAX, step)
}
