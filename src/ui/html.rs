//! HTML text: headings, paragraphs and tables. All that comes from files passes through [`escape`], here and nowhere else.

pub use crate::ui::chart::svg::escape;
use nearfar_core::node::words::percent;
use nearfar_core::node::{Figure, Validity};

/// A cell of a table.
pub struct Cell {
    html: String,
    class: &'static str,
}

impl Cell {
    /// Words, aligned left.
    pub fn text(words: impl AsRef<str>) -> Self {
        Self { html: escape(words.as_ref()), class: "" }
    }

    /// A number in words, aligned right.
    pub fn number(words: impl AsRef<str>) -> Self {
        Self { html: escape(words.as_ref()), class: "n" }
    }

    /// Several lines of words.
    pub fn lines(lines: impl IntoIterator<Item = String>) -> Self {
        Self { html: lines.into_iter().map(|line| escape(&line)).collect::<Vec<_>>().join("<br>"), class: "small" }
    }

    /// A figure: median, interval and runs, and a mark when it is noisy or invalid, with the reason in words; a remark on a valid one
    /// as well.
    pub fn figure(figure: &Figure, show: impl Fn(f64) -> String) -> Self {
        if !figure.is_known() {
            let why = if figure.why.is_empty() { "not measured" } else { &figure.why };
            return Self { html: format!("<span class=\"why\">{}</span>", escape(why)), class: "n" };
        }
        let mut html = format!("<b>{}</b>", escape(&show(figure.median)));
        if figure.high > figure.low {
            html += &format!(" <span class=\"why\">{} – {}</span>", escape(&show(figure.low)), escape(&show(figure.high)));
        }
        if figure.runs > 0 {
            html += &format!(" <span class=\"why\">n={}</span>", figure.runs);
        }
        let mark = match figure.validity {
            Validity::Valid => "",
            Validity::Noisy => "NOISY",
            Validity::Invalid => "INVALID",
        };
        if !mark.is_empty() {
            let class = mark.to_lowercase();
            html += &format!("<br><span class=\"{class}\">{mark}</span> <span class=\"why\">{}</span>", escape(&figure.why));
        } else if !figure.why.is_empty() {
            html += &format!("<br><span class=\"why\">{}</span>", escape(&figure.why));
        }
        if let Some(source) = &figure.source {
            html += &format!("<br><span class=\"why\">{}</span>", escape(source));
        }
        Self { html, class: "n" }
    }
}

/// Parts of a whole as one bar, with words; `parts`: what it is, the look of it, its share.
pub fn shares(title: &str, parts: &[(&str, &str, f64)]) -> String {
    let bar: String = parts
        .iter()
        .map(|(_, look, share)| format!("<i class=\"{}\" style=\"width:{:.1}%\"></i>", escape(look), 100.0 * share))
        .collect();
    let words = |(what, look, share): &(&str, &str, f64)| {
        format!("<li><i class=\"key {}\"></i>{}: {}</li>", escape(look), escape(what), escape(&percent(*share)))
    };
    let words: String = parts.iter().map(words).collect();
    heading(title) + &format!("<div class=\"bar\" aria-hidden=\"true\">{bar}</div>\n<ul class=\"legend\">{words}</ul>\n")
}

/// A table, with a head if its columns have names; nothing when it has no rows.
pub fn table(head: &[impl AsRef<str>], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let mut html = String::from("<div class=\"wide\"><table>");
    if head.iter().any(|name| !name.as_ref().is_empty()) {
        html += "<thead><tr>";
        for name in head {
            html += &format!("<th scope=\"col\">{}</th>", escape(name.as_ref()));
        }
        html += "</tr></thead>";
    }
    html += "<tbody>\n";
    for row in rows {
        html += "<tr>";
        for cell in row {
            let class = if cell.class.is_empty() { String::new() } else { format!(" class=\"{}\"", cell.class) };
            html += &format!("<td{class}>{}</td>", cell.html);
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// A table below its heading, and below it how its figures were got; nothing when it has no rows.
pub fn section(title: &str, head: &[impl AsRef<str>], rows: impl IntoIterator<Item = Vec<Cell>>, how: &str) -> String {
    let table = table(head, rows);
    if table.is_empty() {
        return table;
    }
    let how = if how.is_empty() { String::new() } else { method(how) };
    heading(title) + &table + &how
}

/// Facts and their names; those without words are left out.
pub fn facts<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let known = rows.into_iter().filter(|(_, words)| !words.is_empty());
    table(&["", ""], known.map(|(what, words)| vec![Cell::text(what), Cell::text(words)]))
}

/// A heading of the second level below the machine's.
pub fn heading(words: &str) -> String {
    format!("<h3>{}</h3>\n", escape(words))
}

/// A paragraph of plain words.
pub fn paragraph(words: &str) -> String {
    format!("<p>{}</p>\n", escape(words))
}

/// Text as a terminal shows it.
pub fn verbatim(text: &str) -> String {
    format!("<pre>{}</pre>\n", escape(text))
}

/// A part that opens when its title is asked for.
pub fn folded(id: Option<&str>, title: &str, html: &str) -> String {
    let id = id.map_or_else(String::new, |id| format!(" id=\"{}\"", escape(id)));
    format!("<details{id}><summary>{}</summary>\n{html}</details>\n", escape(title))
}

/// How the figures above were got.
pub fn method(words: &str) -> String {
    format!("<p class=\"method\">{}</p>\n", escape(words))
}

/// The title of a page.
pub fn title(words: &str) -> String {
    format!("<h1>{}</h1>\n", escape(words))
}

/// The heading of a part, which [`contents`] leads to when it has a number.
pub fn part(number: Option<usize>, words: &str) -> String {
    let id = number.map_or_else(String::new, |number| format!(" id=\"part{number}\""));
    format!("<h2{id}>{}</h2>\n", escape(words))
}

/// Links to the parts of these names, numbered from 0.
pub fn contents(parts: &[String]) -> String {
    let link = |(number, words): (usize, &String)| format!("<a href=\"#part{number}\">{}</a>", escape(words));
    format!("<nav>{}</nav>\n", parts.iter().enumerate().map(link).collect::<String>())
}

/// The answer, before all else: a sentence or two, and what has to be known beside it.
pub fn conclusion(lead: &str, more: &[String]) -> String {
    let mut html = format!("<p class=\"answer\">{}</p>\n", escape(lead));
    if !more.is_empty() {
        let lines: String = more.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
        html += &format!("<ul class=\"beside\">\n{lines}</ul>\n");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_tell_what_they_are() {
        let cell = Cell::figure(&Figure::of(&[1.0, 2.0, 9.0]), |value| format!("{value} <u>"));
        assert!(cell.html.contains("<b>2 &lt;u&gt;</b>") && cell.html.contains("NOISY") && cell.html.contains("n=3"));
        assert!(Cell::figure(&Figure::invalid("<no>"), |_| String::new()).html.contains("&lt;no&gt;"));
        let remark = Figure { why: "<remark>".to_owned(), ..Figure::of(&[1.0]) };
        let html = Cell::figure(&remark, |value| value.to_string()).html;
        assert!(html.contains("&lt;remark&gt;") && !html.contains("INVALID") && !html.contains("NOISY"), "{html}");
        assert!(Cell::figure(&Figure::default(), |_| String::new()).html.contains("not measured"));
    }

    #[test]
    fn tables_escape() {
        let html = table(&["<h>"], [vec![Cell::text("<script>alert(1)</script>")]]);
        assert!(!html.contains("<script>") && html.contains("&lt;h&gt;"));
        assert!(table(&["a"], []).is_empty() && section("a", &["a"], [], "how").is_empty());
        assert!(!conclusion("<t>", &["<u>".to_owned()]).contains("<u>"));
    }
}
