//! The plan of what was chosen: rules that find the same objects again, in the next run and in the next build.
//!
//! A rule names as few frames as tell its group from others: each frame more is one that a compiler may inline or a programmer may
//! rename. Where functions alone do not tell groups apart (the same function allocates several arrays) sizes help, since offsets
//! hold for one build only.

use crate::placement::plan::{Frame, KindName, Place, TierName};
use crate::profile::record::Kind;
use crate::profile::summary::{NamedFrame, ObjectGroup};

/// Frames of a rule at the most.
const DEEPEST: usize = 12;

/// What finds `group`; `all` are the groups it must be told from. `None`: nothing does (its site is not known).
pub fn place(group: &ObjectGroup, all: &[ObjectGroup], least_recorded: u64) -> Option<Place> {
    let place = Place { tier: TierName::Near, name: group.name.clone(), ..Place::default() };
    match group.kind {
        Kind::Heap | Kind::Map => of_site(group, all, place),
        Kind::Static if group.symbol.is_empty() => None,
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

/// Frames that have a return address of their own: what was inlined has none.
fn physical(group: &ObjectGroup) -> Vec<&NamedFrame> {
    let is_inlined = |frame: &&NamedFrame| frame.symbol.is_empty() && !frame.function.is_empty();
    group.frames.iter().filter(|frame| !is_inlined(frame)).take(DEEPEST).collect()
}

fn of_site(group: &ObjectGroup, all: &[ObjectGroup], place: Place) -> Option<Place> {
    let own = physical(group);
    if own.is_empty() {
        return None;
    }
    let others: Vec<(&ObjectGroup, Vec<&NamedFrame>)> = all
        .iter()
        .filter(|other| other.kind == group.kind && !std::ptr::eq(*other, group))
        .map(|other| (other, physical(other)))
        .collect();
    let alike = |depth: usize, same: &dyn Fn(&NamedFrame, &NamedFrame) -> bool| -> Vec<&ObjectGroup> {
        let fits = |frames: &[&NamedFrame]| frames.len() >= depth && own[..depth].iter().zip(frames).all(|(a, b)| same(a, b));
        others.iter().filter(|(_, frames)| fits(frames)).map(|(other, _)| *other).collect()
    };
    let same_address = |a: &NamedFrame, b: &NamedFrame| (&a.module, &a.build_id, a.offset) == (&b.module, &b.build_id, b.offset);
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
    let rest = alike(depth, &same_function);
    let apart = |other: &&ObjectGroup| other.most < group.least || other.least > group.most;
    let mut place = place;
    if !rest.is_empty() && rest.iter().all(apart) {
        place.least = Some(group.least.to_string());
        place.most = Some(group.most.to_string());
    }
    place.kind = if group.kind == Kind::Map { KindName::Map } else { KindName::Heap };
    place.frame = own[..depth].iter().filter_map(|frame| written(frame)).collect();
    // A frame that cannot be written would make the ones behind it match elsewhere.
    (place.frame.len() == depth).then_some(place)
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
        assert_eq!([0, 1, 2, 3].map(depth), [2, 2, 1, 1]);
        let place_d = place(&all[3], &all, 4096).unwrap();
        assert_eq!(
            (place_d.least.as_deref(), place_d.most.as_deref()),
            (Some("2000000"), Some("2000000")),
            "one function, two arrays"
        );
        assert!(place(&all[2], &all, 4096).unwrap().least.is_none());
    }

    #[test]
    fn inlined_frames_have_no_address() {
        let mut one = group("a", 1e6, &[("main", 10), ("_start", 20)]);
        one.frames.insert(0, NamedFrame { function: "inlined".into(), offset: 10, ..NamedFrame::default() });
        let place = place(&one, &[], 4096).unwrap();
        assert_eq!(place.frame[0].function.as_deref(), Some("main"));
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
