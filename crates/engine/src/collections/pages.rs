//! A map from ascending numbers to values, dense where the numbers are dense.
//!
//! Values lie in pages of 64. A page that becomes empty is freed, so the memory is bounded by the
//! values: in the worst case, one value a page, by one page each.
//!
//! Numbers that are asked for one after the other lie in few pages mostly: where these lie is
//! remembered, so that nine of ten look-ups search no tree.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::Cell;

#[derive(Debug)]
pub(crate) struct Pages<T> {
    /// The place of each page.
    places: BTreeMap<u64, usize>,
    pages: Vec<Option<Box<Page<T>>>>,
    /// Places without a page.
    free: Vec<usize>,
    len: usize,
    /// Pages that were found lately and their places; each page has one entry that it may use.
    found: [Cell<(u64, usize)>; FOUND_MAX],
}

#[derive(Debug)]
struct Page<T> {
    used: u32,
    slots: [Option<T>; PAGE_SLOTS],
}

impl<T> Pages<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            pages: Vec::new(),
            free: Vec::new(),
            len: 0,
            found: [const { Cell::new(NOT_FOUND) }; FOUND_MAX],
        }
    }

    /// Stores a value; gives back the one that was there.
    pub(crate) fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let number_of_page = number / PAGE_NUMBERS;
        let place = self.place(number_of_page).unwrap_or_else(|| self.add(number_of_page));
        let page = self.pages.get_mut(place)?.as_mut()?;
        let before = page.slots.get_mut(slot_of(number))?.replace(value);
        if before.is_none() {
            page.used += 1;
            self.len += 1;
        }
        before
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let place = self.place(number / PAGE_NUMBERS)?;
        self.pages.get(place)?.as_ref()?.slots.get(slot_of(number))?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number / PAGE_NUMBERS)?;
        self.pages.get_mut(place)?.as_mut()?.slots.get_mut(slot_of(number))?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let place = self.place(number / PAGE_NUMBERS)?;
        let page = self.pages.get_mut(place)?.as_mut()?;
        let value = page.slots.get_mut(slot_of(number))?.take()?;
        page.used -= 1;
        self.len -= 1;
        if page.used == 0 {
            self.drop_page(number / PAGE_NUMBERS, place);
        }
        Some(value)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// All values from this number on, ascending.
    pub(crate) fn iter_from(&self, first: u64) -> impl Iterator<Item = (u64, &T)> {
        let places = self.places.range(first / PAGE_NUMBERS..);
        let pages = places.filter_map(|(page_number, place)| {
            Some((page_number, self.pages.get(*place)?.as_ref()?))
        });
        pages
            .flat_map(|(page_number, page)| {
                let slots = page.slots.iter().zip(0..);
                slots.filter_map(move |(slot, offset)| {
                    Some((page_number * PAGE_NUMBERS + offset, slot.as_ref()?))
                })
            })
            .skip_while(move |(number, _)| *number < first)
    }

    /// The place of a page.
    fn place(&self, page: u64) -> Option<usize> {
        let found = self.found.get(entry_of(page))?;
        let (last, place) = found.get();
        if last == page {
            return Some(place);
        }
        let place = *self.places.get(&page)?;
        found.set((page, place));
        Some(place)
    }

    /// A page that is not there yet. Says where.
    fn add(&mut self, page: u64) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.pages.push(None);
            self.pages.len() - 1
        });
        if let Some(free) = self.pages.get_mut(place) {
            *free = Some(Page::empty());
        }
        self.places.insert(page, place);
        place
    }

    fn drop_page(&mut self, page: u64, place: usize) {
        if let Some(empty) = self.pages.get_mut(place) {
            *empty = None;
        }
        self.places.remove(&page);
        if let Some(found) = self.found.get(entry_of(page)) {
            found.set(NOT_FOUND);
        }
        self.free.push(place);
        if self.places.is_empty() {
            // Memory that a crowd needed is not kept for ever.
            (self.pages, self.free) = (Vec::new(), Vec::new());
        }
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

/// Which of the pages that were found lately it may be.
const fn entry_of(page: u64) -> usize {
    (page % FOUND_MAX as u64) as usize
}

const PAGE_SLOTS: usize = 64;
const PAGE_NUMBERS: u64 = PAGE_SLOTS as u64;

/// Pages that are remembered: for the messages that come, those that go and some that stay.
const FOUND_MAX: usize = 16;

/// No page has this number.
const NOT_FOUND: (u64, usize) = (u64::MAX, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_and_go() {
        let mut pages = Pages::new();
        assert_eq!(pages.insert(63, 'a'), None);
        assert_eq!(pages.insert(64, 'b'), None);
        assert_eq!(pages.insert(64, 'c'), Some('b'));
        assert_eq!(pages.insert(u64::MAX, 'z'), None);
        assert_eq!((pages.len(), pages.places.len()), (3, 3));
        assert_eq!(pages.iter_from(64).collect::<Vec<_>>(), [(64, &'c'), (u64::MAX, &'z')]);
        assert_eq!(pages.remove(62), None);
        assert_eq!(pages.remove(63), Some('a'));
        assert_eq!(pages.get(63), None);
        assert_eq!(pages.get_mut(64), Some(&mut 'c'));
        assert_eq!((pages.len(), pages.places.len()), (2, 2), "an empty page is freed");
    }

    /// Against a plain map, with pages that share an entry among those found lately, and pages that
    /// come again in another's place.
    #[test]
    fn pages_match_a_plain_map() {
        let mut pages = Pages::new();
        let mut plain = BTreeMap::new();
        let mut state = 1_u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (state >> 33) % 40 * PAGE_NUMBERS + (state >> 50) % 2;
            if state >> 62 < 2 {
                assert_eq!(pages.insert(number, step), plain.insert(number, step));
            } else {
                assert_eq!(pages.remove(number), plain.remove(&number));
            }
            let other = (state >> 20) % 40 * PAGE_NUMBERS;
            assert_eq!(pages.get(other), plain.get(&other));
            assert_eq!(pages.get_mut(other), plain.get_mut(&other));
        }
        let from = |first| pages.iter_from(first).map(|(number, step)| (number, *step));
        let expected = plain.range(700..).map(|(number, step)| (*number, *step));
        assert_eq!(from(700).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(pages.pages.len() <= 40, "places are used again");
        for number in plain.into_keys() {
            assert!(pages.remove(number).is_some());
        }
        assert!(pages.pages.is_empty() && pages.len() == 0);
    }
}
