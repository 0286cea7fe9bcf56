//! The staggered stencil of lattice quantum chromodynamics, as MILC's `dslash` computes it: at each site of a 4-D periodic lattice,
//! `out(x) = sum over mu of U_mu(x) in(x + mu) - U_mu(x - mu)^+ in(x - mu)`, with 3 x 3 unitary link matrices U and vectors of three
//! complex numbers. Phases are taken to be in the links.
//!
//! A pass walks along the links, which are most of the data: each is used at two sites, and each vector at eight, up to a time slice
//! apart. Intensity: 8 products of a matrix and a vector at 9 x 8 flop, added to a sum that begins with zero, and 6 flop of scaling are
//! 582 flop, for 72 + 6 + 6 values = 672 bytes per site: 0.87. (MILC counts 570 flop, and 1584 bytes where nothing is used again.)
//! Sixteen sites along x are stored side by side, value by value, so that inner loops run over them. Does not solve anything.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::su3_matrix::{
    Complex, Matrices, PRODUCT_FLOP, ROW, Vectors, add_product, conjugate, minus, plus, subtract_adjoint_product,
};
use crate::su3_matrix::{times, unitary};
use crate::thread_team::{self, AfterLimit, Done, Error, Setting};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::{mix, unit};

/// Values of a vector and of the four links of a site.
const VECTOR: usize = 6;
const LINKS: usize = 4 * 18;

/// Applications of the stencil in a repetition; even, so that the result is where the source was.
const APPLICATIONS: usize = 4;
const FLOP_PER_SITE: u64 = 8 * PRODUCT_FLOP + 6;
const BYTES_PER_SITE: u64 = ((LINKS + 2 * VECTOR) * size_of::<f64>()) as u64;

/// How far a value may be off from its definition, and a product that must vanish, relative to the lengths of its factors.
const TOLERANCE: f64 = 1e-12;

/// The matrices of the four directions of each site of a row.
type Links = [Matrices; 4];

/// Rows of a lattice, numbered along y first.
#[derive(Clone, Copy, Debug)]
struct Lattice {
    /// Sites along y, z and t.
    edges: [usize; 3],
}

impl Lattice {
    /// The largest that takes at most `bytes` (and eight rows at least), as near to a cube in y, z and t as can be.
    fn new(bytes: usize) -> Self {
        let rows = (bytes / (BYTES_PER_SITE as usize * ROW)).max(8);
        let edge = (1..).take_while(|edge: &usize| edge.pow(3) <= rows).last().unwrap_or(1);
        Self { edges: [edge, edge, rows / (edge * edge)] }
    }

    fn rows(self) -> usize {
        self.edges.iter().product()
    }

    /// The rows after and before a row along an axis: 0 is y.
    fn neighbours(self, row: usize, axis: usize) -> [usize; 2] {
        let (stride, edge) = (self.edges[..axis].iter().product::<usize>(), self.edges[axis]);
        let place = row / stride % edge;
        let at = |to: usize| row + to * stride - place * stride;
        [at((place + 1) % edge), at((place + edge - 1) % edge)]
    }
}

/// Applies the stencil four times in each of `setting.repetitions`, each of which begins with the same source, on links and two vectors
/// per site of at most `setting.data_bytes` together. An operation is one floating-point operation; the traffic counted is each link
/// and each vector once for each application that reads or writes it. Not verified where the time limit cut a repetition off.
pub fn su3(setting: &Setting) -> Result<Report, Error> {
    let lattice = Lattice::new(setting.data_bytes);
    let setup = Setup::begin(setting);
    let rows = lattice.rows();
    let zeroed = |values: usize| Buffer::<f64>::zeroed(&setting.placement, rows * ROW * values);
    let (mut made, mut even, mut odd) = (zeroed(LINKS)?, zeroed(VECTOR)?, zeroed(VECTOR)?);
    [&made, &even, &odd].iter().for_each(|buffer| buffer.announce(Pattern::Sequential));
    thread_team::map(setting.split(&mut made, ROW * LINKS), |(first, part)| {
        part.chunks_exact_mut(ROW * LINKS)
            .zip(first / ROW / LINKS..)
            .for_each(|(part, row)| fill_links(&mut links_mut(part)[0], row));
    });
    odd.fill(-1.0);

    // One member, who sends a crew over the lattice for each application.
    let of = links(&made);
    let member = (&mut even, &mut odd);
    let (ran, _) = setup.run(vec![member], AfterLimit::End, |(even, odd), _, watch| {
        let is_over = || watch.is_over();
        let filled = fill_source(setting, even, &is_over);
        let done = (0..APPLICATIONS).map(|number| {
            let (from, to) = if number % 2 == 0 { (&*even, &mut *odd) } else { (&*odd, &mut *even) };
            apply(setting, lattice, of, from, to, &is_over)
        });
        done.fold(filled, |(bytes, flop), (more_bytes, more_flop)| (bytes + more_bytes, flop + more_flop))
    });

    let (_, checksum) =
        ran.check(setting.split(&mut even, 1), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_values = setting.verify && ran.finished();
    let wrong = if verify_values { wrong_values(setting, lattice, &mut made, &even, &odd) } else { 0 };
    let verified = Verified::of(verify_values, wrong);
    let data_bytes = rows * ROW * BYTES_PER_SITE as usize;
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("su3", "flop", data_bytes, (wrong, checksum)) })
}

/// What one repetition moves and computes, the writing of the source included.
pub fn traffic(setting: &Setting) -> Traffic {
    let passed = (Lattice::new(setting.data_bytes).rows() * ROW) as f64;
    let applications = APPLICATIONS as f64;
    Traffic {
        bytes: passed * (applications * BYTES_PER_SITE as f64 + (VECTOR * size_of::<f64>()) as f64),
        flop: passed * applications * FLOP_PER_SITE as f64,
    }
}

fn source_at(index: usize) -> f64 {
    2.0 * unit(mix(!(index as u64))) - 1.0
}

fn vectors(values: &[f64]) -> &[Vectors] {
    values.as_chunks().0.as_chunks().0.as_chunks().0
}

fn vectors_mut(values: &mut [f64]) -> &mut [Vectors] {
    values.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0
}

fn links(values: &[f64]) -> &[Links] {
    values.as_chunks().0.as_chunks().0.as_chunks().0.as_chunks().0.as_chunks().0
}

fn links_mut(values: &mut [f64]) -> &mut [Links] {
    values.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0.as_chunks_mut().0
}

fn fill_links(links: &mut Links, row: usize) {
    for (mu, matrices) in links.iter_mut().enumerate() {
        for site in 0..ROW {
            let entries = unitary(mix(((row * 4 + mu) * ROW + site) as u64)).into_iter().flatten();
            let places = matrices.as_flattened_mut().iter_mut();
            places.zip(entries).for_each(|(lanes, (re, im))| (lanes[0][site], lanes[1][site]) = (re, im));
        }
    }
}

fn fill_source(setting: &Setting, even: &mut [f64], is_over: &(impl Fn() -> bool + Sync)) -> Done {
    let written = thread_team::map(setting.split(even, ROW * VECTOR), |(first, part)| {
        let mut written = 0;
        for (part, start) in part.chunks_mut(ROW * VECTOR).zip((first..).step_by(ROW * VECTOR)) {
            if is_over() {
                break;
            }
            part.iter_mut().zip(start..).for_each(|(value, index)| *value = source_at(index));
            written += part.len();
        }
        written
    });
    ((written.into_iter().sum::<usize>() * size_of::<f64>()) as u64, 0)
}

/// One application, or its beginning where it `is_over`.
fn apply(
    setting: &Setting,
    lattice: Lattice,
    of: &[Links],
    from: &[f64],
    to: &mut [f64],
    is_over: &(impl Fn() -> bool + Sync),
) -> Done {
    let rows = thread_team::map(setting.split(to, ROW * VECTOR), |(first, part)| {
        let mut done = 0;
        for (out, row) in vectors_mut(part).iter_mut().zip(first / ROW / VECTOR..) {
            if is_over() {
                break;
            }
            apply_to_row(lattice, of, vectors(from), row, out);
            done += 1;
        }
        done
    });
    let sites = rows.into_iter().sum::<u64>() * ROW as u64;
    (sites * BYTES_PER_SITE, sites * FLOP_PER_SITE)
}

fn apply_to_row(lattice: Lattice, links: &[Links], from: &[Vectors], row: usize, out: &mut Vectors) {
    // Along x, the neighbours are in the same row.
    let (mut after, mut before, mut back) = (from[row], from[row], links[row][0]);
    after.as_flattened_mut().iter_mut().for_each(|lane| lane.rotate_left(1));
    before.as_flattened_mut().iter_mut().chain(back.as_flattened_mut().as_flattened_mut()).for_each(|lane| lane.rotate_right(1));
    let mut sum = Vectors::default();
    add_product(&mut sum, &links[row][0], &after);
    subtract_adjoint_product(&mut sum, &back, &before);
    for axis in 0..3 {
        let [after, before] = lattice.neighbours(row, axis);
        add_product(&mut sum, &links[row][axis + 1], &from[after]);
        subtract_adjoint_product(&mut sum, &links[before][axis + 1], &from[before]);
    }
    // An eighth, so that no vector grows: exact.
    out.as_flattened_mut().iter_mut().zip(sum.as_flattened()).for_each(|(out, sum)| *out = sum.map(|value| value * 0.125));
}

/// Links that are not as they were made, values of the last application (from `odd` to `even`) that are not as defined, and products
/// that are not zero. The stencil D is anti-hermitian, so the real part of `<v | D^3 v>` and the imaginary part of `<v | D^4 v>` must
/// vanish: that holds the earlier applications. Written so that a NaN is wrong.
fn wrong_values(setting: &Setting, lattice: Lattice, made: &mut [f64], even: &[f64], odd: &[f64]) -> u64 {
    let wrong_links = thread_team::map(setting.split(made, ROW * LINKS), |(first, part)| {
        let mut expected = Links::default();
        let bits = |links: &Links| links.as_flattened().as_flattened().as_flattened().as_flattened().to_vec();
        let wrong = links(part).iter().zip(first / ROW / LINKS..).map(|(made, row)| {
            fill_links(&mut expected, row);
            bits(made).iter().zip(bits(&expected)).filter(|(a, b)| a.to_bits() != b.to_bits()).count() as u64
        });
        wrong.sum::<u64>()
    });
    let (of, mut rows) = (links(made), (0..lattice.rows()).collect::<Vec<_>>());
    let values = thread_team::map(setting.split(&mut rows, 1), |(_, rows)| {
        let wrong = |row: usize, site: usize| {
            let right = (0..3).filter(|&k| {
                let (value, expected) = (component(even, row, site, k), by_definition(lattice, of, odd, row, site, k));
                (value.0 - expected.0).abs() <= TOLERANCE && (value.1 - expected.1).abs() <= TOLERANCE
            });
            3 - right.count() as u64
        };
        rows.iter().map(|&row| (0..ROW).map(|site| wrong(row, site)).sum::<u64>()).sum()
    });
    // Of the source and the result of one and of all applications: (real, imaginary) part of the product, and squared length.
    let product = |with: &[f64]| {
        let (mut re, mut im, mut length) = (0.0, 0.0, 0.0);
        for (index, value) in with.iter().enumerate() {
            // Real and imaginary parts stand in lanes by turns.
            let (lane, site) = (index / ROW, index % ROW);
            let other = source_at((lane ^ 1) * ROW + site);
            re += source_at(index) * value;
            im += if lane.is_multiple_of(2) { -other * value } else { other * value };
            length += value * value;
        }
        (re, im, length)
    };
    let ((re, _, odd_length), (_, im, even_length)) = (product(odd), product(even));
    let source_length = (0..even.len()).map(|index| source_at(index).powi(2)).sum::<f64>();
    let vanishes = |value: f64, length: f64| value.abs() <= TOLERANCE * (length * source_length).sqrt();
    let wrong_products = u64::from(!vanishes(re, odd_length)) + u64::from(!vanishes(im, even_length));
    wrong_links.into_iter().chain(values).sum::<u64>() + wrong_products
}

fn component(values: &[f64], row: usize, site: usize, k: usize) -> Complex {
    let [re, im] = &vectors(values)[row][k];
    (re[site], im[site])
}

/// Component `k` of the stencil at one site.
fn by_definition(lattice: Lattice, links: &[Links], from: &[f64], row: usize, site: usize, k: usize) -> Complex {
    let link = |row: usize, site: usize, mu: usize, (i, j): (usize, usize)| {
        let [re, im] = &links[row][mu][i][j];
        (re[site], im[site])
    };
    let mut sum = (0.0, 0.0);
    for mu in 0..4 {
        let (after, before) = if mu == 0 {
            ((row, (site + 1) % ROW), (row, (site + ROW - 1) % ROW))
        } else {
            let [after, before] = lattice.neighbours(row, mu - 1);
            ((after, site), (before, site))
        };
        for j in 0..3 {
            sum = plus(sum, times(link(row, site, mu, (k, j)), component(from, after.0, after.1, j)));
            let back = conjugate(link(before.0, before.1, mu, (j, k)));
            sum = minus(sum, times(back, component(from, before.0, before.1, j)));
        }
    }
    (sum.0 / 8.0, sum.1 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let (setting, lattice) = (Setting::new(0, 2, 1), Lattice { edges: [2, 3, 4] });
        let size = lattice.rows() * ROW;
        let wrong = |spoil_early: fn(&mut [f64]), spoil: fn(&mut [f64], &mut [f64], &mut [f64])| {
            let (mut made, mut even, mut odd) = (vec![0.0; size * LINKS], vec![0.0; size * VECTOR], vec![0.0; size * VECTOR]);
            made.chunks_exact_mut(ROW * LINKS).enumerate().for_each(|(row, part)| fill_links(&mut links_mut(part)[0], row));
            fill_source(&setting, &mut even, &|| false);
            for number in 0..APPLICATIONS {
                let (from, to) = if number % 2 == 0 { (&mut even, &mut odd) } else { (&mut odd, &mut even) };
                apply(&setting, lattice, links(&made), from, to, &|| false);
                if number == 1 {
                    spoil_early(to);
                }
            }
            spoil(&mut made, &mut even, &mut odd);
            wrong_values(&setting, lattice, &mut made, &even, &odd)
        };
        fn flip(value: &mut f64, bit: u32) {
            *value = f64::from_bits(value.to_bits() ^ 1 << bit);
        }
        assert_eq!(wrong(|_| (), |_, _, _| ()), 0);
        assert!(wrong(|vector| flip(&mut vector[777], 40), |_, _, _| ()) > 0);
        assert!(wrong(|_| (), |links, _, _| flip(&mut links[3000], 0)) > 0);
        assert!(wrong(|_| (), |_, even, _| even[777] = f64::NAN) > 0);
        assert!(wrong(|_| (), |_, _, odd| flip(&mut odd[1000], 40)) > 0);
    }
}
