//! Successes that are remembered for a while, by keyed hashes.

use alloc::collections::{BTreeMap, BTreeSet};

use model::Nanos;

/// A keyed hash.
pub(crate) type Mark = [u8; 32];

/// Marks that end after their lifetime. A full table drops the oldest: only successes get in.
#[derive(Debug)]
pub(crate) struct Remembered {
    ends: BTreeMap<Mark, Nanos>,
    by_end: BTreeSet<(Nanos, Mark)>,
    marks_max: usize,
    lifetime: Nanos,
}

impl Remembered {
    pub(crate) const fn new(marks_max: usize, lifetime: Nanos) -> Self {
        Self { ends: BTreeMap::new(), by_end: BTreeSet::new(), marks_max, lifetime }
    }

    pub(crate) fn contains(&self, now: Nanos, mark: &Mark) -> bool {
        self.ends.get(mark).is_some_and(|end| now < *end)
    }

    pub(crate) fn insert(&mut self, now: Nanos, mark: Mark) {
        if let Some(end) = self.ends.remove(&mark) {
            self.by_end.remove(&(end, mark));
        }
        while let Some(&(end, oldest)) = self.by_end.first()
            && (end <= now || self.ends.len() >= self.marks_max)
        {
            self.ends.remove(&oldest);
            self.by_end.remove(&(end, oldest));
        }
        let end = now + self.lifetime;
        self.ends.insert(mark, end);
        self.by_end.insert((end, mark));
        assert_eq!(self.ends.len(), self.by_end.len(), "each mark has one end");
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.by_end.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_end_and_the_oldest_leave() {
        let mut remembered = Remembered::new(2, Nanos::SECOND);
        let at = Nanos::from_millis;
        remembered.insert(at(0), [1; 32]);
        remembered.insert(at(1), [2; 32]);
        remembered.insert(at(2), [1; 32]);
        assert!(remembered.contains(at(1_001), &[1; 32]));
        assert!(!remembered.contains(at(1_001), &[2; 32]));
        remembered.insert(at(3), [3; 32]);
        assert!(!remembered.contains(at(3), &[2; 32]), "it was the oldest");
        remembered.insert(at(4), [4; 32]);
        assert_eq!(remembered.ends.len(), 2);
        remembered.clear();
        assert!(!remembered.contains(at(4), &[4; 32]));
    }
}
