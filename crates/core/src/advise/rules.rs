//! The plan of what was chosen: rules that find the same objects again, in the next run and in the next build.
//!
//! A rule names as few frames as tell its group from others: each frame more is one that a compiler may inline or a programmer may
//! rename. Where functions alone do not tell groups apart (the same function allocates several arrays) sizes help, since offsets
//! hold for one build only.

use crate::placement::is_wrapper;
use crate::placement::plan::{Frame, KindName, MOST_FRAMES, Place, TierName};
use crate::profile::record::Kind;
use crate::profile::summary::{NamedFrame, ObjectGroup};

/// Frames of a rule at the most, from the one that asked for the memory on.
const DEEPEST: usize = 12;

/// What finds `group`; `all` are the groups it must be told from. `None`: nothing does (its site is not known).
pub fn place(group: &ObjectGroup, all: &[ObjectGroup], least_recorded: u64) -> Option<Place> {
    let place = Place { tier: TierName::Near, name: group.name.clone(), ..Place::default() };
    match group.kind {
        Kind::Heap | Kind::Map => of_site(group, all, place),
        Kind::Static if group.symbol.is_empty() => None,
        // No rule can name it.
        Kind::ThreadLocal => None,
        Kind::Static => {
            let module = group.frames.first().map(|frame| frame.module.clone()).filter(|module| !module.is_empty());
            Some(Place { kind: KindName::Static, symbol: Some(group.symbol.clone()), module, ..place })
        }
        Kind::MainStack | Kind::ThreadStack => Some(Place { kind: KindName::Stack, ..place }),
        Kind::SmallBlocks => {
            let most = least_recorded.max(2) - 1;
            Some(Place { most: Some(most.to_string()), ..place })
        }
    }
}

/// A frame that whoever follows the plan looks at.
struct Seen<'a> {
    frame: &'a NamedFrame,
    /// It stands in the next one, and has no return address of its own.
    inlined: bool,
    /// It only hands on what the frames behind it ask for.
    hands_on: bool,
}

/// The frames of a stack as whoever follows the plan sees them: it goes past the same libraries, and past no other function.
fn seen(group: &ObjectGroup) -> Vec<Seen<'_>> {
    let handed_on = group.handed_on.iter().skip_while(|frame| is_wrapper(frame.module.as_bytes())).map(|frame| (frame, true));
    let all: Vec<_> = handed_on.chain(group.frames.iter().map(|frame| (frame, false))).collect();
    let seen = all.iter().enumerate().map(|(at, &(frame, hands_on))| {
        let unnamed = frame.symbol.is_empty() && !frame.function.is_empty();
        let inlined = unnamed && all.get(at + 1).is_some_and(|(next, _)| same_address(frame, next));
        Seen { frame, inlined, hands_on }
    });
    seen.filter(|seen| !(seen.inlined && seen.hands_on)).collect()
}

/// Those that have a return address of their own, and how many of them hand on.
fn physical(group: &ObjectGroup) -> (Vec<&NamedFrame>, usize) {
    let seen = seen(group);
    let handing_on = seen.iter().filter(|seen| seen.hands_on).count();
    let own = seen.iter().filter(|seen| !seen.inlined).map(|seen| seen.frame);
    (own.take(handing_on + DEEPEST).collect(), handing_on)
}

/// The groups as plans can tell them apart, by number: each set is near as a whole or not at all, since a rule for one of it finds
/// objects of the others. What no rule finds is in none.
pub fn sets(all: &[ObjectGroup], least_recorded: u64) -> Vec<Vec<usize>> {
    let places: Vec<Option<Place>> = all.iter().map(|group| place(group, all, least_recorded)).collect();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for at in (0..all.len()).filter(|&at| places[at].is_some()) {
        let finds = |one: usize, other: usize| places[one].as_ref().is_some_and(|place| fits(place, &all[one], &all[other]));
        let is_of = |set: &Vec<usize>| set.iter().any(|&other| finds(at, other) || finds(other, at));
        let (joined, rest): (Vec<_>, Vec<_>) = sets.into_iter().partition(is_of);
        let mut set = joined.concat();
        set.push(at);
        set.sort_unstable();
        sets = rest;
        sets.push(set);
    }
    sets.sort_unstable();
    sets
}

/// Whether the rule `place`, which is that of `own`, finds objects of `other` too, in the build that was profiled.
fn fits(place: &Place, own: &ObjectGroup, other: &ObjectGroup) -> bool {
    match own.kind {
        Kind::Heap | Kind::Map => {}
        Kind::Static => {
            let module = other.frames.first().map(|frame| &frame.module);
            let is_there = place.module.is_none() || place.module.as_ref() == module;
            return other.kind == Kind::Static && own.symbol == other.symbol && is_there;
        }
        Kind::MainStack | Kind::ThreadStack => return matches!(other.kind, Kind::MainStack | Kind::ThreadStack),
        Kind::SmallBlocks => return other.kind == Kind::SmallBlocks,
        Kind::ThreadLocal => return false,
    }
    let depth = place.frame.iter().filter(|frame| !frame.inlined).count();
    let (ours, theirs) = (physical(own).0, physical(other).0);
    let same = theirs.len() >= depth && ours.iter().zip(&theirs).take(depth).all(|(a, b)| same_address(a, b));
    own.kind == other.kind && same && !(place.least.is_some() && are_apart(own, other))
}

fn same_address(a: &NamedFrame, b: &NamedFrame) -> bool {
    (&a.module, &a.build_id, a.offset) == (&b.module, &b.build_id, b.offset)
}

/// No size is one of both.
fn are_apart(one: &ObjectGroup, other: &ObjectGroup) -> bool {
    other.most < one.least || other.least > one.most
}

fn of_site(group: &ObjectGroup, all: &[ObjectGroup], place: Place) -> Option<Place> {
    let (own, handing_on) = physical(group);
    if own.is_empty() {
        return None;
    }
    let others: Vec<(&ObjectGroup, Vec<&NamedFrame>)> = all
        .iter()
        .filter(|other| other.kind == group.kind && !std::ptr::eq(*other, group))
        .map(|other| (other, physical(other).0))
        .collect();
    let alike = |depth: usize, same: &dyn Fn(&NamedFrame, &NamedFrame) -> bool| -> Vec<&ObjectGroup> {
        let fits = |frames: &[&NamedFrame]| frames.len() >= depth && own[..depth].iter().zip(frames).all(|(a, b)| same(a, b));
        others.iter().filter(|(_, frames)| fits(frames)).map(|(other, _)| *other).collect()
    };
    let same_function = |a: &NamedFrame, b: &NamedFrame| {
        let known = !a.symbol.is_empty() || !b.symbol.is_empty();
        if known { (&a.module, &a.symbol) == (&b.module, &b.symbol) } else { same_address(a, b) }
    };
    let fewest = |same: &dyn Fn(&NamedFrame, &NamedFrame) -> bool| {
        (1..=own.len()).min_by_key(|&depth| (alike(depth, same).len(), depth)).unwrap_or(1)
    };
    // Deep enough for this build, and for the next one if functions tell the groups apart at all.
    let by_address = fewest(&same_address);
    let by_function = fewest(&same_function);
    let helps = alike(by_function, &same_function).len() < alike(by_address, &same_function).len();
    let depth = if helps { by_address.max(by_function) } else { by_address };
    // Functions that hand memory on do so for anybody: the one that asked belongs to the rule.
    let depth = depth.max(handing_on + 1).min(own.len());
    let rest = alike(depth, &same_function);
    let apart = |other: &&ObjectGroup| are_apart(group, other);
    let mut place = place;
    if (!rest.is_empty() && rest.iter().all(apart)) || alike(depth, &same_address).iter().any(apart) {
        place.least = Some(group.least.to_string());
        place.most = Some(group.most.to_string());
    }
    place.kind = if group.kind == Kind::Map { KindName::Map } else { KindName::Heap };
    // One frame more, for builds in which the innermost is inlined.
    let depth =
        if own.get(depth).is_some_and(|frame| !frame.symbol.is_empty() && !is_start(&frame.symbol)) { depth + 1 } else { depth };
    // A frame that cannot be written would make the ones behind it match elsewhere.
    let mut wanted = depth;
    for Seen { frame, inlined, hands_on } in seen(group) {
        if inlined {
            place.frame.push(Frame { function: Some(frame.function.clone()), inlined: true, ..Frame::default() });
        } else {
            place.frame.push(Frame { hands_on, ..written(frame)? });
            wanted -= 1;
        }
        if wanted == 0 {
            if place.frame.len() > MOST_FRAMES {
                place.frame.retain(|frame| !frame.inlined);
            }
            return Some(place);
        }
    }
    None
}

/// What calls `main` is the same for all.
fn is_start(symbol: &str) -> bool {
    ["_start", "__libc_start_main", "__libc_start_call_main", "start_thread", "clone3"].contains(&symbol)
}

fn written(frame: &NamedFrame) -> Option<Frame> {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let (module, build_id, function) = (some(&frame.module), some(&frame.build_id), some(&frame.symbol));
    let offset = (frame.offset > 0 && (build_id.is_some() || module.is_some())).then_some(frame.offset);
    (offset.is_some() || function.is_some()).then(|| Frame {
        module,
        build_id,
        offset,
        function,
        line: some(&frame.line),
        ..Frame::default()
    })
}

/// `text` as TOML writes it.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.extend(format!("\\u{:04X}", letter as u32).chars()),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// The plan as a file that people read: rules in this order, each behind its reason, and `about` on top.
pub fn text(about: &[String], rules: &[(Place, String)]) -> String {
    let mut lines = vec!["nearfar_plan = 1".to_owned()];
    let comment = |line: &str| format!("# {}", line.replace(['\n', '\r'], " "));
    lines.extend(about.iter().map(|line| comment(line)));
    for (place, why) in rules {
        lines.extend([String::new(), "[[place]]".to_owned()]);
        lines.push(comment(&format!("why: {why}")));
        let tier = if place.tier == TierName::Near { "near" } else { "far" };
        lines.push(format!("tier = {}", quoted(tier)));
        let kind = match place.kind {
            KindName::Heap => None,
            KindName::Map => Some("map"),
            KindName::Static => Some("static"),
            KindName::Stack => Some("stack"),
        };
        let fields = [
            ("kind", kind.map(str::to_owned)),
            ("name", Some(place.name.clone()).filter(|name| !name.is_empty())),
            ("least", place.least.clone()),
            ("most", place.most.clone()),
            ("symbol", place.symbol.clone()),
            ("module", place.module.clone()),
        ];
        lines.extend(fields.into_iter().filter_map(|(name, value)| Some(format!("{name} = {}", quoted(&value?)))));
        for frame in &place.frame {
            lines.push("[[place.frame]]".to_owned());
            let fields =
                [("module", &frame.module), ("build_id", &frame.build_id), ("function", &frame.function), ("line", &frame.line)];
            for (name, value) in fields {
                lines.extend(value.as_ref().map(|value| format!("{name} = {}", quoted(value))));
                if name == "build_id" {
                    lines.extend(frame.offset.map(|offset| format!("offset = {offset:#x}")));
                }
            }
            lines.extend(frame.hands_on.then(|| "hands_on = true".to_owned()));
            lines.extend(frame.inlined.then(|| "inlined = true".to_owned()));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::demand::tests::swept;
    use super::*;

    fn frame(symbol: &str, offset: u64) -> NamedFrame {
        let [module, build_id, line] = ["app", "ab12", "a.c:7"].map(str::to_owned);
        NamedFrame { module, build_id, offset, symbol: symbol.into(), function: symbol.into(), line }
    }

    fn group(name: &str, bytes: f64, frames: &[(&str, u64)]) -> ObjectGroup {
        let frames = frames.iter().map(|(symbol, offset)| frame(symbol, *offset)).collect();
        ObjectGroup { frames, ..swept(name, bytes, 1.0, 1) }
    }

    /// Who follows a plan goes past libraries that hand memory on, and past no other function that does.
    #[test]
    fn frames_that_hand_on_are_named_where_nobody_goes_past_them() {
        let hands_on = |module: &str, symbol: &str, offset: u64| NamedFrame { module: module.into(), ..frame(symbol, offset) };
        let mut numpy = group("a.py:1", 1e6, &[("call", 30), ("main", 40)]);
        numpy.handed_on = vec![
            hands_on("libstdc++.so.6", "operator new", 5),
            hands_on("_multiarray.so", "default_malloc", 8),
            // Inlined in the next one.
            NamedFrame { function: "allocate".into(), ..hands_on("_multiarray.so", "", 10) },
            hands_on("_multiarray.so", "PyArray_New", 10),
            // Of a library without symbols.
            NamedFrame { function: "_multiarray.so+0x14".into(), ..hands_on("_multiarray.so", "", 20) },
        ];
        let alone = place(&numpy, &[numpy.clone()], 4096).unwrap();
        let names: Vec<_> = alone.frame.iter().map(|frame| (frame.function.as_deref(), frame.hands_on)).collect();
        let expected = [
            (Some("default_malloc"), true),
            (Some("PyArray_New"), true),
            (None, true),
            (Some("call"), false),
            (Some("main"), false),
        ];
        assert_eq!(names, expected, "nobody else has such frames, yet who asked is named");
        assert!(alone.frame.iter().all(|frame| !frame.inlined && frame.offset.is_some()));
        let plain = group("b", 1e6, &[("call", 31), ("main", 41)]);
        assert_eq!(place(&plain, &[numpy, plain.clone()], 4096).unwrap().frame[0].function.as_deref(), Some("call"));
    }

    #[test]
    fn as_many_frames_as_tell_groups_apart() {
        let all = [
            group("a", 1e6, &[("allocate", 10), ("first", 20), ("main", 30)]),
            group("b", 1e6, &[("allocate", 10), ("second", 21), ("main", 31)]),
            group("c", 1e6, &[("other", 50), ("main", 32)]),
            group("d", 2e6, &[("main", 40)]),
            group("e", 3e6, &[("main", 41)]),
        ];
        let depth = |at: usize| place(&all[at], &all, 4096).unwrap().frame.len();
        assert_eq!([0, 1, 2, 3].map(depth), [3, 3, 2, 1], "what is needed, and one more");
        let place_d = place(&all[3], &all, 4096).unwrap();
        assert_eq!(
            (place_d.least.as_deref(), place_d.most.as_deref()),
            (Some("2000000"), Some("2000000")),
            "one function, two arrays"
        );
        assert!(place(&all[2], &all, 4096).unwrap().least.is_none());
    }

    #[test]
    fn what_no_rule_tells_apart_is_a_set() {
        let numpy = [("PyArray_New", 10), ("eval", 20)];
        let mut other_kind = group("map", 1e6, &numpy);
        other_kind.kind = Kind::Map;
        let stacks = [Kind::MainStack, Kind::ThreadStack].map(|kind| ObjectGroup { kind, ..group("stack", 1e6, &[]) });
        let all = [
            group("a.py:1", 1e6, &numpy),
            group("alone", 1e6, &[("other", 50)]),
            group("a.py:2", 1e6, &numpy),
            group("a.py:3", 5e6, &numpy),
            group("unknown", 1e6, &[]),
            other_kind,
        ];
        assert_eq!(sets(&all, 4096), [vec![0, 2], vec![1], vec![3], vec![5]], "sizes tell the third, nothing finds the unknown");
        assert_eq!(sets(&stacks, 4096), [[0, 1]]);
        assert_eq!(place(&all[0], &all, 4096).unwrap().most.as_deref(), Some("1000000"), "the third is not meant");
    }

    #[test]
    fn inlined_frames_have_no_address() {
        let mut one = group("a", 1e6, &[("main", 10), ("_start", 20)]);
        let inlined = NamedFrame { function: "inlined".into(), symbol: String::new(), ..one.frames[0].clone() };
        one.frames.insert(0, inlined);
        let place = place(&one, &[], 4096).unwrap();
        assert_eq!((place.frame[0].function.as_deref(), place.frame[0].inlined), (Some("inlined"), true));
        assert_eq!((place.frame.len(), place.frame[1].function.as_deref()), (2, Some("main")));
        assert!(super::place(&group("x", 1e6, &[]), &[], 4096).is_none(), "nothing finds it");
    }

    #[test]
    fn other_kinds_and_the_text() {
        let mut array = group("psi_", 1e6, &[]);
        (array.kind, array.symbol) = (Kind::Static, "psi_".into());
        let mut small = group("small", 1e6, &[]);
        small.kind = Kind::SmallBlocks;
        let all = [array, small, group("say \"hi\"", 1e6, &[("main", 64)])];
        let rules: Vec<(Place, String)> =
            all.iter().map(|group| (place(group, &all, 4096).unwrap(), "it is\nhot".to_owned())).collect();
        let text = text(&["for 1 GiB".to_owned()], &rules);
        for line in
            ["nearfar_plan = 1\n# for 1 GiB", "kind = \"static\"", "symbol = \"psi_\"", "most = \"4095\"", "offset = 0x40"]
        {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.contains("# why: it is hot") && text.contains(r#"name = "say \"hi\"""#), "{text}");
    }
}
