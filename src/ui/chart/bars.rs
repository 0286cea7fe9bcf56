//! Shares of a whole as horizontal bars, in groups: how fast programs are under one system and another.

use super::svg::{Anchor, Look, Svg, cut};

/// Pixels from one bar to the next, and of the bar itself.
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
/// Where bars begin, and how long 100 % is.
const LEFT: f64 = 130.0;
const LONGEST: f64 = 380.0;
const WIDTH: f64 = 760.0;

/// A bar.
pub struct Bar {
    /// What it is of.
    pub name: String,
    /// 1 is the whole; none where nothing was measured.
    pub share: Option<f64>,
    /// What stands beside it.
    pub words: String,
}

/// The chart of groups, each with its heading. A bar longer than 120 % is cut there.
pub fn draw(title: &str, groups: &[(String, Vec<Bar>)]) -> String {
    let rows: usize = groups.iter().map(|(_, bars)| bars.len() + 1).sum();
    let mut svg = Svg::new(WIDTH, 50.0 + ROW * rows as f64);
    svg.text("title", (16.0, 26.0), Anchor::Start, title);
    let mut top = 40.0;
    for (heading, bars) in groups {
        svg.text("", (16.0, top + 17.0), Anchor::Start, heading);
        top += ROW;
        for (number, bar) in bars.iter().enumerate() {
            let middle = top + ROW / 2.0 + 4.0;
            svg.text("small", (LEFT - 8.0, middle), Anchor::End, &cut(&bar.name, 18));
            // What is next to nothing stays visible.
            let length =
                bar.share.filter(|share| share.is_finite()).map_or(0.0, |share| (share.clamp(0.0, 1.2) * LONGEST).max(1.0));
            let look = Look { colour: number, ..Look::default() };
            svg.block(look, (LEFT, top + (ROW - BAR) / 2.0), (LEFT + length, top + (ROW + BAR) / 2.0));
            svg.text("small", (LEFT + length + 8.0, middle), Anchor::Start, &cut(&bar.words, 36));
            top += ROW;
        }
    }
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_shares() {
        let bar = |name: &str, share, words: &str| Bar { name: name.to_owned(), share, words: words.to_owned() };
        let bars =
            vec![bar("all-DRAM", Some(1.0), "10 GB/s"), bar("a<b", Some(0.25), "2.5 GB/s"), bar("swap", None, "not measured")];
        let svg = draw("Speed", &[("triad".to_owned(), bars)]);
        assert!(svg.contains("width=\"380.0\" height=\"16.0\"") && svg.contains("width=\"95.0\" height=\"16.0\""), "{svg}");
        assert!(svg.contains("width=\"0.0\" height=\"16.0\"") && svg.contains("a&lt;b") && !svg.contains("NaN"), "{svg}");
    }
}
