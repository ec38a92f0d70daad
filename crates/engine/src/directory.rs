//! Topics, subscriptions and the policies of queues, by name.

pub(crate) mod administration;
pub(crate) mod own_policies;
pub(crate) mod patterns;
pub(crate) mod policy;
pub(crate) mod privacy;
pub(crate) mod subscription_expiry;
pub(crate) mod subscriptions;
pub(crate) mod targets;
pub(crate) mod temporary;
pub(crate) mod topics;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use model::{Nanos, OwnPolicy, QueueName, Subscription, SubscriptionName};
use selector::Selector;

use crate::collections::pattern_tree::PatternTree;
use crate::directory::topics::{TopicSlot, Topics};
use crate::ids::{QueueSlot, SessionSlot};
use crate::{DeadLettersMax, QueuePolicies};

/// Topics, subscriptions and the policies of queues, by name.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) topics: Topics,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) queue_policies: QueuePolicies,
    pub(crate) own_policies: OwnPolicies,
    pub(crate) dead_letter_queue: QueueName,
    pub(crate) dead_letters_max: DeadLettersMax,
    /// Queues and topics that go with their sessions.
    pub(crate) temporaries: usize,
}

/// All subscriptions, by number and by name.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    numbers: BTreeMap<u64, Entry>,
    names: BTreeMap<SubscriptionName, u64>,
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
    pub(crate) next: u64,
}

/// A subscription that is there.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) asks: Box<Subscription>,
    pub(crate) selector: Option<Selector>,
    pub(crate) source: Source,
    /// The queue that holds its messages.
    pub(crate) queue: QueueSlot,
    /// The size of its record; zero where it has none.
    pub(crate) record_bytes: u64,
    /// The session that keeps it.
    pub(crate) owner: Option<SessionSlot>,
    /// When it ends, since nothing keeps it.
    pub(crate) ends_at: Option<Nanos>,
    /// Its time begins when a clock is known: it was found in the log.
    pub(crate) is_recovered: bool,
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
pub(crate) struct OwnPolicies(pub(crate) BTreeMap<QueueName, Own>);

#[derive(Debug)]
pub(crate) struct Own {
    pub(crate) policy: OwnPolicy,
    /// The size of its record; zero where it has none.
    pub(crate) record_bytes: u64,
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
