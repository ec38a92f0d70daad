//! When keys are to go, as sessions say it.

use model::{Deadline, DeadlineRule, Durability, Lifetime, Nanos, QueueName, Refusal, Reply};
use records::{DeadlineView, RecordView};

use super::setting::{KEY_RECORDS_MAX, ready_max};
use super::{Key, Value};
use crate::Effects;
use crate::engine::{Context, Engine, MessageStore, Outcome};
use crate::keys::Keyspace;
use crate::log::{DELETED_BYTES_MAX, Log};
use crate::queue::{ListLifetime, QueueSlot};

impl Engine {
    pub(crate) fn set_deadline(
        &mut self,
        name: &QueueName,
        deadline: Deadline,
        rule: DeadlineRule,
        effects: &mut Effects,
    ) -> Outcome {
        let key = self.find_key(name);
        let at = self.store.moment_of(deadline);
        let allowed =
            key.filter(|key| allows(rule, self.keyspace.deadline_of(name, *key, &self.store), at));
        let changed = allowed
            .map_or(Ok(0), |key| self.give_deadline(name, key, Some(at), effects).map(|()| 1));
        match changed {
            Ok(count) => Outcome::reply(self.log.after_all(), Reply::Count(count)),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn clear_deadline(&mut self, name: &QueueName, effects: &mut Effects) -> Outcome {
        let key = self.find_key(name);
        let limited =
            key.filter(|key| self.keyspace.deadline_of(name, *key, &self.store).is_some());
        let changed =
            limited.map_or(Ok(0), |key| self.give_deadline(name, key, None, effects).map(|()| 1));
        match changed {
            Ok(count) => Outcome::reply(self.log.after_all(), Reply::Count(count)),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn lifetime_of_key(&mut self, name: &QueueName) -> Outcome {
        let Some(key) = self.find_key(name) else { return self.log.not_found() };
        let at = self.keyspace.deadline_of(name, key, &self.store);
        let left = at.map(|at| at.since(self.store.latest));
        Outcome::reply(self.log.after_all(), Reply::Lifetime(Lifetime { at, left }))
    }

    fn give_deadline(
        &mut self,
        name: &QueueName,
        key: Key,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        match (key, at) {
            (Key::Value, Some(at)) if at <= self.store.latest => {
                self.delete_value(name, effects);
                Ok(())
            }
            (Key::Value, at) => self.give_value_deadline(name, at, effects),
            (Key::List(slot), Some(at)) if at <= self.store.latest => {
                self.end_now(slot, name, effects)
            }
            (Key::List(slot), at) => self.give_list_deadline(slot, name, at, effects),
        }
    }

    fn give_value_deadline(
        &mut self,
        name: &QueueName,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: true, at, over: None },
            &self.context,
            effects,
        )?;
        let value = self.keyspace.values.get(name, self.store.latest).cloned();
        let value = value.expect("invariant: it was just found");
        self.insert_value(name, Value { at, ..value });
        Ok(())
    }

    fn give_list_deadline(
        &mut self,
        slot: QueueSlot,
        name: &QueueName,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let over = self.store.queues.at(slot).index.lifetime.over;
        self.log.store_deadline(
            DeadlineView { name: name.as_str(), of_value: false, at, over },
            &self.context,
            effects,
        )?;
        self.keyspace.change_lifetime(slot, ListLifetime { at, over }, &mut self.store);
        self.keyspace.lifetime_is_stated(name);
        self.transactions.touched(name, &mut self.sessions, &mut self.store);
        Ok(())
    }

    /// A list is to go at a moment that has passed. A long one goes at the next: what is stored at
    /// this very moment must be told from it.
    fn end_now(
        &mut self,
        slot: QueueSlot,
        name: &QueueName,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let count = self.store.ready_count(slot);
        let bytes = count.saturating_mul(DELETED_BYTES_MAX);
        if count <= ready_max(KEY_RECORDS_MAX) && self.log.surely_takes(bytes) {
            self.delete_list(slot, effects);
            return Ok(());
        }
        self.give_list_deadline(slot, name, Some(self.store.latest + Nanos(1)), effects)
    }
}

impl Keyspace {
    /// When a key goes that is there.
    pub(crate) fn deadline_of(
        &self,
        name: &QueueName,
        key: Key,
        store: &MessageStore,
    ) -> Option<Nanos> {
        match key {
            Key::List(slot) => store.queues.at(slot).index.lifetime.at,
            Key::Value => self.values.get(name, store.latest)?.at,
        }
    }
}

impl Log {
    /// The record of a deadline, if there is room for it; one that is cleared needs none.
    fn store_deadline(
        &mut self,
        view: DeadlineView<'_>,
        context: &Context,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        let level = context.key_level();
        if level == Durability::None {
            return Ok(());
        }
        let record = RecordView::KeyDeadline(view);
        if view.at.is_none() {
            self.append(&record, level, effects);
            return Ok(());
        }
        let stored = self.store(&record, level, effects);
        stored.map(|_| ()).map_err(|_| Refusal::StoreFull)
    }
}

/// Whether a deadline may be set where there is that one.
fn allows(rule: DeadlineRule, before: Option<Nanos>, at: Nanos) -> bool {
    match rule {
        DeadlineRule::Always => true,
        DeadlineRule::IfNone => before.is_none(),
        DeadlineRule::IfSome => before.is_some(),
        DeadlineRule::IfLater => before.is_some_and(|before| at > before),
        DeadlineRule::IfEarlier => before.is_none_or(|before| at < before),
        DeadlineRule::IfSomeEarlier => before.is_some_and(|before| at < before),
    }
}
