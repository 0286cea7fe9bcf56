//! What happens when near is full: the object goes to far, its allocation fails, or it waits.

use super::{Placing, say};
use nearfar_core::placement::Full;
use nearfar_core::stats::Counter;
use nearfar_core::units::Bytes;
use nearfar_sys::event::{now_ns, wait_readable};
use std::sync::atomic::Ordering;

/// Pauses between looks while waiting for room, ms.
const PAUSES: std::ops::RangeInclusive<i32> = 1..=100;
/// After so long a wait is worth a line.
const TELL_NS: u64 = 5_000_000_000;

/// The answer to an object that is meant for near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// There is room, and it is taken.
    Near,
    /// There is none: far.
    Far,
    /// There is none, and the allocation fails.
    Refused,
}

impl Placing {
    /// Takes room for an object of `bytes`.
    pub(super) fn grant(&self, bytes: u64) -> Grant {
        if self.room.take(bytes) {
            self.count_placed(bytes as usize);
            return Grant::Near;
        }
        match self.placement.full {
            Full::Spill => {
                self.room.count(Counter::SpilledObjects, 1);
                self.room.count(Counter::SpilledBytes, bytes);
                Grant::Far
            }
            Full::Fail => self.refuse(bytes),
            Full::Wait => self.await_room(bytes),
        }
    }

    fn refuse(&self, bytes: u64) -> Grant {
        self.room.count(Counter::NearRefused, 1);
        if !self.told.swap(true, Ordering::Relaxed) {
            let (asked, live) = (Bytes(bytes), Bytes(self.room.live()));
            let left = self.room.left().map_or(String::new(), |left| format!(", and {} are left", Bytes(left)));
            say(&format!(
                "near is full: {asked} were asked for on top of {live} of this process{left}; the allocation fails with ENOMEM \
                 (--full=fail). Later ones are not reported"
            ));
        }
        Grant::Refused
    }

    /// Waits as long as it takes. Signals are handled meanwhile, and end the process if that is what they do.
    #[cold]
    fn await_room(&self, bytes: u64) -> Grant {
        // It would wait for ever.
        if bytes > self.room.most() {
            return self.refuse(bytes);
        }
        let start = now_ns();
        let (mut pause, mut told) = (*PAUSES.start(), false);
        loop {
            wait_readable(&[], pause, &mut []);
            pause = (pause * 2).min(*PAUSES.end());
            let waited = now_ns() - start;
            if self.room.take(bytes) {
                self.room.count(Counter::NearWaitNs, waited);
                self.count_placed(bytes as usize);
                if told {
                    say(&format!("there is room in near again after {:.1} s", waited as f64 / 1e9));
                }
                return Grant::Near;
            }
            if waited > TELL_NS && !told {
                told = true;
                say(&format!("near is full: a thread waits for {} of it (--full=wait)", Bytes(bytes)));
            }
        }
    }
}
