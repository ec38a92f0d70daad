//! Commands of consumers with credit: they are delivered messages without asking for each.

use model::{ConsumerMode, DependsOn, LinkId, QueueName, Refusal, Reply};

use crate::Effects;
use crate::delivery::Allowance;
use crate::delivery::matching::{parse_selector, reading_steps};
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::store::queue::{Queue, Role};
use crate::store::timers::Timer;

impl Engine {
    pub(crate) fn open_consumer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        queue: QueueName,
        selector: Option<&str>,
        mode: ConsumerMode,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        if self.sessions.is_consumer(key) {
            return Outcome::refused(Refusal::LinkInUse);
        }
        self.store.took_steps(selector.map_or(0, reading_steps));
        let opened = selector.map(parse_selector).transpose().and_then(|selector| {
            let slot = self.directory.queue_to_consume(by, queue, &mut self.store)?;
            self.bodies
                .open_credit_consumer(
                    key,
                    slot,
                    selector,
                    mode,
                    &mut self.sessions,
                    &mut self.store,
                )
                .map(|()| slot)
        });
        match opened {
            Ok(slot) => Outcome::reply(DependsOn::NOTHING, Reply::Done).waking(slot),
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn close_consumer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        effects: &mut Effects,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        if let Some(slot) = self.sessions.close_credit_consumer(key, &mut self.store) {
            self.part_queue(slot, effects);
        }
        // Each receive is answered, this one before the consumer is gone.
        if self.sessions.end_wait(key, &mut self.store) {
            effects.reply(
                self.sessions.at(by).id(),
                self.log.after_all(),
                Reply::TimedOut { link: Some(link) },
            );
        }
        if let Some(consumer) = self.sessions.at_mut(by).close_consumer(link) {
            for slot in consumer.into_watched() {
                self.store.end_watch(key, slot, None);
                self.directory.remove_if_idle(slot, &mut self.sessions, &mut self.store);
            }
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// A consumer has gone from this queue; the queue may go with it.
    pub(crate) fn part_queue(&mut self, slot: QueueSlot, effects: &mut Effects) {
        match self.store.queues.get(slot).map(|queue| queue.role) {
            Some(Role::Subscription { number, .. }) => self.end_if_unused(number, effects),
            _ => self.directory.remove_if_idle(slot, &mut self.sessions, &mut self.store),
        }
    }

    pub(crate) fn credit(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        allowance: Allowance,
        drain: bool,
        effects: &mut Effects,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        let Some(credit_consumer) = self.sessions.credit_consumer_mut(key) else {
            return Outcome::NOTHING;
        };
        credit_consumer.allow(allowance, drain);
        let (slot, takes) = (credit_consumer.queue(), credit_consumer.takes());
        if !takes {
            self.browse(key, effects);
            return Outcome::NOTHING;
        }
        self.sessions.line_up(key, &mut self.store);
        let queue = self.store.queues.at_mut(slot);
        if drain {
            queue.delivery.draining.insert(key);
        } else {
            queue.delivery.draining.remove(&key);
        }
        Outcome::NOTHING.waking(slot)
    }

    /// The queue goes on with the work that was too much for one step.
    pub(crate) fn resume(&mut self, slot: QueueSlot, effects: &mut Effects) -> QueueSlot {
        let before = self.store.queues.at_mut(slot).delivery.resumes.take();
        self.store.timers.change(Timer::Resume(slot), before, None);
        self.bodies.scan_views(slot, &mut self.store);
        self.evict_dead_letters(slot, effects);
        slot
    }
}

impl Engine {
    /// Disconnects the consumers of a subscription that holds too much.
    pub(crate) fn cut_off(&mut self, slot: QueueSlot, effects: &mut Effects) {
        if !self.store.is_bounded() {
            return;
        }
        let Some(full) = self.store.queues.get(slot).and_then(Queue::cuts_off) else { return };
        self.sessions.dismiss_consumers(slot, Some(&full), &mut self.store, effects);
        self.part_queue(slot, effects);
    }
}
