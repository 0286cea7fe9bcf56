//! What practice says, where it applies: simple advice that needs no plan is the best advice.

use crate::units::Bytes;

/// What it is about.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Bytes of near, and most bytes of the program at a time.
    pub near: f64,
    /// See `near`.
    pub peak: f64,
    /// Predicted seconds with everything far, by the plan, with everything near, and with near as a cache.
    pub all_far: f64,
    /// See `all_far`.
    pub plan: f64,
    /// See `all_far`.
    pub all_near: f64,
    /// See `all_far`; `None` where that was not asked.
    pub cache: Option<f64>,
    /// Bytes that the plan puts near.
    pub planned: f64,
    /// Share of the traffic that is of objects without order.
    pub random: f64,
    /// Near is slower than far for single loads (HBM often is).
    pub near_waits_longer: bool,
    /// Touches that were seen: few mean little is known.
    pub touches: u64,
}

/// Less than this is no gain.
const NOTHING: f64 = 0.02;
/// A run that takes so many times as long as with everything near is not as good.
const AS_GOOD: f64 = 1.1;

/// Advice in sentences, the most important first.
pub fn advice(case: &Case) -> Vec<String> {
    let mut words = Vec::new();
    let size = |bytes: f64| Bytes(bytes as u64);
    let gain = case.all_far - case.all_near;
    if case.peak <= case.near {
        words.push(format!(
            "everything fits: at most {} of {}; put all of it near (--place all), no plan is needed",
            size(case.peak),
            size(case.near)
        ));
    }
    if gain < NOTHING * case.all_far {
        words.push(format!(
            "nothing to gain: with everything near the run would be {:.1} % faster; the program computes, or its data stay in the \
             processor's caches",
            100.0 * gain.max(0.0) / case.all_far.max(1e-9)
        ));
        return words;
    }
    let planned = case.all_far - case.plan;
    let best = case.cache.map_or(case.plan, |cache| cache.min(case.plan));
    if case.peak > case.near && best > AS_GOOD * case.all_near {
        // Most of a gain that is great may be there, and much still be missing.
        words.push(format!(
            "more near memory pays: with all {} near the run would take {:.1} s, with {} at best {:.1} s, {:.1} times as long",
            size(case.peak),
            case.all_near,
            size(case.near),
            best,
            best / case.all_near.max(1e-9)
        ));
    } else if case.peak > case.near && planned >= 0.9 * gain {
        words.push(format!(
            "{:.0} % of the gain of all near with {:.0} % of the bytes: more near memory is not worth buying",
            100.0 * (planned / gain).min(1.0),
            100.0 * case.planned / case.peak.max(1.0)
        ));
    }
    if let Some(cache) = case.cache
        && case.peak > case.near
    {
        if cache <= case.plan * (1.0 + NOTHING) {
            words.push(
                "cache mode first: it is as good as the plan, and nothing has to be kept up to date (--mode cache)".to_owned(),
            );
        } else if cache > case.all_far {
            words
                .push("not cache mode: more than near is used between two uses of a page, so pages would come and go".to_owned());
        }
    }
    if case.random > 0.5 && case.near_waits_longer {
        words.push(
            "most accesses have no order, and a single load takes longer from near than from far: bandwidth does not help them; more \
             threads, or far memory, do"
                .to_owned(),
        );
    }
    if case.touches < 100 {
        words.push(format!(
            "the profile saw only {} touches: profile a longer run, or with a higher budget, before anything is bought",
            case.touches
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_has_its_advice() {
        let usual = Case {
            near: 4e9,
            peak: 10e9,
            all_far: 10.0,
            plan: 5.2,
            all_near: 5.0,
            cache: Some(8.0),
            planned: 3e9,
            touches: 1000,
            ..Case::default()
        };
        let says = |case: Case, word: &str| {
            let words = advice(&case);
            assert!(words.iter().any(|line| line.contains(word)), "{word}: {words:?}");
        };
        says(usual.clone(), "96 % of the gain");
        says(Case { near: 11e9, ..usual.clone() }, "everything fits");
        says(Case { all_near: 9.9, ..usual.clone() }, "nothing to gain");
        says(Case { cache: Some(5.2), ..usual.clone() }, "cache mode first");
        says(Case { cache: Some(11.0), ..usual.clone() }, "not cache mode");
        says(Case { random: 0.8, near_waits_longer: true, ..usual.clone() }, "have no order");
        says(Case { touches: 3, ..usual.clone() }, "saw only 3 touches");
        // 99 % of the gain.
        says(Case { all_far: 3274.0, plan: 43.4, cache: Some(300.0), all_near: 10.4, ..usual.clone() }, "4.2 times as long");
        assert_eq!(advice(&Case { all_far: 5.6, plan: 5.4, cache: Some(5.55), ..usual }), [""; 0]);
    }
}
