//! Consumers of all topics with names that match a pattern, and publishing without a topic.
//!
//! A subscription of a pattern takes the messages that any publisher sends to any topic that
//! matches. No other client has to know that topic. It takes nothing of temporary topics, which
//! belong to their session. A subscription of a glob is private to its consumer, in memory only,
//! goes with it, and is told the topic of each message. A subscription of words is like any other.

use alloc::vec::Vec;

use model::{QueueName, glob};

use crate::collections::pattern_tree::Found;
use crate::directory::Directory;
use crate::directory::targets::is_reserved;
use crate::ids::QueueSlot;

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
            found && self.may_take(entry, topic)
        });
        (matching.map(|entry| entry.queue).collect(), steps)
    }
}

/// Bytes that are compared in some 50 ns.
pub(crate) const LOOKS_PER_STEP: usize = 32;
