//! Every invariant of the engine, spelled out. Tests and the simulation check after each step.

use model::{Lsn, MessageId, Nanos};

use crate::engine::Engine;
use crate::message::{Message, State};
use crate::queue::{Counts, Queue, QueueSlot};
use crate::session::{Consumer, ConsumerKey, Session, SessionSlot};
use crate::timers::Timer;

impl Engine {
    /// Verifies every invariant; takes time that grows with the number of messages.
    ///
    /// # Panics
    /// When one is broken, naming it.
    pub fn check(&self) {
        assert!(self.log.is_sealed(), "no frame is open between commands");
        for (number, message) in self.messages.iter_from(0) {
            self.check_message(MessageId(number), message);
        }
        for (slot, queue) in self.queues.iter() {
            self.check_queue(slot, queue);
        }
        for (name, _) in self.queue_policies.kept() {
            assert!(self.queues.find(name.as_str()).is_some(), "queue {name} is kept");
        }
        let mut timers =
            self.queues.iter().map(|(slot, queue)| self.queue_timers(slot, queue)).sum();
        for (slot, session) in self.sessions.iter() {
            timers += self.check_session(slot, session);
        }
        assert_eq!(self.timers.len(), timers, "no timer is set for nothing");
        self.check_sums();
        self.check_publishing();
    }

    fn check_message(&self, id: MessageId, message: &Message) {
        assert!(0 < id.0 && id.0 < self.next.message, "message {id} has a number given out");
        assert!(!message.body_missing, "message {id} has its body");
        let last = self.log.last;
        assert!(message.location <= last, "message {id} lies in a frame that exists");
        assert!(message.changed <= last, "message {id} changed in a frame that exists");
        let in_log = message.location > Lsn::ZERO;
        assert_eq!(message.is_journalled(), in_log, "message {id} is in the log as it should");
        assert_eq!(in_log, message.record_bytes > 0, "message {id} has a record of some size");
        assert!(message.created <= self.latest, "message {id} is from the past");
        let order = message.order(id);
        assert!(order < self.next.message, "message {id} has an order given out");
        assert_eq!(self.message_of(order), id, "the order of message {id} leads back to it");
        self.check_index(id, message, order);
    }

    /// In the index of its state. That it is in no other follows from the counts.
    fn check_index(&self, id: MessageId, message: &Message, order: u64) {
        let queue = self.queues.get(message.queue);
        let queue = queue.unwrap_or_else(|| panic!("the queue of message {id} exists"));
        let indexed = match message.state() {
            State::Ready => queue.ready.contains(message.priority, order),
            State::Delayed { until } => queue.delayed.contains(&(until, id)),
            State::Buried { order } => {
                assert!(order < self.next.buried, "message {id} was buried in a place given out");
                queue.buried.get(&order) == Some(&id)
            }
            State::Leased { holder, until } => {
                self.sessions.at(holder).leases.contains(&(until, id))
            }
        };
        assert!(indexed, "message {id} is in the index of its state");
    }

    fn check_queue(&self, slot: QueueSlot, queue: &Queue) {
        let name = &queue.name;
        let found = self.queues.find(name.as_str()) == Some(slot);
        assert_eq!(found, queue.is_named(), "queue {name} is found by its name if it has one");
        assert!(!queue.is_idle(), "queue {name} is there for something");
        let counts = &queue.counts;
        assert_eq!(counts.ready, queue.ready.count(), "ready in {name}");
        assert_eq!(counts.delayed, queue.delayed.len() as u64, "delayed in {name}");
        assert_eq!(counts.buried, queue.buried.len() as u64, "buried in {name}");
        assert!(
            queue.waiting.is_empty() || queue.next_ready().is_none(),
            "nobody waits for queue {name} while it has a message to give"
        );
        for (ticket, key) in &queue.waiting {
            let consumer = self.sessions.consumer(*key);
            let waits = consumer.and_then(|consumer| consumer.wait);
            assert_eq!(waits.map(|wait| wait.ticket), Some(*ticket), "who waits in {name} waits");
            assert!(*ticket < self.next.ticket, "a ticket was given out");
        }
    }

    fn queue_timers(&self, slot: QueueSlot, queue: &Queue) -> usize {
        self.check_timer(Timer::Forget(slot), queue.forgets_at())
            + self.check_timer(Timer::Delay(slot), queue.first_delay())
            + self.check_timer(Timer::Pause(slot), queue.pause_ends())
    }

    /// Gives the number of its timers.
    fn check_session(&self, slot: SessionSlot, session: &Session) -> usize {
        let found = self.sessions.slot(session.id) == Some(slot);
        assert_eq!(found, !session.closing, "a session is found by its id until it closes");
        for (until, id) in &session.leases {
            let state = self.messages.get(id.0).map(|message| message.state());
            let expected = State::Leased { holder: slot, until: *until };
            assert_eq!(state, Some(expected), "message {id} is leased by who holds it");
        }
        let mut timers = self.check_timer(Timer::Lease(slot), session.first_lease());
        for (link, consumer) in &session.consumers {
            let key = ConsumerKey { session: slot, link: *link };
            timers += self.check_consumer(key, session, consumer);
        }
        for link in &session.margins {
            let wait = session.consumers.get(link).and_then(|consumer| consumer.wait);
            assert!(wait.is_some_and(|wait| wait.margin > Nanos::ZERO), "a margin is waited for");
        }
        timers
    }

    fn check_consumer(&self, key: ConsumerKey, session: &Session, consumer: &Consumer) -> usize {
        for &slot in &consumer.watched {
            let queue = self.queues.at(slot);
            assert!(queue.consumers.contains(&key), "a queue knows its consumers");
            let waiting = consumer.wait.and_then(|wait| queue.waiting.get(&wait.ticket));
            let expected = consumer.wait.map(|_| &key);
            assert_eq!(waiting, expected, "who waits is entered in each queue it watches");
        }
        let Some(wait) = consumer.wait else { return 0 };
        let wants_margin = wait.margin > Nanos::ZERO;
        assert_eq!(session.margins.contains(&key.link), wants_margin, "margins are known");
        let margin = session.margin_begins(key.link, session.first_lease());
        self.check_timer(Timer::Wait(key), wait.until)
            + self.check_timer(Timer::Margin(key), margin)
    }

    fn check_timer(&self, timer: Timer, at: Option<Nanos>) -> usize {
        let Some(at) = at else { return 0 };
        assert!(self.timers.contains(at, timer), "{timer:?} is set for {at}");
        1
    }

    /// Sums over all messages, queues and sessions equal what is kept.
    fn check_sums(&self) {
        let mut totals = Counts::default();
        let mut reordered = 0;
        let mut picture = 0;
        for (number, message) in self.messages.iter_from(0) {
            picture += self.picture_bytes_of(message);
            totals.add(message.state(), message.priority);
            reordered += usize::from(message.order(MessageId(number)) != number);
        }
        for (_, entry) in self.subscriptions.iter_from(0) {
            picture += Self::picture_bytes_of_subscription(entry.record_bytes);
        }
        assert_eq!(picture, self.totals.picture_bytes, "what a snapshot may take");
        assert_eq!(totals, self.totals.counts, "messages by state");
        assert_eq!(totals.sum(), self.messages.len() as u64, "messages in all");
        assert_eq!(reordered, self.reordered.len(), "messages out of their order");
        let by_queue = self.queues.iter().map(|(_, queue)| queue.counts);
        let by_queue = by_queue.fold(Counts::default(), |sum, counts| sum.plus(&counts));
        assert_eq!(by_queue, totals, "messages by state, summed over queues");
        let leases: usize = self.sessions.iter().map(|(_, session)| session.leases.len()).sum();
        assert_eq!(leases as u64, totals.leased, "leases of all sessions");
        let named = self.queues.iter().filter(|(_, queue)| queue.is_named());
        assert_eq!(named.count(), self.queues.count(), "queues by name");
        let open = self.sessions.iter().filter(|(_, session)| !session.closing);
        assert_eq!(open.count(), self.sessions.count(), "sessions by id");
        self.check_links();
    }

    fn check_links(&self) {
        let sessions = || self.sessions.iter().map(|(_, session)| session);
        let consumers = || sessions().flat_map(|session| session.consumers.values());
        let waiting = consumers().filter(|consumer| consumer.wait.is_some());
        assert_eq!(waiting.count() as u64, self.totals.waiting, "consumers that wait");
        let watched: usize = consumers().map(|consumer| consumer.watched.len()).sum();
        let watching: usize = self.queues.iter().map(|(_, queue)| queue.consumers.len()).sum();
        assert_eq!(watching, watched, "consumers, summed over queues");
        let waits = consumers().filter(|consumer| consumer.wait.is_some());
        let entered: usize = waits.map(|consumer| consumer.watched.len()).sum();
        let entries: usize = self.queues.iter().map(|(_, queue)| queue.waiting.len()).sum();
        assert_eq!(entries, entered, "places of those who wait");
    }
}
