//! Batches: commands that take effect together, if no observed key has changed.
//!
//! A session that observes keys is told in its next batch whether any of them has changed since: a
//! list whenever a message becomes ready or ceases to be, a value whenever it is set or goes.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{DependsOn, QueueName, Refusal, Reply, limits};

use crate::ids::{QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::transactions::{Observing, Transactions};

impl Transactions {
    pub(crate) fn observe(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        let observing = sessions.at_mut(by).transactions_mut().observing.get_or_insert_default();
        if observing.stale {
            return Outcome::reply(DependsOn::NOTHING, Reply::Done);
        }
        let new = names.into_iter().filter(|name| !observing.names.contains(name));
        let new: BTreeSet<_> = new.collect();
        if observing.names.len() + new.len() > limits::SESSION_OBSERVED_MAX {
            return Outcome::refused(Refusal::TooManyObserved);
        }
        for name in &new {
            let is_new = self.observed.entry(name.clone()).or_default().insert(by);
            assert!(is_new, "a session observes a key once");
        }
        store.took_steps(new.len());
        observing.names.extend(new);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn unobserve(
        &mut self,
        by: SessionSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        self.stop_observing(by, sessions, store);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Ends the observing of a session and returns its observed keys.
    pub(crate) fn stop_observing(
        &mut self,
        by: SessionSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Option<Box<Observing>> {
        let observing = sessions.at_mut(by).transactions_mut().observing.take()?;
        store.took_steps(observing.names.len());
        for name in &observing.names {
            let observers = self.observed.get_mut(name);
            let observers = observers.expect("invariant: a session is among the key's observers");
            let was_known = observers.remove(&by);
            assert!(was_known, "a session is among the observers of its keys");
            if observers.is_empty() {
                self.observed.remove(name);
            }
        }
        Some(observing)
    }

    /// The key of this name has changed.
    pub(crate) fn touched(
        &mut self,
        name: &QueueName,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        while let Some(by) = self.observed.get(name).and_then(|observers| observers.first()) {
            let by = *by;
            self.stop_observing(by, sessions, store);
            let stale = Observing { stale: true, ..Observing::default() };
            sessions.at_mut(by).transactions_mut().observing = Some(Box::new(stale));
        }
    }

    pub(crate) fn touched_name_of(
        &mut self,
        slot: QueueSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        if store.queues.at(slot).is_named() {
            let name = store.queues.at(slot).name.clone();
            self.touched(&name, sessions, store);
        }
    }
}
