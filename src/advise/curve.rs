//! Run time against bytes of near: how much near memory is worth having.

use crate::ui::chart::axis::{self, Axis, Scale};
use crate::ui::chart::plot::{Frame, Line, draw as draw_plot};
use crate::ui::chart::svg::{Look, cut};
use nearfar_core::advise::advice::{Advice, Point};
use nearfar_core::advise::machine::Machine;
use nearfar_core::profile::summary::Summary;
use nearfar_core::units::Bytes;

fn words(seconds: f64) -> String {
    format!("{} s", axis::short(seconds))
}

/// The chart; `None` when there is nothing to draw.
pub fn draw(summary: &Summary, machine: &Machine, advice: &Advice, near: f64) -> Option<String> {
    let line = |label: &str, colour: usize, of: fn(&Point) -> f64| Line {
        label: label.to_owned(),
        points: advice.curve.iter().map(|point| (point.near, of(point))).collect(),
        look: Look { colour, dashes: 0, thin: false },
        marks: true,
        ..Line::default()
    };
    let lines = [line("objects by plan", 0, |point| point.plan), line("cache mode", 1, |point| point.cache)];
    let all = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::spanning("near memory", Scale::Linear, all().map(|point| point.0), axis::size)?;
    let y = Axis::spanning("predicted run time", Scale::Linear, all().map(|point| point.1), words)?;
    let title = format!("Run time of {} by near memory on {}", cut(&summary.program, 40), cut(&machine.name, 24));
    let times = &advice.times;
    let notes = [
        format!("Far: {}. Predicted from a profile; nothing was run.", cut(machine.far_name(), 60)),
        format!(
            "With {}: {:.1} s by plan, {:.1} to {:.1} in 9 of 10 cases.",
            Bytes(near as u64),
            times.plan.value,
            times.plan.low,
            times.plan.high
        ),
    ];
    Some(draw_plot(&Frame::new(x, y), &title, &lines, &notes))
}
