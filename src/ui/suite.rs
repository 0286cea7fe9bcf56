//! The markup of a suite: the board that the script fills, and the strips of shaded figures that need no script.

use crate::ui::html::{escape, heading, method};

/// A work's row in a strip.
pub struct StripRow {
    /// Its name.
    pub name: String,
    /// Mark of its figures, without #.
    pub figures: String,
    /// A cell for each ratio.
    pub cells: Vec<StripCell>,
}

/// A figure of a strip.
pub struct StripCell {
    /// The share of speed that shades it; absent without a figure.
    pub share: Option<f64>,
    /// What stands there.
    pub words: String,
}

/// Steps of shading, without that of cells without a figure.
const STEPS: f64 = 10.0;

/// Works by ratios, shaded by the share of speed that is kept. `system` and `threads` are what the script chooses by.
pub fn strip(title: &str, (system, threads): (&str, usize), ratios: &[f64], rows: &[StripRow]) -> String {
    let mut html = format!("<div class=\"strip\" data-system=\"{}\" data-threads=\"{threads}\">\n", escape(system));
    html += &heading(title);
    html += "<div class=\"wide\"><table><thead><tr><th scope=\"col\">work</th>";
    for ratio in ratios {
        html += &format!("<th scope=\"col\" class=\"n\">{ratio}</th>");
    }
    html += "</tr></thead><tbody>\n";
    for (number, row) in rows.iter().enumerate() {
        html += &format!(
            "<tr data-work=\"{number}\"><th scope=\"row\"><a href=\"#{}\">{}</a></th>",
            escape(&row.figures),
            escape(&row.name)
        );
        for (cell, ratio) in row.cells.iter().zip(ratios) {
            let class =
                cell.share.map_or("none".to_owned(), |share| format!("h{:.0}", (share * STEPS).floor().clamp(0.0, STEPS)));
            html += &format!("<td class=\"n {class}\" data-ratio=\"{ratio}\">{}</td>", figure(&cell.words));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div></div>\n"
}

/// Words of a cell; narrow pages leave out the sign of percent, which the title has too.
fn figure(words: &str) -> String {
    match words.strip_suffix(" %") {
        Some(number) => format!("{}<span class=\"sign\"> %</span>", escape(number)),
        None => escape(words),
    }
}

/// The board: what the script fills, around the strips.
pub fn board(id: &str, strips: &str, how: &str) -> String {
    format!(
        "<section class=\"suite\" id=\"{id}\">\n<div class=\"controls\"></div>\n<div class=\"board\">\n\
         <section class=\"dots\" id=\"{id}-works\" aria-label=\"All works\"></section>\n\
         <section class=\"work\" id=\"{id}-work\" aria-label=\"One work\"></section>\n\
         <section class=\"strips\" aria-label=\"All works by size of near\">\n{strips}{}</section>\n</div>\n</section>\n",
        method(how)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_shaded_by_tenths_and_escape() {
        let cell = |share, words: &str| StripCell { share, words: words.to_owned() };
        let cells = vec![cell(Some(0.69), "69 %"), cell(None, "–"), cell(Some(1.3), "130 %")];
        let rows = [StripRow { name: "<a>".into(), figures: "suite0-0".into(), cells }];
        let html = strip("<t>", ("disk", 2), &[1.5, 2.0, 3.0], &rows);
        assert!(
            html.contains("class=\"n h6\" data-ratio=\"1.5\">69<span class=\"sign\"> %</span>")
                && html.contains("class=\"n none\"")
                && html.contains("class=\"n h10\"")
        );
        assert!(html.contains("&lt;a&gt;") && !html.contains("<a>") && !html.contains("<t>"));
    }
}
