//! What `packaging/pack` makes, installed, used and removed in a system without Rust and without a compiler.
//!
//! Packs this build. `NEARFAR_PACKAGES=DIR` tests packages that are there already (`make dist` leaves them in target/dist), and
//! `NEARFAR_TEST_SUITE` names another release of Debian than bookworm.

use crate::util::{Scratch, clean_root, nearfar_bin};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, OnceLock};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {:?}\n{}", output.status, text(&output));
    text(&output)
}

/// Packs this build into a directory below target/.
fn pack(name: &str) -> PathBuf {
    let built = nearfar_bin().parent().expect("a directory").to_owned();
    let out = root().join("target").join(name);
    let _ = std::fs::remove_dir_all(&out);
    succeeds(Command::new(root().join("packaging/pack")).arg(built).arg(&out));
    out
}

/// The packages, made once.
fn packages() -> &'static Path {
    static PACKED: OnceLock<PathBuf> = OnceLock::new();
    PACKED.get_or_init(|| std::env::var_os("NEARFAR_PACKAGES").map_or_else(|| pack("packages"), PathBuf::from))
}

/// The package whose name ends so.
#[track_caller]
fn package(end: &str) -> PathBuf {
    let mut found = std::fs::read_dir(packages()).expect("packages").map(|entry| entry.expect("an entry").path());
    found.find(|path| path.to_string_lossy().ends_with(end)).unwrap_or_else(|| panic!("no {end} in {}", packages().display()))
}

/// A system without nearfar, for one test at a time.
struct CleanRoot {
    dir: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl CleanRoot {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A test that failed has unmade it.
        clean_root::make().unwrap_or_else(|why| panic!("{why}"));
        let dir = clean_root::dir();
        Self { dir, _alone: alone }
    }

    /// Runs a script of `sh` inside; /packages are the packages.
    #[track_caller]
    fn runs(&self, script: &str) -> String {
        let outside = "mkdir -p $0/packages && mount --bind $1 $0/packages && mount -t proc proc $0/proc && mount --rbind /dev $0/dev \
                       && mount --rbind /sys $0/sys && exec chroot $0 /bin/sh -euc \"$2\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-euc", outside]).arg(&self.dir).arg(packages()).arg(script);
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
        succeeds(&mut command)
    }

    /// Names of files of nearfar that the root has.
    fn rest(&self) -> String {
        self.runs("find / -xdev \\( -path /packages -o -path /proc -o -path /sys -o -path /dev \\) -prune -o \\( -name '*nearfar*' -o -name '*memkind*' \\) -print")
    }
}

impl Drop for CleanRoot {
    /// What a test that failed has left makes the next ones fail.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = std::fs::remove_file(self.dir.join(".complete"));
        }
    }
}

/// Finds the command, and pages a program that checks its own data.
const USE: &str = "nearfar --version
    nearfar doctor --far /var/tmp || test $? = 1
    nearfar run --near 48M --far /var/tmp -- nearfar-kernel triad --bytes 192M --sweeps 1 --threads 1";

#[track_caller]
fn was_used(said: &str) {
    assert!(said.contains("nearfar run works here"), "{said}");
    assert!(said.contains("nearfar: near "), "{said}");
    assert!(said.contains("right") || said.contains("verified"), "{said}");
}

#[test]
fn the_same_build_gives_the_same_bytes() {
    needs!("packing");
    let sums = |dir: &Path| std::fs::read_to_string(dir.join("SHA256SUMS")).expect("checksums");
    let first = if std::env::var_os("NEARFAR_PACKAGES").is_some() { pack("packages-first") } else { packages().to_owned() };
    let again = pack("packages-again");
    assert_eq!(sums(&first), sums(&again));
    assert_eq!(sums(&again).lines().count(), 5, "tarball, wheel, .deb, .rpm, bill: {}", sums(&again));
    succeeds(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&again));
}

#[test]
fn the_bill_names_what_is_linked_in() {
    needs!("packing");
    let bill: serde_json::Value = serde_json::from_slice(&std::fs::read(package(".cdx.json")).expect("a bill")).expect("JSON");
    let components = bill["components"].as_array().expect("components");
    let names: Vec<_> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"clap") && names.contains(&"libmimalloc-sys"), "{names:?}");
    // Used by tests only, by macros only.
    assert!(!names.contains(&"proptest") && !names.contains(&"syn"), "{names:?}");
    assert!(components.iter().all(|one| one["licenses"][0]["expression"].is_string()), "{components:?}");
}

#[test]
fn the_deb() {
    needs!("root", "packing", "clean-root");
    let clean = CleanRoot::new();
    assert_eq!(clean.rest(), "", "before");
    was_used(&clean.runs(&format!(
        "dpkg -i /packages/nearfar_*.deb\n{USE}\ndpkg --verify nearfar\ncd /usr/share\ntest -e man/man1/nearfar.1.gz -a -e zsh/vendor-completions/_nearfar"
    )));
    clean.runs("dpkg --purge nearfar");
    assert_eq!(clean.rest(), "", "after");
}

/// Debian's rpm installs into the other root: there is no mirror of a system with rpm to count on.
#[test]
fn the_rpm() {
    needs!("root", "packing", "clean-root");
    let clean = CleanRoot::new();
    let rpm = |what: &[&str]| {
        let mut command = Command::new("rpm");
        succeeds(command.arg("--root").arg(&clean.dir).args(["--dbpath", "/var/lib/rpm"]).args(what))
    };
    let package = package(".rpm");
    rpm(&["--install", "--nodeps", package.to_str().expect("UTF-8")]);
    let said = clean.runs(USE);
    let verified = rpm(&["--verify", "--nodeps", "nearfar"]);
    rpm(&["--erase", "nearfar"]);
    let rest = clean.rest();
    std::fs::remove_dir_all(clean.dir.join("var/lib/rpm")).expect("rpm's own files");
    was_used(&said);
    assert_eq!((verified.as_str(), rest.as_str()), ("", ""));
}

#[test]
fn the_tarball() {
    needs!("root", "packing", "clean-root");
    let clean = CleanRoot::new();
    was_used(&clean.runs(&format!(
        "cd /tmp\ntar xf /packages/nearfar-*.tar.gz\nPATH=$(echo /tmp/nearfar-*/bin):$PATH\n{USE}\nrm -rf /tmp/nearfar-*"
    )));
    assert_eq!(clean.rest(), "");
}

/// The command, and the Python module as far as it goes without numpy, which needs a network.
#[test]
fn the_wheel() {
    needs!("root", "packing", "clean-root");
    let clean = CleanRoot::new();
    let script = format!(
        "python3 -m venv /tmp/environment\n. /tmp/environment/bin/activate\npip install --quiet --no-index --no-deps /packages/nearfar-*.whl\n{USE}
        python -c 'import importlib.util as util; assert util.find_spec(\"nearfar\")'
        pip uninstall --quiet --yes nearfar"
    );
    let said = clean.runs(&script);
    was_used(&said);
    let rest = clean.runs("find /tmp/environment -name '*nearfar*'; rm -rf /tmp/environment");
    assert_eq!(rest, "");
    assert_eq!(clean.rest(), "");
}

/// With numpy, where the tests run: the module finds the library that came with it.
#[test]
fn the_module_of_the_wheel_finds_its_library() {
    needs!("numpy", "packing");
    let scratch = Scratch::new();
    let environment = scratch.work().join("environment");
    succeeds(Command::new("python3").args(["-m", "venv", "--system-site-packages"]).arg(&environment));
    let python = environment.join("bin/python");
    succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]).arg(package(".whl")));
    let ask = "import nearfar, sys; nearfar.describe(); print(nearfar.__file__.startswith(sys.prefix))";
    let mut command = Command::new(&python);
    command
        .args(["-c", ask])
        .env_remove("NEARFAR_LIBRARY")
        .env("PATH", format!("{}:/usr/bin:/bin", environment.join("bin").display()));
    let said = succeeds(&mut command);
    assert!(said.contains("True"), "{said}");
}

#[test]
fn what_cannot_be_packed_is_refused() {
    let scratch = Scratch::new();
    let output = Command::new(root().join("packaging/pack")).arg(scratch.work()).arg(scratch.far()).output().expect("pack");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("make build"), "{}", text(&output));
}

/// Compiles everything twice, which takes many minutes: `cargo test --release --test tests packages::cargo -- --ignored`.
#[test]
#[ignore = "compiles everything twice"]
fn cargo_installs_the_command_with_its_library() {
    needs!("root");
    let scratch = Scratch::new();
    let place = scratch.work().join("cargo");
    let repository = format!("file://{}", root().display());
    succeeds(Command::new("cargo").args(["install", "--locked", "--git", &repository, "nearfar", "--root"]).arg(&place));
    // The first user is not the one who installed it, and cannot write there.
    let command = place.join("bin/nearfar");
    let page = |command: &mut Command| {
        command.args([
            "run",
            "--near",
            "48M",
            "--far",
            "/var/tmp",
            "--",
            "sh",
            "-c",
            "head -c 100M /dev/zero | tail -c 100M | wc -c",
        ]);
        command.output().expect("it starts")
    };
    let mut other = Command::new("setpriv");
    let refused = page(other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&command));
    let said = text(&refused);
    assert!(refused.status.code() == Some(2) && said.contains("run \"nearfar doctor\" once as the user"), "{said}");
    let paged = page(&mut Command::new(&command));
    assert!(paged.status.success() && text(&paged).contains("104857600"), "{}", text(&paged));
    let doctor = succeeds(Command::new(&command).args(["doctor", "--far", "/var/tmp"]));
    assert!(doctor.contains("nearfar run works here") && doctor.contains("times as long"), "{doctor}");
    succeeds(Command::new("cargo").args(["uninstall", "nearfar", "--root"]).arg(&place));
}
