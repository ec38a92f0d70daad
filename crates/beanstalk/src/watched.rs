//! The tubes that a connection watches.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::QueueName;

/// Bytes of memory that a watched tube takes here and in the engine, but for its name. Measured.
const TUBE_BYTES: usize = 192;

/// Bytes of them that every connection may have: some hundred and fifty tubes.
const BYTES_FREE: usize = 32 * 1_024;

/// A set in beanstalkd's order: a new tube goes last, and the last takes the place of one that
/// leaves. Every operation is O(log n), for a peer may watch thousands.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    tubes: Vec<QueueName>,
    /// The place of each in `tubes`.
    places: BTreeMap<QueueName, usize>,
    /// The bytes that they take of memory.
    bytes: usize,
}

impl Watched {
    pub(crate) fn len(&self) -> usize {
        self.tubes.len()
    }

    pub(crate) fn contains(&self, tube: &QueueName) -> bool {
        self.places.contains_key(tube)
    }

    pub(crate) fn tubes(&self) -> &[QueueName] {
        &self.tubes
    }

    /// Bytes of memory that more of them take than most connections have.
    pub(crate) const fn bytes_beyond_usual(&self) -> usize {
        self.bytes.saturating_sub(BYTES_FREE)
    }

    /// No effect when it is there.
    pub(crate) fn insert(&mut self, tube: QueueName) {
        if !self.contains(&tube) {
            self.bytes += cost(&tube);
            self.places.insert(tube.clone(), self.tubes.len());
            self.tubes.push(tube);
        }
    }

    /// No effect when it is not there.
    pub(crate) fn remove(&mut self, tube: &QueueName) {
        let Some(place) = self.places.remove(tube) else { return };
        self.bytes -= cost(tube);
        self.tubes.swap_remove(place);
        if let Some(moved) = self.tubes.get(place) {
            self.places.insert(moved.clone(), place);
        }
        assert_eq!(self.places.len(), self.tubes.len(), "invariant: each tube has one place");
    }
}

fn cost(tube: &QueueName) -> usize {
    TUBE_BYTES + tube.as_str().len()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn last_watched_tube_replaces_removed_one() {
        let mut watched = Watched::default();
        for tube in ["a", "b", "c", "b", "d"] {
            watched.insert(name(tube));
        }
        watched.remove(&name("b"));
        watched.remove(&name("nowhere"));
        assert_eq!(watched.tubes(), [name("a"), name("d"), name("c")]);
        watched.remove(&name("d"));
        watched.remove(&name("c"));
        assert_eq!(watched.tubes(), [name("a")]);
        assert!(watched.contains(&name("a")) && !watched.contains(&name("d")));
    }

    #[test]
    fn watched_tubes_over_usual_are_counted() {
        let mut watched = Watched::default();
        let tubes = || (0..1_000).map(|number| name(&format!("{number:0200}")));
        tubes().take(80).for_each(|tube| watched.insert(tube));
        assert_eq!(watched.bytes_beyond_usual(), 0);
        for _ in 0..2 {
            tubes().for_each(|tube| watched.insert(tube));
            assert_eq!(watched.bytes_beyond_usual(), 1_000 * 392 - BYTES_FREE);
        }
        for _ in 0..2 {
            tubes().for_each(|tube| watched.remove(&tube));
            assert_eq!(watched.bytes, 0);
        }
    }
}
