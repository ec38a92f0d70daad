//! A session's transactions.

use alloc::vec::Vec;

use model::{Command, Refusal, Reply};

use super::{Awaited, FollowUp, Session, Step, WATCHED_BYTES_MAX, waited_bytes};
use crate::clients::Silence;
use crate::fault::Fault;
use crate::shared::ListenerState;
use crate::table::{Handler, Spec, Verb};
use crate::transaction::{Parts, Transaction, aborted};
use crate::words::Words;

impl Session {
    pub(super) fn multi(
        &mut self,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if self.transaction.is_some() {
            return Err(Fault::of("ERR MULTI calls can not be nested"));
        }
        let database = shared.clients.at(self.slot).database;
        self.transaction = Some(Transaction::of(database));
        shared.clients.at_mut(self.slot).queued = Some(0);
        Ok(self.okay(shared, out))
    }

    pub(super) fn enqueue(
        &mut self,
        spec: &'static Spec,
        words: &Words,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        let Some(transaction) = &mut self.transaction else { return Step::GoOn };
        let pushed = match spec.handler {
            Handler::Verb(Verb::Subscribe { .. } | Verb::Unsubscribe { .. }) => {
                Err(Fault::IN_TRANSACTION)
            }
            // A command that looks at all subscriptions is no part of a frame.
            Handler::Ask(_) if spec.name.starts_with("pubsub|") => Err(Fault::IN_TRANSACTION),
            // Nothing is kept of commands that EXEC will refuse.
            _ if transaction.is_faulty => Ok(()),
            _ => transaction.push(spec, words, shared),
        };
        transaction.is_faulty |= pushed.is_err();
        shared.clients.at_mut(self.slot).queued = Some(transaction.len());
        match pushed {
            Ok(()) => self.context(shared, out).answer().simple("QUEUED"),
            Err(fault) => self.context(shared, out).refuse(&fault),
        }
        Step::GoOn
    }

    pub(super) fn exec(
        &mut self,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        let transaction = self.transaction.take().ok_or(Fault::of("ERR EXEC without MULTI"))?;
        if transaction.is_faulty {
            self.end_transaction(shared);
            return Err(Fault::of("EXECABORT Transaction discarded because of previous errors."));
        }
        if shared.draining.has_begun() && transaction.may_store {
            self.end_transaction(shared);
            return Err(aborted(&Refusal::Draining));
        }
        shared.clients.at_mut(self.slot).queued = None;
        let (commands, parts) = transaction.into_batch();
        if commands.is_empty() && self.watching.is_none() {
            parts.word(Vec::new(), &mut self.context(shared, out));
            return Ok(Step::GoOn);
        }
        self.watching = None;
        self.awaited = Awaited::Exec(parts);
        Ok(Step::Ask(Command::Batch { commands }))
    }

    pub(super) fn finish_exec(
        &self,
        parts: Parts,
        reply: Reply,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        let mut context = self.context(shared, out);
        match reply {
            Reply::Batch(replies) => parts.word(replies, &mut context),
            Reply::Stale => context.answer().null_array(),
            Reply::Refused(refusal) => context.refuse(&aborted(&refusal)),
            _ => context.refuse(&Fault::INTERNAL),
        }
    }

    pub(super) fn discard(
        &mut self,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if self.transaction.is_none() {
            return Err(Fault::of("ERR DISCARD without MULTI"));
        }
        self.end_transaction(shared);
        Ok(self.okay(shared, out))
    }

    /// Forgets the commands that wait for EXEC, and the keys that are watched for them.
    pub(super) fn end_transaction(&mut self, shared: &mut ListenerState) {
        self.transaction = None;
        shared.clients.at_mut(self.slot).queued = None;
        self.end_watching();
    }

    pub(super) fn end_watching(&mut self) {
        if self.watching.take().is_some() {
            self.follow_ups.push_back(FollowUp::Quiet(Command::Unobserve));
        }
    }

    pub(super) fn watch(&mut self, words: &Words, shared: &ListenerState) -> Result<Step, Fault> {
        if self.transaction.is_some() {
            return Err(Fault::of("ERR WATCH inside MULTI is not allowed"));
        }
        let names = self.arguments(words, shared).keys(1)?;
        self.awaited = Awaited::Watch(waited_bytes(&names));
        Ok(Step::Ask(Command::Observe { names }))
    }

    pub(super) fn finish_watch(
        &mut self,
        bytes: usize,
        reply: &Reply,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        match reply {
            Reply::Done => {
                // A key that is watched again is there once, so it may be less.
                let bytes = self.watching.unwrap_or(0) + bytes;
                self.watching = Some(bytes.min(WATCHED_BYTES_MAX));
                self.okay(shared, out);
            }
            Reply::Refused(refusal) => {
                self.context(shared, out).refuse(&Fault::refused(refusal));
            }
            _ => self.context(shared, out).refuse(&Fault::INTERNAL),
        }
    }

    pub(super) fn unwatch(&mut self, shared: &mut ListenerState, out: &mut Vec<u8>) -> Step {
        self.end_watching();
        self.okay(shared, out)
    }

    pub(super) fn reset(&mut self, shared: &mut ListenerState, out: &mut Vec<u8>) -> Step {
        self.end_transaction(shared);
        self.log_out(shared);
        for pattern in [false, true] {
            for target in self.subscriptions.targets(pattern) {
                let command = self.leave(&target, shared);
                self.follow_ups.extend(command.map(FollowUp::Quiet));
            }
        }
        let client = shared.clients.at_mut(self.slot);
        client.reset();
        assert!(client.silence != Silence::All, "a client hears again after RESET");
        self.context(shared, out).answer().simple("RESET");
        Step::GoOn
    }
}
