//! Pairs of atoms of `md`: Lennard-Jones forces and energies, and their sums over the neighbours of an atom.

use crate::md_box::{PeriodicBox, Vector};

/// Where forces end.
const CUTOFF: f64 = 2.5;
/// Operations of a listed pair.
pub const PAIR_FLOP: u64 = 8;
/// More of them where it is within the cutoff.
pub const FORCE_FLOP: u64 = 13;

/// The squared length.
pub fn square(a: Vector) -> f64 {
    a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
}

/// The force of a pair at a squared distance, by the distance.
#[inline]
fn force(square: f64) -> f64 {
    let inverse = 1.0 / square;
    let sixth = inverse * inverse * inverse;
    48.0 * sixth * (sixth - 0.5) * inverse
}

/// The energy of a pair, which is zero at the cutoff.
fn energy(square: f64) -> f64 {
    let of = |square: f64| 4.0 * (square.powi(-6) - square.powi(-3));
    of(square) - of(CUTOFF * CUTOFF)
}

/// The squared distance.
pub fn distance(a: Vector, b: Vector) -> f64 {
    square(std::array::from_fn(|axis| a[axis] - b[axis]))
}

/// The mean energy of an atom at first. All atoms of the lattice have the same surroundings: those of the first will do.
pub fn first_energy(the_box: &PeriodicBox) -> f64 {
    let count = the_box.atoms();
    let velocities = || (0..count).map(PeriodicBox::velocity_at);
    let mean: Vector = std::array::from_fn(|axis| velocities().map(|velocity| velocity[axis]).sum::<f64>() / count as f64);
    let kinetic = velocities().map(|velocity| 0.5 * distance(velocity, mean)).sum::<f64>() / count as f64;
    let others = (1..count).map(|atom| {
        let apart = std::array::from_fn(|axis| the_box.place_at(atom)[axis] - the_box.place_at(0)[axis]);
        square(nearest(apart, the_box.edges))
    });
    kinetic + others.filter(|&square| square < CUTOFF * CUTOFF).map(|square| 0.5 * energy(square)).sum::<f64>()
}

/// The shortest of the ways between two atoms of which one may be across an edge of the box.
#[inline]
pub fn nearest(apart: Vector, edges: Vector) -> Vector {
    std::array::from_fn(|axis| {
        let (d, edge) = (apart[axis], edges[axis]);
        let d = if d > 0.5 * edge { d - edge } else { d };
        if d < -0.5 * edge { d + edge } else { d }
    })
}

/// Sums the forces of `others` on an atom; returns how many are within the cutoff.
#[inline(always)]
pub fn sum_forces(places: &[Vector], atom: usize, others: &[u32], sum: &mut Vector, image: impl Fn(Vector) -> Vector) -> u64 {
    let ([x, y, z], mut total, mut within) = (places[atom], [0.0; 3], 0);
    for &other in others {
        let other = places[other as usize];
        let apart = image([x - other[0], y - other[1], z - other[2]]);
        let square = square(apart);
        if square < CUTOFF * CUTOFF {
            let force = force(square);
            total.iter_mut().zip(apart).for_each(|(total, d)| *total += d * force);
            within += 1;
        }
    }
    *sum = total;
    within
}

/// The force on an atom and its energy, from all atoms of the bins around: (numbers of atoms by bin, where bins start).
pub fn sum_over_bins(the_box: &PeriodicBox, places: &[Vector], (order, starts): (&[u32], &[u32]), atom: usize) -> (Vector, f64) {
    let (own, mut sum, mut potential) = (the_box.wrapped(places[atom]), [0.0; 3], 0.0);
    for (bin, shift) in the_box.around(the_box.bin_of(own)) {
        let others = &order[starts[bin] as usize..starts[bin + 1] as usize];
        for other in others.iter().map(|&other| other as usize).filter(|&other| other != atom) {
            let other = the_box.wrapped(places[other]);
            let apart: Vector = std::array::from_fn(|axis| own[axis] - (other[axis] + shift[axis]));
            let square = square(apart);
            if square < CUTOFF * CUTOFF {
                sum.iter_mut().zip(apart).for_each(|(sum, d)| *sum += d * force(square));
                potential += 0.5 * energy(square);
            }
        }
    }
    (sum, potential)
}
