//! c = a + b with two vectors in near memory and one in far: Rust.

use nearfar_alloc::{FarVec, NearVec};

fn main() {
    let n: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let a: NearVec<f64> = (0..n).map(|i| i as f64).collect();
    let b: NearVec<f64> = (0..n).map(|i| 0.5 * i as f64).collect();
    let c: FarVec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let sum: f64 = c.iter().sum();
    println!("vector add: {n} elements, sum {sum:.1}");
}
