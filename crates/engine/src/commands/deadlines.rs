//! Deadlines of keys, and the lifetime of lists in the log.

use alloc::vec::Vec;

use model::{Deadline, DeadlineRule, Nanos, QueueName, Refusal, Reply};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::Engine;
use crate::ids::QueueSlot;
use crate::keyspace::Key;
use crate::keyspace::setting::{DEADLINE_BYTES_MAX, KEY_RECORDS_MAX, ready_max};
use crate::log::DELETED_BYTES_MAX;
use crate::outcome::Outcome;

impl Engine {
    /// Gives a key a deadline, or none any more, if the rule allows that.
    pub(crate) fn change_deadline(
        &mut self,
        name: &QueueName,
        deadline: Option<Deadline>,
        rule: DeadlineRule,
        effects: &mut Effects,
    ) -> Outcome {
        let key = self.keyspace.find_key(name, &mut self.store);
        let at = deadline.map(|deadline| self.store.moment_of(deadline));
        let wanted = at.unwrap_or(Nanos::MAX);
        let allowed = key
            .filter(|key| allows(rule, self.keyspace.deadline_of(name, *key, &self.store), wanted));
        let changed =
            allowed.map_or(Ok(0), |key| self.give_deadline(name, key, at, effects).map(|()| 1));
        match changed {
            Ok(count) => Outcome::reply(self.log.after_all(), Reply::Count(count)),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    fn give_deadline(
        &mut self,
        name: &QueueName,
        key: Key,
        at: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        match (key, at) {
            (Key::Value(_), Some(at)) if at <= self.store.latest => {
                self.keyspace.delete_value(name, &mut self.store, &mut self.log, effects);
                Ok(())
            }
            (Key::Value(_), at) => {
                self.keyspace.give_value_deadline(name, at, &mut self.store, &mut self.log, effects)
            }
            (Key::List(slot), Some(at)) if at <= self.store.latest => {
                self.end_now(slot, name, effects)
            }
            (Key::List(slot), at) => self.keyspace.give_list_deadline(
                slot,
                name,
                at,
                &mut self.store,
                &mut self.log,
                effects,
            ),
        }
    }

    /// Ends a list that is past its deadline. A long list ends at the next moment: messages stored
    /// at this very moment must be told from it.
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
        self.keyspace.give_list_deadline(
            slot,
            name,
            Some(self.store.latest + Nanos(1)),
            &mut self.store,
            &mut self.log,
            effects,
        )
    }
}

impl Engine {
    /// Tells the log the lifetimes that have changed. If the frame has become long, or the room
    /// short, lists with empty queues are left out. The log hears of these when there are such
    /// lists again: until then it does not matter.
    pub(crate) fn state_lifetimes(&mut self, effects: &mut Effects) {
        if self.keyspace.has_unstated() {
            self.state_changed_lifetimes(effects);
        }
    }

    fn state_changed_lifetimes(&mut self, effects: &mut Effects) {
        while let Some(name) = self.keyspace.next_unstated() {
            let slot = self.store.queues.find(name.as_str());
            let is_empty = slot.is_none_or(|slot| self.store.queues.at(slot).counts().sum() == 0);
            if is_empty && !self.log.takes_change() {
                self.keyspace.put_off(name);
                continue;
            }
            if let Some(slot) = slot {
                self.spare_held(slot, effects);
            }
            self.log.make_way(DEADLINE_BYTES_MAX, effects);
            self.keyspace.state_lifetime(&name, &mut self.store, &mut self.log, effects);
        }
    }

    /// Held messages of an expired list belong to their holders. The log knows no holders. So it
    /// hears of new places for held messages before it hears that the list is over.
    fn spare_held(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let queue = self.store.queues.at(slot);
        if queue.lifetime().over.is_none() || queue.counts().leased() == 0 || self.log.is_whole() {
            return;
        }
        let mut looks = 0;
        let held = self.sessions.iter().flat_map(|(_, session)| session.holds());
        let held = held.take(HELD_LOOKS_MAX).inspect(|_| looks += 1);
        let mut held: Vec<_> = held.filter(|id| self.store.message(*id).queue() == slot).collect();
        // The first of them goes in front last, and so stays the first.
        held.sort_unstable_by_key(|id| core::cmp::Reverse(self.store.message(*id).order(*id)));
        self.store.took_steps(looks);
        for id in held {
            if !self.log.may_say_where() {
                return;
            }
            // It is in no index that knows its place.
            if self.keyspace.spare(id, &mut self.store) {
                self.log.make_way(CHANGED_BYTES_MAX, effects);
                self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
            }
        }
    }
}

/// True if a deadline may be set where there is that one.
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

/// Held messages, of any queues, that are looked at when a list is over.
const HELD_LOOKS_MAX: usize = 100_000;
