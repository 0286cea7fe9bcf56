//! The last faults that belonged to no stream: neighbours, equal distances and crowds are found here. Fixed size.

/// Pages brought by a fault: first and one past the last.
pub(super) type Span = (u64, u64);

/// A ring of the last `N` faults.
#[derive(Clone, Debug)]
pub(super) struct History<const N: usize> {
    pages: [u64; N],
    spans: [Span; N],
    times: [u64; N],
    next: usize,
}

/// No page has this number.
const NONE: u64 = u64::MAX;

impl<const N: usize> History<N> {
    pub fn new() -> Self {
        Self { pages: [NONE; N], spans: [(NONE, NONE); N], times: [0; N], next: 0 }
    }

    /// Adds a fault at `time`, which never goes back.
    pub fn push(&mut self, page: u64, span: Span, time: u64) {
        self.pages[self.next] = page;
        self.spans[self.next] = span;
        self.times[self.next] = time;
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

    /// The smallest distance `d` of at least two pages with which `page - d` and `page - 2d` were both asked for; negative
    /// distances are downwards.
    pub fn progression(&self, page: u64) -> Option<i64> {
        let mut best: Option<i64> = None;
        for &middle in &self.pages {
            let distance = page.wrapping_sub(middle) as i64;
            if middle == NONE || distance.unsigned_abs() < 2 || best.is_some_and(|b| b.unsigned_abs() <= distance.unsigned_abs())
            {
                continue;
            }
            let start = middle.wrapping_sub(distance as u64);
            if start != NONE && self.pages.contains(&start) {
                best = Some(distance);
            }
        }
        best
    }

    /// How many faults after `since` share `page`'s aligned group of 2^`shift` pages.
    pub fn crowd(&self, page: u64, shift: u32, since: u64) -> usize {
        self.pages.iter().zip(&self.times).filter(|&(&p, &time)| p >> shift == page >> shift && time > since).count()
    }
}
