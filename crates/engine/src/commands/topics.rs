//! Commands on topics: subscribing, unsubscribing, patterns, temporary destinations.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    ClientName, Command, ConsumerMode, DependsOn, Destination, Durability, Expiry, LinkId,
    Matching, Nanos, NewMessage, Persistence, QueueName, Refusal, Reply, Subscription,
    SubscriptionName, SubscriptionOwner, limits,
};
use records::{RecordView, SubscriptionView, encoded_bytes};
use selector::Selector;

use crate::dedup::SentBefore;
use crate::delivery::matching::{parse_selector, reading_steps};
use crate::demand::{About, Demand};
use crate::directory::subscriptions::{Wanted, weight_of};
use crate::directory::{Entry, Source};
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::store::timers::Timer;
use crate::{Effects, QueuePolicy};

impl Engine {
    pub(crate) fn subscribe(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        asked: Box<Subscription>,
        effects: &mut Effects,
    ) -> Outcome {
        match self.subscribed(by, link, asked, effects) {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn unsubscribe(
        &mut self,
        name: &SubscriptionName,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(number) = self.directory.subscriptions.find(name) else {
            return self.log.not_found();
        };
        if self.directory.has_consumers(number, &self.store) {
            return Outcome::refused(Refusal::SubscriptionInUse);
        }
        self.end_subscription(number, effects);
        Outcome::reply(self.log.after_open(), Reply::Done)
    }

    /// Ends a subscription; its messages are forgotten in steps.
    pub(crate) fn end_subscription(&mut self, number: u64, effects: &mut Effects) {
        let &Entry { queue, record_bytes, .. } = self.directory.subscriptions.at(number);
        if record_bytes > 0 {
            let level = self.context.policy.durability(Persistence::Persistent);
            self.log.append(&RecordView::Unsubscribed { number }, level, effects);
        }
        self.dismiss_consumers(queue, effects);
        self.withdraw(number);
    }

    /// Takes a subscription without consumers out of its topic. The topic may go with it.
    pub(crate) fn withdraw(&mut self, number: u64) {
        let entry = self.directory.subscriptions.remove(number);
        let entry = entry.expect("invariant: a subscription ends once");
        self.store.totals.snapshot_bytes -= snapshot_bytes_of_record(entry.record_bytes);
        if let Source::Topic(topic) = entry.source {
            let its = self.directory.topics.at_mut(topic);
            its.selectors_weight -= weight_of(entry.selector.as_ref());
            let was_there = its.subscriptions.remove(&number);
            assert!(was_there, "a topic knows its subscriptions");
            self.directory.topics.remove_if_idle(topic);
        }
        self.store.timers.change(Timer::Unused(number), entry.ends_at, None);
        if let Some(owner) = entry.owner {
            self.sessions.at_mut(owner).end_keeping(number);
        }
        self.begin_leaving(entry.queue);
    }

    /// Enters a subscription. `record_bytes` is the size of its record, zero where it has none.
    pub(crate) fn register(
        &mut self,
        number: u64,
        asks: Box<Subscription>,
        selector: Option<Selector>,
        source: Source,
        record_bytes: u64,
    ) -> QueueSlot {
        let durable = asks.is_durable();
        let policy = QueuePolicy { kept: false, ..self.directory.policy_for(&asks.topic) };
        let queue =
            self.store.queues.create_subscription(asks.topic.clone(), number, durable, policy);
        if let Source::Topic(topic) = source {
            let its = self.directory.topics.at_mut(topic);
            its.selectors_weight += weight_of(selector.as_ref());
            its.subscriptions.insert(number);
        }
        self.store.totals.snapshot_bytes += snapshot_bytes_of_record(record_bytes);
        let entry = Entry {
            asks,
            selector,
            source,
            queue,
            record_bytes,
            owner: None,
            ends_at: None,
            is_recovered: false,
        };
        self.directory.subscriptions.insert(number, entry);
        queue
    }

    fn subscribed(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        asked: Box<Subscription>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let key = ConsumerKey { session: by, link };
        if self.sessions.is_consumer(key) {
            return Err(Refusal::LinkInUse);
        }
        if !self.directory.may_consume_topic(by, &asked.topic) {
            return Err(Refusal::OfAnotherSession);
        }
        self.store.took_steps(asked.selector.as_deref().map_or(0, reading_steps));
        let selector = asked.selector.as_deref().map(parse_selector).transpose()?;
        self.sessions.may_keep(by, &asked)?;
        let expiry = asked.expiry;
        let (number, after) = match self.directory.wanted(&asked, &self.store)? {
            Wanted::This(number) => {
                self.directory.may_restate(number, expiry, &self.log)?;
                (number, self.log.after_all())
            }
            Wanted::Instead(number) => {
                self.begin_subscription(asked, selector, Some(number), effects)?
            }
            Wanted::New => self.begin_subscription(asked, selector, None, effects)?,
        };
        let queue = self.directory.subscriptions.at(number).queue;
        // The subscription's selector was applied when the messages were published.
        self.open_credit_consumer(key, queue, None, ConsumerMode::Take)?;
        let after = self.keep_subscription(number, by, expiry, effects).unwrap_or(after);
        Ok(Outcome::reply(after, Reply::Done).waking(queue))
    }

    /// Makes a subscription, and ends the one that it replaces. Returns the position that an answer
    /// waits for if it tells of that.
    fn begin_subscription(
        &mut self,
        asked: Box<Subscription>,
        selector: Option<Selector>,
        replaced: Option<u64>,
        effects: &mut Effects,
    ) -> Result<(u64, DependsOn), Refusal> {
        let topic = match asked.matching {
            Matching::Name => Some(self.directory.find_or_create_topic(asked.topic.clone())?),
            Matching::Words | Matching::Glob => None,
        };
        let number = self.directory.subscriptions.next;
        let level = self.context.policy.durability(Persistence::Persistent);
        let record = SubscriptionView::of(number, &asked).map(RecordView::Subscribed);
        let record = record.filter(|_| level != Durability::None);
        let record_bytes = record.as_ref().map_or(0, encoded_bytes);
        let weight = weight_of(selector.as_ref());
        let allowed = self.directory.may_subscribe(
            topic,
            &asked,
            replaced,
            record_bytes,
            &self.store,
            &self.log,
        );
        let allowed =
            allowed.and_then(|()| self.directory.may_select(topic, &asked, weight, replaced));
        if let Err(refusal) = allowed {
            topic.into_iter().for_each(|topic| self.directory.topics.remove_if_idle(topic));
            return Err(refusal);
        }
        if let Some(replaced) = replaced {
            // It may be of the same topic, which must not go in between.
            let held = topic.into_iter();
            held.clone().for_each(|topic| self.directory.topics.at_mut(topic).uncommitted += 1);
            self.end_subscription(replaced, effects);
            held.for_each(|topic| self.directory.topics.at_mut(topic).uncommitted -= 1);
        }
        if let Some(record) = record {
            self.log.append(&record, level, effects);
        }
        let after = self.log.after_open();
        let source = topic.map_or_else(|| Source::of_pattern(asked.matching), Source::Topic);
        self.register(number, asked, selector, source, record_bytes);
        Ok((number, after))
    }
}

impl Engine {
    /// A consumer of a subscription says when the subscription ends. Gives the position that the
    /// answer waits for, if that had to be written.
    pub(crate) fn keep_subscription(
        &mut self,
        number: u64,
        by: SessionSlot,
        expiry: Option<Expiry>,
        effects: &mut Effects,
    ) -> Option<DependsOn> {
        let entry = self.directory.subscriptions.at_mut(number);
        let ends_at = entry.ends_at.take();
        let before = entry.owner.take();
        let is_changed = core::mem::replace(&mut entry.asks.expiry, expiry) != expiry;
        let ends = entry.asks.ends();
        let is_kept = ends.is_some_and(|expiry| expiry.with == SubscriptionOwner::Session);
        entry.owner = is_kept.then_some(by);
        entry.is_recovered = false;
        self.store.timers.change(Timer::Unused(number), ends_at, None);
        if let Some(before) = before {
            self.sessions.at_mut(before).end_keeping(number);
        }
        if is_kept {
            self.sessions.at_mut(by).keep(number);
        }
        is_changed.then(|| self.state_subscription(number, effects))
    }

    /// States in the log the present state of a subscription.
    fn state_subscription(&mut self, number: u64, effects: &mut Effects) -> DependsOn {
        let level = self.context.policy.durability(Persistence::Persistent);
        let entry = self.directory.subscriptions.at(number);
        let before = entry.record_bytes;
        let asks = entry.asks.clone();
        let record = SubscriptionView::of(number, &asks).map(RecordView::Subscribed);
        let Some(record) = record.filter(|_| level != Durability::None) else {
            return self.log.after_all();
        };
        let now = encoded_bytes(&record);
        self.store.totals.snapshot_bytes -= snapshot_bytes_of_record(before);
        self.store.totals.snapshot_bytes += snapshot_bytes_of_record(now);
        self.directory.subscriptions.at_mut(number).record_bytes = now;
        self.log.append(&record, level, effects);
        self.log.after_open()
    }

    /// A session ends, and with it the subscriptions that it keeps.
    pub(crate) fn stop_keeping(&mut self, by: SessionSlot, effects: &mut Effects) {
        let keeps = self.sessions.at_mut(by).take_keeps();
        self.store.took_steps(keeps.len());
        for number in keeps {
            self.directory.subscriptions.at_mut(number).owner = None;
            self.end_if_unused(number, effects);
        }
    }

    /// Ends a subscription that nothing keeps any more, or lets its time begin.
    pub(crate) fn end_if_unused(&mut self, number: u64, effects: &mut Effects) {
        let entry = self.directory.subscriptions.at(number);
        let Some(Expiry { after, .. }) = entry.asks.ends() else { return };
        if entry.owner.is_some()
            || entry.ends_at.is_some()
            || self.directory.has_consumers(number, &self.store)
        {
            return;
        }
        if after == Nanos::ZERO {
            return self.end_subscription(number, effects);
        }
        self.directory.begin_to_end(number, self.store.latest + after, &mut self.store);
    }

    /// The time of a subscription is over; or it begins, where it was found in the log.
    pub(crate) fn expire_subscription(&mut self, number: u64, effects: &mut Effects) {
        let entry = self.directory.subscriptions.at_mut(number);
        let before = entry.ends_at.take();
        let is_recovered = core::mem::take(&mut entry.is_recovered);
        self.store.timers.change(Timer::Unused(number), before, None);
        if is_recovered {
            self.end_if_unused(number, effects);
        } else {
            self.end_subscription(number, effects);
        }
    }

    /// A record states a subscription that is known: only when it ends may have changed.
    pub(crate) fn restate_subscription(&mut self, number: u64, asks: Box<Subscription>, size: u64) {
        let entry = self.directory.subscriptions.at_mut(number);
        let before = core::mem::replace(&mut entry.record_bytes, size);
        entry.asks = asks;
        self.store.totals.snapshot_bytes -= snapshot_bytes_of_record(before);
        self.store.totals.snapshot_bytes += snapshot_bytes_of_record(size);
    }
}

impl Engine {
    pub(crate) fn publish_to(
        &mut self,
        by: SessionSlot,
        topic: &QueueName,
        message: &NewMessage,
        effects: &mut Effects,
    ) -> Outcome {
        if message.body.len() > limits::MESSAGE_BYTES_MAX {
            return Outcome::refused(Refusal::StoreFull);
        }
        if message.send_id.as_ref().is_some_and(|id| id.len() > limits::SEND_ID_BYTES_MAX) {
            return Outcome::refused(Refusal::SendIdTooLong);
        }
        let key = self.dedup.topic_send_key(topic, message);
        match self.dedup.sent_before(key.as_ref(), message, &mut self.store, &self.context) {
            Some(SentBefore::Same(first)) => {
                return Outcome::reply(first.after, Reply::Count(first.copies.into()));
            }
            Some(SentBefore::Other(after)) => return Outcome::reused(after),
            None => {}
        }
        let mut drafted = Vec::new();
        let Ok(sent) = self.draft_copies(by, topic, message, &mut drafted, effects) else {
            return Outcome::refused(Refusal::StoreFull);
        };
        let count = drafted.len() as u64;
        self.admit_all(drafted, sent, Reply::Count(count))
    }

    pub(crate) fn subscribe_pattern(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        pattern: QueueName,
        effects: &mut Effects,
    ) -> Outcome {
        let subscription = Subscription { matching: Matching::Glob, ..Subscription::new(pattern) };
        self.subscribe(by, link, Box::new(subscription), effects)
    }
}

impl Engine {
    pub(crate) fn create_temporary(
        &mut self,
        by: SessionSlot,
        topic: bool,
        secret: u128,
    ) -> Outcome {
        if self.sessions.at(by).temporary().len() >= limits::SESSION_TEMPORARY_MAX {
            return Outcome::refused(Refusal::TooManyTemporary);
        }
        let room = if topic {
            self.directory.topics.takes_another()
        } else {
            self.store.queues.takes_another()
        };
        if let Err(refusal) = room {
            return Outcome::refused(refusal);
        }
        let name = self.directory.temporary_name(topic, secret, &self.store);
        let made = if topic {
            self.directory.topics.create(name.clone(), Some(by));
            Destination::Topic(name)
        } else {
            self.store.queues.create_temporary(name.clone(), by);
            Destination::Queue(name)
        };
        self.sessions.at_mut(by).add_temporary(made.clone());
        self.directory.temporaries += 1;
        Outcome::reply(DependsOn::NOTHING, Reply::Created(made))
    }

    pub(crate) fn delete_temporary(
        &mut self,
        by: SessionSlot,
        destination: &Destination,
        effects: &mut Effects,
    ) -> Outcome {
        if !self.sessions.at_mut(by).end_temporary(destination) {
            return Outcome::reply(DependsOn::NOTHING, Reply::NotFound);
        }
        self.end_temporary(destination, effects);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// All that a session made goes with it.
    pub(crate) fn end_temporaries(&mut self, by: SessionSlot, effects: &mut Effects) {
        let temporary = self.sessions.at_mut(by).take_temporary();
        self.store.took_steps(temporary.len());
        for destination in temporary {
            self.end_temporary(&destination, effects);
        }
    }

    fn end_temporary(&mut self, destination: &Destination, effects: &mut Effects) {
        self.directory.temporaries -= 1;
        match destination {
            Destination::Queue(name) => {
                let slot = self.store.queues.find(name.as_str());
                let slot = slot.expect("invariant: a temporary queue is there until its end");
                self.dismiss_consumers(slot, effects);
                self.begin_leaving(slot);
            }
            Destination::Topic(name) => {
                let slot = self.directory.topics.find(name.as_str());
                let slot = slot.expect("invariant: a temporary topic is there until its end");
                for number in self.directory.topics.at(slot).subscriptions.clone() {
                    self.end_subscription(number, effects);
                }
                self.directory.topics.begin_leaving(slot);
                self.directory.topics.remove_if_idle(slot);
            }
        }
    }
}

impl Engine {
    /// The answer to a command about a name that is private to another session: as if it were not
    /// there.
    #[inline]
    pub(crate) fn denial(&self, by: SessionSlot, command: &Command) -> Option<Outcome> {
        if self.directory.temporaries == 0 { None } else { self.denial_of_private(by, command) }
    }

    fn denial_of_private(&self, by: SessionSlot, command: &Command) -> Option<Outcome> {
        let is_denied = match Demand::of(command).about {
            About::Message(message) => self.directory.hides_message(by, message, &self.store),
            About::Producer(link) => self
                .sessions
                .producer_queue(by, link)
                .is_some_and(|slot| self.directory.is_of_another(by, slot, &self.store)),
            About::Queue(queue) => self.directory.hides_queue(by, queue, &self.store),
            About::Nothing | About::Consumer(_) => false,
        };
        is_denied.then(|| self.log.not_found())
    }
}

impl Engine {
    pub(crate) fn identify(&mut self, by: SessionSlot, client: ClientName) -> Outcome {
        if self.sessions.identify(by, client) {
            Outcome::reply(DependsOn::NOTHING, Reply::Done)
        } else {
            Outcome::refused(Refusal::ClientInUse)
        }
    }
}
