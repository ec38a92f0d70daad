//! What bounded queues have a place for: held against it before a command stores anything, so that
//! what is refused leaves nothing behind.
//!
//! A command is counted as a whole: a transaction without what it accepts in the same queue, a
//! batch without what it takes. What takes no message of a sender's, as a renaming, is not counted,
//! nor is what the broker moves by itself. Who subscribes to a pattern holds nobody off.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use model::{
    Bound, Command, Destination, End, ListCommand, NewMessage, QueueBounds, QueueFull, QueueName,
    Refusal, Settlement, TransactionId, WhenFull,
};

use crate::Effects;
use crate::engine::{Directory, Engine, MessageStore, Outcome};
use crate::log::Log;
use crate::memory::transaction_of;
use crate::queue::{Queue, QueueSlot};
use crate::session::SessionSlot;
use crate::targets::Target;
use crate::wait_lists::WaitListId;

/// Messages, and bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// A queue, or one that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Site<'c> {
    There(QueueSlot),
    New(&'c QueueName),
}

/// What a command stores in queues that hold senders off, and nothing where all the others are.
#[derive(Debug, Default)]
pub(crate) struct Demand<'c> {
    stored: BTreeMap<Site<'c>, Amount>,
    /// What leaves with it.
    settled: BTreeMap<QueueSlot, Amount>,
    /// What goes where others are to become dead letters for it, while the device is full.
    parking: BTreeMap<QueueSlot, Amount>,
    /// What it took to find that out.
    pub(crate) steps: usize,
}

/// There is no place for a command in a queue, or no memory for it.
#[derive(Debug)]
pub(crate) struct Shortage {
    pub(crate) refusal: Refusal,
    /// Where it may wait for one, if it ever can be done.
    pub(crate) waits_at: Option<WaitListId>,
    /// Of what it would store.
    pub(crate) bytes: u64,
}

impl Amount {
    pub(crate) fn one(bytes: usize) -> Self {
        Self { messages: 1, bytes: bytes as u64 }
    }

    fn and(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    fn without(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// The bound that it is beyond.
    pub(crate) fn exceeds(self, bounds: &QueueBounds) -> Option<Bound> {
        let messages = bounds.messages_max.filter(|max| self.messages > *max);
        let bytes = bounds.bytes_max.filter(|max| self.bytes > *max);
        messages.map(Bound::Messages).or(bytes.map(Bound::Bytes))
    }
}

impl<'c> Demand<'c> {
    pub(crate) fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.parking.is_empty()
    }

    /// The same where what has no place becomes a dead letter.
    fn park(&mut self, slot: QueueSlot, amount: Amount) {
        let parking = self.parking.entry(slot).or_default();
        *parking = parking.and(amount);
    }

    /// Where a queue sheds what it has no place for, only what never has one matters, or that
    /// others wait there still.
    fn add(&mut self, site: Site<'c>, amount: Amount, bounds: &QueueBounds, is_awaited: bool) {
        self.steps += 1;
        let is_too_large = bounds.bytes_max.is_some_and(|max| amount.bytes > max);
        if bounds.holds_off() {
            let stored = self.stored.entry(site).or_default();
            *stored = stored.and(amount);
        } else if is_too_large {
            self.stored.insert(site, Amount { messages: 0, ..amount });
        } else if is_awaited {
            self.stored.entry(site).or_default();
        }
    }
}

impl Queue {
    /// All that is stored in it.
    pub(crate) fn held(&self) -> Amount {
        Amount { messages: self.index.counts.sum(), bytes: self.bodies.body_bytes }
    }
}

impl Engine {
    /// Why a command may not be done now: a queue has no place for what it stores.
    pub(crate) fn shortage_of_place_for(
        &mut self,
        by: SessionSlot,
        command: &Command,
    ) -> Option<Shortage> {
        if !self.admission.is_bounded {
            return None;
        }
        let demand = self.demand_of(by, command);
        self.store.totals.steps += demand.steps as u64;
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
        match command {
            Command::Commit { transaction } => {
                self.refuse_commit(by, *transaction, refusal, effects)
            }
            // What it was to be done with is no more: that goes before what it lacks.
            Command::Batch { .. } => {
                self.stale_batch(by, effects).unwrap_or_else(|| self.log.refuse(refusal))
            }
            _ => self.sessions.refuse_part(by, transaction_of(command), refusal, &self.log),
        }
    }

    /// What a command would store where that is bounded; nothing where it was stored before, for
    /// who sends again is to be told so.
    pub(crate) fn demand_of<'c>(&self, by: SessionSlot, command: &'c Command) -> Demand<'c> {
        let mut demand = Demand::default();
        if self.admission.is_bounded {
            match command {
                Command::Commit { transaction } => {
                    self.add_transaction(by, *transaction, &mut demand);
                }
                command => self.add_demand(by, command, &mut demand),
            }
        }
        demand
    }

    /// The same of all commands of a batch.
    pub(crate) fn demand_of_batch<'c>(
        &self,
        by: SessionSlot,
        commands: &'c [Command],
    ) -> Demand<'c> {
        let mut demand = Demand::default();
        if self.admission.is_bounded {
            commands.iter().for_each(|command| self.add_demand(by, command, &mut demand));
        }
        demand
    }

    fn add_demand<'c>(&self, by: SessionSlot, command: &'c Command, demand: &mut Demand<'c>) {
        match command {
            Command::Put { link, message, transaction: None } => {
                let target = self.sessions.at(by).links.producers.get(link);
                target.into_iter().for_each(|to| self.add_put(by, *to, message, demand));
            }
            Command::PutTo { to: Destination::Queue(name), message, transaction: None } => {
                match self.store.queues.find(name.as_str()) {
                    Some(slot) => self.add_put(by, Target::Queue(slot), message, demand),
                    None => self.directory.add_named(
                        name,
                        Amount::one(message.body.len()),
                        demand,
                        &self.store,
                        &self.log,
                    ),
                }
            }
            Command::PutTo { to: Destination::Topic(name), message, transaction: None }
            | Command::Publish { topic: name, message } => {
                self.add_copies(by, name, message, demand);
            }
            Command::List(command) => {
                self.directory.add_elements(command, demand, &self.store, &self.log)
            }
            _ => {}
        }
    }

    fn add_transaction(&self, by: SessionSlot, id: TransactionId, demand: &mut Demand<'_>) {
        let Some(transaction) = self.sessions.at(by).transactions.open.get(&id) else { return };
        for (target, message) in transaction.puts() {
            self.add_put(by, *target, message, demand);
        }
        if demand.is_empty() {
            return;
        }
        for (id, settlement) in transaction.settlements() {
            let Some(message) = self.store.messages.get(id.0) else { continue };
            if *settlement == Settlement::Accept {
                let settled = demand.settled.entry(message.queue).or_default();
                *settled = settled.and(Amount { messages: 1, bytes: message.body_bytes() });
            }
        }
    }

    fn add_put(
        &self,
        by: SessionSlot,
        target: Target,
        message: &NewMessage,
        demand: &mut Demand<'_>,
    ) {
        match target {
            // It is refused otherwise, or passed over in a transaction.
            _ if self.directory.is_gone(target, &self.store) => {}
            Target::Topic(slot) => {
                self.add_copies(by, &self.directory.topics.at(slot).name, message, demand);
            }
            Target::Queue(slot) => {
                let key = self.dedup.send_key(target, message, &self.directory, &self.store);
                if !self.dedup.was_sent(key.as_ref(), &self.store) {
                    self.store.add_stored(slot, Amount::one(message.body.len()), demand, &self.log);
                }
            }
        }
    }

    fn add_copies(
        &self,
        by: SessionSlot,
        topic: &QueueName,
        message: &NewMessage,
        demand: &mut Demand<'_>,
    ) {
        let bounds = self.directory.policy_for(topic).bounds;
        let (holds_off, is_scarce) = (bounds.holds_off(), self.log.is_scarce());
        let may_be_more = || is_scarce || !self.admission.pacing.sends.is_empty();
        if !(holds_off || may_be_more())
            || self.dedup.was_sent(self.dedup.topic_send_key(topic, message).as_ref(), &self.store)
        {
            return;
        }
        let (takers, steps) = self.takers_of_topic(by, topic, message);
        demand.steps += steps + self.admission.pacing.leaving.len();
        // Nor those who wait in a subscription that has just ended, for which nothing is stored.
        let is_of_topic = |slot: &&QueueSlot| self.store.queues.at(**slot).name == *topic;
        for slot in self.admission.pacing.leaving.iter().filter(is_of_topic) {
            demand.stored.entry(Site::There(*slot)).or_default();
        }
        let amount = Amount::one(message.body.len());
        for slot in takers {
            if is_scarce && self.store.queues.at(slot).parks() {
                demand.park(slot, amount);
            }
            if holds_off {
                self.store.add_stored(slot, amount, demand, &self.log);
            } else if !self.store.queues.at(slot).admission.line.tickets.is_empty() {
                // It takes everything; but nobody overtakes those who waited before it did.
                demand.stored.entry(Site::There(slot)).or_default();
            }
        }
    }
}

impl Directory {
    /// The first queue without a place for what a send with this ticket stores, but for one in
    /// which it is not to wait for any: then there is nothing to wait for in others either.
    pub(crate) fn shortage_of_place(
        &self,
        demand: &Demand<'_>,
        ticket: u64,
        store: &MessageStore,
        log: &Log,
    ) -> Option<Shortage> {
        if demand
            .parking
            .iter()
            .any(|(slot, amount)| store.shortage_of_room_to_park(*slot, *amount, log))
        {
            return Some(Shortage { refusal: Refusal::StoreFull, waits_at: None, bytes: 0 });
        }
        let mut lacks = demand.stored.iter().filter_map(|(site, amount)| match site {
            Site::New(name) => {
                let bound = amount.exceeds(&self.policy_for(name).bounds.of_queue())?;
                Some((*site, bound, None))
            }
            Site::There(slot) => {
                let settled = demand.settled.get(slot).copied().unwrap_or_default();
                let (bound, waits) =
                    store.bound_of(store.queues.at(*slot), *amount, settled, ticket)?;
                Some((*site, bound, waits.then_some(WaitListId::Queue(*slot))))
            }
        });
        let first = lacks.next()?;
        let is_final = |(_, _, waits_at): &(_, _, Option<WaitListId>)| waits_at.is_none();
        let last = if is_final(&first) { None } else { lacks.find(is_final) };
        let (site, bound, waits_at) = last.unwrap_or(first);
        let queue = match site {
            Site::New(name) => name.clone(),
            Site::There(slot) => store.queues.at(slot).name.clone(),
        };
        let refusal = Refusal::QueueFull(Box::new(QueueFull { queue, bound }));
        let bytes = demand.stored.values().map(|amount| amount.bytes).sum();
        Some(Shortage { refusal, waits_at, bytes })
    }

    fn add_elements<'c>(
        &self,
        command: &'c ListCommand,
        demand: &mut Demand<'c>,
        store: &MessageStore,
        log: &Log,
    ) {
        match command {
            ListCommand::Push { queue, elements, only_existing, .. } => {
                let slot = store.queues.find(queue.as_str());
                let is_there =
                    slot.is_some_and(|slot| store.queues.at(slot).index.counts.ready > 0);
                if is_there || !only_existing {
                    let amounts = elements.iter().map(|element| Amount::one(element.len()));
                    amounts.for_each(|amount| self.add_named(queue, amount, demand, store, log));
                }
            }
            ListCommand::Insert { queue, element, .. } => {
                self.add_named(queue, Amount::one(element.len()), demand, store, log);
            }
            ListCommand::Replace { queue, element, .. } => {
                let amount = Amount { messages: 0, ..Amount::one(element.len()) };
                self.add_named(queue, amount, demand, store, log);
            }
            ListCommand::Move { from, from_end, to, .. } if from != to => {
                if let Some(bytes) = store.outermost_bytes(from, *from_end) {
                    self.add_named(to, Amount { messages: 1, bytes }, demand, store, log);
                }
            }
            _ => {}
        }
    }

    fn add_named<'c>(
        &self,
        name: &'c QueueName,
        amount: Amount,
        demand: &mut Demand<'c>,
        store: &MessageStore,
        log: &Log,
    ) {
        match store.queues.find(name.as_str()) {
            Some(slot) => store.add_stored(slot, amount, demand, log),
            None => {
                let bounds = self.policy_for(name).bounds.of_queue();
                demand.add(Site::New(name), amount, &bounds, false);
            }
        }
    }
}

impl MessageStore {
    /// The bound that is in the way, and whether that may pass.
    fn bound_of(
        &self,
        queue: &Queue,
        amount: Amount,
        settled: Amount,
        ticket: u64,
    ) -> Option<(Bound, bool)> {
        let bounds = &queue.policy.bounds;
        let waited_for = || queue.is_waited_for(ticket).then(|| queue.bound_of_line()).flatten();
        if queue.is_leaving() {
            return waited_for().map(|bound| (bound, true));
        }
        // What sheds makes a place for what it ever takes, whatever is settled with it.
        let settled = if bounds.holds_off() { settled } else { Amount::default() };
        if let Some(bound) = amount.without(settled).exceeds(bounds) {
            return Some((bound, false));
        }
        // But nobody overtakes those who waited before it did.
        if !bounds.holds_off() {
            return waited_for().map(|bound| (bound, true));
        }
        let exceeded = queue.held().without(settled).and(amount).exceeds(bounds);
        let is_slow = || self.is_behind(queue).then_some(bounds.target_age).flatten();
        let bound = exceeded.or_else(|| is_slow().map(Bound::Age)).or_else(waited_for)?;
        Some((bound, bounds.when_full == WhenFull::Pace))
    }

    /// Of the body of the message at an end of a list.
    fn outermost_bytes(&self, name: &QueueName, end: End) -> Option<u64> {
        let slot = self.queues.find(name.as_str())?;
        let (_, order) = self.queues.at(slot).delivery.dispatch.ready().at_end(end)?;
        Some(self.living(self.message_of(order)).body_bytes())
    }

    /// Whether a queue has no place for so much, and what would have to become a dead letter stays,
    /// for that takes more room than it frees.
    fn shortage_of_room_to_park(&self, slot: QueueSlot, amount: Amount, log: &Log) -> bool {
        let queue = self.queues.at(slot);
        let is_beyond = queue.held().and(amount).exceeds(&queue.policy.bounds).is_some();
        let least = self.least_needed(queue).filter(|_| is_beyond);
        least.is_some_and(|id| log.stays_for_now(queue, self.living(id)))
    }

    fn add_stored(&self, slot: QueueSlot, amount: Amount, demand: &mut Demand<'_>, log: &Log) {
        let queue = self.queues.at(slot);
        let is_awaited = !queue.admission.line.tickets.is_empty();
        if log.is_scarce() && queue.parks() {
            demand.park(slot, amount);
        }
        demand.add(Site::There(slot), amount, &queue.policy.bounds, is_awaited);
    }
}
