//! Consumers that look at the ready messages of a queue, from the first to the last, and change
//! nothing.
//!
//! Such a consumer has a place in the queue's order. It is shown the messages behind that place, in
//! steps of so many messages. A consumer that has seen all is shown messages that come behind its
//! place later. It does not see messages that come before its place. A pause does not concern it.

use model::{MessageId, Nanos, limits};
use selector::Selector;

use crate::bodies::Bodies;
use crate::delivery::matching::{Seen, looks_of, steps_of};
use crate::delivery::{Browsing, Interest};
use crate::ids::ConsumerKey;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::whose_place;
use crate::store::timers::Timer;

/// Why a step of looking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The consumer may have no more.
    Full,
    /// Nothing stands behind its place.
    End,
    /// It is enough for one step.
    Tired,
    /// A body that it would look into is away.
    Awaits(MessageId),
}

impl Browsing {
    pub(crate) fn new(selector: Option<Selector>) -> Self {
        Self { selector, next: (0, i64::MIN), resumes: None }
    }

    pub(crate) const fn next(&self) -> (u32, i64) {
        self.next
    }

    pub(crate) const fn resumes(&self) -> Option<Nanos> {
        self.resumes
    }
}

impl Bodies {
    /// Looks at one message more; gives it if the consumer wants it.
    pub(crate) fn look_on(
        &self,
        key: ConsumerKey,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Result<Option<MessageId>, Stop> {
        store.took_steps(sessions.browsed_by(key).map_or(1, steps_of));
        let credit_consumer = sessions.credit_consumer_mut(key).ok_or(Stop::End)?;
        if !credit_consumer.has_credit() {
            return Err(Stop::Full);
        }
        let Interest::Browse(browsing) = &mut credit_consumer.interest else {
            return Err(Stop::End);
        };
        let (priority, order) = browsing.next;
        let ready = store.queues.at(credit_consumer.queue).delivery.dispatch.ready();
        let found = ready.first_from(priority, order);
        let (priority, order) = found.ok_or(Stop::End)?;
        let id = whose_place(&store.reordered, order);
        let message = store.messages.get(id.0).ok_or(Stop::End)?;
        let is_wanted = match (&browsing.selector, self.here(message)) {
            (None, _) => true,
            (Some(selector), Some(body)) => {
                Seen::of(message, body, self.formats()).matches(selector)
            }
            (Some(_), None) => return Err(Stop::Awaits(id)),
        };
        browsing.next = (priority, order + 1);
        let is_over = message.expires().is_some_and(|at| at <= store.latest);
        Ok((is_wanted && !is_over).then_some(id))
    }
}

impl Sessions {
    /// A browser is shown a message, which it does not take.
    pub(crate) fn record_shown(&mut self, key: ConsumerKey) {
        if let Some(credit_consumer) = self.credit_consumer_mut(key) {
            assert!(credit_consumer.has_credit(), "a consumer gets no more than it may");
            credit_consumer.delivered += 1;
        }
    }

    /// How many messages a consumer looks at in one step: fewer by a selector that takes long.
    pub(crate) fn looks_at_once(&self, key: ConsumerKey) -> usize {
        limits::SCAN_MESSAGES_MAX / self.browsed_by(key).map_or(1, looks_of).max(1)
    }

    pub(crate) fn browsed_by(&self, key: ConsumerKey) -> Option<&Selector> {
        match &self.credit_consumer(key)?.interest {
            Interest::Browse(browsing) => browsing.selector.as_ref(),
            Interest::Take { .. } => None,
        }
    }

    /// A consumer stops looking, for now: until its turn comes again, there is more, or it may have
    /// more.
    pub(crate) fn rest(&mut self, key: ConsumerKey, stop: Stop, store: &mut MessageStore) {
        let resumes = (stop == Stop::Tired).then_some(store.latest);
        let Some(credit_consumer) = self.credit_consumer_mut(key) else { return };
        let is_idle = stop == Stop::End && credit_consumer.has_credit();
        let Interest::Browse(browsing) = &mut credit_consumer.interest else { return };
        let before = core::mem::replace(&mut browsing.resumes, resumes);
        let browsers = &mut store.queues.at_mut(credit_consumer.queue).delivery.browsers;
        if is_idle {
            browsers.insert(key);
        } else {
            browsers.remove(&key);
        }
        store.timers.change(Timer::Browse(key), before, resumes);
    }
}
