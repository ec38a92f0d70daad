//! The names of keys.

use alloc::vec::Vec;
use core::cmp::Ordering;

use model::{Database, KeyKind, NameSpan, QueueName, Reply};

use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;

impl Keyspace {
    pub(crate) fn names_of_keys(
        &self,
        query: NameQuery,
        sight: Sight<'_>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let NameQuery { database, after, max, kind } = query;
        let mut names = Vec::new();
        let mut looked = after;
        let mut more = true;
        for _ in 0..max.max(1) {
            let Some(next) = self.name_after(database, looked.as_ref(), store) else {
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

    pub(super) fn kind_of(&self, name: &QueueName, store: &MessageStore) -> Option<KeyKind> {
        if let Some(value) = self.values.get(name, store.latest) {
            return Some(value.kind());
        }
        let queue = store.queues.at(store.queues.find(name.as_str())?);
        (queue.is_list() && !queue.is_ended(store.latest)).then_some(KeyKind::List)
    }

    /// The next name of a queue or a value.
    fn name_after(
        &self,
        database: Option<Database>,
        name: Option<&QueueName>,
        store: &MessageStore,
    ) -> Option<QueueName> {
        NameSpan::of(database).find_map(|span| {
            let value = self.values.iter_in(span, name).next().map(|(name, _)| name);
            let queue = store.queues.entries_in(span, name).next().map(|(name, _)| name);
            match (value, queue) {
                (Some(value), Some(queue)) if value.cmp(queue) == Ordering::Greater => {
                    Some(queue.clone())
                }
                (Some(value), _) => Some(value),
                (None, queue) => queue.cloned(),
            }
        })
    }
}

/// The names that are asked for.
#[derive(Debug)]
pub(crate) struct NameQuery {
    /// Of this one; `None`: of any.
    pub(crate) database: Option<Database>,
    /// Behind this name.
    pub(crate) after: Option<QueueName>,
    /// How many are looked at.
    pub(crate) max: usize,
    /// Those that stand for this.
    pub(crate) kind: Option<KeyKind>,
}
