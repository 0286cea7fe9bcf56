//! Why an object is where the plan has it, in a sentence.

use super::demand::Demand;
use super::machine::{Far, Machine};
use crate::profile::record::Kind;
use crate::profile::summary::{Estimate, ObjectGroup, Pattern};
use crate::units::Bytes;

/// What gains a smaller share of the run gains nothing.
pub const NO_GAIN: f64 = 1e-3;
/// What gains a smaller share of the run may be left out of a plan.
const LITTLE: f64 = 1e-2;
/// From this share on a group has a rule.
pub const WORTH_A_RULE: f64 = 0.02;
/// So many of the objects that a rule cannot tell apart are named.
const MOST_NAMED: usize = 3;

/// What the reason depends on beside the group.
pub struct Context<'a> {
    /// The whole program fits in near.
    pub fits: bool,
    /// Bytes from and to memory, of all groups.
    pub total: f64,
    /// Predicted seconds of the run with everything far.
    pub all_far: f64,
    /// What is asked about.
    pub machine: &'a Machine,
    /// A rule can name it.
    pub named: bool,
    /// Names of objects that no rule can tell from it.
    pub with: &'a [String],
}

/// Why `share` of `group` is near, where objects have `room` bytes.
pub fn why(group: &ObjectGroup, demand: &Demand, share: f64, gain: &Estimate, room: f64, context: &Context<'_>) -> String {
    let mut why = reason(group, demand, share, gain, room, context);
    if let [named @ .., _] = context.with {
        let (named, more) = named.split_at(named.len().min(MOST_NAMED - 1));
        let last =
            if more.is_empty() { context.with.last().cloned().unwrap_or_default() } else { format!("{} more", more.len() + 1) };
        let names: Vec<&str> = named.iter().map(String::as_str).chain([last.as_str()]).collect();
        why += &format!(
            "; no rule can tell it from {}: they go near together or not at all, and the gain is for all",
            names.join(", ")
        );
    }
    why
}

fn reason(group: &ObjectGroup, demand: &Demand, share: f64, gain: &Estimate, room: f64, context: &Context<'_>) -> String {
    let traffic = group.total().value;
    let pattern = match group.pattern {
        Pattern::Stream => "in order",
        Pattern::Strided => "with strides",
        Pattern::Random => "without order",
        Pattern::Unknown => "in an unknown order",
    };
    let size = |bytes: f64| Bytes(bytes as u64);
    let used = match &context.machine.far {
        Far::Memory(_) => {
            let percent = 100.0 * traffic / context.total.max(1.0);
            format!("{} from and to memory ({percent:.0} % of all), {pattern}", size(traffic))
        }
        Far::Paged(_) => format!("{:.0} visits to its pages, {pattern}", group.page_visits.value),
    };
    let by = group.routines.first().map_or_else(String::new, |(name, _)| format!(", by {name}"));
    let paged = matches!(context.machine.far, Far::Paged(_));
    if paged && !demand.pageable {
        return "is never paged".to_owned();
    }
    if demand.is_idle() {
        return "no use of it was seen".to_owned();
    }
    if gain.value < NO_GAIN * context.all_far {
        let cached = !paged && traffic < 64.0 * group.page_visits.value;
        return if cached { "it stays in the processor's caches".to_owned() } else { format!("gains nothing: {used}") };
    }
    if !context.named {
        let lacks = match group.kind {
            Kind::Static => "a static array without a symbol",
            Kind::ThreadLocal => "thread-local",
            _ => "its call site is not known",
        };
        return format!("no rule can name it ({lacks}), so it stays far; {used}");
    }
    if share >= 1.0 - 1e-9 {
        let fits = if context.fits { "everything fits; " } else { "" };
        return format!("{fits}{used}{by}");
    }
    if share > WORTH_A_RULE {
        return format!("there is room for {:.0} % of it; {used}{by}", 100.0 * share);
    }
    if gain.value < LITTLE * context.all_far && demand.peak <= room {
        return format!("gains too little for a rule; {used}");
    }
    if demand.live.iter().any(|&live| live > room) {
        return format!("does not fit: {} of {}; {used}", size(demand.peak), size(room.max(0.0)));
    }
    format!("others gain more with these bytes; {used}")
}
