//! Every invariant of the engine, spelled out. Tests and the simulation check after each step.

pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod publishing;

use alloc::collections::BTreeMap;

use model::{Lsn, MessageId, Nanos};
use records::place_of;

use crate::admission::WaitListId;
use crate::bodies::Bodies;
use crate::delivery::dead_letters::SCARCE_RETRY;
use crate::delivery::{CreditConsumer, Interest};
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::sessions::{Consumer, Session, Sessions};
use crate::store::MessageStore;
use crate::store::message::{Message, State};
use crate::store::queue::Queue;
use crate::store::timers::Timer;

impl Bodies {
    pub(crate) fn check_onlookers(
        &self,
        slot: QueueSlot,
        queue: &Queue,
        sessions: &Sessions,
        store: &MessageStore,
    ) {
        let goes_on = queue.delivery.resumes.is_some() || self.will_look(slot);
        let is_unsure = queue.is_expiring(store.latest) && queue.delivery.pause.is_none();
        for key in &queue.delivery.draining {
            let credit_consumer =
                sessions.credit_consumer(*key).filter(|credit_consumer| credit_consumer.draining());
            let credit_consumer = credit_consumer.expect("who drains is to be told");
            let is_told_soon = goes_on || is_unsure || credit_consumer.is_held_back();
            assert!(is_told_soon, "a consumer of {} drains though it has had all", queue.name);
        }
        for key in &queue.delivery.browsers {
            let credit_consumer = sessions.credit_consumer(*key);
            let credit_consumer = credit_consumer.expect("who looks on is there");
            let Interest::Browse(browsing) = credit_consumer.interest() else {
                panic!("it does look on")
            };
            assert!(
                credit_consumer.has_credit() && browsing.resumes().is_none(),
                "it waits for more"
            );
            let (priority, order) = browsing.next();
            let next = queue.delivery.dispatch.ready().first_from(priority, order);
            assert_eq!(next, None, "who has seen all has nothing before it");
        }
    }

    pub(crate) fn check_credit_consumer(
        &self,
        key: ConsumerKey,
        credit_consumer: &CreditConsumer,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> usize {
        assert!(sessions.consumer(key).is_none(), "a link is a consumer of one kind");
        assert!(
            credit_consumer.delivered() <= credit_consumer.limit(),
            "nobody gets more than it may"
        );
        let queue = store.queues.at(credit_consumer.queue());
        assert!(queue.delivery.consumers.contains(&key), "a queue knows its consumers");
        match credit_consumer.interest() {
            Interest::Browse(browsing) => {
                let awaits = self.has_browser(key);
                let rests = browsing.resumes().is_none() && credit_consumer.has_credit();
                let is_known = queue.delivery.browsers.contains(&key);
                assert!(is_known == rests || awaits, "who looks on is known");
                let goes_on = browsing.resumes().is_some() || awaits;
                assert!(!credit_consumer.draining() || goes_on, "who drains goes on");
                store.check_timer(Timer::Browse(key), browsing.resumes())
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

    /// Gives the number of its timers.
    pub(crate) fn check_session(
        &self,
        slot: SessionSlot,
        session: &Session,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> usize {
        let found = sessions.slot(session.id()) == Some(slot);
        assert_eq!(
            found,
            session.closing().is_none(),
            "a session is found by its id until it closes"
        );
        for (until, id) in session.leases() {
            let state = store.messages.get(id.0).map(|message| message.state());
            let expected = State::Leased { holder: slot, until: *until };
            assert_eq!(state, Some(expected), "message {id} is leased by who holds it");
        }
        for id in session.held() {
            let state = store.messages.get(id.0).map(|message| message.state());
            let is_its = matches!(state, Some(State::Held { holder, .. }) if holder == slot);
            assert!(is_its, "message {id} is held by who holds it");
        }
        let mut timers = store.check_timer(Timer::Lease(slot), session.first_lease());
        for (link, consumer) in session.consumers() {
            let key = ConsumerKey { session: slot, link: *link };
            timers += store.check_consumer(key, session, consumer);
        }
        for (link, credit_consumer) in session.credit_consumers() {
            timers += self.check_credit_consumer(
                ConsumerKey { session: slot, link: *link },
                credit_consumer,
                sessions,
                store,
            );
        }
        for link in session.margins() {
            let wait = session.consumers().get(link).and_then(|consumer| consumer.wait());
            assert!(wait.is_some_and(|wait| wait.margin() > Nanos::ZERO), "a margin is waited for");
        }
        timers
    }
}

impl MessageStore {
    /// Checks what a message says of itself; `last` is the last frame of the log.
    ///
    /// # Panics
    /// When it contradicts itself.
    pub(crate) fn check_message(&self, id: MessageId, message: &Message, last: Lsn) {
        assert!(0 < id.0 && id < self.next_message(), "message {id} has a number given out");
        assert!(!message.body_missing(), "message {id} has its body");
        let in_log = message.is_journalled();
        assert!(!in_log || message.location() <= last, "message {id} lies in a frame that exists");
        assert!(message.changed() <= last, "message {id} changed in a frame that exists");
        let is_paged_out = message.body().here().is_none();
        let has_place = message.location() > Lsn::ZERO;
        assert_eq!(in_log || is_paged_out, has_place, "message {id} is in the log as it should");
        assert_eq!(in_log, message.record_bytes() > 0, "message {id} has a record of some size");
        assert!(message.created() <= self.latest, "message {id} is from the past");
        let order = message.order(id);
        let (above, below) = self.places_given_out();
        let given_out = above < order && order < place_of(MessageId(below));
        assert!(given_out && order != 0, "message {id} has an order given out");
        assert_eq!(self.message_of(order), id, "the order of message {id} leads back to it");
    }

    /// Checks what users have.
    pub(crate) fn check_accounts(&self) {
        let messages = self.messages.iter_from(0);
        let owned =
            messages.filter_map(|(_, message)| Some((message.account()?, message.body_bytes())));
        let owners = self.queues.iter().filter_map(|(_, queue)| queue.usage().owner());
        self.queues.accounts().check(owned, owners);
    }

    /// Checks what expires in each queue, in one pass over all messages.
    pub(crate) fn check_expiring(&self) {
        let mut found: BTreeMap<QueueSlot, usize> = BTreeMap::new();
        for (number, message) in self.messages.iter_from(0) {
            let (state, slot) = (message.state(), message.queue());
            let Some(at) = message.expires().filter(|_| state.holder().is_none()) else { continue };
            let queue = self.queues.at(slot);
            let known = queue.expires(at, MessageId(number));
            let hidden_until = self.latest + SCARCE_RETRY;
            let hidden = at <= self.latest
                && matches!(state, State::Delayed { until } if until <= hidden_until);
            assert!(known || hidden, "what expires in {} is known, or hidden", queue.name);
            *found.entry(slot).or_default() += usize::from(known);
        }
        for (slot, queue) in self.queues.iter() {
            let found = found.remove(&slot).unwrap_or(0);
            assert_eq!(found, queue.expiring_count(), "what expires in {} is in it", queue.name);
        }
    }

    pub(crate) fn queue_timers(&self, slot: QueueSlot, queue: &Queue) -> usize {
        self.check_timer(Timer::Forget(slot), queue.forgets_at())
            + self.check_timer(Timer::Delay(slot), queue.first_delay())
            + self.check_timer(Timer::Pause(slot), queue.pause_ends())
            + self.check_timer(Timer::Expire(slot), queue.first_expiry())
            + self.check_timer(Timer::Resume(slot), queue.delivery.resumes)
            + self.check_timer(Timer::End(slot), queue.lifetime().at)
            + self.check_timer(Timer::Admit(WaitListId::Queue(slot)), queue.admission.line.due())
    }

    pub(crate) fn check_consumer(
        &self,
        key: ConsumerKey,
        session: &Session,
        consumer: &Consumer,
    ) -> usize {
        for &slot in consumer.watched() {
            let queue = self.queues.at(slot);
            assert!(queue.delivery.consumers.contains(&key), "a queue knows its consumers");
            let waiting = consumer
                .wait()
                .and_then(|wait| queue.delivery.dispatch.waiting().get(&wait.ticket()));
            let expected = consumer.wait().map(|_| &key);
            assert_eq!(waiting, expected, "who waits is entered in each queue it watches");
        }
        let Some(wait) = consumer.wait() else { return 0 };
        let wants_margin = wait.margin() > Nanos::ZERO;
        assert_eq!(session.margins().contains(&key.link), wants_margin, "margins are known");
        let margin = session.margin_begins(key.link, session.first_lease());
        self.check_timer(Timer::Wait(key), wait.until())
            + self.check_timer(Timer::Margin(key), margin)
    }

    pub(crate) fn check_timer(&self, timer: Timer, at: Option<Nanos>) -> usize {
        let Some(at) = at else { return 0 };
        assert!(self.timers.contains(at, timer), "{timer:?} is set for {at}");
        1
    }
}

impl Sessions {
    /// The place in the line of a consumer that waits.
    pub(crate) fn ticket_of(&self, key: ConsumerKey) -> Option<u64> {
        match self.credit_consumer(key) {
            Some(credit_consumer) => credit_consumer.ticket(),
            None => self.consumer(key)?.wait().map(|wait| wait.ticket()),
        }
    }

    /// Checks that a message is in the index of its state. The counts show that it is in no other.
    pub(crate) fn check_index(&self, id: MessageId, message: &Message, store: &MessageStore) {
        let queue = store.queues.get(message.queue());
        let queue = queue.unwrap_or_else(|| panic!("the queue of message {id} exists"));
        let place = (message.priority(), message.order(id));
        let indexed = match message.state() {
            State::Leased { holder, until } => self.at(holder).leases().contains(&(until, id)),
            State::Held { holder, .. } => self.at(holder).held().contains(&id),
            state => queue.has_indexed(id, state, place),
        };
        if let State::Buried { order } = message.state() {
            let is_given_out = store.has_buried_place(order);
            assert!(is_given_out, "message {id} was buried in a place given out");
        }
        assert!(indexed, "message {id} is in the index of its state");
    }

    pub(crate) fn check_links(&self, store: &MessageStore) {
        let sessions = || self.iter().map(|(_, session)| session);
        let consumers = || sessions().flat_map(|session| session.consumers().values());
        let waiting = consumers().filter(|consumer| consumer.wait().is_some());
        let credit_consumers =
            || sessions().flat_map(|session| session.credit_consumers().values());
        let waiting_credit_consumers =
            credit_consumers().filter(|credit_consumer| credit_consumer.ticket().is_some()).count();
        assert_eq!(
            (waiting.count() + waiting_credit_consumers) as u64,
            store.waiting(),
            "consumers that wait"
        );
        let choosy = credit_consumers()
            .filter(|credit_consumer| credit_consumer.view().is_some())
            .count() as u64;
        let views = store.queues.iter().flat_map(|(_, queue)| queue.delivery.views.values());
        let viewers: u64 = views.map(|view| view.consumers()).sum();
        assert_eq!(viewers, choosy, "consumers with a selector");
        let watched: usize = consumers().map(|consumer| consumer.watched().len()).sum();
        let watched = watched + credit_consumers().count();
        let watching: usize =
            store.queues.iter().map(|(_, queue)| queue.delivery.consumers.len()).sum();
        assert_eq!(watching, watched, "consumers, summed over queues");
        let waits = consumers().filter(|consumer| consumer.wait().is_some());
        let entered: usize = waits.map(|consumer| consumer.watched().len()).sum();
        let entries: u64 = store.queues.iter().map(|(_, queue)| queue.waiting_count()).sum();
        assert_eq!(
            entries,
            (entered + waiting_credit_consumers) as u64,
            "places of those who wait"
        );
    }
}
