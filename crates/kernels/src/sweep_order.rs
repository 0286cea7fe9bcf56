//! The order in which a sweep visits one array: by strides, from the end, or by several streams in turn.
//!
//! Pure. A sweep is a sequence of numbered *pieces* (ranges of the array). Invariant: no place is in two pieces, and the piece that
//! holds a place is known without memory, so that a sweep that was cut off can still be verified.

use std::ops::Range;

/// Numbers in a cache line.
const LINE: usize = 64 / size_of::<u64>();
/// Numbers in a piece of a reverse sweep.
const STRETCH: usize = 512;

/// An order other than one stream from the first number to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One cache line every so many bytes, first to last.
    Strided(usize),
    /// Every number, last to first.
    Reverse,
    /// Every number; so many streams (of all threads together), each in a part of its own, take turns line by line.
    Streams(usize),
}

impl Order {
    /// The word used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Order::Strided(_) => "strided",
            Order::Reverse => "reverse",
            Order::Streams(_) => "streams",
        }
    }

    /// Threads share the array at multiples of so many numbers.
    pub fn unit(self) -> usize {
        match self {
            Order::Strided(bytes) => (bytes / size_of::<u64>()).max(LINE),
            Order::Reverse => STRETCH,
            Order::Streams(_) => LINE,
        }
    }

    /// The order of one of `threads` threads over its own `len` numbers.
    pub fn route(self, len: usize, threads: usize) -> Route {
        let streams = match self {
            Order::Streams(all) => (all / threads.max(1)).max(1),
            Order::Strided(_) | Order::Reverse => 1,
        };
        Route { order: self, len, streams, lines_per_stream: len / LINE / streams }
    }
}

/// The order of one thread over its own part of the array.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    order: Order,
    len: usize,
    streams: usize,
    lines_per_stream: usize,
}

impl Route {
    /// How many pieces a sweep has.
    pub fn pieces(&self) -> usize {
        match self.order {
            Order::Strided(_) => self.len.div_ceil(self.order.unit()),
            Order::Reverse => self.len.div_ceil(STRETCH),
            Order::Streams(_) => self.lines_per_stream * self.streams,
        }
    }

    /// Piece `number`, which must be below `pieces()`.
    pub fn piece(&self, number: usize) -> Range<usize> {
        match self.order {
            Order::Strided(_) => {
                let start = number * self.order.unit();
                start..(start + LINE).min(self.len)
            }
            Order::Reverse => {
                let end = self.len - number * STRETCH;
                end.saturating_sub(STRETCH)..end
            }
            Order::Streams(_) => {
                let (line, stream) = (number / self.streams, number % self.streams);
                let start = (stream * self.lines_per_stream + line) * LINE;
                start..start + LINE
            }
        }
    }

    /// The piece that holds place `index`; `None` for a place that no sweep visits.
    pub fn piece_of(&self, index: usize) -> Option<usize> {
        match self.order {
            Order::Strided(_) => (index % self.order.unit() < LINE).then_some(index / self.order.unit()),
            Order::Reverse => Some((self.len - 1 - index) / STRETCH),
            Order::Streams(_) => {
                let line = index / LINE;
                let stream = line.checked_div(self.lines_per_stream)?;
                (stream < self.streams).then_some(line % self.lines_per_stream * self.streams + stream)
            }
        }
    }

    /// Whether a piece is to be walked from its end.
    pub const fn is_backwards(&self) -> bool {
        matches!(self.order, Order::Reverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_overlap_and_are_found_again() {
        let orders = [Order::Strided(8192), Order::Strided(1), Order::Reverse, Order::Streams(8), Order::Streams(3)];
        for (order, len) in orders.into_iter().flat_map(|order| [0, 1, 7, 512, 1000, 4096, 5000].map(|len| (order, len))) {
            let route = order.route(len, 2);
            let mut seen = vec![None; len];
            for number in 0..route.pieces() {
                for index in route.piece(number) {
                    assert_eq!(seen[index].replace(number), None, "{order:?} {len}");
                }
            }
            (0..len).for_each(|index| assert_eq!(route.piece_of(index), seen[index], "{order:?} {len} {index}"));
        }
    }

    #[test]
    fn orders_are_what_they_are_called() {
        let strided = Order::Strided(8192).route(4096, 1);
        assert_eq!((strided.pieces(), strided.piece(1)), (4, 1024..1032));
        let reverse = Order::Reverse.route(1000, 1);
        assert_eq!((reverse.piece(0), reverse.piece(1)), (488..1000, 0..488));
        let streams = Order::Streams(4).route(3200, 2);
        assert_eq!((streams.piece(0), streams.piece(1), streams.piece(2)), (0..8, 1600..1608, 8..16));
    }
}
