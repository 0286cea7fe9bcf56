//! Places for labels so that none lies on another, however close the lines are.

/// Moves `wanted` places as little as need be until neighbours are `gap` apart and all are within `low..=high`; where there is no
/// room for all, they are packed evenly. The order stays.
pub fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let room = (high - low).max(0.0);
    let gap = if wanted.len() > 1 { gap.min(room / (wanted.len() - 1) as f64) } else { gap };
    let mut places = vec![0.0; wanted.len()];
    // Down the column: each at least a gap below the one before; then back up from the lower edge.
    let mut edge = low;
    for &index in &order {
        places[index] = wanted[index].max(edge);
        edge = places[index] + gap;
    }
    let mut edge = high;
    for &index in order.iter().rev() {
        places[index] = places[index].min(edge);
        edge = places[index] - gap;
    }
    places
}

/// A line that wants a label, in coordinates along the (parallel) lines and across them, growing downwards.
#[derive(Clone, Copy, Debug)]
pub struct Track {
    /// Where the line begins, along.
    pub from: f64,
    /// Where it ends, along.
    pub to: f64,
    /// Where it is, across.
    pub across: f64,
    /// Width of its label.
    pub width: f64,
}

/// Where a label goes: its first letter along the lines, and its base line across.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Along.
    pub along: f64,
    /// Across.
    pub across: f64,
}

/// Height of a label.
const HEIGHT: f64 = 12.0;
/// From a line to the base of the text above it, and to its top below it.
const CLEAR: f64 = 4.0;
/// From the beginning of a line to the label: text above a rising line leans back over its beginning.
const LEAD: f64 = 12.0;
/// Steps in which places are tried.
const STEP: f64 = 12.0;

/// For each of parallel `tracks` a spot on it for its label: above or below the line, where no other label is and, if possible, no other
/// line. `None` where no place is left. Earlier tracks choose first.
pub fn along(tracks: &[Track]) -> Vec<Option<Spot>> {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    let mut spots = Vec::new();
    for (index, track) in tracks.iter().enumerate() {
        let mut best: Option<(f64, Spot)> = None;
        let room = track.to - track.from - track.width - LEAD;
        let steps = if room >= 0.0 { (room / STEP) as usize + 1 } else { 0 };
        for (side, base) in [(0.0, track.across - CLEAR), (1.0, track.across + CLEAR + HEIGHT - 3.0)] {
            for step in 0..steps.min(200) {
                let start = track.from + LEAD + step as f64 * STEP;
                let end = start + track.width;
                let top = base - HEIGHT;
                if taken.iter().any(|&(from, to, other)| from < end + 8.0 && start < to + 8.0 && (base - other).abs() < HEIGHT) {
                    continue;
                }
                let others = tracks.iter().enumerate().filter(|&(other, _)| other != index);
                let struck = others
                    .filter(|(_, other)| other.across > top && other.across < base + 2.0 && other.from < end && start < other.to);
                // A line through the text is bad, a place far along it a little, one below it less.
                let cost = struck.count() as f64 * 1000.0 + step as f64 + side * 6.0;
                if best.is_none_or(|(lowest, _)| cost < lowest) {
                    best = Some((cost, Spot { along: start, across: base }));
                }
            }
        }
        let spot = best.map(|(_, spot)| spot);
        taken.extend(spot.map(|spot| (spot.along, spot.along + track.width, spot.across)));
        spots.push(spot);
    }
    spots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_pushed_apart() {
        assert_eq!(spread(&[10.0, 50.0], 15.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[50.0, 50.0, 49.0], 15.0, 0.0, 100.0), [64.0, 79.0, 49.0]);
        assert_eq!(spread(&[99.0, 98.0], 15.0, 0.0, 100.0), [100.0, 85.0]);
        let packed = spread(&[5.0; 5], 50.0, 0.0, 100.0);
        assert_eq!(packed, [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert!(spread(&[], 15.0, 0.0, 100.0).is_empty());
    }

    #[test]
    fn labels_of_close_lines_do_not_overlap() {
        let tracks: Vec<Track> =
            (0..6).map(|n| Track { from: 0.0, to: 500.0, across: 100.0 + 3.0 * f64::from(n), width: 90.0 }).collect();
        let spots = along(&tracks);
        assert!(spots.iter().all(Option::is_some));
        let spots: Vec<Spot> = spots.into_iter().flatten().collect();
        for (n, a) in spots.iter().enumerate() {
            for b in &spots[n + 1..] {
                let apart = (a.across - b.across).abs() >= HEIGHT || (a.along - b.along).abs() >= 90.0;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_short_has_no_place() {
        assert_eq!(along(&[Track { from: 0.0, to: 50.0, across: 0.0, width: 90.0 }]), [None]);
    }
}
