//! A key by chance, and the memory of a key.

use alloc::vec::Vec;

use model::{Database, KeyKind, NameSpan, QueueName, Reply};

use crate::bodies::memory::charge;
use crate::ids::QueueSlot;
use crate::keyspace::{Key, Keyspace};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;

impl Keyspace {
    /// A key of a database that the session may look at, by chance.
    #[inline(never)]
    pub(crate) fn any_key(
        &self,
        database: Database,
        seed: u64,
        sight: Sight<'_>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let values = self.values.len_of(Some(database)) as u64;
        let lists = self.lists_of(database);
        let at = seed.checked_rem(values + lists).unwrap_or(0);
        let mut found = if at < values {
            self.value_from(database, at as usize, sight, store)
        } else {
            self.list_from(database, seed / (values + lists).max(1), sight, store)
        };
        // Chance found none of the few among many.
        if found.is_none() {
            found = self.first_key(database, sight, store);
        }
        let names = Vec::from_iter(found);
        Outcome::reply(log.after_all(), Reply::Names { names, next: None })
    }

    /// The first value from a place on that is a key and may be seen.
    fn value_from(
        &self,
        database: Database,
        at: usize,
        sight: Sight<'_>,
        store: &mut MessageStore,
    ) -> Option<QueueName> {
        let (mut left, mut steps) = (at, 0);
        let found = NameSpan::of(Some(database)).find_map(|span| {
            let all = self.values.iter_from(span, left).take(LOOKS_MAX);
            left = left.saturating_sub(self.values.len_in(span));
            all.map(|(name, _)| name).find(|name| {
                steps += sight.steps();
                self.is_seen(name, sight, store)
            })
        });
        store.took_steps(steps);
        found
    }

    /// The same of lists, from a queue on.
    fn list_from(
        &self,
        database: Database,
        seed: u64,
        sight: Sight<'_>,
        store: &mut MessageStore,
    ) -> Option<QueueName> {
        let mut steps = 0;
        let found = store.queues.some_from(seed).take(LOOKS_MAX).find(|queue| {
            steps += sight.steps();
            let is_of = queue.is_named() && Database::of(queue.name.as_str()) == database;
            is_of && self.is_seen(&queue.name, sight, store)
        });
        let found = found.map(|queue| queue.name.clone());
        store.took_steps(steps);
        found
    }

    /// The first list that may be seen, or value.
    fn first_key(
        &self,
        database: Database,
        sight: Sight<'_>,
        store: &mut MessageStore,
    ) -> Option<QueueName> {
        let mut steps = 0;
        let list = store.queues.lists_of(Some(database)).map(|(_, name)| name).find(|name| {
            steps += sight.steps();
            self.is_seen(name, sight, store)
        });
        let list = list.cloned();
        // The others were passed over.
        let passed = if self.has_lists(Some(database)) { store.queues.count() } else { 0 };
        store.took_steps(steps + passed);
        list.or_else(|| self.value_from(database, 0, sight, store))
    }

    fn is_seen(&self, name: &QueueName, sight: Sight<'_>, store: &MessageStore) -> bool {
        self.kind_of(name, store).is_some() && sight.sees(name)
    }

    /// Bytes of memory that a key is reckoned to take with its name.
    #[inline(never)]
    pub(crate) fn memory_of_key(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let bytes = match self.find_key(name, store) {
            None => return log.not_found(),
            Some(Key::List(slot)) => store.memory_of_list(slot),
            Some(Key::Value(KeyKind::Value)) => self.values.memory_of(name),
            Some(Key::Value(_)) => {
                let collection = self.values.stored(name).and_then(|value| value.collection());
                let entries = collection.map_or(0, |it| it.bytes + it.count * ENTRY_BYTES);
                self.values.memory_of(name) + entries
            }
        };
        log.counted(bytes)
    }
}

impl MessageStore {
    fn memory_of_list(&self, slot: QueueSlot) -> u64 {
        let queue = self.queues.at(slot);
        let bodies = queue.body_bytes() + queue.counts().ready() * charge(0);
        queue.name.as_str().len() as u64 + bodies
    }
}

/// Names that are looked at to find a key by chance.
const LOOKS_MAX: usize = 1_024;

/// Bytes of an entry of a collection beside its own: its number, two lengths and an offset.
const ENTRY_BYTES: u64 = 8 + 3 * 2;
