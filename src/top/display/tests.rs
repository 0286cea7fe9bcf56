//! Screens as they are drawn, at the sizes that people have.

use super::*;
use crate::top::watched::tests::busy;
use crate::ui::screen::Key;
use nearfar_sys::root::Root;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const COLOURS: Look = Look { colour: true, interval: Duration::from_secs(1), now_ns: 5_000_000_000 };

fn jobs(count: u64) -> Jobs {
    let mut jobs = Jobs::new(Root::captured("").expect("a capture"));
    jobs.list = (1..=count).map(|id| busy(id, "./stream")).collect();
    jobs
}

fn drawn(jobs: &Jobs, choice: &Choice, look: Look, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, jobs, choice, look)).expect("drawn");
    terminal
}

/// What stands on the screen, a line each.
fn screen(jobs: &Jobs, choice: &Choice, size: (u16, u16)) -> Vec<String> {
    let terminal = drawn(jobs, choice, COLOURS, size);
    let cells = terminal.backend().buffer().content();
    cells.chunks(size.0.into()).map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

#[test]
fn nothing_is_cut_at_80_by_24() {
    let lines = screen(&jobs(2), &Choice::default(), (80, 24));
    let text = lines.join("\n");
    for part in [
        "nearfar top   2 jobs   near 1.6G of 1.6G   by PID   every 1 s",
        "PID PROGRAM          NEAR/BUDGET  HIT% MISS/s IN MB/s OUT MB/s WAIT% GRAIN",
        ">    4711 stream             799M/800M  75.0   1.2k    1500      250   125   64K",
        "     4712 stream             799M/800M  75.0   1.2k    1500      250   125   64K",
        "┌ 4711: ./stream --size 4G ─",
        "799.0 MiB of 800.0 MiB, 12.0 MiB of it tables",
        "busy 93.0 %, depth 7.8, /var/tmp",
        "threads waited 1.2 s",
        "q end   up/down select",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains('…'), "{text}");
}

#[test]
fn more_room_shows_more() {
    let text = screen(&jobs(12), &Choice::default(), (120, 40)).join("\n");
    for title in [
        "PID",
        "PROGRAM",
        "NEAR/BUDGET",
        "HIT%",
        "MISS/s",
        "IN MB/s",
        "OUT MB/s",
        "WAIT%",
        "GRAIN",
        "BUSY%",
        "DEPTH",
        "PROCS",
        "FAR",
    ] {
        assert!(text.contains(title), "{title}\n{text}");
    }
    assert!((4711..4723).all(|pid| text.contains(&pid.to_string())) && text.contains("/var/tmp"), "{text}");
    assert!(!text.contains('…'), "{text}");
}

#[test]
fn the_selected_job_is_in_sight() {
    let (jobs, mut choice) = (jobs(30), Choice::default());
    for _ in 0..25 {
        choice.press(Key::Down, &jobs.list);
    }
    let lines = screen(&jobs, &choice, (80, 24));
    let selected: Vec<&String> = lines.iter().filter(|line| line.starts_with('>')).collect();
    assert!(selected.len() == 1 && selected[0].contains(" 4736 "), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(" 4736: ./stream")), "{lines:#?}");
}

#[test]
fn ended_paused_help_and_no_jobs() {
    let mut two = jobs(2);
    two.list[0].ended_ns = Some(1_000_000_000);
    let mut choice = Choice::default();
    let text = screen(&two, &choice, (80, 24)).join("\n");
    assert!(
        text.contains("1 job ") && text.contains("stream (ended)") && text.contains("(ended 4 s ago: its last figures)"),
        "{text}"
    );
    choice.press(Key::Char('p'), &two.list);
    assert!(screen(&two, &choice, (80, 24))[0].contains("PAUSED"));
    choice.press(Key::Char('?'), &two.list);
    let text = screen(&two, &choice, (80, 24)).join("\n");
    assert!(help::LINES.iter().all(|line| text.contains(line)), "{text}");
    let none = screen(&jobs(0), &Choice::default(), (80, 24)).join("\n");
    assert!(none.contains("No job of nearfar runs") && none.contains("nearfar run --near 2G -- PROGRAM"), "{none}");
}

#[test]
fn jobs_that_cannot_be_read_are_named() {
    let mut none = jobs(0);
    none.unreadable.push((77, "it is of another version".into()));
    assert!(screen(&none, &Choice::default(), (80, 24))[23].contains("process 77: a job that cannot be read: it is of another"));
    assert!(table(&none, None).contains("process 77: a job that cannot be read"));
}

#[test]
fn every_size_is_drawn() {
    let jobs = jobs(9);
    for (width, height) in [(1, 1), (39, 24), (40, 8), (60, 12), (80, 5), (300, 100)] {
        let lines = screen(&jobs, &Choice::default(), (width, height));
        assert!(width < 40 || height < 8 || lines[1].contains("PID"), "{lines:#?}");
    }
}

#[test]
fn without_colours_there_are_none() {
    let colours = |look: Look| {
        let terminal = drawn(&jobs(2), &Choice::default(), look, (80, 24));
        terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(colours(COLOURS) && !colours(Look { colour: false, ..COLOURS }));
}

#[test]
fn the_table_of_once() {
    let mut jobs = jobs(2);
    jobs.list[1].program.name = "/bin/a-name-that-is-longer-than-any-column-of-a-terminal".into();
    let full = table(&jobs, None);
    assert!(
        full.lines().count() == 3 && full.contains("longer-than-any-column-of-a-terminal ") && full.contains("FAR"),
        "{full}"
    );
    let narrow = table(&jobs, Some(80));
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80) && narrow.contains("a-name-") && narrow.contains("WAIT%"),
        "{narrow}"
    );
    assert!(table(&self::jobs(0), None).starts_with("No job of nearfar runs"));
}
