//! SVG text: shapes in, one element with its own style out. Colours are classes, so that the same chart suits light and dark pages; a
//! line is told by dashes, markers and a label as well, since colours vanish in print and for some eyes.

use std::fmt::Write;

/// Colours that a line can have.
pub const COLOURS: usize = 7;

/// Text as XML and HTML need it. Characters that XML forbids become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Width of `text` in pixels at the size that charts use, rather too much: fonts differ.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.7
}

/// At most `most` characters of `text`.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Number of the colour.
    pub colour: usize,
    /// Number of the dash pattern: 0 is solid.
    pub dashes: usize,
    /// Thin, for what is not measured or only there for comparison.
    pub thin: bool,
}

impl Look {
    /// Of line number `number`: each has a colour, and when these are used up a colour with dashes.
    pub const fn of(number: usize) -> Self {
        Self { colour: number % COLOURS, dashes: number / COLOURS, thin: false }
    }
}

const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// Where text is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its first letter.
    Start,
    /// In the middle.
    Middle,
    /// At its last letter.
    End,
}

/// A drawing under way.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

impl Svg {
    /// An empty drawing of so many pixels.
    pub fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    fn put(&mut self, words: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.body.write_fmt(words);
        self.body.push('\n');
    }

    /// A line of the frame or grid; `class` is "axis", "grid", "fine" or "leader".
    pub fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"));
    }

    /// A line through points.
    pub fn polyline(&mut self, look: Look, points: &[(f64, f64)]) {
        let colour = look.colour % COLOURS;
        let dashes = DASHES[look.dashes % DASHES.len()];
        let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        let width = if look.thin { 1.2 } else { 2.0 };
        let points = list(points);
        self.put(format_args!("<polyline class=\"line c{colour}\" stroke-width=\"{width}\"{dashes} points=\"{points}\"/>"));
    }

    /// A filled area, faint.
    pub fn area(&mut self, look: Look, points: &[(f64, f64)]) {
        let points = list(points);
        self.put(format_args!("<polygon class=\"area f{}\" points=\"{points}\"/>", look.colour % COLOURS));
    }

    /// A filled rectangle between two corners: a piece of a bar. Colours that come back are fainter.
    pub fn block(&mut self, look: Look, from: (f64, f64), to: (f64, f64)) {
        let (colour, faint) = (look.colour % COLOURS, if look.dashes > 0 { " faint" } else { "" });
        let (width, height) = ((to.0 - from.0).max(0.0), (to.1 - from.1).max(0.0));
        self.put(format_args!(
            "<rect class=\"block f{colour}{faint}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
            from.0, from.1
        ));
    }

    /// A small mark whose shape goes with the colour.
    pub fn marker(&mut self, look: Look, at: (f64, f64)) {
        let (x, y) = at;
        let colour = look.colour % COLOURS;
        match colour % 4 {
            0 => self.put(format_args!("<circle class=\"mark f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\"/>")),
            1 => self.put(format_args!(
                "<rect class=\"mark f{colour}\" x=\"{:.1}\" y=\"{:.1}\" width=\"6\" height=\"6\"/>",
                x - 3.0,
                y - 3.0
            )),
            shape => {
                let up = if shape == 2 { -4.0 } else { 4.0 };
                let points = list(&[(x - 4.0, y - up * 0.8), (x + 4.0, y - up * 0.8), (x, y + up)]);
                self.put(format_args!("<polygon class=\"mark f{colour}\" points=\"{points}\"/>"));
            }
        }
    }

    /// Text; `class` is "" or "title", "small", "axis-label".
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.turned_text(class, at, anchor, 0.0, text);
    }

    /// Text in the colour of a line, turned by `degrees` around its first letter.
    pub fn line_label(&mut self, look: Look, at: (f64, f64), degrees: f64, text: &str) {
        self.turned_text(&format!("k{}", look.colour % COLOURS), at, Anchor::Start, degrees, text);
    }

    /// Text that is turned by `degrees` around its anchor. What is behind it is covered, so that it can be read over lines.
    pub fn turned_text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, degrees: f64, text: &str) {
        let (x, y) = at;
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = if degrees == 0.0 { String::new() } else { format!(" transform=\"rotate({degrees:.2} {x:.1} {y:.1})\"") };
        let text = escape(text);
        for layer in ["halo", "ink"] {
            self.put(format_args!(
                "<text class=\"{layer} {class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{text}</text>"
            ));
        }
    }

    /// The whole drawing, with a name for those who cannot see it.
    pub fn finish(self, name: &str) -> String {
        let Self { body, width, height } = self;
        let name = escape(name);
        format!(
            "<svg class=\"nf\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{name}\">\n<title>{name}</title>\n<style>\n{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n{body}</svg>\n"
        )
    }
}

fn list(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Plain rules rather than variables: viewers other than browsers know no variables. They also leave out what is under `@media`.
const STYLE: &str = "\
.nf{font:12px 'Helvetica Neue',Arial,'Liberation Sans',sans-serif}
.nf .paper{fill:#fff}.nf .ink{fill:#1b1f24}.nf .halo{fill:#fff;stroke:#fff;stroke-width:4;stroke-linejoin:round}
.nf .title{font-size:15px;font-weight:bold}.nf .small{font-size:12px}
.nf .axis{stroke:#1b1f24}.nf .grid{stroke:#d5d9de}.nf .fine{stroke:#eef0f2}.nf .leader{stroke:#8a929b;stroke-width:.8}
.nf .line{fill:none;stroke-linejoin:round}.nf .area{opacity:.15;stroke:none}.nf .block{opacity:.85;stroke:none}.nf .faint{opacity:.45}
.nf .c0{stroke:#0b5cad}.nf .c1{stroke:#b3420b}.nf .c2{stroke:#1d7a3d}.nf .c3{stroke:#8a2a8f}.nf .c4{stroke:#8a6a00}.nf .c5{stroke:#0d7a80}.nf .c6{stroke:#4d545c}
.nf .f0{fill:#0b5cad}.nf .f1{fill:#b3420b}.nf .f2{fill:#1d7a3d}.nf .f3{fill:#8a2a8f}.nf .f4{fill:#8a6a00}.nf .f5{fill:#0d7a80}.nf .f6{fill:#4d545c}
.nf .ink.k0{fill:#0b5cad}.nf .ink.k1{fill:#b3420b}.nf .ink.k2{fill:#1d7a3d}.nf .ink.k3{fill:#8a2a8f}.nf .ink.k4{fill:#8a6a00}.nf .ink.k5{fill:#0d7a80}.nf .ink.k6{fill:#4d545c}
@media screen and (prefers-color-scheme:dark){
.nf .paper{fill:#14171a}.nf .ink{fill:#e6e9ec}.nf .halo{fill:#14171a;stroke:#14171a}
.nf .axis{stroke:#c3c9cf}.nf .grid{stroke:#363c43}.nf .fine{stroke:#21262b}.nf .leader{stroke:#747c85}
.nf .c0{stroke:#6cb2f7}.nf .c1{stroke:#f5945c}.nf .c2{stroke:#6fcf8e}.nf .c3{stroke:#da8be0}.nf .c4{stroke:#dcb949}.nf .c5{stroke:#5fcfd6}.nf .c6{stroke:#aeb6be}
.nf .f0{fill:#6cb2f7}.nf .f1{fill:#f5945c}.nf .f2{fill:#6fcf8e}.nf .f3{fill:#da8be0}.nf .f4{fill:#dcb949}.nf .f5{fill:#5fcfd6}.nf .f6{fill:#aeb6be}
.nf .ink.k0{fill:#6cb2f7}.nf .ink.k1{fill:#f5945c}.nf .ink.k2{fill:#6fcf8e}.nf .ink.k3{fill:#da8be0}.nf .ink.k4{fill:#dcb949}.nf .ink.k5{fill:#5fcfd6}.nf .ink.k6{fill:#aeb6be}
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_files_cannot_become_markup() {
        assert_eq!(escape("<script>\"&'\u{0}\u{1b}"), "&lt;script&gt;&quot;&amp;&#39;\u{fffd}\u{fffd}");
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("", (1.0, 1.0), Anchor::Start, "</text><script>");
        assert!(!svg.finish("<b>").contains("<script>"));
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
