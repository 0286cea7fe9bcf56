//! A plan as programs read it: records of fixed size, little-endian, looked at in place. The bytes are drawn in docs/reference/binary-formats.md.
//!
//! Reading allocates nothing and trusts nothing: what is not a table of this version is refused as a whole, and no content of a
//! table that was accepted can make a reader fail. Names are kept as hashes: programs compare, they do not print.

use super::plan::{Plan, PlanError};
use super::{MAX_BUILD_ID, ObjectKind, SizeRange, Tier};

const MAGIC: [u8; 8] = *b"nfplan\r\n";
const VERSION: u64 = 1;
const HEADER: usize = 24;
const RULE: usize = 48;
const FRAME: usize = 64;
/// Stands for "no offset"; no return address has it.
const NO_OFFSET: u64 = u64::MAX;

/// Why bytes are no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// They begin with something else.
    #[error("this is not a compiled plan")]
    Foreign,
    /// Compiled by another version.
    #[error("this plan was compiled by another version of nearfar")]
    Version,
    /// They are too short, or numbers in them point outside.
    #[error("this compiled plan is damaged")]
    Damaged,
}

/// The hash of a name (FNV-1a, 64 bits), never 0, which stands for "no name".
pub const fn name_hash(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < name.len() {
        hash = (hash ^ name[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    if hash == 0 { 1 } else { hash }
}

fn optional(name: Option<&String>) -> u64 {
    name.map_or(0, |name| name_hash(name.as_bytes()))
}

/// Compiles `plan`.
///
/// # Errors
/// What [`Plan::check`] finds.
pub fn compile(plan: &Plan) -> Result<Vec<u8>, PlanError> {
    plan.check()?;
    let frames: usize = plan.place.iter().map(|place| place.frame.len()).sum();
    let mut out = Vec::with_capacity(HEADER + plan.place.len() * RULE + frames * FRAME);
    out.extend_from_slice(&MAGIC);
    for number in [VERSION as u32, plan.place.len() as u32, frames as u32, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let wrong = |number: usize| move |why| PlanError::Rule { number, name: String::new(), why };
    let mut first = 0u32;
    for (number, place) in (1..).zip(&plan.place) {
        let sizes = place.sizes().map_err(wrong(number))?;
        let kinds = place.kind.kinds().iter().fold(0u8, |mask, kind| mask | 1 << *kind as u8);
        out.extend_from_slice(&[Tier::from(place.tier) as u8, kinds, 0, 0]);
        for number in [first, place.frame.len() as u32, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [sizes.least, sizes.most, optional(place.symbol.as_ref()), optional(place.module.as_ref())] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        first += place.frame.len() as u32;
    }
    for (number, place) in (1..).zip(&plan.place) {
        for frame in &place.frame {
            let build_id = frame.build_id().map_err(wrong(number))?;
            let mut bytes = [0u8; MAX_BUILD_ID];
            bytes[..build_id.len()].copy_from_slice(&build_id);
            let offset = frame.offset.unwrap_or(NO_OFFSET);
            for number in [offset, optional(frame.function.as_ref()), optional(frame.module.as_ref()), build_id.len() as u64] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&bytes);
        }
    }
    Ok(out)
}

/// A compiled plan, looked at in place.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    rules: &'a [u8],
    frames: &'a [u8],
}

/// A rule: objects that fit all of it go to `tier`. The first rule of a table that fits decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// Where.
    pub tier: Tier,
    /// Bit `n` for [`ObjectKind`] number `n`.
    kinds: u8,
    /// Sizes that are meant.
    pub sizes: SizeRange,
    /// Hash of the static array's symbol; `None`: any.
    pub symbol: Option<u64>,
    /// Hash of the file name that holds the static array; `None`: any.
    pub module: Option<u64>,
    frames: &'a [u8],
}

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The module's build id; empty when it is not given.
    pub build_id: &'a [u8],
    /// Return address relative to the module's load address. It holds for a module with this build id; without a build id for one
    /// of the name `module`.
    pub offset: Option<u64>,
    /// Hash of the function's symbol: what counts in a module with another build id.
    pub function: Option<u64>,
    /// Hash of the module's file name; `None`: any.
    pub module: Option<u64>,
}

/// The little-endian number at `at`, 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |word| u64::from_le_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |word| u64::from(u32::from_le_bytes(*word)))
}

fn some(hash: u64) -> Option<u64> {
    (hash != 0).then_some(hash)
}

impl<'a> Table<'a> {
    /// The table that `bytes` begin with; more may follow.
    ///
    /// # Errors
    /// See [`TableError`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, TableError> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(TableError::Foreign);
        }
        let header = bytes.get(..HEADER).ok_or(TableError::Damaged)?;
        if half(header, 8) != VERSION {
            return Err(TableError::Version);
        }
        let (rules, frames) = (half(header, 12) as usize, half(header, 16) as usize);
        let rules_end = rules.checked_mul(RULE).and_then(|len| len.checked_add(HEADER)).ok_or(TableError::Damaged)?;
        let end = frames.checked_mul(FRAME).and_then(|len| len.checked_add(rules_end)).ok_or(TableError::Damaged)?;
        let table = Self {
            rules: bytes.get(HEADER..rules_end).ok_or(TableError::Damaged)?,
            frames: bytes.get(rules_end..end).ok_or(TableError::Damaged)?,
        };
        let sound = (0..rules).all(|index| table.rule(index).is_some());
        let build_ids = table.frames.chunks_exact(FRAME).all(|frame| word(frame, 24) <= MAX_BUILD_ID as u64);
        if sound && build_ids { Ok(table) } else { Err(TableError::Damaged) }
    }

    /// How many rules.
    pub fn len(&self) -> usize {
        self.rules.len() / RULE
    }

    /// True without rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Rule number `index`, from 0.
    pub fn rule(&self, index: usize) -> Option<Rule<'a>> {
        let at = index.checked_mul(RULE)?;
        let rule = self.rules.get(at..at.checked_add(RULE)?)?;
        let (first, count) = (half(rule, 4) as usize, half(rule, 8) as usize);
        let (start, len) = (first.checked_mul(FRAME)?, count.checked_mul(FRAME)?);
        let tier = match rule.first()? {
            0 => Tier::Near,
            1 => Tier::Far,
            _ => return None,
        };
        Some(Rule {
            tier,
            kinds: *rule.get(1)?,
            sizes: SizeRange { least: word(rule, 16), most: word(rule, 24) },
            symbol: some(word(rule, 32)),
            module: some(word(rule, 40)),
            frames: self.frames.get(start..start.checked_add(len)?)?,
        })
    }

    /// All rules, in order.
    pub fn rules(self) -> impl Iterator<Item = Rule<'a>> {
        (0..self.len()).filter_map(move |index| self.rule(index))
    }

    /// All frames of all rules: what a program translates to addresses when it starts. Their order is that of the rules.
    pub fn frames(self) -> impl Iterator<Item = Frame<'a>> {
        frames(self.frames)
    }

    /// The number of the first frame of rule `index` among [`frames`](Self::frames).
    pub fn first_frame(&self, index: usize) -> Option<usize> {
        self.rules.get(index.checked_mul(RULE)?..).map(|rule| half(rule, 4) as usize)
    }
}

fn frames(bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    bytes.chunks_exact(FRAME).map(|frame| Frame {
        offset: Some(word(frame, 0)).filter(|&offset| offset != NO_OFFSET),
        function: some(word(frame, 8)),
        module: some(word(frame, 16)),
        build_id: frame.get(32..).and_then(|rest| rest.get(..word(frame, 24) as usize)).unwrap_or_default(),
    })
}

impl<'a> Rule<'a> {
    /// True when objects of this kind and size are meant; symbol and frames are for the caller to compare.
    pub const fn fits(&self, kind: ObjectKind, bytes: u64) -> bool {
        self.kinds >> kind as u8 & 1 == 1 && self.sizes.contains(bytes)
    }

    /// True when some object of this kind is meant.
    pub const fn names(&self, kind: ObjectKind) -> bool {
        self.kinds >> kind as u8 & 1 == 1
    }

    /// How many frames; without any it does not matter where an object is allocated.
    pub const fn depth(&self) -> usize {
        self.frames.len() / FRAME
    }

    /// The frames, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        frames(self.frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::plan::{Frame as PlanFrame, KindName, Place, TierName};
    use proptest::prelude::*;

    fn sample() -> Plan {
        let frame = PlanFrame {
            module: Some("vasp".into()),
            build_id: Some("ab12".into()),
            offset: Some(0x1234),
            function: Some("allocate_wave_".into()),
            ..PlanFrame::default()
        };
        let by_name = PlanFrame { function: Some("main".into()), ..PlanFrame::default() };
        Plan::new(vec![
            Place { least: Some("1M".into()), frame: vec![frame, by_name], ..Place::default() },
            Place { kind: KindName::Stack, tier: TierName::Far, ..Place::default() },
            Place { kind: KindName::Static, symbol: Some("psi_".into()), most: Some("1G".into()), ..Place::default() },
        ])
    }

    #[test]
    fn a_table_says_what_the_plan_says() {
        let bytes = compile(&sample()).unwrap();
        assert_eq!(bytes.len(), HEADER + 3 * RULE + 2 * FRAME);
        let table = Table::new(&bytes).unwrap();
        let rules: Vec<_> = table.rules().collect();
        assert!(rules[0].fits(ObjectKind::Heap, 1 << 20) && !rules[0].fits(ObjectKind::Heap, (1 << 20) - 1));
        assert!(!rules[0].names(ObjectKind::Map) && rules[0].tier == Tier::Near);
        let frames: Vec<_> = rules[0].frames().collect();
        assert_eq!((rules[0].depth(), frames.len(), table.frames().count(), table.first_frame(2)), (2, 2, 2, Some(2)));
        assert_eq!((frames[0].build_id, frames[0].offset), (&[0xab, 0x12][..], Some(0x1234)));
        assert_eq!((frames[0].module, frames[1].function), (Some(name_hash(b"vasp")), Some(name_hash(b"main"))));
        assert_eq!((frames[1].build_id, frames[1].offset, frames[1].module), (&[][..], None, None));
        assert!(rules[1].fits(ObjectKind::MainStack, 1) && rules[1].fits(ObjectKind::ThreadStack, 1));
        assert_eq!((rules[1].tier, rules[1].symbol, rules[2].symbol), (Tier::Far, None, Some(name_hash(b"psi_"))));
    }

    #[test]
    fn names_are_told_apart() {
        assert_eq!(name_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(name_hash(b"a"), 0xaf63_dc4c_8601_ec8c, "FNV-1a as published");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let bytes = compile(&sample()).unwrap();
        assert_eq!(Table::new(b"").unwrap_err(), TableError::Foreign);
        for len in MAGIC.len()..bytes.len() {
            assert_eq!(Table::new(&bytes[..len]).unwrap_err(), TableError::Damaged, "{len} bytes");
        }
        let with = |at: usize, byte: u8| {
            let mut changed = bytes.clone();
            changed[at] = byte;
            Table::new(&changed).map(|table| table.len())
        };
        assert_eq!(with(8, 2), Err(TableError::Version));
        assert_eq!(with(HEADER, 7), Err(TableError::Damaged), "no such tier");
        assert_eq!(with(HEADER + 8, 200), Err(TableError::Damaged), "more frames than there are");
        assert_eq!(with(HEADER + 3 * RULE + 24, 33), Err(TableError::Damaged), "a build id that is too long");
        assert_eq!(compile(&Plan::new(Vec::new())), Err(PlanError::Empty));
    }

    proptest! {
        #[test]
        fn changed_bytes_do_no_harm(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
                                    cut in any::<prop::sample::Index>()) {
            let mut bytes = compile(&sample()).unwrap();
            for (at, byte) in edits {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - cut.index(bytes.len()) / 8);
            if let Ok(table) = Table::new(&bytes) {
                prop_assert_eq!(table.rules().count(), table.len());
                for rule in table.rules() {
                    prop_assert_eq!(rule.frames().count(), rule.depth());
                }
            }
        }
    }
}
