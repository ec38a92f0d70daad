//! The tubes that a connection watches.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::QueueName;

/// A set in beanstalkd's order: a new tube goes last, and the last takes the place of one that
/// leaves. Every operation is O(log n), for a peer may watch thousands.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    tubes: Vec<QueueName>,
    /// Where each stands in `tubes`.
    places: BTreeMap<QueueName, usize>,
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

    /// No effect when it is there.
    pub(crate) fn insert(&mut self, tube: QueueName) {
        if !self.contains(&tube) {
            self.places.insert(tube.clone(), self.tubes.len());
            self.tubes.push(tube);
        }
    }

    /// No effect when it is not there.
    pub(crate) fn remove(&mut self, tube: &QueueName) {
        let Some(place) = self.places.remove(tube) else { return };
        self.tubes.swap_remove(place);
        if let Some(moved) = self.tubes.get(place) {
            self.places.insert(moved.clone(), place);
        }
        assert_eq!(self.places.len(), self.tubes.len(), "invariant: each tube has one place");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn the_last_takes_the_place_of_the_one_that_leaves() {
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
}
