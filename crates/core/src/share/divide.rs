//! The division of a node's near memory among its ranks.
//!
//! Invariants: whole pages; never more than the whole together; nobody who asks by number gets more than that; nobody starves:
//! each gets what it asks for or a quarter of the even part, whichever is less.

use super::claim::Claim;
use crate::addr::PAGE;

/// Of its even part, what a rank that asks for no number keeps whatever the others ask for: one part of so many.
const KEPT: u64 = 4;

/// Bytes for each of `claims`, in their order, of `whole` bytes. First those who ask by number, then the others evenly of what is
/// left. Too much asked for is cut from the top: the largest claims become equal until they fit. Pages that do not divide go to
/// those who come first in the list. [`Claim::Off`] takes no part.
pub fn divide(whole: u64, claims: &[Claim]) -> Vec<u64> {
    let page = PAGE as u64;
    let pages = whole / page;
    let taking = claims.iter().filter(|claim| **claim != Claim::Off).count() as u64;
    let fair = claims.iter().filter(|claim| **claim == Claim::Fair).count() as u64;
    if taking == 0 {
        return vec![0; claims.len()];
    }
    let mut shares = vec![0; claims.len()];
    let mut asked: Vec<(u64, usize)> =
        claims.iter().enumerate().filter_map(|(index, claim)| Some((claim.asked(whole)? / page, index))).collect();
    asked.sort_unstable();
    let mut left = pages - fair * (pages / taking / KEPT);
    let mut others = asked.len() as u64;
    for (want, index) in asked {
        shares[index] = want.min(left / others);
        left -= shares[index];
        others -= 1;
    }
    let rest = pages - shares.iter().sum::<u64>();
    let mut odd = rest.checked_rem(fair).unwrap_or(0);
    for (share, _) in shares.iter_mut().zip(claims).filter(|(_, claim)| **claim == Claim::Fair) {
        *share = rest / fair + u64::from(odd > 0);
        odd = odd.saturating_sub(1);
    }
    shares.iter_mut().for_each(|share| *share *= page);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const P: u64 = PAGE as u64;

    fn parts(whole_pages: u64, claims: &[&str]) -> Vec<u64> {
        let claims: Vec<Claim> = claims.iter().map(|text| text.parse().expect("a claim")).collect();
        divide(whole_pages * P, &claims).into_iter().map(|bytes| bytes / P).collect()
    }

    #[test]
    fn examples() {
        assert_eq!(parts(100, &["fair"; 4]), [25; 4]);
        assert_eq!(parts(103, &["fair"; 4]), [26, 26, 26, 25]);
        assert_eq!(parts(3, &["fair"; 4]), [1, 1, 1, 0]);
        assert_eq!(parts(1000, &["40%", "fair", "fair", "fair"]), [400, 200, 200, 200]);
        assert_eq!(parts(1000, &["1/10", "fair"]), [100, 900]);
        // All that the others leave: a quarter of their even part.
        assert_eq!(parts(1000, &["all", "fair", "fair", "fair"]), [814, 62, 62, 62]);
        assert_eq!(parts(1000, &["all", "10%", "10%"]), [800, 100, 100]);
        assert_eq!(parts(1000, &["all"; 4]), [250; 4]);
        // Too much: from the top.
        assert_eq!(parts(1000, &["90%", "10%", "50%"]), [450, 100, 450]);
        assert_eq!(parts(1000, &["off", "fair"]), [0, 1000]);
        assert!(divide(1 << 30, &[]).is_empty());
    }

    fn claim() -> impl Strategy<Value = Claim> {
        prop_oneof![
            Just(Claim::Fair),
            Just(Claim::Off),
            (1u64..=100, 100u64..=1000).prop_map(|(parts, of)| Claim::Part { parts, of }),
            any::<u64>().prop_map(Claim::Bytes),
        ]
    }

    proptest! {
        #[test]
        fn never_more_than_the_whole_and_nobody_starves(whole in 0u64..1 << 50, claims in prop::collection::vec(claim(), 0..200)) {
            let shares = divide(whole, &claims);
            prop_assert_eq!(shares.len(), claims.len());
            prop_assert!(shares.iter().all(|share| share % P == 0));
            prop_assert!(shares.iter().sum::<u64>() <= whole);
            let taking = claims.iter().filter(|claim| **claim != Claim::Off).count().max(1) as u64;
            let kept = whole / P / taking / KEPT;
            for (share, claim) in shares.iter().zip(&claims) {
                match claim.asked(whole) {
                    Some(asked) => {
                        prop_assert!(*share <= asked);
                        prop_assert!(share / P >= (asked / P).min(kept), "{} of {}", share, asked);
                    }
                    None if *claim == Claim::Off => prop_assert_eq!(*share, 0),
                    None => prop_assert!(share / P >= kept),
                }
            }
        }

        #[test]
        fn even_parts_leave_nothing(whole in 0u64..1 << 50, ranks in 1usize..300) {
            let shares = divide(whole, &vec![Claim::Fair; ranks]);
            prop_assert_eq!(shares.iter().sum::<u64>(), whole / P * P);
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= P);
            prop_assert!(shares.is_sorted_by(|a, b| a >= b));
        }
    }
}
