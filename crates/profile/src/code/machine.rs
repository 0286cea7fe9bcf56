//! The instructions of x86-64, carried out with symbols.

mod pass;
mod cost;

use super::value::{Change, change};
use cost::Cost;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpAccess, OpKind};
use nearfar_core::profile::names::{Access, Step};
use pass::{Pass, Place};

/// A loop of more instructions is none that one would call inner.
const MOST_INSTRUCTIONS: usize = 2000;
/// Operands at most so far apart share a line.
const LINE: u64 = 64;

pub fn access(bytes: &[u8], start: u64, ip: u64, aligned: bool) -> Option<Access> {
    let at = usize::try_from(ip.checked_sub(start)?).ok().filter(|&at| at < bytes.len())?;
    let first = if aligned { 0 } else { beginning(bytes, start, at) };
    let code = decode(bytes.get(first..)?, start + first as u64);
    let target = code.iter().find(|instruction| instruction.ip() == ip)?;
    let around = innermost(&code, ip);
    let alone = std::slice::from_ref(target);
    let body = around.as_deref().unwrap_or(alone);
    let pass = Pass::through(body);
    let place = pass.touched(target)?.clone();
    let cost = if around.is_some() { Cost::of(body, &pass) } else { Cost::default() };
    let repeated = (target.has_rep_prefix() || target.has_repne_prefix()) && target.is_string_instruction();
    let step = if repeated {
        Step::Constant(i64::from(place.size))
    } else if target.is_vsib() {
        Step::Varies
    } else if around.is_none() {
        Step::Constant(0)
    } else {
        match change(&place.value, pass.ends()) {
            Change::By(step) => Step::Constant(covered(step, &place, &pass)),
            Change::Varies => Step::Varies,
            Change::Steady | Change::Unknown => return None,
        }
    };
    let reach = match step {
        Step::Constant(step) => step.unsigned_abs().max(LINE),
        Step::Varies => LINE,
    };
    let also_writes = pass.places().any(|other| other.writes && is_near(other, &place, reach));
    Some(Access {
        step,
        size: place.size,
        also_writes,
        non_temporal: cost::is_non_temporal(target),
        flops: cost.flops,
        access_bytes: cost.bytes,
    })
}

/// Where the innermost loop around `ip` begins, in the code of a function.
pub fn inner_loop(bytes: &[u8], start: u64, ip: u64) -> Option<u64> {
    innermost(&decode(bytes, start), ip)?.first().map(Instruction::ip)
}

fn is_near(one: &Place, other: &Place, reach: u64) -> bool {
    one.value.is_beside(&other.value) && one.value.constant.abs_diff(other.value.constant) < reach
}

/// An unrolled loop makes large steps, but its other operands lie between: the largest distance that none of them covers.
fn covered(step: i64, place: &Place, pass: &Pass) -> i64 {
    let width = step.unsigned_abs();
    if width <= u64::from(place.size) {
        return step;
    }
    let group = pass.places().filter(|other| other.value.is_beside(&place.value));
    let mut starts: Vec<u64> = group.map(|other| other.value.constant.rem_euclid(width as i64) as u64).collect();
    starts.sort_unstable();
    starts.dedup();
    let around = starts.first().zip(starts.last()).map_or(width, |(first, last)| first + width - last);
    let widest = starts.windows(2).map(|pair| pair[1] - pair[0]).chain([around]).max().unwrap_or(width);
    widest as i64 * step.signum()
}

/// Where to begin so that an instruction begins at `at`: as far back as possible. Wrong beginnings fall into step within a few
/// instructions, so the first ones may be wrong, which matters only to loops that reach so far.
fn beginning(bytes: &[u8], start: u64, at: usize) -> usize {
    let mut reaches = vec![false; at + 1];
    reaches[at] = true;
    for from in (0..at).rev() {
        let mut decoder = Decoder::with_ip(64, &bytes[from..], start + from as u64, DecoderOptions::NONE);
        let instruction = decoder.decode();
        reaches[from] = !instruction.is_invalid() && reaches.get(from + instruction.len()).copied().unwrap_or(false);
    }
    reaches.iter().position(|&reaches| reaches).unwrap_or(at)
}

fn decode(bytes: &[u8], start: u64) -> Vec<Instruction> {
    // What cannot be decoded (data between functions) is one byte that does nothing.
    Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter().collect()
}

/// The instructions of the smallest loop around `ip`.
fn innermost(code: &[Instruction], ip: u64) -> Option<Vec<Instruction>> {
    let around = backward_branches(code).filter(|&(from, to)| code[from].ip() <= ip && ip <= code[to].ip());
    let mut around: Vec<(usize, usize)> = around.filter(|(from, to)| to - from < MOST_INSTRUCTIONS).collect();
    around.sort_by_key(|(from, to)| to - from);
    around.into_iter().map(|(from, to)| body(&code[from..=to])).find(|body| body.iter().any(|instruction| instruction.ip() == ip))
}

/// What of `range` is carried out between its first instruction and its last, a branch back to the first. Compilers put rests of
/// loops beside them that jump back to a common end: that is no loop, and nothing is carried out again.
fn body(range: &[Instruction]) -> Vec<Instruction> {
    let place = |ip: u64| range.binary_search_by_key(&ip, Instruction::ip).ok();
    let next: Vec<[Option<usize>; 2]> = range
        .iter()
        .enumerate()
        .map(|(at, instruction)| {
            let target = || place(instruction.near_branch_target());
            let after = Some(at + 1).filter(|&after| after < range.len());
            match instruction.flow_control() {
                FlowControl::UnconditionalBranch => [target(), None],
                FlowControl::ConditionalBranch => [target(), after],
                FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => [None, None],
                _ => [after, None],
            }
        })
        .collect();
    let last = range.len() - 1;
    let mut reached = vec![false; range.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) && at != last {
            open.extend(next[at].iter().flatten());
        }
    }
    // Backward until nothing is added: what comes to the last.
    let mut comes = vec![false; range.len()];
    comes[last] = true;
    let mut grows = true;
    while grows {
        grows = false;
        for at in (0..last).rev() {
            if !comes[at] && next[at].iter().flatten().any(|&to| comes[to]) {
                comes[at] = true;
                grows = true;
            }
        }
    }
    range
        .iter()
        .zip(reached.iter().zip(&comes))
        .filter(|(_, both)| *both.0 && *both.1)
        .map(|(&instruction, _)| instruction)
        .collect()
}

/// Target and branch, as indices.
fn backward_branches(code: &[Instruction]) -> impl Iterator<Item = (usize, usize)> + '_ {
    code.iter().enumerate().filter_map(|(at, instruction)| {
        let branches = matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        if !branches
            || !matches!(instruction.op0_kind(), OpKind::NearBranch64)
            || instruction.near_branch_target() > instruction.ip()
        {
            return None;
        }
        let target = code.binary_search_by_key(&instruction.near_branch_target(), Instruction::ip).ok()?;
        Some((target, at))
    })
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

#[cfg(test)]
mod tests;
