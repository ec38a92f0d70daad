//! The privacy of a session: the queues and topics that go with it, whose names only those are
//! told to whom it wants to be answered by. Others send there, and see nothing of it, not even by
//! the number of a message.

use model::{AdminCommand, Command, MessageId, Peek, QueueName};

use crate::engine::{Directory, Engine, MessageStore, Outcome};
use crate::queue::{QueueSlot, Role};
use crate::session::SessionSlot;
use crate::subscriptions::Source;

impl Engine {
    /// The answer to a command about what is private to another session: as if it were not there.
    #[inline]
    pub(crate) fn denial(&self, by: SessionSlot, command: &Command) -> Option<Outcome> {
        if self.directory.temporaries == 0 { None } else { self.denial_of_private(by, command) }
    }

    fn denial_of_private(&self, by: SessionSlot, command: &Command) -> Option<Outcome> {
        let is_denied = match command {
            Command::Lease { message }
            | Command::Delete { message }
            | Command::KickMessage { message }
            | Command::MessageStatistics { message }
            | Command::Peek(Peek::Message(message)) => {
                self.directory.hides_message(by, *message, &self.store)
            }
            Command::Peek(Peek::Ready(link) | Peek::Delayed(link) | Peek::Buried(link))
            | Command::Kick { link, .. } => self
                .sessions
                .producer_queue(by, *link)
                .is_some_and(|slot| self.directory.is_of_another(by, slot, &self.store)),
            Command::Pause { queue, .. } | Command::QueueStatistics { queue } => {
                self.directory.hides_queue(by, queue, &self.store)
            }
            Command::Admin(command) => self.directory.hides_from_operator(by, command, &self.store),
            _ => false,
        };
        is_denied.then(|| self.log.not_found())
    }
}

impl Directory {
    fn hides_from_operator(
        &self,
        by: SessionSlot,
        command: &AdminCommand,
        store: &MessageStore,
    ) -> bool {
        match command {
            AdminCommand::Browse { queue, .. }
            | AdminCommand::Purge { queue, .. }
            | AdminCommand::Delete { queue }
            | AdminCommand::MoveMessages { from: queue, .. } => self.hides_queue(by, queue, store),
            AdminCommand::Show { message } => self.hides_message(by, *message, store),
            _ => false,
        }
    }

    /// Whether a queue is private to another session.
    pub(crate) fn hides_queue(
        &self,
        by: SessionSlot,
        queue: &QueueName,
        store: &MessageStore,
    ) -> bool {
        store.queues.find(queue.as_str()).is_some_and(|slot| self.is_of_another(by, slot, store))
    }

    fn hides_message(&self, by: SessionSlot, id: MessageId, store: &MessageStore) -> bool {
        store.find(id).is_some_and(|message| self.is_of_another(by, message.queue, store))
    }

    fn is_of_another(&self, by: SessionSlot, slot: QueueSlot, store: &MessageStore) -> bool {
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
            Source::Topic(slot) => self.topics.at(slot).temporary,
            Source::Words | Source::Glob => None,
        }
    }
}
