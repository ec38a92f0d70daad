//! Queues that are gone: deleted temporary ones, and those of subscriptions that ended.
//!
//! No command finds such a queue. Its messages are forgotten in steps, one each time its timer
//! fires: so the end of a queue with a million messages stalls no other client. A message that a
//! session holds stays held and goes when it comes back. None of this is journalled: memory-only
//! messages never are, and those of a durable subscription went with its Unsubscribed record.

use alloc::boxed::Box;

use model::{DependsOn, MessageId, QueueFull, Reply};

use crate::Effects;
use crate::directory::Directory;
use crate::ids::{ConsumerKey, QueueSlot};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::message::{Message, State};
use crate::store::queue::Role;
use crate::store::timers::Timer;

impl MessageStore {
    /// Its deletion was journalled as the end of a subscription.
    pub(crate) fn went_with_subscription(&self, id: MessageId) -> bool {
        let message = self.message(id);
        message.is_journalled() && self.queues.at(message.queue()).is_leaving()
    }

    /// True if it was in a list that is over, and is about to be deleted.
    pub(crate) fn is_expired_member(&self, id: MessageId) -> bool {
        let message = self.message(id);
        let queue = self.queues.at(message.queue());
        message.state() == State::Ready
            && queue.is_expired_member(message.priority(), message.order(id))
    }

    /// True if it was in a list that is over, be that noticed or not.
    pub(crate) fn is_of_list_over(&self, id: MessageId) -> bool {
        let message = self.message(id);
        let is_ended = self.queues.at(message.queue()).is_ended(self.latest);
        (is_ended && message.state() == State::Ready) || self.is_expired_member(id)
    }

    /// Finds a message by its number, unless its queue or its list is gone.
    pub(crate) fn find(&self, id: MessageId) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        let is_gone = self.is_of_list_over(id);
        (!is_gone && !self.queues.at(message.queue()).is_leaving()).then_some(message)
    }

    /// Finds a message to change by its number, if its queue is not gone. Messages of subscriptions
    /// belong to their consumers alone, and are not found.
    pub(crate) fn reach(&self, id: MessageId) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        match self.queues.at(message.queue()).role {
            Role::Named | Role::Temporary(_) => Some(message),
            Role::Subscription { .. } | Role::Leaving => None,
        }
    }
}

impl Sessions {
    /// A queue loses its consumers. Those that were opened for it hear of it, and why if the
    /// messages that they left unread are the reason.
    pub(crate) fn dismiss_consumers(
        &mut self,
        slot: QueueSlot,
        full: Option<&QueueFull>,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) {
        let consumers = store.queues.at(slot).delivery.consumers.clone();
        store.took_steps(consumers.len());
        for key in consumers {
            self.orphan_queue(key, slot, full, store, effects);
        }
        let is_orphan = store.queues.at(slot).delivery.consumers.is_empty();
        assert!(is_orphan, "no consumer is left at a queue that was dismissed");
    }

    fn orphan_queue(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        full: Option<&QueueFull>,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) {
        if self.close_credit_consumer(key, store).is_some() {
            let (link, full) = (key.link, full.cloned().map(Box::new));
            let reply = match full {
                Some(full) => Reply::ConsumerCutOff { link, full },
                None => Reply::ConsumerClosed { link },
            };
            effects.reply(self.at(key.session).id(), DependsOn::NOTHING, reply);
            return;
        }
        let Some(consumer) = self.consumer_mut(key) else { return };
        let was_watched = consumer.unwatch(slot);
        assert!(was_watched, "a consumer knows the queues that it watches");
        let ticket = consumer.wait().map(|wait| wait.ticket());
        store.end_watch(key, slot, ticket);
    }
}

impl Directory {
    /// Begins the end of a queue that no consumer consumes from.
    pub(crate) fn begin_leaving(
        &mut self,
        slot: QueueSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        assert!(store.queues.at(slot).role != Role::Named, "a queue that leaves is no list");
        store.queues.begin_leaving(slot);
        store.let_leaving_go_on(slot);
        let forgets_at = store.queues.at(slot).forgets_at();
        store.timers.change(Timer::Forget(slot), None, forgets_at);
        self.remove_if_idle(slot, sessions, store);
    }
}
