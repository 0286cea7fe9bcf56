//! The periodic box of `md`: where its atoms are at first, and the bins that they are sorted into.
//!
//! Bins are at least as wide as a neighbour can be away, so that the neighbours of an atom are in 27 of them. Does not know forces.

use nearfar_core::random_numbers::{Random, mix};

/// Atoms of a unit cell of the face-centred cubic lattice, its edge at density 0.8442, and where they are in it.
const CELL_ATOMS: usize = 4;
const CELL_EDGE: f64 = 1.679_596_2;
const CELL_PLACES: [[f64; 3]; CELL_ATOMS] = [[0.25, 0.25, 0.25], [0.75, 0.75, 0.25], [0.75, 0.25, 0.75], [0.25, 0.75, 0.75]];

/// A place or a velocity.
pub type Vector = [f64; 3];

/// A box of unit cells.
#[derive(Clone, Copy, Debug)]
pub struct PeriodicBox {
    cells: [usize; 3],
    /// Bins along each axis, at least three.
    pub bins: [usize; 3],
    /// Lengths of the edges.
    pub edges: Vector,
}

impl PeriodicBox {
    /// The largest with at most `atoms` atoms (and 864 at least), as near to a cube as can be; bins are at least `reach` wide.
    pub fn new(atoms: usize, reach: f64) -> Self {
        let cells = (atoms / CELL_ATOMS).max(6 * 6 * 6);
        let edge = (1..).take_while(|edge: &usize| edge.pow(3) <= cells).last().unwrap_or(1);
        let cells = [edge, edge, cells / (edge * edge)];
        let edges = cells.map(|cells| cells as f64 * CELL_EDGE);
        Self { cells, edges, bins: edges.map(|edge| (edge / reach) as usize) }
    }

    /// Atoms in all.
    pub fn atoms(&self) -> usize {
        CELL_ATOMS * self.cells.iter().product::<usize>()
    }

    /// The place of an atom in the lattice.
    pub fn place_at(&self, atom: usize) -> Vector {
        let (cell, [x, y, _]) = (atom / CELL_ATOMS, self.cells);
        let of = [cell % x, cell / x % y, cell / x / y];
        std::array::from_fn(|axis| (of[axis] as f64 + CELL_PLACES[atom % CELL_ATOMS][axis]) * CELL_EDGE)
    }

    /// A velocity of an atom at temperature 1.44: evenly distributed, so that none is too fast for the time step.
    pub fn velocity_at(atom: usize) -> Vector {
        let mut random = Random::new(mix(atom as u64));
        [(); 3].map(|()| (2.0 * random.unit() - 1.0) * (3.0_f64 * 1.44).sqrt())
    }

    /// The same place inside the box.
    pub fn wrapped(&self, place: Vector) -> Vector {
        std::array::from_fn(|axis| {
            let (value, edge) = (place[axis], self.edges[axis]);
            if value < 0.0 {
                value + edge
            } else if value >= edge {
                value - edge
            } else {
                value
            }
        })
    }

    /// Whether no neighbour within `reach` is across an edge of the box.
    pub fn is_inside(&self, place: Vector, reach: f64) -> bool {
        place.iter().zip(self.edges).all(|(&value, edge)| value >= reach && value <= edge - reach)
    }

    /// The place of the bin of a place inside the box, along each axis.
    pub fn bin_of(&self, place: Vector) -> [usize; 3] {
        std::array::from_fn(|axis| ((place[axis] / self.edges[axis] * self.bins[axis] as f64) as usize).min(self.bins[axis] - 1))
    }

    /// The number of a bin.
    pub const fn number_of(&self, bin: [usize; 3]) -> usize {
        (bin[2] * self.bins[1] + bin[1]) * self.bins[0] + bin[0]
    }

    /// Bins in all.
    pub fn bin_count(&self) -> usize {
        self.bins.iter().product()
    }

    /// The numbers of the 27 bins at and around a bin, and how far a place in each is to be moved to be beside it.
    pub fn around(&self, bin: [usize; 3]) -> impl Iterator<Item = (usize, Vector)> + use<> {
        let the_box = *self;
        (0..27).map(move |number| {
            let (mut at, mut moved) = (bin, [0.0; 3]);
            for (axis, step) in [number % 3, number / 3 % 3, number / 9].into_iter().enumerate() {
                let (place, bins) = (bin[axis] + step, the_box.bins[axis]);
                // One more than the place, so that the bin before the first is 0.
                (at[axis], moved[axis]) = match place {
                    0 => (bins - 1, -the_box.edges[axis]),
                    _ if place > bins => (0, the_box.edges[axis]),
                    _ => (place - 1, 0.0),
                };
            }
            (the_box.number_of(at), moved)
        })
    }

    /// Sorts atoms by bin, in the order of their numbers within a bin: writes their numbers to `order` and where each bin starts, and the
    /// end, to `starts`. Ends early once `is_over`.
    pub fn sort(&self, places: &[Vector], order: &mut [u32], starts: &mut [u32], is_over: impl Fn() -> bool) {
        const BATCH: usize = 1024;
        starts.fill(0);
        for batch in places.chunks(BATCH) {
            if is_over() {
                return;
            }
            batch.iter().for_each(|&place| starts[self.number_of(self.bin_of(self.wrapped(place)))] += 1);
        }
        let mut end = 0;
        starts.iter_mut().for_each(|start| end = std::mem::replace(start, end) + end);
        for (number, batch) in places.chunks(BATCH).enumerate() {
            if is_over() {
                return;
            }
            for (atom, &place) in (number * BATCH..).zip(batch) {
                let next = &mut starts[self.number_of(self.bin_of(self.wrapped(place)))];
                order[*next as usize] = atom as u32;
                *next += 1;
            }
        }
        // Each start has become the end of its bin.
        starts.rotate_right(1);
        starts[0] = 0;
    }
}
