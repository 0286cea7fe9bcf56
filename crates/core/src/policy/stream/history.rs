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

    /// How often the faults of `crowd` changed their direction. A walk in one direction never does; it says nothing of what it
    /// steps over.
    pub fn turns(&self, page: u64, shift: u32, since: u64) -> usize {
        let mut before: Option<u64> = None;
        let mut up: Option<bool> = None;
        let mut turns = 0;
        for back in (1..=N).rev() {
            let slot = (self.next + N - back) % N;
            let other = self.pages[slot];
            if other >> shift != page >> shift || self.times[slot] <= since {
                continue;
            }
            if let Some(last) = before
                && last != other
            {
                turns += usize::from(up.is_some_and(|up| up != (other > last)));
                up = Some(other > last);
            }
            before = Some(other);
        }
        turns
    }

    /// How many faults after `since` share `page`'s aligned group of 2^`shift` pages.
    pub fn crowd(&self, page: u64, shift: u32, since: u64) -> usize {
        self.pages.iter().zip(&self.times).filter(|&(&p, &time)| p >> shift == page >> shift && time > since).count()
    }
}
