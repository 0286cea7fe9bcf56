//! Carries out one move: the pages of a group that are on the wrong nodes go to one node, huge pages as a whole. What the kernel refuses
//! stays where it is.

use nearfar_core::addr::{Extent, PAGE};
use nearfar_core::placement::NodeSet;
use nearfar_sys::numa::{self, NumaError};

/// What a huge page holds.
const BLOCK: usize = 2 << 20;

/// What became of pages that should have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveOutcome {
    /// Bytes that moved.
    pub bytes: u64,
    /// Pages that the kernel was using (EBUSY): pinned, or being written to a disk.
    pub busy: u64,
    /// Pages that several processes share (EACCES), or whose process may not use the node.
    pub shared: u64,
    /// Pages for which the node had no room (ENOMEM).
    pub full: u64,
}

impl MoveOutcome {
    /// Pages did not move, with this status.
    fn refused(&mut self, status: i32, pages: usize) {
        let count = match -status {
            libc_errno::ACCES => &mut self.shared,
            libc_errno::NOMEM => &mut self.full,
            _ => &mut self.busy,
        };
        *count += pages as u64;
    }
}

/// Moves the pages of `parts` of process `pid`, ascending, that are on nodes of `from` to node `to`.
///
/// # Errors
/// When the process is gone, or the kernel forbids it altogether.
pub fn carry(pid: u32, parts: &[Extent], from: &NodeSet, to: u32) -> Result<MoveOutcome, NumaError> {
    let mut carried = MoveOutcome::default();
    for part in parts {
        let mut start = part.start;
        while start < part.end {
            // Huge pages are aligned.
            let end = ((start / BLOCK + 1) * BLOCK).min(part.end);
            carry_block(pid, Extent { start, end }, from, to, &mut carried)?;
            start = end;
        }
    }
    Ok(carried)
}

fn carry_block(pid: u32, block: Extent, from: &NodeSet, to: u32, carried: &mut MoveOutcome) -> Result<(), NumaError> {
    let pages: Vec<usize> = (block.start..block.end).step_by(PAGE).collect();
    let wrong = wrong_pages(pid, &pages, from)?;
    let Some((&first, rest)) = wrong.split_first() else { return Ok(()) };
    let mut status = vec![0; wrong.len()];
    numa::move_pages(pid, &[first], &[to], &mut status[..1])?;
    let [first_status, status @ ..] = status.as_mut_slice() else { return Ok(()) };
    if wrong_pages(pid, &[first], from)?.len() == 1 {
        // Not even the first: its answer stands for all, rather than trying each.
        carried.refused(*first_status, wrong.len());
        return Ok(());
    }
    // Where the first page is part of a huge page all others have come with it; asking for them again would count as busy.
    let came_along = match rest.last() {
        Some(&last) => wrong_pages(pid, &[last], from)?.is_empty(),
        None => true,
    };
    let mut left = 0;
    if !came_along && numa::move_pages(pid, rest, &vec![to; rest.len()], status)? > 0 {
        // The kernel says how many at least, not which.
        left = wrong_pages(pid, rest, from)?.len();
        let mut told = status.iter().filter(|&&code| code < 0);
        (0..left).for_each(|_| carried.refused(told.next().copied().unwrap_or(-libc_errno::BUSY), 1));
    }
    carried.bytes += ((wrong.len() - left) * PAGE) as u64;
    Ok(())
}

/// Those of `pages` that are on nodes of `from`.
fn wrong_pages(pid: u32, pages: &[usize], from: &NodeSet) -> Result<Vec<usize>, NumaError> {
    let nodes = numa::nodes_of_process(pid, pages)?;
    let wrong = |node: &Option<u32>| node.is_some_and(|node| from.contains(node));
    Ok(pages.iter().copied().zip(nodes).filter(|(_, node)| wrong(node)).map(|(page, _)| page).collect())
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
        match carry(std::process::id(), &[range], &nowhere, 0) {
            Ok(carried) => assert_eq!(carried, MoveOutcome::default()),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
        std::hint::black_box(&data);
    }
}
