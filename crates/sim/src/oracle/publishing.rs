//! Producers of AMQP, topics and subscriptions.

use std::collections::BTreeMap;
use std::rc::Rc;

use amqp::message;
use model::{
    Destination, Durability, Matching, Nanos, NewMessage, Persistence, Refusal, Reply,
    Subscription, SubscriptionName, TransactionId,
};

use super::{Consumer, Message, NOTHING, Oracle, Place};
use crate::history::Changes;
use crate::registration;
use crate::{Content, Nature, workload};

/// A subscription that is there.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    asks: Subscription,
    nature: Nature,
}

impl Oracle {
    pub(super) fn send(
        &mut self,
        now: Nanos,
        client: u64,
        to: &Destination,
        message: &NewMessage,
        transaction: Option<TransactionId>,
        reply: &Reply,
    ) -> Changes {
        if let Some(transaction) = transaction {
            return self.enlist_put(client, transaction, to, message, reply);
        }
        if let Some(changes) = self.send_again(to, message, reply) {
            return changes;
        }
        let begin = self.history.len();
        // A refusal for want of a place or of memory is judged before.
        if let Reply::Refused(Refusal::StoreFull | Refusal::QueueFull(_) | Refusal::MemoryFull) =
            reply
        {
            return NOTHING;
        }
        let first = self.next_id;
        let count = self.store(now, to, message);
        match reply {
            Reply::Stored { message } => assert_eq!(message.0, first, "the id of a new message"),
            Reply::Done => assert_eq!(count, 0, "{to:?} has takers"),
            _ => panic!("{reply:?} to a message for {to:?}"),
        }
        self.bind(begin, first);
        self.remember(to, message, first, begin..self.history.len());
        begin..self.history.len()
    }

    /// Stores a message in a queue, or in all subscriptions of a topic. Says how many there are.
    pub(super) fn store(&mut self, now: Nanos, to: &Destination, new: &NewMessage) -> usize {
        let level = self.policy.durability(new.persistence);
        let takers = match to {
            Destination::Queue(queue) => vec![(queue.as_str().into(), level)],
            Destination::Topic(topic) => self.takers(topic.as_str(), level),
        };
        for (queue, level) in &takers {
            self.store_in(now, queue.clone(), *level, new);
        }
        takers.len()
    }

    /// Messages in memory that came with something durable, which happened since `begin`, are shown
    /// no sooner than that.
    pub(super) fn bind(&mut self, begin: usize, first_id: u64) {
        let all = begin..self.history.len();
        for (_, message) in self.messages.range_mut(first_id..) {
            let in_memory = message.nature.level == Durability::None;
            message.bound = in_memory.then(|| all.clone());
        }
    }

    /// The subscriptions that take messages of a topic: durable ones first, then the others. Within
    /// each, those of the topic itself come before those of patterns, the oldest first.
    fn takers(&self, topic: &str, level: Durability) -> Vec<(Rc<str>, Durability)> {
        let of_topic = |(_, it): &(_, &Registered)| registration::takes_of(&it.asks, topic);
        let mut all: Vec<_> = self.subscriptions.iter().filter(of_topic).collect();
        let is_pattern = |it: &Registered| it.asks.matching != Matching::Name;
        all.sort_by_key(|(_, it)| (!it.asks.is_durable(), is_pattern(it), it.nature.order));
        let level = |it: &Registered| if it.asks.is_durable() { level } else { Durability::None };
        all.into_iter().map(|(queue, it)| (queue.clone(), level(it))).collect()
    }

    fn store_in(&mut self, now: Nanos, queue: Rc<str>, level: Durability, new: &NewMessage) {
        let id = self.next_id;
        self.next_id += 1;
        self.comes_into(&queue);
        let lease = u32::try_from(new.lease.as_secs()).expect("invariant: a minute");
        let content = Content::plain(queue, new.priority, lease, payload(new).into());
        let content = Content { expires: new.expires, ..content };
        let nature = Nature::new(level, id, new.body.len() as u64);
        self.messages.insert(id, Message::new(content, nature, now));
        let hidden = Place::Delayed(now + new.delay);
        self.stand(id, if new.delay == Nanos::ZERO { Place::Ready(now) } else { hidden });
    }
}

/// The payload that a client that knows no format is to see of a message.
pub(super) fn payload(new: &NewMessage) -> Vec<u8> {
    if new.format != amqp::FORMAT {
        return new.body.to_vec();
    }
    let scanned = message::Message::scan(&new.body).expect("invariant: the session read it");
    scanned.data().flatten().copied().collect()
}

impl Oracle {
    pub(super) fn subscribe(
        &mut self,
        client: u64,
        link: u32,
        asked: &Subscription,
        reply: &Reply,
    ) -> Changes {
        let known = asked.name.as_ref().and_then(|name| self.find(name));
        let known = known.map(|queue| (queue.clone(), self.subscriptions.get(&queue)));
        let (mut fits, mut refused) = (false, false);
        if let Some((queue, Some(Registered { asks, .. }))) = &known {
            fits = asks.topic == asked.topic && asks.selector == asked.selector;
            let joins = fits && asked.shared;
            refused = asks.shared != asked.shared || self.has_consumers(queue) && !joins;
        }
        let known = known.map(|(queue, _)| queue);
        // A subscription that ended keeps its queue while a client holds a message of it.
        let queues = workload::QUEUES.len() + 1 + self.subscriptions.len();
        let ended = self.orphans.len();
        let [is_crowded, may_be_crowded] =
            [queues, queues + ended].map(|queues| self.memory.is_crowded(queues as u64));
        let is_new = known.is_none();
        match reply {
            Reply::Refused(Refusal::SubscriptionInUse) => {
                assert!(refused, "{client} may subscribe: {asked:?}");
                return NOTHING;
            }
            Reply::Refused(Refusal::StoreFull) => return NOTHING,
            Reply::Refused(Refusal::TooManySubscriptions) => {
                assert!(
                    is_new && may_be_crowded,
                    "{client} with {queues}+{ended} may subscribe: {asked:?}"
                );
                return NOTHING;
            }
            Reply::Done => {
                assert!(!refused, "{client} must not subscribe: {asked:?}");
                assert!(!is_new || !is_crowded, "{client} subscribes to too much: {asked:?}");
            }
            _ => panic!("{reply:?} to {asked:?}"),
        }
        let begin = self.history.len();
        if let Some(queue) = known.filter(|_| !fits) {
            self.end_subscription(&queue);
        }
        let queue = registration::queue_of(asked, client, link);
        if !fits {
            self.register(queue.clone(), asked);
        }
        self.let_catch_up(&queue);
        self.inherit_groups(client, link, &queue);
        self.consumers.insert((client, link), Consumer::new(queue));
        if fits { self.everything() } else { begin..self.history.len() }
    }

    pub(super) fn unsubscribe(&mut self, name: &SubscriptionName, reply: &Reply) -> Changes {
        let begin = self.history.len();
        let known = self.find(name);
        let in_use = known.as_ref().is_some_and(|queue| self.has_consumers(queue));
        match (known, reply) {
            (None, Reply::NotFound) => self.everything(),
            (Some(_), Reply::Refused(Refusal::SubscriptionInUse)) if in_use => NOTHING,
            (Some(queue), Reply::Done) if !in_use => {
                self.end_subscription(&queue);
                begin..self.history.len()
            }
            (known, _) => panic!("{reply:?} to the end of {name:?}, which is {known:?}"),
        }
    }

    pub(super) fn find_subscription(&self, name: &SubscriptionName, reply: &Reply) -> Changes {
        let known = self.find(name).and_then(|queue| self.subscriptions.get(&queue));
        let seen = match reply {
            Reply::Subscription(it) => Some(registration::without_user((**it).clone())),
            _ => None,
        };
        assert_eq!(seen.as_ref(), known.map(|it| &it.asks), "the subscription {name:?}");
        self.everything()
    }

    /// All durable subscriptions.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        self.subscriptions.values().map(|it| &it.asks).filter(|asks| asks.is_durable())
    }

    pub(super) fn restore_subscriptions(
        &mut self,
        found: &[Subscription],
        kept: &BTreeMap<u64, Message>,
    ) {
        // Not the order of the history: one that ended and was made anew looks the same there.
        self.next_age = 1;
        self.subscriptions.clear();
        for asks in found {
            let name = asks.name.as_ref().expect("invariant: a durable one has a name");
            let kept = kept.get(&registration::subject(name)).expect("it was kept");
            let nature = kept.nature.at(self.next_age);
            self.next_age += 1;
            let queue = registration::queue_of(asks, 0, 0);
            self.subscriptions.insert(queue, Registered { asks: asks.clone(), nature });
        }
        assert_eq!(self.subscriptions.len(), kept.len(), "what was found is what was kept");
    }

    /// A subscription that is not durable goes with its last consumer.
    pub(super) fn end_if_unused(&mut self, queue: &str) {
        let is_durable = |it: &Registered| it.asks.is_durable();
        if !self.subscriptions.get(queue).is_none_or(is_durable) && !self.has_consumers(queue) {
            self.end_subscription(queue);
        }
    }

    /// True if the queue is of a subscription that is not durable: a message that dies there is
    /// deleted and becomes no dead letter, as memory alone keeps it.
    pub(super) fn deletes_dead(&self, queue: &str) -> bool {
        self.subscriptions.get(queue).is_some_and(|it| !it.asks.is_durable())
    }

    fn register(&mut self, queue: Rc<str>, asked: &Subscription) {
        let level = self.policy.durability(Persistence::Persistent);
        let nature = Nature::new(level, self.next_age, 0);
        self.next_age += 1;
        if let Some(name) = asked.name.as_ref().filter(|name| name.durable) {
            let (subject, kept) = (registration::subject(name), registration::kept(asked));
            self.history.push(self.step, subject, nature, Some(kept));
        }
        self.subscriptions.insert(queue, Registered { asks: asked.clone(), nature });
    }

    /// A subscription ends with all its messages. Those that a client holds stay held.
    fn end_subscription(&mut self, queue: &str) {
        let ended = self.subscriptions.remove(queue).expect("invariant: it was looked up");
        self.places.spared.remove(queue);
        if let Some(name) = ended.asks.name.clone().filter(|name| name.durable) {
            self.history.push(self.step, registration::subject(&name), ended.nature, None);
        }
        let here = |(_, message): &(&u64, &Message)| &*message.content.queue == queue;
        let ids: Vec<u64> = self.messages.iter().filter(here).map(|(id, _)| *id).collect();
        for id in ids {
            let message = self.messages.remove(&id).expect("invariant: just found");
            // They go with the record of the end, however durable they were asked to be.
            let level = message.nature.level.min(ended.nature.level);
            self.history.push(self.step, id, Nature { level, ..message.nature }, None);
            self.orphans.extend(message.holder().map(|holder| (id, holder)));
        }
    }

    fn find(&self, name: &SubscriptionName) -> Option<Rc<str>> {
        let is_it = |(_, it): &(_, &Registered)| it.asks.name.as_ref() == Some(name);
        self.subscriptions.iter().find(is_it).map(|(queue, _)| queue.clone())
    }

    pub(super) fn has_consumers(&self, queue: &str) -> bool {
        self.consumers.values().any(|consumer| &*consumer.queue == queue)
    }
}
