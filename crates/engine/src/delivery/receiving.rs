//! Consumers: the queues they watch, how they wait, and how a message is leased to them.
//!
//! A consumer waits only while none of its watched queues could serve it. So whenever a queue gets
//! a ready message, loses its pause or gains a waiting consumer, it is enough to serve this queue.
//!
//! A receive looks at each watched queue's first message, and one that waits is entered in each:
//! the cost grows with the queues that the one consumer watches, with nothing else.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{DependsOn, LinkId, MessageId, Nanos, QueueName, Refusal, Reply, Settlement, limits};

use crate::Effects;
use crate::delivery::View;
use crate::directory::Directory;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::{Sessions, Wait};
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// The terms of a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// How long it waits.
    pub(crate) wait: Option<Nanos>,
    /// How long before the session's first lease ends it is given up.
    pub(crate) margin: Nanos,
    /// How long the message is leased; `None`: as long as that says.
    pub(crate) lease: Option<Nanos>,
}

impl Directory {
    pub(crate) fn watch(
        &self,
        by: SessionSlot,
        link: LinkId,
        name: QueueName,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        if sessions.credit_consumer(key).is_some() {
            return Outcome::refused(Refusal::LinkInUse);
        }
        let watched = sessions.consumer(key).map_or(0, |consumer| consumer.watched().len());
        let known = store.queues.find(name.as_str());
        if known.is_some_and(|slot| sessions.watches(key, slot)) {
            return Outcome::reply(DependsOn::NOTHING, Reply::Done);
        }
        if watched >= limits::CONSUMER_QUEUES_MAX {
            return Outcome::refused(Refusal::TooManyWatched);
        }
        let slot = match self.queue_to_consume(by, name, store) {
            Ok(slot) => slot,
            Err(refusal) => return Outcome::refused(refusal),
        };
        let wait = sessions.at_mut(by).watch(link, slot);
        store.queues.at_mut(slot).delivery.consumers.insert(key);
        if let Some(wait) = wait {
            sessions.wait_at(slot, wait.ticket(), key, store);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done).waking(slot)
    }

    pub(crate) fn unwatch(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        name: QueueName,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        if let Some(slot) = store.queues.find(name.as_str())
            && let Some(consumer) = sessions.consumer_mut(key)
            && consumer.unwatch(slot)
        {
            let ticket = consumer.wait().map(|wait| wait.ticket());
            store.end_watch(key, slot, ticket);
            self.remove_if_idle(slot, sessions, store);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// Ends all waits of a session without an answer.
    pub(crate) fn stop_waits(
        &mut self,
        slot: SessionSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        let consumers = sessions.at(slot).consumers().iter();
        let waiting = consumers.filter(|(_, consumer)| consumer.wait().is_some());
        let waiting: Vec<LinkId> = waiting.map(|(link, _)| *link).collect();
        for link in waiting {
            let key = ConsumerKey { session: slot, link };
            if self.end_popping(key, sessions, store).is_none() {
                sessions.end_wait(key, store);
            }
        }
    }

    /// Closes a session's producers and consumers; says which queues may now be idle.
    pub(crate) fn close_links(
        &mut self,
        slot: SessionSlot,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> BTreeSet<QueueSlot> {
        let mut touched = BTreeSet::new();
        self.stop_waits(slot, sessions, store);
        let (producers, consumers) = sessions.at_mut(slot).take_links();
        let closed = producers.len();
        for target in producers.into_values() {
            self.end_producer(target, sessions, store);
        }
        for link in sessions.at(slot).credit_consumers().keys().copied().collect::<Vec<_>>() {
            touched
                .extend(sessions.close_credit_consumer(ConsumerKey { session: slot, link }, store));
        }
        for (link, consumer) in consumers {
            for queue in consumer.into_watched() {
                store.end_watch(ConsumerKey { session: slot, link }, queue, None);
                touched.insert(queue);
            }
        }
        store.took_steps(closed + touched.len());
        touched
    }
}

impl Sessions {
    pub(crate) fn cancel_receive(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        if self.end_wait(ConsumerKey { session: by, link }, store) {
            return Outcome::reply(log.after_all(), Reply::TimedOut { link: Some(link) });
        }
        Outcome::NOTHING
    }

    /// Ends a wait with this reply. A change that is not durable yet may have emptied the queue. A
    /// client that takes an empty queue for a finished one must not see a state that a crash
    /// undoes.
    pub(crate) fn give_up(
        &mut self,
        key: ConsumerKey,
        reply: Reply,
        store: &mut MessageStore,
        log: &FrameWriter,
        effects: &mut Effects,
    ) {
        let was_waiting = self.end_wait(key, store);
        assert!(was_waiting, "only who waits gives up");
        effects.reply(self.at(key.session).id(), log.after_all(), reply);
    }

    /// A session asks for nothing more, and its leases are due.
    pub(crate) fn begin_return(
        &mut self,
        slot: SessionSlot,
        held: Settlement,
        store: &mut MessageStore,
    ) {
        let before = self.at(slot).first_lease();
        self.begin_close(slot, held);
        store.timers.change(Timer::Lease(slot), before, self.at(slot).first_lease());
    }

    /// Forgets a closing session that holds nothing any more.
    pub(crate) fn end_close(&mut self, slot: SessionSlot) {
        if self.at(slot).holds_nothing() {
            self.close(slot);
        }
    }

    fn watches(&self, key: ConsumerKey, slot: QueueSlot) -> bool {
        self.consumer(key).is_some_and(|consumer| consumer.watched().contains(&slot))
    }

    pub(crate) fn begin_wait(
        &mut self,
        key: ConsumerKey,
        wanted: Wanted,
        store: &mut MessageStore,
    ) {
        let Wanted { wait, margin, lease } = wanted;
        let ticket = store.ticket();
        let until = wait.map(|span| store.latest + span);
        let session = self.at_mut(key.session);
        session.begin_wait(key.link, Wait::new(ticket, until, margin, lease));
        let margin_begins = session.margin_begins(key.link, session.first_lease());
        let watched = session.lend_watched(key.link);
        store.took_steps(watched.len());
        for slot in &watched {
            self.wait_at(*slot, ticket, key, store);
        }
        self.at_mut(key.session).return_watched(key.link, watched);
        store.timers.change(Timer::Wait(key), None, until);
        store.timers.change(Timer::Margin(key), None, margin_begins);
        store.count_waiting();
    }

    fn wait_at(
        &mut self,
        slot: QueueSlot,
        ticket: u64,
        key: ConsumerKey,
        store: &mut MessageStore,
    ) {
        self.seat_lone(slot, store);
        store.queues.at_mut(slot).delivery.dispatch.wait(ticket, key);
    }

    /// False when it did not wait.
    pub(crate) fn end_wait(&mut self, key: ConsumerKey, store: &mut MessageStore) -> bool {
        if self.consumer(key).is_none_or(|consumer| consumer.wait().is_none()) {
            return false;
        }
        let session = self.at_mut(key.session);
        let margin_begins = session.margin_begins(key.link, session.first_lease());
        let (wait, watched) = session.end_wait(key.link);
        for &queue in watched {
            let dispatch = &mut store.queues.at_mut(queue).delivery.dispatch;
            let was_in_list = dispatch.stop_waiting(wait.ticket());
            assert!(was_in_list, "a waiting consumer is in each of its lists");
        }
        store.took_steps(watched.len());
        store.timers.change(Timer::Wait(key), wait.until(), None);
        store.timers.change(Timer::Margin(key), margin_begins, None);
        store.uncount_waiting();
        true
    }

    /// True if a message may be there for the consumer although none seems to be.
    pub(crate) fn is_unsure(&self, key: ConsumerKey, store: &MessageStore) -> bool {
        let Some(consumer) = self.consumer(key) else { return false };
        let mut queues = consumer.watched().iter().map(|slot| store.queues.at(*slot));
        queues.any(|queue| queue.delivery.pause.is_none() && queue.is_expiring(store.latest))
    }

    /// The next message of all that a consumer watches.
    pub(crate) fn most_urgent(&self, key: ConsumerKey, store: &MessageStore) -> Option<MessageId> {
        let watched = self.consumer(key)?.watched();
        let (_, order) = watched
            .iter()
            .filter_map(|slot| store.queues.at(*slot).next_ready(store.latest))
            .min()?;
        Some(store.message_of(order))
    }

    pub(crate) fn lease_ends_within(
        &self,
        holder: SessionSlot,
        margin: Nanos,
        store: &MessageStore,
    ) -> bool {
        let first = self.at(holder).first_lease();
        margin != Nanos::ZERO && first.is_some_and(|until| until <= store.latest + margin)
    }
}

impl MessageStore {
    /// True if a queue has no consumers, and there are no bounds to see to: there is nothing to
    /// serve.
    pub(crate) fn is_unattended(&self, slot: QueueSlot) -> bool {
        !self.is_bounded()
            && self.queues.get(slot).is_none_or(|queue| queue.delivery.consumers.is_empty())
    }

    /// Takes a consumer, and its place if it waits, from a queue.
    pub(crate) fn end_watch(&mut self, key: ConsumerKey, slot: QueueSlot, ticket: Option<u64>) {
        let queue = self.queues.at_mut(slot);
        let was_known = queue.delivery.consumers.remove(&key);
        assert!(was_known, "a queue knows its consumers");
        if let Some(ticket) = ticket {
            let was_in_list = queue.delivery.dispatch.stop_waiting(ticket);
            assert!(was_in_list, "a waiting consumer is in each of its lists");
        }
        self.may_have_caught_up(slot);
    }

    /// The next message of a queue and the consumer that gets it.
    pub(crate) fn next_match(&self, slot: QueueSlot) -> Option<(ConsumerKey, MessageId)> {
        let queue = self.queues.get(slot)?;
        if queue.is_held_up(self.latest) {
            return None;
        }
        let choosy = queue.delivery.views.values().filter_map(View::next);
        let first =
            choosy.chain(queue.delivery.dispatch.next()).min_by_key(|(ticket, _, _)| *ticket);
        let (_, key, (_, order)) = first?;
        Some((key, self.message_of(order)))
    }
}
