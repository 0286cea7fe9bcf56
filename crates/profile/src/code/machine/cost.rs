//! Floating-point operations and bytes of one pass, from the mnemonics.

use super::pass::Pass;
use iced_x86::{Instruction, Mnemonic, OpKind};

/// What one pass does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub flops: u32,
    pub bytes: u32,
}

impl Cost {
    /// Of the instructions of a loop. Bytes of stack slots do not count: those are registers that had no room.
    pub fn of(body: &[Instruction], pass: &Pass) -> Self {
        let flops = body.iter().map(flops).sum();
        let bytes = pass.places().filter(|place| !place.is_slot).map(|place| place.bytes).sum();
        Self { flops, bytes }
    }
}

/// Stores that go past the caches.
pub fn is_non_temporal(instruction: &Instruction) -> bool {
    use Mnemonic::{Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntpd, Vmovntps};
    let stores = [Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntpd, Vmovntps];
    stores.contains(&instruction.mnemonic())
}

const FUSED: [&str; 4] = ["fmadd", "fmsub", "fnmadd", "fnmsub"];
const SIMPLE: [&str; 9] = ["add", "sub", "mul", "div", "sqrt", "min", "max", "hadd", "hsub"];
const X87: [&str; 9] = ["fadd", "fsub", "fmul", "fdiv", "fiadd", "fisub", "fimul", "fidiv", "fsqrt"];

fn flops(instruction: &Instruction) -> u32 {
    let name = format!("{:?}", instruction.mnemonic()).to_ascii_lowercase();
    let plain = name.strip_prefix('v').unwrap_or(&name);
    let begins = |starts: &[&str]| starts.iter().any(|start| plain.starts_with(start));
    let each = match () {
        () if begins(&FUSED) => 2,
        () if begins(&SIMPLE) => 1,
        () => return u32::from(begins(&X87)),
    };
    let width = match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size() as u32,
        _ => 0,
    };
    match plain.get(plain.len().saturating_sub(2)..) {
        Some("ss" | "sd" | "sh") => each,
        Some("ps") => each * width / 4,
        Some("pd") => each * width / 8,
        Some("ph") => each * width / 2,
        _ => 0,
    }
}
