//! What strided streams do at each step.

use super::{BLOCK, Fit};
use super::{CHUNK, CONF_JUMP, Kind, LIMIT, LOOK_STEPS, Limits, STEPS_MAX, Track, WIDTH_MAX};
use crate::policy::{Found, Run, View};

/// Steps that are shown without being asked for.
const SURE: usize = 16;

impl Track {
    pub(super) fn fit_strided(&self, x: u64, live: bool) -> Option<Fit> {
        if x == self.run_end && self.size < u64::from(WIDTH_MAX) && self.confirmed() && live {
            return Some(Fit::Widen);
        }
        if x.abs_diff(self.origin) < CHUNK.max(self.size + 1) && live && self.conf >= CONF_JUMP {
            // The next column starts where this one did or a few pages beside.
            return Some(Fit::Restart);
        }
        let pace = self.pace.as_ref()?;
        let k = pace.steps_to(x)?;
        let expected = x >= self.run_end && (k == 1 || pace.ahead(k - 1) < self.run_end);
        let near = x < self.frontier.max(pace.ahead(2)) + pace.length();
        match expected {
            true => Some(Fit::Next),
            false => (live && self.confirmed() && near).then_some(Fit::Entry),
        }
    }

    pub(super) fn step_on(
        &mut self,
        x: u64,
        fit: Fit,
        found: Found,
        limits: &Limits,
        view: &dyn View,
        ahead: &mut Vec<Run>,
    ) -> Option<Run> {
        if fit == Fit::Widen {
            let more = self.size;
            self.size *= 2;
            let end = (x + more).min(x - x % BLOCK + BLOCK);
            self.run_end = end;
            return Some(self.real(x, end - x));
        }
        let Some(pace) = &mut self.pace else { return None };
        if let Some(k) = pace.steps_to(x) {
            pace.go(k, x);
        }
        let pace = pace.clone();
        let first = x - x % limits.floor;
        (self.run_first, self.run_end) = (first, self.piece_end(x).max(first + limits.floor));
        self.longest = self.longest.max(self.run_end.saturating_sub(self.origin));
        self.frontier = self.frontier.max(self.run_end);
        if self.confirmed() && self.muted == 0 && found != Found::Zero {
            self.depth = self.depth.clamp(1, STEPS_MAX);
            self.pass_due();
            let mut budget = limits.budget;
            // The first step that was not issued yet.
            let mut k = pace.first_beyond(self.frontier);
            let steps = if self.conf >= CONF_JUMP { LOOK_STEPS } else { u64::from(self.depth) };
            let end = self.bound.min(LIMIT - BLOCK);
            while k <= steps && pace.ahead(k) <= end && budget >= self.size && self.due.len() < self.depth as usize {
                let at = pace.ahead(k);
                let to = self.piece_end(at);
                if let Some(run) = view.in_far(self.real(at, to - at), self.flip) {
                    ahead.push(run);
                    self.due.push_back((at, run.count));
                    budget -= u64::from(run.count);
                }
                self.frontier = to;
                k += 1;
            }
        }
        Some(self.real(first, self.run_end - first))
    }

    /// What a strided stream will certainly come to next: half of what is due, as far as it goes. One fault for each small piece
    /// would cost more than bringing it.
    pub fn sure(&self) -> Vec<Run> {
        if self.kind == Kind::Sequential || self.conf < CONF_JUMP || self.muted > 0 {
            return Vec::new();
        }
        let half = (self.due.len() / 2).min(SURE);
        self.due.iter().take(half).map(|&(first, count)| self.real(first, u64::from(count))).collect()
    }
}
