//! The places of bounded queues: a command is held against them before it stores anything, so that
//! a refused command leaves nothing behind.
//!
//! A command is counted as a whole: a transaction without the messages that it accepts in the same
//! queue, a batch without the messages that it takes. A command that takes no message from a
//! sender, such as a rename, is not counted. Messages that the broker moves by itself are not
//! counted either. A subscription to a pattern blocks no sends.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use model::{Bound, End, QueueBounds, QueueFull, QueueName, Refusal, WhenFull};

use crate::admission::{Shortage, WaitListId};
use crate::demand::ElementRule;
use crate::directory::Directory;
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::queue::Queue;

/// Messages, and bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// A queue, or one that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site<'c> {
    There(QueueSlot),
    New(&'c QueueName),
}

/// The amounts that a command stores in queues that hold senders off; other queues are left out.
#[derive(Debug, Default)]
pub(crate) struct PlaceDemand<'c> {
    pub(crate) stored: BTreeMap<Site<'c>, Amount>,
    /// Amounts that leave with it.
    pub(crate) settled: BTreeMap<QueueSlot, Amount>,
    /// Amounts for queues that move messages to the dead letters to make room for it, on a full
    /// device.
    parking: BTreeMap<QueueSlot, Amount>,
    /// Steps that it took to find that out.
    pub(crate) steps: usize,
}

impl Amount {
    pub(crate) fn one(bytes: usize) -> Self {
        Self { messages: 1, bytes: bytes as u64 }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    pub(crate) fn without(self, other: Self) -> Self {
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

impl<'c> PlaceDemand<'c> {
    pub(crate) fn is_empty(&self) -> bool {
        self.stored.is_empty() && self.parking.is_empty()
    }

    /// The same for a queue in which a message without a place becomes a dead letter.
    pub(crate) fn park(&mut self, slot: QueueSlot, amount: Amount) {
        let parking = self.parking.entry(slot).or_default();
        *parking = parking.and(amount);
    }

    /// In a queue that sheds messages without a place, only messages count that can never have one,
    /// or a place that others still wait for.
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
        Amount { messages: self.counts().sum(), bytes: self.body_bytes() }
    }
}

impl Directory {
    /// The first queue without a place for the messages that a send with this ticket stores. A
    /// queue that refuses outright goes before one that makes senders wait: then there is nothing
    /// to wait for in others either.
    pub(crate) fn shortage_of_place(
        &self,
        demand: &PlaceDemand<'_>,
        ticket: u64,
        store: &MessageStore,
        log: &FrameWriter,
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

    /// Elements for a list, unless the list has to be there and is not.
    pub(crate) fn add_elements<'c>(
        &self,
        queue: &'c QueueName,
        elements: &[Arc<[u8]>],
        rule: ElementRule,
        demand: &mut PlaceDemand<'c>,
        store: &MessageStore,
        log: &FrameWriter,
    ) {
        if rule == ElementRule::OnlyExisting && store.ready_of(queue) == 0 {
            return;
        }
        let messages = u64::from(rule != ElementRule::Instead);
        for element in elements {
            let amount = Amount { messages, bytes: element.len() as u64 };
            self.add_named(queue, amount, demand, store, log);
        }
    }

    pub(crate) fn add_named<'c>(
        &self,
        name: &'c QueueName,
        amount: Amount,
        demand: &mut PlaceDemand<'c>,
        store: &MessageStore,
        log: &FrameWriter,
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
        // A shedding queue makes a place for any message that it ever takes, so settled amounts do
        // not count.
        let settled = if bounds.holds_off() { settled } else { Amount::default() };
        if let Some(bound) = amount.without(settled).exceeds(bounds) {
            return Some((bound, false));
        }
        // But the send does not overtake sends that waited before the queue began to shed.
        if !bounds.holds_off() {
            return waited_for().map(|bound| (bound, true));
        }
        let exceeded = queue.held().without(settled).and(amount).exceeds(bounds);
        let is_slow = || self.is_behind(queue).then_some(bounds.target_age).flatten();
        let bound = exceeded.or_else(|| is_slow().map(Bound::Age)).or_else(waited_for)?;
        Some((bound, bounds.when_full == WhenFull::Block))
    }

    /// Of the body of the message at an end of a list.
    pub(crate) fn outermost_bytes(&self, name: &QueueName, end: End) -> Option<u64> {
        let slot = self.queues.find(name.as_str())?;
        let (_, order) = self.queues.at(slot).delivery.dispatch.ready().at_end(end)?;
        Some(self.message(self.message_of(order)).body_bytes())
    }

    /// True if a queue has no place for so much and cannot make one. The message that would become
    /// a dead letter stays, since moving it takes more room than it frees.
    fn shortage_of_room_to_park(&self, slot: QueueSlot, amount: Amount, log: &FrameWriter) -> bool {
        let queue = self.queues.at(slot);
        let is_beyond = queue.held().and(amount).exceeds(&queue.policy.bounds).is_some();
        let least = self.least_needed(queue).filter(|_| is_beyond);
        least.is_some_and(|id| log.stays_for_now(queue, self.message(id)))
    }

    pub(crate) fn add_stored(
        &self,
        slot: QueueSlot,
        amount: Amount,
        demand: &mut PlaceDemand<'_>,
        log: &FrameWriter,
    ) {
        let queue = self.queues.at(slot);
        let is_awaited = !queue.admission.line.tickets.is_empty();
        if log.is_scarce() && queue.parks() {
            demand.park(slot, amount);
        }
        demand.add(Site::There(slot), amount, &queue.policy.bounds, is_awaited);
    }
}
