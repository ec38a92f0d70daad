//! The ready messages of a queue: a set of (priority, order), smallest first.
//!
//! Orders come from a counter, so those of one priority are mostly dense. 64 neighbours share one
//! entry, a word with a bit for each: a million ready messages of one priority are 16,000 entries.

use alloc::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct OrderSet {
    /// (priority, order / 64) to the orders in it; never 0.
    words: BTreeMap<(u32, u64), u64>,
}

impl OrderSet {
    /// False when it was there already.
    pub(crate) fn insert(&mut self, priority: u32, order: u64) -> bool {
        let word = self.words.entry((priority, order / 64)).or_insert(0);
        let before = *word;
        *word |= bit(order);
        before != *word
    }

    /// False when it was not there.
    pub(crate) fn remove(&mut self, priority: u32, order: u64) -> bool {
        let key = (priority, order / 64);
        let Some(word) = self.words.get_mut(&key) else { return false };
        let before = *word;
        *word &= !bit(order);
        let changed = before != *word;
        if *word == 0 {
            self.words.remove(&key);
        }
        changed
    }

    pub(crate) fn first(&self) -> Option<(u32, u64)> {
        let ((priority, high), word) = self.words.first_key_value()?;
        Some((*priority, high * 64 + u64::from(word.trailing_zeros())))
    }

    /// The smallest that is not before this one.
    pub(crate) fn first_from(&self, priority: u32, order: u64) -> Option<(u32, u64)> {
        let (word_of, low) = (order / 64, !(bit(order) - 1));
        if let Some(word) = self.words.get(&(priority, word_of))
            && word & low != 0
        {
            return Some((priority, word_of * 64 + u64::from((word & low).trailing_zeros())));
        }
        let ((priority, high), word) = self.words.range((priority, word_of + 1)..).next()?;
        Some((*priority, high * 64 + u64::from(word.trailing_zeros())))
    }

    /// The smallest that comes after this one.
    pub(crate) fn first_after(&self, priority: u32, order: u64) -> Option<(u32, u64)> {
        self.first_from(priority, order.saturating_add(1))
    }

    pub(crate) fn contains(&self, priority: u32, order: u64) -> bool {
        self.words.get(&(priority, order / 64)).is_some_and(|word| word & bit(order) != 0)
    }

    /// All, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
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

const fn bit(order: u64) -> u64 {
    1 << (order % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_priority_and_order_is_first() {
        let mut set = OrderSet::default();
        assert_eq!(set.first(), None);
        for (priority, order) in [(5, 64), (5, 63), (5, 1000), (4, 2000)] {
            assert!(set.insert(priority, order));
            assert!(!set.insert(priority, order), "twice");
        }
        assert!(set.contains(5, 63) && !set.contains(5, 62));
        assert_eq!(set.count(), 4);
        for (from, expected) in [
            ((0, 0), Some((4, 2000))),
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
}
