//! Carries out one move: the pages of a group that are on the wrong nodes go to one node, huge pages as a whole. What the kernel refuses
//! stays where it is.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa::{self, NumaError};

/// What a huge page holds.
const BLOCK: usize = 2 << 20;

/// What became of pages that should have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes that moved.
    pub bytes: u64,
    /// Pages that the kernel was using (EBUSY): pinned, or being written to a disk.
    pub busy: u64,
    /// Pages that several processes share (EACCES), or whose process may not use the node.
    pub shared: u64,
    /// Pages for which the node had no room (ENOMEM).
    pub full: u64,
}

impl Carried {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.busy += other.busy;
        self.shared += other.shared;
        self.full += other.full;
    }
}

/// Moves the pages of `range` of process `pid` that are on nodes of `from` to node `to`.
///
/// # Errors
/// When the process is gone, or the kernel forbids it altogether.
pub fn carry(pid: u32, range: Extent, from: &NodeSet, to: u32) -> Result<Carried, NumaError> {
    let mut carried = Carried::default();
    let mut start = range.start;
    while start < range.end {
        // Huge pages are aligned.
        let end = ((start / BLOCK + 1) * BLOCK).min(range.end);
        carry_block(pid, Extent { start, end }, from, to, &mut carried)?;
        start = end;
    }
    Ok(carried)
}

fn carry_block(pid: u32, block: Extent, from: &NodeSet, to: u32, carried: &mut Carried) -> Result<(), NumaError> {
    let wrong = wrong_pages(pid, block, from)?;
    let Some(&first) = wrong.first() else { return Ok(()) };
    // Where the first page is part of a huge page all others come with it; asking for them too would count as busy.
    let mut status = vec![0; wrong.len()];
    numa::move_pages(pid, &[first], &[to], &mut status[..1])?;
    let left = wrong_pages(pid, block, from)?;
    if left.len() + 1 == wrong.len() {
        let targets = vec![to; left.len()];
        numa::move_pages(pid, &left, &targets, &mut status[..left.len()])?;
        let failed = |errno: i32| status[..left.len()].iter().filter(|&&code| code == -errno).count() as u64;
        carried.busy += failed(libc_errno::BUSY);
        carried.shared += failed(libc_errno::ACCES);
        carried.full += failed(libc_errno::NOMEM);
    } else if left.len() == wrong.len() {
        // Not even the first: one answer stands for all, rather than trying each.
        let pages = wrong.len() as u64;
        match -status[0] {
            libc_errno::ACCES => carried.shared += pages,
            libc_errno::NOMEM => carried.full += pages,
            _ => carried.busy += pages,
        }
    }
    let left = wrong_pages(pid, block, from)?;
    carried.bytes += ((wrong.len().saturating_sub(left.len())) * PAGE) as u64;
    Ok(())
}

/// Addresses of the pages of `block` that are on nodes of `from`.
fn wrong_pages(pid: u32, block: Extent, from: &NodeSet) -> Result<Vec<usize>, NumaError> {
    let pages: Vec<usize> = (block.start..block.end).step_by(PAGE).collect();
    let nodes = numa::nodes_of_process(pid, &pages)?;
    let wrong = |node: &Option<u32>| node.is_some_and(|node| from.contains(node));
    Ok(pages.into_iter().zip(nodes).filter(|(_, node)| wrong(node)).map(|(page, _)| page).collect())
}

/// The command has no libc of its own; these numbers are the same on all architectures of Linux.
mod libc_errno {
    pub const NOMEM: i32 = 12;
    pub const ACCES: i32 = 13;
    pub const BUSY: i32 = 16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_those_nodes_stays() {
        let data = vec![1u8; 64 << 10];
        let start = data.as_ptr() as usize / PAGE * PAGE;
        let range = Extent { start, end: start + (64 << 10) };
        let nowhere: NodeSet = [900].into_iter().collect();
        match carry(std::process::id(), range, &nowhere, 0) {
            Ok(carried) => assert_eq!(carried, Carried::default()),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        std::hint::black_box(&data);
    }
}
