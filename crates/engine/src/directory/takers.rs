//! Queues that take a message which is published to a topic.

use alloc::vec::Vec;

use model::{Formats, Matching, NewMessage, QueueName};

use crate::delivery::matching::{Seen, steps_of};
use crate::directory::Directory;
use crate::ids::{QueueSlot, SessionSlot};
use crate::sessions::Sessions;
use crate::store::MessageStore;

/// The subscriptions that take a message: first those that are durable.
#[derive(Debug, Default)]
pub(crate) struct Takers {
    pub(crate) durable: Vec<QueueSlot>,
    pub(crate) others: Vec<QueueSlot>,
    /// Those of patterns that are not durable, which are told which topic it was.
    pub(crate) of_patterns: Vec<QueueSlot>,
}

impl Directory {
    /// Queues that take a message published to that name, whether or not there is such a topic.
    pub(crate) fn takers(
        &self,
        by: SessionSlot,
        name: &QueueName,
        new: &NewMessage,
        formats: &Formats,
        sessions: &Sessions,
        store: &mut MessageStore,
    ) -> Takers {
        let (mut takers, steps) = self.find_takers(by, name, new, formats, sessions, store);
        let (of_globs, looked) = self.matching_globs(name);
        takers.of_patterns.extend(of_globs);
        store.took_steps(steps + looked);
        takers
    }

    /// The queues of all subscriptions of a topic that take a message, and the steps that it took
    /// to find them.
    pub(crate) fn takers_of_topic(
        &self,
        by: SessionSlot,
        name: &QueueName,
        new: &NewMessage,
        formats: &Formats,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> (impl Iterator<Item = QueueSlot> + use<>, usize) {
        let (Takers { durable, others, of_patterns }, steps) =
            self.find_takers(by, name, new, formats, sessions, store);
        (durable.into_iter().chain(others).chain(of_patterns), steps)
    }

    /// The subscriptions that take it but for those of globs, and the steps it took to find them.
    fn find_takers(
        &self,
        by: SessionSlot,
        name: &QueueName,
        new: &NewMessage,
        formats: &Formats,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> (Takers, usize) {
        let topic = self.topics().find(name.as_str()).map(|slot| self.topics().at(slot));
        let client = sessions.at(by).client();
        let mut takers = Takers::default();
        let seen = Seen::of_new(new, store.latest, formats);
        let mut steps = 0;
        let words = self.matching_words(name);
        steps += words.steps;
        let of_topic = topic.iter().flat_map(|topic| topic.subscriptions());
        for number in of_topic.chain(&words.subscriptions) {
            let entry = self.subscriptions().at(*number);
            steps += 1;
            if entry.asks().without.is_some() && entry.asks().without.as_ref() == client {
                continue;
            }
            let is_pattern = entry.asks().matching != Matching::Name;
            if is_pattern && !self.may_take(entry, name) {
                continue;
            }
            if let Some(selector) = entry.selector() {
                steps += steps_of(selector);
                if !seen.matches(selector) {
                    continue;
                }
            }
            let of_its_kind = match (entry.asks().is_durable(), entry.asks().matching) {
                (true, _) => &mut takers.durable,
                (false, Matching::Name) => &mut takers.others,
                (false, Matching::Words | Matching::Glob) => &mut takers.of_patterns,
            };
            of_its_kind.push(entry.queue());
        }
        (takers, steps)
    }
}
