//! Sparse Cholesky factorization by the multifrontal method, and one solve, as direct solvers (CHOLMOD, MUMPS) do it: the matrix of a
//! 7-point Laplacian with random coefficients on a grid four points thick, ordered by nested dissection.
//!
//! Each node of the tree assembles a dense front from the matrix and the updates of its children, factors it, and leaves an update. The
//! factor is written once, front after front, and read twice by the solve, forth and back; updates are used once, soon after they are
//! made. So almost all of a repetition works within one front (at most a few per cent of the data). Intensity: `cholesky_front::work_of`
//! of every node; with blocks of 32 columns it tends to 2 x 32 flop for 24 bytes. Regions below the top of the tree are shared out
//! whole, the fronts of the top by columns: results are the same to the last bit whichever thread does what. The solve is sequential.
//! The tree itself (some 1 % of the data) is on the heap.

use std::sync::{Mutex, PoisonError};

use crate::buffer::Buffer;
use crate::cholesky_front::{Crew, factor, work_of};
use crate::cholesky_matrix::{b_at, row_of, wrong_rows};
use crate::cholesky_tree::{Node, Tree};
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Done, Error, Setting};
use crate::timed_run::{Setup, digest};

/// The numbers: the factor by nodes, each a rectangle of columns; the updates that parts of the tree hold; the solution.
struct Solver<'a> {
    setting: &'a Setting,
    tree: &'a Tree,
    factor: Buffer<f64>,
    updates: Buffer<f64>,
    x: Buffer<f64>,
}

/// Factors `setting.repetitions` matrices, each of which solves one system; factor, updates and solution take at most
/// `setting.data_bytes`. An operation is one floating-point operation. The traffic counted: fronts set to zero, updates read and added
/// to fronts, what `cholesky_front::factor` counts, updates moved, and the factor read twice by the solve; vectors and the entries of the
/// matrix, which are small, are left out. Not verified where the time limit cut a repetition off.
pub fn cholesky(setting: &Setting) -> Result<Report, Error> {
    let setup = Setup::begin(setting);
    let tree = Tree::largest(setting.data_bytes / size_of::<f64>());
    let mut solver = Solver::new(setting, &tree)?;
    let values = solver.factor.len() + solver.updates.len() + solver.x.len();

    // One member, who sends a crew over the tree.
    let (ran, _) = setup.run(vec![&mut solver], AfterLimit::End, |solver, number, watch| {
        let is_over = || watch.is_over();
        let (bytes, flop) = solver.factorize(number, &is_over);
        let (more_bytes, more_flop) = solver.solve(number, &is_over);
        (bytes + more_bytes, flop + more_flop)
    });

    let digest_of = |first, part: &[f64]| (0, digest(first, part.iter().map(|value| value.to_bits())));
    let x_first = solver.factor.len();
    let (_, of_factor) = ran.check(setting.split(&mut solver.factor, 1), |(first, part)| digest_of(first, part));
    let (_, of_x) = ran.check(setting.split(&mut solver.x, 1), |(first, part)| digest_of(x_first + first, part));
    let verify_solution = setting.verify && ran.finished();
    let wrong = if verify_solution { wrong_rows(&tree, &solver.x, ran.last()) } else { 0 };
    let verified = Verified::of(verify_solution, wrong);
    let checked = (wrong, of_factor.wrapping_add(of_x));
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("cholesky", "flop", values * size_of::<f64>(), checked) })
}

/// What one repetition moves and computes.
pub fn traffic(setting: &Setting) -> Traffic {
    let tree = Tree::largest(setting.data_bytes / size_of::<f64>());
    let (mut bytes, mut flop) = (0.0, 0.0);
    for (number, node) in tree.nodes.iter().enumerate() {
        let (rows, pivots, boundary) = (node.rows() as f64, node.pivots as f64, node.boundary.len() as f64);
        let of_front = work_of(node.rows(), node.pivots);
        let triangle = boundary * (boundary + 1.0) / 2.0;
        let added = if number + 1 == tree.nodes.len() { 0.0 } else { triangle };
        let moved = if node.children.is_empty() || tree.is_top(number) { 0.0 } else { 16.0 * boundary * boundary };
        let solved = 2.0 * (rows * pivots - pivots * (pivots - 1.0) / 2.0);
        bytes += of_front.0 as f64 + 8.0 * (rows * pivots + boundary * boundary) + 24.0 * added + moved + 8.0 * solved;
        flop += of_front.1 as f64 + added + 2.0 * solved - 2.0 * pivots;
    }
    Traffic { bytes, flop }
}

/// The first `count` values of `rest`, which loses them.
fn taken<'a>(rest: &mut &'a mut [f64], count: usize) -> &'a mut [f64] {
    let (own, others) = std::mem::take(rest).split_at_mut(count);
    *rest = others;
    own
}

impl<'a> Solver<'a> {
    fn new(setting: &'a Setting, tree: &'a Tree) -> Result<Self, Error> {
        let zeroed = |values| Buffer::<f64>::zeroed(&setting.placement, values);
        let factor = tree.nodes.iter().map(Node::panel).sum();
        let updates = tree.parts().into_iter().map(|last| part_updates(tree, last)).sum();
        let mut solver =
            Self { setting, tree, factor: zeroed(factor)?, updates: zeroed(updates)?, x: zeroed(tree.points.len())? };
        solver.factor.announce(Pattern::Sequential);
        // No repetition meets fresh pages.
        solver.factor.fill(-1.0);
        solver.updates.fill(-1.0);
        Ok(solver)
    }

    fn factorize(&mut self, repetition: usize, is_over: &(dyn Fn() -> bool + Sync)) -> Done {
        let (tree, threads) = (self.tree, self.setting.threads.max(1));
        let (mut factor_rest, mut updates_rest) = (&mut *self.factor, &mut *self.updates);
        let (mut regions, mut top, mut next) = (Vec::new(), Vec::new(), 0);
        for last in tree.parts() {
            let nodes = next..last + 1;
            next = last + 1;
            let panels = taken(&mut factor_rest, tree.nodes[nodes.clone()].iter().map(Node::panel).sum());
            let updates = taken(&mut updates_rest, part_updates(tree, last));
            if tree.is_top(last) { top.push((last, panels, updates)) } else { regions.push((nodes, panels, updates)) }
        }
        let queue = Mutex::new(regions.into_iter());
        let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let alone = Crew { threads: 1, is_over };
        let results = thread_team::map(vec![(); threads], |()| {
            let mut ends = Vec::new();
            while let Some((nodes, panels, updates)) = take() {
                let (last, done) = (nodes.end - 1, region(tree, nodes, repetition, panels, updates, alone));
                ends.push((last, &updates[..tree.nodes[last].update()], done));
            }
            ends
        });
        let mut done = (0, 0);
        let mut ready = Vec::new();
        for (last, update, (bytes, flop)) in results.into_iter().flatten() {
            done = (done.0 + bytes, done.1 + flop);
            ready.push((last, update));
        }
        for (number, panel, update) in top {
            if is_over() {
                break;
            }
            let node = &tree.nodes[number];
            let of = |child: &usize| ready.iter().find(|(last, _)| last == child).map_or(&[][..], |(_, update)| update);
            let children: Vec<_> = node.children.iter().map(|child| (&tree.nodes[*child], of(child))).collect();
            let (bytes, flop) = front(tree, node, repetition, panel, update, &children, Crew { threads, is_over });
            done = (done.0 + bytes, done.1 + flop);
            ready.push((number, update));
        }
        done
    }

    /// L L^T x = b, with columns of L read forth and then back.
    fn solve(&mut self, repetition: usize, is_over: &dyn Fn() -> bool) -> Done {
        let (tree, x) = (self.tree, &mut *self.x);
        let (mut values, mut flop) = (0, 0);
        x.iter_mut().zip(&tree.points).for_each(|(x, &point)| *x = b_at(repetition, point as usize));
        let mut own = Vec::new();
        let mut end = 0;
        for node in &tree.nodes {
            if is_over() {
                return (values * 8, flop);
            }
            own.clear();
            own.extend_from_slice(&x[node.first..node.first + node.pivots]);
            own.resize(node.rows(), 0.0);
            for (column, l) in self.factor[end..end + node.panel()].chunks_exact(node.rows()).enumerate() {
                let (solved, later) = own[column..].split_at_mut(1);
                solved[0] /= l[column];
                later.iter_mut().zip(&l[column + 1..]).for_each(|(value, l)| *value -= l * solved[0]);
                values += later.len() as u64 + 1;
                flop += 2 * later.len() as u64 + 1;
            }
            x[node.first..node.first + node.pivots].copy_from_slice(&own[..node.pivots]);
            node.boundary.iter().zip(&own[node.pivots..]).for_each(|(&place, sum)| x[place as usize] += sum);
            end += node.panel();
        }
        for node in tree.nodes.iter().rev() {
            if is_over() {
                return (values * 8, flop);
            }
            own.clear();
            own.extend_from_slice(&x[node.first..node.first + node.pivots]);
            own.extend(node.boundary.iter().map(|&place| x[place as usize]));
            for (column, l) in self.factor[end - node.panel()..end].chunks_exact(node.rows()).enumerate().rev() {
                let known = &own[column + 1..];
                own[column] = (own[column] - dot(known, &l[column + 1..])) / l[column];
                values += (own.len() - column) as u64;
                flop += 2 * (own.len() - column) as u64 - 1;
            }
            x[node.first..node.first + node.pivots].copy_from_slice(&own[..node.pivots]);
            end -= node.panel();
        }
        (values * 8, flop)
    }
}

/// In eight sums side by side, so that the compiler can keep them in vector registers.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

/// Values for the updates of a part of the tree: all that are alive at once below its last node, or its own one at the top.
fn part_updates(tree: &Tree, last: usize) -> usize {
    fn most(tree: &Tree, number: usize) -> usize {
        let node = &tree.nodes[number];
        let (mut held, mut most_held) = (0, 0);
        for &child in &node.children {
            most_held = most_held.max(held + most(tree, child));
            held += tree.nodes[child].update();
        }
        most_held.max(held + node.update())
    }
    if tree.is_top(last) { tree.nodes[last].update() } else { most(tree, last) }
}

/// Factors all nodes of a region; `updates` is a stack, at the bottom of which the update of the last is left.
fn region(
    tree: &Tree,
    nodes: std::ops::Range<usize>,
    repetition: usize,
    mut panels: &mut [f64],
    updates: &mut [f64],
    crew: Crew,
) -> Done {
    let (mut done, mut top) = ((0, 0), 0);
    for node in &tree.nodes[nodes] {
        if (crew.is_over)() {
            break;
        }
        let held: usize = node.children.iter().map(|&child| tree.nodes[child].update()).sum();
        let (below, own) = updates.split_at_mut(top);
        let mut rest = &below[top - held..];
        let children = node.children.iter().map(|&child| {
            let (update, others) = rest.split_at(tree.nodes[child].update());
            rest = others;
            (&tree.nodes[child], update)
        });
        let children: Vec<_> = children.collect();
        let panel = taken(&mut panels, node.panel());
        let (bytes, flop) = front(tree, node, repetition, panel, &mut own[..node.update()], &children, crew);
        done = (done.0 + bytes, done.1 + flop);
        if !node.children.is_empty() {
            updates.copy_within(top..top + node.update(), top - held);
            done.0 += 16 * node.update() as u64;
        }
        top = top - held + node.update();
    }
    done
}

/// Assembles and factors the front of a node.
fn front(
    tree: &Tree,
    node: &Node,
    repetition: usize,
    panel: &mut [f64],
    update: &mut [f64],
    children: &[(&Node, &[f64])],
    crew: Crew,
) -> Done {
    let (rows, pivots, height) = (node.rows(), node.pivots, node.boundary.len());
    panel.fill(0.0);
    update.fill(0.0);
    let row_in = |place: u32| match (place as usize).checked_sub(node.first) {
        Some(row) if row < pivots => row,
        _ => pivots + node.boundary.partition_point(|&other| other < place),
    };
    for (column, values) in panel.chunks_exact_mut(rows).enumerate() {
        let (diagonal, others) = row_of(tree, repetition, tree.points[node.first + column] as usize);
        values[column] += diagonal;
        let later = others.map(|(point, value)| (tree.places[point], value));
        later
            .filter(|(place, _)| *place as usize > node.first + column)
            .for_each(|(place, value)| values[row_in(place)] += value);
    }
    let (mut bytes, mut flop) = (8 * (panel.len() + update.len()) as u64, 0);
    for (child, values) in children {
        // Rows ascend in the child and here alike.
        let to: Vec<usize> = child.boundary.iter().map(|&place| row_in(place)).collect();
        for (column, values) in values.chunks_exact(to.len()).enumerate() {
            let at = to[column];
            let (target, above) = if at < pivots {
                (&mut panel[at * rows..][..rows], 0)
            } else {
                (&mut update[(at - pivots) * height..][..height], pivots)
            };
            values[column..].iter().zip(&to[column..]).for_each(|(value, row)| target[row - above] += value);
            let added = (to.len() - column) as u64;
            (bytes, flop) = (bytes + 24 * added, flop + added);
        }
    }
    let (more_bytes, more_flop) = factor(panel, rows, update, crew);
    (bytes + more_bytes, flop + more_flop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_that_there_is_is_taken() {
        for bytes in [1 << 20, 20 << 20] {
            let tree = Tree::largest(bytes / 8);
            let solver = Solver::new(&Setting::new(0, 1, 1), &tree).map(|s| 8 * (s.factor.len() + s.updates.len() + s.x.len()));
            let taken = solver.expect("a solver");
            assert!(taken <= bytes && taken > bytes / 10 * 8, "{taken} of {bytes}");
        }
    }

    #[test]
    fn a_wrong_value_is_told() {
        let (setting, tree) = (Setting::new(0, 2, 1), Tree::largest(100_000));
        let wrong = |spoil: fn(&mut [f64]), spoil_x: fn(&mut [f64])| {
            let mut solver = Solver::new(&setting, &tree).expect("a small system");
            solver.factorize(3, &|| false);
            spoil(&mut solver.factor);
            solver.solve(3, &|| false);
            spoil_x(&mut solver.x);
            wrong_rows(&tree, &solver.x, 3)
        };
        fn flip(value: &mut f64) {
            *value = f64::from_bits(value.to_bits() ^ 1 << 40);
        }
        assert_eq!(wrong(|_| (), |_| ()), 0);
        assert!(wrong(|factor| flip(&mut factor[0]), |_| ()) > 0);
        assert!(wrong(|factor| factor[10] = f64::NAN, |_| ()) > 0);
        assert!(wrong(|factor| flip(&mut factor[factor.len() - 1]), |_| ()) > 0);
        assert!(wrong(|_| (), |x| flip(&mut x[17])) > 0);
    }
}
