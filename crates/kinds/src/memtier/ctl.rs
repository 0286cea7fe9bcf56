//! Names of what memtier_ctl_set() can change.

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ctl {
    /// `policy.dynamic_threshold.check_cnt` (unsigned int): allocations between two looks at the ratio.
    CheckCount,
    /// `policy.dynamic_threshold.trigger` (float): how far off a share may be.
    Trigger,
    /// `policy.dynamic_threshold.degree` (float): by how much of its value a threshold moves.
    Degree,
    /// `policy.dynamic_threshold.thresholds[N].val` (size_t).
    Val(usize),
    /// `policy.dynamic_threshold.thresholds[N].min` (size_t).
    Min(usize),
    /// `policy.dynamic_threshold.thresholds[N].max` (size_t).
    Max(usize),
}

/// A value, of the type that its name asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// For a count.
    Unsigned(u32),
    /// For a share.
    Float(f32),
    /// For a size.
    Size(usize),
}

impl Ctl {
    /// The setting of this name.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.strip_prefix("policy.dynamic_threshold.")?;
        match name {
            "check_cnt" => return Some(Self::CheckCount),
            "trigger" => return Some(Self::Trigger),
            "degree" => return Some(Self::Degree),
            _ => {}
        }
        let (index, field) = name.strip_prefix("thresholds[")?.split_once("].")?;
        if !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let index = index.parse().ok()?;
        match field {
            "val" => Some(Self::Val(index)),
            "min" => Some(Self::Min(index)),
            "max" => Some(Self::Max(index)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_as_documented() {
        let of = |name: &str| Ctl::of(&format!("policy.dynamic_threshold.{name}"));
        assert_eq!(
            [of("check_cnt"), of("trigger"), of("degree")],
            [Some(Ctl::CheckCount), Some(Ctl::Trigger), Some(Ctl::Degree)]
        );
        assert_eq!(of("thresholds[0].val"), Some(Ctl::Val(0)));
        assert_eq!(of("thresholds[17].min"), Some(Ctl::Min(17)));
        assert_eq!(of("thresholds[1].max"), Some(Ctl::Max(1)));
        for name in [
            "",
            "check_cnt2",
            "thresholds",
            "thresholds[].val",
            "thresholds[-1].val",
            "thresholds[1]val",
            "thresholds[1].mid",
            "thresholds[+1].val",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(Ctl::of("check_cnt"), None);
    }

    proptest! {
        #[test]
        fn any_name_is_known_or_not(name in ".*", tail in "[a-z0-9.\\[\\]]*") {
            let _ = (Ctl::of(&name), Ctl::of(&format!("policy.dynamic_threshold.thresholds[{tail}")));
        }
    }
}
