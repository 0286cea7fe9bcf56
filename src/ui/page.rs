//! A whole page: its head, its style, what it may load (nothing), and the scripts of pages that have something to choose.

use crate::ui::html::escape;

/// The style that all reports share.
const STYLE: &str = include_str!("assets/page.css");
/// The plotting library, see assets/README.md.
const PLOTS: (&str, &str) = (include_str!("assets/uPlot.iife.min.js"), include_str!("assets/uPlot.min.css"));
/// Its notice, which goes where it goes.
const LICENCE: &str = include_str!("assets/uPlot.LICENSE");
/// What makes a suite interactive.
const SUITE: &str = include_str!("assets/suite.js");

/// A page without scripts.
pub fn page(title: &str, body: &str) -> String {
    whole(title, body, STYLE, "", "")
}

/// A page with [`data`] of suites.
pub fn interactive(title: &str, body: &str) -> String {
    let style = format!("{}\n{STYLE}", PLOTS.1);
    let scripts = format!("<script>\n/*\n{LICENCE}*/\n{}</script>\n<script>\n{SUITE}</script>\n", PLOTS.0);
    whole(title, body, &style, " script-src 'unsafe-inline';", &scripts)
}

fn whole(title: &str, body: &str, style: &str, script_source: &str, scripts: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline';{script_source} img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"nearfar {}\">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n{scripts}</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// JSON for a script: no character of it can end the element or begin markup.
pub fn data(id: &str, json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Only strings can hold these, and there an escape means the same.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe += &format!("\\u{:04x}", c as u32),
            c => safe.push(c),
        }
    }
    format!("<script type=\"application/json\" id=\"{}\">{safe}</script>\n", escape(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_load_nothing_and_run_only_what_they_bring() {
        let plain = page("<t>", "");
        assert!(
            plain.contains("default-src 'none'")
                && !plain.contains("script-src")
                && !plain.contains("<script")
                && !plain.contains("<t>")
        );
        let page = interactive("t", &data("d", "{}"));
        assert!(
            page.contains("script-src 'unsafe-inline'") && page.matches("<script").count() == 3,
            "nothing in a library ends its element"
        );
        for word in ["http-equiv", "src=\"", "@import", "url("] {
            assert_eq!(page.matches(word).count(), usize::from(word == "http-equiv"), "{word}");
        }
    }

    #[test]
    fn data_cannot_become_markup() {
        let evil = serde_json::to_string("</script><img src=x>&\u{2028}<!--").expect("JSON");
        let html = data("d", &evil);
        let inner = html.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</script>")).expect("an element").0;
        assert!(!inner.contains(['<', '>', '&', '\u{2028}']), "{inner}");
        assert_eq!(serde_json::from_str::<String>(inner).expect("the same"), "</script><img src=x>&\u{2028}<!--");
    }
}
