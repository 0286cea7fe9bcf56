//! The report: one HTML page from machine descriptions, run files, profiles and advice. Pure: text in, text out.
//!
//! The page needs nothing but itself (no fonts, no network; scripts only with a suite, and all that they show is in tables too), so that it
//! can be mailed and kept.

use super::{advice, answers, beside, machine, measured, profile, run, runs, suite};
use crate::files::document::Document;
use crate::ui::chart;
use crate::ui::html;
use crate::ui::page::{interactive, page};
use nearfar_core::node::Node;

/// The page for `documents`; the first machine is also compared with `published` (a preset), if there is one. `told`: what was said of
/// all of them together.
pub fn render(documents: &[Document], published: Option<&Node>, told: &[String]) -> String {
    let nodes: Vec<&Node> =
        documents.iter().filter_map(|document| if let Document::Node(node) = document { Some(&**node) } else { None }).collect();
    let mut others: Vec<&Node> = nodes.iter().skip(1).copied().collect();
    others.extend(published);
    let run_files: Vec<_> =
        documents.iter().filter_map(|document| if let Document::Run(value) = document { Some(value) } else { None }).collect();
    let titles: Vec<String> = match documents {
        [alone] => vec![title(alone)],
        several => several.iter().map(title_beside).collect(),
    };
    // Runs of one program have it once.
    let mut subjects: Vec<String> = Vec::new();
    for document in documents {
        let subject = title(document);
        if !matches!(document, Document::Run(_)) || !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    let heading = subjects.join(", ");
    let mut body = html::title(&heading);
    body += &html::method(&format!("Written by nearfar {}.", env!("CARGO_PKG_VERSION")));
    if !told.is_empty() {
        body += &html::verbatim(&told.join("\n"));
    }
    if titles.len() > 1 {
        body += &html::contents(&titles);
    }
    if run_files.len() > 1 {
        body += &html::part(None, "Runs by near memory");
        body += &runs::table_of(&run_files);
    }
    if let Some((first, rest)) = nodes.split_first()
        && !others.is_empty()
    {
        body += &html::part(None, "Side by side");
        body += &others.iter().map(|other| html::conclusion(&answers::beside(first, other), &[])).collect::<String>();
        body += &beside::ratios(first, &others);
        body += &rest.iter().map(|other| beside::differences(first, other)).collect::<String>();
    }
    let first = nodes.first().copied();
    for (number, (document, title)) in documents.iter().zip(&titles).enumerate() {
        // Alone on the page, it has the page's title.
        if titles.len() > 1 || !others.is_empty() {
            body += &html::part(Some(number), title);
        }
        match document {
            // The first machine's roofline has the roofs of the next beside its own.
            Document::Node(node) => {
                let beside = others.first().copied().filter(|_| first.is_some_and(|first| std::ptr::eq(first, &**node)));
                body += &machine_part(number, node, beside);
            }
            Document::Run(value) => body += &run::sections(value),
            Document::Advice(file) => body += &advice::sections(file),
            Document::Suite(file) => body += &suite::sections(number, file),
            Document::Profile(summary) => body += &profile::sections(summary, first),
        }
    }
    let whole = if documents.iter().any(|document| matches!(document, Document::Suite(_))) { interactive } else { page };
    whole(&format!("nearfar: {heading}"), &body)
}

fn title(document: &Document) -> String {
    match document {
        Document::Node(node) if node.name.is_empty() => "A machine without a name".to_owned(),
        Document::Node(node) => node.name.clone(),
        Document::Run(value) => run::title(value),
        Document::Profile(summary) => profile::title(summary),
        Document::Advice(file) => advice::title(file),
        Document::Suite(file) => suite::title(file),
    }
}

/// As [`title`], where there are others: several runs of one program are told apart by near memory.
fn title_beside(document: &Document) -> String {
    match document {
        Document::Run(value) => format!("{}, near {}", title(document), runs::near(value)),
        _ => title(document),
    }
}

fn machine_part(number: usize, node: &Node, beside: Option<&Node>) -> String {
    let mut body = html::conclusion(&answers::machine(node), &[]);
    if !node.about.is_empty() {
        body += &html::paragraph(&node.about);
    }
    let mut wanting: Vec<&str> = Vec::new();
    let mut charts = String::new();
    for chart in chart::all(node, beside) {
        match chart.svg {
            Some(svg) => charts += &format!("<figure id=\"part{number}-{}\">{svg}</figure>\n", chart.name),
            None if !wanting.contains(&chart.wants) => wanting.push(chart.wants),
            None => {}
        }
    }
    body += &charts;
    if !wanting.is_empty() {
        body += &html::method(&format!("No chart of: {} (not measured).", wanting.join(", ")));
    }
    body + &machine::sections(node) + &measured::sections(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::preset;
    use nearfar_core::node::{Finding, Missing};

    fn document(node: Node) -> Document {
        Document::Node(Box::new(node))
    }

    #[test]
    fn a_page_for_each_preset_alone_and_for_all_together() {
        let all: Vec<Document> = preset::names().map(|name| document(preset::find(name).expect("found"))).collect();
        for one in &all {
            let html = render(std::slice::from_ref(one), None, &[]);
            assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
            assert!(html.contains("<svg") && !html.contains("<script"));
        }
        let together = render(&all, None, &[]);
        assert!(together.contains("Side by side") && together.matches("<h2").count() == all.len() + 1);
    }

    #[test]
    fn nothing_from_a_file_becomes_markup() {
        let evil = "\"><script>alert('x')</script><img src=x onerror=y>";
        let mut node = preset::find("knl-flat").expect("found");
        node.name = evil.to_owned();
        node.about = evil.to_owned();
        node.topology.cpu_model = evil.to_owned();
        node.topology.kernel = evil.to_owned();
        node.findings.push(Finding { value: evil.to_owned(), evidence: vec![evil.to_owned()], ..Finding::default() });
        node.missing.push(Missing { what: evil.to_owned(), why: evil.to_owned() });
        for row in &mut node.bandwidth {
            row.rate.source = Some(evil.to_owned());
            row.rate.why = evil.to_owned();
        }
        let run = serde_json::json!({ "program": evil, "args": [evil], "far": evil, "derived": { evil: evil }, "counters": { evil: 1 } });
        let html = render(&[document(node), document(preset::find("imdt").expect("found")), Document::Run(run)], None, &[]);
        assert!(!html.contains("<script") && !html.contains("<img"));
        assert!(html.contains("&lt;script&gt;"));
        // A suite brings scripts, and no others than its own: data, library, board.
        let mut file = suite::sample_file();
        file.machine.cpu = evil.to_owned();
        file.works[0].name = evil.to_owned();
        let html = render(&[Document::Suite(Box::new(file))], None, &[]);
        assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (3, 3));
        assert!(!html.contains("<img") && !html.contains("<script>alert"));
    }

    #[test]
    fn runs_of_one_program_are_told_apart_by_near() {
        let run = |near: u64| Document::Run(serde_json::json!({ "program": "/bin/x", "near_bytes": near << 20 }));
        let html = render(&[run(204), run(136)], None, &["half <slow>".to_owned()]);
        for words in
            ["<h1>/bin/x</h1>", "half &lt;slow&gt;", "Runs by near memory", "/bin/x, near 204 MiB", "/bin/x, near 136 MiB"]
        {
            assert!(html.contains(words), "no \"{words}\" in {html}");
        }
        assert!(!render(&[run(204)], None, &[]).contains(", near"), "alone it needs no more than its name");
    }

    #[test]
    fn a_machine_with_nothing_measured_is_a_page_too() {
        let html = render(&[document(Node::default())], None, &[]);
        assert!(html.contains("A machine without a name") && html.contains("No chart of: bandwidth, latency under load"));
    }
}
