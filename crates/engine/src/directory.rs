//! Topics, subscriptions and the policies of queues, by name.

pub(crate) mod administration;
pub(crate) mod own_policies;
pub(crate) mod patterns;
pub(crate) mod policy;
pub(crate) mod privacy;
pub(crate) mod subscription_expiry;
pub(crate) mod subscriptions;
pub(crate) mod takers;
pub(crate) mod targets;
pub(crate) mod temporary;
pub(crate) mod topics;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use model::{Nanos, OwnPolicy, QueueName, Right, Subscription, SubscriptionName, UserRights};
use selector::Selector;

use crate::collections::pattern_tree::PatternTree;
use crate::directory::topics::{TopicSlot, Topics};
use crate::ids::{QueueSlot, SessionSlot};
use crate::store::MessageStore;
use crate::store::queue::Role;
use crate::{DeadLettersMax, EngineOptions, QueuePolicies};

/// Topics, subscriptions and the policies of queues, by name.
#[derive(Debug)]
pub(crate) struct Directory {
    topics: Topics,
    subscriptions: Subscriptions,
    queue_policies: QueuePolicies,
    own_policies: OwnPolicies,
    dead_letter_queue: QueueName,
    dead_letters_max: DeadLettersMax,
    /// Queues and topics that go with their sessions.
    temporaries: usize,
    /// The rights of all users; `None`: there are no users.
    users: Option<Arc<UserRights>>,
}

/// All subscriptions, by number and by name.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    numbers: BTreeMap<u64, Entry>,
    names: BTreeMap<SubscriptionName, u64>,
    /// How many durable ones each user has.
    of_users: BTreeMap<Arc<str>, u64>,
    /// Those of patterns of words.
    tree: PatternTree,
    /// Those of globs.
    globs: BTreeSet<u64>,
    /// How many are of patterns of either kind.
    patterns: usize,
    /// The weight of the globs, and of the selectors of those of patterns of words.
    globs_weight: usize,
    selectors_weight: usize,
    /// Bytes that all their selectors take of memory.
    selectors_bytes: u64,
    /// The number of the next one.
    next: u64,
}

/// A subscription that is there.
#[derive(Debug)]
pub(crate) struct Entry {
    asks: Box<Subscription>,
    selector: Option<Selector>,
    source: Source,
    /// The queue that holds its messages.
    queue: QueueSlot,
    /// The size of its record; zero where it has none.
    record_bytes: u64,
    /// The user whose it is; `None`: there were no users when it was made.
    user: Option<Arc<str>>,
    /// The session that keeps it.
    owner: Option<SessionSlot>,
    /// When it ends, since nothing keeps it.
    ends_at: Option<Nanos>,
    /// Its time begins when a clock is known: it was found in the log.
    is_recovered: bool,
}

/// The topics that a subscription takes messages of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Topic(TopicSlot),
    /// All topics with names that match the words it asks for.
    Words,
    /// All topics with names that match it as a glob.
    Glob,
}

/// All of them, by name.
#[derive(Debug, Default)]
pub(crate) struct OwnPolicies(BTreeMap<QueueName, Own>);

#[derive(Debug)]
pub(crate) struct Own {
    policy: OwnPolicy,
    /// The size of its record; zero where it has none.
    record_bytes: u64,
}

/// How far a snapshot has come with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyCursor {
    last: Option<QueueName>,
    done: bool,
}

/// A destination that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Queue(QueueSlot),
    Topic(TopicSlot),
}

impl Directory {
    /// Without topics and subscriptions, with the policies of these options.
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self {
            topics: Topics::new(),
            subscriptions: Subscriptions::new(),
            queue_policies: options.queue_policies,
            own_policies: OwnPolicies::default(),
            dead_letter_queue: options.dead_letter_queue,
            dead_letters_max: options.dead_letters_max,
            temporaries: 0,
            users: None,
        }
    }

    pub(crate) fn set_users(&mut self, users: Option<Arc<UserRights>>) {
        self.users = users;
    }

    /// True if a subscription of a pattern may take what is published to a topic: its user may
    /// receive from there. Without users all may.
    pub(crate) fn may_take(&self, entry: &Entry, topic: &QueueName) -> bool {
        let (Some(users), Some(user)) = (&self.users, &entry.user) else { return true };
        let client = entry.asks.name.as_ref().and_then(|name| name.client.as_ref());
        let client = client.map(QueueName::as_str);
        let rights = users.get(user);
        rights.is_some_and(|it| it.on(topic.as_str(), client).contains(Right::Receive))
    }

    /// The name that rights on a queue are for. That of a subscription is its topic, or its
    /// pattern.
    pub(crate) fn name_for_rights(&self, slot: QueueSlot, store: &MessageStore) -> QueueName {
        let queue = store.queues.at(slot);
        let number = match queue.role {
            Role::Subscription { number, .. } => Some(number),
            Role::Named | Role::Temporary(_) | Role::Leaving => None,
        };
        let entry = number.and_then(|number| self.subscriptions.get(number));
        entry.map_or_else(|| queue.name.clone(), |entry| entry.asks.topic.clone())
    }

    pub(crate) const fn topics(&self) -> &Topics {
        &self.topics
    }

    pub(crate) const fn topics_mut(&mut self) -> &mut Topics {
        &mut self.topics
    }

    pub(crate) const fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    pub(crate) const fn subscriptions_mut(&mut self) -> &mut Subscriptions {
        &mut self.subscriptions
    }

    pub(crate) const fn queue_policies(&self) -> &QueuePolicies {
        &self.queue_policies
    }

    pub(crate) const fn own_policies(&self) -> &OwnPolicies {
        &self.own_policies
    }

    pub(crate) const fn dead_letters_name(&self) -> &QueueName {
        &self.dead_letter_queue
    }

    pub(crate) const fn dead_letters_max(&self) -> DeadLettersMax {
        self.dead_letters_max
    }

    pub(crate) const fn temporaries(&self) -> usize {
        self.temporaries
    }
}

impl Entry {
    pub(crate) const fn asks(&self) -> &Subscription {
        &self.asks
    }

    pub(crate) const fn selector(&self) -> Option<&Selector> {
        self.selector.as_ref()
    }

    pub(crate) const fn source(&self) -> Source {
        self.source
    }

    pub(crate) const fn queue(&self) -> QueueSlot {
        self.queue
    }

    pub(crate) const fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    pub(crate) const fn owner(&self) -> Option<SessionSlot> {
        self.owner
    }

    pub(crate) const fn ends_at(&self) -> Option<Nanos> {
        self.ends_at
    }
}
