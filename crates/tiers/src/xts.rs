//! AES-256-XTS (IEEE 1619) over pages: the cipher of `--encrypt`. Pure; knows no files and no frames.
//!
//! The mode is written out here because the crate for it goes block by block, which leaves most of the CPU's AES units idle;
//! the tests hold it against that crate. Each page is a data unit of its own, numbered by its place in the store, so a page
//! that is moved or exchanged on the device does not decrypt to what it was. Changes are found by the checksums.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes256, Aes256Enc, Block};
use nearfar_core::addr::PAGE;

/// Bytes of a key: half for the data, half for the tweaks.
pub const KEY_BYTES: usize = 64;

const BLOCK_BYTES: usize = 16;
const BLOCKS: usize = PAGE / BLOCK_BYTES;

/// A key, expanded.
pub struct Xts {
    data: Aes256,
    tweak: Aes256Enc,
}

impl Xts {
    /// Expands `key`.
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        let half = |from: usize| {
            let mut part = [0u8; KEY_BYTES / 2];
            part.copy_from_slice(&key[from..from + KEY_BYTES / 2]);
            Array::from(part)
        };
        Self { data: Aes256::new(&half(0)), tweak: Aes256Enc::new(&half(KEY_BYTES / 2)) }
    }

    /// Encrypts a page in place, as page `number` of its store.
    pub fn encrypt(&self, number: u64, page: &mut [u8; PAGE]) {
        let tweaks = self.tweaks(number);
        mask(page, &tweaks);
        self.data.encrypt_blocks(blocks(page));
        mask(page, &tweaks);
    }

    /// Undoes `encrypt`.
    pub fn decrypt(&self, number: u64, page: &mut [u8; PAGE]) {
        let tweaks = self.tweaks(number);
        mask(page, &tweaks);
        self.data.decrypt_blocks(blocks(page));
        mask(page, &tweaks);
    }

    fn tweaks(&self, number: u64) -> [u128; BLOCKS] {
        let mut first = Block::from(u128::from(number).to_le_bytes());
        self.tweak.encrypt_block(&mut first);
        let mut tweak = u128::from_le_bytes(first.into());
        [(); BLOCKS].map(|()| {
            let this = tweak;
            // Times x in GF(2^128), modulo x^128 + x^7 + x^2 + x + 1.
            tweak = (this << 1) ^ ((this >> 127) * 0x87);
            this
        })
    }
}

fn blocks(page: &mut [u8; PAGE]) -> &mut [Block] {
    Array::slice_as_chunks_mut(page).0
}

fn mask(page: &mut [u8; PAGE], tweaks: &[u128; BLOCKS]) {
    for (block, tweak) in page.chunks_exact_mut(BLOCK_BYTES).zip(tweaks) {
        let mut word = [0u8; BLOCK_BYTES];
        word.copy_from_slice(block);
        block.copy_from_slice(&(u128::from_le_bytes(word) ^ tweak).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u64) -> impl Iterator<Item = u8> {
        (0u64..).map(move |at| ((at + 1).wrapping_mul(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) >> 37) as u8)
    }

    fn key(seed: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key.iter_mut().zip(bytes(seed)).for_each(|(to, from)| *to = from);
        key
    }

    fn page(seed: u64) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page.iter_mut().zip(bytes(seed)).for_each(|(to, from)| *to = from);
        page
    }

    #[test]
    fn the_same_as_the_crate_for_the_mode() {
        for seed in 1..20u64 {
            let (key, number) = (key(seed), seed.wrapping_mul(seed << 40 | 77));
            let halves = |from: usize| Aes256::new_from_slice(&key[from..from + 32]).expect("32 bytes");
            let other = xts_mode::Xts128::new(halves(0), halves(32));
            let (mut ours, mut theirs) = (page(seed), page(seed));
            Xts::new(&key).encrypt(number, &mut ours);
            other.encrypt_sector(&mut theirs, xts_mode::get_tweak_default(u128::from(number)));
            assert_eq!(ours, theirs);
            Xts::new(&key).decrypt(number, &mut ours);
            assert_eq!(ours, page(seed));
        }
    }

    #[test]
    fn equal_pages_look_different_at_every_place_and_under_every_key() {
        let encrypted = |seed: u64, number: u64| {
            let mut page = [7u8; PAGE];
            Xts::new(&key(seed)).encrypt(number, &mut page);
            page
        };
        let one = encrypted(1, 0);
        assert!(one != encrypted(1, 1) && one != encrypted(2, 0));
        assert!(one.chunks(16).all(|block| block != &one[..16] || std::ptr::eq(block, &one[..16])), "blocks repeat");
    }
}
