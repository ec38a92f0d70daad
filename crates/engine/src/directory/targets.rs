//! The targets of producers and transactions: a queue or a topic, which they keep alive.

use model::{DependsOn, Destination, LinkId, QueueName, Refusal, Reply};

use crate::directory::topics::TopicSlot;
use crate::directory::{Directory, Target};
use crate::ids::{QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::Role;

impl Directory {
    /// The destination of that name, made now if it is to be.
    pub(crate) fn target(
        &mut self,
        to: Destination,
        store: &mut MessageStore,
    ) -> Result<Target, Refusal> {
        match to {
            Destination::Queue(name) => self.find_or_create(name, store).map(Target::Queue),
            Destination::Topic(name) => self.find_or_create_topic(name).map(Target::Topic),
        }
    }

    /// The queue of that name, made now if it is to be.
    pub(crate) fn find_or_create(
        &self,
        name: QueueName,
        store: &mut MessageStore,
    ) -> Result<QueueSlot, Refusal> {
        if let Some(slot) = store.queues.find(name.as_str()) {
            return Ok(slot);
        }
        if is_reserved(&name) {
            return Err(Refusal::NoSuchDestination);
        }
        store.queues.takes_another()?;
        store.queues.accounts().allow_queue()?;
        let policy = self.policy_for(&name);
        Ok(store.queues.create_for_user(name, policy))
    }

    /// The topic of that name, made now if it is to be.
    pub(crate) fn find_or_create_topic(&mut self, name: QueueName) -> Result<TopicSlot, Refusal> {
        if let Some(slot) = self.topics.find(name.as_str()) {
            return Ok(slot);
        }
        if is_reserved(&name) {
            return Err(Refusal::NoSuchDestination);
        }
        self.topics.takes_another()?;
        Ok(self.topics.create(name, None))
    }

    /// The queue of that name for a consumer of this session. A temporary one is for consumers of
    /// the session that made it; others may send there.
    pub(crate) fn queue_to_consume(
        &self,
        by: SessionSlot,
        name: QueueName,
        store: &mut MessageStore,
    ) -> Result<QueueSlot, Refusal> {
        let slot = self.find_or_create(name, store)?;
        match store.queues.at(slot).role {
            Role::Temporary(owner) if owner != by => Err(Refusal::OfAnotherSession),
            _ => Ok(slot),
        }
    }

    /// True if consumers of this session may subscribe to a topic: see
    /// [`Directory::queue_to_consume`].
    pub(crate) fn may_consume_topic(&self, by: SessionSlot, topic: &QueueName) -> bool {
        let slot = self.topics.find(topic.as_str());
        let owner = slot.and_then(|slot| self.topics.at(slot).temporary());
        owner.is_none_or(|owner| owner == by)
    }

    /// True if it was deleted, and only the producers and transactions that point to it still know
    /// it.
    pub(crate) fn is_gone(&self, target: Target, store: &MessageStore) -> bool {
        match target {
            Target::Queue(slot) => store.queues.at(slot).is_leaving(),
            Target::Topic(slot) => self.topics.at(slot).leaving(),
        }
    }

    /// A producer points to it.
    pub(crate) fn begin_producer(&mut self, target: Target, store: &mut MessageStore) {
        match target {
            Target::Queue(slot) => store.queues.at_mut(slot).begin_producer(),
            Target::Topic(slot) => self.topics.at_mut(slot).begin_producer(),
        }
    }

    /// A producer points to it no more.
    pub(crate) fn end_producer(
        &mut self,
        target: Target,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        match target {
            Target::Queue(slot) => store.queues.at_mut(slot).end_producer(),
            Target::Topic(slot) => self.topics.at_mut(slot).end_producer(),
        }
        self.remove_target_if_idle(target, sessions, store);
    }

    /// An open transaction holds a message for it.
    pub(crate) fn begin_uncommitted(&mut self, target: Target, store: &mut MessageStore) {
        match target {
            Target::Queue(slot) => store.queues.at_mut(slot).begin_uncommitted(),
            Target::Topic(slot) => self.topics.at_mut(slot).begin_uncommitted(),
        }
    }

    /// A transaction that held a message for it has ended.
    pub(crate) fn end_uncommitted(&mut self, target: Target, store: &mut MessageStore) {
        match target {
            Target::Queue(slot) => store.queues.at_mut(slot).end_uncommitted(),
            Target::Topic(slot) => self.topics.at_mut(slot).end_uncommitted(),
        }
    }

    /// Forgets it when nothing points to it any more.
    pub(crate) fn remove_target_if_idle(
        &mut self,
        target: Target,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) {
        match target {
            Target::Queue(slot) => self.remove_if_idle(slot, sessions, store),
            Target::Topic(slot) => self.topics_mut().remove_if_idle(slot),
        }
    }

    pub(crate) fn open_producer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        to: Destination,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        let target = match self.target(to, store) {
            Ok(target) => target,
            Err(refusal) => return Outcome::refused(refusal),
        };
        self.begin_producer(target, store);
        if let Some(before) = sessions.at_mut(by).open_producer(link, target) {
            self.end_producer(before, sessions, store);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn close_producer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Outcome {
        if let Some(target) = sessions.at_mut(by).close_producer(link) {
            self.end_producer(target, sessions, store);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }
}

/// Names of temporary destinations are the engine's to give. So a name that is gone never becomes a
/// queue that collects for ever the messages of late senders.
pub(crate) fn is_reserved(name: &QueueName) -> bool {
    name.is_temporary()
}
