// flags: -O
// A Rust program with its default allocator: Vec, HashMap, BTreeMap, String, threads with channels.
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;

fn mix(mut x: u64) -> u64 {
    x ^= x >> 31;
    x = x.wrapping_mul(0x7fb5_d329_7286_ea19);
    x ^= x >> 27;
    x = x.wrapping_mul(0x81da_def4_bc2d_d44d);
    x ^ x >> 33
}

fn main() {
    let mut list: Vec<u64> = Vec::new();
    for i in 0..10_000_000 {
        list.push(mix(i));
    }
    list.sort_unstable();
    println!("sorted {:016x} {:016x}", list[list.len() / 2], list.iter().fold(0, |a, b| a ^ b));
    let map: HashMap<u64, String> = (0..400_000).map(|i| (mix(i), format!("value {i}"))).collect();
    let total: usize = (0..800_000).filter_map(|i| map.get(&mix(i))).map(String::len).sum();
    println!("map {} {total}", map.len());
    let tree: BTreeMap<u64, u64> = (0..1_000_000).map(|i| (mix(i), i)).collect();
    println!("tree {:?} {:?}", tree.iter().next(), tree.range(1 << 60..).next());
    let (send, receive) = mpsc::channel::<Vec<u64>>();
    let makers: Vec<_> = (0..4u64)
        .map(|id| {
            let send = send.clone();
            std::thread::spawn(move || {
                for n in 0..20 {
                    let made = (0..100_000).map(|i| mix(id << 40 | n << 20 | i)).collect();
                    send.send(made).expect("the receiver lives");
                }
            })
        })
        .collect();
    drop(send);
    let mut kept: Vec<Vec<u64>> = receive.iter().collect();
    for maker in makers {
        maker.join().expect("makers do not panic");
    }
    kept.sort();
    println!("kept {} {:016x}", kept.len(), kept.iter().flatten().fold(0u64, |a, &b| a.rotate_left(1) ^ b));
    println!("refused {}", Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_err());
}
