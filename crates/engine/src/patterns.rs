//! Consumers of all topics whose names match a pattern, and publishing without a topic.
//!
//! A subscription of a pattern is private to its consumer, in memory only, and goes with it. It
//! takes what is published to any topic that matches, whoever publishes it and whether or not
//! anybody else knows that topic; of temporary topics, which are their session's, it takes nothing.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    After, ConsumerMode, LinkId, NewMessage, QueueName, Refusal, Reply, Subscription, glob, limits,
};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::queue::QueueSlot;
use crate::send_ids::SentBefore;
use crate::session::{ConsumerKey, SessionSlot};
use crate::subscriptions::Source;
use crate::targets::is_reserved;

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
        let key = self.topic_send_key(topic, message);
        match self.sent_before(key.as_ref(), message) {
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
    ) -> Outcome {
        match self.open_pattern(ConsumerKey { session: by, link }, pattern) {
            Ok(()) => Outcome::reply(After::NOTHING, Reply::Done),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    fn open_pattern(&mut self, key: ConsumerKey, pattern: QueueName) -> Result<(), Refusal> {
        if self.is_consumer(key) {
            return Err(Refusal::LinkInUse);
        }
        if self.subscriptions.len() >= limits::SUBSCRIPTIONS_MAX
            || self.subscriptions.patterns_count() >= limits::PATTERN_SUBSCRIPTIONS_MAX
            || self.subscriptions_crowd()
        {
            return Err(Refusal::TooManySubscriptions);
        }
        let number = self.subscriptions.next;
        let asks = Box::new(Subscription {
            name: None,
            topic: pattern,
            selector: None,
            shared: false,
            without: None,
        });
        let queue = self.register(number, asks, None, Source::Pattern, 0);
        self.open_feed(key, queue, None, ConsumerMode::Take)
    }

    /// The subscriptions whose patterns match the name of a topic, and how many steps it took to
    /// find them.
    pub(crate) fn matching_patterns(&self, topic: &QueueName) -> (Vec<QueueSlot>, usize) {
        if self.subscriptions.patterns_count() == 0 || is_reserved(topic) {
            return (Vec::new(), 0);
        }
        let mut steps = 0;
        let matching = self.subscriptions.patterns().filter(|entry| {
            let (pattern, name) = (entry.asks.topic.as_str(), topic.as_str());
            let (found, looked) = glob::matches_counting(pattern.as_bytes(), name.as_bytes());
            steps += 1 + looked / LOOKS_PER_STEP;
            found
        });
        (matching.map(|entry| entry.queue).collect(), steps)
    }
}

/// Bytes that are compared in some 50 ns.
const LOOKS_PER_STEP: usize = 32;
