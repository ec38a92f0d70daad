//! Keys that sessions observe for their next batch.
//!
//! A session that observes keys is told in its next batch whether any of them has changed since: a
//! list whenever a message becomes ready or ceases to be, a value whenever it is set or goes.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{DependsOn, QueueName, Refusal, Reply, limits};

use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::{Keyspace, Observers, Observing};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;

impl Keyspace {
    pub(crate) fn observe(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        store: &mut MessageStore,
    ) -> Outcome {
        let Observers { by_key, by_session } = &mut self.observers;
        let observing = by_session.entry(by).or_insert(Observing::Keys(BTreeSet::new()));
        let Observing::Keys(keys) = observing else {
            return Outcome::reply(DependsOn::NOTHING, Reply::Done);
        };
        let new: BTreeSet<_> = names.into_iter().filter(|name| !keys.contains(name)).collect();
        if keys.len() + new.len() > limits::SESSION_OBSERVED_MAX {
            return Outcome::refused(Refusal::TooManyObserved);
        }
        for name in &new {
            let is_new = by_key.entry(name.clone()).or_default().insert(by);
            assert!(is_new, "a session observes a key once");
        }
        store.took_steps(new.len());
        keys.extend(new);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn unobserve(&mut self, by: SessionSlot, store: &mut MessageStore) -> Outcome {
        self.stop_observing(by, store);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Ends the observing of a session. Returns what it observed.
    pub(crate) fn stop_observing(
        &mut self,
        by: SessionSlot,
        store: &mut MessageStore,
    ) -> Option<Observing> {
        let observing = self.observers.by_session.remove(&by)?;
        store.took_steps(self.observers.forget_keys(by, &observing));
        Some(observing)
    }

    /// The keys that a session observes.
    pub(crate) fn observing(&self, by: SessionSlot) -> Option<&Observing> {
        self.observers.by_session.get(&by)
    }

    /// The key of this name has changed.
    pub(crate) fn touched(&mut self, name: &QueueName, store: &mut MessageStore) {
        self.waits.notice(name);
        self.tell_observers(name, store);
    }

    /// The same where it is nothing that a command waits for.
    pub(crate) fn tell_observers(&mut self, name: &QueueName, store: &mut MessageStore) {
        if !self.observers.by_key.is_empty() {
            store.took_steps(self.observers.touched(name));
        }
    }

    /// The ready messages of a queue have changed.
    #[inline]
    pub(crate) fn touched_list(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        if store.depends_on_lists() || !self.observers.by_key.is_empty() {
            self.tell_touched_list(slot, store);
        }
    }

    fn tell_touched_list(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        store.source_changed(slot);
        let queue = store.queues.at(slot);
        if queue.is_named() {
            let steps = self.observers.touched(&queue.name);
            store.took_steps(steps);
        }
    }

    /// Verifies that both indices of the observed keys agree, and that only open sessions observe.
    pub(crate) fn check_observers(&self, sessions: &Sessions) {
        let mut pairs = BTreeSet::new();
        for (by, observing) in &self.observers.by_session {
            assert!(sessions.at(*by).closing().is_none(), "a closing session observes nothing");
            pairs.extend(observing.keys().map(|name| (name, *by)));
        }
        let by_key = self.observers.by_key.iter();
        let by_key = by_key.flat_map(|(name, by)| by.iter().map(move |by| (name, *by)));
        assert!(by_key.eq(pairs), "a key knows the sessions that observe it");
    }
}

impl Observers {
    /// The key of this name has changed: nothing else matters to the sessions that observe it.
    /// Returns how many keys these observed.
    fn touched(&mut self, name: &QueueName) -> usize {
        let mut forgotten = 0;
        while let Some(by) = self.by_key.get(name).and_then(|observers| observers.first()).copied()
        {
            let observing = self.by_session.insert(by, Observing::Stale);
            let observing = observing.expect("invariant: an observer of a key observes something");
            forgotten += self.forget_keys(by, &observing);
        }
        forgotten
    }

    /// A session is no observer of these keys any more. Returns how many they are.
    fn forget_keys(&mut self, by: SessionSlot, observing: &Observing) -> usize {
        let mut count = 0;
        for name in observing.keys() {
            let observers = self.by_key.get_mut(name);
            let observers = observers.expect("invariant: a session is among the key's observers");
            let was_known = observers.remove(&by);
            assert!(was_known, "a session is among the observers of its keys");
            if observers.is_empty() {
                self.by_key.remove(name);
            }
            count += 1;
        }
        count
    }
}

impl Observing {
    pub(crate) const fn is_stale(&self) -> bool {
        matches!(self, Self::Stale)
    }

    /// The observed keys that have not changed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &QueueName> {
        match self {
            Self::Keys(keys) => Some(keys),
            Self::Stale => None,
        }
        .into_iter()
        .flatten()
    }
}
