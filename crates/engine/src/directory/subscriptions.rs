//! Subscriptions of topics: each has a queue of its own, into which a copy of every message that
//! it takes goes when that is published.
//!
//! A named subscription belongs to a client, or to all; a durable one is a record of the log and
//! lives until it is unsubscribed. Any other goes with its last consumer. Numbers are given once
//! and never again, for records of messages name subscriptions by them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use model::{
    DependsOn, Durability, Matching, QueueName, Quota, Refusal, Reply, Subscription,
    SubscriptionName, glob, limits, words,
};
use records::{RecordView, SubscriptionView, encoded_bytes};
use selector::Selector;

use crate::Effects;
use crate::QueuePolicy;
use crate::collections::pattern_tree::{Found, PatternTree};
use crate::directory::patterns::LOOKS_PER_STEP;
use crate::directory::topics::TopicSlot;
use crate::directory::{Directory, Entry, Source, Subscriptions};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// The step that gives a consumer the subscription it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
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
            of_users: BTreeMap::new(),
            tree: PatternTree::new(),
            globs: BTreeSet::new(),
            patterns: 0,
            globs_weight: 0,
            selectors_weight: 0,
            selectors_bytes: 0,
            next: 1,
        }
    }

    /// The number of the next one.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Numbers below this one were given.
    pub(crate) fn skip_to(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    fn insert(&mut self, number: u64, entry: Entry) {
        if let Some(name) = entry.asks.name.clone() {
            if let Some(user) = name.user.clone().filter(|_| name.durable) {
                *self.of_users.entry(user).or_default() += 1;
            }
            let before = self.names.insert(name, number);
            assert!(before.is_none(), "a name is of one subscription");
        }
        self.patterns += usize::from(!matches!(entry.source, Source::Topic(_)));
        match entry.source {
            Source::Topic(_) => {}
            Source::Words => {
                self.tree.insert(&entry.asks.topic, number);
                self.selectors_weight += weight_of(entry.selector.as_ref());
            }
            Source::Glob => {
                self.globs.insert(number);
                self.globs_weight += glob_weight(&entry.asks.topic);
            }
        }
        self.selectors_bytes += selector_bytes(&entry.asks);
        let before = self.numbers.insert(number, entry);
        assert!(before.is_none(), "a number is of one subscription");
        self.next = self.next.max(number + 1);
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.numbers.remove(&number)?;
        self.patterns -= usize::from(!matches!(entry.source, Source::Topic(_)));
        match entry.source {
            Source::Topic(_) => {}
            Source::Words => {
                self.tree.remove(&entry.asks.topic, number);
                self.selectors_weight -= weight_of(entry.selector.as_ref());
            }
            Source::Glob => {
                let was_glob = self.globs.remove(&number);
                assert!(was_glob, "a subscription of a glob is among the globs");
                self.globs_weight -= glob_weight(&entry.asks.topic);
            }
        }
        self.selectors_bytes -= selector_bytes(&entry.asks);
        if let Some(name) = &entry.asks.name {
            let was_named = self.names.remove(name);
            assert_eq!(was_named, Some(number), "a name is of one subscription");
            if let Some(user) = name.user.as_ref().filter(|_| name.durable) {
                self.uncount(user);
            }
        }
        Some(entry)
    }

    fn uncount(&mut self, user: &Arc<str>) {
        let count = self.of_users.get_mut(user).filter(|count| **count > 0);
        let count = count.expect("invariant: a subscription was counted when it came");
        *count -= 1;
        if *count == 0 {
            self.of_users.remove(user);
        }
    }

    /// How many durable ones a user has.
    pub(crate) fn count_of(&self, user: &str) -> u64 {
        self.of_users.get(user).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, name: &SubscriptionName) -> Option<u64> {
        self.names.get(name).copied()
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Entry> {
        self.numbers.get(&number)
    }

    pub(super) fn at_mut(&mut self, number: u64) -> &mut Entry {
        let entry = self.numbers.get_mut(&number);
        entry.expect("invariant: who has a number of a subscription knows that it is there")
    }

    pub(crate) fn at(&self, number: u64) -> &Entry {
        self.get(number).expect("invariant: a topic knows subscriptions that are there")
    }

    /// All from this number on, ascending.
    pub(crate) fn iter_from(&self, number: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.numbers.range(number..).map(|(number, entry)| (*number, entry))
    }

    /// Those of globs, the oldest first.
    pub(crate) fn globs(&self) -> impl Iterator<Item = &Entry> {
        self.globs.iter().map(|number| self.at(*number))
    }

    /// Those of patterns of words that the name of a topic matches.
    pub(crate) fn matching_words(&self, topic: &str) -> Found {
        self.tree.find(topic)
    }

    /// Those of patterns that are called so.
    pub(crate) fn patterns_called(&self, name: &QueueName) -> impl Iterator<Item = &Entry> {
        let globs = self.globs().filter(move |entry| entry.asks.topic == *name);
        let words = self.tree.called(name).into_iter().map(|number| self.at(number));
        globs.chain(words)
    }

    /// True if another pattern fits the limits of weight, its own and that of its selector, beside
    /// all patterns but `but`, which goes for it.
    fn has_room_for(&self, asked: &Subscription, selector: usize, but: Option<&Entry>) -> bool {
        let same = but.filter(|entry| entry.asks.matching == asked.matching);
        let before = same.map_or(0, |entry| pattern_weight(&entry.asks));
        let before_selector = same.map_or(0, |entry| weight_of(entry.selector.as_ref()));
        let (all, selectors) = match asked.matching {
            Matching::Name => return true,
            Matching::Words => (self.tree.weight(), self.selectors_weight - before_selector),
            Matching::Glob => (self.globs_weight, 0),
        };
        all - before + pattern_weight(asked) <= limits::PATTERNS_WEIGHT_MAX
            && selectors + selector <= limits::SELECTORS_WEIGHT_MAX
    }

    /// Bytes of memory that their selectors take, but for short ones: queues are counted by
    /// themselves.
    pub(crate) const fn selectors_bytes(&self) -> u64 {
        self.selectors_bytes
    }

    pub(crate) const fn patterns_count(&self) -> usize {
        self.patterns
    }

    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

impl Entry {
    fn is_as(&self, asked: &Subscription) -> bool {
        self.asks.topic == asked.topic
            && self.asks.matching == asked.matching
            && self.asks.selector == asked.selector
            && self.asks.without == asked.without
    }
}

impl Directory {
    /// It reflects the last change of it, which may not be durable yet.
    pub(crate) fn find_subscription(&self, name: &SubscriptionName, log: &FrameWriter) -> Outcome {
        let Some(number) = self.subscriptions.find(name) else { return log.not_found() };
        let reply = Reply::Subscription(self.subscriptions.at(number).asks.clone());
        Outcome::reply(log.after_all(), reply)
    }

    /// The step that gives it to a consumer, unless others prevent it.
    pub(crate) fn wanted(
        &self,
        asked: &Subscription,
        store: &MessageStore,
    ) -> Result<Wanted, Refusal> {
        let known = asked.name.as_ref().and_then(|name| self.subscriptions.find(name));
        let Some(number) = known else { return Ok(Wanted::New) };
        let entry = self.subscriptions.at(number);
        let fits = entry.is_as(asked);
        let may_join = asked.shared && fits;
        let in_use = self.has_consumers(number, store) && !may_join;
        if in_use || entry.asks.shared != asked.shared {
            return Err(Refusal::SubscriptionInUse);
        }
        Ok(if fits { Wanted::This(number) } else { Wanted::Instead(number) })
    }

    /// Enters a subscription. `record_bytes` is the size of its record, zero where it has none.
    pub(crate) fn register(
        &mut self,
        number: u64,
        asks: Box<Subscription>,
        selector: Option<Selector>,
        source: Source,
        record_bytes: u64,
        store: &mut MessageStore,
    ) {
        let durable = asks.is_durable();
        assert!(durable || record_bytes == 0, "only a durable subscription has a record");
        let policy = QueuePolicy { kept: false, ..self.policy_for(&asks.topic) };
        let queue = store.queues.create_subscription(asks.topic.clone(), number, durable, policy);
        if let Source::Topic(topic) = source {
            let weight = weight_of(selector.as_ref());
            self.topics.at_mut(topic).add_subscription(number, weight);
        }
        store.change_snapshot_bytes(0, snapshot_bytes_of_record(record_bytes));
        let user = asks.name.as_ref().and_then(|name| name.user.clone());
        let entry = Entry {
            asks,
            user,
            selector,
            source,
            queue,
            record_bytes,
            owner: None,
            ends_at: None,
            is_recovered: false,
        };
        self.subscriptions.insert(number, entry);
    }

    /// A new subscription is this user's.
    pub(crate) fn give_to(&mut self, number: u64, user: Option<Arc<str>>) {
        self.subscriptions.at_mut(number).user = user;
    }

    /// Takes a subscription without consumers out of its topic. The topic may go with it.
    pub(crate) fn unregister(&mut self, number: u64, store: &mut MessageStore) -> Entry {
        let entry = self.subscriptions.remove(number);
        let entry = entry.expect("invariant: a subscription ends once");
        store.change_snapshot_bytes(snapshot_bytes_of_record(entry.record_bytes), 0);
        if let Source::Topic(topic) = entry.source {
            let weight = weight_of(entry.selector.as_ref());
            self.topics.at_mut(topic).remove_subscription(number, weight);
            self.topics.remove_if_idle(topic);
        }
        store.timers.change(Timer::Unused(number), entry.ends_at, None);
        entry
    }

    /// A record states a subscription that is known: only when it ends may have changed.
    pub(crate) fn restate(
        &mut self,
        number: u64,
        asks: Box<Subscription>,
        size: u64,
        store: &mut MessageStore,
    ) {
        let entry = self.subscriptions.at_mut(number);
        assert!(entry.is_as(&asks), "a record restates the subscription of its number");
        let before = core::mem::replace(&mut entry.record_bytes, size);
        entry.asks = asks;
        let (before, now) = (snapshot_bytes_of_record(before), snapshot_bytes_of_record(size));
        store.change_snapshot_bytes(before, now);
    }

    /// States in the log the present state of a subscription.
    pub(crate) fn state(
        &mut self,
        number: u64,
        level: Durability,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> DependsOn {
        let entry = self.subscriptions.at_mut(number);
        let record = SubscriptionView::of(number, &entry.asks).map(RecordView::Subscribed);
        let Some(record) = record.filter(|_| level != Durability::None) else {
            return log.after_all();
        };
        let now = encoded_bytes(&record);
        log.append(&record, level, effects);
        let before = core::mem::replace(&mut entry.record_bytes, now);
        let (before, now) = (snapshot_bytes_of_record(before), snapshot_bytes_of_record(now));
        store.change_snapshot_bytes(before, now);
        log.after_open()
    }

    pub(crate) fn may_subscribe(
        &self,
        slot: Option<TopicSlot>,
        asked: &Subscription,
        replaced: Option<u64>,
        record_bytes: u64,
        store: &MessageStore,
        log: &FrameWriter,
    ) -> Result<(), Refusal> {
        let replaced = replaced.map(|number| self.subscriptions.at(number));
        let is_of_topic = |entry: &&Entry| matches!(entry.source, Source::Topic(_));
        let topic = slot.map(|slot| self.topics.at(slot));
        if topic.is_some_and(|topic| topic.temporary().is_some()) && asked.is_durable() {
            return Err(Refusal::NoSuchDestination);
        }
        let others = self.subscriptions.len() - usize::from(replaced.is_some());
        let (beside, most) = match topic {
            Some(topic) => {
                let is_same = |entry: &&Entry| slot.map(Source::Topic) == Some(entry.source);
                let same = replaced.filter(is_same);
                let beside = topic.subscriptions().len() - usize::from(same.is_some());
                (beside, limits::TOPIC_SUBSCRIPTIONS_MAX)
            }
            None => {
                let same = replaced.filter(|entry| !is_of_topic(entry));
                let beside = self.subscriptions.patterns_count() - usize::from(same.is_some());
                (beside, limits::PATTERN_SUBSCRIPTIONS_MAX)
            }
        };
        let before = replaced.map_or(0, |entry| selector_bytes(&entry.asks));
        let grows = replaced.is_none() || selector_bytes(asked) > before;
        let is_crowded = grows && self.subscriptions_crowd(store);
        if is_crowded || others >= limits::SUBSCRIPTIONS_MAX || beside >= most {
            return Err(Refusal::TooManySubscriptions);
        }
        if record_bytes > log.room_left() {
            return Err(Refusal::StoreFull);
        }
        match asked.name.as_ref().and_then(|name| name.user.as_ref()) {
            Some(user) if replaced.is_none() && asked.is_durable() => {
                let count = self.subscriptions.count_of(user);
                store.queues.accounts().allow(Quota::Subscriptions, count + 1)
            }
            _ => Ok(()),
        }
    }

    /// Checks that each message may be held against one more pattern and a selector of this weight.
    pub(crate) fn may_select(
        &self,
        slot: Option<TopicSlot>,
        asked: &Subscription,
        weight: usize,
        replaced: Option<u64>,
    ) -> Result<(), Refusal> {
        let replaced = replaced.map(|number| self.subscriptions.at(number));
        let has_room = self.subscriptions.has_room_for(asked, weight, replaced);
        let Some(slot) = slot else {
            return if has_room { Ok(()) } else { Err(Refusal::TooManySelectors) };
        };
        let same = replaced.filter(|entry| entry.source == Source::Topic(slot));
        let before = same.map_or(0, |entry| weight_of(entry.selector.as_ref()));
        let all = self.topics.at(slot).selectors_weight() - before + weight;
        let is_too_much = weight > before && all > limits::SELECTORS_WEIGHT_MAX;
        if is_too_much { Err(Refusal::TooManySelectors) } else { Ok(()) }
    }

    /// True if there is no memory for another one.
    pub(crate) fn subscriptions_crowd(&self, store: &MessageStore) -> bool {
        store.queues.is_crowded_beside(self.subscriptions.selectors_bytes())
    }

    pub(crate) fn has_consumers(&self, number: u64, store: &MessageStore) -> bool {
        !store.queues.at(self.subscriptions.at(number).queue).delivery.consumers.is_empty()
    }
}

impl Source {
    /// The source of a subscription of a pattern.
    pub(crate) fn of_pattern(matching: Matching) -> Self {
        if matching == Matching::Glob { Self::Glob } else { Self::Words }
    }
}

pub(crate) fn weight_of(selector: Option<&Selector>) -> usize {
    selector.map_or(0, Selector::weight)
}

/// Steps that it takes at most to hold a name against a pattern.
fn pattern_weight(asks: &Subscription) -> usize {
    match asks.matching {
        Matching::Name => 0,
        Matching::Words => words::parts(asks.topic.as_str()).map_or(0, |it| words::weight(&it)),
        Matching::Glob => glob_weight(&asks.topic),
    }
}

fn glob_weight(pattern: &QueueName) -> usize {
    let most = limits::QUEUE_NAME_BYTES_MAX;
    1 + glob::comparisons_max(pattern.as_str().as_bytes(), most) / LOOKS_PER_STEP
}

/// Bytes of memory that its selector takes, but for a short one.
fn selector_bytes(asks: &Subscription) -> u64 {
    let text = asks.selector.as_ref().map_or(0, |text| text.len());
    (text.saturating_sub(SELECTOR_BYTES_USUAL) * limits::SELECTOR_MEMORY_FACTOR) as u64
}

/// Bytes of a selector's text that count as part of the queue.
const SELECTOR_BYTES_USUAL: usize = 64;
