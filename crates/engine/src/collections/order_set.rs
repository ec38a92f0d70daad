//! The ready messages of a queue: a set of (priority, order), smallest first.
//!
//! Orders come from two counters, one ascending and one, below zero, descending; so those of one
//! priority are mostly dense. 64 neighbours share one entry, a word with a bit for each: a million
//! ready messages of one priority are 16,000 entries.

use alloc::collections::BTreeMap;

use model::End;

#[derive(Clone, Debug, Default)]
pub(crate) struct OrderSet {
    /// (priority, order / 64 rounded down) to the orders in it; never 0.
    words: BTreeMap<(u32, i64), u64>,
}

impl OrderSet {
    /// False when it was there already.
    pub(crate) fn insert(&mut self, priority: u32, order: i64) -> bool {
        let key = (priority, high(order));
        // New messages come behind all others: the way there needs no comparisons.
        if let Some(mut last) = self.words.last_entry()
            && *last.key() == key
        {
            return add(last.get_mut(), order);
        }
        add(self.words.entry(key).or_insert(0), order)
    }

    /// False when it was not there.
    pub(crate) fn remove(&mut self, priority: u32, order: i64) -> bool {
        let key = (priority, high(order));
        let Some(word) = self.words.get_mut(&key) else { return false };
        let before = *word;
        *word &= !bit(order);
        let changed = before != *word;
        if *word == 0 {
            self.words.remove(&key);
        }
        changed
    }

    pub(crate) fn first(&self) -> Option<(u32, i64)> {
        let ((priority, high), word) = self.words.first_key_value()?;
        Some((*priority, lowest(*high, *word)))
    }

    pub(crate) fn last(&self) -> Option<(u32, i64)> {
        let ((priority, high), word) = self.words.last_key_value()?;
        Some((*priority, highest(*high, *word)))
    }

    /// The smallest that is not before this one.
    pub(crate) fn first_from(&self, priority: u32, order: i64) -> Option<(u32, i64)> {
        let (high, low) = (high(order), !(bit(order) - 1));
        if let Some(word) = self.words.get(&(priority, high))
            && word & low != 0
        {
            return Some((priority, lowest(high, word & low)));
        }
        let ((priority, high), word) = self.words.range((priority, high + 1)..).next()?;
        Some((*priority, lowest(*high, *word)))
    }

    /// The smallest that comes after this one.
    pub(crate) fn first_after(&self, priority: u32, order: i64) -> Option<(u32, i64)> {
        self.first_from(priority, order.saturating_add(1))
    }

    /// The largest before this one.
    pub(crate) fn last_before(&self, priority: u32, order: i64) -> Option<(u32, i64)> {
        let (high, low) = (high(order), bit(order) - 1);
        if let Some(word) = self.words.get(&(priority, high))
            && word & low != 0
        {
            return Some((priority, highest(high, word & low)));
        }
        let ((priority, high), word) = self.words.range(..(priority, high)).next_back()?;
        Some((*priority, highest(*high, *word)))
    }

    /// The one beside this, on the side away from that end.
    pub(crate) fn next_from(&self, end: End, (priority, order): (u32, i64)) -> Option<(u32, i64)> {
        match end {
            End::Head => self.first_after(priority, order),
            End::Tail => self.last_before(priority, order),
        }
    }

    /// The one at an end.
    pub(crate) fn at_end(&self, end: End) -> Option<(u32, i64)> {
        match end {
            End::Head => self.first(),
            End::Tail => self.last(),
        }
    }

    /// The one with so many between it and an end, and how many words were looked at.
    pub(crate) fn nth(&self, end: End, place: u64) -> (Option<(u32, i64)>, usize) {
        let mut left = place;
        let mut looked = 0;
        let mut look = |((priority, high), word): (&(u32, i64), &u64)| {
            looked += 1;
            let count = u64::from(word.count_ones());
            if left >= count {
                left -= count;
                return None;
            }
            Some((*priority, high * 64 + nth_bit(end, *word, left)))
        };
        let found = match end {
            End::Head => self.words.iter().find_map(&mut look),
            End::Tail => self.words.iter().rev().find_map(&mut look),
        };
        (found, looked)
    }

    pub(crate) fn contains(&self, priority: u32, order: i64) -> bool {
        self.words.get(&(priority, high(order))).is_some_and(|word| word & bit(order) != 0)
    }

    /// All, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, i64)> {
        self.words.iter().flat_map(|((priority, high), word)| {
            let set = (0..64).filter(move |place| word & (1 << place) != 0);
            set.map(move |place| (*priority, high * 64 + place))
        })
    }

    /// How many there are, counted.
    pub(crate) fn count(&self) -> u64 {
        self.words.values().map(|word| u64::from(word.count_ones())).sum()
    }
}

const fn high(order: i64) -> i64 {
    order.div_euclid(64)
}

const fn bit(order: i64) -> u64 {
    1 << order.rem_euclid(64)
}

/// False when it was there already.
const fn add(word: &mut u64, order: i64) -> bool {
    let before = *word;
    *word |= bit(order);
    before != *word
}

/// The first order of a word that is not 0.
fn lowest(high: i64, word: u64) -> i64 {
    high * 64 + i64::from(word.trailing_zeros())
}

/// The last order of a word that is not 0.
fn highest(high: i64, word: u64) -> i64 {
    high * 64 + i64::from(63 - word.leading_zeros())
}

/// The position of the bit in a word with so many set ones between it and an end.
fn nth_bit(end: End, mut word: u64, place: u64) -> i64 {
    for _ in 0..place {
        word &= match end {
            End::Head => word - 1,
            End::Tail => !(1 << (63 - word.leading_zeros())),
        };
    }
    match end {
        End::Head => lowest(0, word),
        End::Tail => highest(0, word),
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn order_set_smallest_is_first() {
        let mut set = OrderSet::default();
        assert_eq!(set.first(), None);
        for (priority, order) in [(5, 64), (5, 63), (5, 1000), (4, 2000)] {
            assert!(set.insert(priority, order));
            assert!(!set.insert(priority, order), "twice");
        }
        assert!(set.contains(5, 63) && !set.contains(5, 62));
        assert_eq!(set.count(), 4);
        for (from, expected) in [
            ((0, i64::MIN), Some((4, 2000))),
            ((4, 2000), Some((4, 2000))),
            ((4, 2001), Some((5, 63))),
            ((5, 64), Some((5, 64))),
            ((5, 65), Some((5, 1000))),
            ((5, 1001), None),
        ] {
            assert_eq!(set.first_from(from.0, from.1), expected, "{from:?}");
        }
        for expected in [(4, 2000), (5, 63), (5, 64), (5, 1000)] {
            assert_eq!(set.first(), Some(expected));
            assert!(set.remove(expected.0, expected.1));
            assert!(!set.remove(expected.0, expected.1), "twice");
        }
        assert!(set.words.is_empty());
    }

    /// The set agrees with a plain set of pairs, from both ends and around zero.
    #[test]
    fn places_count_from_either_end() {
        let mut set = OrderSet::default();
        let mut plain = BTreeSet::new();
        assert_eq!((set.nth(End::Head, 0).0, set.at_end(End::Tail)), (None, None));
        for step in 0..200_i64 {
            let pair = ((step % 3) as u32, step * 7919 % 331 - 165);
            assert_eq!(set.insert(pair.0, pair.1), plain.insert(pair));
        }
        let ascending: Vec<_> = plain.iter().copied().collect();
        let descending: Vec<_> = plain.iter().rev().copied().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), ascending);
        for (end, all) in [(End::Head, &ascending), (End::Tail, &descending)] {
            assert_eq!(set.at_end(end), all.first().copied());
            for (place, expected) in (0..).zip(all) {
                assert_eq!(set.nth(end, place).0, Some(*expected));
                let next = all.get(place as usize + 1).copied();
                assert_eq!(set.next_from(end, *expected), next, "beside {expected:?}");
            }
            let (beyond, looked) = set.nth(end, all.len() as u64);
            assert_eq!((beyond, looked), (None, set.words.len()));
        }
        assert_eq!(set.last_before(0, i64::MIN), None);
    }
}
