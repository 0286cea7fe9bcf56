//! What a program sets before it gets its memory of tiers. Everything is checked here, so that a memory that exists works.

use super::ctl::{Ctl, Value};
use super::memory::Memory;
use super::policy::{Policy, Threshold};

/// More tiers than libmemkind has kinds make no sense.
const MOST_TIERS: usize = 512;

/// Why tiers cannot be used as they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A ratio of 0.
    #[error("a ratio of 0: leave out a tier that gets no share")]
    NoShare,
    /// Twice the same.
    #[error("the same kind of memory twice: add up the ratios")]
    Twice,
    /// Too many.
    #[error("more than {MOST_TIERS} tiers")]
    TooMany,
    /// None.
    #[error("no tier: at least one is needed")]
    NoTier,
    /// Thresholds need something to be between.
    #[error("DYNAMIC_THRESHOLD needs at least two tiers")]
    OneTier,
    /// No two tiers have this threshold between them yet.
    #[error("there is no threshold {0} between {1} tiers: add the tiers first")]
    NoSuchThreshold(usize, usize),
    /// A ratio has nothing to set.
    #[error("STATIC_RATIO has no settings; only DYNAMIC_THRESHOLD has")]
    NoSettings,
    /// Its bounds exclude it.
    #[error(
        "threshold {index}: the value {val} must lie between the minimum {min} and the maximum {max}; what is not given has its default \
         (value {default_val}, minimum {default_min}, maximum {default_max})",
        val = .threshold.val, min = .threshold.min, max = .threshold.max,
        default_val = Threshold::default_of(*.index).val, default_min = Threshold::default_of(*.index).min,
        default_max = Threshold::default_of(*.index).max
    )]
    Bounds {
        /// Which one.
        index: usize,
        /// As it would have been.
        threshold: Threshold,
    },
    /// The next one may come below it.
    #[error("thresholds {0} and {next}: the maximum of the first must not be more than the minimum of the second", next = .0 + 1)]
    Crossing(usize),
    /// Not a share, or no allocations between looks.
    #[error("check_cnt must be at least 1, trigger and degree at least 0")]
    Number,
    /// A value of another type than its name asks for.
    #[error("this setting needs a value of another type")]
    Type,
}

/// Tiers and settings, not yet in use.
#[derive(Clone, Debug)]
pub struct Builder<K> {
    policy: Policy,
    tiers: Vec<(K, u32)>,
    thresholds: Vec<Threshold>,
    check_count: u32,
    trigger: f32,
    degree: f32,
}

impl<K: Copy + PartialEq> Builder<K> {
    /// No tiers yet, documented settings.
    pub fn new(policy: Policy) -> Self {
        Self { policy, tiers: Vec::new(), thresholds: Vec::new(), check_count: 20, trigger: 0.02, degree: 0.15 }
    }

    /// One more tier, farther than those before, with `ratio` parts of the memory.
    ///
    /// # Errors
    /// A ratio of 0, a kind that is there already, too many.
    pub fn add(&mut self, kind: K, ratio: u32) -> Result<(), Refused> {
        match ratio {
            0 => Err(Refused::NoShare),
            _ if self.tiers.iter().any(|(other, _)| *other == kind) => Err(Refused::Twice),
            _ if self.tiers.len() == MOST_TIERS => Err(Refused::TooMany),
            _ => {
                self.tiers.push((kind, ratio));
                Ok(())
            }
        }
    }

    /// Changes a setting. Whether it goes with the others, and whether a share is one, is seen at the end, as in memkind: programs check
    /// there.
    ///
    /// # Errors
    /// A policy without settings, a value of the wrong type, a threshold that no two tiers have between them yet, a count of 0.
    pub fn set(&mut self, what: Ctl, value: Value) -> Result<(), Refused> {
        if self.policy == Policy::StaticRatio {
            return Err(Refused::NoSettings);
        }
        match (what, value) {
            (Ctl::CheckCount, Value::Unsigned(0)) => return Err(Refused::Number),
            (Ctl::CheckCount, Value::Unsigned(count)) => self.check_count = count,
            (Ctl::Trigger, Value::Float(trigger)) => self.trigger = trigger,
            (Ctl::Degree, Value::Float(degree)) => self.degree = degree,
            (Ctl::Val(index), Value::Size(size)) => self.threshold(index)?.val = size,
            (Ctl::Min(index), Value::Size(size)) => self.threshold(index)?.min = size,
            (Ctl::Max(index), Value::Size(size)) => self.threshold(index)?.max = size,
            _ => return Err(Refused::Type),
        }
        Ok(())
    }

    fn threshold(&mut self, index: usize) -> Result<&mut Threshold, Refused> {
        if index + 1 >= self.tiers.len() {
            return Err(Refused::NoSuchThreshold(index, self.tiers.len()));
        }
        while self.thresholds.len() <= index {
            self.thresholds.push(Threshold::default_of(self.thresholds.len()));
        }
        Ok(&mut self.thresholds[index])
    }

    /// The memory of these tiers.
    ///
    /// # Errors
    /// Tiers and settings that do not go together.
    pub fn build(&self) -> Result<Memory<K>, Refused> {
        let gaps = self.tiers.len().checked_sub(1).ok_or(Refused::NoTier)?;
        let thresholds = match self.policy {
            Policy::StaticRatio => Vec::new(),
            Policy::DynamicThreshold if gaps == 0 => return Err(Refused::OneTier),
            Policy::DynamicThreshold if ![self.trigger, self.degree].iter().all(|share| (0.0..f32::INFINITY).contains(share)) => {
                return Err(Refused::Number);
            }
            Policy::DynamicThreshold => {
                let given = self.thresholds.iter().copied();
                given.chain((self.thresholds.len()..gaps).map(Threshold::default_of)).collect()
            }
        };
        for (index, &threshold) in thresholds.iter().enumerate() {
            if !(threshold.min..=threshold.max).contains(&threshold.val) {
                return Err(Refused::Bounds { index, threshold });
            }
        }
        if let Some(index) = thresholds.windows(2).position(|pair| pair[0].max > pair[1].min) {
            return Err(Refused::Crossing(index));
        }
        Ok(Memory::new(self.tiers.clone(), &thresholds, self.check_count, self.trigger, self.degree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(policy: Policy) -> Builder<char> {
        let mut builder = Builder::new(policy);
        builder.add('a', 1).and_then(|()| builder.add('b', 4)).expect("two tiers");
        builder
    }

    #[test]
    fn tiers_that_cannot_be() {
        assert_eq!(two(Policy::StaticRatio).add('b', 1), Err(Refused::Twice));
        assert_eq!(two(Policy::StaticRatio).add('c', 0), Err(Refused::NoShare));
        assert_eq!(Builder::<char>::new(Policy::StaticRatio).build().err(), Some(Refused::NoTier));
        let mut one = Builder::new(Policy::DynamicThreshold);
        one.add('a', 1).expect("a tier");
        assert_eq!(one.build().err(), Some(Refused::OneTier));
    }

    #[test]
    fn settings_are_checked_together() {
        let mut builder = two(Policy::DynamicThreshold);
        builder.set(Ctl::Val(0), Value::Size(64)).expect("its bounds may follow");
        let refused = builder.build().expect_err("below its minimum");
        assert!(refused.to_string().contains("513"), "{refused}");
        builder.set(Ctl::Min(0), Value::Size(1)).expect("a minimum");
        assert!(builder.build().is_ok());
        builder.add('c', 1).expect("a third tier");
        builder.set(Ctl::Val(1), Value::Size(3000)).expect("its bounds may follow");
        assert!(matches!(builder.build().err(), Some(Refused::Bounds { index: 1, .. })));
        builder.set(Ctl::Max(1), Value::Size(4000)).expect("a maximum");
        builder.set(Ctl::Max(0), Value::Size(1600)).expect("a maximum");
        assert_eq!(builder.build().err(), Some(Refused::Crossing(0)));
    }

    #[test]
    fn i19_what_is_not_there_has_no_settings() {
        assert_eq!(two(Policy::StaticRatio).set(Ctl::CheckCount, Value::Unsigned(5)), Err(Refused::NoSettings));
        let mut builder = Builder::new(Policy::DynamicThreshold);
        // Refused and forgotten: the memory is built with what is documented.
        assert_eq!(builder.set(Ctl::Val(0), Value::Size(8000)), Err(Refused::NoSuchThreshold(0, 0)));
        builder.add('a', 1).and_then(|()| builder.add('b', 2)).and_then(|()| builder.add('c', 3)).expect("three tiers");
        assert_eq!(builder.set(Ctl::Max(2), Value::Size(9000)), Err(Refused::NoSuchThreshold(2, 3)));
        assert_eq!(builder.set(Ctl::Val(100_000), Value::Size(1)), Err(Refused::NoSuchThreshold(100_000, 3)));
        assert!(builder.build().is_ok());
    }

    #[test]
    fn numbers_and_types() {
        for (what, number) in [(Ctl::Trigger, f32::NAN), (Ctl::Trigger, -1.5), (Ctl::Degree, -1.5), (Ctl::Degree, f32::INFINITY)]
        {
            let mut builder = two(Policy::DynamicThreshold);
            builder.set(what, Value::Float(number)).expect("judged at the end (#19)");
            assert_eq!(builder.build().err(), Some(Refused::Number), "{what:?} {number}");
            builder.set(what, Value::Float(0.5)).expect("a share");
            assert!(builder.build().is_ok());
        }
        let mut builder = two(Policy::DynamicThreshold);
        assert_eq!(builder.set(Ctl::CheckCount, Value::Unsigned(0)), Err(Refused::Number));
        assert_eq!(builder.set(Ctl::Degree, Value::Size(1)), Err(Refused::Type));
    }
}
