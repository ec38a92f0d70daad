//! The room that a command needs, in queues, memory and the log, before it is performed.

use core::slice;

use model::{
    Command, DeadReason, MessageId, NewMessage, QueueName, Refusal, SessionId, Settlement,
    TransactionId, WhenFull,
};

use crate::Effects;
use crate::admission::bounds::{Amount, PlaceDemand, Site};
use crate::admission::{Admission, Shortage};
use crate::bodies::Bodies;
use crate::dedup::SendIds;
use crate::delivery::woken::Woken;
use crate::demand::{Address, Batching, Changes, Demand, Stores};
use crate::directory::{Directory, Target};
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::log::usage::Logged;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::Role;

impl Engine {
    /// Why a command may not be done now: a queue has no place for the messages it stores.
    pub(crate) fn shortage_of_place_for(
        &mut self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        if !self.store.is_bounded() {
            return None;
        }
        let demand = self.places_for(by, slice::from_ref(command));
        self.store.took_steps(demand.steps);
        self.directory.shortage_of_place(&demand, u64::MAX, &self.store, &self.log)
    }

    /// A command is not done; a transaction is rolled back, or will be where it is a part of it.
    pub(crate) fn refuse_send(
        &mut self,
        by: SessionSlot,
        command: &Command,
        refusal: Refusal,
        effects: &mut Effects,
    ) -> Outcome {
        match Demand::of(command).stores {
            Stores::Transaction(id) => self.refuse_commit(by, id, refusal, effects),
            // If a key that the session observes has changed, that answer goes before the shortage.
            Stores::Batch(_) => {
                self.stale_batch(by, effects).unwrap_or_else(|| self.log.refuse(refusal))
            }
            stores => {
                let part_of = match command {
                    Command::Table { transaction, .. } => Some(*transaction),
                    _ => stores.part_of(),
                };
                self.sessions.refuse_part(by, part_of, refusal, &self.log)
            }
        }
    }

    /// The messages that commands would store where a bound applies. Empty if they were stored
    /// before: a sender that sends again is to be told so.
    pub(crate) fn places_for<'c>(
        &self,
        by: SessionSlot,
        commands: &'c [Command],
    ) -> PlaceDemand<'c> {
        let mut demand = PlaceDemand::default();
        if self.store.is_bounded() {
            let Self { admission, bodies, dedup, directory, log, sessions, store, .. } = self;
            let places = Places { by, admission, bodies, dedup, directory, log, sessions, store };
            commands.iter().for_each(|command| places.add(command, &mut demand));
        }
        debug_assert!(self.store.is_bounded() || demand.is_empty(), "nothing bounds anything");
        demand
    }
}

/// What a session's commands would store, read from the parts that know it.
struct Places<'e> {
    by: SessionSlot,
    admission: &'e Admission,
    bodies: &'e Bodies,
    dedup: &'e SendIds,
    directory: &'e Directory,
    log: &'e FrameWriter,
    sessions: &'e Sessions,
    store: &'e MessageStore,
}

impl Places<'_> {
    fn add<'c>(&self, command: &'c Command, demand: &mut PlaceDemand<'c>) {
        let Self { store, log, directory, .. } = *self;
        let Demand { stores, changes, batching, .. } = Demand::of(command);
        match stores {
            Stores::Message { to: Address::Producer(link), message, part_of: None } => {
                let target = self.sessions.at(self.by).producers().get(&link);
                target.into_iter().for_each(|to| self.add_put(*to, message, demand));
            }
            Stores::Message { to: Address::Queue(name), message, part_of: None } => {
                match store.queues.find(name.as_str()) {
                    Some(slot) => self.add_put(Target::Queue(slot), message, demand),
                    None => {
                        let amount = Amount::one(message.body.len());
                        directory.add_named(name, amount, demand, store, log);
                    }
                }
            }
            Stores::Message { to: Address::Topic(name), message, part_of: None } => {
                self.add_copies(name, message, demand);
            }
            // A run is done only if nothing bounds its list.
            Stores::Elements { queue, elements, rule, .. } if batching != Batching::Run => {
                directory.add_elements(queue, elements, rule, demand, store, log);
            }
            Stores::Transaction(id) => self.add_transaction(id, demand),
            // Its commands ask when its turn has come.
            Stores::Batch(_) => {}
            Stores::Message { part_of: Some(_), .. }
            | Stores::Elements { .. }
            | Stores::Value { .. }
            | Stores::Values(_)
            | Stores::Edited { .. }
            | Stores::Entries(_)
            | Stores::Stream(_)
            | Stores::Nothing => {}
        }
        if let Changes::Moved { from, from_end, to, .. } = changes
            && from != to
            && let Some(bytes) = store.outermost_bytes(from, from_end)
        {
            directory.add_named(to, Amount { messages: 1, bytes }, demand, store, log);
        }
    }

    fn add_transaction(&self, id: TransactionId, demand: &mut PlaceDemand<'_>) {
        let Some(transaction) = self.sessions.at(self.by).transactions().open().get(&id) else {
            return;
        };
        for (target, message) in transaction.puts() {
            self.add_put(*target, message, demand);
        }
        if demand.is_empty() {
            return;
        }
        for (id, settlement) in transaction.settlements() {
            let Some(message) = self.store.messages.get(id.0) else { continue };
            if *settlement == Settlement::Accept {
                let settled = demand.settled.entry(message.queue()).or_default();
                *settled = settled.and(Amount { messages: 1, bytes: message.body_bytes() });
            }
        }
    }

    fn add_put(&self, target: Target, message: &NewMessage, demand: &mut PlaceDemand<'_>) {
        match target {
            // It is refused otherwise, or passed over in a transaction.
            _ if self.directory.is_gone(target, self.store) => {}
            Target::Topic(slot) => {
                self.add_copies(self.directory.topics().at(slot).name(), message, demand);
            }
            Target::Queue(slot) => {
                if !self.dedup.was_sent(target, message, self.directory, self.store) {
                    self.store.add_stored(slot, Amount::one(message.body.len()), demand, self.log);
                }
            }
        }
    }

    fn add_copies(&self, topic: &QueueName, message: &NewMessage, demand: &mut PlaceDemand<'_>) {
        let bounds = self.directory.policy_for(topic).bounds;
        let (holds_off, is_scarce) = (bounds.holds_off(), self.log.is_scarce());
        let may_be_more = || is_scarce || self.admission.has_blocked_sends();
        if !(holds_off || may_be_more()) || self.dedup.was_published(topic, message, self.store) {
            return;
        }
        let Self { by, bodies, directory, sessions, store, .. } = *self;
        let formats = bodies.formats();
        let (takers, steps) =
            directory.takers_of_topic(by, topic, message, formats, sessions, store);
        demand.steps += steps + self.store.leaving_queues().len();
        // Nor does it overtake sends that wait in a subscription that has just ended. Nothing is
        // stored for that.
        let is_of_topic = |slot: &&QueueSlot| self.store.queues.at(**slot).name == *topic;
        for slot in self.store.leaving_queues().iter().filter(is_of_topic) {
            demand.stored.entry(Site::There(*slot)).or_default();
        }
        let amount = Amount::one(message.body.len());
        for slot in takers {
            if is_scarce && self.store.queues.at(slot).parks() {
                demand.park(slot, amount);
            }
            if holds_off {
                self.store.add_stored(slot, amount, demand, self.log);
            } else if !self.store.queues.at(slot).admission.line.is_empty() {
                // It takes everything; but no send overtakes those that waited before it did.
                demand.stored.entry(Site::There(slot)).or_default();
            }
        }
    }
}

impl Engine {
    /// Lets a queue hold no more than it may, or goes on with that by time. Adds to `woken` the
    /// queues that got the messages it lost.
    pub(crate) fn shed(&mut self, slot: QueueSlot, woken: &mut Woken, effects: &mut Effects) {
        if !self.store.is_bounded() {
            return;
        }
        for _ in 0..SHED_PER_STEP_MAX {
            let Some(queue) = self.store.queues.get(slot).filter(|queue| queue.sheds()) else {
                return;
            };
            if queue.admission.spares || !queue.is_beyond_bounds() {
                return;
            }
            let Some(id) = self.store.least_needed(queue) else { return };
            if !self.log.takes_change() {
                break;
            }
            let parks = queue.policy.bounds.when_full == WhenFull::DeadLetter;
            if self.log.stays_for_now(queue, self.store.message(id)) {
                self.admission.stays_overfull(slot, &self.store);
                return;
            }
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            if parks && self.store.message(id).dead().is_none() {
                woken.extend(self.dead_letter(id, DeadReason::Overflow, effects));
            } else {
                self.finish(id, effects);
            }
        }
        self.store.resume_later(slot);
    }
}

impl Engine {
    /// Bytes of log that a command takes at most for the messages it adds. Copies of a published
    /// message but for one are not counted. `None`: it adds nothing durable. A command that only
    /// settles, takes or looks adds nothing, nor does one with messages that memory alone keeps.
    #[must_use]
    pub fn adds_to_log(&self, session: SessionId, command: &Command) -> Option<usize> {
        self.sessions.bytes_added(self.sessions.slot(session)?, command, &self.log)
    }
}

impl Engine {
    /// Tells of those among `count` messages from `first` on, the oldest first. The message to go
    /// on from, none after the last.
    pub fn logged(
        &self,
        first: MessageId,
        count: usize,
        mut tell: impl FnMut(Logged<'_>),
    ) -> Option<MessageId> {
        let mut messages = self.store.messages.iter_from(first.0);
        for (number, message) in messages.by_ref().take(count) {
            let queue = self.store.queues.get(message.queue()).filter(|_| message.is_journalled());
            let Some(queue) = queue else { continue };
            tell(Logged {
                lsn: message.location(),
                message: MessageId(number),
                created: message.created(),
                queue: &queue.name,
                of_topic: matches!(queue.role, Role::Subscription { .. }),
            });
        }
        messages.next().map(|(number, _)| MessageId(number))
    }
}

/// Messages that one step takes out of a queue; it goes on in the next.
const SHED_PER_STEP_MAX: usize = 1_024;
