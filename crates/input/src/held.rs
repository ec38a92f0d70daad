//! Answers that wait for the log, of protocols that let answers overtake each other.

use alloc::collections::{BTreeMap, VecDeque};

use model::{DependsOn, Durability, Durable, Lsn};

/// Things to tell a peer, each once the position it depends on is durable. A thing that depends on
/// less does not wait for one that depends on more.
#[derive(Debug)]
pub struct Held<T> {
    /// Depend on nothing that is not durable.
    free: VecDeque<T>,
    written: Line<T>,
    synced: Line<T>,
    /// The place of the next one among those that wait for the same frame.
    next: u64,
    durable: Durable,
}

/// The things that wait for one level. Most come in the order of the positions they wait for, which
/// takes no tree.
#[derive(Debug)]
struct Line<T> {
    in_order: VecDeque<(Place, T)>,
    /// Came behind some that wait for more.
    late: BTreeMap<Place, T>,
}

/// The frame waited for, and the order of arrival.
type Place = (Lsn, u64);

impl<T> Default for Held<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Held<T> {
    /// Holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            free: VecDeque::new(),
            written: Line::new(),
            synced: Line::new(),
            next: 0,
            durable: Durable::default(),
        }
    }

    /// Keeps it until then.
    pub fn push(&mut self, after: DependsOn, thing: T) {
        let (reached, waiting) = match after.level {
            Durability::None => (Lsn(u64::MAX), &mut self.written),
            Durability::Written => (self.durable.written, &mut self.written),
            Durability::Synced => (self.durable.synced, &mut self.synced),
        };
        if after.lsn <= reached {
            self.free.push_back(thing);
            return;
        }
        waiting.push((after.lsn, self.next), thing);
        self.next += 1;
    }

    /// The log is so durable now.
    pub fn advance(&mut self, durable: Durable) {
        if durable == self.durable {
            return;
        }
        self.durable = durable;
        for (waiting, reached) in
            [(&mut self.written, durable.written), (&mut self.synced, durable.synced)]
        {
            self.free.extend(core::iter::from_fn(|| waiting.pop(reached)));
        }
    }

    /// The next one that may be told.
    pub fn pop(&mut self) -> Option<T> {
        self.free.pop_front()
    }

    /// True if some wait for the log.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.written.is_empty() || !self.synced.is_empty()
    }
}

impl<T> Line<T> {
    fn new() -> Self {
        Self { in_order: VecDeque::new(), late: BTreeMap::new() }
    }

    fn push(&mut self, place: Place, thing: T) {
        if self.in_order.back().is_none_or(|(last, _)| *last < place) {
            return self.in_order.push_back((place, thing));
        }
        let before = self.late.insert(place, thing);
        assert!(before.is_none(), "each has a place of its own");
    }

    /// The first, if the position it waits for is reached.
    fn pop(&mut self, reached: Lsn) -> Option<T> {
        let first = self.in_order.front().map(|(place, _)| *place);
        if let Some(late) = self.late.first_entry()
            && first.is_none_or(|first| *late.key() < first)
        {
            return (late.key().0 <= reached).then(|| late.remove());
        }
        let (_, thing) = self.in_order.pop_front_if(|(place, _)| place.0 <= reached)?;
        if self.in_order.is_empty() && self.in_order.capacity() > KEPT_MAX {
            // The memory that a crowd needed is not kept for ever.
            self.in_order = VecDeque::new();
        }
        Some(thing)
    }

    fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.late.is_empty()
    }
}

/// Places that an empty line keeps.
const KEPT_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn after(lsn: u64, level: Durability) -> DependsOn {
        DependsOn::new(Lsn(lsn), level)
    }

    fn free(held: &mut Held<char>) -> String {
        core::iter::from_fn(|| held.pop()).collect()
    }

    #[test]
    fn held_answers_wait_for_their_position() {
        let mut held = Held::new();
        held.push(after(2, Durability::Synced), 'c');
        held.push(after(1, Durability::Synced), 'a');
        held.push(after(2, Durability::Synced), 'd');
        held.push(after(2, Durability::Written), 'w');
        held.push(DependsOn::NOTHING, 'n');
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

    /// Against a plain list, sorted by the position that each waits for.
    #[test]
    fn held_answers_match_a_sorted_list() {
        let mut held = Held::new();
        let mut plain: Vec<(u64, u64)> = Vec::new();
        let mut state = 1_u64;
        for number in 0..1_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let lsn = number / 8 * 2 + (state >> 33) % 8 + 1;
            held.push(after(lsn, Durability::Synced), number);
            plain.push((lsn, number));
        }
        plain.sort_unstable();
        for reached in (0..300).step_by(7) {
            held.advance(Durable { written: Lsn(reached), synced: Lsn(reached) });
            let gone = plain.partition_point(|(lsn, _)| *lsn <= reached);
            let gone: Vec<u64> = plain.drain(..gone).map(|(_, number)| number).collect();
            assert_eq!(core::iter::from_fn(|| held.pop()).collect::<Vec<_>>(), gone);
        }
        assert!(plain.is_empty() && !held.is_holding());
    }
}
