//! Queues that are gone: deleted temporary ones, and those of subscriptions that ended.
//!
//! Nobody finds such a queue, and what it holds is forgotten in steps, a message each time its
//! timer fires: so the end of a queue with a million messages stalls nobody. What a session holds
//! stays held and goes when it comes back. None of this is journalled: memory-only messages never
//! are, and those of a durable subscription went with its Unsubscribed record.

use alloc::boxed::Box;
use alloc::sync::Arc;

use model::{DependsOn, Durability, Lsn, MessageId, QueueFull, Reply};

use crate::Effects;
use crate::engine::{Admission, Engine, MessageStore};
use crate::log::Placed;
use crate::message::{Message, State, Stored};
use crate::queue::{QueueSlot, Role};
use crate::session::{ConsumerKey, Sessions};
use crate::timers::Timer;

impl Engine {
    /// A queue loses its consumers. Those that were opened for it hear of it.
    pub(crate) fn dismiss_consumers(&mut self, slot: QueueSlot, effects: &mut Effects) {
        self.dismiss_consumers_for(slot, None, effects);
    }

    /// The same, and why, where it is for what they left unread.
    pub(crate) fn dismiss_consumers_for(
        &mut self,
        slot: QueueSlot,
        full: Option<&QueueFull>,
        effects: &mut Effects,
    ) {
        let consumers = self.store.queues.at(slot).delivery.consumers.clone();
        self.store.took_steps(consumers.len());
        for key in consumers {
            self.admission.orphan_queue(
                key,
                slot,
                full,
                &mut self.sessions,
                &mut self.store,
                effects,
            );
        }
        assert!(
            self.store.queues.at(slot).delivery.consumers.is_empty(),
            "nobody consumes from it any more"
        );
    }

    /// Begins the end of a queue that nobody consumes from.
    pub(crate) fn begin_leaving(&mut self, slot: QueueSlot) {
        if self.store.queues.at(slot).is_list() {
            self.keyspace.list_ended(slot, &mut self.store);
        }
        self.store.queues.begin_leaving(slot);
        if !self.store.queues.at(slot).admission.line.tickets.is_empty() {
            self.admission.pacing.leaving.insert(slot);
        }
        self.admission.made_place(slot, &mut self.store);
        let forgets_at = self.store.queues.at(slot).forgets_at();
        self.store.timers.change(Timer::Forget(slot), None, forgets_at);
        self.remove_if_idle(slot);
    }

    /// Forgets a message of a queue that is leaving, or of a list that is over, by time.
    pub(crate) fn forget_next(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let queue = self.store.queues.at(slot);
        if let Some((_, order)) = queue.index.doomed.first() {
            let id = self.store.message_of(order);
            self.leave(id);
            self.finish(id, effects);
            return;
        }
        let ready =
            queue.delivery.dispatch.ready().first().map(|(_, order)| self.store.message_of(order));
        let delayed = || queue.index.delayed.first().map(|(_, id)| *id);
        let buried = || queue.index.buried.first_key_value().map(|(_, id)| *id);
        let id = ready.or_else(delayed).or_else(buried);
        let id = id.expect("invariant: the timer is set while there is something to forget");
        self.leave(id);
        let message = self.admission.take(id, &mut self.bodies, &mut self.store);
        self.bodies.groups.release(&message, effects);
        self.remove_if_idle(slot);
    }

    /// A message that is about to be forgotten lets go of its place in the log.
    pub(crate) fn forget_record(&mut self, id: MessageId, effects: &mut Effects) {
        let bytes = self.store.snapshot_bytes_of(self.store.living(id));
        self.store.totals.snapshot_bytes -= bytes;
        let Some(mut message) = self.store.messages.remove(id.0) else { return };
        assert!(self.store.queues.at(message.queue).is_leaving(), "what stays keeps its record");
        self.bodies.groups.release(&message, effects);
        self.bodies.unaccount(id, &message, &mut self.store);
        let shared = message.shared();
        message.set_placed(0, Placed { lsn: Lsn::ZERO, bytes: 0 });
        message.durability = Durability::None;
        if message.body.here().is_none() {
            // Nobody will be given it.
            self.store.queues.at_mut(message.queue).bodies.body_bytes -= message.body_bytes();
            message.body = Stored::Here(Arc::default());
        }
        match shared {
            Some(name) => self.bodies.separate(name, &mut message, Arc::default(), &mut self.store),
            None => self.bodies.account(id, &message, &mut self.store),
        }
        self.store.messages.insert(id.0, message);
    }
}

impl MessageStore {
    /// Its deletion was journalled as the end of a subscription.
    pub(crate) fn went_with_subscription(&self, id: MessageId) -> bool {
        let message = self.living(id);
        message.is_journalled() && self.queues.at(message.queue).is_leaving()
    }

    /// Whether it was in a list that is over, and is about to be deleted.
    pub(crate) fn is_doomed(&self, id: MessageId) -> bool {
        let message = self.living(id);
        let queue = self.queues.at(message.queue);
        message.state() == State::Ready && queue.is_doomed(message.priority, message.order(id))
    }

    /// Whether it was in a list that is over, be that noticed or not.
    pub(crate) fn is_of_list_over(&self, id: MessageId) -> bool {
        let message = self.living(id);
        let is_ended = self.queues.at(message.queue).is_ended(self.latest);
        (is_ended && message.state() == State::Ready) || self.is_doomed(id)
    }

    /// Whoever looks by its number finds a message unless its queue is gone, or its list.
    pub(crate) fn find(&self, id: MessageId) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        let is_gone = self.is_of_list_over(id);
        (!is_gone && !self.queues.at(message.queue).is_leaving()).then_some(message)
    }

    /// Whoever changes something by its number reaches a message of a queue that is not gone. What
    /// a subscription holds is its consumers' alone.
    pub(crate) fn reach(&self, id: MessageId) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        match self.queues.at(message.queue).role {
            Role::Named | Role::Temporary(_) => Some(message),
            Role::Subscription { .. } | Role::Leaving => None,
        }
    }
}

impl Admission {
    fn orphan_queue(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        full: Option<&QueueFull>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) {
        if self.close_feed(key, sessions, store).is_some() {
            let (link, full) = (key.link, full.cloned().map(Box::new));
            let reply = match full {
                Some(full) => Reply::ConsumerCutOff { link, full },
                None => Reply::ConsumerClosed { link },
            };
            effects.reply(sessions.at(key.session).identity.id, DependsOn::NOTHING, reply);
            return;
        }
        let Some(consumer) = sessions.consumer_mut(key) else { return };
        consumer.watched.remove(&slot);
        let ticket = consumer.wait.map(|wait| wait.ticket);
        self.end_watch(key, slot, ticket, store);
    }
}
