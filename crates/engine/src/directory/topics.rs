//! Topics: a name, and its subscriptions. A topic itself holds no message.

use alloc::collections::{BTreeMap, BTreeSet};

use model::{QueueName, Refusal, limits};

use crate::collections::slab::Slab;
use crate::ids::SessionSlot;

/// The slot that a topic is kept in. Used again after the topic went, when nothing points to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopicSlot(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: QueueName,
    /// The session that it goes with, if it is a temporary one.
    pub(crate) temporary: Option<SessionSlot>,
    /// It was deleted: no client finds it any more.
    pub(crate) leaving: bool,
    pub(crate) producers: u64,
    /// Messages for it in transactions that are open.
    pub(crate) uncommitted: u64,
    /// The numbers of its subscriptions, the oldest first.
    pub(crate) subscriptions: BTreeSet<u64>,
    /// The weight of their selectors.
    pub(crate) selectors_weight: usize,
}

#[derive(Debug)]
pub(crate) struct Topics {
    slots: Slab<Topic>,
    names: BTreeMap<QueueName, TopicSlot>,
}

impl Topic {
    /// Nothing points to it.
    pub(crate) fn is_idle(&self) -> bool {
        let pointed = self.producers + self.uncommitted + self.subscriptions.len() as u64;
        pointed == 0 && (self.leaving || self.temporary.is_none())
    }
}

impl Topics {
    pub(crate) const fn new() -> Self {
        Self { slots: Slab::new(), names: BTreeMap::new() }
    }

    pub(crate) fn create(&mut self, name: QueueName, temporary: Option<SessionSlot>) -> TopicSlot {
        let slot = TopicSlot(self.slots.insert(Topic {
            name: name.clone(),
            temporary,
            leaving: false,
            producers: 0,
            uncommitted: 0,
            subscriptions: BTreeSet::new(),
            selectors_weight: 0,
        }));
        let before = self.names.insert(name, slot);
        assert!(before.is_none(), "a topic is created once");
        slot
    }

    /// The topic of that name, with no regard to limits.
    pub(crate) fn find_or_create(&mut self, name: &QueueName) -> TopicSlot {
        self.find(name.as_str()).unwrap_or_else(|| self.create(name.clone(), None))
    }

    /// From now on no client finds it.
    pub(crate) fn begin_leaving(&mut self, slot: TopicSlot) {
        let topic = self.at_mut(slot);
        assert!(!topic.leaving, "a topic leaves once");
        topic.leaving = true;
        let name = topic.name.clone();
        self.names.remove(&name);
    }

    /// Forgets a topic when nothing points to it.
    pub(crate) fn remove_if_idle(&mut self, slot: TopicSlot) {
        let Some(topic) = self.slots.get(slot.0) else { return };
        if topic.is_idle() {
            if !topic.leaving {
                self.names.remove(&topic.name);
            }
            self.slots.remove(slot.0);
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<TopicSlot> {
        self.names.get(name).copied()
    }

    pub(crate) fn at(&self, slot: TopicSlot) -> &Topic {
        self.slots.get(slot.0).expect("invariant: who points to a topic keeps it alive")
    }

    pub(crate) fn at_mut(&mut self, slot: TopicSlot) -> &mut Topic {
        self.slots.get_mut(slot.0).expect("invariant: who points to a topic keeps it alive")
    }

    /// All by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TopicSlot, &Topic)> {
        self.slots.iter().map(|(slot, topic)| (TopicSlot(slot), topic))
    }

    /// Checks that there may be another one.
    pub(crate) fn takes_another(&self) -> Result<(), Refusal> {
        let max = limits::QUEUES_MAX;
        if self.names.len() < max { Ok(()) } else { Err(Refusal::TooManyQueues { max }) }
    }
}
