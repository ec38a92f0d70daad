//! Small values by name, and counts of them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::ops::Bound;

use model::{Nanos, QueueName, Refusal, limits};

use crate::ids::QueueSlot;
use crate::keyspace::{Filed, HEAD_BYTES, Keyspace, Value, Values};
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl Filed {
    fn of(name: &QueueName) -> Self {
        let (mut bytes, text) = ([0; HEAD_BYTES], name.as_str().as_bytes());
        bytes.iter_mut().zip(text).for_each(|(byte, of_name)| *byte = *of_name);
        let (words, _) = bytes.as_chunks();
        let mut head = [0; HEAD_BYTES / 8];
        head.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_be_bytes(*bytes));
        Self { head, name: name.clone() }
    }

    /// The part of the name that does not lie in the index, if there is any.
    fn rest(&self) -> Option<&[u8]> {
        let rest = self.name.as_str().as_bytes().get(HEAD_BYTES..);
        rest.filter(|rest| !rest.is_empty())
    }
}

impl Ord for Filed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.rest().cmp(&other.rest()))
    }
}

impl PartialOrd for Filed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Values {
    /// The value of this name, unless its time is over.
    pub(crate) fn get(&self, name: &QueueName, now: Nanos) -> Option<&Value> {
        self.stored(name).filter(|value| value.at.is_none_or(|at| at > now))
    }

    /// The same, be its time over or not.
    pub(crate) fn stored(&self, name: &QueueName) -> Option<&Value> {
        self.names.get(&Filed::of(name))
    }

    /// True if there is one, be its time over or not.
    pub(crate) fn holds(&self, name: &QueueName) -> bool {
        self.stored(name).is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Those that are still there though their time is over.
    pub(crate) fn due(&self, now: Nanos) -> impl Iterator<Item = &QueueName> {
        self.deadlines.iter().take_while(move |(at, _)| *at <= now).map(|(_, name)| name)
    }

    /// The next that goes, and when.
    pub(crate) fn first_deadline(&self) -> Option<&(Nanos, QueueName)> {
        self.deadlines.first()
    }

    /// All behind this name, ascending; all where none is given.
    pub(crate) fn iter_after(
        &self,
        name: Option<&QueueName>,
    ) -> impl Iterator<Item = (&QueueName, &Value)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(Filed::of(name)));
        self.names.range((from, Bound::Unbounded)).map(|(filed, value)| (&filed.name, value))
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes + self.names.len() * VALUE_BYTES) as u64
    }

    /// Checks that a value may be set beside the others, or instead of the one of its name, if all
    /// may take so much memory.
    pub(crate) fn takes(
        &self,
        name: &QueueName,
        bytes: usize,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let before = self.stored(name).map_or(0, |value| cost(name, value.bytes.len()));
        let all = self.bytes - before + cost(name, bytes);
        let count = self.names.len() + usize::from(before == 0);
        Room { bytes: all, count }.holds(bytes, memory_max)
    }

    /// The same for several values.
    pub(crate) fn takes_all(
        &self,
        values: &BTreeMap<QueueName, Arc<[u8]>>,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let (mut before, mut new, mut bytes) = (0, 0, 0);
        for (name, value) in values {
            let there = self.stored(name);
            before += there.map_or(0, |value| cost(name, value.bytes.len()));
            new += usize::from(there.is_none());
            bytes += cost(name, value.len());
        }
        let largest = values.values().map(|value| value.len()).max().unwrap_or(0);
        debug_assert!(before <= self.bytes, "the values that go were counted");
        let room = Room { bytes: self.bytes - before + bytes, count: self.names.len() + new };
        room.holds(largest, memory_max)
    }

    /// The most bytes that they take in a snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        (self.bytes + self.names.len() * PICTURE_BYTES_MAX) as u64
    }

    /// Gives the value that was there.
    pub(crate) fn insert(&mut self, name: &QueueName, value: Value) -> Option<Value> {
        let (bytes, at) = (value.bytes.len(), value.at);
        let before = self.names.insert(Filed::of(name), value);
        before.iter().for_each(|before| self.discount(name, before));
        self.bytes += cost(name, bytes);
        if let Some(at) = at {
            let is_new = self.deadlines.insert((at, name.clone()));
            assert!(is_new, "a value goes once");
        }
        debug_assert!(self.deadlines.len() <= self.names.len(), "a value has one deadline");
        before
    }

    pub(crate) fn remove(&mut self, name: &QueueName) -> Option<Value> {
        let value = self.names.remove(&Filed::of(name))?;
        self.discount(name, &value);
        Some(value)
    }

    /// This was the value of that name.
    fn discount(&mut self, name: &QueueName, value: &Value) {
        let cost = cost(name, value.bytes.len());
        assert!(cost <= self.bytes, "the bytes of {name} were counted");
        self.bytes -= cost;
        if let Some(at) = value.at {
            let was_known = self.deadlines.remove(&(at, name.clone()));
            assert!(was_known, "a value's deadline is known");
        }
    }

    /// Verifies the counts.
    pub(crate) fn check(&self) {
        let bytes = self.names.iter().map(|(filed, value)| cost(&filed.name, value.bytes.len()));
        assert_eq!(bytes.sum::<usize>(), self.bytes, "bytes of values");
        let all = self.names.iter();
        let deadlines = all.filter_map(|(filed, value)| Some((value.at?, &filed.name)));
        let known = |(at, name): (Nanos, &QueueName)| {
            assert!(self.deadlines.contains(&(at, name.clone())), "the deadline of {name}");
        };
        let count = deadlines.map(known).count();
        assert_eq!(count, self.deadlines.len(), "deadlines of values");
    }
}

/// What all values would come to.
struct Room {
    bytes: usize,
    count: usize,
}

impl Room {
    /// Checks that they may, the largest of the new ones with so many bytes.
    fn holds(&self, largest: usize, memory_max: u64) -> Result<(), Refusal> {
        let memory = (self.bytes + self.count * VALUE_BYTES) as u64;
        let fits = memory <= memory_max
            && largest <= limits::VALUE_BYTES_MAX
            && self.bytes <= limits::VALUES_BYTES_MAX
            && self.count <= limits::VALUES_MAX;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }
}

impl MessageStore {
    /// True if no ready message is in a queue, or the queue is gone.
    pub(crate) fn has_no_ready(&self, slot: QueueSlot) -> bool {
        self.queues.get(slot).is_none_or(|queue| queue.counts().ready() == 0)
    }

    pub(crate) fn hidden_list(&self, name: &QueueName) -> bool {
        let slot = self.queues.find(name.as_str());
        slot.is_some_and(|slot| self.queues.at(slot).is_list())
    }
}

impl Keyspace {
    /// A value is there from now on, and hides the list of its name.
    pub(crate) fn insert_value(
        &mut self,
        name: &QueueName,
        value: Value,
        store: &mut MessageStore,
    ) {
        let before = self.change_values(|values| values.insert(name, value), store);
        if before.is_none() && store.hidden_list(name) {
            assert!(self.lists > 0, "a list was counted before it was hidden");
            self.lists -= 1;
        }
        self.touched(name, store);
    }

    /// A value is gone, and hides no list any more.
    pub(crate) fn remove_value(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Option<Value> {
        let removed = self.change_values(|values| values.remove(name), store)?;
        self.lists += u64::from(store.hidden_list(name));
        self.touched(name, store);
        Some(removed)
    }

    fn change_values<T>(
        &mut self,
        change: impl FnOnce(&mut Values) -> T,
        store: &mut MessageStore,
    ) -> T {
        let first = |values: &Values| values.first_deadline().map(|(at, _)| *at);
        let before = first(&self.values);
        let result = change(&mut self.values);
        store.timers.change(Timer::Values, before, first(&self.values));
        result
    }
}

/// The bytes that a value counts for.
fn cost(name: &QueueName, bytes: usize) -> usize {
    name.as_str().len() + bytes
}

/// A value in memory, with its places in the indexes, but for its name and its bytes. Measured.
const VALUE_BYTES: usize = 256;

/// Bytes of a value's record beside name and value, and its share of the cost of a chunk.
const PICTURE_BYTES_MAX: usize = 2 + 2 + 4 + 8 + 8;

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn names_stand_in_their_own_order() {
        let heads = ["", "a", "b", "\u{e9}", "abcdefg", "abcdefgh", "abcdefghijklmnopqrstuvw"];
        let tails = ["x", "y", "xy", "z", "zz", "\u{10ffff}", " "];
        let texts = heads.iter().flat_map(|head| tails.map(|tail| String::from(*head) + tail));
        let names: Vec<_> = texts.map(|text| QueueName::new(&text).unwrap()).collect();
        assert!(names.iter().any(|name| name.as_str().len() > HEAD_BYTES));
        for one in &names {
            for other in &names {
                assert_eq!(Filed::of(one).cmp(&Filed::of(other)), one.cmp(other), "{one} {other}");
            }
        }
    }
}
