//! One pass through the instructions of a loop.

use super::{backward_branches, reads, writes};
use crate::code::value::{State, Value, Var};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// A memory operand.
#[derive(Clone, Debug)]
pub struct Place {
    /// The instruction's address.
    pub ip: u64,
    /// Where the operand is.
    pub value: Value,
    /// Bytes of it (of one element, if several are gathered).
    pub size: u8,
    /// Bytes that are loaded and stored.
    pub bytes: u32,
    pub writes: bool,
    /// A stack slot, or a variable or number at a fixed address.
    pub is_slot: bool,
}

/// What a pass did.
#[derive(Default)]
pub struct Pass {
    state: State,
    places: Vec<Place>,
    parts: u32,
    /// What was loaded, by address: loaded again, it is taken for the same.
    loaded: Vec<(Value, Value)>,
}

impl Pass {
    pub fn through(body: &[Instruction]) -> Self {
        let mut pass = Self::default();
        let mut factory = InstructionInfoFactory::new();
        let last = body.len().saturating_sub(1);
        let inner: Vec<(usize, usize)> = backward_branches(body).filter(|&loops| loops != (0, last)).collect();
        for (at, instruction) in body.iter().enumerate() {
            let before = pass.state.clone();
            pass.step(instruction, &mut factory);
            if inner.iter().any(|&(from, to)| (from..=to).contains(&at)) {
                pass.repeated(&before);
            }
        }
        pass
    }

    /// What an instruction of an inner loop changed since `before` is changed an unknown number of times.
    fn repeated(&mut self, before: &State) {
        for (var, value) in &mut self.state {
            if before.get(var) != Some(value) && value.as_constant().is_none() {
                *value = Value::vague();
            }
        }
    }

    /// What is left in what was changed.
    pub fn ends(&self) -> &State {
        &self.state
    }

    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// The operand that `instruction` touches: one that moves rather than one that stays.
    pub fn touched(&self, instruction: &Instruction) -> Option<&Place> {
        let own = || self.places.iter().filter(|place| place.ip == instruction.ip());
        own().find(|place| !place.is_slot).or_else(|| own().next())
    }

    fn step(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        // eax to rax: has no operands, and changes no index.
        if instruction.mnemonic() == Mnemonic::Cdqe {
            return;
        }
        let info = factory.info(instruction);
        let mut inputs: Vec<Value> = Vec::new();
        let mut stored: Option<Var> = None;
        for memory in info.used_memory().iter().filter(|memory| reads(memory.access()) || writes(memory.access())) {
            let value = self.address(memory.base(), memory.index(), memory.scale(), memory.displacement());
            let slot = slot_of(memory.base(), memory.index(), &value);
            // Of a repeated instruction the whole is not known, but what it does each time.
            let sort = if memory.memory_size().size() == 0 { instruction.memory_size() } else { memory.memory_size() };
            let element = sort.element_size().max(1);
            let whole = sort.size().max(element);
            let (load, store) = (reads(memory.access()), writes(memory.access()));
            self.places.push(Place {
                ip: instruction.ip(),
                value: value.clone(),
                size: if instruction.is_vsib() { element } else { whole }.min(255) as u8,
                bytes: whole as u32 * (u32::from(load) + u32::from(store)),
                writes: store,
                is_slot: slot.is_some() || value.as_constant().is_some(),
            });
            stored = stored.or(slot.filter(|_| store));
            if load {
                let loaded = slot.map(|slot| self.read(slot)).unwrap_or_else(|| self.load(&value));
                inputs.push(loaded);
            }
        }
        let registers: Vec<(Var, OpAccess)> =
            info.used_registers().iter().filter_map(|used| Some((gpr(used.register())?, used.access()))).collect();
        let destination = match instruction.op0_kind() {
            OpKind::Register => gpr(instruction.op0_register()),
            OpKind::Memory => stored,
            _ => None,
        };
        let exact = destination.and_then(|_| self.exact(instruction));
        inputs.extend(registers.iter().filter(|(_, access)| reads(*access)).map(|&(var, _)| self.read(var)));
        let other = self.function(&inputs);
        let written = registers.iter().filter(|(_, access)| writes(*access)).map(|&(var, _)| var).chain(stored);
        // The stack pointer counts as where it was: what is pushed is popped.
        for var in written.filter(|&var| var != Var::Register(Register::RSP as u32)) {
            let value = exact.as_ref().filter(|_| destination == Some(var)).unwrap_or(&other);
            self.state.insert(var, value.clone());
        }
    }

    /// What the first operand becomes, where that is a sum.
    fn exact(&mut self, instruction: &Instruction) -> Option<Value> {
        let old = self.operand(instruction, 0);
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Movzx => self.operand(instruction, 1),
            Mnemonic::Lea => {
                let (base, index) = (instruction.memory_base(), instruction.memory_index());
                Some(self.address(base, index, instruction.memory_index_scale(), instruction.memory_displacement64()))
            }
            Mnemonic::Add => Some(old?.plus(&self.operand(instruction, 1)?, 1)),
            Mnemonic::Sub => Some(old?.plus(&self.operand(instruction, 1)?, -1)),
            Mnemonic::Inc => Some(old?.plus(&Value::constant(1), 1)),
            Mnemonic::Dec => Some(old?.plus(&Value::constant(1), -1)),
            Mnemonic::Neg => Some(Value::default().plus(&old?, -1)),
            Mnemonic::Shl => {
                let by = self.operand(instruction, 1)?.as_constant().filter(|by| (0..32).contains(by))?;
                Some(Value::default().plus(&old?, 1 << by))
            }
            Mnemonic::Imul if instruction.op_count() == 3 => {
                let factor = self.operand(instruction, 2)?.as_constant()?;
                Some(Value::default().plus(&self.operand(instruction, 1)?, factor))
            }
            Mnemonic::Xor
                if instruction.op1_kind() == OpKind::Register && instruction.op0_register() == instruction.op1_register() =>
            {
                Some(Value::constant(0))
            }
            _ => None,
        }
    }

    /// An operand of 32 or 64 bits that is a sum: an index of 32 bits counts as if it never wrapped around.
    fn operand(&mut self, instruction: &Instruction, at: u32) -> Option<Value> {
        match instruction.op_kind(at) {
            OpKind::Register => {
                let register = instruction.op_register(at);
                gpr(register).filter(|_| register.size() >= 4).map(|var| self.read(var))
            }
            OpKind::Memory => {
                let (base, index) = (instruction.memory_base(), instruction.memory_index());
                let value = self.address(base, index, instruction.memory_index_scale(), instruction.memory_displacement64());
                let slot = slot_of(base, index, &value);
                let read = slot.map(|slot| self.read(slot)).unwrap_or_else(|| self.load(&value));
                Some(read).filter(|_| instruction.memory_size().size() >= 4 && !instruction.is_vsib())
            }
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Some(Value::constant(instruction.immediate(at) as i64)),
            _ => None,
        }
    }

    /// A vector of indices counts as nothing: whoever asks for its step looks at the instruction.
    fn address(&self, base: Register, index: Register, scale: u32, displacement: u64) -> Value {
        [(base, 1), (index, i64::from(scale))].into_iter().fold(
            Value::constant(displacement as i64),
            |value, (register, factor)| match gpr(register) {
                Some(var) => value.plus(&self.read(var), factor),
                None => value,
            },
        )
    }

    fn read(&self, var: Var) -> Value {
        self.state.get(&var).cloned().unwrap_or_else(|| Value::var(var))
    }

    fn load(&mut self, address: &Value) -> Value {
        if let Some((_, known)) = self.loaded.iter().find(|(from, _)| from == address) {
            return known.clone();
        }
        let value = self.function([address]);
        self.loaded.push((address.clone(), value.clone()));
        value
    }

    fn function<'a>(&mut self, of: impl IntoIterator<Item = &'a Value>) -> Value {
        self.parts += 1;
        Value::part(self.parts, of)
    }
}

fn gpr(register: Register) -> Option<Var> {
    register.is_gpr().then(|| Var::Register(register.full_register() as u32))
}

/// Operands at fixed distances from the stack pointer or frame pointer are variables.
fn slot_of(base: Register, index: Register, value: &Value) -> Option<Var> {
    let base = base.full_register();
    if index != Register::None || !matches!(base, Register::RSP | Register::RBP) {
        return None;
    }
    let pointer = Value::var(Var::Register(base as u32));
    value.is_beside(&pointer).then_some(Var::Slot(base as u32, value.constant))
}
