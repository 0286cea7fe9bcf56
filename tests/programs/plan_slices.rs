//! Vectors, which reach malloc through functions of the standard library that are the program's own.

use std::time::{Duration, Instant};

#[inline(never)]
fn make_hot() -> Vec<f64> {
    vec![1.0; 24 << 20]
}

#[inline(never)]
fn make_cold() -> Vec<f64> {
    vec![1.0; 24 << 20]
}

#[inline(never)]
fn sum(values: &[f64]) -> f64 {
    let (mut sum, mut at) = (0.0, 0);
    while at < values.len() {
        sum += values[at];
        at += 1;
    }
    sum
}

fn main() {
    let begin = Instant::now();
    let (hot, cold) = (make_hot(), make_cold());
    let mut total = 0.0;
    while begin.elapsed() < Duration::from_secs(2) {
        total = sum(&hot);
    }
    assert_eq!(total + sum(&cold), f64::from(48 << 20));
    println!("OK");
}
