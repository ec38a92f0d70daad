//! The invariants of topics, subscriptions, groups, transactions and temporary destinations.

use alloc::collections::{BTreeMap, BTreeSet};

use model::{Destination, Matching, MessageId};
use selector::Selector;

use crate::bodies::Bodies;
use crate::delivery::matching::Seen;
use crate::directory::{Directory, Source, Target};
use crate::ids::SessionSlot;
use crate::sessions::{Session, Sessions};
use crate::store::MessageStore;
use crate::store::message::{Message, State};
use crate::store::queue::{Queue, Role};
use crate::store::timers::Timer;

impl Directory {
    pub(crate) fn check_topics(&self) {
        for (slot, topic) in self.topics().iter() {
            let name = topic.name();
            let found = self.topics().find(name.as_str()) == Some(slot);
            assert_eq!(found, !topic.leaving(), "topic {name} is found by its name until it goes");
            assert!(!topic.is_idle(), "topic {name} is there for something");
            let numbers = topic.subscriptions().iter();
            let selectors = numbers.filter_map(|it| self.subscriptions().at(*it).selector());
            let weight: usize = selectors.map(Selector::weight).sum();
            assert_eq!(weight, topic.selectors_weight(), "what selectors of {name} weigh");
            for number in topic.subscriptions() {
                let source = self.subscriptions().at(*number).source();
                assert_eq!(source, Source::Topic(slot), "a subscription of {name}");
            }
        }
        let subscribed = self.topics().iter().map(|(_, topic)| topic.subscriptions().len());
        let entries = self.subscriptions().iter_from(0).map(|(_, entry)| entry);
        let patterns = entries.filter(|entry| !matches!(entry.source(), Source::Topic(_))).count();
        assert_eq!(patterns, self.subscriptions().patterns_count(), "subscriptions of patterns");
        let all = subscribed.sum::<usize>() + patterns;
        assert_eq!(all, self.subscriptions().len(), "subscriptions by topic");
    }

    pub(crate) fn check_subscriptions(&self, sessions: &Sessions, store: &MessageStore) {
        for (number, entry) in self.subscriptions().iter_from(0) {
            assert!(number < self.subscriptions().next(), "subscription {number} was given out");
            let durable = entry.asks().is_durable();
            let queue = store.queues.at(entry.queue());
            let role = Role::Subscription { number, durable };
            assert_eq!(queue.role, role, "subscription {number} has a queue of its own");
            let owner = entry.owner().map(|slot| sessions.at(slot));
            let is_kept = owner.is_some_and(|session| session.keeps().contains(&number));
            assert_eq!(is_kept, entry.owner().is_some(), "who keeps {number} knows it");
            let is_used = is_kept || !queue.delivery.consumers.is_empty();
            let ends = entry.asks().ends();
            let is_ending = entry.ends_at().is_some();
            assert!(!is_ending || !is_used, "{number} ends only once it is unused");
            let may_be_alone = ends.is_none() || is_ending;
            assert!(is_used || may_be_alone, "somebody uses {number}");
            let is_pattern = !matches!(entry.source(), Source::Topic(_));
            assert_eq!(
                is_pattern,
                entry.asks().matching != Matching::Name,
                "the source of {number}"
            );
            assert!(durable || entry.record_bytes() == 0, "only what lasts has a record");
            let named = entry.asks().name.as_ref().map(|name| self.subscriptions().find(name));
            assert!(named.is_none_or(|found| found == Some(number)), "{number} has its name");
        }
        let roles = store.queues.iter().map(|(_, queue)| queue.role);
        let of_subscriptions = roles.filter(|role| matches!(role, Role::Subscription { .. }));
        assert_eq!(of_subscriptions.count(), self.subscriptions().len(), "each has a queue");
    }

    /// Producers and transactions point to destinations, which count them.
    pub(crate) fn check_targets(&self, sessions: &Sessions, store: &MessageStore) {
        let mut producers: BTreeMap<Target, u64> = BTreeMap::new();
        let mut uncommitted: BTreeMap<Target, u64> = BTreeMap::new();
        for (_, session) in sessions.iter() {
            for target in session.producers().values() {
                *producers.entry(*target).or_default() += 1;
            }
            let transactions = session.transactions().open().values();
            for target in transactions.flat_map(|transaction| transaction.targets()) {
                *uncommitted.entry(target).or_default() += 1;
            }
        }
        let queues = store
            .queues
            .iter()
            .map(|(slot, queue)| (Target::Queue(slot), queue.producers(), queue.uncommitted()));
        let topics = self
            .topics()
            .iter()
            .map(|(slot, topic)| (Target::Topic(slot), topic.producers(), topic.uncommitted()));
        for (target, opened, held) in queues.chain(topics) {
            assert_eq!(producers.remove(&target).unwrap_or(0), opened, "producers of {target:?}");
            assert_eq!(uncommitted.remove(&target).unwrap_or(0), held, "parts for {target:?}");
        }
        assert!(producers.is_empty() && uncommitted.is_empty(), "what is pointed to exists");
    }

    /// How many end by time, each by its timer.
    pub(crate) fn check_subscription_timers(&self, store: &MessageStore) -> usize {
        let entries = self.subscriptions().iter_from(0);
        let ending = entries.filter_map(|(number, entry)| Some((number, entry.ends_at()?)));
        ending
            .inspect(|(number, at)| {
                assert!(
                    store.timers.contains(*at, Timer::Unused(*number)),
                    "{number} ends by time"
                );
            })
            .count()
    }

    pub(crate) fn check_session_parts(
        &self,
        slot: SessionSlot,
        session: &Session,
        sessions: &Sessions,
        store: &MessageStore,
    ) {
        let settled =
            session.transactions().open().values().flat_map(|transaction| transaction.settled());
        let settled: BTreeSet<MessageId> = settled.collect();
        assert_eq!(settled, *session.settling(), "what is settled is known");
        for id in session.settling() {
            let state = store.messages.get(id.0).map(|message| Message::state(message));
            let is_held = matches!(state, Some(State::Held { holder, .. }) if holder == slot);
            assert!(is_held, "message {id} is held until its transaction ends");
        }
        for destination in session.temporary() {
            let is_its = match destination {
                Destination::Queue(name) => {
                    let queue =
                        store.queues.find(name.as_str()).map(|queue| store.queues.at(queue));
                    queue.is_some_and(|queue| queue.role == Role::Temporary(slot))
                }
                Destination::Topic(name) => {
                    let topic =
                        self.topics().find(name.as_str()).map(|topic| self.topics().at(topic));
                    topic.is_some_and(|topic| topic.temporary() == Some(slot))
                }
            };
            assert!(is_its, "{} goes with its session", destination.name());
        }
        if let Some(client) = session.client() {
            assert_eq!(
                sessions.find_client(session.user(), client),
                Some(slot),
                "one session a client"
            );
        }
    }

    pub(crate) fn check_publishing(&self, sessions: &Sessions, store: &MessageStore) {
        self.check_topics();
        self.check_subscriptions(sessions, store);
        self.check_targets(sessions, store);
        for (slot, session) in sessions.iter() {
            self.check_session_parts(slot, session, sessions, store);
        }
        let temporaries = sessions.iter().map(|(_, session)| session.temporary().len());
        assert_eq!(temporaries.sum::<usize>(), self.temporaries(), "what is private");
    }
}

impl Bodies {
    pub(crate) fn check_views(&self, queue: &Queue, sessions: &Sessions, store: &MessageStore) {
        let scanning = queue.is_scanning();
        assert!(
            !scanning || queue.delivery.resumes.is_some(),
            "views are being made in {}",
            queue.name
        );
        for (text, view) in &queue.delivery.views {
            assert!(view.consumers() > 0, "view {text} is there for somebody");
            let mut next = queue.delivery.dispatch.ready().first();
            let mut found = 0;
            while let Some((priority, order)) = next {
                let message = store.message(store.message_of(order));
                let shown = view.dispatch().ready().contains(priority, order);
                let certain = view.is_certain((priority, order));
                found += u64::from(shown);
                if let Some(body) = self.here(message) {
                    let wanted = Seen::of(message, body, self.formats()).matches(view.selector());
                    assert!(!shown || wanted, "view {text} shows what matches");
                    assert!(shown || !wanted || !certain, "view {text} shows all that matches");
                }
                next = queue.delivery.dispatch.ready().first_from(priority, order + 1);
            }
            assert_eq!(view.dispatch().ready().count(), found, "view {text} shows ready messages");
            for (ticket, key) in view.dispatch().waiting() {
                assert_eq!(sessions.ticket_of(*key), Some(*ticket), "who waits at {text} waits");
            }
        }
    }
}
