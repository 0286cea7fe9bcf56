//! Threads pinned one to a CPU that measure together, and how long what they did took.
//!
//! Invariant: no thread works before all are started and pinned; when one cannot be, none does. Time between barriers is from the first
//! start to the last end on one clock, so that a thread that comes late makes the figure worse, not better.

use super::error::Error;
use nearfar_core::node::CpuList;
use nearfar_sys::affinity;
use nearfar_sys::errno::Errno;
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// When a thread started and ended one repetition.
pub type Span = (Instant, Instant);

/// Seconds from the first start to the last end of each repetition. All logs must be equally long.
pub fn seconds(logs: &[Vec<Span>]) -> Vec<f64> {
    let count = logs.iter().map(Vec::len).min().unwrap_or(0);
    let of = |number: usize| {
        let start = logs.iter().map(|log| log[number].0).min();
        let end = logs.iter().map(|log| log[number].1).max();
        start.zip(end).map_or(0.0, |(start, end)| end.duration_since(start).as_secs_f64())
    };
    (0..count).map(of).collect()
}

/// How many repetitions of about `one` fill `budget`: at least `least`, at most `most`.
pub fn repetitions(budget: Duration, one: Duration, least: usize, most: usize) -> usize {
    let fit = budget.as_secs_f64() / one.as_secs_f64().max(1e-9);
    (fit as usize).clamp(least, most)
}

/// Waits for the word to start.
struct Start {
    word: Mutex<Option<bool>>,
    said: Condvar,
}

impl Start {
    fn say(&self, go: bool) {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.said.notify_all();
    }

    fn hear(&self) -> bool {
        let mut word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *word {
                Some(go) => return go,
                None => word = self.said.wait(word).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Runs `work(index, share)` on one thread per CPU, pinned to it, with the share of that index; returns the results in order.
///
/// # Errors
/// A thread could not be started or pinned; nothing was run then.
pub fn run<S: Send, R: Send>(cpus: &[u32], shares: Vec<S>, work: impl Fn(usize, S) -> R + Sync) -> Result<Vec<R>, Error> {
    if cpus.is_empty() || cpus.len() != shares.len() {
        return Err(Error::TooFewCpus("no CPU was named to measure with"));
    }
    let start = Start { word: Mutex::new(None), said: Condvar::new() };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(cpus.len());
        let mut failure = None;
        for (index, (&cpu, share)) in cpus.iter().zip(shares).enumerate() {
            let (start, work, sender) = (&start, &work, sender.clone());
            let body = move || {
                let pinned = affinity::pin(&CpuList::from_iter([cpu]));
                // The receiver lives until every thread has spoken, or has given up already.
                let _ = sender.send(pinned.as_ref().map(|_| ()).map_err(Clone::clone));
                drop(sender);
                start.hear().then(|| work(index, share))
            };
            match std::thread::Builder::new().name(format!("probe-{cpu}")).spawn_scoped(scope, body) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    failure = Some(Error::Thread(Errno(error.raw_os_error().unwrap_or(libc::EAGAIN))));
                    break;
                }
            }
        }
        drop(sender);
        let pinned = receiver.iter().take(handles.len()).collect::<Result<Vec<()>, _>>();
        let failure = failure.or(pinned.err().map(Error::Cpu));
        start.say(failure.is_none());
        let results = handles.into_iter().map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let results: Option<Vec<R>> = results.collect();
        match (failure, results) {
            (Some(error), _) => Err(error),
            (None, Some(results)) => Ok(results),
            (None, None) => Err(Error::TooFewCpus("a thread did not run")),
        }
    })
}

/// CPUs that the tests may use.
#[cfg(test)]
pub fn own_cpus() -> Vec<u32> {
    affinity::of(0).expect("own CPUs").as_slice().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spin_barrier::SpinBarrier;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering;

    #[test]
    fn threads_run_where_they_are_told_and_in_step() {
        // More threads than this machine may have CPUs: they share.
        let cpu = own_cpus()[0];
        let cpus = [cpu; 3];
        let barrier = SpinBarrier::new(cpus.len());
        let steps = AtomicU64::new(0);
        let results = run(&cpus, vec![10, 20, 30], |index, share| {
            for step in 0..50 {
                steps.fetch_add(1, Ordering::Relaxed);
                barrier.wait();
                assert_eq!(steps.load(Ordering::Relaxed), (step + 1) * 3);
                barrier.wait();
            }
            (index, share, affinity::of(0).expect("own CPUs"))
        });
        let only: CpuList = [cpu].into_iter().collect();
        assert_eq!(results, Ok(vec![(0, 10, only.clone()), (1, 20, only.clone()), (2, 30, only)]));
    }

    #[test]
    fn a_cpu_that_is_not_there_stops_all() {
        let ran = AtomicU64::new(0);
        let result = run(&[own_cpus()[0], 50_000], vec![(), ()], |_, ()| ran.fetch_add(1, Ordering::Relaxed));
        assert!(matches!(result, Err(Error::Cpu(_))), "{result:?}");
        assert_eq!(ran.load(Ordering::Relaxed), 0);
        assert!(run(&[], Vec::<()>::new(), |_, ()| ()).is_err());
    }

    #[test]
    fn time_is_from_first_start_to_last_end() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let logs = [vec![(at(0), at(10)), (at(20), at(30))], vec![(at(5), at(12)), (at(19), at(29))]];
        assert_eq!(seconds(&logs), [0.012, 0.011]);
        assert_eq!(repetitions(Duration::from_secs(1), Duration::from_millis(100), 5, 100), 10);
        assert_eq!(repetitions(Duration::ZERO, Duration::from_millis(100), 5, 100), 5);
    }
}
