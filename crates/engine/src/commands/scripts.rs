//! Scripts: commands that a program gives one after the other, each by the answers to those before.
//!
//! All of them are one frame, as those of a batch. A batch is counted before any of it is done; a
//! script claims the most that each command may come to just before it does it. A command that is
//! refused for that has done nothing, and the script goes on with the refusal.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{Command, Nanos, Refusal, Reply, Script, ScriptCommands, limits};

use crate::Effects;
use crate::admission::needed::Needed;
use crate::demand::{Batching, Demand, Stores};
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::outcome::Outcome;

/// A script that runs for a session.
struct Running<'e> {
    engine: &'e mut Engine,
    by: SessionSlot,
    effects: &'e mut Effects,
    /// The queues that its commands have woken.
    outcome: Outcome,
}

impl Engine {
    /// Runs a script. Waiting consumers are served after it has ended.
    pub(crate) fn run_script(
        &mut self,
        by: SessionSlot,
        script: &Script,
        effects: &mut Effects,
    ) -> Outcome {
        // A batch around it is one frame already.
        let is_alone = !self.log.is_whole();
        if is_alone {
            self.log.begin_batch();
        }
        let mut running = Running { engine: self, by, effects, outcome: Outcome::NOTHING };
        let value = script.0.run(&mut running);
        let outcome = running.outcome;
        if is_alone {
            self.replies.start_anew();
            self.log.end_batch();
        }
        // The script's value may reflect all that it has seen.
        outcome.answering(self.log.after_all(), Reply::Scripted(Box::new(value)))
    }
}

impl ScriptCommands for Running<'_> {
    fn now(&self) -> Nanos {
        self.engine.store.latest
    }

    fn perform(&mut self, mut command: Command) -> Reply {
        let engine = &mut *self.engine;
        engine.store.took_steps(limits::COMMAND_STEPS);
        if engine.sessions.at(self.by).is_limited()
            && let Some(denied) = engine.turn_away(self.by, &mut command)
        {
            let (answer, _) = denied.into_parts();
            return answer.map_or(Reply::NotFound, |(_, reply)| reply);
        }
        command.wait_no_longer();
        if let Err(refusal) = self.admit(core::slice::from_ref(&command)) {
            return Reply::Refused(refusal);
        }
        self.do_now(command)
    }

    fn perform_all(&mut self, mut commands: Vec<Command>) -> Result<Vec<Reply>, Refusal> {
        self.engine.store.took_steps(limits::COMMAND_STEPS.saturating_mul(commands.len()));
        for command in &mut commands {
            if self.engine.sessions.at(self.by).is_limited()
                && let Some(denied) = self.engine.turn_away(self.by, command)
            {
                let denied = denied.into_parts().0.map(|(_, reply)| reply);
                let Some(Reply::Refused(refusal)) = denied else {
                    return Err(Refusal::NotInBatch);
                };
                return Err(refusal);
            }
            command.wait_no_longer();
        }
        self.admit(&commands)?;
        Ok(commands.into_iter().map(|command| self.do_now(command)).collect())
    }
}

impl Running<'_> {
    fn do_now(&mut self, command: Command) -> Reply {
        let outcome = self.engine.do_now(self.by, command, self.effects);
        let woken = core::mem::replace(&mut self.outcome, Outcome::NOTHING);
        self.outcome = woken.waking_as(&outcome);
        let (_, reply) = outcome.into_answer().expect("invariant: nothing waits in a script");
        self.engine.replies.add(&reply);
        reply
    }
}

impl Running<'_> {
    /// True if a command needs bodies that have left memory: a script does not wait for them.
    fn lacks_bodies(&mut self, command: &Command) -> bool {
        let Engine { bodies, store, .. } = &mut *self.engine;
        if !bodies.has_paged_out() {
            return false;
        }
        let Needed { ids, looked } = bodies.lacked_in_script(command, store);
        store.took_steps(looked);
        !ids.is_empty()
    }

    /// Checks that commands may be done now, and claims the room that they may take.
    fn admit(&mut self, commands: &[Command]) -> Result<(), Refusal> {
        commands.iter().try_for_each(|command| self.admit_one(command))?;
        let engine = &mut *self.engine;
        let load = engine.keyspace.load_of(commands, &engine.directory, &engine.store)?;
        engine.log.claim(&load)
    }

    fn admit_one(&mut self, command: &Command) -> Result<(), Refusal> {
        let Demand { batching, stores, .. } = Demand::of(command);
        if batching != Batching::Batchable || matches!(command, Command::Script(_)) {
            return Err(Refusal::NotInBatch);
        }
        if self.engine.replies.is_too_much(command) || self.lacks_bodies(command) {
            return Err(self.engine.replies.refusal());
        }
        let Self { engine, by, .. } = self;
        let lack = engine.shortage_of_memory_for(*by, command);
        if let Some(lack) = lack.or_else(|| engine.shortage_of_place_for(*by, command)) {
            return Err(lack.refusal);
        }
        if let Some(refusal) = engine.over_quota(*by, command) {
            return Err(refusal);
        }
        match stores {
            // Behind others it would be refused when they are done.
            Stores::Elements { queue, .. }
                if engine.store.queues.find(queue.as_str()).is_none() =>
            {
                engine.store.queues.takes_another()
            }
            _ => Ok(()),
        }
    }
}
