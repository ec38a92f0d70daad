//! The queues and places of messages that recovery restores.

use alloc::vec::Vec;
use core::ops::Bound;

use model::{Matching, MessageId, Subscription};
use records::{
    Place, RecordError, Standing, StoredState, SubscriptionView, encode, place_of, queue_name,
};
use selector::Selector;

use crate::QueuePolicy;
use crate::bodies::Bodies;
use crate::directory::{Directory, Entry, Source};
use crate::ids::QueueSlot;
use crate::recovery::Recovery;
use crate::store::MessageStore;

impl Bodies {
    /// The record that a snapshot names does not hold all that the snapshot holds. The snapshot
    /// does not name the queue of that record either: a moved message has a place of its own.
    pub(crate) fn grow_as_pictured(&mut self, id: MessageId, store: &mut MessageStore) {
        let message = store.message_mut(id);
        if message.order(id) != place_of(id) {
            message.mark_moved();
        }
        let message = store.message(id);
        if message.has_history() {
            let mut change = Vec::new();
            encode(&store.queues.change_of(id, message), &mut change);
            self.note_growth(id, u32::try_from(change.len()).unwrap_or(u32::MAX), store);
        }
    }
}

impl MessageStore {
    /// All messages of a queue in recovery, when no session holds any.
    pub(crate) fn messages_of(&self, slot: QueueSlot) -> Vec<MessageId> {
        let queue = self.queues.at(slot);
        let ready = queue.delivery.dispatch.ready().iter().map(|(_, order)| self.message_of(order));
        let delayed = queue.delayed_after(Bound::Unbounded).map(|(_, id)| id);
        let buried = queue.buried_after(Bound::Unbounded).map(|(_, id)| id);
        ready.chain(delayed).chain(buried).collect()
    }

    /// A damaged record must not take a place that another message has.
    pub(crate) fn check_places(
        &self,
        id: MessageId,
        slot: QueueSlot,
        standing: &Standing<'_>,
    ) -> Result<(), RecordError> {
        let order = standing.order;
        let of_another = order != place_of(id) && self.messages.get(order as u64).is_some();
        if of_another || self.has_reordered(order) {
            return Err(RecordError::DuplicateOrder(order));
        }
        // Places and numbers come of one counter: its own is no other's, wherever it stands.
        if self.has_reordered(place_of(id)) {
            return Err(RecordError::DuplicateOrder(place_of(id)));
        }
        match standing.state {
            StoredState::Buried { order } if self.queues.at(slot).has_buried(order) => {
                Err(RecordError::DuplicateOrder(order as i64))
            }
            _ => Ok(()),
        }
    }
}

impl Recovery {
    /// The queue of a subscription. The snapshot may have found it gone while frames from before
    /// its end are still to come. One of its messages may have been moved elsewhere and live: then
    /// a phantom stands in until the record of its end.
    fn recovered_subscription(
        &mut self,
        number: u64,
        fuzzy: bool,
        directory: &Directory,
        store: &mut MessageStore,
    ) -> Result<QueueSlot, RecordError> {
        if let Some(entry) = directory.subscriptions().get(number) {
            return Ok(entry.queue());
        }
        if let Some(slot) = self.pending_unsubscribes.get(&number) {
            return Ok(*slot);
        }
        if !fuzzy {
            return Err(RecordError::UnknownSubscription(number));
        }
        let name = queue_name(PENDING_UNSUBSCRIBE)?;
        let slot = store.queues.create_subscription(name, number, true, QueuePolicy::default());
        self.pending_unsubscribes.insert(number, slot);
        Ok(slot)
    }

    pub(crate) fn recovered_place(
        &mut self,
        place: Place<'_>,
        fuzzy: bool,
        directory: &Directory,
        store: &mut MessageStore,
    ) -> Result<QueueSlot, RecordError> {
        match place {
            Place::Queue(name) => directory.recovered_queue(name, store),
            Place::Subscription(number) => {
                self.recovered_subscription(number, fuzzy, directory, store)
            }
        }
    }
}

impl Directory {
    fn recovered_queue(
        &self,
        name: &str,
        store: &mut MessageStore,
    ) -> Result<QueueSlot, RecordError> {
        if let Some(slot) = store.queues.find(name) {
            return Ok(slot);
        }
        let name = queue_name(name)?;
        let policy = self.policy_for(&name);
        Ok(store.queues.create(name, policy))
    }

    pub(crate) fn replay_subscribed(
        &mut self,
        view: &SubscriptionView<'_>,
        size: usize,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let asks = view.subscription()?;
        let known = asks.name.as_ref().and_then(|name| self.subscriptions().find(name));
        let there = self.subscriptions().get(view.number).map(Entry::asks);
        if let Some(there) = there
            && *there == (Subscription { expiry: there.expiry, ..(*asks).clone() })
        {
            self.restate(view.number, asks, size as u64, store);
            return Ok(());
        }
        if known.is_some() || there.is_some() {
            return Err(RecordError::DuplicateSubscription(view.number));
        }
        let selector = asks.selector.as_deref().map(Selector::parse_stored).transpose();
        let selector = selector.map_err(|_| RecordError::Invalid("selector"))?;
        let source = match asks.matching {
            Matching::Name => Source::Topic(self.topics_mut().find_or_create(&asks.topic)),
            matching => Source::of_pattern(matching),
        };
        self.register(view.number, asks, selector, source, size as u64, store);
        Ok(())
    }
}

/// Stands for the topic of a subscription that is known to have gone.
const PENDING_UNSUBSCRIBE: &str = "gone";
