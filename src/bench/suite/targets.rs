//! What the suite aims at, over far emulated at an eighth of the bandwidth of DRAM and with all threads, beside what is published.

use super::works::Work;
use crate::files::suite::{System, Target};

/// Work, data by near, least share of the speed in all-DRAM, published figure.
type Row = (&'static str, f64, f64, &'static str);

/// Published: Mironov et al., MCHPC 2018 (Intel Memory Drive Technology, IMDT).
const TARGETS: &[Row] = &[
    ("copy", 2.0, 0.22, STREAM),
    ("copy", 4.0, 0.15, STREAM),
    ("scale", 2.0, 0.22, STREAM),
    ("scale", 4.0, 0.15, STREAM),
    ("add", 2.0, 0.22, STREAM),
    ("add", 4.0, 0.15, STREAM),
    ("triad", 2.0, 0.22, STREAM),
    ("triad", 4.0, 0.15, STREAM),
    ("poly-8192", 2.0, 0.97, ""),
    ("poly-8192", 4.0, 0.97, ""),
    ("gemm-tiled", 2.0, 0.95, "IMDT 90 %"),
    ("gemm-tiled", 4.0, 0.95, "IMDT 90 %"),
    ("lu-tiled", 2.0, 0.93, ""),
    ("lu-tiled", 4.0, 0.93, ""),
    ("lu-panels", 2.0, 0.60, "IMDT 30-60 %"),
    ("lu-panels", 4.0, 0.60, "IMDT 30-60 %"),
    ("fft", 2.0, 0.50, "IMDT 40 %"),
    ("fft", 4.0, 0.50, "IMDT 40 %"),
    ("fft-blocked", 2.0, 0.70, "IMDT 40 %"),
    ("fft-blocked", 4.0, 0.70, "IMDT 40 %"),
    ("hydro", 2.0, 0.60, ""),
    ("hydro", 4.0, 0.60, ""),
    ("md", 2.0, 0.70, "IMDT 50-70 %"),
    ("md", 4.0, 0.70, "IMDT 50-70 %"),
    ("qft", 2.0, 0.75, ""),
    ("qft", 4.0, 0.75, ""),
    ("cholesky", 2.0, 0.90, "IMDT 120-140 % of two sockets"),
    ("cholesky", 4.0, 0.90, "IMDT 120-140 % of two sockets"),
    ("integrals", 2.0, 3.00, ""),
    ("integrals", 4.0, 3.00, ""),
];

const STREAM: &str = "IMDT 12.5 %";

/// Works that are held against another one in all-DRAM: what the far tier is to replace.
const INSTEAD: &[(&str, &str)] = &[("integrals", "integrals-direct")];

/// The least share where all data fit in near, of every work.
const FITS: f64 = 0.99;

/// The targets of a suite of `works` with `ratios`.
pub fn of(works: &[&Work], ratios: &[f64]) -> Vec<Target> {
    let is_there = |name: &str| works.iter().any(|work| work.name == name);
    let target = |work: &str, ratio, least, published: &str, against: Option<&str>| Target {
        work: work.to_owned(),
        system: System::Emulated,
        ratio,
        least,
        published: published.to_owned(),
        against: against.map(str::to_owned),
    };
    let own = TARGETS.iter().filter(|(work, ratio, ..)| is_there(work) && ratios.contains(ratio));
    let own = own.filter_map(|&(work, ratio, least, published)| {
        let against = INSTEAD.iter().find(|(stored, _)| *stored == work).map(|&(_, other)| other);
        against.is_none_or(is_there).then(|| target(work, ratio, least, published, against))
    });
    let fitting = ratios.iter().copied().filter(|&ratio| ratio <= 1.0);
    let own_works = works.iter().filter(|work| !work.reference);
    let fits = fitting.flat_map(|ratio| own_works.clone().map(move |work| target(work.name, ratio, FITS, "", None)));
    own.chain(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::super::works::WORKS;
    use super::*;

    #[test]
    fn every_target_is_of_a_work_that_there_is() {
        for (work, ratio, least, _) in TARGETS {
            assert!(WORKS.iter().any(|own| own.name == *work), "{work}");
            assert!(*ratio > 1.0 && *least > 0.0 && *least < 4.0);
        }
        let of = |names: &[&str], ratios: &[f64]| {
            let works: Vec<&Work> = WORKS.iter().filter(|work| names.contains(&work.name)).collect();
            of(&works, ratios)
        };
        assert!(of(&["integrals"], &[2.0]).is_empty(), "nothing to hold it against");
        let held = of(&["integrals", "integrals-direct"], &[1.0, 2.0]);
        assert_eq!((held.len(), held[0].against.as_deref(), held[1].work.as_str()), (2, Some("integrals-direct"), "integrals"));
        let targets = of(&["triad"], &[0.5, 2.0]);
        assert_eq!(targets.len(), 2);
        assert_eq!((targets[0].ratio, targets[0].least, targets[1].ratio, targets[1].least), (2.0, 0.22, 0.5, FITS));
    }
}
