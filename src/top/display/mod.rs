//! What is drawn: a list of jobs, the selected one in full, the keys. Sized for 80 columns and 24 lines; more room shows more.
//!
//! Pure: it draws what it is given. Colours are the terminal's own and never say anything that words do not say as well. Modules are
//! listed lowest first.

mod details;
mod help;

use crate::top::choice::Choice;
use crate::top::columns::{Column, MARK, fit};
use crate::top::display::details::Row;
use crate::top::figures::{bytes, cut};
use crate::top::jobs::Jobs;
use crate::top::watched::Watched;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::time::Duration;

/// Smaller terminals show nothing useful.
const LEAST: (u16, u16) = (40, 8);
/// What to do where there is no job.
const NONE: [&str; 4] = [
    "No job of nearfar runs, or none that you may see: other users' are shown to root.",
    "",
    "Start one, in another terminal:",
    "    nearfar run --near 2G -- PROGRAM ARGUMENTS",
];

/// How it is drawn.
#[derive(Clone, Copy)]
pub struct Look {
    /// In colours.
    pub colour: bool,
    /// Between two looks.
    pub interval: Duration,
    /// The time, on the clock of the jobs.
    pub now_ns: u64,
}

impl Look {
    fn chart(self) -> Style {
        if self.colour { Style::new().fg(Color::Cyan) } else { Style::new() }
    }
}

/// Draws all of it.
pub fn draw(frame: &mut Frame, jobs: &Jobs, choice: &Choice, look: Look) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("{}x{} is too small: {}x{} at least", area.width, area.height, LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let line = |y: u16| Rect { y, height: 1, ..area };
    frame.render_widget(head(jobs, choice, look, area.width.into()), line(0));
    frame.render_widget(foot(jobs, area.width.into()), line(area.height - 1));
    let body = Rect { y: 1, height: area.height - 2, ..area };
    if choice.help {
        let lines: Vec<Line> = help::LINES.into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Help ")), body);
    } else if jobs.list.is_empty() {
        let lines: Vec<Line> = std::iter::once("").chain(NONE).map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines).wrap(ratatui::widgets::Wrap { trim: false }), body);
    } else {
        draw_jobs(frame, body, jobs, choice, look);
    }
}

fn draw_jobs(frame: &mut Frame, area: Rect, jobs: &Jobs, choice: &Choice, look: Look) {
    let ordered = choice.ordered(&jobs.list);
    let selected = choice.place(&ordered);
    let (height, width) = (usize::from(area.height), usize::from(area.width));
    // A third for the list at the least, and half where more jobs need it.
    let most = (height / 3).max(height.saturating_sub(17)).max(2);
    let shown = ordered.len().min(most);
    let first = (selected + 1).saturating_sub(shown).min(ordered.len() - shown);
    let columns = fit(width);
    let mut lines = vec![titles(&columns, choice.sorted_by())];
    let rows = ordered.iter().enumerate().skip(first).take(shown);
    lines.extend(rows.map(|(place, job)| row(job, &columns, place == selected, width)));
    let list = Rect { height: lines.len() as u16, ..area };
    frame.render_widget(Paragraph::new(lines), list);
    let rest = Rect { y: area.y + list.height, height: area.height - list.height, ..area };
    if rest.height > 2 {
        draw_details(frame, rest, ordered[selected], look);
    }
}

fn draw_details(frame: &mut Frame, area: Rect, job: &Watched, look: Look) {
    let inner = (usize::from(area.width) - 2, usize::from(area.height) - 2);
    let chart = |Row { text, chart_from }: Row| match chart_from {
        Some(from) => {
            let at = text.char_indices().nth(from).map_or(text.len(), |(at, _)| at);
            let is_bar = |c: char| c == ' ' || ('▁'..='█').contains(&c) || c == '░';
            let end = text[at..].find(|c| !is_bar(c)).map_or(text.len(), |end| at + end);
            let words = |part: &str| Span::raw(part.to_owned());
            Line::from(vec![words(&text[..at]), Span::styled(text[at..end].to_owned(), look.chart()), words(&text[end..])])
        }
        None => Line::from(text),
    };
    let lines: Vec<Line> = details::rows(job, inner.0, inner.1).into_iter().map(chart).collect();
    let block = Block::bordered().title(details::title(job, look.now_ns, inner.0));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn head(jobs: &Jobs, choice: &Choice, look: Look, width: usize) -> Line<'static> {
    let running = || jobs.list.iter().filter(|job| job.ended_ns.is_none());
    // Figures of other users' jobs may be anything.
    let near = running().filter_map(Watched::near_used).fold(0, u64::saturating_add);
    let budget = running().map(|job| job.seen.near_bytes).fold(0, u64::saturating_add);
    let (count, seconds) = (running().count(), look.interval.as_secs_f64());
    let plural = if count == 1 { "job" } else { "jobs" };
    let paused = if choice.paused { "   PAUSED (p: go on)" } else { "" };
    let near = if count > 0 { format!("   near {} of {}", bytes(near), bytes(budget)) } else { String::new() };
    let text = format!("nearfar top   {count} {plural}{near}   by {}   every {seconds} s{paused}", choice.sorted_by().title());
    Line::styled(cut(&text, width), Modifier::BOLD)
}

fn foot(jobs: &Jobs, width: usize) -> Line<'static> {
    let keys = "q end   up/down select   s sort   r reverse   p pause   ? help";
    match jobs.unreadable.as_slice() {
        [] => Line::from(cut(keys, width)),
        [(pid, why), rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            Line::from(cut(&format!("process {pid}: a job that cannot be read{more}: {why}"), width))
        }
    }
}

fn titles(columns: &[(Column, usize)], sorted_by: Column) -> Line<'static> {
    let mut spans = vec![Span::raw(" ".repeat(MARK))];
    for &(column, width) in columns {
        let style = if column == sorted_by { Modifier::BOLD | Modifier::UNDERLINED } else { Modifier::BOLD };
        let title = column.title();
        let space = Span::raw(" ".repeat(width.saturating_sub(title.len())));
        let title = Span::styled(title, style);
        spans.extend(if column.is_right() { [space, title] } else { [title, space] });
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn row(job: &Watched, columns: &[(Column, usize)], selected: bool, width: usize) -> Line<'static> {
    let mark = if selected { "> " } else { "  " };
    let cells: Vec<String> = columns.iter().map(|&(column, width)| column.cell(job, width)).collect();
    let text = format!("{mark}{}", cells.join(" "));
    let style = match (selected, job.ended_ns) {
        (true, _) => Modifier::REVERSED,
        (false, Some(_)) => Modifier::DIM,
        (false, None) => Modifier::empty(),
    };
    Line::styled(format!("{text:<width$}"), style)
}

/// The table of `--once`; with `width` cut to that of a terminal, in full without.
pub fn table(jobs: &Jobs, width: Option<usize>) -> String {
    let ordered = Choice::default().ordered(&jobs.list);
    let columns = fit(width.unwrap_or(usize::from(u16::MAX)));
    let line = |cells: Vec<String>| cells.join(" ").trim_end().to_owned() + "\n";
    let widths = |&(column, most): &(Column, usize)| {
        let longest = ordered.iter().map(|job| column.text(job).chars().count()).max().unwrap_or(0);
        (column, longest.max(column.title().len()).min(most))
    };
    let columns: Vec<(Column, usize)> = columns.iter().map(widths).collect();
    let mut text = String::new();
    if ordered.is_empty() {
        text += &format!("{}\n{} {}\n", NONE[0], NONE[2], NONE[3].trim_start());
    } else {
        text += &line(columns.iter().map(|&(column, width)| column.aligned(column.title(), width)).collect());
    }
    for job in ordered {
        text += &line(columns.iter().map(|&(column, width)| column.cell(job, width)).collect());
    }
    for (pid, why) in &jobs.unreadable {
        text += &format!("process {pid}: a job that cannot be read: {why}\n");
    }
    text
}

#[cfg(test)]
mod tests;
