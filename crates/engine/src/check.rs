//! Every invariant of the engine, spelled out. Tests and the simulation check after each step.

pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod publishing;

use model::{Lsn, MessageId, Nanos};
use records::place_of;

use crate::admission::WaitListId;
use crate::bodies::Bodies;
use crate::delivery::Interest;
use crate::delivery::dead_letters::SCARCE_RETRY;
use crate::ids::{ConsumerKey, QueueSlot};
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

    pub(crate) fn check_expiring(&self, slot: QueueSlot, queue: &Queue) {
        let unheld = self
            .messages
            .iter_from(0)
            .filter(|(_, message)| message.queue() == slot && message.state().holder().is_none());
        let expiring = unheld.filter_map(|(number, message)| {
            Some((message.expires()?, MessageId(number), message.state()))
        });
        let mut found = 0;
        for (at, id, state) in expiring {
            let known = queue.expires(at, id);
            found += usize::from(known);
            let hidden_until = self.latest + SCARCE_RETRY;
            let hidden = at <= self.latest
                && matches!(state, State::Delayed { until } if until <= hidden_until);
            assert!(known || hidden, "what expires in {} is known, or hidden", queue.name);
        }
        assert_eq!(found, queue.expiring_count(), "what expires in {} is in it", queue.name);
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
}
