//! Three-dimensional gas dynamics on a regular periodic grid, by Godunov's method of first order with Rusanov's flux, as grid codes of
//! astrophysics (AstroPhi and others) do it with higher orders: density, three momenta and energy per cell.
//!
//! A time step is one pass from one copy of the grid to the other, by turns: it reads the five values of every cell and writes five. The
//! rows and planes beside the current row are read again within a pass, so about three planes are in use at a time. Intensity: 73 flop
//! for a face (along x and y each is done once, along z from both sides) and 35 for the sums are 327 flop per cell for 80 bytes: 4.1.
//! Eight cells along x are stored side by side, value by value, so that inner loops run over them. A flux is the same to the last bit
//! from both sides of its face: mass, momentum and energy are conserved but for rounding. Does not adapt the time step.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Done, Error, Setting};
use crate::timed_run::{Setup, digest};
use nearfar_core::random_numbers::{mix, unit};

/// Conserved values per cell: density, momenta along x, y and z, energy.
const VALUES: usize = 5;
/// Cells side by side.
const LANES: usize = 8;
/// Time steps of a repetition; even, so that the result is where the beginning was.
const STEPS: usize = 2;

/// Ratio of the specific heats.
const GAMMA: f64 = 1.4;
/// Time step by cell edge: |u| + c stays below 2, so that the sum over the three axes stays far below 1.
const COURANT: f64 = 0.05;

/// Operations for one face, and for the sums of one cell.
const FACE_FLOP: u64 = 73;
const SUM_FLOP: u64 = 35;

/// How far a value may be off from its definition, and the mean of a conserved value from that of the initial data.
const TOLERANCE: f64 = 1e-12;
/// Of so many rows one is computed again.
const SAMPLE: usize = 4;

/// The values of eight cells.
type Cells = [[f64; LANES]; VALUES];
const GROUP: usize = LANES * VALUES;

/// Groups of cells along x, rows along y, planes along z.
#[derive(Clone, Copy, Debug)]
struct Grid {
    groups: usize,
    rows: usize,
    planes: usize,
}

impl Grid {
    /// The largest of which two copies take at most `bytes` (and two groups, rows and planes at least), as near to a cube as can be.
    fn new(bytes: usize) -> Self {
        let groups = bytes / (2 * size_of::<Cells>());
        let along_x = (((groups * LANES) as f64).cbrt() as usize / LANES).max(2);
        let rows = (((groups / along_x) as f64).sqrt() as usize).max(2);
        Self { groups: along_x, rows, planes: (groups / along_x / rows).max(2) }
    }

    const fn row_values(self) -> usize {
        self.groups * GROUP
    }

    const fn values(self) -> usize {
        self.row_values() * self.rows * self.planes
    }

    const fn cells(self) -> usize {
        self.values() / VALUES
    }

    /// A row, whose place may be one beyond the edges.
    fn row(self, values: &[f64], y: usize, z: usize) -> &[Cells] {
        let number = z % self.planes * self.rows + y % self.rows;
        &cells(values)[number * self.groups..][..self.groups]
    }
}

/// Makes `setting.repetitions` times two time steps on two copies of a grid that take at most `setting.data_bytes`. An operation is one
/// floating-point operation; the traffic counted is five values read and five written per cell and step. Not verified where the time
/// limit cut a repetition off.
pub fn hydro(setting: &Setting) -> Result<Report, Error> {
    let grid = Grid::new(setting.data_bytes);
    let setup = Setup::begin(setting);
    let zeroed = || Buffer::<f64>::zeroed(&setting.placement, grid.values());
    let (mut even, mut odd) = (zeroed()?, zeroed()?);
    [&even, &odd].iter().for_each(|buffer| buffer.announce(Pattern::Sequential));
    thread_team::map(setting.split(&mut even, GROUP), |(first, part)| {
        cells_mut(part).iter_mut().zip(first / GROUP..).for_each(|(group, number)| *group = initial(number));
    });
    odd.fill(-1.0);

    // One member, who sends a crew over the grid for each step.
    let (ran, _) = setup.run(vec![(&mut even, &mut odd)], AfterLimit::End, |(even, odd), _, watch| {
        let done = (0..STEPS).map(|number| {
            let (from, to) = if number % 2 == 0 { (&*even, &mut *odd) } else { (&*odd, &mut *even) };
            step(setting, grid, from, to, &|| watch.is_over())
        });
        done.fold((0, 0), |(bytes, flop), (more_bytes, more_flop)| (bytes + more_bytes, flop + more_flop))
    });

    let (_, checksum) =
        ran.check(setting.split(&mut even, 1), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_values = setting.verify && ran.finished();
    let wrong = if verify_values { wrong_values(setting, grid, &odd, &mut even) } else { 0 };
    let verified = Verified::of(verify_values, wrong);
    let data_bytes = 2 * grid.values() * size_of::<f64>();
    Ok(Report { verified, flop_per_operation: 1.0, ..ran.report("hydro", "flop", data_bytes, (wrong, checksum)) })
}

/// What one repetition moves and computes; each plane has a row of faces along y more than rows.
pub fn traffic(setting: &Setting) -> Traffic {
    let grid = Grid::new(setting.data_bytes);
    let (steps, cells, row_cells) = (STEPS as f64, grid.cells() as f64, (grid.groups * LANES) as f64);
    let faces = 4.0 * cells + row_cells * grid.planes as f64;
    Traffic { bytes: steps * 80.0 * cells, flop: steps * (faces * FACE_FLOP as f64 + cells * SUM_FLOP as f64) }
}

fn cells(values: &[f64]) -> &[Cells] {
    values.as_chunks().0.as_chunks().0
}

fn cells_mut(values: &mut [f64]) -> &mut [Cells] {
    values.as_chunks_mut().0.as_chunks_mut().0
}

/// Random densities from 1 to 1.5, velocities from -0.2 to 0.2, and pressures from 0.9 to 1.1.
fn initial(number: usize) -> Cells {
    let mut cells = Cells::default();
    for lane in 0..LANES {
        let random = |kind: usize| unit(mix(((number * LANES + lane) * VALUES + kind) as u64));
        let (density, pressure) = (1.0 + 0.5 * random(0), 0.9 + 0.2 * random(4));
        let [u, v, w] = [1, 2, 3].map(|kind| 0.4 * random(kind) - 0.2);
        let energy = pressure / (GAMMA - 1.0) + 0.5 * density * (u * u + v * v + w * w);
        let values = [density, density * u, density * v, density * w, energy];
        cells.iter_mut().zip(values).for_each(|(lanes, value)| lanes[lane] = value);
    }
    cells
}

/// One time step, or its beginning where it `is_over`.
fn step(setting: &Setting, grid: Grid, from: &[f64], to: &mut [f64], is_over: &(impl Fn() -> bool + Sync)) -> Done {
    let results = thread_team::map(setting.split(to, grid.rows * grid.row_values()), |(first, part)| {
        let (mut rows_done, mut rows_of_faces) = (0, 0);
        let (mut across_x, mut across_y) = (vec![Cells::default(); grid.groups], vec![Cells::default(); grid.groups]);
        for (number, out) in part.chunks_exact_mut(grid.row_values()).enumerate() {
            if is_over() {
                break;
            }
            let (y, z) = (number % grid.rows, first / grid.row_values() / grid.rows + number / grid.rows);
            let row = grid.row(from, y, z);
            if y == 0 {
                let before = grid.row(from, grid.rows - 1, z);
                across_y
                    .iter_mut()
                    .zip(before.iter().zip(row))
                    .for_each(|(flux, (before, own))| *flux = flux_through::<1>(before, own));
                rows_of_faces += 1;
            }
            for (group, flux) in across_x.iter_mut().enumerate() {
                *flux = flux_through::<0>(&shifted(&row[(group + grid.groups - 1) % grid.groups], &row[group]), &row[group]);
            }
            let (next, below, above) =
                (grid.row(from, y + 1, z), grid.row(from, y, z + grid.planes - 1), grid.row(from, y, z + 1));
            for (group, out) in cells_mut(out).iter_mut().enumerate() {
                let own = &row[group];
                let (left, right) = (&across_x[group], unshifted(&across_x[group], &across_x[(group + 1) % grid.groups]));
                let front = std::mem::replace(&mut across_y[group], flux_through::<1>(own, &next[group]));
                let (low, high) = (flux_through::<2>(&below[group], own), flux_through::<2>(own, &above[group]));
                for kind in 0..VALUES {
                    let back = &across_y[group][kind];
                    for lane in 0..LANES {
                        let (x, y) = (right[kind][lane] - left[kind][lane], back[lane] - front[kind][lane]);
                        out[kind][lane] = own[kind][lane] - COURANT * (x + y + (high[kind][lane] - low[kind][lane]));
                    }
                }
            }
            rows_done += 1;
            rows_of_faces += 4;
        }
        (rows_done, rows_of_faces)
    });
    let (rows, faces) = results.into_iter().fold((0, 0), |sum, done: (u64, u64)| (sum.0 + done.0, sum.1 + done.1));
    let row_cells = (grid.groups * LANES) as u64;
    (rows * row_cells * 80, row_cells * (faces * FACE_FLOP + rows * SUM_FLOP))
}

/// The cells one before `own`, of which the first is the last of `before`.
fn shifted(before: &Cells, own: &Cells) -> Cells {
    std::array::from_fn(|kind| std::array::from_fn(|lane| if lane == 0 { before[kind][LANES - 1] } else { own[kind][lane - 1] }))
}

/// The cells one after `own`, of which the last is the first of `after`.
fn unshifted(own: &Cells, after: &Cells) -> Cells {
    std::array::from_fn(|kind| std::array::from_fn(|lane| if lane + 1 == LANES { after[kind][0] } else { own[kind][lane + 1] }))
}

/// Rusanov's flux through the faces between eight pairs of cells, along an axis.
#[inline]
fn flux_through<const AXIS: usize>(left: &Cells, right: &Cells) -> Cells {
    // (velocity, pressure, fastest wave) of a cell: 15 operations.
    let state = |cells: &Cells, lane: usize| {
        let [density, x, y, z, energy] = [0, 1, 2, 3, 4].map(|kind: usize| cells[kind][lane]);
        let inverse = 1.0 / density;
        let velocity = cells[AXIS + 1][lane] * inverse;
        let pressure = (GAMMA - 1.0) * (energy - 0.5 * (x * x + y * y + z * z) * inverse);
        (velocity, pressure, velocity.abs() + (GAMMA * pressure * inverse).sqrt())
    };
    let mut flux = Cells::default();
    for lane in 0..LANES {
        let ((u, p, fast), (v, q, faster)) = (state(left, lane), state(right, lane));
        let fastest = if fast > faster { fast } else { faster };
        for kind in 0..VALUES {
            let (a, b) = (left[kind][lane], right[kind][lane]);
            flux[kind][lane] = 0.5 * (a * u + b * v - fastest * (b - a));
        }
        flux[AXIS + 1][lane] += 0.5 * (p + q);
        flux[4][lane] += 0.5 * (p * u + q * v);
    }
    flux
}

/// Totals that are not those of the initial data, and values of every fourth row that are not what the last step (from `odd` to `even`)
/// must give, by the formulas of the method. Written so that a NaN is wrong.
fn wrong_values(setting: &Setting, grid: Grid, odd: &[f64], even: &mut [f64]) -> u64 {
    let parts = thread_team::map(setting.split(even, grid.row_values()), |(first, part)| {
        let (mut wrong, mut sums) = (0, Vec::new());
        for (row, values) in (first / grid.row_values()..).zip(part.chunks_exact(grid.row_values())) {
            if row % SAMPLE == 0 {
                for (x, z, y) in (0..grid.groups * LANES).map(|x| (x, row / grid.rows, row % grid.rows)) {
                    let expected = by_definition(grid, odd, [x, y, z]);
                    let got = cell(cells(values), x);
                    let right = got.iter().zip(expected).filter(|(got, expected)| (*got - expected).abs() <= TOLERANCE);
                    wrong += (VALUES - right.count()) as u64;
                }
            }
            let mut sum = [0.0; VALUES];
            for (number, group) in (row * grid.groups..).zip(cells(values)) {
                for (sum, (now, at_first)) in sum.iter_mut().zip(group.iter().zip(initial(number))) {
                    *sum += now.iter().zip(at_first).map(|(now, at_first)| now - at_first).sum::<f64>();
                }
            }
            sums.push(sum);
        }
        (wrong, sums)
    });
    let changed = |kind: usize| parts.iter().flat_map(|(_, sums)| sums).map(|sum| sum[kind]).sum::<f64>();
    let kept = (0..VALUES).filter(|&kind| changed(kind).abs() <= TOLERANCE * grid.cells() as f64);
    parts.iter().map(|(wrong, _)| wrong).sum::<u64>() + (VALUES - kept.count()) as u64
}

fn cell(row: &[Cells], x: usize) -> [f64; VALUES] {
    row[x / LANES].map(|lanes| lanes[x % LANES])
}

/// The values of one cell after a step from `from`.
fn by_definition(grid: Grid, from: &[f64], at: [usize; 3]) -> [f64; VALUES] {
    let edges = [grid.groups * LANES, grid.rows, grid.planes];
    let own = cell(grid.row(from, at[1], at[2]), at[0]);
    let mut after = own;
    for axis in 0..3 {
        let beside = |distance: usize| {
            let mut place = at;
            place[axis] = (place[axis] + distance) % edges[axis];
            cell(grid.row(from, place[1], place[2]), place[0])
        };
        // (flux of the gas itself, fastest wave).
        let state = |cell: [f64; VALUES]| {
            let velocity = cell[axis + 1] / cell[0];
            let square: f64 = cell[1..4].iter().map(|momentum| momentum * momentum).sum();
            let pressure = (GAMMA - 1.0) * (cell[4] - square / cell[0] / 2.0);
            let mut flux = cell.map(|value| value * velocity);
            flux[axis + 1] += pressure;
            flux[4] += pressure * velocity;
            (flux, velocity.abs() + (GAMMA * pressure / cell[0]).sqrt())
        };
        let through = |left: [f64; VALUES], right: [f64; VALUES]| {
            let ((f, fast), (g, faster)) = (state(left), state(right));
            std::array::from_fn(|kind| (f[kind] + g[kind] - fast.max(faster) * (right[kind] - left[kind])) / 2.0)
        };
        let (into, out): ([f64; VALUES], [f64; VALUES]) = (through(beside(edges[axis] - 1), own), through(own, beside(1)));
        (0..VALUES).for_each(|kind| after[kind] += COURANT * (into[kind] - out[kind]));
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_told() {
        let (setting, grid) = (Setting::new(0, 2, 1), Grid { groups: 2, rows: 5, planes: 6 });
        let wrong = |between: fn(&mut [f64]), after: fn(&mut [f64])| {
            let (mut even, mut odd) = (vec![0.0; grid.values()], vec![0.0; grid.values()]);
            cells_mut(&mut even).iter_mut().enumerate().for_each(|(number, group)| *group = initial(number));
            step(&setting, grid, &even, &mut odd, &|| false);
            between(&mut odd);
            step(&setting, grid, &odd, &mut even, &|| false);
            after(&mut even);
            wrong_values(&setting, grid, &odd, &mut even)
        };
        fn flip(value: &mut f64) {
            *value = f64::from_bits(value.to_bits() ^ 1 << 40);
        }
        assert_eq!(wrong(|_| (), |_| ()), 0);
        assert!(wrong(|odd| flip(&mut odd[777]), |_| ()) > 0);
        assert!(wrong(|_| (), |even| flip(&mut even[3])) > 1);
        assert!(wrong(|_| (), |even| flip(&mut even[100])) > 0);
        assert!(wrong(|_| (), |even| even[777] = f64::NAN) > 0);
    }
}
