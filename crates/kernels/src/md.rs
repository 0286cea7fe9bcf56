//! Molecular dynamics of atoms with Lennard-Jones forces, as LAMMPS runs its melt benchmark: velocity Verlet, atoms sorted by bins, and
//! a Verlet list of neighbours stored in memory, which is most of the data.
//!
//! A repetition sorts the atoms, builds the full list (each pair from both sides) and makes six time steps. A step is two passes: one
//! over places, velocities and forces in order; one that walks along the list and reads places of neighbours, near in space and, because
//! atoms are sorted, mostly near in memory. Intensity of a step: 78 listed neighbours, 54 of them within the cutoff, at 8 and 13 more
//! flop, and 18 per atom are some 1340 flop, for 4 x 78 + 220 bytes per atom: 2.5. Forces are summed in the order of the list: results
//! are the same to the last bit whichever thread does an atom. Does not use Newton's third law, as threaded codes do not.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::md_box::{PeriodicBox, Vector};
use crate::md_pairs::{FORCE_FLOP, PAIR_FLOP, distance, first_energy, nearest, square, sum_forces, sum_over_bins};
use crate::report::{Report, Traffic, Verified};
use crate::thread_team::{self, AfterLimit, Error, Setting};
use crate::timed_run::{Setup, digest};

/// How far away an atom may be to be listed.
const REACH: f64 = 2.8;
/// Steps of a repetition, and their length: so short that nothing moves by half the difference of these distances between two lists.
const STEPS: usize = 6;
const TIME: f64 = 0.002;
/// Places in the list per atom: the lattice has 78 neighbours within reach, the liquid some 77.
const LISTED: usize = 84;
/// Bytes of an atom: four vectors, the list, its length, the order, and its part of where a bin starts.
const ATOM_BYTES: usize = 4 * size_of::<Vector>() + (LISTED + 2) * size_of::<u32>() + 1;
/// Atoms between two looks at the clock.
const BATCH: usize = 16;

/// Operations of the motion of an atom in one step.
const MOTION_FLOP: u64 = 18;

/// How far forces (relative to their size and 1), the mean momentum and the mean energy may be off.
const FORCE_TOLERANCE: f64 = 1e-9;
const MOMENTUM_TOLERANCE: f64 = 1e-12;
const ENERGY_TOLERANCE: f64 = 2e-3;

/// The memory of all atoms.
struct Atoms {
    places: Buffer<f64>,
    velocities: Buffer<f64>,
    forces: Buffer<f64>,
    /// Where places are put when atoms are sorted; velocities go where the forces were, which are made anew.
    spare: Buffer<f64>,
    order: Buffer<u32>,
    bin_starts: Buffer<u32>,
    /// Neighbours of the atoms of each thread, one atom after another, and how many each has.
    list: Buffer<u32>,
    counts: Buffer<u32>,
}

/// What a repetition did.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    bytes: u64,
    atom_steps: u64,
    flop: u64,
    /// Atoms whose neighbours did not find room in the list.
    overflows: u64,
}

impl Work {
    fn add(self, more: Self) -> Self {
        Self {
            bytes: self.bytes + more.bytes,
            atom_steps: self.atom_steps + more.atom_steps,
            flop: self.flop + more.flop,
            overflows: self.overflows + more.overflows,
        }
    }
}

/// Runs `setting.repetitions` times one sorting and six time steps of atoms whose data takes at most `setting.data_bytes`. An operation
/// is one step of one atom; its floating-point operations are those that the last repetition counted. The traffic counted: each array
/// once for each pass that reads or writes it, and of the list what is in use; places of neighbours count as one pass over all places.
/// Not verified where the time limit cut a repetition off.
pub fn md(setting: &Setting) -> Result<Report, Error> {
    let the_box = PeriodicBox::new(setting.data_bytes / ATOM_BYTES, REACH);
    let setup = Setup::begin(setting);
    let mut atoms = Atoms::new(setting, &the_box)?;
    let data_bytes = atoms.bytes();
    let (mut last, mut overflows) = (Work::default(), 0);

    // One member, who sends a crew over the atoms for each pass.
    let (ran, _) =
        setup.run(vec![(&mut atoms, &mut last, &mut overflows)], AfterLimit::End, |(atoms, last, overflows), _, watch| {
            **last = atoms.repetition(setting, &the_box, &|| watch.is_over());
            **overflows += last.overflows;
            (last.bytes, last.atom_steps)
        });

    let (_, checksum) = ran
        .check(setting.split(&mut atoms.places, 1), |(first, part)| (0, digest(first, part.iter().map(|value| value.to_bits()))));
    let verify_values = setting.verify && ran.finished();
    let wrong = overflows + if verify_values { atoms.wrong_values(setting, &the_box) } else { 0 };
    let verified = Verified::of(verify_values || wrong > 0, wrong);
    let flop_per_operation = last.flop as f64 / last.atom_steps.max(1) as f64;
    Ok(Report { verified, flop_per_operation, ..ran.report("md", "atom steps", data_bytes, (wrong, checksum)) })
}

/// What one repetition moves and computes where atoms have the neighbours that they have in the lattice; within some 3 %.
pub fn traffic(setting: &Setting) -> Traffic {
    let atoms = PeriodicBox::new(setting.data_bytes / ATOM_BYTES, REACH).atoms() as f64;
    let (steps, listed, within) = (STEPS as f64, 78.0, 54.0);
    let sorting = 48.0 + 4.0 + 100.0 + 24.0 + 4.0 + 4.0 * listed;
    let flop = PAIR_FLOP as f64 * listed + FORCE_FLOP as f64 * within + MOTION_FLOP as f64;
    Traffic { bytes: atoms * (sorting + steps * (120.0 + 100.0 + 4.0 * listed)), flop: atoms * steps * flop }
}

fn vectors(values: &[f64]) -> &[Vector] {
    values.as_chunks().0
}

fn vectors_mut(values: &mut [f64]) -> &mut [Vector] {
    values.as_chunks_mut().0
}

impl Atoms {
    fn new(setting: &Setting, the_box: &PeriodicBox) -> Result<Self, Error> {
        let (place, count) = (&setting.placement, the_box.atoms());
        let zeroed = || Buffer::<f64>::zeroed(place, 3 * count);
        let mut atoms = Self {
            places: zeroed()?,
            velocities: zeroed()?,
            forces: zeroed()?,
            spare: zeroed()?,
            order: Buffer::zeroed(place, count)?,
            bin_starts: Buffer::zeroed(place, the_box.bin_count() + 1)?,
            list: Buffer::zeroed(place, LISTED * count)?,
            counts: Buffer::zeroed(place, count)?,
        };
        atoms.list.announce(Pattern::Sequential);
        let mut mean = [0.0; 3];
        (0..count).for_each(|atom| {
            mean.iter_mut().zip(PeriodicBox::velocity_at(atom)).for_each(|(mean, value)| *mean += value / count as f64);
        });
        vectors_mut(&mut atoms.places).iter_mut().enumerate().for_each(|(atom, place)| *place = the_box.place_at(atom));
        for (atom, velocity) in vectors_mut(&mut atoms.velocities).iter_mut().enumerate() {
            let any = PeriodicBox::velocity_at(atom);
            *velocity = std::array::from_fn(|axis| any[axis] - mean[axis]);
        }
        atoms.list.fill(u32::MAX);
        atoms.build(setting, the_box, &|| false);
        atoms.force_and_kick(setting, the_box, 0.0, &|| false);
        Ok(atoms)
    }

    fn bytes(&self) -> usize {
        8 * 4 * self.places.len() + 4 * (self.order.len() + self.bin_starts.len() + self.list.len() + self.counts.len())
    }

    /// The atoms are sorted and the list is built in the first step, after the atoms have moved.
    fn repetition(&mut self, setting: &Setting, the_box: &PeriodicBox, is_over: &(impl Fn() -> bool + Sync)) -> Work {
        let mut work = Work::default();
        for step in 0..STEPS {
            work = work.add(self.kick_and_drift(setting, is_over));
            if step == 0 && !is_over() {
                work = work.add(self.build(setting, the_box, is_over));
            }
            if is_over() {
                break;
            }
            work = work.add(self.force_and_kick(setting, the_box, 0.5 * TIME, is_over));
        }
        work
    }

    /// Velocities change by half a step of the forces, and places by a whole step of the velocities.
    fn kick_and_drift(&mut self, setting: &Setting, is_over: &(impl Fn() -> bool + Sync)) -> Work {
        let parts = setting.split(&mut self.places, 3).into_iter().zip(setting.split(&mut self.velocities, 3)).collect();
        let forces = &*self.forces;
        let done = thread_team::map(parts, |((first, places), (_, velocities))| {
            let (mut done, forces) = (0, &forces[first..first + places.len()]);
            let batches = places.chunks_mut(3 * BATCH).zip(velocities.chunks_mut(3 * BATCH)).zip(forces.chunks(3 * BATCH));
            for ((places, velocities), forces) in batches {
                if is_over() {
                    break;
                }
                for ((place, velocity), force) in places.iter_mut().zip(velocities).zip(forces) {
                    *velocity += 0.5 * TIME * force;
                    *place += TIME * *velocity;
                }
                done += places.len() as u64 / 3;
            }
            done
        });
        let done: u64 = done.into_iter().sum();
        Work { bytes: 120 * done, flop: 12 * done, ..Work::default() }
    }

    /// Sorts the atoms by bin and lists the neighbours of each.
    fn build(&mut self, setting: &Setting, the_box: &PeriodicBox, is_over: &(impl Fn() -> bool + Sync)) -> Work {
        let Self { places, velocities, forces, spare, order, bin_starts, list, counts } = self;
        the_box.sort(vectors(places), order, bin_starts, is_over);
        if is_over() {
            return Work::default();
        }
        let parts = setting.split(spare, 3).into_iter().zip(setting.split(forces, 3)).collect();
        let (old_places, old_velocities, of_order) = (vectors(places), vectors(velocities), &**order);
        let moved = thread_team::map(parts, |((first, places), (_, velocities))| {
            let (mut moved, order) = (0, &of_order[first / 3..][..places.len() / 3]);
            for ((places, velocities), order) in
                places.chunks_mut(3 * BATCH).zip(velocities.chunks_mut(3 * BATCH)).zip(order.chunks(BATCH))
            {
                if is_over() {
                    break;
                }
                for ((place, velocity), &from) in vectors_mut(places).iter_mut().zip(vectors_mut(velocities)).zip(order) {
                    (*place, *velocity) = (the_box.wrapped(old_places[from as usize]), old_velocities[from as usize]);
                }
                moved += order.len() as u64;
            }
            moved
        });
        std::mem::swap(places, spare);
        std::mem::swap(velocities, forces);
        let moved = moved.into_iter().sum::<u64>();
        let sorted = Work { bytes: (48 + 4 + 100) * moved, ..Work::default() };
        if is_over() {
            return sorted;
        }
        let (places, starts) = (vectors(places), &**bin_starts);
        let parts = setting.split(list, LISTED).into_iter().zip(setting.split(counts, 1)).collect();
        let listed = thread_team::map(parts, |((_, list), (first, counts))| {
            let (mut used, mut work) = (0, Work::default());
            for (atom, count) in (first..).zip(counts) {
                if atom % BATCH == 0 && is_over() {
                    break;
                }
                let start = used;
                for (bin, shift) in the_box.around(the_box.bin_of(places[atom])) {
                    let seen_from = std::array::from_fn(|axis| places[atom][axis] - shift[axis]);
                    let others = starts[bin] as usize..starts[bin + 1] as usize;
                    for (other, &place) in others.clone().zip(&places[others]) {
                        if distance(seen_from, place) < REACH * REACH && other != atom {
                            match list.get_mut(used) {
                                Some(place) => *place = other as u32,
                                None => work.overflows += 1,
                            }
                            used = (used + 1).min(list.len());
                        }
                    }
                }
                *count = (used - start) as u32;
                work.bytes += 24 + 4 + 4 * u64::from(*count);
            }
            work
        });
        listed.into_iter().fold(sorted, Work::add)
    }

    /// New forces, which change the velocities by `time`.
    fn force_and_kick(
        &mut self,
        setting: &Setting,
        the_box: &PeriodicBox,
        time: f64,
        is_over: &(impl Fn() -> bool + Sync),
    ) -> Work {
        let Self { places, velocities, forces, list, counts, .. } = self;
        let (places, counts) = (vectors(places), &**counts);
        let lists = setting.split(list, LISTED);
        let parts = setting.split(forces, 3).into_iter().zip(setting.split(velocities, 3)).zip(lists).collect();
        let works = thread_team::map(parts, |(((first, forces), (_, velocities)), (_, list))| {
            let (mut work, mut rest) = (Work::default(), &*list);
            for (atom, (force, velocity)) in (first / 3..).zip(vectors_mut(forces).iter_mut().zip(vectors_mut(velocities))) {
                if atom % BATCH == 0 && is_over() {
                    break;
                }
                let (own, others) = rest.split_at(counts[atom] as usize);
                let inside = the_box.is_inside(places[atom], REACH + 0.3);
                let within = if inside {
                    sum_forces(places, atom, own, force, |d| d)
                } else {
                    sum_forces(places, atom, own, force, |d| nearest(d, the_box.edges))
                };
                velocity.iter_mut().zip(&*force).for_each(|(velocity, force)| *velocity += time * force);
                rest = others;
                let listed = own.len() as u64;
                work = work.add(Work {
                    bytes: 100 + 4 * listed,
                    atom_steps: 1,
                    flop: PAIR_FLOP * listed + FORCE_FLOP * within + MOTION_FLOP - 12,
                    overflows: 0,
                });
            }
            work
        });
        works.into_iter().fold(Work::default(), Work::add)
    }

    /// Forces that are not the sums over all atoms of the bins around (with no list), atoms that the list forgot among them, and a total
    /// momentum or energy that has not been kept. Written so that a NaN is wrong.
    fn wrong_values(&mut self, setting: &Setting, the_box: &PeriodicBox) -> u64 {
        let places: &[Vector] = vectors(&self.places);
        let (mut order, mut starts) = (vec![0; places.len()], vec![0; the_box.bin_count() + 1]);
        the_box.sort(places, &mut order, &mut starts, || false);
        let (order, starts, velocities) = (&*order, &*starts, vectors(&self.velocities));
        let results = thread_team::map(setting.split(&mut self.forces, 3), |(first, forces)| {
            let (mut wrong, mut sums) = (0, Vec::with_capacity(forces.len() / 3));
            for (atom, got) in (first / 3..).zip(vectors(forces)) {
                let (expected, potential) = sum_over_bins(the_box, places, (order, starts), atom);
                let right = |axis: usize| (got[axis] - expected[axis]).abs() <= FORCE_TOLERANCE * (1.0 + expected[axis].abs());
                wrong += (0..3).filter(|&axis| !right(axis)).count() as u64;
                sums.push((velocities[atom], potential + 0.5 * square(velocities[atom])));
            }
            (wrong, sums)
        });
        let count = places.len() as f64;
        let sums = || results.iter().flat_map(|(_, sums)| sums);
        let total = |axis: usize| sums().map(|(velocity, _)| velocity[axis]).sum::<f64>();
        let kept = (0..3).filter(|&axis| total(axis).abs() <= MOMENTUM_TOLERANCE * count);
        let mean = sums().map(|(_, energy)| energy).sum::<f64>() / count;
        let energy_kept = (mean - first_energy(the_box)).abs() <= ENERGY_TOLERANCE;
        results.iter().map(|(wrong, _)| wrong).sum::<u64>() + (3 - kept.count() as u64) + u64::from(!energy_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(spoil: impl Fn(&mut Atoms)) -> u64 {
        let (setting, the_box) = (Setting::new(0, 2, 1), PeriodicBox::new(0, REACH));
        let mut atoms = Atoms::new(&setting, &the_box).expect("few atoms");
        for _ in 0..3 {
            assert_eq!(atoms.repetition(&setting, &the_box, &|| false).overflows, 0);
        }
        spoil(&mut atoms);
        atoms.wrong_values(&setting, &the_box)
    }

    #[test]
    fn a_wrong_value_is_told() {
        fn flip(value: &mut f64) {
            *value = f64::from_bits(value.to_bits() ^ 1 << 40);
        }
        assert_eq!(ran(|_| ()), 0);
        assert!(ran(|atoms| flip(&mut atoms.places[1000])) > 0);
        assert!(ran(|atoms| flip(&mut atoms.velocities[1000])) > 0);
        assert!(ran(|atoms| flip(&mut atoms.forces[1000])) > 0);
        assert!(ran(|atoms| atoms.velocities[1000] = f64::NAN) > 0);
    }

    #[test]
    fn counted_work_is_near_that_of_the_lattice() {
        let setting = Setting::new(2 << 20, 2, 2);
        let (counted, expected) = (md(&setting).expect("md").traffic(), traffic(&setting));
        let near = |a: f64, b: f64| (a - b).abs() < 0.03 * b;
        assert!(near(counted.bytes, expected.bytes) && near(counted.flop, expected.flop), "{counted:?} {expected:?}");
    }
}
