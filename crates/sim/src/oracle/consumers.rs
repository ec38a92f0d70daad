//! Consumers with credit: the messages that each may get, and those that it must get.

use std::rc::Rc;

use model::{Delivery, Nanos};

use super::groups::Taker;
use super::{Message, NOTHING, Oracle, Place};
use crate::Content;
use crate::history::{Changes, DEAD_LETTERS, Dead};

/// A consumer with credit.
#[derive(Clone, Debug)]
pub(super) struct Consumer {
    /// The queue, or that of the subscription.
    pub(super) queue: Rc<str>,
    /// Messages that it may have had since it was opened.
    limit: u64,
    /// Messages that it has had.
    delivered: u64,
    /// It is to be told when there is nothing more.
    drains: bool,
}

impl Consumer {
    pub(super) const fn new(queue: Rc<str>) -> Self {
        Self { queue, limit: 0, delivered: 0, drains: false }
    }
}

impl Oracle {
    /// A message went to a consumer with credit. Returns the changes that this reflects.
    ///
    /// # Panics
    /// When it must not go there.
    pub fn delivered(&mut self, now: Nanos, client: u64, delivery: &Delivery) -> Changes {
        self.pass(now);
        let (id, link) = (delivery.message.0, delivery.link.expect("a consumer of AMQP is a link"));
        let consumer = self.consumers.get_mut(&(client, link.0));
        let consumer = consumer.unwrap_or_else(|| panic!("{client} has no consumer {link:?}"));
        consumer.delivered += 1;
        assert!(consumer.delivered <= consumer.limit, "{client} has no credit left: {consumer:?}");
        let queue = consumer.queue.clone();
        let taker = Taker::Consumer(client, link.0);
        let best = self.first_waiting(&queue, taker, now);
        let message = self.messages.get(&id).unwrap_or_else(|| panic!("{id} does not exist"));
        let Message { content, place, nature, .. } = message;
        assert!(matches!(place, Place::Ready(_)), "{id} went to {client}, but is {place:?}");
        assert_eq!(content.queue, queue, "{id} went to {client}, who consumes from elsewhere");
        let rank = (content.priority, nature.order);
        assert!(best.is_none_or(|best| rank <= best), "{rank:?} was delivered before {best:?}");
        let until = self.paused.get(&queue).copied().unwrap_or_default();
        assert!(until <= now, "{id} left a queue that is paused until {until}");
        assert_eq!(delivery.payload(), &content.body[..], "the body of {id}");
        assert_eq!(delivery.priority, content.priority, "{id}");
        assert_eq!(
            (delivery.expires, delivery.durability),
            (content.expires, nature.level),
            "{id}"
        );
        let seen = (delivery.failed, delivery.dead.as_deref().map(Dead::from));
        self.learn_failures(id, seen);
        self.own_group(now, id, client, link.0);
        let message = self.message(id);
        (message.place, message.was_taken) = (Place::Held(client), Some(true));
        self.shown(id)
    }

    /// A delivery shows how many have failed.
    fn learn_failures(&mut self, id: u64, (failed, dead): (u32, Option<Dead>)) {
        let Message { content, slack, .. } = self.message(id);
        let before = content.clone();
        let seen = Content { failed, dead, ..before.clone() };
        assert!(before.may_be(&seen, *slack), "{id}: {seen:?} instead of {before:?} +{slack}");
        (content.failed, content.dead, *slack) = (seen.failed, seen.dead, 0);
    }

    /// The engine told a consumer that drains that nothing more is there. Returns the changes that
    /// this reflects.
    ///
    /// # Panics
    /// When there is something.
    pub fn drained(&mut self, now: Nanos, client: u64, link: u32, delivered: u64) -> Changes {
        self.pass(now);
        let consumer = self.consumers.get_mut(&(client, link)).expect("a drain is of a consumer");
        assert!(consumer.drains, "{client} drains");
        assert_eq!(consumer.delivered, delivered, "what {client} got");
        let has_credit = consumer.delivered < consumer.limit;
        (consumer.drains, consumer.limit) = (false, delivered);
        let queue = consumer.queue.clone();
        if has_credit {
            let first = self.first_waiting(&queue, Taker::Consumer(client, link), now);
            assert_eq!(first, None, "{client} drained {queue}");
        }
        self.everything()
    }

    pub(super) fn credit(&mut self, client: u64, link: u32, limit: u64, drain: bool) -> Changes {
        if let Some(consumer) = self.consumers.get_mut(&(client, link)) {
            consumer.limit = limit.max(consumer.delivered);
            consumer.drains = drain;
        }
        NOTHING
    }

    pub(super) fn close_consumer(&mut self, client: u64, link: u32) -> Changes {
        if let Some(consumer) = self.consumers.remove(&(client, link)) {
            self.release_groups(client, link, &consumer.queue);
            self.end_if_unused(&consumer.queue);
        }
        NOTHING
    }

    pub(super) fn close_consumers(&mut self, client: u64) {
        let links = self.consumers.range((client, 0)..=(client, u32::MAX));
        for (_, link) in links.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.close_consumer(client, link);
        }
    }

    /// Asserts that no consumer waits for a message that is there: each one with credit got all
    /// that are ready.
    ///
    /// # Panics When one does.
    pub fn assert_served(&self, now: Nanos) {
        for ((client, link), consumer) in &self.consumers {
            let waits = consumer.delivered < consumer.limit;
            let taker = Taker::Consumer(*client, *link);
            let first = self.first_waiting(&consumer.queue, taker, now).filter(|_| waits);
            assert_eq!(first, None, "{client} waits at {link}: {consumer:?}");
        }
    }

    /// The rank of the first message that a consumer may take in an open queue, ready since before
    /// now. Messages that became ready and queues that were opened in this very step may have come
    /// after the choice. No consumer gets an expired message.
    fn first_waiting(&self, queue: &str, taker: Taker, now: Nanos) -> Option<(u32, u64)> {
        let is_open = self.paused.get(queue).is_none_or(|until| *until < now);
        let rank = |(id, message): (&u64, &Message)| {
            let waiting = matches!(message.place, Place::Ready(since) if since < now);
            // Time may bring several back at once; the engine delivers each as it comes.
            let waiting = waiting && !self.returning.contains(id);
            let is_over = message.content.expires.is_some_and(|at| at <= now);
            let here = waiting && !is_over && &*message.content.queue == queue;
            let here = here && self.surely_may_take(message, taker, now);
            here.then_some((message.content.priority, message.nature.order_max))
        };
        // Some of these dead letters may have gone for others.
        let is_unsure = self.is_behind && self.dead_letters_max < u64::MAX && queue == DEAD_LETTERS;
        self.messages.iter().filter_map(rank).min().filter(|_| is_open && !is_unsure)
    }
}
