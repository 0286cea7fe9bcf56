//! The last faults that belonged to no stream: neighbours and equal distances are found here. Fixed size.

/// Pages brought by a fault: first and one past the last.
pub(super) type Span = (u64, u64);

/// A ring of the last `N` faults.
#[derive(Clone, Debug)]
pub(super) struct History<const N: usize> {
    pages: [u64; N],
    spans: [Span; N],
    next: usize,
}

/// No page has this number.
const NONE: u64 = u64::MAX;

impl<const N: usize> History<N> {
    pub fn new() -> Self {
        Self { pages: [NONE; N], spans: [(NONE, NONE); N], next: 0 }
    }

    /// Adds a fault.
    pub fn push(&mut self, page: u64, span: Span) {
        self.pages[self.next] = page;
        self.spans[self.next] = span;
        self.next = (self.next + 1) % N;
    }

    /// The newest of the last `depth` spans that ends right before `page` (false) or begins right after it (true: downwards).
    pub fn neighbour(&self, page: u64, depth: usize) -> Option<(bool, Span)> {
        (1..=depth.min(N)).map(|back| self.spans[(self.next + N - back) % N]).find_map(|span| match span {
            (NONE, _) => None,
            (_, end) if end == page => Some((false, span)),
            (first, _) if first == page + 1 => Some((true, span)),
            _ => None,
        })
    }

    /// Twice the smallest distance `d` of at least two pages with which `page - d` and `page - 2d` were both asked for, negative
    /// when downwards. Distances of four pages and more may differ by one: steps need not be whole pages.
    pub fn progression(&self, page: u64) -> Option<i64> {
        let mut best: Option<i64> = None;
        let mut least = u64::MAX;
        for &middle in &self.pages {
            let distance = page.wrapping_sub(middle) as i64;
            if middle == NONE || distance.unsigned_abs() < 2 || least <= distance.unsigned_abs() {
                continue;
            }
            let start = middle.wrapping_sub(distance as u64);
            let starts = if distance.unsigned_abs() < 4 { start..=start } else { start.wrapping_sub(1)..=start.wrapping_add(1) };
            let found = self.pages.iter().find(|&&page| page != NONE && starts.contains(&page));
            if let Some(&start) = found {
                best = Some(page.wrapping_sub(start) as i64);
                least = distance.unsigned_abs();
            }
        }
        best
    }
}
