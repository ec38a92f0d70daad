//! Subscriptions of topics, and the names of clients that own them.

use alloc::sync::Arc;

use crate::QueueName;

/// A client's own name for itself, which outlives its sessions. A name as a queue has.
pub type ClientName = QueueName;

/// What a subscription is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionName {
    /// Whose it is; `None`: it belongs to all clients of the broker.
    pub client: Option<ClientName>,
    /// Its name among those of that client.
    pub name: QueueName,
    /// A durable and a non-durable subscription may share client and name.
    pub durable: bool,
}

/// What a consumer of a topic asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// `None`: of this consumer alone, and gone with it. A durable one has a name.
    pub name: Option<SubscriptionName>,
    /// What it subscribes to.
    pub topic: QueueName,
    /// Which messages it takes; `None`: all.
    pub selector: Option<Arc<str>>,
    /// Several consumers may share it, each message going to one of them.
    pub shared: bool,
    /// It takes nothing that this client sends.
    pub without: Option<ClientName>,
}

impl Subscription {
    /// Whether it outlives its consumers, and the process.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.name.as_ref().is_some_and(|name| name.durable)
    }
}
