//! The invariants that hold between all calls, for tests.

use alloc::collections::{BTreeMap, BTreeSet};
use core::slice;

use model::{Destination, MessageId, Nanos};
use records::place_of;

use crate::admission::WaitListId;
use crate::delivery::matching::Seen;
use crate::delivery::{CreditConsumer, Interest};
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::sessions::Session;
use crate::store::message::{Message, State};
use crate::store::queue::{Counts, Queue, Role};
use crate::store::timers::Timer;
use crate::transactions::Transaction;

impl Engine {
    /// Verifies every invariant; takes time that grows with the number of messages.
    ///
    /// # Panics
    /// When one is broken, naming it.
    pub fn check(&self) {
        assert!(self.log.is_sealed(), "no frame is open between commands");
        for (number, message) in self.store.messages.iter_from(0) {
            let id = MessageId(number);
            self.store.check_message(id, message, self.log.last());
            self.check_index(id, message);
        }
        for (slot, queue) in self.store.queues.iter() {
            self.check_queue(slot, queue);
        }
        for (name, _) in self.directory.queue_policies().kept() {
            assert!(self.store.queues.find(name.as_str()).is_some(), "queue {name} is kept");
        }
        let mut timers = self
            .store
            .queues
            .iter()
            .map(|(slot, queue)| self.store.queue_timers(slot, queue))
            .sum();
        for (slot, session) in self.sessions.iter() {
            timers += self.check_session(slot, session);
        }
        self.sessions.check_message_groups(&self.store);
        timers += self.keyspace.check(&self.store)
            + self.check_blocked_sends()
            + self.check_subscription_timers();
        assert_eq!(self.store.timers.len(), timers, "no timer is set for nothing");
        self.check_sums();
        self.check_publishing();
        self.dedup.check(self.store.latest);
        self.check_transactions();
        self.sessions.check_lists(&self.store);
        self.keyspace.check_observers(&self.sessions);
        self.bodies.check_memory(&self.store);
        self.bodies.check_awaited(&self.admission, &self.store);
    }

    fn check_transactions(&self) {
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let all = sessions.flat_map(|session| session.transactions().open().values());
        let (mut bytes, mut waiting) = (0, 0);
        for transaction in all {
            bytes += transaction.bytes();
            waiting += usize::from(transaction.waits());
        }
        assert_eq!(bytes, self.transactions.uncommitted_bytes(), "what is open is counted");
        let blocked = self.admission.commits_without_place();
        assert_eq!(
            waiting,
            self.transactions.awaiting().len() + blocked,
            "who waits for room is known"
        );
        self.admission.check_waiting_parts(&self.sessions);
        for (session, id) in self.transactions.awaiting() {
            let transaction = self.sessions.at(*session).transactions().open().get(id);
            assert!(
                transaction.is_some_and(Transaction::waits),
                "who waits for room has committed"
            );
        }
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let mut settling = BTreeMap::new();
        for id in sessions.flat_map(|session| session.settling()) {
            *settling.entry(self.store.message(*id).queue()).or_insert(0) += 1;
        }
        for (slot, queue) in self.store.queues.iter() {
            assert_eq!(queue.settling(), settling.remove(&slot).unwrap_or(0), "what is settled");
        }
        assert!(settling.is_empty(), "what is settled is in a queue that is there");
    }

    fn check_blocked_sends(&self) -> usize {
        self.store.queues.iter().for_each(|(slot, queue)| self.check_first_in_line(slot, queue));
        self.admission.check_blocked_sends(&self.sessions, &self.store)
    }

    /// The first send that waits for a place lacks one, unless its turn is about to come.
    fn check_first_in_line(&self, slot: QueueSlot, queue: &Queue) {
        let of = WaitListId::Queue(slot);
        let Some(ticket) = queue.admission.line.first() else { return };
        let lacks = || {
            let blocked = self.admission.blocked(ticket);
            let demand = self.places_for(blocked.by, slice::from_ref(&blocked.command));
            self.directory.shortage_of_place(&demand, ticket, &self.store, &self.log).is_some()
        };
        let comes_soon = self.admission.comes_soon(of, &self.store);
        assert!(comes_soon || lacks(), "{ticket} waits for a place in {}", queue.name);
    }

    /// Checks that a message is in the index of its state. The counts show that it is in no other.
    fn check_index(&self, id: MessageId, message: &Message) {
        let queue = self.store.queues.get(message.queue());
        let queue = queue.unwrap_or_else(|| panic!("the queue of message {id} exists"));
        let place = (message.priority(), message.order(id));
        let indexed = match message.state() {
            State::Leased { holder, until } => {
                self.sessions.at(holder).leases().contains(&(until, id))
            }
            State::Held { holder, .. } => self.sessions.at(holder).held().contains(&id),
            state => queue.has_indexed(id, state, place),
        };
        if let State::Buried { order } = message.state() {
            let is_given_out = self.store.has_buried_place(order);
            assert!(is_given_out, "message {id} was buried in a place given out");
        }
        assert!(indexed, "message {id} is in the index of its state");
    }

    fn check_queue(&self, slot: QueueSlot, queue: &Queue) {
        let name = &queue.name;
        let found = self.store.queues.find(name.as_str()) == Some(slot);
        assert_eq!(found, queue.is_named(), "queue {name} is found by its name if it has one");
        assert!(!queue.is_idle(), "queue {name} is there for something");
        queue.check_counts();
        assert!(
            queue.delivery.resumes.is_some()
                || self.bodies.looks_soon(slot)
                || self.store.next_match(slot).is_none(),
            "nobody waits for queue {name} while it has a message to give"
        );
        for (ticket, key) in queue.delivery.dispatch.waiting() {
            assert_eq!(self.sessions.ticket_of(*key), Some(*ticket), "who waits in {name} waits");
            assert!(self.store.has_ticket(*ticket), "a ticket was given out");
        }
        self.directory.check_policy(queue);
        self.directory.check_dead_letters(queue, &self.store);
        self.store.check_expiring(slot, queue);
        self.check_views(queue);
        self.bodies.check_onlookers(slot, queue, &self.sessions, &self.store);
    }

    fn check_views(&self, queue: &Queue) {
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
                let message = self.store.message(self.store.message_of(order));
                let shown = view.dispatch().ready().contains(priority, order);
                let certain = view.is_certain((priority, order));
                found += u64::from(shown);
                if let Some(body) = self.bodies.here(message) {
                    let wanted =
                        Seen::of(message, body, self.bodies.formats()).matches(view.selector());
                    assert!(!shown || wanted, "view {text} shows what matches");
                    assert!(shown || !wanted || !certain, "view {text} shows all that matches");
                }
                next = queue.delivery.dispatch.ready().first_from(priority, order + 1);
            }
            assert_eq!(view.dispatch().ready().count(), found, "view {text} shows ready messages");
            for (ticket, key) in view.dispatch().waiting() {
                assert_eq!(
                    self.sessions.ticket_of(*key),
                    Some(*ticket),
                    "who waits at {text} waits"
                );
            }
        }
    }

    /// Gives the number of its timers.
    fn check_session(&self, slot: SessionSlot, session: &Session) -> usize {
        let found = self.sessions.slot(session.id()) == Some(slot);
        assert_eq!(
            found,
            session.closing().is_none(),
            "a session is found by its id until it closes"
        );
        for (until, id) in session.leases() {
            let state = self.store.messages.get(id.0).map(|message| message.state());
            let expected = State::Leased { holder: slot, until: *until };
            assert_eq!(state, Some(expected), "message {id} is leased by who holds it");
        }
        for id in session.held() {
            let state = self.store.messages.get(id.0).map(|message| message.state());
            let is_its = matches!(state, Some(State::Held { holder, .. }) if holder == slot);
            assert!(is_its, "message {id} is held by who holds it");
        }
        let mut timers = self.store.check_timer(Timer::Lease(slot), session.first_lease());
        for (link, consumer) in session.consumers() {
            let key = ConsumerKey { session: slot, link: *link };
            timers += self.store.check_consumer(key, session, consumer);
        }
        for (link, credit_consumer) in session.credit_consumers() {
            timers += self
                .check_credit_consumer(ConsumerKey { session: slot, link: *link }, credit_consumer);
        }
        for link in session.margins() {
            let wait = session.consumers().get(link).and_then(|consumer| consumer.wait());
            assert!(wait.is_some_and(|wait| wait.margin() > Nanos::ZERO), "a margin is waited for");
        }
        timers
    }

    fn check_credit_consumer(&self, key: ConsumerKey, credit_consumer: &CreditConsumer) -> usize {
        assert!(self.sessions.consumer(key).is_none(), "a link is a consumer of one kind");
        assert!(
            credit_consumer.delivered() <= credit_consumer.limit(),
            "nobody gets more than it may"
        );
        let queue = self.store.queues.at(credit_consumer.queue());
        assert!(queue.delivery.consumers.contains(&key), "a queue knows its consumers");
        match credit_consumer.interest() {
            Interest::Browse(browsing) => {
                let awaits = self.bodies.has_browser(key);
                let rests = browsing.resumes().is_none() && credit_consumer.has_credit();
                let is_known = queue.delivery.browsers.contains(&key);
                assert!(is_known == rests || awaits, "who looks on is known");
                let goes_on = browsing.resumes().is_some() || awaits;
                assert!(!credit_consumer.draining() || goes_on, "who drains goes on");
                self.store.check_timer(Timer::Browse(key), browsing.resumes())
            }
            Interest::Take { view, turn } => {
                let (place, ticket) = (turn.place(), turn.ticket());
                let is_alone = queue.delivery.dispatch.waiting().len() == 1;
                assert!(
                    is_alone || ticket.is_none() || place == ticket,
                    "who waits does so at its place"
                );
                assert_eq!(
                    ticket.is_some(),
                    credit_consumer.has_credit(),
                    "who may have more waits"
                );
                assert_eq!(
                    queue.delivery.draining.contains(&key),
                    credit_consumer.draining(),
                    "who drains is known"
                );
                let line = match view {
                    Some(text) => {
                        queue.delivery.views.get(text).map(|view| view.dispatch().waiting())
                    }
                    None => Some(queue.delivery.dispatch.waiting()),
                };
                let place = ticket.and_then(|ticket| line?.get(&ticket));
                assert_eq!(place.is_some(), ticket.is_some(), "who waits is in the line");
                0
            }
        }
    }

    /// Sums over all messages, queues and sessions equal the kept totals.
    fn check_sums(&self) {
        let mut totals = Counts::default();
        let mut reordered = 0;
        let mut picture = 0;
        let mut bytes = BTreeMap::<_, u64>::new();
        for (number, message) in self.store.messages.iter_from(0) {
            *bytes.entry(message.queue()).or_default() += message.body_bytes();
            picture += self.store.snapshot_bytes_of(message);
            let id = MessageId(number);
            if self.store.is_expired_member(id) {
                totals.add_expired_member();
            } else {
                totals.add(message.state(), message.priority());
            }
            reordered += usize::from(message.order(id) != place_of(id));
        }
        for (_, entry) in self.directory.subscriptions().iter_from(0) {
            picture += snapshot_bytes_of_record(entry.record_bytes());
        }
        picture += self.store.snapshot_bytes_of_lifetimes()
            + self.directory.own_policies().snapshot_bytes();
        picture += self.dedup.snapshot_bytes();
        assert_eq!(picture, self.store.snapshot_bytes(), "what a snapshot may take");
        assert_eq!(totals, *self.store.counts(), "messages by state");
        assert_eq!(totals.sum(), self.store.messages.len() as u64, "messages in all");
        assert_eq!(reordered, self.store.reordered.len(), "messages out of their order");
        for (slot, queue) in self.store.queues.iter() {
            let bytes = bytes.get(&slot).copied().unwrap_or(0);
            assert_eq!(queue.body_bytes(), bytes, "bytes of bodies in {}", queue.name);
        }
        let by_queue = self.store.queues.iter().map(|(_, queue)| *queue.counts());
        let by_queue = by_queue.fold(Counts::default(), |sum, counts| sum.plus(&counts));
        assert_eq!(by_queue, totals, "messages by state, summed over queues");
        let held = self.sessions.iter();
        let held = held.map(|(_, session)| session.leases().len() + session.held().len());
        assert_eq!(held.sum::<usize>() as u64, totals.leased(), "what all sessions hold");
        let named = self.store.queues.iter().filter(|(_, queue)| queue.is_named());
        assert_eq!(named.count(), self.store.queues.count(), "queues by name");
        let open = self.sessions.iter().filter(|(_, session)| session.closing().is_none());
        assert_eq!(open.count(), self.sessions.count(), "sessions by id");
        self.check_links();
    }

    fn check_links(&self) {
        let sessions = || self.sessions.iter().map(|(_, session)| session);
        let consumers = || sessions().flat_map(|session| session.consumers().values());
        let waiting = consumers().filter(|consumer| consumer.wait().is_some());
        let credit_consumers =
            || sessions().flat_map(|session| session.credit_consumers().values());
        let waiting_credit_consumers =
            credit_consumers().filter(|credit_consumer| credit_consumer.ticket().is_some()).count();
        assert_eq!(
            (waiting.count() + waiting_credit_consumers) as u64,
            self.store.waiting(),
            "consumers that wait"
        );
        let choosy = credit_consumers()
            .filter(|credit_consumer| credit_consumer.view().is_some())
            .count() as u64;
        let views = self.store.queues.iter().flat_map(|(_, queue)| queue.delivery.views.values());
        let viewers: u64 = views.map(|view| view.consumers()).sum();
        assert_eq!(viewers, choosy, "consumers with a selector");
        let watched: usize = consumers().map(|consumer| consumer.watched().len()).sum();
        let watched = watched + credit_consumers().count();
        let watching: usize =
            self.store.queues.iter().map(|(_, queue)| queue.delivery.consumers.len()).sum();
        assert_eq!(watching, watched, "consumers, summed over queues");
        let waits = consumers().filter(|consumer| consumer.wait().is_some());
        let entered: usize = waits.map(|consumer| consumer.watched().len()).sum();
        let entries: u64 = self.store.queues.iter().map(|(_, queue)| queue.waiting_count()).sum();
        assert_eq!(
            entries,
            (entered + waiting_credit_consumers) as u64,
            "places of those who wait"
        );
    }
}

impl Engine {
    pub(crate) fn check_publishing(&self) {
        self.bodies.check_groups(&self.store);
        self.directory.check_topics();
        self.directory.check_subscriptions(&self.sessions, &self.store);
        self.directory.check_targets(&self.sessions, &self.store);
        for (slot, session) in self.sessions.iter() {
            self.check_session_parts(slot, session);
        }
        let temporaries = self.sessions.iter().map(|(_, session)| session.temporary().len());
        assert_eq!(temporaries.sum::<usize>(), self.directory.temporaries(), "what is private");
    }

    /// How many end by time, each by its timer.
    pub(crate) fn check_subscription_timers(&self) -> usize {
        let entries = self.directory.subscriptions().iter_from(0);
        let ending = entries.filter_map(|(number, entry)| Some((number, entry.ends_at()?)));
        ending
            .inspect(|(number, at)| {
                assert!(
                    self.store.timers.contains(*at, Timer::Unused(*number)),
                    "{number} ends by time"
                );
            })
            .count()
    }

    fn check_session_parts(&self, slot: SessionSlot, session: &Session) {
        let settled =
            session.transactions().open().values().flat_map(|transaction| transaction.settled());
        let settled: BTreeSet<MessageId> = settled.collect();
        assert_eq!(settled, *session.settling(), "what is settled is known");
        for id in session.settling() {
            let state = self.store.messages.get(id.0).map(|message| Message::state(message));
            let is_held = matches!(state, Some(State::Held { holder, .. }) if holder == slot);
            assert!(is_held, "message {id} is held until its transaction ends");
        }
        for destination in session.temporary() {
            let is_its = match destination {
                Destination::Queue(name) => {
                    let queue = self
                        .store
                        .queues
                        .find(name.as_str())
                        .map(|queue| self.store.queues.at(queue));
                    queue.is_some_and(|queue| queue.role == Role::Temporary(slot))
                }
                Destination::Topic(name) => {
                    let topic = self
                        .directory
                        .topics()
                        .find(name.as_str())
                        .map(|topic| self.directory.topics().at(topic));
                    topic.is_some_and(|topic| topic.temporary() == Some(slot))
                }
            };
            assert!(is_its, "{} goes with its session", destination.name());
        }
        if let Some(client) = session.client() {
            assert_eq!(self.sessions.find_client(client), Some(slot), "one session a client");
        }
    }
}
