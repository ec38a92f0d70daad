//! Queues and topics that go with the session that made them. What is sent there is in memory
//! only.

use alloc::format;

use model::{DependsOn, Destination, QueueName, Refusal, Reply, limits};

use crate::Effects;
use crate::engine::{Directory, Engine, MessageStore, Outcome};
use crate::session::SessionSlot;

impl Engine {
    pub(crate) fn create_temporary(
        &mut self,
        by: SessionSlot,
        topic: bool,
        secret: u128,
    ) -> Outcome {
        if self.sessions.at(by).owned.temporary.len() >= limits::SESSION_TEMPORARY_MAX {
            return Outcome::refused(Refusal::TooManyTemporary);
        }
        let room = if topic {
            self.directory.topics.takes_another()
        } else {
            self.store.queues.takes_another()
        };
        if let Err(refusal) = room {
            return Outcome::refused(refusal);
        }
        let name = self.directory.temporary_name(topic, secret, &self.store);
        let made = if topic {
            self.directory.topics.create(name.clone(), Some(by));
            Destination::Topic(name)
        } else {
            self.store.queues.create_temporary(name.clone(), by);
            Destination::Queue(name)
        };
        self.sessions.at_mut(by).owned.temporary.insert(made.clone());
        self.directory.temporaries += 1;
        Outcome::reply(DependsOn::NOTHING, Reply::Created(made))
    }

    pub(crate) fn delete_temporary(
        &mut self,
        by: SessionSlot,
        destination: &Destination,
        effects: &mut Effects,
    ) -> Outcome {
        if !self.sessions.at_mut(by).owned.temporary.remove(destination) {
            return Outcome::reply(DependsOn::NOTHING, Reply::NotFound);
        }
        self.end_temporary(destination, effects);
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    /// All that a session made goes with it.
    pub(crate) fn end_temporaries(&mut self, by: SessionSlot, effects: &mut Effects) {
        let temporary = core::mem::take(&mut self.sessions.at_mut(by).owned.temporary);
        self.store.took_steps(temporary.len());
        for destination in temporary {
            self.end_temporary(&destination, effects);
        }
    }

    fn end_temporary(&mut self, destination: &Destination, effects: &mut Effects) {
        self.directory.temporaries -= 1;
        match destination {
            Destination::Queue(name) => {
                let slot = self.store.queues.find(name.as_str());
                let slot = slot.expect("invariant: a temporary queue is there until its end");
                self.dismiss_consumers(slot, effects);
                self.begin_leaving(slot);
            }
            Destination::Topic(name) => {
                let slot = self.directory.topics.find(name.as_str());
                let slot = slot.expect("invariant: a temporary topic is there until its end");
                for number in self.directory.topics.at(slot).subscriptions.clone() {
                    self.end_subscription(number, effects);
                }
                self.directory.topics.begin_leaving(slot);
                self.directory.topics.remove_if_idle(slot);
            }
        }
    }
}

impl Directory {
    /// A name that no destination has. Nobody can guess it: a peer that knows it was told it, and
    /// one that still knows an old name reaches nobody else by it.
    fn temporary_name(&self, topic: bool, mut secret: u128, store: &MessageStore) -> QueueName {
        let kind = if topic { "topic" } else { "queue" };
        loop {
            let name = format!("{}{kind}/{secret:032x}", limits::TEMPORARY_PREFIX);
            let name = QueueName::new(&name).expect("invariant: the name is short and plain");
            let queue = store.queues.find(name.as_str());
            if queue.is_none() && self.topics.find(name.as_str()).is_none() {
                return name;
            }
            secret = secret.wrapping_add(1);
        }
    }
}
