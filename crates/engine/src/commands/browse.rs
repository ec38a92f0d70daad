//! Commands that look at messages without taking them: browsing, pages, statistics.

use alloc::vec::Vec;

use model::{MessageId, Peek, Refusal};

use crate::Effects;
use crate::delivery::browsing::Stop;
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::store::queue::Queue;

impl Engine {
    /// Shows a consumer the next messages, as many as one step may.
    pub(crate) fn browse(&mut self, key: ConsumerKey, effects: &mut Effects) {
        let mut stop = Stop::Tired;
        for _ in 0..self.sessions.looks_at_once(key) {
            let Self { store, bodies, sessions, .. } = self;
            match bodies.look_on(key, sessions, store) {
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
                self.bodies.await_for(key, id, &self.store);
            }
        }
        self.sessions.rest(key, stop, &mut self.store);
    }

    /// Shows new ready messages to the browsers that have seen all others. If the browsers are
    /// many, or their selectors take long, the rest look in steps of their own.
    pub(crate) fn show_to_browsers(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let Some(queue) = self.store.queues.get(slot) else { return };
        if queue.delivery.browsers.is_empty() {
            return;
        }
        let browsers: Vec<_> = queue.delivery.browsers.iter().copied().collect();
        let before = self.store.steps();
        for key in browsers {
            if self.store.steps() - before < BROWSING_STEPS_MAX {
                self.browse(key, effects);
            } else {
                self.sessions.rest(key, Stop::Tired, &mut self.store);
            }
        }
    }

    fn show(&mut self, key: ConsumerKey, id: MessageId, effects: &mut Effects) {
        self.sessions.record_shown(key);
        let (after, reply) =
            self.directory.delivered(Some(key.link), id, &self.bodies, &self.store);
        effects.reply(self.sessions.at(key.session).id(), after, reply);
    }
}

impl Engine {
    pub(crate) fn peek(&self, by: SessionSlot, which: Peek) -> Outcome {
        let queue = |link| {
            let slot = self.sessions.producer_queue(by, link)?;
            Some(self.store.queues.at(slot))
        };
        let first_ready = |queue: &Queue| {
            let first = queue.delivery.dispatch.ready().first();
            first.map(|(_, order)| self.store.message_of(order))
        };
        let first = match which {
            Peek::Message(id) => Some(Some(id)),
            Peek::Ready(link) => queue(link).map(first_ready),
            Peek::Delayed(link) => queue(link).map(|it| it.first_delayed().map(|(_, id)| id)),
            Peek::Buried(link) => queue(link).map(Queue::first_buried),
        };
        match first {
            Some(first) => self.bodies.found(first, &self.store, &self.log),
            None => Outcome::refused(Refusal::NoSuchLink),
        }
    }
}

/// Steps after which browsers that look for one message more take turns.
const BROWSING_STEPS_MAX: u64 = 16_384;
