//! Queues and topics that go with the session that made them. Messages sent there are in memory
//! only.

use alloc::format;

use model::{DependsOn, Destination, QueueName, Refusal, Reply, limits};

use crate::directory::Directory;
use crate::ids::SessionSlot;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;

impl Directory {
    pub(crate) fn create_temporary(
        &mut self,
        by: SessionSlot,
        topic: bool,
        secret: u128,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        if sessions.at(by).temporary().len() >= limits::SESSION_TEMPORARY_MAX {
            return Outcome::refused(Refusal::TooManyTemporary);
        }
        let room = if topic { self.topics.takes_another() } else { store.queues.takes_another() };
        if let Err(refusal) = room {
            return Outcome::refused(refusal);
        }
        let name = self.temporary_name(topic, secret, store);
        let made = if topic {
            self.topics.create(name.clone(), Some(by));
            Destination::Topic(name)
        } else {
            store.queues.create_temporary(name.clone(), by);
            Destination::Queue(name)
        };
        sessions.at_mut(by).add_temporary(made.clone());
        self.temporaries += 1;
        Outcome::reply(DependsOn::NOTHING, Reply::Created(made))
    }

    /// A destination that went with its session has gone.
    pub(crate) fn ended_temporary(&mut self) {
        assert!(self.temporaries > 0, "temporary destinations are counted");
        self.temporaries -= 1;
    }

    /// A name that no destination has. No client can guess it: a peer that knows it was told it. A
    /// peer that still knows an old name reaches no other client by it.
    pub(crate) fn temporary_name(
        &self,
        topic: bool,
        mut secret: u128,
        store: &MessageStore,
    ) -> QueueName {
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
