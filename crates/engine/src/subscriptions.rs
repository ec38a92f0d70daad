//! Subscriptions of topics: each has a queue of its own, into which a copy of every message that
//! it takes goes when that is published.
//!
//! A named subscription belongs to a client, or to all; a durable one is a record of the log and
//! lives until it is unsubscribed. Any other goes with its last consumer. Numbers are given once
//! and never again, for records of messages name subscriptions by them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{
    After, ConsumerMode, Durability, LinkId, Persistence, Refusal, Reply, Subscription,
    SubscriptionName, limits,
};
use selector::Selector;

use crate::codec::encoded_bytes;
use crate::engine::{Engine, Outcome};
use crate::matching::{parse_selector, reading_steps};
use crate::queue::QueueSlot;
use crate::record::RecordView;
use crate::registration::SubscriptionView;
use crate::session::{ConsumerKey, SessionSlot};
use crate::topics::TopicSlot;
use crate::{Effects, QueuePolicy};

/// All subscriptions, by number and by name.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    numbers: BTreeMap<u64, Entry>,
    names: BTreeMap<SubscriptionName, u64>,
    /// Those of patterns.
    patterns: BTreeSet<u64>,
    /// What their selectors take of memory.
    selectors_bytes: u64,
    /// The number of the next one.
    pub(crate) next: u64,
}

/// A subscription that is there.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) asks: Box<Subscription>,
    pub(crate) selector: Option<Selector>,
    pub(crate) source: Source,
    /// Where its messages are.
    pub(crate) queue: QueueSlot,
    /// The size of its record; zero where it has none.
    pub(crate) record_bytes: u64,
}

/// What a subscription takes messages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Topic(TopicSlot),
    /// All topics whose names match what it asks for.
    Pattern,
}

/// What has to be done so that a consumer gets the subscription it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// It is there as asked.
    This(u64),
    /// There is none.
    New,
    /// There is one of that name, but of another topic or selector.
    Instead(u64),
}

impl Subscriptions {
    pub(crate) const fn new() -> Self {
        Self {
            numbers: BTreeMap::new(),
            names: BTreeMap::new(),
            patterns: BTreeSet::new(),
            selectors_bytes: 0,
            next: 1,
        }
    }

    pub(crate) fn insert(&mut self, number: u64, entry: Entry) {
        if let Some(name) = entry.asks.name.clone() {
            let before = self.names.insert(name, number);
            assert!(before.is_none(), "a name is of one subscription");
        }
        if entry.source == Source::Pattern {
            self.patterns.insert(number);
        }
        self.selectors_bytes += selector_bytes(&entry.asks);
        let before = self.numbers.insert(number, entry);
        assert!(before.is_none(), "a number is of one subscription");
        self.next = self.next.max(number + 1);
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.numbers.remove(&number)?;
        self.patterns.remove(&number);
        self.selectors_bytes -= selector_bytes(&entry.asks);
        if let Some(name) = &entry.asks.name {
            self.names.remove(name);
        }
        Some(entry)
    }

    pub(crate) fn find(&self, name: &SubscriptionName) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.numbers.get(&number)
    }

    pub(crate) fn at(&self, number: u64) -> &Entry {
        self.get(number).expect("invariant: a topic knows subscriptions that are there")
    }

    /// All from this number on, ascending.
    pub(crate) fn iter_from(&self, number: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.numbers.range(number..).map(|(number, entry)| (*number, entry))
    }

    /// Those of patterns, the oldest first.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Entry> {
        self.patterns.iter().map(|number| self.at(*number))
    }

    /// Bytes of memory that their selectors take, but for short ones: queues are counted by
    /// themselves.
    pub(crate) const fn selectors_bytes(&self) -> u64 {
        self.selectors_bytes
    }

    pub(crate) fn patterns_count(&self) -> usize {
        self.patterns.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl Entry {
    fn is_as(&self, asked: &Subscription) -> bool {
        self.asks.topic == asked.topic
            && self.asks.selector == asked.selector
            && self.asks.without == asked.without
    }
}

impl Engine {
    pub(crate) fn subscribe(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        asked: Box<Subscription>,
        effects: &mut Effects,
    ) -> Outcome {
        match self.subscribed(by, link, asked, effects) {
            Ok(outcome) => outcome,
            Err(refusal) => Outcome::refused(refusal),
        }
    }

    pub(crate) fn unsubscribe(
        &mut self,
        name: &SubscriptionName,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(number) = self.subscriptions.find(name) else { return self.not_found() };
        if self.has_consumers(number) {
            return Outcome::refused(Refusal::SubscriptionInUse);
        }
        self.end_subscription(number, effects);
        Outcome::reply(self.log.after_open(), Reply::Done)
    }

    /// It reflects the last change of it, which may not be durable yet.
    pub(crate) fn find_subscription(&self, name: &SubscriptionName) -> Outcome {
        let Some(number) = self.subscriptions.find(name) else { return self.not_found() };
        let reply = Reply::Subscription(self.subscriptions.at(number).asks.clone());
        Outcome::reply(self.log.after_all(), reply)
    }

    /// Ends a subscription; its messages are forgotten in steps.
    pub(crate) fn end_subscription(&mut self, number: u64, effects: &mut Effects) {
        let &Entry { queue, record_bytes, .. } = self.subscriptions.at(number);
        if record_bytes > 0 {
            let level = self.policy.durability(Persistence::Persistent);
            self.log.append(&RecordView::Unsubscribed { number }, level, effects);
        }
        self.dismiss_consumers(queue, effects);
        self.withdraw(number);
    }

    /// Takes a subscription that nobody consumes from out of its topic, which may go with it.
    pub(crate) fn withdraw(&mut self, number: u64) {
        let entry = self.subscriptions.remove(number);
        let entry = entry.expect("invariant: a subscription ends once");
        self.totals.picture_bytes -= Self::picture_bytes_of_record(entry.record_bytes);
        if let Source::Topic(topic) = entry.source {
            let its = self.topics.at_mut(topic);
            its.selectors_weight -= entry.selector.as_ref().map_or(0, Selector::weight);
            let was_there = its.subscriptions.remove(&number);
            assert!(was_there, "a topic knows its subscriptions");
            self.topics.remove_if_idle(topic);
        }
        self.begin_leaving(entry.queue);
    }

    /// Enters a subscription. `record_bytes` is the size of its record, zero where it has none.
    pub(crate) fn register(
        &mut self,
        number: u64,
        asks: Box<Subscription>,
        selector: Option<Selector>,
        source: Source,
        record_bytes: u64,
    ) -> QueueSlot {
        let durable = asks.is_durable();
        let policy = QueuePolicy { kept: false, ..self.policy_for(&asks.topic) };
        let queue = self.queues.create_subscription(asks.topic.clone(), number, durable, policy);
        if let Source::Topic(topic) = source {
            let its = self.topics.at_mut(topic);
            its.selectors_weight += selector.as_ref().map_or(0, Selector::weight);
            its.subscriptions.insert(number);
        }
        self.totals.picture_bytes += Self::picture_bytes_of_record(record_bytes);
        let entry = Entry { asks, selector, source, queue, record_bytes };
        self.subscriptions.insert(number, entry);
        queue
    }

    fn subscribed(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        asked: Box<Subscription>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let key = ConsumerKey { session: by, link };
        if self.is_consumer(key) {
            return Err(Refusal::LinkInUse);
        }
        if !self.may_consume_topic(by, &asked.topic) {
            return Err(Refusal::OfAnotherSession);
        }
        self.took_steps(asked.selector.as_deref().map_or(0, reading_steps));
        let selector = asked.selector.as_deref().map(parse_selector).transpose()?;
        let (queue, after) = match self.wanted(&asked)? {
            Wanted::This(number) => (self.subscriptions.at(number).queue, self.log.after_all()),
            Wanted::Instead(number) => {
                self.begin_subscription(asked, selector, Some(number), effects)?
            }
            Wanted::New => self.begin_subscription(asked, selector, None, effects)?,
        };
        // What it selects was selected when it was published.
        self.open_feed(key, queue, None, ConsumerMode::Take)?;
        Ok(Outcome::reply(after, Reply::Done).waking(queue))
    }

    /// What has to be done for it, unless others prevent it.
    fn wanted(&self, asked: &Subscription) -> Result<Wanted, Refusal> {
        let known = asked.name.as_ref().and_then(|name| self.subscriptions.find(name));
        let Some(number) = known else { return Ok(Wanted::New) };
        let entry = self.subscriptions.at(number);
        let fits = entry.is_as(asked);
        let may_join = asked.shared && fits;
        let in_use = self.has_consumers(number) && !may_join;
        if in_use || entry.asks.shared != asked.shared {
            return Err(Refusal::SubscriptionInUse);
        }
        Ok(if fits { Wanted::This(number) } else { Wanted::Instead(number) })
    }

    /// Makes a subscription, ends the one that it replaces, and says what waits for that.
    fn begin_subscription(
        &mut self,
        asked: Box<Subscription>,
        selector: Option<Selector>,
        replaced: Option<u64>,
        effects: &mut Effects,
    ) -> Result<(QueueSlot, After), Refusal> {
        let topic = self.find_or_create_topic(asked.topic.clone())?;
        let number = self.subscriptions.next;
        let level = self.policy.durability(Persistence::Persistent);
        let record = SubscriptionView::of(number, &asked).map(RecordView::Subscribed);
        let record = record.filter(|_| level != Durability::None);
        let record_bytes = record.as_ref().map_or(0, encoded_bytes);
        let weight = selector.as_ref().map_or(0, Selector::weight);
        let allowed = self.may_subscribe(topic, &asked, replaced, record_bytes);
        if let Err(refusal) = allowed.and_then(|()| self.may_select(topic, weight, replaced)) {
            self.topics.remove_if_idle(topic);
            return Err(refusal);
        }
        if let Some(replaced) = replaced {
            // It may be of the same topic, which must not go in between.
            self.topics.at_mut(topic).uncommitted += 1;
            self.end_subscription(replaced, effects);
            self.topics.at_mut(topic).uncommitted -= 1;
        }
        if let Some(record) = record {
            self.log.append(&record, level, effects);
        }
        let after = self.log.after_open();
        let source = Source::Topic(topic);
        Ok((self.register(number, asked, selector, source, record_bytes), after))
    }

    fn may_subscribe(
        &self,
        slot: TopicSlot,
        asked: &Subscription,
        replaced: Option<u64>,
        record_bytes: u64,
    ) -> Result<(), Refusal> {
        let topic = self.topics.at(slot);
        if topic.temporary.is_some() && asked.is_durable() {
            return Err(Refusal::NoSuchDestination);
        }
        let others = self.subscriptions.len() - usize::from(replaced.is_some());
        let is_counted = replaced.is_some_and(|number| topic.subscriptions.contains(&number));
        let beside = topic.subscriptions.len() - usize::from(is_counted);
        let before =
            replaced.map_or(0, |number| selector_bytes(&self.subscriptions.at(number).asks));
        let grows = replaced.is_none() || selector_bytes(asked) > before;
        let is_crowded = grows && self.subscriptions_crowd();
        if is_crowded
            || others >= limits::SUBSCRIPTIONS_MAX
            || beside >= limits::TOPIC_SUBSCRIPTIONS_MAX
        {
            return Err(Refusal::TooManySubscriptions);
        }
        if record_bytes > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        Ok(())
    }

    /// Whether each message to a topic may be held against a selector of this weight as well.
    fn may_select(
        &self,
        slot: TopicSlot,
        weight: usize,
        replaced: Option<u64>,
    ) -> Result<(), Refusal> {
        let topic = self.topics.at(slot);
        let replaced = replaced.filter(|number| topic.subscriptions.contains(number));
        let selector = replaced.and_then(|number| self.subscriptions.at(number).selector.as_ref());
        let before = selector.map_or(0, Selector::weight);
        let is_too_much = topic.selectors_weight - before + weight > limits::SELECTORS_WEIGHT_MAX;
        if weight > before && is_too_much { Err(Refusal::TooManySelectors) } else { Ok(()) }
    }

    /// Whether there is no memory for another one.
    pub(crate) fn subscriptions_crowd(&self) -> bool {
        self.queues.is_crowded_beside(self.subscriptions.selectors_bytes())
    }

    /// A subscription that is not durable ends when nobody consumes from it any more.
    pub(crate) fn end_if_unused(&mut self, number: u64, effects: &mut Effects) {
        let is_durable = self.subscriptions.at(number).asks.is_durable();
        if !is_durable && !self.has_consumers(number) {
            self.end_subscription(number, effects);
        }
    }

    fn has_consumers(&self, number: u64) -> bool {
        !self.queues.at(self.subscriptions.at(number).queue).consumers.is_empty()
    }
}

/// What its selector takes of memory, but for a short one.
fn selector_bytes(asks: &Subscription) -> u64 {
    let text = asks.selector.as_ref().map_or(0, |text| text.len());
    (text.saturating_sub(SELECTOR_BYTES_USUAL) * limits::SELECTOR_MEMORY_FACTOR) as u64
}

/// Bytes of a selector's text that count as part of the queue.
const SELECTOR_BYTES_USUAL: usize = 64;
