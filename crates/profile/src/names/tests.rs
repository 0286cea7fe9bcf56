//! A small program, with and without its debug information, gone, and built anew.

use super::*;
use nearfar_core::profile::file::Batch;
use nearfar_core::profile::names::Step;
use nearfar_core::profile::record::Start;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = r"
#include <stdlib.h>
static inline __attribute__((always_inline)) double *make(long n) {
  return malloc(n * 8);
}
double *__attribute__((noinline)) work(long n) {
  double *a = make(n);
  for (long i = 0; i < n; i++) a[i] = i;
  return a;
}
int main(int argc, char **argv) { return work(argc + 100)[0] != 0; }
";

struct Program(PathBuf);

impl Program {
    /// `None`: no compiler.
    fn build(name: &str, options: &[&str]) -> Option<Self> {
        let dir = std::env::temp_dir().join(format!("nearfar-names-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("prog.c"), SOURCE).unwrap();
        let program = Self(dir);
        let mut gcc = Command::new("gcc");
        gcc.args(options).args(["-O2", "-Wl,--build-id", "-o"]).arg(program.path()).arg(program.0.join("prog.c"));
        gcc.status().is_ok_and(|status| status.success()).then_some(program)
    }

    fn path(&self) -> PathBuf {
        self.0.join("prog")
    }

    fn run(&self, tool: &str, args: &[&str]) -> String {
        let output = Command::new(tool).args(args).current_dir(&self.0).output().unwrap();
        assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What objdump says: address behind the call of malloc, and of a store in the loop of `work`.
    fn places(&self) -> (u64, u64) {
        let text = self.run("objdump", &["-d", "--no-show-raw-insn", "prog"]);
        let inside = text.split("<work>:").nth(1).unwrap().split("\n\n").next().unwrap();
        let address = |line: &str| u64::from_str_radix(line.trim().split(':').next().unwrap(), 16).unwrap();
        let lines: Vec<&str> = inside.lines().filter(|line| line.contains(':')).collect();
        let call = lines.iter().position(|line| line.contains("call") && line.contains("malloc")).unwrap();
        let store = lines.iter().rev().find(|line| line.contains("mov") && line.trim_end().ends_with(')')).unwrap();
        (address(lines[call + 1]), address(store))
    }

    fn module(&self, build_id: Vec<u8>) -> Module {
        let path = self.path().to_str().unwrap().to_owned();
        Module { path, build_id, bias: 0x5500_0000_0000, start: 0x5500_0000_0000, end: 0x5500_0010_0000 }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn content(module: Module, more: Vec<Record>) -> Content {
    let mut records = vec![Record::Start(Start { pid: 7, ..Start::default() }), Record::Module(module)];
    records.extend(more);
    let child = Batch { pid: 8, records: vec![Record::Start(Start { pid: 8, parent: 7, ..Start::default() })] };
    Content { batches: vec![Batch { pid: 7, records }, child], lost_bytes: 0 }
}

#[test]
fn a_program_with_and_without_its_debug_information() {
    let Some(program) = Program::build("lines", &["-g"]) else { return println!("skip: no gcc") };
    let (call, store) = program.places();
    let bias = 0x5500_0000_0000;
    let check = |names: &FileNames, process: usize| {
        let frames = names.frames(process, &[bias + call, 0x10]);
        let said: Vec<_> =
            frames.iter().map(|frame| (frame.function.as_str(), frame.symbol.as_str(), frame.line.as_str())).collect();
        assert_eq!(said, [("make", "", "prog.c:4"), ("work", "work", "prog.c:7"), ("", "", "")]);
        assert_eq!((frames[0].offset, frames[1].offset, frames[1].module.as_str()), (call, call, "prog"));
        assert_eq!(names.function(process, bias + store), Some(("work".to_owned(), "prog".to_owned())));
        assert_eq!(names.function(process, 0x10), None);
        let access = names.access(process, bias + store).unwrap();
        assert!(matches!(access.step, Step::Constant(8 | 16)) && access.also_writes, "{access:?}");
    };
    let whole = FileNames::of(&content(program.module(vec![]), vec![]));
    check(&whole, 0);
    check(&whole, 1);
    let id = whole.frames(0, &[bias + call])[0].build_id.clone();
    assert!(id.is_empty(), "the record says none");
    assert!(whole.problems().is_empty());

    // Debug information in a file of its own, found by the link in the program.
    program.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    program.run("strip", &["prog"]);
    program.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    check(&FileNames::of(&content(program.module(vec![]), vec![])), 0);

    // Nothing but code: names are module and offset, and what was recorded of the code is used.
    std::fs::remove_file(program.0.join("prog.debug")).unwrap();
    let code = Record::Code { ip: bias + store, start: bias + store, bytes: vec![0xf3, 0x48, 0xab] };
    let bare = FileNames::of(&content(program.module(vec![]), vec![code]));
    let frames = bare.frames(0, &[bias + call]);
    assert_eq!((frames[0].function.as_str(), frames.len()), (format!("prog+{call:#x}").as_str(), 1));
    assert_eq!(bare.access(0, bias + store).unwrap().step, Step::Constant(8));
}

#[test]
fn files_that_are_gone_or_built_anew() {
    let Some(program) = Program::build("gone", &[]) else { return println!("skip: no gcc") };
    let (call, _) = program.places();
    let bias = 0x5500_0000_0000;
    let other = FileNames::of(&content(program.module(vec![1, 2, 3]), vec![]));
    let frame = &other.frames(0, &[bias + call])[0];
    assert_eq!((frame.function.as_str(), frame.build_id.as_str()), (format!("prog+{call:#x}").as_str(), "010203"));
    assert!(other.problems()[0].contains("rebuilt"), "{:?}", other.problems());
    std::fs::remove_file(program.path()).unwrap();
    let gone = FileNames::of(&content(program.module(vec![]), vec![]));
    assert_eq!(gone.function(0, bias + call), Some((format!("prog+{call:#x}"), "prog".to_owned())));
    assert!(gone.problems()[0].contains("not here"), "{:?}", gone.problems());
    let vdso = Module { path: "[vdso]".into(), ..program.module(vec![]) };
    assert_eq!(FileNames::of(&content(vdso, vec![])).frames(0, &[bias + 0x30])[0].function, "[vdso]+0x30");
    std::fs::write(program.path(), b"\x7fELF and nothing more").unwrap();
    assert_eq!(gone.access(0, bias + call), None);
}
