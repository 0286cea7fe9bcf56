//! A value for some pages of a block: a short list while they are few, an array when they are many. Most blocks of dense data have a value
//! for every page; of data that is touched here and there a page in each block has, and an array for each would be larger than the data.

use nearfar_core::addr::BLOCK_PAGES;

/// So many pages are kept in a list, which is then no larger than a tenth of the array.
const FEW: usize = 32;

/// Values of type `T` by page; `T::default()` where there is none.
#[derive(Default)]
pub enum PageMap<T> {
    /// None has one.
    #[default]
    None,
    /// Page and value, in order of pages.
    Few(Vec<(u16, T)>),
    /// By page.
    Many(Box<[T; BLOCK_PAGES]>),
}

impl<T: Copy + Default> PageMap<T> {
    /// The value of `page`.
    pub fn get(&self, page: usize) -> T {
        match self {
            Self::None => T::default(),
            Self::Few(list) => match list.binary_search_by_key(&(page as u16), |&(page, _)| page) {
                Ok(index) => list[index].1,
                Err(_) => T::default(),
            },
            Self::Many(all) => all[page],
        }
    }

    /// Gives `page` a value.
    pub fn set(&mut self, page: usize, value: T) {
        if let Self::None = self {
            *self = Self::Few(Vec::with_capacity(1));
        }
        if let Self::Few(list) = self {
            match list.binary_search_by_key(&(page as u16), |&(page, _)| page) {
                Ok(index) => return list[index].1 = value,
                Err(index) if list.len() < FEW => {
                    if list.len() == list.capacity() {
                        list.reserve_exact(list.len().max(1));
                    }
                    return list.insert(index, (page as u16, value));
                }
                Err(_) => {}
            }
            let mut all = Box::new([T::default(); BLOCK_PAGES]);
            list.iter().for_each(|&(page, value)| all[page as usize] = value);
            *self = Self::Many(all);
        }
        if let Self::Many(all) = self {
            all[page] = value;
        }
    }

    /// Takes the value of `page` away.
    pub fn clear(&mut self, page: usize) {
        match self {
            Self::None => {}
            Self::Few(list) => {
                list.retain(|&(other, _)| other as usize != page);
                if list.is_empty() {
                    *self = Self::None;
                }
            }
            Self::Many(all) => all[page] = T::default(),
        }
    }

    /// Bytes that it takes beside itself.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            // An allocation of its own has a head.
            Self::Few(list) => list.capacity() * size_of::<(u16, T)>() + 16,
            Self::Many(_) => BLOCK_PAGES * size_of::<T>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_say_the_same() {
        let (mut map, mut plain) = (PageMap::<u64>::default(), [0u64; BLOCK_PAGES]);
        let mut state = 7usize;
        for round in 0..5000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few pages at first, then any.
            let page = (state >> 33) % if round < 1000 { 20 } else { BLOCK_PAGES };
            if state >> 60 < 5 {
                map.clear(page);
                plain[page] = 0;
            } else {
                map.set(page, round + 1);
                plain[page] = round + 1;
            }
            assert!((0..BLOCK_PAGES).all(|page| map.get(page) == plain[page]), "round {round}");
            assert!(round >= 1000 || matches!(map, PageMap::None | PageMap::Few(_)));
        }
        assert_eq!(map.bytes(), 4096);
    }

    #[test]
    fn a_page_takes_little() {
        let mut map = PageMap::<u64>::default();
        map.set(300, 1);
        assert!(map.bytes() <= 32 && map.get(300) == 1 && map.get(299) == 0);
        map.clear(300);
        assert_eq!(map.bytes(), 0);
    }
}
