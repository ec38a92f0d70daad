//! What waits for the log, of protocols whose answers may overtake each other.

use std::collections::{BTreeMap, VecDeque};

use journal::Durable;
use model::{After, Durability, Lsn};

/// Things to tell a peer, each once what it depends on is durable. What depends on less does not
/// wait for what depends on more.
#[derive(Debug)]
pub(crate) struct Held<T> {
    /// Depend on nothing that is not durable.
    free: VecDeque<T>,
    written: BTreeMap<Place, T>,
    synced: BTreeMap<Place, T>,
    /// The place of the next one among those that wait for the same frame.
    next: u64,
    durable: Durable,
}

/// The frame waited for, and the order of arrival.
type Place = (Lsn, u64);

impl<T> Held<T> {
    pub(crate) fn new() -> Self {
        Self {
            free: VecDeque::new(),
            written: BTreeMap::new(),
            synced: BTreeMap::new(),
            next: 0,
            durable: Durable::default(),
        }
    }

    /// Keeps it until then.
    pub(crate) fn push(&mut self, after: After, thing: T) {
        let (reached, waiting) = match after.level {
            Durability::None => (Lsn(u64::MAX), &mut self.written),
            Durability::Written => (self.durable.written, &mut self.written),
            Durability::Synced => (self.durable.synced, &mut self.synced),
        };
        if after.lsn <= reached {
            self.free.push_back(thing);
            return;
        }
        let before = waiting.insert((after.lsn, self.next), thing);
        assert!(before.is_none(), "each has a place of its own");
        self.next += 1;
    }

    /// The log is so durable now.
    pub(crate) fn advance(&mut self, durable: Durable) {
        if durable == self.durable {
            return;
        }
        self.durable = durable;
        for (waiting, reached) in
            [(&mut self.written, durable.written), (&mut self.synced, durable.synced)]
        {
            while let Some(first) = waiting.first_entry()
                && first.key().0 <= reached
            {
                self.free.push_back(first.remove());
            }
        }
    }

    /// The next one that may be told.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.free.pop_front()
    }

    /// Whether some wait for the log.
    pub(crate) fn is_holding(&self) -> bool {
        !self.written.is_empty() || !self.synced.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lsn: u64, level: Durability) -> After {
        After::new(Lsn(lsn), level)
    }

    fn free(held: &mut Held<char>) -> String {
        std::iter::from_fn(|| held.pop()).collect()
    }

    #[test]
    fn each_waits_for_its_own_and_equals_keep_their_order() {
        let mut held = Held::new();
        held.push(after(2, Durability::Synced), 'c');
        held.push(after(1, Durability::Synced), 'a');
        held.push(after(2, Durability::Synced), 'd');
        held.push(after(2, Durability::Written), 'w');
        held.push(After::NOTHING, 'n');
        assert_eq!(free(&mut held), "n");
        assert!(held.is_holding());
        held.advance(Durable { written: Lsn(2), synced: Lsn(1) });
        assert_eq!(free(&mut held), "wa");
        held.push(after(1, Durability::Synced), 'b');
        assert_eq!(free(&mut held), "b", "durable already");
        held.advance(Durable { written: Lsn(2), synced: Lsn(2) });
        assert_eq!(free(&mut held), "cd");
        assert!(!held.is_holding());
    }
}
