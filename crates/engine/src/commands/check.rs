//! The invariants that hold between all calls, for tests.

use alloc::collections::BTreeMap;
use core::slice;

use model::MessageId;
use records::place_of;

use crate::admission::WaitListId;
use crate::engine::Engine;
use crate::ids::QueueSlot;
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::store::queue::{Counts, Queue};

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
            self.sessions.check_index(id, message, &self.store);
        }
        for (slot, queue) in self.store.queues.iter() {
            self.check_queue(slot, queue);
        }
        self.store.check_expiring();
        self.store.check_accounts();
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
            timers += self.bodies.check_session(slot, session, &self.sessions, &self.store);
        }
        self.sessions.check_message_groups(&self.store);
        self.store.queues.iter().for_each(|(slot, queue)| self.check_first_in_line(slot, queue));
        timers += self.keyspace.check_waits(&self.sessions, &self.store);
        timers += self.keyspace.check(&self.store)
            + self.admission.check_blocked_sends(&self.sessions, &self.store)
            + self.directory.check_subscription_timers(&self.store);
        assert_eq!(self.store.timers.len(), timers, "no timer is set for nothing");
        self.check_sums();
        self.bodies.check_groups(&self.store);
        self.directory.check_publishing(&self.sessions, &self.store);
        self.dedup.check(self.store.latest);
        self.transactions.check_open(&self.admission, &self.sessions);
        self.sessions.check_settling(&self.store);
        self.sessions.check_lists(&self.store);
        self.keyspace.check_observers(&self.sessions);
        self.bodies.check_memory(&self.store);
        self.bodies.check_awaited(&self.admission, &self.store);
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
        self.bodies.check_views(queue, &self.sessions, &self.store);
        self.bodies.check_onlookers(slot, queue, &self.sessions, &self.store);
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
        self.sessions.check_links(&self.store);
    }
}
