//! Commands that are performed together, if the keys they observe have not changed.

use alloc::vec::Vec;

use model::{Command, DependsOn, Reply, limits};

use crate::Effects;
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::keyspace::Observing;
use crate::outcome::Outcome;

impl Engine {
    /// Does the commands one after the other, as one frame. Waiting consumers are served after all
    /// of it, in the same frame if that has room.
    pub(crate) fn batch(
        &mut self,
        by: SessionSlot,
        commands: Vec<Command>,
        effects: &mut Effects,
    ) -> Outcome {
        if let Some(stale) = self.stale_batch(by, effects) {
            return stale;
        }
        let load = self.keyspace.load_of(&commands, &self.directory, &self.store);
        let load = match load.and_then(|load| self.log.takes_batch(&load).map(|()| load)) {
            Ok(load) => load.total(),
            Err(refusal) => return Outcome::refused(refusal),
        };
        let demand = self.places_for(by, &commands);
        if let Some(lack) =
            self.directory.shortage_of_place(&demand, u64::MAX, &self.store, &self.log)
        {
            return Outcome::refused(lack.refusal);
        }
        self.log.begin_batch();
        self.log.add_claim(load);
        let mut batch = Outcome::NOTHING;
        let (mut after, mut replies) = (DependsOn::NOTHING, Vec::with_capacity(commands.len()));
        for mut command in commands {
            // None waits: each is answered with the batch.
            command.wait_no_longer();
            let outcome = if self.replies.is_too_much(&command) {
                self.store.took_steps(limits::COMMAND_STEPS);
                Outcome::refused(self.replies.refusal())
            } else {
                self.do_now(by, command, effects)
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
        let observing = self.keyspace.stop_observing(by, &mut self.store);
        let is_stale = observing.is_some_and(|observing| observing.is_stale());
        is_stale.then(|| Outcome::reply(self.log.after_all(), Reply::Stale))
    }

    /// Expired keys that a session observes go before its batch, as a change.
    pub(crate) fn notice_observed(&mut self, by: SessionSlot, effects: &mut Effects) {
        let observing = self.keyspace.observing(by);
        let names: Vec<_> = observing.into_iter().flat_map(Observing::keys).cloned().collect();
        for name in names {
            self.keyspace.notice_end(&name, &mut self.store, &mut self.log, effects);
        }
        self.end_frame(effects);
    }
}
