//! Eviction policies for comparison only (`nearfar bench policies`, `bench replay --evict`): the pager never uses them.

mod queue;
mod random;
mod s3_fifo;
mod freeze;

use super::Evict;
use queue::{Queue, Rule};

/// The policy of that name for a near of `capacity_pages` pages of 4 KiB.
pub fn by_name(name: &str, capacity_pages: u64) -> Option<Box<dyn Evict>> {
    Some(match name {
        "s3fifo" => Box::new(s3_fifo::S3Fifo::new(capacity_pages)),
        "freeze" => Box::new(freeze::Freeze::new(capacity_pages)),
        "clock" => Box::new(Queue::new(Rule::Clock)),
        "lru" => Box::new(Queue::new(Rule::Lru)),
        "fifo" => Box::new(Queue::new(Rule::Fifo)),
        "random" => Box::new(random::Random::new()),
        _ => return None,
    })
}
