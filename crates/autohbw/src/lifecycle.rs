//! Start, fork and exit.

use crate::{heap, talk, tally, window};
use nearfar_kinds::autohbw::{self, Level, Settings};
use nearfar_kinds::environment::variable;
use nearfar_kinds::placed::Placed;
use nearfar_kinds::static_kind::{Family, StaticKind};
use nearfar_sys::process;

/// Reads the variables and opens the window, if there is something to place.
fn start() {
    let get = |name| variable(name);
    let (size, log, kind) = (get("AUTO_HBW_SIZE"), get("AUTO_HBW_LOG"), get("AUTO_HBW_MEM_TYPE"));
    let kinds: Vec<_> =
        StaticKind::ALL.into_iter().filter(|kind| kind.family() != Family::Gone).map(|kind| (kind.name(), kind)).collect();
    let (settings, refused) = autohbw::parse(size.as_deref(), log.as_deref(), kind.as_deref(), &kinds);
    talk::set_level(settings.level);
    for message in &refused {
        talk::say(Level::Warnings, message);
    }
    let Settings { window: Some(sizes), kind, .. } = settings else { return };
    let kind = kind.unwrap_or(StaticKind::HbwPreferred);
    if kind == StaticKind::Default {
        return talk::say(Level::Info, &"memkind_default is ordinary memory: every allocation goes to the C library");
    }
    match Placed::of_kind(kind) {
        Ok(placed) => {
            talk::say(Level::Info, &format_args!("allocations of {sizes} go to {placed}"));
            heap::set_kind(placed);
            // SAFETY: the function lives as long as the process (the library is never unloaded).
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
            window::open(sizes);
        }
        Err(why) => talk::say(
            Level::Warnings,
            &format_args!("{}: {why}; every allocation stays in ordinary memory (see \"nearfar doctor\")", kind.name()),
        ),
    }
}

extern "C" fn in_child() {
    tally::forget();
}

/// The name of the program and its number.
fn who() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    format!("{}[{}]", path.file_name().unwrap_or_default().display(), process::pid())
}

fn finish() {
    let Some(kind) = heap::kind().filter(|_| talk::talks(Level::Info)) else { return };
    let Some(sizes) = window::sizes() else { return };
    let who = who();
    for line in tally::summary(kind, &sizes) {
        talk::say(Level::Info, &format_args!("{who}: {line}"));
    }
}

nearfar_kinds::library_over_next_heap!(start, finish);
