//! What became of messages that a client of AMQP held, and dead letters.

use model::{DeadReason, Durability, MessageId, Nanos, Reply, Settlement, TransactionId};

use super::{NOTHING, Oracle, Place, one};
use crate::history::{Changes, Dead, SCARCE_RETRY};

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
        let holder = self.messages.get(&id).and_then(super::Message::holder);
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

    /// Does what a settlement says.
    pub(super) fn apply_settlement(&mut self, now: Nanos, id: u64, how: Settlement) -> Changes {
        if self.orphans.remove(&id).is_some() {
            return self.everything();
        }
        match how {
            Settlement::Accept => self.remove(id),
            Settlement::Release => {
                self.return_ready(now, id);
                NOTHING
            }
            Settlement::Fail => self.fail(now, id),
            Settlement::Park(reason) => self.die(now, id, reason),
        }
    }

    /// One delivery more of a message failed.
    pub(super) fn fail(&mut self, now: Nanos, id: u64) -> Changes {
        let is_scarce = self.lacks_room_for(id);
        let message = self.message(id);
        message.content.failed += 1;
        if is_scarce {
            // Counted in memory alone, but for a snapshot.
            let change = message.change;
            self.history.allow(change, 1);
            self.return_ready(now, id);
            return NOTHING;
        }
        let content = &self.message(id).content;
        if content.failed >= ATTEMPTS_MAX && content.dead.is_none() {
            return self.die(now, id, DeadReason::Attempts);
        }
        self.stand(id, Place::Ready(now))
    }

    /// A message becomes a dead letter. One that is stays what it is, and is ready again.
    pub(super) fn die(&mut self, now: Nanos, id: u64, reason: DeadReason) -> Changes {
        let content = self.message(id).content.clone();
        if content.dead.is_some() {
            self.return_ready(now, id);
            return NOTHING;
        }
        if self.buries_nothing(&content.queue) {
            return self.remove(id);
        }
        if self.lacks_room_for(id) {
            return self.set_aside(now, id);
        }
        self.message(id).content = content.dead(reason);
        self.drained_one(&content.queue);
        self.stand(id, Place::Ready(now))
    }

    /// Whether the device is full, so that no more than there is can be said of a message.
    fn lacks_room_for(&self, id: u64) -> bool {
        let level = self.messages.get(&id).map(|message| message.nature.level);
        self.places.is_scarce && level > Some(Durability::None)
    }

    /// What is to become a dead letter, and cannot for want of room, is hidden for a while.
    fn set_aside(&mut self, now: Nanos, id: u64) -> Changes {
        let message = self.message(id);
        (message.place, message.is_hidden) = (Place::Delayed(now + SCARCE_RETRY), true);
        let change = message.change;
        self.history.set_aside(change);
        self.places.counted.set_aside += 1;
        NOTHING
    }

    pub(super) fn remove(&mut self, id: u64) -> Changes {
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
pub(crate) const ATTEMPTS_MAX: u32 = 3;
