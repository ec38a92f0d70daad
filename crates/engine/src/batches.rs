//! Batches: commands that take effect together, if what was observed is as it was.
//!
//! A session that observes keys is told in its next batch whether any of them has changed since: a
//! list whenever a message becomes ready or ceases to be, a value whenever it is set or goes.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{Command, DependsOn, QueueName, Refusal, Reply, limits};

use crate::Effects;
use crate::engine::{Engine, MessageStore, Outcome, Transactions};
use crate::queue::QueueSlot;
use crate::session::{SessionSlot, Sessions};

/// What a session observes.
#[derive(Debug, Default)]
pub(crate) struct Observing {
    pub(crate) names: BTreeSet<QueueName>,
    /// One of them has changed, and none matters any more.
    pub(crate) stale: bool,
}

impl Engine {
    /// One after the other, as one frame. Who waits is served after all of it, in the same frame
    /// where that has room.
    pub(crate) fn batch(
        &mut self,
        by: SessionSlot,
        commands: Vec<Command>,
        effects: &mut Effects,
    ) -> Outcome {
        if let Some(stale) = self.stale_batch(by, effects) {
            return stale;
        }
        if let Err(refusal) = self.check_batch(&commands) {
            return Outcome::refused(refusal);
        }
        let demand = self.demand_of_batch(by, &commands);
        if let Some(lack) =
            self.directory.shortage_of_place(&demand, u64::MAX, &self.store, &self.log)
        {
            return Outcome::refused(lack.refusal);
        }
        self.log.begin_batch();
        let mut batch = Outcome::NOTHING;
        let (mut after, mut replies) = (DependsOn::NOTHING, Vec::with_capacity(commands.len()));
        for command in commands {
            self.store.took_steps(limits::COMMAND_STEPS);
            let outcome = match self.replies.is_too_much(&command) {
                true => Outcome::refused(self.replies.refusal()),
                false => self.handle_in_batch(by, command, effects),
            };
            batch = batch.waking_as(&outcome);
            let (its, reply) = outcome.into_answer().expect("invariant: nothing waits here");
            self.replies.add(&reply);
            after = after.and(its);
            replies.push(reply);
        }
        self.replies.start_anew();
        self.log.end_batch();
        batch.answering(after.and(self.log.after_open()), Reply::Batch(replies))
    }

    /// The answer to a batch if anything has changed that its session observes, which it does no
    /// more.
    pub(crate) fn stale_batch(
        &mut self,
        by: SessionSlot,
        effects: &mut Effects,
    ) -> Option<Outcome> {
        self.notice_observed(by, effects);
        let is_stale = self
            .transactions
            .stop_observing(by, &mut self.sessions, &mut self.store)
            .is_some_and(|observing| observing.stale);
        is_stale.then(|| Outcome::reply(self.log.after_all(), Reply::Stale))
    }

    /// What a session observes and whose time is over goes before its batch, as a change.
    pub(crate) fn notice_observed(&mut self, by: SessionSlot, effects: &mut Effects) {
        let observing = self.sessions.at(by).transactions.observing.as_ref();
        let names: Vec<_> = observing.iter().flat_map(|it| it.names.iter().cloned()).collect();
        for name in names {
            self.notice_end(&name, effects);
        }
        self.end_frame(effects);
    }

    fn handle_in_batch(
        &mut self,
        by: SessionSlot,
        command: Command,
        effects: &mut Effects,
    ) -> Outcome {
        match command {
            Command::List(mut command) => {
                command.end_wait();
                self.list(by, command, effects)
            }
            Command::Key(command) => self.key(by, command, effects),
            Command::PutTo { to, message, transaction: None } => {
                self.put_to(by, to, message, None, effects)
            }
            Command::Publish { topic, message } => self.publish_to(by, &topic, &message, effects),
            _ => Outcome::refused(Refusal::NotInBatch),
        }
    }

    /// What is ready in a queue has changed.
    #[inline]
    pub(crate) fn touched_list(&mut self, slot: QueueSlot) {
        if !self.admission.pacing.sources.is_empty() {
            self.admission.source_changed(slot, &mut self.store);
        }
        if !self.transactions.observed.is_empty() {
            self.transactions.touched_name_of(slot, &mut self.sessions, &mut self.store);
        }
    }
}

impl Transactions {
    pub(crate) fn observe(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        let observing = sessions.at_mut(by).transactions.observing.get_or_insert_default();
        if observing.stale {
            return Outcome::reply(DependsOn::NOTHING, Reply::Done);
        }
        let new = names.into_iter().filter(|name| !observing.names.contains(name));
        let new: BTreeSet<_> = new.collect();
        if observing.names.len() + new.len() > limits::SESSION_OBSERVED_MAX {
            return Outcome::refused(Refusal::TooManyObserved);
        }
        for name in &new {
            self.observed.entry(name.clone()).or_default().insert(by);
        }
        store.totals.steps += new.len() as u64;
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

    /// Says what was observed.
    pub(crate) fn stop_observing(
        &mut self,
        by: SessionSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Option<Box<Observing>> {
        let observing = sessions.at_mut(by).transactions.observing.take()?;
        store.took_steps(observing.names.len());
        for name in &observing.names {
            let Some(observers) = self.observed.get_mut(name) else { continue };
            observers.remove(&by);
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
            sessions.at_mut(by).transactions.observing = Some(Box::new(stale));
        }
    }

    fn touched_name_of(
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
