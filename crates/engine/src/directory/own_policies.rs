//! Rules that operators give queues while the broker runs. They are by name, like the configured
//! ones, and go before them. They do not depend on a queue of that name, nor go with it.
//!
//! They hold at once. Sends that wait for a place are looked at again. If bounds have become
//! narrower, messages beyond them stay until a message is sent there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Bound;

use model::{
    Durability, OwnPolicy, PolicyChange, QueueName, QueuePolicy, Refusal, Reply, StatedPolicy,
    limits,
};
use records::{OwnPolicyView, RecordError, RecordView, encode, encoded_bytes, queue_name};

use crate::Effects;
use crate::admission::Drain;
use crate::directory::targets::is_reserved;
use crate::directory::{Directory, Own, OwnPolicies, PolicyCursor};
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;
use crate::store::queue::{Queue, Role};

impl PolicyCursor {
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }
}

impl OwnPolicies {
    pub(crate) fn of(&self, name: &QueueName) -> OwnPolicy {
        self.0.get(name).map(|own| own.policy).unwrap_or_default()
    }

    fn after(&self, name: Option<&QueueName>) -> impl Iterator<Item = (&QueueName, &Own)> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<QueueName, _>((from, Bound::Unbounded))
    }

    /// These are the rules of that name from now on; if they are empty, it has none. Gives the size
    /// of its record before.
    fn change(&mut self, name: &QueueName, policy: OwnPolicy, record_bytes: u64) -> u64 {
        let before = if policy.is_empty() {
            self.0.remove(name)
        } else {
            self.0.insert(name.clone(), Own { policy, record_bytes })
        };
        before.map_or(0, |own| own.record_bytes)
    }

    /// The most bytes that they take in a snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.0.values().map(|own| snapshot_bytes_of_record(own.record_bytes)).sum()
    }
}

impl Directory {
    /// The rules of every queue of that name, or of the subscriptions of a topic.
    pub(crate) fn policy_for(&self, name: &QueueName) -> QueuePolicy {
        let configured = self.queue_policies.of(name);
        self.own_policies.0.get(name).map_or(configured, |own| own.policy.over(configured))
    }

    pub(crate) fn stated_policy(
        &self,
        name: &QueueName,
        store: &MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let configured = match store.queues.find(name.as_str()) {
            Some(slot) if store.queues.at(slot).role != Role::Named => store.queues.at(slot).policy,
            _ => self.queue_policies.of(name),
        };
        let own = self.own_policies.of(name);
        let stated = StatedPolicy { holds: own.over(configured), own, configured };
        Outcome::reply(log.after_all(), Reply::Policy(Box::new(stated)))
    }

    pub(crate) fn list_policies(
        &self,
        after: Option<&QueueName>,
        max: usize,
        sight: Sight<'_>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let mut looked = 0;
        let seen = self.own_policies.after(after).filter(|(name, _)| {
            looked += 1;
            sight.sees(name)
        });
        let all = seen.take(max).map(|(name, own)| (name.clone(), Box::new(own.policy))).collect();
        store.took_steps(looked * sight.steps());
        Outcome::reply(log.after_all(), Reply::OwnPolicies(all))
    }

    pub(crate) fn may_give(
        &self,
        name: &QueueName,
        own: OwnPolicy,
        is_new: bool,
    ) -> Result<(), Refusal> {
        if own.is_empty() {
            return Ok(());
        }
        if is_reserved(name) {
            return Err(Refusal::NoSuchDestination);
        }
        if own.over(self.queue_policies.of(name)).bounds.are_at_odds() {
            return Err(Refusal::PolicyAtOdds);
        }
        if is_new && self.own_policies.0.len() >= limits::OWN_POLICIES_MAX {
            return Err(Refusal::TooManyPolicies);
        }
        Ok(())
    }

    /// The queue of that name, and those of the subscriptions of that topic or pattern.
    pub(crate) fn queues_called(
        &self,
        name: &QueueName,
        store: &mut MessageStore,
    ) -> Vec<QueueSlot> {
        let named = store.queues.find(name.as_str());
        let named = named.filter(|slot| store.queues.at(*slot).role == Role::Named);
        let topic = self.topics.find(name.as_str()).map(|slot| self.topics.at(slot));
        let numbers = topic.iter().flat_map(|topic| topic.subscriptions());
        let subscribed = numbers.map(|number| self.subscriptions.at(*number).queue);
        let patterns = self.subscriptions.patterns_called(name).map(|entry| entry.queue);
        let all: Vec<_> = named.into_iter().chain(subscribed).chain(patterns).collect();
        store.took_steps(all.len() + self.subscriptions.patterns_count());
        all
    }

    /// Shows the next ones; says how many were visited.
    pub(crate) fn snapshot_policies(
        &self,
        cursor: &mut PolicyCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
        log: &FrameWriter,
    ) -> usize {
        // State that only memory keeps is in no snapshot.
        cursor.done |= log.key_level() == Durability::None;
        let mut count = 0;
        while !cursor.done && count < chunk_max {
            let next = self.own_policies.after(cursor.last.as_ref()).next();
            cursor.done = next.is_none();
            if let Some((name, own)) = next {
                let view = OwnPolicyView { name: name.as_str(), own: own.policy };
                encode(&RecordView::OwnPolicy(view), out);
                cursor.last = Some(name.clone());
                count += 1;
            }
        }
        count
    }

    /// The rules of a queue are those that its name has.
    ///
    /// # Panics
    /// When they are not.
    pub(crate) fn check_policy(&self, queue: &Queue) {
        let policy = match queue.role {
            Role::Named => Role::Named.rules(self.policy_for(&queue.name)),
            Role::Subscription { .. } => {
                QueuePolicy { kept: false, ..self.policy_for(&queue.name) }
            }
            Role::Temporary(_) => QueuePolicy::default(),
            Role::Leaving => return,
        };
        assert_eq!(queue.policy, policy, "the rules of {}", queue.name);
    }
}

impl FrameWriter {
    /// The record of them, if there is room for it; to say that there are none needs none. Gives
    /// its size.
    pub(crate) fn store_policy(
        &mut self,
        name: &QueueName,
        own: OwnPolicy,
        effects: &mut Effects,
    ) -> Result<u64, Refusal> {
        let level = self.key_level();
        if level == Durability::None {
            return Ok(0);
        }
        let record = RecordView::OwnPolicy(OwnPolicyView { name: name.as_str(), own });
        if own.is_empty() {
            self.append(&record, level, effects);
        } else {
            self.store(&record, level, effects).map_err(|_| Refusal::StoreFull)?;
        }
        Ok(encoded_bytes(&record))
    }
}

impl Directory {
    /// The queues of this name have these rules of their own from now on.
    pub(crate) fn adopt_own_policy(
        &mut self,
        name: &QueueName,
        policy: OwnPolicy,
        record_bytes: u64,
        store: &mut MessageStore,
    ) {
        let before = self.own_policies.change(name, policy, record_bytes);
        let now = if policy.is_empty() { 0 } else { record_bytes };
        let (before, now) = (snapshot_bytes_of_record(before), snapshot_bytes_of_record(now));
        store.change_snapshot_bytes(before, now);
        let policy = self.policy_for(name);
        store.take_bounds(&policy.bounds);
        for slot in self.queues_called(name, store) {
            store.adopt(slot, policy);
        }
    }

    /// Takes in a record.
    pub(crate) fn replay_policy(
        &mut self,
        view: &OwnPolicyView<'_>,
        size: usize,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        self.adopt_own_policy(&name, view.own, size as u64, store);
        Ok(())
    }

    pub(crate) fn change_policy(
        &mut self,
        name: &QueueName,
        change: &PolicyChange,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Outcome {
        let before = self.own_policies().of(name);
        let own = change.applied_to(before);
        if own == before {
            return self.stated_policy(name, store, log);
        }
        let is_new = before.is_empty();
        let given = self.may_give(name, own, is_new);
        match given.and_then(|()| log.store_policy(name, own, effects)) {
            Ok(record_bytes) => {
                self.adopt_own_policy(name, own, record_bytes, store);
                self.stated_policy(name, store, log)
            }
            Err(refusal) => Outcome::refused(refusal),
        }
    }
}

impl MessageStore {
    /// A queue has these rules from now on, but for `kept`: it stays without messages, or not, as
    /// before.
    pub(crate) fn adopt(&mut self, slot: QueueSlot, policy: QueuePolicy) {
        let queue = self.queues.at_mut(slot);
        let before = queue.policy;
        queue.policy = queue.role.rules(QueuePolicy { kept: before.kept, ..policy });
        if before.bounds.target_age != policy.bounds.target_age {
            queue.admission.drain = Drain::default();
        }
        if before.bounds.is_bounded() {
            queue.admission.line.set_bound(before.bounds.first());
        }
        queue.spare_what_is_there();
        self.made_place(slot);
    }
}
