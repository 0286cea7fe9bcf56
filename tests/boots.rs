//! Boots that tests of nodes share, one per layout: a boot takes longer than most of what is done in it. Scripts lie beside the tests
//! that judge them; each has a name here, and its output and status are kept apart.
//!
//! Whichever test asks first boots; the others wait and read. A script that hangs is killed, and the others go on.

use crate::guest::{BIN, Guest, Ran};
use crate::util::Scratch;
use crate::{api, numa, numa_cache, placing};
use std::sync::OnceLock;

/// Generous: the guest's processor is software, and this machine may be busy.
const SCRIPT_S: u32 = 400;
const BOOT_S: u64 = 1500;

/// A boot, and all that is done in it.
pub struct Boot {
    layout: &'static str,
    memory: Option<&'static str>,
    hmat: bool,
    programs: &'static [&'static str],
    /// In this order, which matters where one changes the guest.
    scripts: &'static [(&'static str, &'static str)],
    ran: OnceLock<Ran>,
}

pub static KNL_FLAT: Boot = Boot {
    layout: "knl-flat",
    memory: None,
    hmat: true,
    programs: &["placed.c", "placed_kinds.c", "placed_full.c", "placed_sites.c", "api_places.c"],
    scripts: &[
        ("numa choice", numa::KNL_CHOICE),
        ("numa full", numa::KNL_FULL),
        ("placing sizes", placing::KNL_SIZES),
        ("placing plan", placing::KNL_PLAN),
        ("placing full", placing::KNL_FULL),
        ("api tiers", api::KNL_TIERS),
        ("api job", api::KNL_JOB),
    ],
    ran: OnceLock::new(),
};

pub static DUAL_SOCKET: Boot = Boot {
    layout: "dual-socket",
    memory: None,
    hmat: true,
    programs: &["placed.c", "placed_kinds.c", "api_places.c"],
    scripts: &[("numa", numa::DUAL), ("placing sizes", placing::DUAL_SIZES), ("api tiers", api::DUAL_TIERS)],
    ran: OnceLock::new(),
};

/// As a real KNL: its firmware says nothing of bandwidths.
pub static KNL_SNC4: Boot = Boot {
    layout: "knl-snc4",
    memory: None,
    hmat: false,
    programs: &["placed.c", "api_places.c"],
    scripts: &[("numa", numa::SNC4), ("api tiers", api::SNC4_TIERS)],
    ran: OnceLock::new(),
};

pub static CXL: Boot = Boot {
    layout: "cxl",
    memory: Some("ddr=768M,cxl=512M"),
    hmat: true,
    programs: &["api_places.c", "hot_quarter.c"],
    scripts: &[("api tiers", api::CXL_TIERS), ("mover hot", numa_cache::HOT), ("mover kernel", numa_cache::KERNEL)],
    ran: OnceLock::new(),
};

impl Boot {
    /// What came of the script of this name.
    pub fn script(&self, name: &str) -> Ran {
        let ran = self.ran.get_or_init(|| self.boot());
        let (stdout, stderr) = (section(&ran.stdout, name), section(&ran.stderr, name));
        let (stdout, status) = match stdout.rsplit_once("#### status ") {
            Some((stdout, status)) => (stdout, status.trim().parse().ok()),
            None => (stdout, None),
        };
        // A test that fails shows what its own script said, whoever booted.
        println!("{} {name}:\n{stdout}{stderr}{status:?}", self.layout);
        Ran { stdout: stdout.to_owned(), stderr: stderr.to_owned(), status }
    }

    fn boot(&self) -> Ran {
        let scratch = Scratch::new();
        let plan = scratch.work().join("plan.toml");
        std::fs::write(&plan, placing::PLAN).expect("scratch can be written");
        let mut guest = Guest::new(self.layout).limit_s(BOOT_S).file(plan, "/plan.toml");
        guest = self.memory.into_iter().fold(guest, Guest::memory);
        guest = if self.hmat { guest } else { guest.without_hmat() };
        guest = self.programs.iter().fold(guest, |guest, program| guest.program(program));
        if self.scripts.iter().any(|(_, script)| script.contains("static-placed")) {
            guest = guest.file(numa::static_placed(), &format!("{BIN}/static-placed"));
        }
        let mut all = api::RELEASE.to_owned();
        for (number, (name, script)) in self.scripts.iter().enumerate() {
            // The lines of a script may hold quotes: each goes to a file first.
            all += &format!("cat > /script{number} <<'END-OF-SCRIPT'\n{script}\nEND-OF-SCRIPT\n");
            all += &format!("echo '#### {name}'; echo '#### {name}' >&2\n");
            all += &format!("timeout -s KILL {SCRIPT_S} sh /script{number} </dev/null; echo \"#### status $?\"\n");
        }
        guest.run(&all)
    }
}

/// What lies between the line of `name` and the next script's.
fn section<'a>(text: &'a str, name: &str) -> &'a str {
    let begin = format!("#### {name}\n");
    let Some((_, rest)) = text.split_once(&begin) else { panic!("script \"{name}\" was not begun:\n{text}") };
    let end = rest.match_indices("#### ").find(|(at, _)| !rest[*at..].starts_with("#### status "));
    end.map_or(rest, |(at, _)| &rest[..at])
}
