//! A map from ascending numbers to values, dense where the numbers are dense.
//!
//! Values lie in pages of 64. A page that becomes empty is freed, so the memory is bounded by the
//! values: in the worst case, one value a page, by one page each.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Pages<T> {
    pages: BTreeMap<u64, Box<Page<T>>>,
    len: usize,
}

#[derive(Debug)]
struct Page<T> {
    used: u32,
    slots: [Option<T>; PAGE_SLOTS],
}

impl<T> Pages<T> {
    pub(crate) const fn new() -> Self {
        Self { pages: BTreeMap::new(), len: 0 }
    }

    /// Stores a value; gives back the one that was there.
    pub(crate) fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let page = self.pages.entry(number / PAGE_NUMBERS).or_insert_with(Page::empty);
        let slot = page.slots.get_mut(slot_of(number))?;
        let before = slot.replace(value);
        if before.is_none() {
            page.used += 1;
            self.len += 1;
        }
        before
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        self.pages.get(&(number / PAGE_NUMBERS))?.slots.get(slot_of(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.pages.get_mut(&(number / PAGE_NUMBERS))?.slots.get_mut(slot_of(number))?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let page = self.pages.get_mut(&(number / PAGE_NUMBERS))?;
        let value = page.slots.get_mut(slot_of(number))?.take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.pages.remove(&(number / PAGE_NUMBERS));
        }
        Some(value)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// All values from this number on, ascending.
    pub(crate) fn iter_from(&self, first: u64) -> impl Iterator<Item = (u64, &T)> {
        self.pages
            .range(first / PAGE_NUMBERS..)
            .flat_map(|(page_number, page)| {
                let slots = page.slots.iter().zip(0..);
                slots.filter_map(move |(slot, offset)| {
                    Some((page_number * PAGE_NUMBERS + offset, slot.as_ref()?))
                })
            })
            .skip_while(move |(number, _)| *number < first)
    }
}

impl<T> Page<T> {
    fn empty() -> Box<Self> {
        Box::new(Self { used: 0, slots: [const { None }; PAGE_SLOTS] })
    }
}

const fn slot_of(number: u64) -> usize {
    (number % PAGE_NUMBERS) as usize
}

const PAGE_SLOTS: usize = 64;
const PAGE_NUMBERS: u64 = PAGE_SLOTS as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn values_come_and_go() {
        let mut pages = Pages::new();
        assert_eq!(pages.insert(63, 'a'), None);
        assert_eq!(pages.insert(64, 'b'), None);
        assert_eq!(pages.insert(64, 'c'), Some('b'));
        assert_eq!(pages.insert(u64::MAX, 'z'), None);
        assert_eq!((pages.len(), pages.pages.len()), (3, 3));
        assert_eq!(pages.iter_from(64).collect::<Vec<_>>(), [(64, &'c'), (u64::MAX, &'z')]);
        assert_eq!(pages.remove(62), None);
        assert_eq!(pages.remove(63), Some('a'));
        assert_eq!(pages.get(63), None);
        assert_eq!(pages.get_mut(64), Some(&mut 'c'));
        assert_eq!((pages.len(), pages.pages.len()), (2, 2), "an empty page is freed");
    }
}
