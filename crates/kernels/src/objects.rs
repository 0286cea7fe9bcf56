//! Skewed reads and updates of small objects in a hash table, as YCSB's workload A: half of each, ranks by Zipf's law (0.99), and
//! popular objects scattered over the memory.
//!
//! Each thread serves a table of its own, as caches with shards do: plain loads and stores then give the same result every time.

use crate::buffer::Buffer;
use crate::mapped_file::Pattern;
use crate::object_store::ObjectStore;
use crate::permutation::Permutation;
use crate::report::Report;
use crate::thread_team::{self, AfterLimit, Error, Setting, Watch};
use crate::timed_run::Setup;
use crate::zipf::{YCSB_THETA, Zipf};
use nearfar_core::random_numbers::{Random, mix};

/// Requests between two looks at the clock.
const BATCH: u64 = 64;

struct Share<'a> {
    store: ObjectStore<'a>,
    zipf: Zipf,
    /// From rank to number: or the popular ones, which arrived first, would share their pages.
    places: Permutation,
    rng: Random,
}

/// Runs `setting.repetitions` batches of `requests` requests (all threads together), each ended early by the time limit. An operation
/// is one request.
pub fn objects(setting: &Setting, requests: u64) -> Result<Report, Error> {
    let len = (setting.data_bytes / size_of::<u64>()).max(1);
    let setup = Setup::begin(setting);
    let mut memory = Buffer::<u64>::zeroed(&setting.placement, len)?;
    memory.announce(Pattern::Random);
    let shares = thread_team::map(setting.split(&mut memory, 1), |(first, part)| {
        let store = ObjectStore::build(part, first);
        let objects = store.objects();
        Share {
            store,
            zipf: Zipf::new(objects, YCSB_THETA),
            places: Permutation::new(objects, 2),
            rng: Random::new(first as u64),
        }
    });

    let per_thread = requests.div_ceil(setting.threads.max(1) as u64);
    let (ran, shares) = setup.run(shares, AfterLimit::Continue, |share, _, watch| serve(share, per_thread, watch));

    let wrong_reads: u64 = shares.iter().map(|share| share.store.wrong()).sum();
    let (wrong, checksum) = ran.check(shares, |share| {
        let (digest, right) = share.store.verify();
        (u64::from(!right), digest)
    });
    Ok(ran.report("objects", "requests", len * size_of::<u64>(), (wrong_reads + wrong, checksum)))
}

fn serve(share: &mut Share, requests: u64, watch: &Watch) -> thread_team::Done {
    let (mut bytes, mut done) = (0, 0);
    while done < requests && share.store.objects() > 0 {
        let batch = BATCH.min(requests - done);
        for _ in 0..batch {
            let random = share.rng.next();
            let number = share.places.apply(share.zipf.rank(random));
            // The lowest bits do not reach the rank.
            bytes += if random & 1 == 0 { share.store.read(number) } else { share.store.update(number, mix(random)) };
        }
        done += batch;
        if watch.is_over() {
            break;
        }
    }
    (bytes, done)
}
