//! The privacy of a session: the queues and topics that go with it. The session tells their names
//! only to the clients that are to answer it. Other clients send there, and see nothing of it, not
//! even by the number of a message.

use model::{Command, MessageId, QueueName};

use crate::demand::{About, Demand};
use crate::directory::{Directory, Source};
use crate::ids::{QueueSlot, SessionSlot};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::Role;

impl Directory {
    /// True if a command is about a name that is private to another session. It is answered as if
    /// the name were not there.
    #[inline]
    pub(crate) fn hides(
        &self,
        by: SessionSlot,
        command: &Command,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> bool {
        self.temporaries > 0 && self.hides_private(by, command, sessions, store)
    }

    fn hides_private(
        &self,
        by: SessionSlot,
        command: &Command,
        sessions: &Sessions,
        store: &MessageStore,
    ) -> bool {
        match Demand::of(command).about {
            About::Message(message) => self.hides_message(by, message, store),
            About::Producer(link) => sessions
                .producer_queue(by, link)
                .is_some_and(|slot| self.is_of_another(by, slot, store)),
            About::Queue(queue) => self.hides_queue(by, queue, store),
            About::Nothing | About::Consumer(_) => false,
        }
    }

    /// True if a queue is private to another session.
    pub(crate) fn hides_queue(
        &self,
        by: SessionSlot,
        queue: &QueueName,
        store: &MessageStore,
    ) -> bool {
        store.queues.find(queue.as_str()).is_some_and(|slot| self.is_of_another(by, slot, store))
    }

    pub(crate) fn hides_message(
        &self,
        by: SessionSlot,
        id: MessageId,
        store: &MessageStore,
    ) -> bool {
        store.find(id).is_some_and(|message| self.is_of_another(by, message.queue(), store))
    }

    pub(crate) fn is_of_another(
        &self,
        by: SessionSlot,
        slot: QueueSlot,
        store: &MessageStore,
    ) -> bool {
        self.owner_of(slot, store).is_some_and(|owner| owner != by)
    }

    /// The session that a queue is private to, as that of a subscription to a topic which is.
    fn owner_of(&self, slot: QueueSlot, store: &MessageStore) -> Option<SessionSlot> {
        match store.queues.at(slot).role {
            Role::Temporary(owner) => Some(owner),
            Role::Subscription { number, .. } => {
                self.owner_of_source(self.subscriptions.get(number)?.source)
            }
            Role::Named | Role::Leaving => None,
        }
    }

    /// The session that a topic is private to.
    pub(crate) fn owner_of_source(&self, source: Source) -> Option<SessionSlot> {
        match source {
            Source::Topic(slot) => self.topics.at(slot).temporary(),
            Source::Words | Source::Glob => None,
        }
    }
}
