//! Commands on topics: subscribing, unsubscribing, patterns, temporary destinations.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    ConsumerMode, DependsOn, Destination, Durability, LinkId, Matching, Nanos, NewMessage,
    Persistence, QueueName, Refusal, Reply, Subscription, SubscriptionName, limits,
};
use records::{RecordView, SubscriptionView, encoded_bytes};
use selector::Selector;

use crate::Effects;
use crate::dedup::SentBefore;
use crate::delivery::matching::{parse_selector, reading_steps};
use crate::directory::Source;
use crate::directory::subscriptions::{Wanted, weight_of};
use crate::engine::Engine;
use crate::ids::{ConsumerKey, SessionSlot};
use crate::outcome::Outcome;

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
        let Some(number) = self.directory.subscriptions().find(name) else {
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
        let entry = self.directory.subscriptions().at(number);
        let queue = entry.queue();
        if entry.record_bytes() > 0 {
            let level = self.log.durability(Persistence::Persistent);
            self.log.append(&RecordView::Unsubscribed { number }, level, effects);
        }
        self.sessions.dismiss_consumers(queue, None, &mut self.store, effects);
        self.directory.withdraw(number, &mut self.sessions, &mut self.store);
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
        let user = self.sessions.at(by).user().cloned();
        self.directory.give_to(number, user);
        let queue = self.directory.subscriptions().at(number).queue();
        // The subscription's selector was applied when the messages were published.
        self.bodies.open_credit_consumer(
            key,
            queue,
            None,
            ConsumerMode::Take,
            &mut self.sessions,
            &mut self.store,
        )?;
        let Self { log, store, directory, sessions, .. } = self;
        let is_changed = directory.keep(number, by, expiry, sessions, store);
        let level = log.durability(Persistence::Persistent);
        let after =
            if is_changed { directory.state(number, level, store, log, effects) } else { after };
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
        let number = self.directory.subscriptions().next();
        let level = self.log.durability(Persistence::Persistent);
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
            topic.into_iter().for_each(|topic| self.directory.topics_mut().remove_if_idle(topic));
            return Err(refusal);
        }
        if let Some(replaced) = replaced {
            // It may be of the same topic, which must not go in between.
            let held = topic.into_iter();
            held.clone().for_each(|it| self.directory.topics_mut().at_mut(it).begin_uncommitted());
            self.end_subscription(replaced, effects);
            held.for_each(|it| self.directory.topics_mut().at_mut(it).end_uncommitted());
        }
        if let Some(record) = record {
            self.log.append(&record, level, effects);
        }
        let after = self.log.after_open();
        let source = topic.map_or_else(|| Source::of_pattern(asked.matching), Source::Topic);
        let Self { directory, store, .. } = self;
        directory.register(number, asked, selector, source, record_bytes, store);
        Ok((number, after))
    }
}

impl Engine {
    /// A session ends, and with it the subscriptions that it keeps.
    pub(crate) fn stop_keeping(&mut self, by: SessionSlot, effects: &mut Effects) {
        let keeps = self.sessions.at_mut(by).take_keeps();
        self.store.took_steps(keeps.len());
        for number in keeps {
            self.directory.end_keeping(number);
            self.end_if_unused(number, effects);
        }
    }

    /// Ends a subscription that nothing keeps any more, or lets its time begin.
    pub(crate) fn end_if_unused(&mut self, number: u64, effects: &mut Effects) {
        let Some(after) = self.directory.lasts_unused(number, &self.store) else { return };
        if after == Nanos::ZERO {
            return self.end_subscription(number, effects);
        }
        self.directory.begin_to_end(number, self.store.latest + after, &mut self.store);
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
        match self.dedup.sent_before(key.as_ref(), message, &self.bodies, &mut self.store) {
            Some(SentBefore::Same(first)) => {
                return Outcome::reply(first.after(), Reply::Count(first.copies().into()));
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
}

impl Engine {
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
        self.directory.ended_temporary();
        match destination {
            Destination::Queue(name) => {
                let slot = self.store.queues.find(name.as_str());
                let slot = slot.expect("invariant: a temporary queue is there until its end");
                self.sessions.dismiss_consumers(slot, None, &mut self.store, effects);
                self.directory.begin_leaving(slot, &mut self.sessions, &mut self.store);
            }
            Destination::Topic(name) => {
                let slot = self.directory.topics().find(name.as_str());
                let slot = slot.expect("invariant: a temporary topic is there until its end");
                for number in self.directory.topics().at(slot).subscriptions().clone() {
                    self.end_subscription(number, effects);
                }
                self.directory.topics_mut().begin_leaving(slot);
                self.directory.topics_mut().remove_if_idle(slot);
            }
        }
    }
}
