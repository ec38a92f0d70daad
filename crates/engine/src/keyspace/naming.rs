//! The names of keys, and how many there are.

use alloc::vec::Vec;
use core::cmp::Ordering;

use model::{KeyKind, QueueName, Reply};

use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl Keyspace {
    /// How many there are. Keys beyond their time that are still there are looked through.
    pub(crate) fn count_keys(&self, store: &mut MessageStore, log: &FrameWriter) -> Outcome {
        let values = self.values.due(store.latest);
        let (due, shown) = values.fold((0, 0), |(due, shown), name| {
            let is_list = self.kind_of(&name, store) == Some(KeyKind::List);
            (due + 1, shown + u64::from(is_list))
        });
        let ended = self.ended_lists(store);
        store.took_steps(due + usize::try_from(ended).unwrap_or(usize::MAX));
        let values = (self.values.len() - due) as u64;
        let lists = self.lists + shown - ended;
        Outcome::reply(log.after_all(), Reply::Count(values + lists))
    }

    pub(crate) fn names_of_keys(
        &self,
        after: Option<QueueName>,
        max: usize,
        kind: Option<KeyKind>,
        sight: Sight<'_>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let mut names = Vec::new();
        let mut looked = after;
        let mut more = true;
        for _ in 0..max.max(1) {
            let Some(next) = self.name_after(looked.as_ref(), store) else {
                more = false;
                break;
            };
            store.took_steps(sight.steps());
            let found = self.kind_of(&next, store).filter(|_| sight.sees(&next));
            if found.is_some_and(|found| kind.is_none_or(|kind| kind == found)) {
                names.push(next.clone());
            }
            looked = Some(next);
        }
        let next = looked.filter(|_| more);
        Outcome::reply(log.after_all(), Reply::Names { names, next })
    }

    /// Lists that are still there, and no value before them, though their time is over.
    fn ended_lists(&self, store: &MessageStore) -> u64 {
        let shown = |timer| match timer {
            Timer::End(slot) => !self.values.holds(&store.queues.at(slot).name),
            _ => false,
        };
        store.timers.due(store.latest).filter(|timer| shown(*timer)).count() as u64
    }

    fn kind_of(&self, name: &QueueName, store: &MessageStore) -> Option<KeyKind> {
        if let Some(value) = self.values.get(name, store.latest) {
            return Some(value.kind());
        }
        let queue = store.queues.at(store.queues.find(name.as_str())?);
        (queue.is_list() && !queue.is_ended(store.latest)).then_some(KeyKind::List)
    }

    /// The next name of a queue or a value.
    fn name_after(&self, name: Option<&QueueName>, store: &MessageStore) -> Option<QueueName> {
        let value = self.values.iter_after(name).next().map(|(name, _)| name);
        let queue = store.queues.names_after(name).next();
        match (value, queue) {
            (Some(value), Some(queue)) if value.cmp(queue) == Ordering::Greater => {
                Some(queue.clone())
            }
            (Some(value), _) => Some(value),
            (None, queue) => queue.cloned(),
        }
    }
}
