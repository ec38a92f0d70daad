//! Commands of consumers that ask for one message: opening, watching, receiving, giving up.

use model::{LinkId, MessageId, Nanos, Refusal, Reply, limits};

use crate::Effects;
use crate::delivery::receiving::Wanted;
use crate::delivery::woken::Woken;
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::store::message::State;
use crate::store::timers::Timer;

impl Engine {
    pub(crate) fn receive(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        wanted: Wanted,
        effects: &mut Effects,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link };
        let Some(consumer) = self.sessions.consumer(key) else {
            return Outcome::refused(Refusal::NoSuchLink);
        };
        self.store.took_steps(consumer.watched().len());
        // A protocol has one receive outstanding a consumer; should one send a second, the first
        // ends, for each is answered once.
        if self.sessions.end_wait(key, &mut self.store) {
            effects.reply(
                self.sessions.at(by).id(),
                self.log.after_all(),
                Reply::TimedOut { link: Some(link) },
            );
        }
        if let Some(id) = self.sessions.most_urgent(key, &self.store) {
            return self.deliver(by, Some(link), id, wanted.lease);
        }
        if self.sessions.lease_ends_within(by, wanted.margin, &self.store) {
            return Outcome::reply(self.log.after_all(), Reply::LeaseEnding);
        }
        // Behind an expired message there may be another, so the receive waits until the expired
        // one goes.
        if wanted.wait == Some(Nanos::ZERO) && !self.sessions.is_unsure(key, &self.store) {
            return Outcome::reply(self.log.after_all(), Reply::TimedOut { link: Some(link) });
        }
        self.sessions.begin_wait(key, wanted, &mut self.store);
        Outcome::NOTHING
    }

    /// Leases this very message. Taking one out of its delay or from the buried is journalled. So a
    /// crash leaves it ready, like any other message that loses its lease.
    pub(crate) fn lease(
        &mut self,
        by: SessionSlot,
        id: MessageId,
        effects: &mut Effects,
    ) -> Outcome {
        let state = self.store.reach(id).map(|message| message.state());
        match state {
            Some(_) if self.store.is_over(id) => self.log.not_found(),
            None | Some(State::Leased { .. } | State::Held { .. }) => self.log.not_found(),
            Some(State::Ready) => self.deliver(by, None, id, None),
            Some(State::Delayed { .. } | State::Buried { .. }) => {
                self.keyspace.move_to_lease(by, id, None, &mut self.sessions, &mut self.store);
                self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
                let (after, reply) = self.directory.delivered(None, id, &self.bodies, &self.store);
                Outcome::reply(after, reply)
            }
        }
    }

    /// Gives ready messages of these queues, in their order, to waiting consumers, the longest
    /// waiting first. Shows them to browsers.
    pub(crate) fn serve_all(&mut self, mut woken: Woken, effects: &mut Effects) {
        self.evict_if_needed(effects);
        if let Some(slot) = woken.only()
            && self.store.is_unattended(slot)
        {
            return;
        }
        let mut left = limits::DELIVERIES_PER_STEP_MAX * woken.count();
        // A message moved for one consumer may be the one that another waits for. The other
        // consumer has its turn behind those for which there was a message before. The loop ends,
        // for each served consumer waits no more.
        while let Some(slot) = woken.pop() {
            self.shed(slot, &mut woken, effects);
            self.evict_if_needed(effects);
            self.cut_off(slot, effects);
            self.serve_one(slot, &mut left, &mut woken, effects);
        }
    }

    /// Serves this queue alone, at most `left` times; which others have something by it is
    /// added to `woken`.
    fn serve_one(
        &mut self,
        slot: QueueSlot,
        left: &mut usize,
        woken: &mut Woken,
        effects: &mut Effects,
    ) {
        let mut is_done = false;
        let least = left.saturating_sub(limits::DELIVERIES_PER_STEP_MAX);
        while *left > least {
            let Some((key, id)) = self.store.next_match(slot) else {
                is_done = true;
                break;
            };
            let before = self.store.steps();
            if self.sessions.is_popping(key) {
                if !self.makes_way_for(key, slot, id, effects) {
                    break;
                }
                woken.extend(self.give_elements(key, slot, effects));
            } else {
                self.deliver_to(key, id, effects);
            }
            let steps = (self.store.steps() - before) as usize;
            *left = left.saturating_sub(1 + steps / STEPS_PER_DELIVERY);
        }
        let Some(queue) = self.store.queues.get(slot) else { return };
        if !is_done || queue.is_scanning() {
            self.store.resume_later(slot);
        } else if queue.has_unseen() {
            self.bodies.await_unseen(slot, &mut self.store);
        } else {
            self.sessions.end_drains(slot, &mut self.store, &self.log, effects);
        }
        self.show_to_browsers(slot, effects);
    }

    fn deliver_to(&mut self, key: ConsumerKey, id: MessageId, effects: &mut Effects) {
        let is_credit_consumer = self.sessions.credit_consumer(key).is_some();
        if is_credit_consumer {
            self.keyspace.move_to_hold(key, id, &mut self.sessions, &mut self.store);
            self.sessions.own_group(key, id, &mut self.store);
        } else {
            let wait = self.sessions.consumer(key).and_then(|consumer| consumer.wait());
            let was_waiting = self.sessions.end_wait(key, &mut self.store);
            assert!(was_waiting, "only who waits is served");
            self.keyspace.move_to_lease(
                key.session,
                id,
                wait.and_then(|wait| wait.lease()),
                &mut self.sessions,
                &mut self.store,
            );
        }
        let (after, reply) =
            self.directory.delivered(Some(key.link), id, &self.bodies, &self.store);
        let charge = if let Reply::Delivered(delivery) = &reply { delivery.charge } else { 0 };
        effects.reply(self.sessions.at(key.session).id(), after, reply);
        if is_credit_consumer {
            self.sessions.record_delivery(key, charge, &mut self.store, &self.log, effects);
        }
    }

    /// A consumer has waited long enough.
    pub(crate) fn end_waiting(&mut self, key: ConsumerKey, effects: &mut Effects) {
        if !self.sessions.is_unsure(key, &self.store) && self.sessions.is_popping(key) {
            return self.stop_waiting(key.session, effects);
        }
        if !self.sessions.is_unsure(key, &self.store) {
            return self.sessions.give_up(
                key,
                Reply::TimedOut { link: Some(key.link) },
                &mut self.store,
                &self.log,
                effects,
            );
        }
        let now = self.store.latest;
        let Some(consumer) = self.sessions.consumer_mut(key) else { return };
        let before = consumer.prolong_wait(now);
        self.store.timers.change(Timer::Wait(key), before, Some(now));
    }

    /// The session's first lease ends, by time. A message that it took from a list is taken for
    /// good.
    pub(crate) fn expire_lease(&mut self, holder: SessionSlot, effects: &mut Effects) -> QueueSlot {
        let first = self.sessions.at(holder).leases().first().copied();
        let (_, id) = first.expect("invariant: the timer is set while there are leases");
        let queue = self.store.message(id).queue();
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        if self.sessions.at_mut(holder).end_popped(id) {
            self.finish(id, effects);
            return queue;
        }
        self.store.message_mut(id).count_expiry();
        self.store.count_expired_lease();
        self.return_ready(id, effects);
        queue
    }

    /// Returns the first message that a closing session holds: a leased one as if nothing had
    /// been, any other as its end says. Says which queue has it now.
    pub(crate) fn return_next(
        &mut self,
        holder: SessionSlot,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let next = self.sessions.at(holder).next_to_return();
        let (id, settlement) = next.expect("invariant: it returns while the session holds");
        self.apply_settlement(holder, id, settlement, effects)
    }

    fn deliver(
        &mut self,
        holder: SessionSlot,
        link: Option<LinkId>,
        id: MessageId,
        lease: Option<Nanos>,
    ) -> Outcome {
        self.keyspace.move_to_lease(holder, id, lease, &mut self.sessions, &mut self.store);
        let (after, reply) = self.directory.delivered(link, id, &self.bodies, &self.store);
        Outcome::reply(after, reply)
    }
}

/// A delivery that takes more steps, as to a consumer that waits at thousands of queues, counts for
/// several.
const STEPS_PER_DELIVERY: usize = limits::STEPS_PER_TURN_MAX / limits::DELIVERIES_PER_STEP_MAX;
