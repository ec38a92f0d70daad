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
    name: QueueName,
    /// The session that it goes with, if it is a temporary one.
    temporary: Option<SessionSlot>,
    /// It was deleted: no client finds it any more.
    leaving: bool,
    producers: u64,
    /// Messages for it in transactions that are open.
    uncommitted: u64,
    /// The numbers of its subscriptions, the oldest first.
    subscriptions: BTreeSet<u64>,
    /// The weight of their selectors.
    selectors_weight: usize,
}

#[derive(Debug)]
pub(crate) struct Topics {
    slots: Slab<Topic>,
    names: BTreeMap<QueueName, TopicSlot>,
}

impl Topic {
    pub(crate) const fn name(&self) -> &QueueName {
        &self.name
    }

    pub(crate) const fn temporary(&self) -> Option<SessionSlot> {
        self.temporary
    }

    pub(crate) const fn leaving(&self) -> bool {
        self.leaving
    }

    pub(crate) const fn producers(&self) -> u64 {
        self.producers
    }

    pub(crate) const fn uncommitted(&self) -> u64 {
        self.uncommitted
    }

    pub(crate) const fn subscriptions(&self) -> &BTreeSet<u64> {
        &self.subscriptions
    }

    pub(crate) const fn selectors_weight(&self) -> usize {
        self.selectors_weight
    }

    pub(crate) fn begin_producer(&mut self) {
        assert!(!self.leaving, "no producer opens a topic that was deleted");
        self.producers += 1;
    }

    pub(crate) fn end_producer(&mut self) {
        assert!(self.producers > 0, "a destination knows its producers");
        self.producers -= 1;
    }

    /// An open transaction holds a message for it.
    pub(crate) fn begin_uncommitted(&mut self) {
        self.uncommitted += 1;
    }

    pub(crate) fn end_uncommitted(&mut self) {
        assert!(self.uncommitted > 0, "a destination knows its transactions");
        self.uncommitted -= 1;
    }

    /// A subscription, with a selector of this weight, takes its messages.
    pub(crate) fn add_subscription(&mut self, number: u64, weight: usize) {
        assert!(!self.leaving, "no client subscribes to a topic that was deleted");
        self.selectors_weight += weight;
        let is_new = self.subscriptions.insert(number);
        assert!(is_new, "a number is of one subscription");
    }

    pub(crate) fn remove_subscription(&mut self, number: u64, weight: usize) {
        let was_there = self.subscriptions.remove(&number);
        assert!(was_there, "a topic knows its subscriptions");
        assert!(self.selectors_weight >= weight, "a topic counts its selectors");
        self.selectors_weight -= weight;
    }

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
        let was_named = self.names.remove(&name);
        assert_eq!(was_named, Some(slot), "a name is of one topic");
    }

    /// Forgets a topic when nothing points to it.
    pub(crate) fn remove_if_idle(&mut self, slot: TopicSlot) {
        let Some(topic) = self.slots.get(slot.0) else { return };
        if topic.is_idle() {
            if !topic.leaving {
                let was_named = self.names.remove(&topic.name);
                assert_eq!(was_named, Some(slot), "a name is of one topic");
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
