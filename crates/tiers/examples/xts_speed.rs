//! Prints what `--encrypt` costs: GB that are encrypted and decrypted per second of processor time, beside hashing, which every
//! page that moves costs anyway.

use nearfar_core::addr::PAGE;
use nearfar_tiers::xts::{KEY_BYTES, Xts};
use twox_hash::XxHash3_64;

/// More than the caches of one CPU hold, as frames are.
const PAGES: usize = 64 << 20 >> 12;
const ROUNDS: usize = 7;

/// Time that this thread has had a CPU, so that others on the machine count for less.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

fn main() {
    let mut pages = vec![[7u8; PAGE]; PAGES];
    let mut key = [0u8; KEY_BYTES];
    (0u8..).zip(&mut key).for_each(|(value, byte)| *byte = value);
    let xts = Xts::new(&key);
    let mut measure = |name: &str, each: &dyn Fn(u64, &mut [u8; PAGE])| {
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = cpu_seconds();
                (0u64..).zip(&mut pages).for_each(|(number, page)| each(number, page));
                (PAGES * PAGE) as f64 / (cpu_seconds() - start) / 1e9
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let (low, middle, high) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!("{name}: median {middle:.2} GB per CPU second, {low:.2} to {high:.2}, N = {ROUNDS}");
    };
    measure("encrypt", &|number, page| xts.encrypt(number, page));
    measure("decrypt", &|number, page| xts.decrypt(number, page));
    measure("hash", &|_, page| {
        std::hint::black_box(XxHash3_64::oneshot(page));
    });
}
