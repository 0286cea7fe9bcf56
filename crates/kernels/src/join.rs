//! A hash join: one relation is put into a hash table, another one is read in order and looked up there, and products are added up
//! by group. Streams beside random writes first, and beside random reads then.
//!
//! Each thread joins relations of its own with a table of its own, as after a partition by key. So the digest depends on the number of
//! threads. The stored values change with every repetition, so that a slot left over from the one before shows in its sums.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::{Checked, Setup, weight};
use nearfar_core::random_numbers::{below, mix};

/// Rows between two looks at the clock.
const BATCH: usize = 4096;
const GROUPS: usize = 256;
/// Words of a row, and of a slot of the table: key and value.
const ROW: usize = 2;
/// Words of two rows of the build side, of their three slots and of their four rows of the probe side: the table is 2/3 full.
const UNITS: [usize; 3] = [2 * ROW, 3 * ROW, 4 * ROW];

/// What the join adds up: products by group, and the number of rows that found a partner.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sums {
    products: [u64; GROUPS],
    matches: u64,
}

struct Share<'a> {
    build: &'a mut [u64],
    table: &'a mut [u64],
    probe: &'a mut [u64],
    /// The first row of the build side.
    first: usize,
    /// The last repetition, the rows in the table (none is known while it is being cleared) and the rows looked up.
    number: usize,
    built: Option<usize>,
    probed: usize,
    sums: Sums,
    /// What repetition 0 must come to, and by how much more each later one.
    expected: [Sums; 2],
    wrong_sums: u64,
}

impl Sums {
    const NONE: Sums = Sums { products: [0; GROUPS], matches: 0 };

    fn add(&mut self, key: u64, product: u64) {
        let group = &mut self.products[(key % GROUPS as u64) as usize];
        *group = group.wrapping_add(product);
        self.matches += 1;
    }
}

/// Row number `row` of the build side. No key is 0, which marks an empty slot: `mix` makes 0 of one number only, above 2^62.
const fn build_row(row: usize) -> [u64; ROW] {
    let key = mix(row as u64);
    [key, mix(key)]
}

impl<'a> Share<'a> {
    /// Writes the relations, and touches the table.
    fn new(build: &'a mut [u64], table: &'a mut [u64], probe: &'a mut [u64], first: usize) -> Self {
        table.fill(0);
        let sums = Sums::NONE;
        let mut share =
            Self { build, table, probe, first, number: 0, built: None, probed: 0, sums, expected: [sums; 2], wrong_sums: 0 };
        share.build.chunks_exact_mut(ROW).enumerate().for_each(|(row, words)| words.copy_from_slice(&build_row(first + row)));
        for row in 0..2 * share.rows() {
            let words = share.probe_row(row).0;
            share.probe[row * ROW..][..ROW].copy_from_slice(&words);
        }
        share.expected = share.replay(2 * share.rows());
        share
    }

    fn rows(&self) -> usize {
        self.build.len() / ROW
    }

    /// Row number `row` of this probe side, and the row of the build side that has its key: for three of four there is one.
    fn probe_row(&self, row: usize) -> ([u64; ROW], Option<usize>) {
        let (index, rows) = (2 * self.first + row, self.rows());
        let value = mix(!index as u64);
        let pick = below(mix(value), rows + rows / 3);
        if pick < rows { ([build_row(self.first + pick)[0], value], Some(self.first + pick)) } else { ([!value, value], None) }
    }

    /// The sums of repetition 0 over the first `probed` rows, and how much each repetition adds to those: computed without the table.
    fn replay(&self, probed: usize) -> [Sums; 2] {
        let (mut start, mut growth) = (Sums::NONE, Sums::NONE);
        for row in 0..probed {
            if let ([key, value], Some(partner)) = self.probe_row(row) {
                start.add(key, build_row(partner)[1].wrapping_mul(value));
                growth.add(key, value);
            }
        }
        [start, growth]
    }

    /// Groups whose sum is wrong, and one more if the number of matches is.
    fn wrong_groups(&self, [start, growth]: &[Sums; 2]) -> u64 {
        let right = start.products.iter().zip(&growth.products).map(|(a, b)| a.wrapping_add(b.wrapping_mul(self.number as u64)));
        let wrong = right.zip(&self.sums.products).filter(|(right, sum)| right != *sum).count() as u64;
        wrong + u64::from(start.matches != self.sums.matches)
    }
}

/// Joins a relation with one of twice its rows, `setting.repetitions` times; both and the hash table together hold
/// `setting.data_bytes`. An operation is one row of either; its traffic is the row, its slot and the keys of slots passed on the way,
/// besides that of clearing the table.
pub fn join(setting: &Setting) -> Result<Report, Error> {
    let units = (setting.data_bytes / size_of::<u64>() / UNITS.iter().sum::<usize>()).max(1);
    let setup = Setup::begin(setting);
    let mut build = Buffer::<u64>::zeroed(&setting.placement, units * UNITS[0])?;
    let mut table = Buffer::<u64>::zeroed(&setting.placement, units * UNITS[1])?;
    let mut probe = Buffer::<u64>::zeroed(&setting.placement, units * UNITS[2])?;
    let data_bytes = (build.len() + table.len() + probe.len()) * size_of::<u64>();
    [&build, &probe].into_iter().for_each(|relation| relation.announce(Pattern::Sequential));
    table.announce(Pattern::Random);
    let parts = setting.split(&mut build, UNITS[0]).into_iter().zip(setting.split(&mut table, UNITS[1]));
    let parts = parts.zip(setting.split(&mut probe, UNITS[2]));
    let shares = thread_team::map(parts.collect(), |(((first, build), (_, table)), (_, probe))| {
        Share::new(build, table, probe, first / ROW)
    });

    let (ran, shares) = setup.run(shares, AfterLimit::End, join_once);

    let checked = ran.check(shares, |share| check(&share));
    Ok(ran.report("join", "rows", data_bytes, checked))
}

fn join_once(share: &mut Share, number: usize, watch: &Watch) -> thread_team::Done {
    (share.number, share.built, share.probed, share.sums) = (number, None, 0, Sums::NONE);
    let mut words = 0;
    for slots in share.table.chunks_mut(BATCH * ROW) {
        slots.fill(0);
        words += slots.len();
        if watch.is_over() {
            return ((words * size_of::<u64>()) as u64, 0);
        }
    }
    words += put(share, watch);
    if share.built == Some(share.rows()) && !watch.is_over() {
        words += look_up(share, watch);
    }
    if share.probed == 2 * share.rows() {
        share.wrong_sums += share.wrong_groups(&share.expected);
    }
    ((words * size_of::<u64>()) as u64, (share.built.unwrap_or(0) + share.probed) as u64)
}

/// Puts the build side into the empty table; returns the words read and written.
fn put(share: &mut Share, watch: &Watch) -> usize {
    let (mut words, mut built) = (0, 0);
    for batch in share.build.chunks(BATCH * ROW) {
        for row in batch.chunks_exact(ROW) {
            let (place, passed) = seek(share.table, row[0], 0);
            if let Some(place) = place {
                share.table[place] = row[0];
                share.table[place + 1] = row[1].wrapping_add(share.number as u64);
            }
            words += 2 * ROW + passed;
        }
        built += batch.len() / ROW;
        if watch.is_over() {
            break;
        }
    }
    share.built = Some(built);
    words
}

/// Looks the probe side up in the table; returns the words read.
fn look_up(share: &mut Share, watch: &Watch) -> usize {
    let mut words = 0;
    for batch in share.probe.chunks(BATCH * ROW) {
        for row in batch.chunks_exact(ROW) {
            let (place, passed) = seek(share.table, row[0], row[0]);
            if let Some(value) = place.map(|place| share.table[place + 1]) {
                share.sums.add(row[0], value.wrapping_mul(row[1]));
            }
            words += 2 * ROW + passed;
        }
        share.probed += batch.len() / ROW;
        if watch.is_over() {
            break;
        }
    }
    words
}

/// The place of the first slot with the key `wanted` on the way of `key`, unless an empty one comes first; and the slots passed.
fn seek(table: &[u64], key: u64, wanted: u64) -> (Option<usize>, usize) {
    let slots = table.len() / ROW;
    let mut slot = below(mix(key), slots);
    // A wrong word may have left no slot empty.
    for passed in 0..slots {
        let found = table[slot * ROW];
        if found == wanted || found == 0 {
            return ((found == wanted).then_some(slot * ROW), passed);
        }
        slot = if slot + 1 == slots { 0 } else { slot + 1 };
    }
    (None, slots)
}

/// (errors, digest) of one share: relations, table and sums.
fn check(share: &Share) -> Checked {
    let build = share.build.chunks_exact(ROW).enumerate().map(|(row, words)| (words, build_row(share.first + row)));
    let probe = share.probe.chunks_exact(ROW).enumerate().map(|(row, words)| (words, share.probe_row(row).0));
    let mut wrong = share.wrong_sums + build.chain(probe).filter(|(words, right)| words != right).count() as u64;
    if let Some(built) = share.built {
        let occupied = share.table.chunks_exact(ROW).filter(|slot| slot[0] != 0);
        let stored = occupied.fold(0u64, |sum, slot| sum.wrapping_add(mix(slot[0] ^ slot[1].rotate_left(32))));
        let right = (0..built).map(|row| build_row(share.first + row)).fold(0u64, |sum, [key, value]| {
            let value = value.wrapping_add(share.number as u64);
            sum.wrapping_add(mix(key ^ value.rotate_left(32)))
        });
        wrong += u64::from(stored != right);
    }
    if share.probed < 2 * share.rows() {
        wrong += share.wrong_groups(&share.replay(share.probed));
    }
    let groups = share.sums.products.iter().enumerate();
    let digest = groups.fold(share.sums.matches, |sum, (group, product)| sum.wrapping_add(product.wrapping_mul(weight(group))));
    (wrong, digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verified;
    use std::time::Duration;

    #[test]
    fn a_join_that_is_cut_off_is_verified_all_the_same() {
        for micros in [0, 200, 1000, 3000, 6000] {
            let report =
                join(&Setting { limit: Some(Duration::from_micros(micros)), ..Setting::new(2 << 20, 2, 3) }).expect("join");
            assert_eq!(report.verified, Verified::Right, "{micros}");
        }
    }

    #[test]
    fn a_wrong_byte_is_told() {
        let mut memory = UNITS.map(|unit| vec![0u64; 1000 * unit]);
        let [build, table, probe] = &mut memory;
        let mut share = Share::new(build, table, probe, 10);
        let run = |share: &mut Share| {
            thread_team::run(&Setting::new(0, 1, 1), vec![share], AfterLimit::End, |share, number, watch| {
                join_once(share, number, watch)
            });
        };
        run(&mut share);
        assert_eq!(check(&share).0, 0);
        assert!((2900..3100).contains(&share.sums.matches), "{}", share.sums.matches);
        share.build[2001] ^= 1 << 40;
        run(&mut share);
        // The row and the table differ, and so does one group unless nobody asked for the row.
        assert!((2..=3).contains(&check(&share).0), "{}", check(&share).0);
        share.build[2001] ^= 1 << 40;
        share.build[2000] ^= 1;
        run(&mut share);
        assert!(check(&share).0 >= 2);
    }
}
