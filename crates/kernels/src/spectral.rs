//! Conjugate gradients on a spectral-element operator, as Nekbone (the proxy of Nek5000) runs them: a box of elements of 8 x 8 x 8
//! points, six geometric factors per point, and sums over the points that neighbouring elements share.
//!
//! One iteration is two passes. The first makes the direction `p = r + beta p`, applies the operator `w = sum of D^T G D p` element by
//! element, and adds up the faces of neighbours (direct stiffness summation); those of the second are `x += alpha p`, `r -= alpha w`.
//! Each pass walks along memory; only faces of the layer of elements before are visited again. Intensity: 12 N + 26 flop (of which
//! 12 N + 15 for the operator) for 16 values per point and iteration, so about 0.95 with N = 8, faces left out. Sums are per element,
//! then over elements in order: results are the same to the last bit whichever thread does an element. Does not precondition.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::spectral_element::{Block, Element, FACTORS, FLOP, N, POINTS, factors_at};
use crate::spectral_mesh::Mesh;
use crate::thread_team::{self, AfterLimit, Done, Error, Setting};
use crate::timed_run::{Setup, digest};

/// Iterations of a repetition.
const ITERATIONS: usize = 4;

/// How far a residual may be off from `b - A x`; values of b are below 1, and rounding leaves some 1e-15.
const TOLERANCE: f64 = 1e-12;

/// How large the cosine between a residual and the direction of the last step may be; rounding leaves some 1e-13.
const ORTHOGONAL: f64 = 1e-9;

/// Bytes of an element in one vector.
const BLOCK_BYTES: u64 = size_of::<Block>() as u64;

/// Operations of an element: r r with a weight for each line of points, and one for each place on it; the direction, the operator and p A p; x and r.
const NORM_FLOP: u64 = (3 * POINTS + N * N + 2 * N) as u64;
const APPLY_FLOP: u64 = (FLOP + 4 * POINTS) as u64;
const UPDATE_FLOP: u64 = 4 * POINTS as u64 + NORM_FLOP;

struct Solver<'a> {
    setting: &'a Setting,
    mesh: Mesh,
    element: Element,
    factors: Buffer<f64>,
    x: Buffer<f64>,
    r: Buffer<f64>,
    p: Buffer<f64>,
    w: Buffer<f64>,
}

/// Runs `setting.repetitions` times four iterations from x = 0, on arrays of at most `setting.data_bytes` together. An operation is one
/// floating-point operation. The traffic counted: each array once for each pass that reads or writes it, and the faces that neighbours
/// add up (both read, both written). Not verified where the time limit cut a repetition off.
pub fn spectral(setting: &Setting) -> Result<Report, Error> {
    let mesh = Mesh::new(setting.data_bytes);
    let setup = Setup::begin(setting);
    let mut solver = Solver::new(setting, mesh)?;

    // One member, who sends a crew along each pass: the sums of a pass are needed before the next.
    let (ran, _) = setup.run(vec![&mut solver], AfterLimit::End, |solver, _, watch| solver.iterate(&|| watch.is_over()));

    let values = mesh.elements() * POINTS;
    let digest_of = |first, part: &[f64]| (0, digest(first, part.iter().map(|value| value.to_bits())));
    let (_, of_x) = ran.check(setting.split(&mut solver.x, 1), |(first, part)| digest_of(first, part));
    let (_, of_r) = ran.check(setting.split(&mut solver.r, 1), |(first, part)| digest_of(values + first, part));
    let verify_residual = setting.verify && ran.finished();
    let wrong = if verify_residual { solver.wrong_values() } else { 0 };
    let verified = Verified::of(verify_residual, wrong);
    let (data_bytes, checked) = ((FACTORS + 4) * values * size_of::<f64>(), (wrong, of_x.wrapping_add(of_r)));
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("spectral", "flop", data_bytes, checked) })
}

/// What one repetition moves and computes: 16 values per point and iteration, 3 to begin with, and the faces.
pub fn traffic(setting: &Setting) -> Traffic {
    let mesh = Mesh::new(setting.data_bytes);
    let (iterations, elements, shared) = (ITERATIONS as f64, mesh.elements() as f64, (mesh.pairs() * N * N) as f64);
    Traffic {
        bytes: elements * BLOCK_BYTES as f64 * (16.0 * iterations + 3.0) + iterations * shared * 32.0,
        flop: iterations * (elements * (APPLY_FLOP + UPDATE_FLOP) as f64 + shared) + elements * NORM_FLOP as f64,
    }
}

impl<'a> Solver<'a> {
    fn new(setting: &'a Setting, mesh: Mesh) -> Result<Self, Error> {
        let zeroed = |values| {
            let buffer = Buffer::<f64>::zeroed(&setting.placement, mesh.elements() * values)?;
            buffer.announce(Pattern::Sequential);
            Ok::<_, Error>(buffer)
        };
        let (x, r, p, w) = (zeroed(POINTS)?, zeroed(POINTS)?, zeroed(POINTS)?, zeroed(POINTS)?);
        let mut solver = Self { setting, mesh, element: Element::new(), factors: zeroed(FACTORS * POINTS)?, x, r, p, w };
        thread_team::map(setting.split(&mut solver.factors, FACTORS * POINTS), |(first, part)| {
            for (element, factors) in (first / FACTORS / POINTS..).zip(part.chunks_exact_mut(FACTORS * POINTS)) {
                for point in 0..POINTS {
                    let values = factors_at(element, point).into_iter().enumerate();
                    values.for_each(|(factor, value)| factors[factor * POINTS + point] = value);
                }
            }
        });
        // No repetition meets fresh pages.
        solver.w.fill(-1.0);
        Ok(solver)
    }

    /// A repetition; ends early once `is_over`.
    fn iterate(&mut self, is_over: &(impl Fn() -> bool + Sync)) -> Done {
        let (mut done, mut norm) = self.begin(is_over);
        let mut beta = 0.0;
        for _ in 0..ITERATIONS {
            let ((bytes, flop), curvature) = self.apply(beta, is_over);
            done = (done.0 + bytes, done.1 + flop);
            let ((bytes, flop), next) = self.update(norm / curvature, is_over);
            done = (done.0 + bytes, done.1 + flop);
            (beta, norm) = (next / norm, next);
        }
        done
    }

    /// x = 0, r = b, p = 0; returns what was done, and r r.
    fn begin(&mut self, is_over: &(impl Fn() -> bool + Sync)) -> (Done, f64) {
        let (setting, mesh) = (self.setting, self.mesh);
        let parts = setting.split(&mut self.x, POINTS).into_iter().zip(setting.split(&mut self.r, POINTS));
        let sums = thread_team::map(parts.zip(setting.split(&mut self.p, POINTS)).collect(), |(((first, x), (_, r)), (_, p))| {
            let blocks = blocks_mut(x).iter_mut().zip(blocks_mut(r)).zip(blocks_mut(p)).zip(first / POINTS..);
            let sum = |(((x, r), p), element): (((&mut Block, &mut Block), &mut Block), usize)| {
                (*x, *p) = ([0.0; POINTS], [0.0; POINTS]);
                *r = mesh.b(element);
                norm(mesh, element, r)
            };
            blocks.map_while(|blocks| (!is_over()).then(|| sum(blocks))).collect()
        });
        let (elements, sum) = total(sums);
        ((elements * 3 * BLOCK_BYTES, elements * NORM_FLOP), sum)
    }

    /// p = r + beta p, w = A p; returns what was done, and p A p.
    fn apply(&mut self, beta: f64, is_over: &(impl Fn() -> bool + Sync)) -> (Done, f64) {
        let (mesh, element, layer) = (self.mesh, &self.element, self.mesh.layer());
        let (factors, r) = (self.factors.as_chunks::<POINTS>().0.as_chunks::<FACTORS>().0, blocks(&self.r));
        let parts = self.setting.split(&mut self.p, layer * POINTS).into_iter();
        let parts: Vec<_> = parts.zip(self.setting.split(&mut self.w, layer * POINTS)).collect();
        let starts: Vec<usize> = parts.iter().map(|((first, _), _)| first / POINTS).collect();
        let results = thread_team::map(parts, |((first, p), (_, w))| {
            let (p, w, mut sums, mut pairs) = (blocks_mut(p), blocks_mut(w), Vec::new(), 0);
            for start in (0..p.len()).step_by(layer) {
                for own in start..start + layer {
                    if is_over() {
                        return (sums, pairs);
                    }
                    let (p, w, number) = (&mut p[own], &mut w[own], first / POINTS + own);
                    p.iter_mut().zip(&r[number]).for_each(|(p, r)| *p = r + beta * *p);
                    element.apply(&factors[number], p, w);
                    sums.push(product(p, w));
                }
                pairs += (0..3).map(|axis| add_faces(mesh, w, start, axis)).sum::<u64>();
            }
            (sums, pairs)
        });
        let (sums, pairs): (Vec<_>, Vec<u64>) = results.into_iter().unzip();
        // The layers where the part of another thread begins.
        let w = blocks_mut(&mut self.w);
        let mut pairs: u64 = pairs.into_iter().sum();
        for start in starts.into_iter().filter(|&start| start > 0) {
            if start < w.len() && !is_over() {
                pairs += add_faces(mesh, &mut w[start - layer..], layer, 2);
            }
        }
        let shared = pairs * (N * N) as u64;
        let (elements, sum) = total(sums);
        ((elements * 10 * BLOCK_BYTES + shared * 32, elements * APPLY_FLOP + shared), sum)
    }

    /// x += alpha p, r -= alpha w but on the surface; returns what was done, and r r.
    fn update(&mut self, alpha: f64, is_over: &(impl Fn() -> bool + Sync)) -> (Done, f64) {
        let (mesh, p, w) = (self.mesh, blocks(&self.p), blocks(&self.w));
        let parts = self.setting.split(&mut self.x, POINTS).into_iter().zip(self.setting.split(&mut self.r, POINTS)).collect();
        let sums = thread_team::map(parts, |((first, x), (_, r))| {
            let mut sums = Vec::new();
            for (element, (x, r)) in (first / POINTS..).zip(blocks_mut(x).iter_mut().zip(blocks_mut(r))) {
                if is_over() {
                    break;
                }
                x.iter_mut().zip(&p[element]).for_each(|(x, p)| *x += alpha * p);
                r.iter_mut().zip(&w[element]).for_each(|(r, w)| *r -= alpha * w);
                mesh.clear_surface(element, r);
                sums.push(norm(mesh, element, r));
            }
            sums
        });
        let (elements, sum) = total(sums);
        ((elements * 6 * BLOCK_BYTES, elements * UPDATE_FLOP), sum)
    }

    /// Geometric factors that are not as they were made, residuals that are not `b - A x`, with A x by its definition, and one more if
    /// the last step was not as long as it had to be: then the residual is not orthogonal to its direction. Written so that a NaN is wrong.
    /// What elements give to A x is left in w.
    fn wrong_values(&mut self) -> u64 {
        let (mesh, element) = (self.mesh, &self.element);
        let (x, r, factors) = (blocks(&self.x), blocks(&self.r), self.factors.as_chunks::<POINTS>().0.as_chunks::<FACTORS>().0);
        let wrong_factors = thread_team::map(self.setting.split(&mut self.w, POINTS), |(first, w)| {
            let wrong = (first / POINTS..).zip(blocks_mut(w)).map(|(number, w): (usize, &mut Block)| {
                let made: [[f64; FACTORS]; POINTS] = std::array::from_fn(|point| factors_at(number, point));
                element.apply_by_definition(&made, &x[number], w);
                let same =
                    |point: usize, factor: usize| factors[number][factor][point].to_bits() == made[point][factor].to_bits();
                (0..POINTS * FACTORS).filter(|at| !same(at / FACTORS, at % FACTORS)).count() as u64
            });
            wrong.sum::<u64>()
        });
        let (w, mut numbers) = (blocks(&self.w), (0..mesh.elements()).collect::<Vec<_>>());
        let wrong_residuals = thread_team::map(self.setting.split(&mut numbers, 1), |(_, numbers)| {
            let wrong = |number: usize| {
                let right = mesh.b(number).into_iter().zip(&r[number]).enumerate().filter(|(point, (b, r))| {
                    // Zero is on the surface only.
                    let expected = if *b == 0.0 { 0.0 } else { b - mesh.sum_of_copies(w, number, *point, 0) };
                    (**r - expected).abs() <= TOLERANCE
                });
                (POINTS - right.count()) as u64
            };
            numbers.iter().map(|&number| wrong(number)).sum::<u64>()
        });
        let sums = blocks(&self.p).iter().zip(r).enumerate().map(|(number, (p, r))| inner_products(mesh, number, p, r));
        let [pp, pr, rr] = sums.fold([0.0; 3], |sum, own| std::array::from_fn(|at| sum[at] + own[at]));
        let is_orthogonal = pr.abs() <= ORTHOGONAL * (pp * rr).sqrt();
        wrong_factors.into_iter().chain(wrong_residuals).sum::<u64>() + u64::from(!is_orthogonal)
    }
}

fn blocks(values: &[f64]) -> &[Block] {
    values.as_chunks().0
}

fn blocks_mut(values: &mut [f64]) -> &mut [Block] {
    values.as_chunks_mut().0
}

/// (number of elements, sum over them in order).
fn total(parts: Vec<Vec<f64>>) -> (u64, f64) {
    let elements = parts.iter().map(Vec::len).sum::<usize>();
    (elements as u64, parts.into_iter().flatten().sum())
}

/// p w of one element, in eight sums side by side, so that the compiler can keep them in vector registers.
fn product(p: &Block, w: &Block) -> f64 {
    let mut sums = [0.0; N];
    for (p, w) in p.as_chunks::<N>().0.iter().zip(w.as_chunks::<N>().0) {
        sums.iter_mut().zip(p.iter().zip(w)).for_each(|(sum, (p, w))| *sum += p * w);
    }
    sums.iter().sum()
}

/// p p, p r and r r over an element's points, each by its weight.
fn inner_products(mesh: Mesh, element: usize, p: &Block, r: &Block) -> [f64; 3] {
    let [of_x, of_y, of_z] = [0, 1, 2].map(|axis| mesh.weights(element, axis));
    p.iter().zip(r).enumerate().fold([0.0; 3], |[pp, pr, rr], (point, (p, r))| {
        let weight = of_x[point % N] * of_y[point / N % N] * of_z[point / N / N];
        [pp + weight * p * p, pr + weight * p * r, rr + weight * r * r]
    })
}

/// r r over an element's points, each by its weight.
fn norm(mesh: Mesh, element: usize, r: &Block) -> f64 {
    let [of_x, of_y, of_z] = [0, 1, 2].map(|axis| mesh.weights(element, axis));
    let mut sums = [0.0; N];
    for (line, r) in r.as_chunks::<N>().0.iter().enumerate() {
        let of_line = of_y[line % N] * of_z[line / N];
        sums.iter_mut().zip(r).for_each(|(sum, r)| *sum += r * r * of_line);
    }
    sums.iter().zip(of_x).map(|(sum, weight)| sum * weight).sum()
}

/// Adds up what neighbours along an axis have in the points that they share, for all elements of the layer at `start` and their
/// neighbours before; returns the pairs. One axis must be done for a whole layer before the next: then edges and corners come out right.
fn add_faces(mesh: Mesh, blocks: &mut [Block], start: usize, axis: usize) -> u64 {
    let (stride, step, mut pairs) = (mesh.stride(axis), N.pow(axis as u32), 0);
    for element in start..start + mesh.layer() {
        let inside = if axis == 2 { start > 0 } else { mesh.place(element, axis) > 0 };
        if inside {
            let (before, own) = blocks.split_at_mut(element);
            let (before, own) = (&mut before[element - stride], &mut own[0]);
            for number in 0..N * N {
                let point = number / step * step * N + number % step;
                let (a, b) = (&mut before[point + (N - 1) * step], &mut own[point]);
                let sum = *a + *b;
                (*a, *b) = (sum, sum);
            }
            pairs += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residual_falls_and_a_wrong_value_is_told() {
        let setting = Setting::new(0, 2, 1);
        let solved = || {
            let mut solver = Solver::new(&setting, Mesh { edges: [2, 3, 3] }).expect("a small system");
            let (_, before) = solver.begin(&|| false);
            solver.iterate(&|| false);
            (solver, before)
        };
        let (mut solver, before) = solved();
        let after: f64 = blocks(&solver.r).iter().enumerate().map(|(number, r)| norm(solver.mesh, number, r)).sum();
        assert!(after > 0.0 && after < 0.9 * before, "{before} {after}");
        assert_eq!(solver.wrong_values(), 0);
        fn flip(value: &mut f64, bit: u32) {
            *value = f64::from_bits(value.to_bits() ^ 1 << bit);
        }
        let spoils: [fn(&mut Solver); 5] = [
            |solver| flip(&mut solver.x[1800], 40),
            |solver| flip(&mut solver.r[1800], 40),
            |solver| flip(&mut solver.factors[9000], 0),
            |solver| solver.r[3000] = f64::NAN,
            // Only the direction tells that.
            |solver| solver.p[1800] += 1e-3,
        ];
        for (number, spoil) in spoils.into_iter().enumerate() {
            let (mut solver, _) = solved();
            spoil(&mut solver);
            assert!(solver.wrong_values() > 0, "{number}");
        }
    }
}
