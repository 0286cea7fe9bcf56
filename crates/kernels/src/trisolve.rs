//! Forward and backward substitution with a sparse triangular factor: the step of a preconditioned solver that cannot be split, a walk
//! along the matrix and back again whose vector is visited out of order.
//!
//! The factor is stored by rows (CSR) and has the lower half of the 7-point pattern of a 3-D grid, the diagonal, and a few more
//! entries within a plane's distance, as incomplete factors have. The backward solve is with its transpose, from the same arrays. A
//! solve is sequential: each thread has a system of its own. Right-hand sides change with every repetition.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Checked, Setup, digest};
use nearfar_core::random_numbers::{below, mix, unit};

/// Rows between two looks at the clock: some 10 KiB.
const BATCH: usize = 64;

/// Entries of a row beside those of the grid; some may fall together.
const FILL: usize = 8;

/// Entries of a row at most: three neighbours, the fill and the diagonal, which stands last.
const ENTRIES: usize = 3 + FILL + 1;

/// Bytes of a row: where it starts, its columns and values, the right-hand side and the solution.
const ROW_BYTES: usize = 3 * 8 + ENTRIES * (size_of::<u32>() + size_of::<f64>());

struct Matrix {
    seed: u64,
    /// Points per edge of the grid, whose last plane may be unfinished.
    edge: usize,
    /// Number of the first entry of each row, and of the end.
    starts: Buffer<u64>,
    /// Column numbers of 32 bits, two to a word, low half first.
    columns: Buffer<u64>,
    values: Buffer<f64>,
    rhs: Buffer<f64>,
}

struct System {
    matrix: Matrix,
    x: Buffer<f64>,
    /// Rows that the last repetition solved, forward and then backward.
    done: usize,
}

/// Solves `setting.repetitions` times, in each thread a system of its share of `setting.data_bytes`. An operation is one row, which a
/// whole repetition visits twice: forward and backward. The checksum holds for one number of threads only: it is that of other systems
/// for another.
pub fn trisolve(setting: &Setting) -> Result<Report, Error> {
    let threads = setting.threads.max(1);
    let rows = ((setting.data_bytes / threads).saturating_sub(size_of::<u64>()) / ROW_BYTES).clamp(1, u32::MAX as usize);
    let setup = Setup::begin(setting);
    let systems: Vec<System> = (0..threads as u64).map(|seed| System::zeroed(setting, seed, rows)).collect::<Result<_, _>>()?;
    let systems = thread_team::map(systems, |mut system| {
        system.matrix.fill();
        system
    });
    let data_bytes = systems.iter().map(System::bytes).sum();

    let (ran, systems) = setup.run(systems, AfterLimit::End, |system, number, watch| {
        let System { matrix, x, done } = system;
        *done = matrix.solve(x, number, 2 * rows, || watch.is_over());
        (matrix.traffic(*done), *done as u64)
    });

    let last = ran.last();
    let checked = ran.check(systems, |system| check(&system, last));
    Ok(ran.report("trisolve", "rows", data_bytes, checked))
}

const fn column(columns: &[u64], entry: usize) -> usize {
    (columns[entry / 2] >> (entry % 2 * 32)) as u32 as usize
}

impl Matrix {
    fn rows(&self) -> usize {
        self.rhs.len()
    }

    /// The columns of a row, ascending.
    fn pattern(&self, row: usize, columns: &mut Vec<usize>) {
        let (edge, plane) = (self.edge, self.edge * self.edge);
        columns.clear();
        let neighbours = [(!row.is_multiple_of(edge), 1), (!(row / edge).is_multiple_of(edge), edge), (row >= plane, plane)];
        columns.extend(neighbours.iter().filter(|(inside, _)| *inside).map(|(_, distance)| row - distance));
        if row > 0 {
            let random = |number: usize| mix(!(self.seed << 56 | (row * FILL + number) as u64));
            columns.extend((0..FILL).map(|number| row - 1 - below(random(number), plane.min(row))));
        }
        columns.sort_unstable();
        columns.dedup();
        columns.push(row);
    }

    /// Off the diagonal so small that no solution grows.
    fn value_at(&self, entry: usize, diagonal: bool) -> f64 {
        let fraction = unit(mix(self.seed << 56 | entry as u64));
        if diagonal { 1.0 + fraction } else { -fraction / ENTRIES as f64 }
    }

    fn rhs_at(&self, row: usize) -> f64 {
        1.0 + unit(mix(self.seed << 56 | 1 << 55 | row as u64))
    }

    fn fill(&mut self) {
        let (mut pattern, mut entry) = (Vec::with_capacity(ENTRIES), 0);
        for row in 0..self.rows() {
            self.pattern(row, &mut pattern);
            self.rhs[row] = self.rhs_at(row);
            for &column in &pattern {
                self.columns[entry / 2] |= (column as u64) << (entry % 2 * 32);
                self.values[entry] = self.value_at(entry, column == row);
                entry += 1;
            }
            self.starts[row + 1] = entry as u64;
        }
    }

    /// Rows that are not as [`Self::fill`] made them.
    fn wrong_rows(&self) -> u64 {
        let (mut pattern, mut first) = (Vec::with_capacity(ENTRIES), 0);
        let mut wrong = u64::from(self.starts[0] != 0);
        for row in 0..self.rows() {
            self.pattern(row, &mut pattern);
            let is_right = |(offset, &expected): (usize, &usize)| {
                let entry = first + offset;
                column(&self.columns, entry) == expected && self.values[entry] == self.value_at(entry, expected == row)
            };
            let entries_right = pattern.iter().enumerate().all(is_right);
            first += pattern.len();
            let row_right = self.rhs[row] == self.rhs_at(row) && self.starts[row + 1] == first as u64;
            wrong += u64::from(!entries_right || !row_right);
        }
        wrong
    }

    /// The first `most` rows of a forward and then a backward solve, or fewer once `is_over`; returns how many.
    fn solve(&self, x: &mut [f64], repetition: usize, most: usize, is_over: impl Fn() -> bool) -> usize {
        let rows = self.rows();
        let (starts, columns, values, rhs) = (&*self.starts, &*self.columns, &*self.values, &*self.rhs);
        for step in 0..most {
            let row = if step < rows { step } else { 2 * rows - 1 - step };
            let (first, diagonal) = (starts[row] as usize, starts[row + 1] as usize - 1);
            if step < rows {
                let mut sum = rhs[row] + repetition as f64;
                for entry in first..diagonal {
                    sum -= values[entry] * x[column(columns, entry)];
                }
                x[row] = sum / values[diagonal];
            } else {
                let solved = x[row] / values[diagonal];
                x[row] = solved;
                for entry in first..diagonal {
                    x[column(columns, entry)] -= values[entry] * solved;
                }
            }
            if step % BATCH == BATCH - 1 && is_over() {
                return step + 1;
            }
        }
        most
    }

    /// Bytes read and written by the first `done` rows of a solve.
    fn traffic(&self, done: usize) -> u64 {
        let rows = self.rows();
        let forward = done.min(rows);
        let backward = done - forward;
        let (below, above) = (self.starts[forward], self.starts[rows] - self.starts[rows - backward]);
        below * 20 + forward as u64 * 24 + above * 28 + backward as u64 * 16
    }
}

impl System {
    fn zeroed(setting: &Setting, seed: u64, rows: usize) -> Result<Self, Error> {
        let place = &setting.placement;
        let matrix = Matrix {
            seed,
            edge: ((rows as f64).cbrt() as usize).max(1),
            starts: Buffer::zeroed(place, rows + 1)?,
            columns: Buffer::zeroed(place, rows * ENTRIES / 2)?,
            values: Buffer::zeroed(place, rows * ENTRIES)?,
            rhs: Buffer::zeroed(place, rows)?,
        };
        let x = Buffer::zeroed(place, rows)?;
        // Not of x, which is visited out of order.
        [&matrix.starts, &matrix.columns].iter().for_each(|numbers| numbers.announce(Pattern::Sequential));
        [&matrix.values, &matrix.rhs].iter().for_each(|numbers| numbers.announce(Pattern::Sequential));
        Ok(Self { matrix, x, done: 0 })
    }

    fn bytes(&self) -> usize {
        let Matrix { starts, columns, values, rhs, .. } = &self.matrix;
        8 * (starts.len() + columns.len() + values.len() + rhs.len() + self.x.len())
    }
}

/// (errors, digest of the solution) of one system, by an exact repetition of what was done last: a solve begins with the right-hand
/// side, so that of what came before only one can show.
fn check(system: &System, last: usize) -> Checked {
    let System { matrix, x, done } = system;
    let rows = matrix.rows();
    let mut wrong = matrix.wrong_rows();
    if wrong == 0 {
        let mut expected = vec![0.0; rows];
        if last > 0 {
            matrix.solve(&mut expected, last - 1, 2 * rows, || false);
        }
        matrix.solve(&mut expected, last, *done, || false);
        wrong = x.iter().zip(&expected).filter(|(x, expected)| x.to_bits() != expected.to_bits()).count() as u64;
    }
    (wrong, digest(matrix.seed as usize * rows, x.iter().map(|value| value.to_bits())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn solved(rows: usize, last: usize) -> System {
        let mut system = System::zeroed(&Setting::new(0, 1, 1), 3, rows).expect("a small system");
        system.matrix.fill();
        system.done = system.matrix.solve(&mut system.x, last, 2 * rows, || false);
        system
    }

    #[test]
    fn systems_take_the_data_that_there_is_and_end_after_a_batch() {
        for threads in 1..4 {
            let limit = Some(Duration::ZERO);
            let cut = trisolve(&Setting { limit, ..Setting::new(3 << 20, threads, 1) }).expect("trisolve");
            assert!(cut.data_bytes <= 3 << 20 && cut.data_bytes > (3 << 20) - 1000);
            assert_eq!(cut.repetitions[0].operations, (threads * BATCH) as u64);
        }
    }

    #[test]
    fn a_solve_that_is_cut_off_in_either_half_is_verified() {
        for done in [100, 999, 1000, 1001, 1900] {
            let mut system = solved(1000, 6);
            system.done = system.matrix.solve(&mut system.x, 7, done, || false);
            assert_eq!((system.done, check(&system, 7).0), (done, 0));
        }
    }

    #[test]
    fn the_solution_solves_the_system() {
        let System { matrix, x, .. } = solved(1000, 2);
        let entries = |row: usize| matrix.starts[row] as usize..matrix.starts[row + 1] as usize;
        let mut upper = vec![0.0; 1000];
        for row in 0..1000 {
            entries(row).for_each(|entry| upper[column(&matrix.columns, entry)] += matrix.values[entry] * x[row]);
        }
        for row in 0..1000 {
            let lower: f64 = entries(row).map(|entry| matrix.values[entry] * upper[column(&matrix.columns, entry)]).sum();
            assert!((lower - matrix.rhs[row] - 2.0).abs() < 1e-9, "{row}");
        }
        assert!(entries(999).len() > ENTRIES - 3 && column(&matrix.columns, matrix.starts[1000] as usize - 1) == 999);
    }

    #[test]
    fn a_wrong_byte_is_told() {
        let wrong = |spoil: fn(&mut System)| {
            let mut system = solved(1000, 2);
            spoil(&mut system);
            check(&system, 2).0
        };
        fn flip(value: &mut f64) {
            *value = f64::from_bits(value.to_bits() ^ 1);
        }
        assert_eq!(wrong(|_| ()), 0);
        assert_eq!(wrong(|system| flip(&mut system.x[500])), 1);
        assert_eq!(wrong(|system| flip(&mut system.matrix.values[500])), 1);
        assert_eq!(wrong(|system| system.matrix.columns[500] ^= 1 << 32), 1);
    }
}
