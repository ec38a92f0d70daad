//! Queues that have something to give since a command, a timer or a delivery.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};

use crate::ids::QueueSlot;

/// Queues that got a ready message, or a consumer that could take one: each once, in the order in
/// which they first did. They are served in that order, which is Redis's.
#[derive(Debug)]
pub(crate) struct Woken {
    /// Mostly there is one at most, which takes no memory of its own.
    first: Option<QueueSlot>,
    rest: Option<Box<Rest>>,
}

/// Those behind the first.
#[derive(Debug, Default)]
struct Rest {
    line: VecDeque<QueueSlot>,
    known: BTreeSet<QueueSlot>,
}

impl Woken {
    pub(crate) const NONE: Self = Self { first: None, rest: None };

    pub(crate) const fn of(queue: QueueSlot) -> Self {
        Self { first: Some(queue), rest: None }
    }

    /// It goes behind the others, unless it is one of them.
    pub(crate) fn add(&mut self, queue: QueueSlot) {
        let Some(first) = self.first else {
            self.first = Some(queue);
            return;
        };
        if first != queue {
            let rest = self.rest.get_or_insert_default();
            if rest.known.insert(queue) {
                rest.line.push_back(queue);
            }
        }
    }

    /// Takes the one that has waited longest. It may be added again.
    pub(crate) fn pop(&mut self) -> Option<QueueSlot> {
        let queue = self.first.take()?;
        if let Some(rest) = &mut self.rest
            && let Some(next) = rest.line.pop_front()
        {
            let was_known = rest.known.remove(&next);
            assert!(was_known, "the rest is known");
            self.first = Some(next);
        }
        Some(queue)
    }

    /// The one, where there is no other.
    pub(crate) fn only(&self) -> Option<QueueSlot> {
        self.first.filter(|_| self.rest.is_none())
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.as_ref().map_or(0, |rest| rest.line.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = QueueSlot> {
        let rest = self.rest.iter().flat_map(|rest| rest.line.iter().copied());
        self.first.into_iter().chain(rest)
    }
}

impl Extend<QueueSlot> for Woken {
    fn extend<I: IntoIterator<Item = QueueSlot>>(&mut self, queues: I) {
        queues.into_iter().for_each(|queue| self.add(queue));
    }
}
