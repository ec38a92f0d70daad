//! Consumers of all topics whose names match a pattern, and publishing without a topic.
//!
//! A subscription of a pattern takes what is published to any topic that matches, whoever publishes
//! it and whether or not anybody else knows that topic; of temporary topics, which are their
//! session's, it takes nothing. One of a glob is private to its consumer, in memory only, goes with
//! it, and is told which topic it was. One of words is a subscription as any other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{LinkId, Matching, NewMessage, QueueName, Refusal, Reply, Subscription, glob, limits};

use crate::Effects;
use crate::engine::{Directory, Engine, Outcome};
use crate::pattern_tree::Found;
use crate::queue::QueueSlot;
use crate::send_ids::SentBefore;
use crate::session::SessionSlot;
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

impl Directory {
    /// The subscriptions of patterns of words that the name of a topic matches.
    pub(crate) fn matching_words(&self, topic: &QueueName) -> Found {
        if self.subscriptions.patterns_count() == 0 || is_reserved(topic) {
            return Found::default();
        }
        self.subscriptions.matching_words(topic.as_str())
    }

    /// The subscriptions of globs that match the name of a topic, and how many steps it took to
    /// find them.
    pub(crate) fn matching_globs(&self, topic: &QueueName) -> (Vec<QueueSlot>, usize) {
        if self.subscriptions.patterns_count() == 0 || is_reserved(topic) {
            return (Vec::new(), 0);
        }
        let mut steps = 0;
        let matching = self.subscriptions.globs().filter(|entry| {
            let (pattern, name) = (entry.asks.topic.as_str(), topic.as_str());
            let (found, looked) = glob::matches_counting(pattern.as_bytes(), name.as_bytes());
            steps += 1 + looked / LOOKS_PER_STEP;
            found
        });
        (matching.map(|entry| entry.queue).collect(), steps)
    }
}

/// Bytes that are compared in some 50 ns.
pub(crate) const LOOKS_PER_STEP: usize = 32;
