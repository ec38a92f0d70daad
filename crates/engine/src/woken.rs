//! Queues that have something to give since a command, a timer or a delivery.

use alloc::collections::{BTreeSet, VecDeque};

use crate::queue::QueueSlot;

/// Queues that got a ready message, or a consumer who could take one: each once, in the order in
/// which they first did. They are served in that order, which is Redis's.
#[derive(Debug)]
pub(crate) struct Woken {
    /// Mostly there is one at most, which takes no memory of its own.
    first: Option<QueueSlot>,
    rest: VecDeque<QueueSlot>,
    /// Those of the rest.
    known: BTreeSet<QueueSlot>,
}

impl Woken {
    pub(crate) const NONE: Self =
        Self { first: None, rest: VecDeque::new(), known: BTreeSet::new() };

    pub(crate) const fn of(queue: QueueSlot) -> Self {
        Self { first: Some(queue), rest: VecDeque::new(), known: BTreeSet::new() }
    }

    /// It goes behind the others, unless it is one of them.
    pub(crate) fn add(&mut self, queue: QueueSlot) {
        let Some(first) = self.first else {
            self.first = Some(queue);
            return;
        };
        if first != queue && self.known.insert(queue) {
            self.rest.push_back(queue);
        }
    }

    /// Takes the one that has waited longest. It may be added again.
    pub(crate) fn pop(&mut self) -> Option<QueueSlot> {
        let queue = self.first.take()?;
        self.first = self.rest.pop_front();
        if let Some(next) = &self.first {
            let was_known = self.known.remove(next);
            assert!(was_known, "the rest is known");
        }
        Some(queue)
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = QueueSlot> {
        self.first.into_iter().chain(self.rest.iter().copied())
    }
}

impl Extend<QueueSlot> for Woken {
    fn extend<I: IntoIterator<Item = QueueSlot>>(&mut self, queues: I) {
        queues.into_iter().for_each(|queue| self.add(queue));
    }
}
