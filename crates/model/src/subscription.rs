//! Subscriptions of topics, and the names of clients that own them.

use alloc::sync::Arc;
use core::fmt;

use crate::{Nanos, QueueName};

/// A client's own name for itself, which outlives its sessions. A name as a queue has.
pub type ClientName = QueueName;

/// The identity of a subscription.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionName {
    /// The user whose it is; `None`: there were no users when it was made, or the engine is to take
    /// that of the session.
    pub user: Option<Arc<str>>,
    /// The client among those of that user; `None`: it belongs to all of them.
    pub client: Option<ClientName>,
    /// Its name among those of that client.
    pub name: QueueName,
    /// A durable and a non-durable subscription may share client and name.
    pub durable: bool,
}

impl fmt::Debug for SubscriptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SubscriptionName");
        if let Some(user) = &self.user {
            shown.field("user", user);
        }
        shown.field("client", &self.client).field("name", &self.name);
        shown.field("durable", &self.durable).finish()
    }
}

/// The subscription that a consumer of a topic asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// `None`: of this consumer alone, and gone with it. A durable one has a name.
    pub name: Option<SubscriptionName>,
    /// The topic that it subscribes to, or a pattern.
    pub topic: QueueName,
    /// How `topic` is meant.
    pub matching: Matching,
    /// Which messages it takes; `None`: all.
    pub selector: Option<Arc<str>>,
    /// Several consumers may share it, each message going to one of them.
    pub shared: bool,
    /// It takes nothing that this client sends.
    pub without: Option<ClientName>,
    /// When it ends by itself; `None`: a durable one never, any other with its last consumer.
    pub expiry: Option<Expiry>,
}

/// The topics that a subscription takes messages of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// The topic of this name.
    #[default]
    Name,
    /// Topics with words, between dots, that match the pattern: `*` is any one word; `#` is any
    /// number of words, none included; `>` at the end is one or more. See [`crate::words`].
    Words,
    /// Topics with names that match a glob. See [`crate::glob`].
    Glob,
}

/// When a subscription ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The thing that keeps it.
    pub with: SubscriptionOwner,
    /// How long after that is gone it ends.
    pub after: Nanos,
}

/// The owner of a subscription, which lasts while its owner is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionOwner {
    /// Its consumers.
    Consumers,
    /// Its consumers, and the session of the last of them.
    Session,
}

impl Subscription {
    /// A private, non-durable one of all topics that match a glob.
    #[must_use]
    pub fn of_glob(pattern: QueueName) -> Self {
        Self { matching: Matching::Glob, ..Self::new(pattern) }
    }

    /// A private one that takes all of a topic.
    #[must_use]
    pub const fn new(topic: QueueName) -> Self {
        Self {
            name: None,
            topic,
            matching: Matching::Name,
            selector: None,
            shared: false,
            without: None,
            expiry: None,
        }
    }

    /// True if it outlives its consumers, and the process.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.durable)
    }

    /// When it ends by itself; `None`: never.
    #[must_use]
    pub fn ends(&self) -> Option<Expiry> {
        let with_consumers = Expiry { with: SubscriptionOwner::Consumers, after: Nanos::ZERO };
        if self.is_durable() { self.expiry } else { Some(self.expiry.unwrap_or(with_consumers)) }
    }
}
