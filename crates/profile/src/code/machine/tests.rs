//! Fixed bytes, and what compilers make of small loops.

use super::*;
use iced_x86::Register;
use std::fmt::Write as _;
use std::process::Command;

fn at(bytes: &[u8], offset: u64) -> Option<Access> {
    access(bytes, 0x1000, 0x1000 + offset, true)
}

#[test]
fn written_out_loops() {
    // movsd xmm0,[rdi+rax*8]; addsd xmm0,[rsi+rax*8]; movsd [rdi+rax*8],xmm0; inc rax; cmp rax,rdx; jne 0
    let update = [
        0xf2, 0x0f, 0x10, 0x04, 0xc7, 0xf2, 0x0f, 0x58, 0x04, 0xc6, 0xf2, 0x0f, 0x11, 0x04, 0xc7, 0x48, 0xff, 0xc0, 0x48, 0x39,
        0xd0, 0x75, 0xe9,
    ];
    let first = at(&update, 0).unwrap();
    assert_eq!((first.step, first.size, first.also_writes, first.flops, first.access_bytes), (Step::Constant(8), 8, true, 1, 24));
    let second = at(&update, 5).unwrap();
    assert_eq!((second.step, second.also_writes), (Step::Constant(8), false));
    assert_eq!(at(&update, 3), None, "not an instruction");
    // The same in the middle of something else: beginnings are found backward.
    let mut within = vec![0xcc; 40];
    within.extend(update);
    assert_eq!(access(&within, 0x0, 40, false), Some(first));
    // rep stosq; rep movsb; mov rax,[rdi]; movntdq [rdi],xmm0
    let rep = at(&[0xf3, 0x48, 0xab], 0).unwrap();
    assert_eq!((rep.step, rep.also_writes), (Step::Constant(8), true));
    assert_eq!(at(&[0xf3, 0xa4], 0).unwrap().step, Step::Constant(1));
    assert_eq!(at(&[0x48, 0x8b, 0x07], 0).unwrap().step, Step::Constant(0), "no loop");
    assert!(at(&[0x66, 0x0f, 0xe7, 0x07], 0).unwrap().non_temporal);
    // mov rax,[rax]; test rax,rax; jne 0: a list.
    assert_eq!(at(&[0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0xf8], 0).unwrap().step, Step::Varies);
    // No bytes, noise.
    assert_eq!(access(&[], 0, 0, true), None);
    for seed in 0..200u64 {
        let noise: Vec<u8> = (0..300u64).map(|at| ((seed * 7919 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        for ip in (0..300).step_by(7) {
            let _ = access(&noise, 0, ip, false);
        }
    }
}

/// Functions of one loop each.
const SOURCE: &str = r"
void fill(double *a, long n) { for (long i = 0; i < n; i++) a[i] = 1.5; }
void triad(double *restrict a, const double *restrict b, const double *restrict c, long n)
  { for (long i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i]; }
double gather(const double *a, const int *at, long n) { double s = 0; for (long i = 0; i < n; i++) s += a[at[i]]; return s; }
void scatter(double *a, const int *at, long n) { for (long i = 0; i < n; i++) a[at[i]] += 1; }
double every(const double *a, long n) { double s = 0; for (long i = 0; i < n; i++) s += a[i * 16]; return s; }
struct node { struct node *next; long pad[7]; };
long chase(struct node *p) { long n = 0; while (p) { p = p->next; n++; } return n; }
double random_sum(const double *a, unsigned long mask, long n) { unsigned long x = 1; double s = 0;
  for (long i = 0; i < n; i++) { x = x * 6364136223846793005UL + 1; s += a[(x >> 33) & mask]; } return s; }
double back(const double *a, long n) { double s = 0; for (long i = n - 1; i >= 0; i--) s += a[i]; return s; }
";

/// All accesses of a function's loops but those of the stack, by compiling it. `None`: no compiler.
fn accesses(options: &[&str], function: &str) -> Option<Vec<Access>> {
    let dir = std::env::temp_dir().join(format!("nearfar-code-{}-{function}-{}", std::process::id(), options.join("")));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, object, raw) = (dir.join("a.c"), dir.join("a.o"), dir.join("a.bin"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut compile = Command::new("gcc");
    compile.args(options).arg("-ffunction-sections").arg("-c").arg(&source).arg("-o").arg(&object);
    let mut copy = Command::new("objcopy");
    copy.args(["-O", "binary", "-j"]).arg(format!(".text.{function}")).arg(&object).arg(&raw);
    let done = [compile, copy].iter_mut().all(|command| command.status().is_ok_and(|status| status.success()));
    let bytes = done.then(|| std::fs::read(&raw).unwrap());
    std::fs::remove_dir_all(&dir).unwrap();
    let bytes = bytes?;
    let code = decode(&bytes, 0);
    let inside = |at: usize| innermost(&code, code[at].ip()).is_some();
    let on_stack = |at: usize| matches!(code[at].memory_base(), Register::RSP | Register::RBP | Register::RIP);
    let of = |at: usize| access(&bytes, 0, code[at].ip(), true).filter(|_| inside(at) && !on_stack(at));
    Some((0..code.len()).filter_map(of).collect())
}

#[test]
fn what_compilers_make_of_loops() {
    let variants: [&[&str]; 5] = [
        &["-O0"],
        &["-O2"],
        &["-O3"],
        &["-O3", "-march=haswell"],
        &["-O3", "-march=skylake-avx512", "-mprefer-vector-width=512"],
    ];
    let mut wrong = String::new();
    for options in variants {
        let of = |function| accesses(options, function);
        let Some(fill) = of("fill") else { return println!("skip: no gcc and objcopy for {options:?}") };
        let mut check = |name: &str, found: Option<Vec<Access>>, good: &dyn Fn(&[Access]) -> bool| {
            let found = found.unwrap_or_default();
            if found.is_empty() || !good(&found) {
                writeln!(wrong, "{options:?} {name}: {found:?}").unwrap();
            }
        };
        let stream = |access: &Access| access.step == Step::Constant(i64::from(access.size));
        let varies = |access: &Access| access.step == Step::Varies;
        check("fill", Some(fill), &|all| all.iter().all(|access| stream(access) && access.also_writes && access.flops == 0));
        check("triad", of("triad"), &|all| {
            let lanes = u32::from(all[0].size) / 8;
            let stores = all.iter().filter(|access| access.also_writes).count();
            all.iter().all(stream) && stores * 3 == all.len() && (all[0].flops, all[0].access_bytes) == (2 * lanes, 24 * lanes)
        });
        check("gather", of("gather"), &|all| all.iter().any(varies) && all.iter().all(|access| !access.also_writes));
        check("scatter", of("scatter"), &|all| {
            all.iter().any(stream) && all.iter().any(varies) && all.iter().all(|access| access.also_writes == varies(access))
        });
        check("every", of("every"), &|all| all.iter().all(|access| (access.step, access.size) == (Step::Constant(128), 8)));
        check("chase", of("chase"), &|all| all.iter().all(varies));
        check("random_sum", of("random_sum"), &|all| all.iter().all(varies));
        check("back", of("back"), &|all| all.iter().all(|access| access.step == Step::Constant(-i64::from(access.size))));
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
