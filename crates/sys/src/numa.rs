//! NUMA nodes of memory: binding a range to one before it is touched, and asking where pages are.
//!
//! Kernels without NUMA answer ENOSYS, containers often EPERM (Docker's default profile does without CAP_SYS_NICE); both are meanings
//! here, because the caller then goes on and says that placement was not verified. Moves no pages.

use crate::errno::{Errno, call};
use nearfar_core::addr::Extent;

/// Why a node could not be chosen or asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumaError {
    /// The kernel was built without NUMA.
    #[error("the kernel has no NUMA calls")]
    Unsupported,
    /// A sandbox forbids it.
    #[error("the system forbids NUMA calls; a container's seccomp profile does that (CAP_SYS_NICE lifts it)")]
    Denied,
    /// There is no such node, it has no memory, or the cpuset does not allow it.
    #[error("node {0} has no memory that this process may use")]
    NoSuchNode(u32),
    /// Anything else that the kernel said.
    #[error("NUMA call: {0}")]
    Other(Errno),
}

impl NumaError {
    /// True when it is the system, not the request, that does not allow it: the rest can go on without.
    pub fn is_unsupported(self) -> bool {
        matches!(self, Self::Unsupported | Self::Denied)
    }
}

fn meaning(errno: Errno) -> NumaError {
    match errno {
        Errno(libc::ENOSYS) => NumaError::Unsupported,
        Errno(libc::EPERM | libc::EACCES) => NumaError::Denied,
        errno => NumaError::Other(errno),
    }
}

/// Pages of `range` that are touched from now on come from node `node` alone (mbind(2), MPOL_BIND). When the node is full, the
/// kernel kills the process rather than taking another node: ask for no more than the node has free.
///
/// # Errors
/// See [`NumaError`].
pub fn bind(range: Extent, node: u32) -> Result<(), NumaError> {
    let mut mask = vec![0u64; node as usize / 64 + 1];
    mask[node as usize / 64] = 1 << (node % 64);
    // The kernel looks at one bit less than it is told.
    let bits = mask.len() * 64 + 1;
    let args = [range.start, range.len(), libc::MPOL_BIND as usize, mask.as_ptr() as usize, bits, 0];
    // SAFETY: the kernel reads `bits - 1` bits of a local vector; the policy changes where pages come from, not what they hold.
    match unsafe { call(libc::SYS_mbind, args) } {
        Ok(_) => Ok(()),
        Err(Errno::EINVAL) => Err(NumaError::NoSuchNode(node)),
        Err(errno) => Err(meaning(errno)),
    }
}

/// The node of the page at each address of the calling process; `None` for an address without a page in memory (move_pages(2), as a
/// question only).
///
/// # Errors
/// See [`NumaError`].
pub fn nodes_of(addresses: &[usize]) -> Result<Vec<Option<u32>>, NumaError> {
    let mut status = vec![-libc::ENOENT; addresses.len()];
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let args = [0, addresses.len(), addresses.as_ptr() as usize, 0, status.as_mut_ptr() as usize, 0];
    // SAFETY: without target nodes nothing moves; the kernel reads one address and writes one status per entry of slices of that
    // length. The addresses are only looked up.
    unsafe { call(libc::SYS_move_pages, args) }.map_err(meaning)?;
    Ok(status.into_iter().map(|status| u32::try_from(status).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::OwnedMap;
    use nearfar_core::addr::PAGE;

    #[test]
    fn pages_are_where_they_were_bound() {
        let map = OwnedMap::new(4 * PAGE).expect("four pages");
        let range = map.range();
        match bind(range, 0) {
            Err(error) if error.is_unsupported() => return println!("skipped: {error}"),
            Err(NumaError::NoSuchNode(0)) => return println!("skipped: node 0 is not for us"),
            result => result.expect("bound"),
        }
        // SAFETY: the mapping is ours, and readable and writable.
        unsafe { (range.start as *mut u8).write_volatile(1) };
        match nodes_of(&[range.start, range.start + PAGE]) {
            Ok(nodes) => assert_eq!(nodes, [Some(0), None], "one page was touched, one was not"),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_said() {
        let map = OwnedMap::new(PAGE).expect("a page");
        for node in [900, 5000] {
            let error = bind(map.range(), node).expect_err("no machine has that many");
            assert!(error == NumaError::NoSuchNode(node) || error.is_unsupported(), "{error}");
        }
        assert_eq!(nodes_of(&[]), Ok(Vec::new()));
    }
}
