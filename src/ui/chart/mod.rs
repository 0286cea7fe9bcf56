//! Charts of a machine description, as SVG text: what it can feed and compute (roofline), and how its memories behave.
//!
//! SVG is written by hand rather than by a plotting library: charts follow the reader's light or dark scheme by classes, and labels at
//! lines have to keep out of each other's way; the libraries at hand do neither.

pub mod svg;
pub mod axis;
pub mod labels;
pub mod bars;
pub mod plot;
pub mod roofs;
pub mod roofline;
pub mod loaded;
pub mod scaling;
pub mod latency;
pub mod far;
pub mod profile;
pub mod verified;

use nearfar_core::node::Node;

/// A chart, or why there is none.
pub struct Chart {
    /// For file names and marks: "roofline", "loaded-latency", ...
    pub name: &'static str,
    /// The picture; `None` when there is nothing to draw.
    pub svg: Option<String>,
    /// What was not measured then.
    pub wants: &'static str,
}

/// Every chart of `node`; the roofline also has the roofs of `other`.
pub fn all(node: &Node, other: Option<&Node>) -> Vec<Chart> {
    let chart = |name, svg, wants| Chart { name, svg, wants };
    vec![
        chart("roofline", roofline::draw(node, other, &[]), "bandwidth"),
        chart("loaded-latency", loaded::draw(node), "latency under load"),
        chart("threads", scaling::draw(node), "bandwidth by number of threads"),
        chart("latency", latency::draw(node), "latency"),
        chart("far-bandwidth", far::draw_bandwidth(node), "a far tier"),
        chart("far-latency", far::draw_latency(node), "a far tier"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;

    /// Writes every chart of every preset to the directory in NEARFAR_CHARTS, to be looked at.
    #[test]
    fn charts_are_well_formed() {
        let dir = std::env::var_os("NEARFAR_CHARTS").map(std::path::PathBuf::from);
        let max = preset::find("xeon-max-9480-flat").expect("found");
        for name in preset::names() {
            let node = preset::find(name).expect("found");
            for chart in all(&node, (name == "knl-flat").then_some(&max)) {
                let Some(svg) = chart.svg else { continue };
                assert_eq!(svg.matches("<svg").count(), 1, "{name} {}", chart.name);
                assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count(), "{name} {}", chart.name);
                assert!(!svg.contains("NaN"), "{name} {}", chart.name);
                if let Some(dir) = &dir {
                    std::fs::write(dir.join(format!("{name}-{}.svg", chart.name)), svg).expect("written");
                }
            }
        }
    }

    #[test]
    fn an_empty_machine_has_no_charts_and_says_what_is_wanting() {
        let charts = all(&Node::default(), None);
        assert!(charts.iter().all(|chart| chart.svg.is_none() && !chart.wants.is_empty()));
    }
}
