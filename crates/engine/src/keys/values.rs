//! Small values by name, and what is counted about them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::ops::Bound;

use model::{Nanos, QueueName, Refusal, limits};

use crate::engine::Engine;
use crate::timers::Timer;

/// All small values.
#[derive(Debug, Default)]
pub(crate) struct Values {
    names: BTreeMap<QueueName, Value>,
    /// Those that go at some moment, by when.
    deadlines: BTreeSet<(Nanos, QueueName)>,
    /// Of the names and the values.
    bytes: usize,
}

/// A small value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) bytes: Arc<[u8]>,
    /// When it goes.
    pub(crate) at: Option<Nanos>,
}

impl Values {
    /// The value of this name whose time is not over.
    pub(crate) fn get(&self, name: &QueueName, now: Nanos) -> Option<&Value> {
        self.names.get(name).filter(|value| value.at.is_none_or(|at| at > now))
    }

    /// The same, be its time over or not.
    pub(crate) fn stored(&self, name: &QueueName) -> Option<&Value> {
        self.names.get(name)
    }

    /// Whether there is one, be its time over or not.
    pub(crate) fn holds(&self, name: &QueueName) -> bool {
        self.names.contains_key(name)
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
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.names.range::<QueueName, _>((from, Bound::Unbounded))
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.bytes + self.names.len() * VALUE_BYTES) as u64
    }

    /// Whether a value may be set beside the others, or instead of the one of its name, where all
    /// may take so much memory.
    pub(crate) fn takes(
        &self,
        name: &QueueName,
        bytes: usize,
        memory_max: u64,
    ) -> Result<(), Refusal> {
        let before = self.names.get(name).map_or(0, |value| cost(name, value.bytes.len()));
        let all = self.bytes - before + cost(name, bytes);
        let count = self.names.len() + usize::from(before == 0);
        let memory = (all + count * VALUE_BYTES) as u64;
        let fits = memory <= memory_max
            && bytes <= limits::VALUE_BYTES_MAX
            && all <= limits::VALUES_BYTES_MAX
            && count <= limits::VALUES_MAX;
        if fits { Ok(()) } else { Err(Refusal::TooManyValues) }
    }

    /// What they may take in a snapshot.
    pub(crate) fn picture_bytes(&self) -> u64 {
        (self.bytes + self.names.len() * PICTURE_BYTES_MAX) as u64
    }

    fn insert(&mut self, name: &QueueName, value: Value) {
        self.remove(name);
        self.bytes += cost(name, value.bytes.len());
        self.deadlines.extend(value.at.map(|at| (at, name.clone())));
        self.names.insert(name.clone(), value);
    }

    fn remove(&mut self, name: &QueueName) -> Option<Value> {
        let value = self.names.remove(name)?;
        self.bytes -= cost(name, value.bytes.len());
        if let Some(at) = value.at {
            let was_known = self.deadlines.remove(&(at, name.clone()));
            assert!(was_known, "a value's deadline is known");
        }
        Some(value)
    }

    /// Verifies what is counted.
    pub(crate) fn check(&self) {
        let bytes = self.names.iter().map(|(name, value)| cost(name, value.bytes.len()));
        assert_eq!(bytes.sum::<usize>(), self.bytes, "bytes of values");
        let deadlines = self.names.iter().filter_map(|(name, value)| Some((value.at?, name)));
        let known = |(at, name): (Nanos, &QueueName)| {
            assert!(self.deadlines.contains(&(at, name.clone())), "the deadline of {name}");
        };
        let count = deadlines.map(known).count();
        assert_eq!(count, self.deadlines.len(), "deadlines of values");
    }
}

impl Engine {
    /// A value is there from now on, in place of what was.
    pub(crate) fn insert_value(&mut self, name: &QueueName, value: Value) {
        if !self.keys.values.holds(name) && self.hidden_list(name) {
            self.keys.lists -= 1;
        }
        self.change_values(|values| values.insert(name, value));
        self.touched(name);
    }

    /// A value is gone.
    pub(crate) fn remove_value(&mut self, name: &QueueName) -> Option<Value> {
        let removed = self.change_values(|values| values.remove(name))?;
        if self.hidden_list(name) {
            self.keys.lists += 1;
        }
        self.touched(name);
        Some(removed)
    }

    fn hidden_list(&self, name: &QueueName) -> bool {
        let slot = self.queues.find(name.as_str());
        slot.is_some_and(|slot| self.queues.at(slot).is_list())
    }

    fn change_values<T>(&mut self, change: impl FnOnce(&mut Values) -> T) -> T {
        let first = |values: &Values| values.first_deadline().map(|(at, _)| *at);
        let before = first(&self.keys.values);
        let result = change(&mut self.keys.values);
        self.timers.change(Timer::Values, before, first(&self.keys.values));
        result
    }
}

/// What a value counts for.
fn cost(name: &QueueName, bytes: usize) -> usize {
    name.as_str().len() + bytes
}

/// A value in memory, with its places in the indexes, but for its name and its bytes. Measured.
const VALUE_BYTES: usize = 256;

/// What a value's record has beside name and value, and its share of what a chunk costs.
const PICTURE_BYTES_MAX: usize = 2 + 2 + 4 + 8 + 8;
