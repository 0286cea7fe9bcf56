//! Profiles, read back: `.nfprof` files of one or several processes, or a summary as JSON.

use crate::exit::refuse;
use nearfar_core::profile::analyse::{Options, analyse};
use nearfar_core::profile::clocks;
use nearfar_core::profile::file::{self, Content};
use nearfar_core::profile::summary::Summary;
use nearfar_profile::names::FileNames;
use std::path::{Path, PathBuf};

/// Larger files are no profiles: those are bounded when they are written.
const MOST_BYTES: u64 = 4 << 30;

/// What the profiles at `paths` say together.
///
/// # Errors
/// A refusal that names the file and says what is wrong with it.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Summary> {
    if let [path] = paths
        && let Some(summary) = summary(path)?
    {
        return Ok(summary);
    }
    let mut all = Content::default();
    let mut notes = Vec::new();
    for path in paths {
        let shown = path.display();
        let content = file::read(&bytes(path)?).map_err(|error| refuse(format_args!("{shown}: {error}")))?;
        if content.lost_bytes > 0 {
            notes.push(format!(
                "{shown} was cut off or damaged: {} bytes of it are ignored, and what follows is about the rest",
                content.lost_bytes
            ));
        }
        all.batches.extend(content.batches);
    }
    clocks::align(&mut all);
    let mut summary = estimated(&all);
    summary.notes.extend(notes);
    Ok(summary)
}

/// True when the file begins as profiles do.
pub fn is_one(path: &Path) -> bool {
    let mut first = [0; file::MAGIC.len()];
    std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first)).is_ok()
        && first == file::MAGIC
}

/// Estimates, with the names that the program's files give.
fn estimated(content: &Content) -> Summary {
    let names = FileNames::of(content);
    let mut summary = analyse(content, &names, &Options::default());
    summary.notes.extend(names.problems());
    summary
}

/// The file as a summary in JSON; `None` when it is something else.
fn summary(path: &Path) -> anyhow::Result<Option<Summary>> {
    let text = bytes(path)?;
    if text.first() != Some(&b'{') {
        return Ok(None);
    }
    let shown = path.display();
    let summary: Summary = serde_json::from_slice(&text)
        .map_err(|error| refuse(format_args!("{shown} is neither a profile nor the summary of one: {error}")))?;
    summary.check().map_err(|error| refuse(format_args!("{shown} is not a summary of a profile: {error}")))?;
    Ok(Some(summary))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let cannot = |why: &dyn std::fmt::Display| refuse(format_args!("{} cannot be read: {why}", path.display()));
    let facts = std::fs::metadata(path).map_err(|error| cannot(&error))?;
    if facts.is_dir() {
        return Err(cannot(&"it is a directory; name the .nfprof file in it"));
    }
    if facts.len() > MOST_BYTES {
        return Err(cannot(&"it is too large to be a profile"));
    }
    std::fs::read(path).map_err(|error| cannot(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let dir = std::env::temp_dir().join(format!("nearfar-profile-file-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let told = |name: &str, bytes: &[u8]| {
            let path = dir.join(name);
            std::fs::write(&path, bytes).expect("written");
            read(&[path]).expect_err(name).to_string()
        };
        let mut summary = crate::ui::chart::profile::tests::summary();
        let json = |summary: &Summary| serde_json::to_vec(summary).expect("JSON");
        read(&[{
            let path = dir.join("right");
            std::fs::write(&path, json(&summary)).expect("written");
            path
        }])
        .expect("a summary");
        (summary.wall_s, summary.bin_s) = (1e18, 1e-9);
        assert!(told("bins", &json(&summary)).contains("bin_s"));
        summary.wall_s = -1.0;
        assert!(told("negative", &json(&summary)).contains("wall_s is -1"));
        summary.format = 7;
        assert!(told("other", &json(&summary)).contains("format 7"));
        assert!(told("elf", b"\x7fELF").contains("not a profile"));
        assert!(told("empty", b"").contains("holds nothing"));
        assert!(told("json", b"{\"format\": 1}").contains("neither a profile"));
        assert!(told("head", &file::head()).contains("holds nothing"));
        assert!(read(&[dir.join("missing")]).expect_err("missing").to_string().contains("No such file"));
        assert!(read(std::slice::from_ref(&dir)).expect_err("a directory").to_string().contains("directory"));
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
