//! Consumers that look at the ready messages of a queue, from the first to the last, and change
//! nothing.
//!
//! Such a consumer has a place in the queue's order. It is shown what stands behind that, in steps
//! of so many messages; who has seen all is shown what comes behind its place later. What comes
//! before it, it does not see. A pause does not concern it.

use alloc::vec::Vec;

use model::{MessageId, Nanos, limits};
use selector::Selector;

use crate::Effects;
use crate::engine::{Engine, MessageStore};
use crate::feeding::Interest;
use crate::matching::{Seen, looks_of, steps_of};
use crate::moving::whose_place;
use crate::queue::QueueSlot;
use crate::session::{ConsumerKey, Sessions};
use crate::timers::Timer;

/// How far a consumer has looked.
#[derive(Debug)]
pub(crate) struct Browsing {
    pub(crate) selector: Option<Selector>,
    /// The next (priority, order) to look at.
    pub(crate) next: (u32, i64),
    /// When it goes on with what was too much for one step.
    pub(crate) resumes: Option<Nanos>,
}

/// Why a step of looking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
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
}

impl Engine {
    /// Shows a consumer the next messages, as many as one step may.
    pub(crate) fn browse(&mut self, key: ConsumerKey, effects: &mut Effects) {
        let mut stop = Stop::Tired;
        for _ in 0..self.sessions.looks_at_once(key) {
            match self.look_on(key) {
                Ok(Some(id)) => self.show(key, id, effects),
                Ok(None) => {}
                Err(reason) => {
                    stop = reason;
                    break;
                }
            }
        }
        match stop {
            Stop::Full | Stop::End => {
                self.sessions.end_drain(key, &mut self.store, &self.log, effects)
            }
            Stop::Tired => {}
            Stop::Awaits(id) => {
                let is_away = self.bodies.want(id, &self.store);
                assert!(is_away, "it could not be looked into");
                self.bodies.awaited.browsers.insert(key);
            }
        }
        self.sessions.rest(key, stop, &mut self.store);
    }

    /// Shows what has become ready to those who have seen all else. Where they are many, or their
    /// selectors take long, the rest look in steps of their own.
    pub(crate) fn show_to_browsers(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let Some(queue) = self.store.queues.get(slot) else { return };
        if queue.delivery.browsers.is_empty() {
            return;
        }
        let browsers: Vec<_> = queue.delivery.browsers.iter().copied().collect();
        let before = self.store.totals.steps;
        for key in browsers {
            if self.store.totals.steps - before < BROWSING_STEPS_MAX {
                self.browse(key, effects);
            } else {
                self.sessions.rest(key, Stop::Tired, &mut self.store);
            }
        }
    }

    /// Looks at one message more; gives it if the consumer wants it.
    fn look_on(&mut self, key: ConsumerKey) -> Result<Option<MessageId>, Stop> {
        self.store.took_steps(self.sessions.browsed_by(key).map_or(1, steps_of));
        let feed = self.sessions.feed_mut(key).ok_or(Stop::End)?;
        if !feed.is_hungry() {
            return Err(Stop::Full);
        }
        let Interest::Browse(browsing) = &mut feed.interest else { return Err(Stop::End) };
        let (priority, order) = browsing.next;
        let found =
            self.store.queues.at(feed.queue).delivery.dispatch.ready().first_from(priority, order);
        let (priority, order) = found.ok_or(Stop::End)?;
        let id = whose_place(&self.store.reordered, order);
        let message = self.store.messages.get(id.0).ok_or(Stop::End)?;
        let is_wanted = match (&browsing.selector, self.bodies.sharing.here(message)) {
            (None, _) => true,
            (Some(selector), Some(body)) => {
                Seen::of(message, body, &self.context.formats).matches(selector)
            }
            (Some(_), None) => return Err(Stop::Awaits(id)),
        };
        browsing.next = (priority, order + 1);
        let is_over = message.expires().is_some_and(|at| at <= self.store.latest);
        Ok((is_wanted && !is_over).then_some(id))
    }

    fn show(&mut self, key: ConsumerKey, id: MessageId, effects: &mut Effects) {
        let Some(feed) = self.sessions.feed_mut(key) else { return };
        feed.delivered += 1;
        let (after, reply) = self.delivered(Some(key.link), id);
        effects.reply(self.sessions.at(key.session).identity.id, after, reply);
    }
}

impl Sessions {
    /// How many messages a consumer looks at in one step: fewer by a selector that takes long.
    fn looks_at_once(&self, key: ConsumerKey) -> usize {
        limits::SCAN_MESSAGES_MAX / self.browsed_by(key).map_or(1, looks_of).max(1)
    }

    fn browsed_by(&self, key: ConsumerKey) -> Option<&Selector> {
        match &self.feed(key)?.interest {
            Interest::Browse(browsing) => browsing.selector.as_ref(),
            Interest::Take { .. } => None,
        }
    }

    /// A consumer stops looking, for now: until its turn comes again, there is more, or it may have
    /// more.
    fn rest(&mut self, key: ConsumerKey, stop: Stop, store: &mut MessageStore) {
        let resumes = (stop == Stop::Tired).then_some(store.latest);
        let Some(feed) = self.feed_mut(key) else { return };
        let is_idle = stop == Stop::End && feed.is_hungry();
        let Interest::Browse(browsing) = &mut feed.interest else { return };
        let before = core::mem::replace(&mut browsing.resumes, resumes);
        let browsers = &mut store.queues.at_mut(feed.queue).delivery.browsers;
        if is_idle {
            browsers.insert(key);
        } else {
            browsers.remove(&key);
        }
        store.timers.change(Timer::Browse(key), before, resumes);
    }
}

/// Steps after which those who look on for one message more take turns.
const BROWSING_STEPS_MAX: u64 = 16_384;
