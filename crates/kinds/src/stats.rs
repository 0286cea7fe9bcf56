//! What kinds hold: `memkind_get_stat`, `memkind_get_capacity` and `memkind_stats_print`.
//!
//! Allocated bytes of kinds on nodes count blocks above 64 KiB one by one and smaller ones as the pages that hold them, which is what
//! they cost. Nothing is cached: an answer is as of the question.

use crate::kind::{self, Kind};
use crate::place::{self, quietly};
use crate::range_heap::RangeHeap;
use crate::static_kind::StaticKind;
use crate::{code, registry};
use nearfar_core::addr::Extent;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fmt::Write;

/// What is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    resident: u64,
    active: u64,
    allocated: u64,
}

/// The heap of a kind that a program made.
///
/// # Safety
/// `kind` is null, a kind, or one that was never made.
unsafe fn made(kind: *const Kind) -> Option<&'static RangeHeap> {
    // SAFETY: in the books, so it is there.
    registry::is_dynamic(kind).then(|| unsafe { (*kind).private().cast::<RangeHeap>().as_ref() })?
}

/// # Safety
/// As for [`made`].
unsafe fn held(kind: *const Kind) -> Option<Held> {
    // SAFETY: passed on to the caller.
    if let Some(heap) = unsafe { made(kind) } {
        let active = heap.taken_bytes();
        let resident = heap.file_bytes().unwrap_or_else(|| resident(&[heap.range()]));
        return Some(Held { resident, active, allocated: heap.live_bytes() });
    }
    let kind = kind::static_kind(kind)?;
    let pools: Vec<_> = place::pools(kind).collect();
    let ranges: Vec<Extent> = pools.iter().map(|pool| pool.range()).collect();
    let (resident, large) = (resident(&ranges), pools.iter().map(|pool| pool.live_bytes()).sum::<u64>());
    Some(Held { resident, active: resident.max(large), allocated: resident.max(large) })
}

/// Bytes of `ranges` that are in memory.
fn resident(ranges: &[Extent]) -> u64 {
    if ranges.is_empty() {
        return 0;
    }
    let text = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut is_inside = false;
    let mut kib = 0;
    for line in text.lines() {
        if let Some(rss) = line.strip_prefix("Rss:") {
            let rss = rss.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
            kib += if is_inside { rss } else { 0 };
        } else if let Some((start, end)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-'))
            && let (Ok(start), Ok(end)) = (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
        {
            is_inside = ranges.iter().any(|range| range.contains_extent(Extent { start, end }));
        }
    }
    kib << 10
}

/// `memkind_get_stat`: 0 resident, 1 active, 2 allocated.
///
/// # Safety
/// `kind` is null or a kind; `out` is null or can be written.
pub unsafe fn get(kind: *const Kind, stat: c_uint, out: *mut usize) -> c_int {
    if kind.is_null() || out.is_null() || stat > 2 {
        return code::INVALID;
    }
    // SAFETY: passed on to the caller.
    let Some(held) = quietly(|| unsafe { held(kind) }) else { return code::INVALID };
    let value = [held.resident, held.active, held.allocated][stat as usize];
    // SAFETY: passed on to the caller.
    unsafe { out.write(value as usize) };
    code::SUCCESS
}

/// `memkind_get_capacity`: bytes, or -1.
///
/// # Safety
/// `kind` is null or a kind.
pub unsafe fn capacity(kind: *const Kind) -> isize {
    let bytes = match kind::static_kind(kind) {
        Some(kind) => place::capacity(kind),
        // SAFETY: passed on to the caller.
        None => unsafe { made(kind) }.map(RangeHeap::given_bytes),
    };
    bytes.and_then(|bytes| isize::try_from(bytes).ok()).unwrap_or(-1)
}

/// `MEMKIND_STAT_PRINT_JSON_FORMAT`.
const JSON: c_uint = 1;

/// Type of `write_cb`.
pub type Writer = Option<unsafe extern "C" fn(*mut c_void, *const c_char)>;

/// `memkind_stats_print`: a line for each kind that is in use, to `writer` or standard error. Of the options only JSON has a meaning;
/// the others leave out parts of jemalloc's report that ours does not have.
///
/// # Safety
/// `writer` takes `opaque` and a C string.
pub unsafe fn print(writer: Writer, opaque: *mut c_void, options: c_uint) -> c_int {
    let text = quietly(|| report(options & JSON != 0));
    match (writer, CString::new(text)) {
        // SAFETY: passed on to the caller.
        (Some(writer), Ok(text)) => unsafe { writer(opaque, text.as_ptr()) },
        (None, Ok(text)) => crate::report::write(&text.to_string_lossy()),
        (_, Err(_)) => return code::OPERATION_FAILED,
    }
    code::SUCCESS
}

fn report(is_json: bool) -> String {
    let fixed = StaticKind::ALL.into_iter().filter(|&kind| place::pools(kind).next().is_some());
    let kinds: Vec<*const Kind> = fixed.map(|kind| kind::pointer(kind).cast_const()).chain(registry::kinds()).collect();
    let mut text =
        if is_json { "{\"nearfar\":[".to_owned() } else { "nearfar kinds: name, resident, active, allocated\n".to_owned() };
    for (at, &kind) in kinds.iter().enumerate() {
        // SAFETY: kinds of ours, in the books just now.
        let (name, held) = unsafe { ((*kind).name(), held(kind).unwrap_or_default()) };
        let Held { resident, active, allocated } = held;
        let comma = if at > 0 { "," } else { "" };
        let _ = if is_json {
            write!(text, "{comma}{{\"kind\":\"{name}\",\"resident\":{resident},\"active\":{active},\"allocated\":{allocated}}}")
        } else {
            writeln!(text, "{name} {resident} {active} {allocated}")
        };
    }
    text.push_str(if is_json { "]}\n" } else { "" });
    text
}
