//! Prints the records of a profile, one a line.
fn main() {
    let path = std::env::args().nth(1).expect("a file");
    let content = nearfar_core::profile::file::read(&std::fs::read(path).expect("readable")).expect("a profile");
    for batch in &content.batches {
        for record in &batch.records {
            println!("{} {record:?}", batch.pid);
        }
    }
    println!("lost bytes {}", content.lost_bytes);
}
