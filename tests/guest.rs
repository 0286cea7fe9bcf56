//! Boots a virtual machine with other NUMA nodes (`tests/guests/numavm`), with nearfar and test programs in it, and runs a command
//! there. The caller says `needs!("guest")` first. A boot takes some 5 to 10 s, so that tests share boots where they can (`boots`).

use crate::util::{compile, nearfar_bin, shared_machine};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where nearfar and libnearfar.so are in a guest; on its PATH.
pub const BIN: &str = "/usr/local/bin";

/// A guest to be.
pub struct Guest {
    layout: String,
    memory: Option<String>,
    hmat: bool,
    files: Vec<(PathBuf, String)>,
    disk: Option<PathBuf>,
    limit_s: u64,
}

/// What came of a command.
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub status: Option<i32>,
}

impl Guest {
    /// A layout of numavm: knl-flat, knl-snc4, dual-socket, xeonmax-flat, cxl, ...; with nearfar in it.
    pub fn new(layout: &str) -> Self {
        let bin = nearfar_bin();
        let library = bin.with_file_name("libnearfar.so");
        let files = vec![(bin, format!("{BIN}/nearfar")), (library, format!("{BIN}/libnearfar.so"))];
        Self { layout: layout.into(), memory: None, hmat: true, files, disk: None, limit_s: 240 }
    }

    /// Sizes of nodes by kind, such as `ddr=2G,hbm=512M`, in multiples of 128M.
    pub fn memory(mut self, sizes: &str) -> Self {
        self.memory = Some(sizes.into());
        self
    }

    /// Without what the firmware claims of bandwidths.
    pub fn without_hmat(mut self) -> Self {
        self.hmat = false;
        self
    }

    /// Longer than this is a hang.
    pub fn limit_s(mut self, seconds: u64) -> Self {
        self.limit_s = seconds;
        self
    }

    /// A file or directory of this machine, with the libraries that it needs.
    pub fn file(mut self, host: impl Into<PathBuf>, guest: &str) -> Self {
        self.files.push((host.into(), guest.into()));
        self
    }

    /// A file that is its /dev/nvme0n1.
    pub fn disk(mut self, image: &Path) -> Self {
        self.disk = Some(image.into());
        self
    }

    /// A program of tests/programs, compiled; it is on the PATH by its name without the ending.
    pub fn program(self, name: &str) -> Self {
        let host = compile(name);
        let stem = host.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        self.file(host, &format!("{BIN}/{stem}"))
    }

    /// Boots it and runs `script` with sh.
    pub fn run(&self, script: &str) -> Ran {
        let _beside = shared_machine();
        // On a busy machine the guest's check of its timer may fail.
        let numavm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/numavm");
        let mut command = Command::new(numavm);
        command.arg(&self.layout).args(["--append", "numa_balancing=disable no_timer_check"]);
        command.args(["--timeout", &self.limit_s.to_string()]).stdin(Stdio::null());
        if let Some(memory) = &self.memory {
            command.args(["--mem", memory]);
        }
        if let Some(image) = &self.disk {
            command.arg("--disk").arg(image);
        }
        if !self.hmat {
            command.arg("--no-hmat");
        }
        for (host, guest) in &self.files {
            command.arg("--file").arg(format!("{}:{guest}", host.display()));
        }
        let output = command.args(["--", "sh", "-c", script]).output().expect("numavm runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ran = Ran { stdout: text(&output.stdout), stderr: text(&output.stderr), status: output.status.code() };
        println!("{} $ {script}\n{}{}{:?}", self.layout, ran.stdout, ran.stderr, ran.status);
        ran
    }
}

impl Ran {
    /// The part of standard output between the lines `== name` and the next `== ...`.
    pub fn part(&self, name: &str) -> &str {
        let begin = format!("== {name}\n");
        let at = self.stdout.find(&begin).unwrap_or_else(|| panic!("no part {name}"));
        let rest = &self.stdout[at + begin.len()..];
        rest.find("== ").map_or(rest, |end| &rest[..end])
    }
}
