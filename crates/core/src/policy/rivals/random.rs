//! A unit by chance. Deterministic: the same calls give the same victims.

use crate::policy::units::UnitMap;
use crate::policy::{Arrival, Evict, Unit};
use crate::random_numbers::xorshift;

/// Evicts a random unit.
pub struct Random {
    units: Vec<(Unit, u32)>,
    index: UnitMap<usize>,
    pages: u64,
    state: u64,
}

impl Random {
    /// An empty policy; the choice needs no capacity.
    pub fn new() -> Self {
        Self { units: Vec::new(), index: UnitMap::default(), pages: 0, state: 0x9e37_79b9_7f4a_7c15 }
    }

    fn take(&mut self, position: usize) -> Unit {
        let (unit, pages) = self.units.swap_remove(position);
        self.index.remove(&unit);
        if let Some(&(moved, _)) = self.units.get(position) {
            self.index.insert(moved, position);
        }
        self.pages -= u64::from(pages);
        unit
    }
}

impl Evict for Random {
    fn insert(&mut self, unit: Unit, pages: u32, _: Arrival) {
        match self.index.get(&unit) {
            Some(&position) => {
                let old = std::mem::replace(&mut self.units[position].1, pages);
                self.pages = self.pages - u64::from(old) + u64::from(pages);
            }
            None => {
                self.index.insert(unit, self.units.len());
                self.units.push((unit, pages));
                self.pages += u64::from(pages);
            }
        }
    }

    fn remove(&mut self, unit: Unit) {
        if let Some(&position) = self.index.get(&unit) {
            self.take(position);
        }
    }

    fn victim(&mut self) -> Option<Unit> {
        let count = self.units.len() as u64;
        if count == 0 {
            return None;
        }
        let position = xorshift(&mut self.state) % count;
        Some(self.take(position as usize))
    }

    fn set_capacity(&mut self, _: u64) {}

    fn resident_pages(&self) -> u64 {
        self.pages
    }

    fn name(&self) -> &'static str {
        "random"
    }
}
