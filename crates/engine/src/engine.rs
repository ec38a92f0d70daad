//! The state machine: its parts, and the execution of commands and timers.
//!
//! The commands are in `commands`, by family. The code that moves a message between states and
//! tells the parts is in `consequences`.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;

use model::{
    BrokerStatistics, Capacity, Command, DeadLetterStatistics, DependsOn, Lsn, MessageId, Nanos,
    Refusal, Reply, SessionId, Settlement, limits,
};

use crate::admission::Admission;
use crate::bodies::Bodies;
use crate::bodies::memory::beside_messages_max;
use crate::dedup::SendIds;
use crate::delivery::Allowance;
use crate::delivery::receiving::Wanted;
use crate::delivery::woken::Woken;
use crate::demand::{About, Demand};
use crate::directory::Directory;
use crate::ids::{LIST_LINK, SessionSlot};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::Work;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::recovery::Recovery;
use crate::replies::ReplyBudget;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::timers::Timer;
use crate::transactions::Transactions;
use crate::{Effects, EngineOptions};

/// A message broker without input and output. See the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) log: FrameWriter,
    pub(crate) store: MessageStore,
    pub(crate) bodies: Bodies,
    pub(crate) directory: Directory,
    pub(crate) sessions: Sessions,
    pub(crate) admission: Admission,
    pub(crate) transactions: Transactions,
    pub(crate) keyspace: Keyspace,
    pub(crate) dedup: SendIds,
    pub(crate) replies: ReplyBudget,
    pub(crate) recovery: Recovery,
}

impl Engine {
    /// An engine without messages or sessions, and with no queues but those that are kept.
    #[must_use]
    pub fn new(options: EngineOptions) -> Self {
        let bound = options.memory_limit;
        let bodies = Bodies::new(&options);
        Self {
            log: FrameWriter::new(options.policy, options.frame_bytes_max),
            store: MessageStore::new(&options.queue_policies, bound),
            bodies,
            admission: Admission::new(options.block_timeout),
            sessions: Sessions::new(),
            transactions: Transactions::default(),
            keyspace: Keyspace::default(),
            dedup: SendIds::new(
                options.dedup_window,
                options.dedup_max_ids,
                beside_messages_max(bound),
            ),
            replies: ReplyBudget::new(options.reply_bytes_max),
            recovery: Recovery::default(),
            directory: Directory::new(options),
        }
    }

    /// Begins a session; no effect on one that is open.
    pub fn open_session(&mut self, session: SessionId) {
        self.sessions.open(session);
    }

    /// Sets the name by which operators know a session, if it is open.
    pub fn name_session(&mut self, session: SessionId, name: Arc<str>) {
        if let Some(slot) = self.sessions.slot(session) {
            self.sessions.at_mut(slot).rename(name);
        }
    }

    /// The links of a session, if it is open, are those of many clients, which have one each.
    pub fn share_session(&mut self, session: SessionId) {
        if let Some(slot) = self.sessions.slot(session) {
            self.sessions.at_mut(slot).share_links();
        }
    }

    /// Ends a session after its peer is gone. Its waits end without reply, its producers and
    /// consumers are closed. Messages that it leases are ready again at once, without penalty.
    /// Messages that it holds for no certain time are as after [`Settlement::Fail`].
    ///
    /// Of many messages only [`limits::TIMERS_PER_TURN_MAX`] return here. The rest return as timers
    /// that are due, so that a session that holds a million stalls no other. No effect on one that
    /// is not open.
    pub fn close_session(
        &mut self,
        now: Nanos,
        session: SessionId,
        capacity: Capacity,
        effects: &mut Effects,
    ) {
        self.end_session(now, session, Settlement::Fail, capacity, effects);
    }

    /// Ends a session through no fault of its peer's, as when the server stops: as
    /// [`Engine::close_session`] does, but all that it holds is as after [`Settlement::Return`].
    pub fn dismiss_session(
        &mut self,
        now: Nanos,
        session: SessionId,
        capacity: Capacity,
        effects: &mut Effects,
    ) {
        self.end_session(now, session, Settlement::Return, capacity, effects);
    }

    /// The peer of a session is known to be gone, and the session will be closed: until then it is
    /// given nothing more. It keeps the messages that it holds. So of many sessions that are to be
    /// closed none is given a message that another one had. No effect on one that is not open.
    pub fn stop_serving(&mut self, session: SessionId) {
        let Some(slot) = self.sessions.slot(session) else { return };
        self.bodies.drop_awaiting(session, &mut self.store);
        self.sessions.stop_consumers(slot, &mut self.store);
        self.directory.stop_waits(slot, &mut self.sessions, &mut self.store);
        self.keyspace.end_wait(slot, &mut self.store);
    }

    /// Notes the messages of a session that its client can have begun. The others were fetched
    /// ahead, and are as after [`Settlement::Return`] when [`Engine::close_session`] ends it. No
    /// effect on one that is not open.
    pub fn note_begun(&mut self, session: SessionId, begun: BTreeSet<MessageId>) {
        let Some(slot) = self.sessions.slot(session) else { return };
        self.sessions.at_mut(slot).note_begun(begun);
    }

    fn end_session(
        &mut self,
        now: Nanos,
        session: SessionId,
        held: Settlement,
        capacity: Capacity,
        effects: &mut Effects,
    ) {
        self.begin_call(now, capacity);
        let Some(slot) = self.sessions.slot(session) else { return };
        self.store.took_steps(limits::COMMAND_STEPS);
        self.forget_blocked_sends(slot);
        self.bodies.drop_awaiting(session, &mut self.store);
        self.drop_transactions(slot);
        self.keyspace.stop_observing(slot, &mut self.store);
        self.keyspace.end_wait(slot, &mut self.store);
        self.sessions.at_mut(slot).take_popped();
        let idle = self.directory.close_links(slot, &mut self.sessions, &mut self.store);
        self.end_temporaries(slot, effects);
        self.stop_keeping(slot, effects);
        self.sessions.begin_return(slot, held, &mut self.store);
        // A consumer that waits for returning messages finds all of them, as if none had been
        // taken.
        let mut woken = Woken::NONE;
        for _ in 0..limits::TIMERS_PER_TURN_MAX {
            if self.sessions.at(slot).holds_nothing() || !self.log.takes_change() {
                break;
            }
            if let Some(queue) = self.return_next(slot, effects) {
                woken.add(queue);
                // Messages that its bounds have no place for go in the order in which they return.
                self.shed(queue, &mut woken, effects);
            }
        }
        self.serve_all(woken, effects);
        for queue in idle {
            self.part_queue(queue, effects);
        }
        self.sessions.end_close(slot);
        self.end_frame(effects);
    }

    /// Does the command of a session. A command of a session that is not open is refused.
    ///
    /// `now` may not go back; an earlier moment than one seen before counts as that one.
    pub fn handle(
        &mut self,
        now: Nanos,
        session: SessionId,
        mut command: Command,
        capacity: Capacity,
        effects: &mut Effects,
    ) {
        self.begin_call(now, capacity);
        self.dedup.forget_send_ids(&mut self.store);
        // No protocol may use the link that commands on lists wait as.
        let Demand { about, is_from_client, .. } = Demand::of(&command);
        let is_for_list_link = about == About::Consumer(LIST_LINK);
        let Some(slot) = self.sessions.slot(session).filter(|_| !is_for_list_link) else {
            return self.conclude(session, Outcome::refused(Refusal::NoSuchLink), effects);
        };
        let floor =
            if is_from_client { self.settle_popped(slot, effects) } else { DependsOn::NOTHING };
        if self.sessions.at(slot).is_limited()
            && let Some(denied) = self.turn_away(slot, &mut command)
        {
            return self.conclude(session, denied, effects);
        }
        let command = if self.bodies.has_paged_out() {
            self.unless_awaiting(slot, command, floor, effects)
        } else {
            Some(command)
        };
        match command {
            Some(command) => self.handle_now(slot, command, floor, effects),
            None => self.end_frame(effects),
        }
    }

    /// Does a session's command that lacks nothing. Its answer waits for `floor` too.
    pub(crate) fn handle_now(
        &mut self,
        slot: SessionSlot,
        command: Command,
        floor: DependsOn,
        effects: &mut Effects,
    ) {
        self.act_as(slot);
        let session = self.sessions.at(slot).id();
        let first = effects.outputs.len();
        if matches!(command, Command::Batch { .. }) {
            self.notice_observed(slot, effects);
        }
        let is_late = self.sessions.comes_too_late(slot, &command);
        let lack = self.shortage_of_memory_for(slot, &command);
        let lack = lack.or_else(|| self.shortage_of_place_for(slot, &command));
        let outcome = if is_late {
            Outcome::refused(Refusal::NoSuchTransaction)
        } else if let Some(refusal) = self.over_quota(slot, &command) {
            self.refuse_over_quota(slot, command, refusal, effects)
        } else if let Some(lack) = lack {
            self.block_or_refuse(slot, command, lack, floor, effects)
        } else {
            self.do_now(slot, command, effects)
        };
        self.conclude(session, outcome, effects);
        self.sessions.raise_answers(slot, floor, first, effects);
    }

    /// When [`Engine::handle_timeout`] is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let goes_on = self.bodies.is_disturbed() || self.is_memory_to_be_had();
        goes_on.then_some(self.store.latest).or_else(|| self.store.timers.first().map(|(at, _)| at))
    }

    /// Does the work that is due by `now`: at most [`limits::TIMERS_PER_TURN_MAX`] timers. It does
    /// fewer if they take more than [`limits::STEPS_PER_TURN_MAX`] or than the log takes. Call it
    /// again while [`Engine::poll_timeout`] is not after `now`, and serve others in between.
    pub fn handle_timeout(&mut self, now: Nanos, capacity: Capacity, effects: &mut Effects) {
        self.begin_call(now, capacity);
        let last_step = self.store.steps() + limits::STEPS_PER_TURN_MAX as u64;
        if self.bodies.is_disturbed() {
            self.go_on_looking(effects);
        }
        self.notice_memory();
        for _ in 0..limits::TIMERS_PER_TURN_MAX {
            match self.store.timers.first() {
                Some((at, timer))
                    if at <= self.store.latest
                        && self.store.steps() < last_step
                        && self.log.takes_change() =>
                {
                    self.fire(timer, effects);
                    self.state_lifetimes(effects);
                }
                _ => break,
            }
        }
        self.end_frame(effects);
    }

    /// The log went on between calls. Sends that waited for it go on when
    /// [`Engine::handle_timeout`] is called next. Bodies that it can return leave memory now, where
    /// that is too full.
    pub fn handle_capacity(&mut self, capacity: Capacity) {
        self.log.set_capacity(&capacity);
        if !self.log.is_scarce() {
            self.admission.shed_what_stayed(&mut self.store);
        }
        self.admission.set_log_behind(capacity.is_behind, &mut self.store);
        if let Some(written) = capacity.written {
            self.set_written(written);
        }
    }

    /// A call begins.
    pub(crate) fn begin_call(&mut self, now: Nanos, capacity: Capacity) {
        self.handle_capacity(capacity);
        self.store.advance(now);
        self.log.begin_call();
    }

    /// The position of the last frame.
    #[must_use]
    pub fn last_lsn(&self) -> Lsn {
        self.log.last()
    }

    /// The latest moment the engine was told, or found in records: a server's clock must not start
    /// before it.
    #[must_use]
    pub fn latest_time(&self) -> Nanos {
        self.store.latest
    }

    /// The cost of all calls so far, in steps of some 50 ns. A command or timer costs
    /// [`limits::COMMAND_STEPS`], and one step each time it moved a message, looked at a queue or
    /// entered a waiting consumer there. A caller that one client must not keep busy for long
    /// counts these.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.store.steps()
    }

    /// All queues together.
    #[must_use]
    pub fn statistics(&self) -> BrokerStatistics {
        self.store.statistics()
    }

    /// Counts of the fates of dead messages.
    #[must_use]
    pub const fn dead_letters(&self) -> DeadLetterStatistics {
        self.store.dead_letter_statistics()
    }

    /// How many messages and keys end by `now`, for their time is over then.
    #[must_use]
    pub fn ending_by(&self, now: Nanos) -> u64 {
        let ending = |timer| match timer {
            Timer::Values => self.keyspace.values().due(now).count() as u64,
            Timer::End(slot) => self.store.queues.at(slot).counts().sum(),
            Timer::Expire(slot) => self.store.queues.at(slot).expiring_by(now).count() as u64,
            _ => 0,
        };
        self.store.timers.due(now).map(ending).sum()
    }

    /// Does a command that a session asks for, or asked for before and had to wait for.
    pub(crate) fn do_now(
        &mut self,
        by: SessionSlot,
        command: Command,
        effects: &mut Effects,
    ) -> Outcome {
        self.store.took_steps(limits::COMMAND_STEPS);
        if self.directory.hides(by, &command, &self.sessions, &self.store) {
            return self.log.not_found();
        }
        self.execute(by, command, effects)
    }

    fn execute(&mut self, by: SessionSlot, command: Command, effects: &mut Effects) -> Outcome {
        let Self { directory, sessions, store, log, keyspace, transactions, bodies, .. } = self;
        match command {
            Command::OpenProducer { link, to } => {
                directory.open_producer(by, link, to, sessions, store)
            }
            Command::Identify { client } => sessions.identify(by, client),
            Command::CloseProducer { link } => directory.close_producer(by, link, sessions, store),
            Command::Put { link, message, transaction } => {
                self.put(by, link, message, transaction, effects)
            }
            Command::PutTo { to, message, transaction } => {
                self.put_to(by, to, message, transaction, effects)
            }
            Command::CreateTemporary { topic, secret } => {
                directory.create_temporary(by, topic, secret, sessions, store)
            }
            Command::DeleteTemporary { destination: to } => self.delete_temporary(by, &to, effects),
            Command::Subscribe { link, subscription: it } => self.subscribe(by, link, it, effects),
            Command::Unsubscribe { name } => self.unsubscribe(&name, effects),
            Command::FindSubscription { name } => directory.find_subscription(&name, log),
            Command::Begin { transaction } => sessions.begin(by, transaction),
            Command::Table { step, transaction: of } => {
                transactions.add_step(by, of, *step, (bodies, log), sessions)
            }
            Command::Commit { transaction } => self.commit(by, transaction, effects),
            Command::Rollback { transaction } => self.rollback(by, transaction, effects),
            Command::OpenConsumer { link, queue, selector, mode } => {
                self.open_consumer(by, link, queue, selector.as_deref(), mode)
            }
            Command::CloseConsumer { link } => self.close_consumer(by, link, effects),
            Command::Credit { link, limit, bytes, drain } => {
                self.credit(by, link, Allowance { messages: limit, bytes }, drain, effects)
            }
            Command::Settle { message, settlement, transaction } => {
                self.settle(by, message, settlement, transaction, effects)
            }
            Command::Watch { link, queue } => directory.watch(by, link, queue, sessions, store),
            Command::Unwatch { link, queue } => directory.unwatch(by, link, queue, sessions, store),
            Command::Receive { link, wait, margin, lease } => {
                self.receive(by, link, Wanted { wait, margin, lease }, effects)
            }
            Command::CancelReceive { link } => sessions.cancel_receive(by, link, store, log),
            Command::CancelSends => self.cancel_sends(by, effects),
            Command::CancelSend { ticket } => self.cancel_send(by, ticket, effects),
            Command::Lease { message } => self.lease(by, message, effects),
            Command::Delete { message } => self.delete(by, message, effects),
            Command::Release { message, priority, delay } => {
                self.release(by, message, priority, delay, effects)
            }
            Command::Bury { message, priority } => self.bury(by, message, priority, effects),
            Command::Renew { message, lease } => self.renew(by, message, lease),
            Command::Kick { link, max } => self.kick(by, link, max, effects),
            Command::KickMessage { message } => self.kick_message(message, effects),
            Command::Pause { queue, duration } => store.pause(&queue, duration, log),
            Command::Peek(which) => self.peek(by, which),
            Command::MessageStatistics { message } => store.message_statistics(message, log),
            Command::QueueStatistics { queue } => store.queue_statistics(&queue, log),
            Command::BrokerStatistics => store.broker_statistics(log),
            Command::ListQueues => store.list_queues(sessions.at(by).sight(), log),
            Command::List(command) => self.list(by, command, effects),
            Command::Key(command) => self.key(by, command, effects),
            Command::Admin(command) => self.administer(by, *command, effects),
            Command::Batch { commands } => self.batch(by, commands, effects),
            Command::Script(script) => self.run_script(by, &script, effects),
            Command::Observe { names } => keyspace.observe(by, names, store),
            Command::Unobserve => keyspace.unobserve(by, store),
            Command::Publish { topic, message } => self.publish_to(by, &topic, &message, effects),
        }
    }

    fn fire(&mut self, timer: Timer, effects: &mut Effects) {
        self.store.took_steps(limits::COMMAND_STEPS);
        let woken = match timer {
            Timer::Forget(queue) => return self.forget_next(queue, effects),
            Timer::Values => {
                return self.keyspace.end_next_value(&mut self.store, &mut self.log, effects);
            }
            Timer::Collections => return self.keyspace.drop_entries(&mut self.store),
            Timer::Pictures => return self.keyspace.end_pictures(&mut self.store),
            Timer::Members => {
                let Self { keyspace, sessions, store, log, replies, .. } = self;
                let mut work = Work::taking(store, log, effects, replies);
                return keyspace.serve_waits(sessions, &mut work);
            }
            Timer::WaitForMember(by) => return self.stop_waiting(by, effects),
            // The time of a subscription is over; or it begins, where it was found in the log.
            Timer::Unused(number) if self.directory.end_time(number, &mut self.store) => {
                return self.end_if_unused(number, effects);
            }
            Timer::Unused(number) => return self.end_subscription(number, effects),
            Timer::End(queue) => {
                self.keyspace.end_list(queue, &mut self.store);
                queue
            }
            Timer::Expire(queue) => {
                let dead = self.expire_next(queue, effects);
                if let Some(dead) = dead {
                    self.serve_all(Woken::of(dead), effects);
                }
                queue
            }
            Timer::Resume(queue) => self.resume(queue, effects),
            Timer::Browse(consumer) => return self.browse(consumer, effects),
            Timer::Delay(queue) => self.end_delay(queue, effects),
            Timer::Sources => return self.admission.look_at_sources(&mut self.store),
            Timer::Admit(line) => return self.admit_next(line, effects),
            Timer::GiveUp(ticket) => return self.give_up_waiting(ticket, effects),
            Timer::Pause(queue) => self.store.end_pause(queue),
            Timer::Lease(holder) if self.sessions.at(holder).closing().is_some() => {
                let returned = self.return_next(holder, effects);
                self.sessions.end_close(holder);
                let Some(queue) = returned else { return };
                queue
            }
            Timer::Lease(holder) => self.expire_lease(holder, effects),
            Timer::Margin(consumer) => {
                return self.sessions.give_up(
                    consumer,
                    Reply::LeaseEnding,
                    &mut self.store,
                    &self.log,
                    effects,
                );
            }
            Timer::Wait(consumer) => return self.end_waiting(consumer, effects),
        };
        self.serve_all(Woken::of(woken), effects);
    }

    /// Sends the answer, serves waiting consumers, and ends the frame.
    pub(crate) fn conclude(&mut self, session: SessionId, outcome: Outcome, effects: &mut Effects) {
        let (answer, woken) = outcome.into_parts();
        if let Some((after, reply)) = answer {
            self.answer(session, after, reply, effects);
        }
        // A served consumer may need another frame; but a list and its deadline are one.
        self.state_lifetimes(effects);
        self.serve_all(woken, effects);
        self.end_frame(effects);
    }

    /// A session hears the end of its command.
    pub(crate) fn answer(
        &mut self,
        session: SessionId,
        after: DependsOn,
        reply: Reply,
        effects: &mut Effects,
    ) {
        self.store.count_over_quota(&reply);
        effects.reply(session, after, reply);
    }

    /// Ends the frame with the changes of one call.
    pub(crate) fn end_frame(&mut self, effects: &mut Effects) {
        if self.keyspace.may_serve_waits() {
            let Self { keyspace, sessions, store, log, replies, .. } = self;
            keyspace.serve_waits(sessions, &mut Work::taking(store, log, effects, replies));
        }
        self.state_lifetimes(effects);
        self.log.seal(effects);
    }
}

impl MessageStore {
    /// Time passes; it never goes back.
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.latest = self.latest.max(now);
    }
}

impl FrameWriter {
    /// Refuses a command on a key. A refusal that tells the state of the key waits for that state,
    /// as any answer does that looks at it.
    pub(crate) fn refuse(&self, refusal: Refusal) -> Outcome {
        let tells = matches!(
            refusal,
            Refusal::WrongKind
                | Refusal::NoSuchPlace
                | Refusal::ListTooLong
                | Refusal::TooManyBytes { .. }
                | Refusal::NotAnInteger
                | Refusal::Overflow
                | Refusal::NotADecimal
                | Refusal::NotFinite
                | Refusal::ScoreNotANumber
                | Refusal::Stream(_)
        );
        let after = if tells { self.after_all() } else { DependsOn::NOTHING };
        Outcome::reply(after, Reply::Refused(refusal))
    }
}

#[cfg(test)]
#[path = "engine_test.rs"]
mod tests;
