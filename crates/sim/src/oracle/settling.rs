//! Settlements of messages that a client of AMQP held, and dead letters.

use std::cmp::Reverse;

use model::{
    DeadReason, Durability, MessageId, Nanos, Reply, Settlement, StorePolicy, TransactionId,
};

use super::{Message, NOTHING, Oracle, Place, one};
use crate::history::{Changes, DEAD_LETTERS, Dead, SCARCE_RETRY};
use crate::workload;

impl Oracle {
    pub(super) fn settle(
        &mut self,
        now: Nanos,
        client: u64,
        message: MessageId,
        settlement: Settlement,
        transaction: Option<TransactionId>,
        reply: &Reply,
    ) -> Changes {
        let id = message.0;
        let holder = self.messages.get(&id).and_then(Message::holder);
        let holder = holder.or_else(|| self.orphans.get(&id).copied());
        let may = holder == Some(client) && !self.is_enlisted(client, id);
        if let Some(transaction) = transaction {
            return self.enlist_settlement(client, transaction, (id, settlement), may, reply);
        }
        match reply {
            Reply::Done => assert!(may, "{client} settles {id}, which {holder:?} holds"),
            Reply::NotFound => assert!(!may, "{client} holds {id}"),
            _ => panic!("{reply:?} to a settlement"),
        }
        if may { self.apply_settlement(now, id, settlement) } else { self.everything() }
    }

    /// Performs a settlement.
    pub(super) fn apply_settlement(&mut self, now: Nanos, id: u64, how: Settlement) -> Changes {
        if self.orphans.remove(&id).is_some() {
            return self.everything();
        }
        match how {
            Settlement::Accept => self.remove(id),
            Settlement::Return => {
                self.return_ready(now, id);
                NOTHING
            }
            Settlement::Release => self.give_back(now, id, self.redelivery_delay(id)),
            Settlement::Fail => self.fail(now, id),
            Settlement::GiveBack { .. } => unreachable!("no client says how long"),
            Settlement::Park(reason) => self.die(now, id, reason),
        }
    }

    /// How long a message is hidden before it is delivered again.
    fn redelivery_delay(&self, id: u64) -> Nanos {
        let message = self.messages.get(&id).expect("invariant: the caller found it");
        let rules = workload::redelivery(&message.content.queue);
        rules.delay_of(MessageId(id), message.content.failed).unwrap_or_default()
    }

    /// A message comes back after a delay, of which a full device hears nothing but by a snapshot.
    fn give_back(&mut self, now: Nanos, id: u64, delay: Nanos) -> Changes {
        if delay == Nanos::ZERO {
            self.return_ready(now, id);
            return NOTHING;
        }
        if !self.shortage_of_room_for(id) {
            return self.stand(id, Place::Delayed(now + delay));
        }
        self.group_changed(id);
        let message = self.message(id);
        message.place = Place::Delayed(now + delay);
        let change = message.change;
        self.history.set_aside(change);
        NOTHING
    }

    /// One delivery more of a message failed.
    pub(super) fn fail(&mut self, now: Nanos, id: u64) -> Changes {
        let is_scarce = self.shortage_of_room_for(id);
        let message = self.message(id);
        message.content.failed += 1;
        if is_scarce {
            // Counted in memory alone, except in a snapshot.
            let change = message.change;
            self.history.allow(change, 1);
            return self.give_back(now, id, self.redelivery_delay(id));
        }
        let content = &self.message(id).content;
        if content.failed >= MAX_DELIVERY_ATTEMPTS && content.dead.is_none() {
            return self.die(now, id, DeadReason::Attempts);
        }
        match self.redelivery_delay(id) {
            Nanos::ZERO => self.stand(id, Place::Ready(now)),
            delay => self.stand(id, Place::Delayed(now + delay)),
        }
    }

    /// A message becomes a dead letter. A dead letter stays one, and is ready again.
    pub(super) fn die(&mut self, now: Nanos, id: u64, reason: DeadReason) -> Changes {
        let content = self.message(id).content.clone();
        if content.dead.is_some() {
            self.return_ready(now, id);
            return NOTHING;
        }
        if self.deletes_dead(&content.queue) || self.is_dropped(id, reason) {
            return self.remove(id);
        }
        if self.shortage_of_room_for(id) {
            return self.set_aside(now, id);
        }
        self.group_changed(id);
        self.message(id).content = content.dead(reason);
        self.drained_one(&content.queue);
        self.stand(id, Place::Ready(now))
    }

    /// True if it is deleted in place of becoming a dead letter, for memory alone keeps it.
    fn is_dropped(&self, id: u64, reason: DeadReason) -> bool {
        let message = self.messages.get(&id).expect("invariant: the caller found it");
        let is_kept = message.nature.level > Durability::None || self.policy == StorePolicy::Memory;
        !is_kept && reason != DeadReason::Overflow && !workload::parks_all(&message.content.queue)
    }

    /// If there are too many dead letters, the oldest of the least urgent priority go. They go once
    /// the engine has done all that is due: before that it serves consumers that wait for them.
    pub(super) fn evict(&mut self) {
        while !self.is_behind {
            let dead = |message: &Message| &*message.content.queue == DEAD_LETTERS;
            let count = self.messages.values().filter(|message| dead(message)).count() as u64;
            let ready = |(id, message): (&u64, &Message)| {
                let is_ready = dead(message) && matches!(message.place, Place::Ready(_));
                let rank = (Reverse(message.content.priority), message.nature.order);
                is_ready.then_some((rank, *id))
            };
            let oldest = self.messages.iter().filter_map(ready).min();
            let Some((_, id)) = oldest.filter(|_| count > self.dead_letters_max) else { return };
            self.places.counted.evicted += 1;
            self.remove(id);
        }
    }

    /// True if the device is full, so that no more than there is can be said of a message.
    fn shortage_of_room_for(&self, id: u64) -> bool {
        let level = self.messages.get(&id).map(|message| message.nature.level);
        self.places.is_scarce && level > Some(Durability::None)
    }

    /// A message that is to become a dead letter, and cannot for want of room, is hidden for a
    /// while.
    fn set_aside(&mut self, now: Nanos, id: u64) -> Changes {
        self.group_changed(id);
        let message = self.message(id);
        (message.place, message.is_hidden) = (Place::Delayed(now + SCARCE_RETRY), true);
        let change = message.change;
        self.history.set_aside(change);
        self.places.counted.set_aside += 1;
        NOTHING
    }

    pub(super) fn remove(&mut self, id: u64) -> Changes {
        self.group_changed(id);
        let message = self.messages.remove(&id).expect("invariant: the caller found it");
        self.drained_one(&message.content.queue);
        one(self.history.push(self.step, id, message.nature, None))
    }
}

impl From<&model::DeadLetter> for Dead {
    fn from(letter: &model::DeadLetter) -> Self {
        let model::DeadLetter { reason, from, attempts, .. } = letter;
        Self { reason: *reason, from: from.as_str().into(), attempts: *attempts }
    }
}

/// Failed deliveries that make a dead letter, in every queue of the simulation.
pub(crate) const MAX_DELIVERY_ATTEMPTS: u32 = 3;
