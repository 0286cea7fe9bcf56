//! Sizes of pages and the pools of huge ones.

use super::reader::Reader;
use nearfar_core::node::HugePages;

const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";
const POOLS: &str = "/sys/kernel/mm/hugepages";

pub(super) fn read(reader: &Reader, arch: &str) -> HugePages {
    let huge_page = reader.number(&format!("{TRANSPARENT}/hpage_pmd_size")).filter(|bytes| bytes.is_power_of_two());
    let enabled = reader.text(&format!("{TRANSPARENT}/enabled"));
    let mut reserved: Vec<(u64, u64)> = Vec::new();
    for name in reader.names(POOLS) {
        let size = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB")?.parse::<u64>().ok());
        if let Some((size, count)) = size.zip(reader.number(&format!("{POOLS}/{name}/nr_hugepages"))) {
            reserved.push((size.saturating_mul(1024), count));
        }
    }
    reserved.sort_unstable();
    HugePages { page: page(reader, arch, huge_page), transparent: enabled.as_deref().and_then(chosen), huge_page, reserved }
}

/// Bytes of a small page. A captured machine tells by its huge page: a table of 8-byte entries fills one small page, so that a page of
/// p bytes makes huge pages of p * p / 8. 0 when nothing tells.
fn page(reader: &Reader, arch: &str, huge: Option<u64>) -> u64 {
    if reader.is_this() {
        // SAFETY: no pointers are involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if page > 0 {
            return page as u64;
        }
    }
    let by_huge = [4096_u64, 16384, 65536].into_iter().find(|page| Some(page * page / 8) == huge);
    by_huge.unwrap_or(if arch == "x86_64" { 4096 } else { 0 })
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    #[test]
    fn pages_of_grace() {
        let text = format!(
            "=== {TRANSPARENT}/enabled\n always [madvise] never\n=== {TRANSPARENT}/hpage_pmd_size\n 536870912\n\
             === {POOLS}/hugepages-2048kB/nr_hugepages\n 7\n=== {POOLS}/hugepages-524288kB/nr_hugepages\n 0\n"
        );
        let root = Root::captured(&text).expect("a capture");
        let pages = read(&Reader::new(&root), "aarch64");
        assert_eq!((pages.page, pages.huge_page, pages.transparent.as_deref()), (65536, Some(512 << 20), Some("madvise")));
        assert_eq!(pages.reserved, [(2 << 20, 7), (512 << 20, 0)]);
    }
}
