//! The live objects of a process: by address, and by group (kind and call site), from which pages are drawn that are to be looked at.

use nearfar_core::addr::{BLOCK, PAGE};
use nearfar_core::profile::choice::{self, Choice};
use nearfar_core::profile::fine::FINE_OF;
use nearfar_core::profile::record::{Kind, ObjectId, SiteId};
use nearfar_core::random_numbers::Random;
use std::collections::{BTreeMap, HashMap};

/// An object that lives.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // As in its record.
pub struct Object {
    pub id: ObjectId,
    pub kind: Kind,
    pub addr: u64,
    pub len: u64,
    pub site: SiteId,
    /// The symbol of a static array.
    pub name: Option<Box<str>>,
    pub at: u64,
    /// Its record is in the file, or on its way.
    pub written: bool,
    /// Looks at it that are under way.
    pub looks: u32,
    group: usize,
    place: usize,
}

impl Object {
    /// The pages that lie wholly inside.
    pub fn pages(&self) -> (u64, u64) {
        let first = self.addr.div_ceil(PAGE as u64);
        let end = (self.addr.saturating_add(self.len)) / PAGE as u64;
        (first, end.saturating_sub(first))
    }

    /// A page in one of its few blocks of 2 MiB that may be split into small pages, always the same; 0 where it has too few for that.
    pub fn fine_page(&self, random: &mut Random) -> u64 {
        let first = self.addr.div_ceil(BLOCK as u64);
        let blocks = (self.addr.saturating_add(self.len) / BLOCK as u64).saturating_sub(first);
        if blocks < FINE_OF {
            return 0;
        }
        // Spread over it, and elsewhere in each object: those of a site may all begin with the same.
        let place = Random::new(self.id).below(FINE_OF);
        let block = first + place + random.below((blocks - place).div_ceil(FINE_OF)) * FINE_OF;
        block * BLOCK as u64 + random.below((BLOCK / PAGE) as u64) * PAGE as u64
    }

    /// True when the block of 2 MiB around `page` lies inside.
    pub fn has_block_of(&self, page: u64) -> bool {
        let start = page & !(BLOCK as u64 - 1);
        start >= self.addr && start + BLOCK as u64 <= self.addr.saturating_add(self.len)
    }
}

/// Objects of one kind and site.
#[derive(Debug, Default)]
struct Group {
    members: Vec<u64>,
    pages: u64,
    /// Pages that it has as a rule: the most of the last seconds. Looks are drawn among these, and those that fall on what does not live
    /// now are none: how often a page is looked at must not depend on what else lives, or looks would not be spread over time.
    usual: f64,
    /// Pages of the largest that it ever had.
    largest: u64,
    /// Looks at its objects so far, those that saw a touch, and how long they took together.
    looks: u64,
    touches: u64,
    waited_ns: u64,
}

impl Group {
    /// What its choice rests on. Its weight: visits of its pages in a second.
    fn facts(&self) -> choice::Group {
        let bytes = self.usual as u64 * PAGE as u64;
        let weight = self.usual * self.touches as f64 / (self.waited_ns as f64 / 1e9).max(1e-6);
        choice::Group { bytes, looks: self.looks, touches: self.touches, weight }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub struct Live {
    by_addr: BTreeMap<u64, Object>,
    groups: Vec<Group>,
    group_of: HashMap<(Kind, SiteId, Option<Box<str>>), usize>,
    next: ObjectId,
    choice: Choice,
    sorted_at: u64,
}

/// What a group had is forgotten within so long.
const FORGET_NS: f64 = 3e9;
/// How often a draw is tried anew.
const TRIES: usize = 64;

impl Live {
    /// A number for an object that is not kept here.
    pub fn number(&mut self) -> ObjectId {
        self.next += 1;
        self.next
    }

    /// A new object; what overlaps it must be gone.
    pub fn begin(&mut self, kind: Kind, addr: u64, len: u64, site: SiteId, name: Option<Box<str>>, at: u64) -> ObjectId {
        let id = self.number();
        self.insert(Object { id, kind, addr, len, site, name, at, written: false, looks: 0, group: 0, place: 0 });
        id
    }

    /// Puts back what was removed, perhaps elsewhere or with another size.
    pub fn insert(&mut self, mut object: Object) {
        let key = (object.kind, object.site, object.name.clone());
        let groups = &mut self.groups;
        let index = *self.group_of.entry(key).or_insert_with(|| {
            groups.push(Group::default());
            groups.len() - 1
        });
        let group = &mut self.groups[index];
        (object.group, object.place) = (index, group.members.len());
        group.members.push(object.addr);
        let pages = object.pages().1;
        group.pages += pages;
        group.usual = group.usual.max(group.pages as f64);
        group.largest = group.largest.max(pages);
        self.by_addr.insert(object.addr, object);
    }

    /// Removes the object that begins at `addr`.
    pub fn remove(&mut self, addr: u64) -> Option<Object> {
        let object = self.by_addr.remove(&addr)?;
        let group = &mut self.groups[object.group];
        group.pages -= object.pages().1;
        group.members.swap_remove(object.place);
        if let Some(&moved) = group.members.get(object.place)
            && let Some(other) = self.by_addr.get_mut(&moved)
        {
            other.place = object.place;
        }
        Some(object)
    }

    /// The object that begins at `addr`.
    pub fn at(&self, addr: u64) -> Option<&Object> {
        self.by_addr.get(&addr)
    }

    /// The same, to change what its group does not depend on.
    pub fn at_mut(&mut self, addr: u64) -> Option<&mut Object> {
        self.by_addr.get_mut(&addr)
    }

    /// Where objects begin that have bytes in `start..end`.
    pub fn overlapping(&self, start: u64, end: u64) -> Vec<u64> {
        let before = self.by_addr.range(..start).next_back().filter(|(_, object)| object.addr.saturating_add(object.len) > start);
        before.into_iter().chain(self.by_addr.range(start..end.max(start))).map(|(&addr, _)| addr).collect()
    }

    /// Bytes of objects in `start..end`.
    pub fn bytes_in(&self, start: u64, end: u64) -> u64 {
        let of = |object: &Object| (object.addr + object.len).min(end).saturating_sub(object.addr.max(start));
        self.overlapping(start, end).iter().filter_map(|addr| self.by_addr.get(addr)).map(of).sum()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Object> {
        self.by_addr.values()
    }

    /// All of them, to change what their groups do not depend on.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.by_addr.values_mut()
    }

    /// Bytes in whole pages of the group that `object` is in.
    pub fn group_bytes(&self, object: &Object) -> u64 {
        self.groups[object.group].pages * PAGE as u64
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Looks again which groups are worth looking at. `now` in ns.
    pub fn sort(&mut self, now: u64) {
        let passed = now.saturating_sub(std::mem::replace(&mut self.sorted_at, now)) as f64;
        let kept = (-passed / FORGET_NS).exp();
        self.groups.iter_mut().for_each(|group| group.usual = (group.usual * kept).max(group.pages as f64));
        let facts: Vec<choice::Group> = self.groups.iter().map(Group::facts).collect();
        self.choice.renew(&facts);
    }

    /// The group of the object at `addr`.
    pub fn group_of(&self, addr: u64) -> usize {
        self.by_addr.get(&addr).map_or(usize::MAX, |object| object.group)
    }

    /// A look at an object of that group has ended.
    pub fn looked(&mut self, group: usize, touched: bool, waited_ns: u64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.touches += u64::from(touched);
            group.waited_ns += waited_ns;
        }
    }

    /// A page to be looked at: `core::profile::choice` chooses the group, and within it each page is drawn alike. Returns where the
    /// object begins, and the page's address; `None` where a group was drawn for pages that do not live now.
    pub fn draw(&mut self, random: &mut Random) -> Option<(u64, u64)> {
        let group = &mut self.groups[self.choice.pick(random)?];
        if group.pages == 0 || random.unit() * group.usual > group.pages as f64 {
            return None;
        }
        group.looks += 1;
        for _ in 0..TRIES {
            let addr = group.members[random.below(group.members.len() as u64) as usize];
            let Some((first, pages)) = self.by_addr.get(&addr).map(Object::pages) else { continue };
            // Objects by their pages: a larger draw than it has is none.
            let page = random.below(group.largest.max(1));
            if page < pages {
                return Some((addr, (first + page) * PAGE as u64));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const P: u64 = PAGE as u64;

    #[test]
    fn objects_come_and_go() {
        let mut live = Live::default();
        let one = live.begin(Kind::Heap, 100, 50, 1, None, 0);
        let two = live.begin(Kind::Heap, 200, 50, 1, None, 0);
        live.begin(Kind::Heap, 300, 50, 2, None, 0);
        assert_eq!(
            (live.overlapping(120, 121), live.overlapping(150, 200), live.overlapping(149, 301)),
            (vec![100], vec![], vec![100, 200, 300])
        );
        assert_eq!(live.bytes_in(125, 210), 35);
        assert_eq!(live.remove(100).map(|object| object.id), Some(one));
        assert_eq!(live.remove(200).map(|object| object.id), Some(two));
        assert_eq!((live.remove(200), live.all().count()), (None, 1));
    }

    #[test]
    fn pages_are_drawn_alike_within_a_group() {
        let mut live = Live::default();
        live.begin(Kind::Heap, 10 * P, 30 * P, 1, None, 0);
        live.begin(Kind::Heap, 100 * P + 1, 11 * P, 1, None, 0);
        live.begin(Kind::Map, 1000 * P, 4 * P, 2, None, 0);
        live.begin(Kind::Heap, 2000 * P + 1, P, 3, None, 0);
        live.sort(1);
        let mut count = HashMap::new();
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            if let Some((addr, page)) = live.draw(&mut random) {
                let object = live.at(addr).unwrap();
                assert!(page >= object.addr && page + P <= object.addr + object.len);
                *count.entry(page / P).or_insert(0u32) += 1;
            }
        }
        assert_eq!(count.len(), 30 + 10 + 4, "the last has no whole page");
        let group = |range: std::ops::Range<u64>| range.map(|page| count[&page]).collect::<Vec<_>>();
        let (a, b) = (group(10..40), group(101..111));
        let (least, most) = (a.iter().chain(&b).min().unwrap(), a.iter().chain(&b).max().unwrap());
        assert!(most < &(least * 2), "{least} {most}");
    }

    /// Where one lives half of the time, the other is looked at as often in both halves.
    #[test]
    fn looks_do_not_depend_on_what_else_lives() {
        let mut live = Live::default();
        live.begin(Kind::Heap, 0x100_0000, 1000 * P, 1, None, 0);
        let mut random = Random::new(1);
        let mut looks = [[0_u32; 2]; 2];
        for round in 0..200_u64 {
            let both = round % 2 == 1;
            if both {
                live.begin(Kind::Heap, 0x1000_0000, 1000 * P, 2, None, 0);
            }
            for part in 0..8 {
                live.sort((8 * round + part) * 5_000_000);
                for _ in 0..20 {
                    if let Some((addr, _)) = live.draw(&mut random) {
                        looks[usize::from(addr > 0x100_0000)][usize::from(both)] += 1;
                    }
                }
            }
            if both {
                live.remove(0x1000_0000);
            }
        }
        let [[alone, beside], [none, brief]] = looks;
        assert_eq!(none, 0);
        let ratio = f64::from(alone) / f64::from(beside);
        assert!((0.9..1.1).contains(&ratio) && brief > beside / 2, "{looks:?}");
    }

    #[test]
    fn blocks_of_two_mebibytes() {
        let mut live = Live::default();
        let block = BLOCK as u64;
        live.begin(Kind::Map, block - P, 2 * block, 1, None, 0);
        let object = live.at(block - P).unwrap();
        assert!(object.has_block_of(block + 5 * P) && !object.has_block_of(block - P) && !object.has_block_of(2 * block));
        assert_eq!(object.fine_page(&mut Random::new(1)), 0);
    }

    #[test]
    fn few_blocks_may_be_split_and_always_the_same() {
        let block = BLOCK as u64;
        let mut all = HashSet::new();
        for blocks in [15, 16, 40, 64, 1000] {
            let mut live = Live::default();
            live.begin(Kind::Map, 7 * block + P, (blocks + 1) * block, 1, None, 0);
            let object = live.at(7 * block + P).unwrap();
            let mut random = Random::new(3);
            let pages: HashSet<u64> = (0..2000).map(|_| object.fine_page(&mut random)).filter(|&page| page != 0).collect();
            assert!(pages.iter().all(|&page| object.has_block_of(page)), "{blocks}");
            let split: HashSet<u64> = pages.iter().map(|page| page / block).collect();
            let may = (blocks / 16) as usize;
            assert!((may..=may + 1).contains(&split.len()) && (blocks >= 16 || split.is_empty()), "{blocks}: {split:?}");
            assert!(may == 0 || pages.len() > 300, "small pages anywhere in them: {}", pages.len());
            assert!(all.is_subset(&split), "the same when it has grown: {all:?} {split:?}");
            all = split;
        }
    }
}
