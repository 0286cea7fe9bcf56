//! The mesh of `spectral`: a box of elements, where each is, and which points they share.

use crate::spectral_element::{Block, FACTORS, N, POINTS, along, moved};
use nearfar_core::random_numbers::{mix, unit};

/// A box of elements, numbered along x first.
#[derive(Clone, Copy, Debug)]
pub struct Mesh {
    /// Elements along each axis.
    pub edges: [usize; 3],
}

impl Mesh {
    /// The largest of which ten values per point take at most `bytes` (and 8 elements at least), as near to a cube as can be.
    pub fn new(bytes: usize) -> Self {
        let elements = (bytes / ((FACTORS + 4) * size_of::<Block>())).max(8);
        let edge = (1..).take_while(|edge: &usize| edge.pow(3) <= elements).last().unwrap_or(1);
        Self { edges: [edge, edge, elements / (edge * edge)] }
    }

    /// Elements in all.
    pub fn elements(self) -> usize {
        self.edges.iter().product()
    }

    /// Elements of a layer of one z.
    pub const fn layer(self) -> usize {
        self.edges[0] * self.edges[1]
    }

    /// How far apart the numbers of neighbours are.
    pub fn stride(self, axis: usize) -> usize {
        self.edges[..axis].iter().product()
    }

    /// The place of an element along an axis.
    pub fn place(self, element: usize, axis: usize) -> usize {
        element / self.stride(axis) % self.edges[axis]
    }

    /// Pairs of neighbours.
    pub fn pairs(self) -> usize {
        self.edges.iter().map(|edge| self.elements() / edge * (edge - 1)).sum()
    }

    /// What an element's points weigh along an axis in a sum over all points: those that two elements share half in each.
    pub fn weights(self, element: usize, axis: usize) -> [f64; N] {
        let (place, mut weights) = (self.place(element, axis), [1.0; N]);
        weights[0] = if place > 0 { 0.5 } else { 1.0 };
        weights[N - 1] = if place + 1 < self.edges[axis] { 0.5 } else { 1.0 };
        weights
    }

    /// The right-hand side of an element: the same in all elements that share a point, and zero on the surface of the box, as is the
    /// solution.
    pub fn b(self, element: usize) -> Block {
        let corner = [0, 1, 2].map(|axis| self.place(element, axis) * (N - 1));
        std::array::from_fn(|point| {
            let at = [0, 1, 2].map(|axis| corner[axis] + along(point, axis));
            if at.iter().zip(self.edges).any(|(&at, edge)| at == 0 || at == edge * (N - 1)) {
                return 0.0;
            }
            unit(mix(at.iter().fold(0, |number, &at| number << 20 | at as u64))) - 0.5
        })
    }

    /// Sets the values on the surface of the box to zero.
    pub fn clear_surface(self, element: usize, block: &mut Block) {
        for axis in 0..3 {
            let place = self.place(element, axis);
            let faces = [(place == 0, 0), (place + 1 == self.edges[axis], N - 1)];
            for (_, face) in faces.into_iter().filter(|(outside, _)| *outside) {
                (0..POINTS).filter(|&point| along(point, axis) == face).for_each(|point| block[point] = 0.0);
            }
        }
    }

    /// The sum of the values of a point over all elements that share it; the first call is for `axis` 0.
    pub fn sum_of_copies(self, blocks: &[Block], element: usize, point: usize, axis: usize) -> f64 {
        if axis == 3 {
            return blocks[element][point];
        }
        let own = self.sum_of_copies(blocks, element, point, axis + 1);
        let (face, stride) = (along(point, axis), self.stride(axis));
        if face == 0 && self.place(element, axis) > 0 {
            own + self.sum_of_copies(blocks, element - stride, moved(point, axis, N - 1), axis + 1)
        } else if face == N - 1 && self.place(element, axis) + 1 < self.edges[axis] {
            own + self.sum_of_copies(blocks, element + stride, moved(point, axis, 0), axis + 1)
        } else {
            own
        }
    }
}
